"""The Notifications of a fleet's files. Those on a workspace's own path use secrets of that workspace alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from reconciler.core.fleet.objects import DeclaredValue, FleetObjects, name_locations
from reconciler.core.schema.notification import NotificationFile, NotificationSpec
from reconciler.errors import Severity
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
    for name, placed in work.named(NotificationFile, "Notification").items():
        places = name_locations(("spec", "workspaces"), placed.value.spec.workspaces)
        work.report_unknown(placed, "Workspace", places, workspaces, Severity.WARNING)
        owners = work.paths.owners(placed.path)
        refusal = _refuse_shared_secret(placed, owners)
        if refusal is not None:
            work.reject(placed, refusal)
        else:
            notifications[name] = placed.value.value_of(next(iter(owners)) if len(owners) == 1 else None)
    return notifications


def _refuse_shared_secret(placed: _Placed, owners: Collection[WorkspaceName]) -> Finding | None:
    """Refuse a secret on a path of several workspaces: each could use those of the others there."""
    secret = _secret_field(placed.value.spec)
    if len(owners) < 2 or secret is None:  # noqa: PLR2004 - of one it is clear whose secret is meant
        return None
    message = f"this path is the own one of workspaces {join_names(sorted(owners))}, and secrets are of one workspace"
    return Finding(loc=("spec", *secret), message=message, hint="move the file to a path that only one of them has")


def _secret_field(spec: NotificationSpec) -> Loc | None:
    """Return the field that names a secret; None for a receiver without one."""
    if spec.apprise is not None:
        return "apprise", "urlFrom"
    if spec.webhook is not None:
        return "webhook", "secretFrom"
    if spec.commit_status is not None and spec.commit_status.token_from is not None:
        return "commitStatus", "tokenFrom"
    return None
