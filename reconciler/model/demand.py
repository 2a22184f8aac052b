"""How many replicas a workload is missing on its primary cluster, and for how long it has been so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from reconciler.model.capacity import GroupUnit, MissingReplicas, ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The deficit from this moment on, until the next sample; `asked` if it was not of unschedulable pods alone."""

    at: datetime
    deficit: int
    asked: bool = False


class Demand(NamedTuple):
    """One workload's demand as it stands. A tuple, since each pass makes one of every workload.

    `deficit` is the replicas that it is missing now by all signals together, each counted once; `waiting` is what they
    add up to, in the order in which they fall due, each step by the signal that reaches it. `history` is how the
    deficit went, oldest first and never empty, the last sample being the present one; how far it reaches back from
    `observed_at` is how long anybody has watched. `unheard` are signals that cannot be heard, and why: what they may be
    asking for is not known. `reported` is False when the primary, freshly seen, reports no such workload. `unit` is
    what one replica is where it goes whole and no manifest says so.
    """

    workload: WorkloadId
    primary: ClusterName
    wanted: int
    running: int
    deficit: int
    waiting: tuple[MissingReplicas, ...]
    shape: ReplicaShape | None
    history: tuple[Sample, ...]
    observed_at: datetime
    reported: bool = True
    unheard: tuple[str, ...] = ()
    unit: GroupUnit | None = None
