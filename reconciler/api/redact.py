"""What a caller may not see of other workspaces, taken out of sentences that name it.

Clusters are shared, so that what one workspace waits for may be what another one has: that it is somebody's may be
told, and not whose.
"""

from __future__ import annotations

import re
from dataclasses import replace

from reconciler.access.rights import EVERYWHERE, AccessRole, Caller, has_role
from reconciler.daemon.item_status import ItemStatus
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import Json

SOMEBODY = "somebody of another workspace"
_NAME = re.compile(r"[a-z0-9][-a-z0-9]*(?:/[a-z0-9][-a-z0-9]*)?")


def redact(value: Json, snapshot: Snapshot, caller: Caller) -> Json:
    """Return a value with the names of workloads and placements that a caller may not see taken out of its texts."""
    if EVERYWHERE in caller.roles:
        return value
    match value:
        case str():
            return _NAME.sub(lambda name: SOMEBODY if _is_hidden(name[0], snapshot, caller) else name[0], value)
        case list():
            return [redact(inner, snapshot, caller) for inner in value]
        case dict():
            return {key: redact(inner, snapshot, caller) for key, inner in value.items()}
    return value


def redact_status(status: ItemStatus, snapshot: Snapshot, caller: Caller) -> ItemStatus:
    """Return how something stands with its words veiled; the very same where they name nobody."""
    after = replace(
        status,
        message=redact(status.message, snapshot, caller),
        conditions=tuple(
            replace(condition, message=redact(condition.message, snapshot, caller)) for condition in status.conditions
        ),
    )
    return status if after == status else after


def _is_hidden(name: str, snapshot: Snapshot, caller: Caller) -> bool:
    """Tell whether a name is that of a workload (``llm/vllm``) or of a placement of another's workspace."""
    workspace, slash, _ = name.partition("/")
    owner = WorkspaceName(workspace) if slash else snapshot.owners.get(name)
    is_workspace = owner in snapshot.view.desired.workspaces or owner in snapshot.catalogue.workspaces
    return owner is not None and is_workspace and not has_role(caller, AccessRole.VIEWER, owner)
