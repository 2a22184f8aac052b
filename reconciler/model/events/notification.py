"""Who is told of what: the Notifications of a fleet, and how far each has been told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import CommitId, WorkspaceName


class Importance(StrEnum):
    """How much an event matters, least first."""

    INFO = "Info"
    WARNING = "Warning"
    ERROR = "Error"

    @property
    def rank(self) -> int:
        """The place in the order."""
        return tuple(Importance).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseReceiver:
    """A chat, a mailbox, a pager: whatever Apprise has an address for."""

    url_from: str
    """Name of the secret that is the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReceiver:
    """An address that takes CloudEvents, signed as Standard Webhooks are."""

    url: str
    secret_from: str
    """Name of the secret that signs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesReceiver:
    """Kubernetes Events on the workload's object, in the primary and in the clusters of its placements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStatusReceiver:
    """Commit statuses on the source commits that were decided on, at the host of the fleet repository."""

    token_from: str = ""
    """Name of the secret that is the token; empty for the login of git."""


Receiver: TypeAlias = AppriseReceiver | WebhookReceiver | KubernetesReceiver | CommitStatusReceiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A receiver, and what it is told."""

    name: str
    receiver: Receiver
    workspaces: tuple[WorkspaceName, ...] = ()
    """Empty for all."""
    events: frozenset[EventKind] = frozenset()
    """Empty for all."""
    least: Importance = Importance.INFO
    group: timedelta = timedelta()
    """How long events are collected before they are told together."""
    owner: WorkspaceName | None = None
    """The workspace on whose own path its file lies: its secrets are named after it."""

    @property
    def repeatable(self) -> bool:
        """Whether the receiver knows an event that it gets twice as one."""
        return not isinstance(self.receiver, AppriseReceiver)

    @property
    def secret(self) -> str:
        """Name of the file of its secret; empty for a receiver that has none."""
        match self.receiver:
            case AppriseReceiver(url_from=name) | WebhookReceiver(secret_from=name):
                pass
            case CommitStatusReceiver(token_from=name):
                pass
            case KubernetesReceiver():
                return ""
        return f"{self.owner}.{name}" if self.owner and name else name


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryMarks:
    """How far along the output branch a receiver has been told; two refs of the fleet repository.

    What lies between the two was on its way when somebody last looked: a daemon that was killed then leaves it so.
    """

    told: CommitId | None = None
    """Everything up to this commit is told. None for a receiver that is new."""
    sending: CommitId | None = None
    """Everything up to this commit is told, or somebody is about to tell it."""

    @property
    def uncertain(self) -> bool:
        """Whether it is unknown if some events have arrived."""
        return self.told != self.sending

    def claimed(self, until: CommitId) -> DeliveryMarks:
        """Return the marks of a sender that is about to tell of everything up to a commit."""
        return DeliveryMarks(told=self.told, sending=until)

    def confirmed(self) -> DeliveryMarks:
        """Return the marks once all that was on its way is told."""
        return DeliveryMarks(told=self.sending, sending=self.sending)
