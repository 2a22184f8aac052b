"""What a pass decided, as values for whoever wants to know: logs, chats, metrics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.model.ids import ClusterName, CommitId, WorkloadId
from reconciler.model.plan import Reason


class EventKind(StrEnum):
    """What happened to a workload, a request or a placement."""

    PLACED = "placed"
    RESIZED = "resized"
    EXTENDED = "extended"
    MOVED = "moved"
    ENDED = "ended"
    FAILED = "failed"  # ended too, since it did not work there
    RESTORED = "restored"  # its files, which a person had edited
    DELETED = "deleted"  # by a person; the workload is held on that cluster from here on
    RELEASED = "released"  # from the holds that such deletions began
    REQUEST_RECEIVED = "request received"
    REQUEST_CHANGED = "request changed"
    REQUEST_CLOSED = "request closed"
    REQUEST_FORGOTTEN = "request forgotten"
    BRANCHES_FOLLOWED = "branches followed"  # those of clusters, which somebody had moved or left behind
    HELD_BACK = "held back"
    NO_LONGER_HELD_BACK = "no longer held back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that a pass decided."""

    kind: EventKind
    at: datetime  # of the pass
    line: str  # the whole event in one line, as a terminal shows it
    workload: WorkloadId | None = None  # a template, or the request itself; None for branches
    clusters: tuple[ClusterName, ...] = ()  # of a move: from, to
    before: int = 0  # replicas there before
    replicas: int = 0  # from here on; of what is held back, the replicas that are not placed
    reasons: tuple[str, ...] = ()  # a paragraph each, as in the commit's body
    held_by: Reason | None = None  # why it is, or was, held back
    commit: CommitId | None = None  # on the output branch; None where nothing was written
