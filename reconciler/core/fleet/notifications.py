"""The Notifications of a fleet's files. Those on a workspace's own path use secrets of that workspace alone."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.fleet.objects import FleetObjects, name_locations
from reconciler.core.schema.notification import NotificationFile
from reconciler.errors import Severity
from reconciler.model.events.notification import Notification
from reconciler.model.ids import WorkspaceName
from reconciler.model.policy import Workspace


def notifications_in_force(
    work: FleetObjects, workspaces: Mapping[WorkspaceName, Workspace]
) -> dict[str, Notification]:
    """Read the Notifications. An unknown workspace is reported at its line, and the Notification stays in force."""
    notifications: dict[str, Notification] = {}
    for name, placed in work.named(NotificationFile, "Notification").items():
        places = name_locations(("spec", "workspaces"), placed.value.spec.workspaces)
        work.report_unknown(placed, "Workspace", places, workspaces, Severity.WARNING)
        owners = work.paths.owners(placed.path)
        notifications[name] = placed.value.value_of(min(owners) if owners else None)
    return notifications
