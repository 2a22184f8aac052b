"""The trailers of a commit message: what a program needs to read a change back (`core.history`)."""

from __future__ import annotations

from datetime import datetime

from reconciler.core.commits import message_parts
from reconciler.model.ids import CommitId, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import (
    Amend,
    Change,
    Close,
    Extend,
    Forget,
    Hold,
    Move,
    Place,
    Receive,
    Release,
    RequestChange,
    Resize,
    Restore,
    Revert,
)
from reconciler.text.timestamps import format_time
from reconciler.text.wording import plain


def trailers(change: Change, source: CommitId) -> tuple[str, ...]:
    """Write the trailers of a change that was decided on this commit of the source branch, a line each."""
    found = (*_first(change), ("Source", source), ("Digest", _digest(change)), *_added(change))
    return tuple(f"Overspill-{key}: {plain(value)}" for key, value in found if value)


def _first(change: Change) -> list[tuple[str, str]]:
    """Give the trailers that say what happened to which placement."""
    action = ("Action", type(change).__name__)
    match change:
        case Release(workload=workload, restraints=restraints):
            names = sorted({restraint.placement for restraint in restraints})
            clusters = sorted({restraint.cluster for restraint in restraints if restraint.cluster is not None})
            placements = [("Placement", f"{workload.workspace}/{name}") for name in names]
            return [*placements, action, *(("Cluster", cluster) for cluster in clusters)]
        case Hold(placement=placement, restraint=restraint):
            return _common(placement, action, restraint.until)
        case Receive() | Amend() | Close() | Forget():
            return [("Request", str(message_parts.record_of(change).workload)), action]
        case _:
            placement = _left(change)
            return _common(placement, action, placement.expires_at)


def _common(placement: Placement, action: tuple[str, str], until: datetime) -> list[tuple[str, str]]:
    return [
        ("Placement", placement.id),
        action,
        ("Cluster", placement.cluster),
        ("Subset", placement.subset),
        ("Expires", format_time(until)),
    ]


def _added(change: Change) -> list[tuple[str, str]]:
    """Give the trailers that only some changes have."""
    match change:
        case Revert(placement=placement, why=why, phase=phase):
            return [("Why", why.value), ("Phase", phase.value), *_request(placement.workload)]
        case Move(before=before, after=after, why=why):
            moved = [("Why", why.value), ("Moved-From", str(before.cluster)), *_request(after.workload)]
            return moved if before.id == after.id else [*moved, ("Replaces", before.id)]
        case Place() | Extend() | Restore():
            return _request(_left(change).workload)
        case _:
            return []


def _request(workload: WorkloadId) -> list[tuple[str, str]]:
    """Name the request that a placement is of, if it is of one."""
    return [("Request", str(workload))] if workload.request else []


def _left(change: Place | Resize | Extend | Move | Revert | Restore) -> Placement:
    """Return the placement as a change leaves it, or as it removes it."""
    match change:
        case Place(placement=placement) | Revert(placement=placement):
            return placement
        case Resize(after=after) | Extend(after=after) | Move(after=after):
            return after
        case Restore(drifted=drifted):
            return drifted.placement


def _digest(change: Change) -> str:
    """Return the digest of the files that a change writes or removes, if it touches any."""
    return "" if isinstance(change, (Hold, Release, RequestChange)) else _left(change).digest
