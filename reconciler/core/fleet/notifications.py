"""The Notifications of a fleet's files. Those on a workspace's own path use secrets of that workspace alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeAlias
from urllib.parse import urlsplit

from reconciler.core.fleet.objects import NAME, DeclaredValue, FleetObjects, name_locations
from reconciler.core.schema.notification import NotificationFile, NotificationSpec
from reconciler.core.schema.urls import is_own_machine
from reconciler.errors import Severity
from reconciler.model.bounds import NOTIFICATIONS_OF_WORKSPACE
from reconciler.model.events.notification import Notification
from reconciler.model.ids import WorkspaceName
from reconciler.model.policy import Workspace
from reconciler.text.findings import Finding, Loc
from reconciler.text.wording import join_names

_Placed: TypeAlias = DeclaredValue[NotificationFile]


def notifications_in_force(
    work: FleetObjects, workspaces: Mapping[WorkspaceName, Workspace]
) -> dict[str, Notification]:
    """Read the Notifications. An unknown workspace is reported at its line, and the Notification stays in force."""
    notifications: dict[str, Notification] = {}
    kept: Counter[WorkspaceName] = Counter()
    for name, placed in _named(work).items():
        places = name_locations(("spec", "workspaces"), placed.value.spec.workspaces)
        work.report_unknown(placed, "Workspace", places, workspaces, Severity.WARNING)
        owners = work.paths.owners(placed.path)
        refusal = (
            _refuse_shared_secret(placed, owners)
            or _refuse_own_machine(placed, owners)
            or _refuse_beyond_bound(owners, kept)
        )
        if refusal is not None:
            work.reject(placed, refusal)
        else:
            kept.update(owners)
            notifications[name] = placed.value.value_of(next(iter(owners)) if len(owners) == 1 else None)
    return notifications


def _named(work: FleetObjects) -> dict[str, _Placed]:
    """Return the Notifications by name. Those of the whole fleet have their names, whoever came first.

    How far a receiver is told is kept by name: a workspace that took the name of another receiver would go on there.
    """

    def of_workspace(placed: _Placed) -> bool:
        return bool(work.paths.owners(placed.path))

    by_name: dict[str, _Placed] = {}
    for placed in sorted(work.all(NotificationFile), key=of_workspace):
        name = placed.value.metadata.name
        other = by_name.get(name)
        if other is not None and of_workspace(placed) and not of_workspace(other):
            where = f"{other.path}:{other.declared.line}"
            message = f"Notification {name} is the whole fleet's, in {where}"
            work.reject(placed, Finding(loc=NAME, message=message, hint="try another name"))
        elif work.is_unique(placed, other, f"Notification {name}"):
            by_name[name] = placed
    return by_name


def _refuse_shared_secret(placed: _Placed, owners: Collection[WorkspaceName]) -> Finding | None:
    """Refuse a secret on a path of several workspaces: each could use those of the others there."""
    secret = _secret_field(placed.value.spec)
    if len(owners) < 2 or secret is None:  # noqa: PLR2004 - of one it is clear whose secret is meant
        return None
    message = f"this path is the own one of workspaces {join_names(sorted(owners))}, and secrets are of one workspace"
    return Finding(loc=("spec", *secret), message=message, hint="move the file to a path that only one of them has")


def _refuse_own_machine(placed: _Placed, owners: Collection[WorkspaceName]) -> Finding | None:
    """Refuse a workspace's webhook that leads to what only the daemon itself can reach; senders check names again."""
    webhook = placed.value.spec.webhook
    host = "" if webhook is None else urlsplit(webhook.url).hostname or ""
    if not owners or not is_own_machine(host):
        return None
    message = f"{host} is the daemon's own machine or link, which is not for a workspace to call"
    hint = "name an address that others can reach, or use a fleet-wide file"
    return Finding(loc=("spec", "webhook", "url"), message=message, hint=hint)


def _refuse_beyond_bound(owners: Collection[WorkspaceName], kept: Mapping[WorkspaceName, int]) -> Finding | None:
    """Refuse a Notification of a workspace that has enough of them; `kept` counts those before it."""
    full = next((owner for owner in sorted(owners) if kept[owner] >= NOTIFICATIONS_OF_WORKSPACE.most), None)
    if full is None:
        return None
    message = (
        f"workspace {full} has {NOTIFICATIONS_OF_WORKSPACE.most} Notifications before this one, the most there are"
    )
    hint = "tell several receivers through one chat, or have the fleet's administrators name it in a fleet-wide file"
    return Finding(loc=NAME, message=message, hint=hint)


def _secret_field(spec: NotificationSpec) -> Loc | None:
    """Return the field that names a secret; None for a receiver without one."""
    if spec.apprise is not None:
        return "apprise", "urlFrom"
    if spec.webhook is not None:
        return "webhook", "secretFrom"
    if spec.commit_status is not None and spec.commit_status.token_from is not None:
        return "commitStatus", "tokenFrom"
    return None
