"""Hides names of workloads and placements of other workspaces in messages.

Workspaces share clusters, so one may wait for GPUs that another has. Callers learn that capacity is taken, not by whom.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from reconciler.access.rights import EVERYWHERE, AccessRole, Caller, has_role
from reconciler.daemon.item_status import ItemStatus
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import Json

SOMEBODY = "somebody of another workspace"
_NAME = re.compile(r"[a-z0-9][-a-z0-9]*(?:/[a-z0-9][-a-z0-9]*)?")


_NOTHING: Mapping[str, WorkspaceName] = {}


def redact(value: Json, snapshot: Snapshot, caller: Caller, planned: Mapping[str, WorkspaceName] = _NOTHING) -> Json:
    """Return a value without the names of workloads and placements that a caller may not see.

    `planned` are the workspaces of placements that are in no ledger yet, by name.
    """
    if EVERYWHERE in caller.roles:
        return value
    match value:
        case str():
            return _NAME.sub(
                lambda name: SOMEBODY if _is_hidden(name[0], snapshot, caller, planned) else name[0], value
            )
        case list():
            return [redact(inner, snapshot, caller, planned) for inner in value]
        case dict():
            return {key: redact(inner, snapshot, caller, planned) for key, inner in value.items()}
    return value


def redact_status(status: ItemStatus, snapshot: Snapshot, caller: Caller) -> ItemStatus:
    """Return a status with redacted messages; the same object where none changes."""
    after = replace(
        status,
        message=redact(status.message, snapshot, caller),
        conditions=tuple(
            replace(condition, message=redact(condition.message, snapshot, caller)) for condition in status.conditions
        ),
    )
    return status if after == status else after


def _is_hidden(name: str, snapshot: Snapshot, caller: Caller, planned: Mapping[str, WorkspaceName]) -> bool:
    """Return whether a name is a workload (``llm/vllm``) or a placement of a workspace that the caller may not read."""
    workspace, slash, _ = name.partition("/")
    owner = WorkspaceName(workspace) if slash else (snapshot.owners.get(name) or planned.get(name))
    is_workspace = owner in snapshot.decision.inputs.desired.workspaces or owner in snapshot.catalogue.workspaces
    return owner is not None and is_workspace and not has_role(caller, AccessRole.VIEWER, owner)
