"""The kind Notification of ``overspill.dev``: a receiver of events, and what it is told."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from reconciler.core.schema.strict_model import Metadata, Name, Strict, Window, refusal
from reconciler.core.schema.urls import WebhookAddress
from reconciler.model.events import notification as model
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance
from reconciler.model.ids import WorkspaceName
from reconciler.text.findings import shortened
from reconciler.text.spelling import nearest

_LONGEST_GROUP = timedelta(hours=24)
_NOT_TOLD = frozenset({EventKind.BRANCHES_FOLLOWED, EventKind.TEST})
"""Housekeeping, and what a person sends whatever a receiver hears of."""

EVENTS = {kind.title().replace(" ", ""): kind for kind in EventKind if kind not in _NOT_TOLD}
"""Events by the names that files have for them."""
_SECRET = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _event(text: str) -> str:
    """Refuse an unknown event."""
    if text in EVENTS:
        return text
    raise refusal(f"{shortened(text)!r} is no event", nearest(text, EVENTS) or f"one of {', '.join(EVENTS)}")


def _secret(text: str) -> str:
    """Refuse what is no name of a secret, without repeating it: it may be the secret itself."""
    if _SECRET.fullmatch(text):
        return text
    raise refusal(
        "is no name of lower-case letters, digits and '-' (63 at most)",
        "name a file in the directory of OVERSPILL_NOTIFICATION_SECRETS, which holds the secret",
    )


def _group(value: timedelta) -> timedelta:
    if value <= _LONGEST_GROUP:
        return value
    raise refusal("is longer than a day", "try '24h'")


EventName = Annotated[str, AfterValidator(_event), WithJsonSchema({"type": "string", "examples": [*EVENTS]})]
SecretName = Annotated[
    str, AfterValidator(_secret), WithJsonSchema({"type": "string", "pattern": f"^{_SECRET.pattern}$"})
]


class AppriseFile(Strict):
    """A chat, a mailbox or a pager, by an address of Apprise."""

    url_from: SecretName = Field(
        description="The secret that is the address: `slack://…`, `msteams://…`, `mailtos://…`, or another."
    )


class WebhookFile(Strict):
    """An address that takes CloudEvents by POST."""

    url: WebhookAddress = Field(description="The address, without a login.")
    secret_from: SecretName = Field(
        description="The secret that signs, as Standard Webhooks have it: `whsec_` and base64, or any text."
    )


class KubernetesEventsFile(Strict):
    """Kubernetes Events on the workload's object. The daemon needs a right for it: `overspill grant --events`."""


class CommitStatusFile(Strict):
    """Commit statuses at the host of the fleet repository: GitHub, GitLab, Gitea or Forgejo."""

    token_from: SecretName | None = Field(
        None, description="The secret that is a token with the right to write statuses; git's own login by default."
    )


class NotificationSpec(Strict):
    """A receiver, and what it is told. Exactly one receiver is named."""

    workspaces: list[Name] = Field([], description="The workspaces it is told of; none listed: all.")
    events: list[EventName] = Field([], description="The events it is told of, such as `Placed`; none listed: all.")
    severity: Annotated[Importance, Field(strict=False)] = Field(
        Importance.INFO, description="The least severity it is told of."
    )
    group: Annotated[Window, AfterValidator(_group)] = Field(
        timedelta(0), description="How long events are collected, to be told together; a day at most."
    )
    apprise: AppriseFile | None = Field(None, description="Tells a chat, a mailbox or a pager, through Apprise.")
    webhook: WebhookFile | None = Field(None, description="Sends signed CloudEvents.")
    kubernetes_events: KubernetesEventsFile | None = Field(
        None, description="Writes Kubernetes Events on the workload's object, in the primary and where it is placed."
    )
    commit_status: CommitStatusFile | None = Field(
        None, description="Sets commit statuses on the source commits that were decided on."
    )

    @model_validator(mode="after")
    def _refuse_other_than_one_receiver(self) -> NotificationSpec:
        """Refuse none and several receivers: each is told at its own pace."""
        receivers = {
            "apprise": self.apprise,
            "webhook": self.webhook,
            "kubernetesEvents": self.kubernetes_events,
            "commitStatus": self.commit_status,
        }
        named = [name for name, receiver in receivers.items() if receiver is not None]
        if not named:
            raise refusal("names no receiver", f"add one of {', '.join(receivers)}")
        if len(named) > 1:
            raise refusal(f"has both {named[0]} and {named[1]}", "write a Notification for each")
        return self


class NotificationFile(Strict):
    """Who is told of what: a receiver, with the workspaces, events and severity that it hears of."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["Notification"]
    metadata: Metadata
    spec: NotificationSpec

    def value_of(self, owner: WorkspaceName | None) -> model.Notification:
        """Make the model's value; `owner` is the workspace whose own path the file lies on."""
        spec = self.spec
        return model.Notification(
            name=self.metadata.name,
            receiver=self._receiver(),
            workspaces=tuple(WorkspaceName(name) for name in dict.fromkeys(spec.workspaces)),
            events=frozenset(EVENTS[name] for name in spec.events),
            least=spec.severity,
            group=spec.group,
            owner=owner,
        )

    def _receiver(self) -> model.Receiver:
        spec = self.spec
        if spec.apprise is not None:
            return model.AppriseReceiver(url_from=spec.apprise.url_from)
        if spec.webhook is not None:
            return model.WebhookReceiver(url=spec.webhook.url, secret_from=spec.webhook.secret_from)
        if spec.commit_status is not None:
            return model.CommitStatusReceiver(token_from=spec.commit_status.token_from or "")
        return model.KubernetesReceiver()
