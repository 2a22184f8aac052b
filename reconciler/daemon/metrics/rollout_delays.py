"""How long it takes from the first missing replica until the burst that serves it is applied, and until it is ready.

Only bursts whose commit this process has pushed are followed: nobody knows any more since when a replica was missing
that an earlier process has placed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.workloads import replica_count
from reconciler.model.events.event import Event
from reconciler.model.ids import ClusterName, CommitId, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.rollout import EngineState


class Milestone(StrEnum):
    """What a burst arrives at, in this order."""

    APPLIED = "applied"
    """Its engine has taken it up as it stands, or pods of all its replicas are seen."""
    READY = "ready"
    """It is healthy, or all of its replicas are ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutDelay:
    """The arrival of a burst at a milestone."""

    milestone: Milestone
    workload: WorkloadId
    commit: CommitId
    delay: timedelta
    """Since the first replica has been missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coming:
    """A burst that is not ready yet."""

    workload: WorkloadId
    cluster: ClusterName
    commit: CommitId
    missing_since: datetime
    committed_at: datetime
    applied: bool = False


class RolloutDelays:
    """Follows bursts from their commits until they are ready or end. Used by the thread that runs passes."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._coming: tuple[_Coming, ...] = ()

    def note(self, events: Sequence[Event]) -> None:
        """Take in the bursts of a push; a later one of the same workload and cluster replaces an earlier one."""
        coming = {(each.workload, each.cluster): each for each in self._coming}
        for event in events:
            if event.waited is not None and event.workload is not None and event.commit is not None:
                coming[event.workload, event.clusters[-1]] = _Coming(
                    workload=event.workload,
                    cluster=event.clusters[-1],
                    commit=event.commit,
                    missing_since=event.at - event.waited,
                    committed_at=event.at,
                )
        self._coming = tuple(coming.values())

    def follow(self, inputs: PassInput) -> Iterator[RolloutDelay]:
        """Yield what the bursts have arrived at by the look of a pass."""
        left: list[_Coming] = []
        for burst in self._coming:
            placements = [
                placement
                for placement in inputs.ledger.placements.of(burst.workload).on(burst.cluster)
                if placement.changed_at >= burst.committed_at
            ]
            # 1. The pass that wrote it has not read it back yet, or it has ended.
            if not placements:
                if inputs.now <= burst.committed_at:
                    left.append(burst)
                continue
            # 2. It has been taken up.
            ready = all(_is_ready(placement, inputs) for placement in placements)
            applied = ready or burst.applied or all(_is_applied(placement, inputs) for placement in placements)
            if applied and not burst.applied:
                yield _delay(burst, Milestone.APPLIED, inputs.now)
            # 3. It is ready.
            if ready:
                yield _delay(burst, Milestone.READY, inputs.now)
            else:
                left.append(replace(burst, applied=applied))
        self._coming = tuple(left)


def _delay(burst: _Coming, milestone: Milestone, now: datetime) -> RolloutDelay:
    return RolloutDelay(
        milestone=milestone, workload=burst.workload, commit=burst.commit, delay=now - burst.missing_since
    )


def _is_applied(placement: Placement, inputs: PassInput) -> bool:
    """Return whether an engine has a placement as it stands, by its report, or by the pods of all replicas."""
    report = inputs.observed.reports.get(placement.path)
    if report is not None:
        return report.digest == placement.digest and report.state is not EngineState.PENDING
    seen = inputs.observed.clusters.get(placement.cluster)
    if seen is None:
        return False
    pods = replica_count.bound_replicas(placement, seen) + replica_count.pending_replicas(placement, seen)
    return pods >= placement.replicas


def _is_ready(placement: Placement, inputs: PassInput) -> bool:
    """Return whether a placement is healthy, or all of its replicas are ready where no engine reports."""
    seen = inputs.observed.clusters.get(placement.cluster)
    ready = None if seen is None else replica_count.ready_replicas(placement, seen)
    return inputs.rollouts.has_arrived(placement) or (ready is not None and ready >= placement.replicas)
