"""The number of replicas that a workload is missing on its primary cluster, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from reconciler.model.capacity import BlockedReplicas, GroupUnit, MissingReplicas, ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.signal import DemandLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The missing replicas from one moment on, until the next sample."""

    at: datetime
    missing: int
    asked: bool = False
    """Whether a signal other than unschedulable pods may have contributed."""


class Demand(NamedTuple):
    """A workload's demand, the same object for as long as nothing has changed.

    When its primary was seen last is told by the input of the pass.
    """

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
    """Resources of one replica; None if unknown."""
    history: tuple[Sample, ...]
    """The missing replicas for as long as anybody has watched, oldest first; never empty. The last is the present."""
    reported: bool = True
    """False when the primary, freshly seen, reports no such workload, or no pods of it."""
    note: str = ""
    """A sentence about the counted object: that it is not found, or which of several it is."""
    stale: tuple[str, ...] = ()
    """Sentence about each stale signal. The demand of a stale signal is unknown."""
    pods_at_home: int = 0
    """Pods of it that have a node on the primary."""
    held: bool = False
    """Whether its copy on the primary is suspended, queued or gated, so that none of its pods gets a node there."""
    started: str = ""
    """Why it runs, or begins, without a pod on the primary; empty where nothing says so."""
    claimed: str = ""
    """Why it may soon begin by what holds it on the primary; empty where nothing says so."""
    unit: GroupUnit | None = None
    """Pods of one replica, if they are scheduled as a gang without a manifest that shows it."""
    past: tuple[DemandLevel, ...] = ()
    """What was missing for as long as signals look back, the present included; empty where none of them does."""
    forecasts: tuple[str, ...] = ()
    """A sentence about what each signal foresees."""
    blocked: tuple[BlockedReplicas, ...] = ()
    """Pods on the primary that wait for something else than room; they are no part of `missing`."""

    @property
    def needed(self) -> int:
        """The part of `missing` that is not only wanted beforehand."""
        return sum([step.replicas for step in self.waiting if not step.spare])

    def lacking_since(self, placed: int) -> datetime | None:
        """Return since when the first replica is missing that `placed` ones do not serve; None if they serve all."""
        steps = sorted((step for step in self.waiting if not step.spare), key=lambda step: step.since)
        total = accumulate(step.replicas for step in steps)
        return next((step.since for step, replicas in zip(steps, total, strict=True) if replicas > placed), None)
