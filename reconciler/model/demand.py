"""How many replicas a workload is missing on its primary cluster, and for how long it has been so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from reconciler.model.capacity import GroupUnit, MissingReplicas, ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The missing replicas from one moment on, until the next sample."""

    at: datetime
    missing: int
    asked: bool = False
    """Whether another signal than unschedulable pods may have had a part in it."""


class Demand(NamedTuple):
    """One workload's demand at one moment. A tuple, since each pass makes one of every workload."""

    workload: WorkloadId
    primary: ClusterName
    wanted: int
    """Replicas that the workload object on the primary asks for."""
    running: int
    missing: int
    """Replicas that are missing now by all signals together, each counted once."""
    waiting: tuple[MissingReplicas, ...]
    """Steps that add up to `missing`, in the order in which they fall due, each by the signal that reaches it."""
    shape: ReplicaShape | None
    """Resources of one replica, None where nobody knows them."""
    history: tuple[Sample, ...]
    """The missing replicas for as long as anybody has watched, oldest first; never empty. The last is the present."""
    observed_at: datetime
    reported: bool = True
    """False when the primary, freshly seen, reports no such workload."""
    stale: tuple[str, ...] = ()
    """Sentence about each stale signal. Nobody knows what such a signal would ask for."""
    unit: GroupUnit | None = None
    """Pods of one replica where they are scheduled as a gang and no manifest says so."""
