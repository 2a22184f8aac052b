"""How many replicas a workload is missing on its primary cluster, and for how long it has been so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.capacity import ReplicaShape, Waiting
from reconciler.model.ids import ClusterName, WorkloadId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The deficit from this moment on, until the next sample."""

    at: datetime
    deficit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One workload's demand as it stands.

    `deficit` is the replicas that the primary cannot hold now. `history` is how the deficit went, oldest first and
    never empty, the last sample being the present one; how far it reaches back from `observed_at` is how long anybody
    has watched. `reported` is False when the primary, freshly seen, reports no such workload.
    """

    workload: WorkloadId
    primary: ClusterName
    wanted: int
    running: int
    deficit: int
    waiting: tuple[Waiting, ...]
    shape: ReplicaShape | None
    history: tuple[Sample, ...]
    observed_at: datetime
    reported: bool = True
