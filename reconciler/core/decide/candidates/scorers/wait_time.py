"""Wait time: clusters where the missing replicas serve soon, be it on free nodes, on added ones, or once others end.

An estimate by the nodes of one cluster, for the order of clusters that take some now. `explain.wait_time` plays the
queue of all workloads forward, and answers when one gets room that has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.candidates.scorers.scorer import ALIKE, Points, Subject
from reconciler.core.decide.candidates.scorers.time_to_ready import burst_duration, time_to_ready
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.ledger import lifecycle
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.policy import Renewal
from reconciler.model.score import BEST
from reconciler.model.units import format_duration

_MOST_ENDS = 3
"""The most ends of other placements, the first ones, to look at on a cluster: each means to count its room again."""


class EstimatedWait:
    """Scores a cluster by the part of a burst's duration in which the missing replicas would serve there.

    Replicas that get a node at no known time serve in none of it. What is placed together serves once its last replica
    does. A cluster out of sight scores 0.
    """

    follows_plan = True
    weighs_delay = True

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by their free capacity, less what this pass has handed out."""
        capacity, shape = subject.capacity, subject.shape
        if capacity is None or shape is None:
            return [ALIKE] * len(candidates)
        waits = _Waits(
            subject=subject,
            capacity=capacity,
            shape=shape,
            missing=_missing(subject),
            lasts=burst_duration(subject),
            is_divisible=_is_divisible(subject),
        )
        return [waits.points(candidate.cluster) for candidate in candidates]

    def key(self, subject: Subject) -> Hashable:
        """Score workloads equally that miss as many replicas of a shape, and last and start equally long."""
        if subject.capacity is None or subject.shape is None:
            return None
        moment = subject.working_plan.position, subject.capacity.changes
        own = subject.workload if subject.workload in subject.inputs.track_record.started else None
        return (
            subject.shape.likeness,
            subject.workload.workspace,
            _missing(subject),
            _is_divisible(subject),
            burst_duration(subject),
            own,
            moment,
        )


class _Start(NamedTuple):
    """Replicas that get a node on a cluster."""

    wait: timedelta
    replicas: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waits:
    """The waits of the missing replicas of a workload on each cluster."""

    subject: Subject
    capacity: FleetCapacity
    shape: ReplicaShape
    missing: int
    lasts: timedelta
    is_divisible: bool

    def points(self, cluster: ClusterName) -> Points:
        """Return the points of one cluster."""
        if cluster not in self.subject.inputs.observed.clusters:
            return Points(0.0)
        ready, how = time_to_ready(self.subject, cluster)
        starts = [start for start in self._starts(cluster) if start.replicas]
        served = [
            (start.replicas, max(0.0, 1 - (start.wait + (ready or timedelta())) / self.lasts)) for start in starts
        ]
        never = self.missing - sum(replicas for replicas, _ in served)
        if self.is_divisible:
            part = sum(replicas * served_part for replicas, served_part in served) / self.missing
        else:
            part = 0.0 if never else min(served_part for _, served_part in served)
        words = [_describe(start, self.missing) for start in starts]
        words += [f"{never} at no known time"] if never else []
        words += [f"ready {format_duration(ready)} later, {how}"] if ready is not None else []
        return Points(BEST * part, ", ".join(words))

    def _starts(self, cluster: ClusterName) -> Iterator[_Start]:
        """Yield when the missing replicas get nodes, the first ones first."""
        free, later = self._fits(cluster), list[_Start]()
        yield _Start(timedelta(), free)
        if free < self.missing and self.capacity.may_grow(cluster):
            with self.capacity.grown():
                nodes = self.capacity.first_growth(cluster, self.shape)
                added = self.capacity.room(cluster, self.subject.workload.workspace).count(self.shape, self.missing)
            if nodes is not None:
                later.append(_Start(nodes.delay, added - free, "on a new node"))
        if 0 < free < self.missing:
            later += self._ends(cluster, free)
        left = self.missing - free
        for start in sorted(later):
            yield start._replace(replicas=min(left, start.replicas))
            left -= min(left, start.replicas)

    def _ends(self, cluster: ClusterName, free: int) -> Iterator[_Start]:
        """Yield the replicas that get the nodes of placements which end within the duration of a burst."""
        now, before = self.subject.inputs.now, free
        placements = [
            placement
            for placement in self.subject.working_plan.on(cluster)
            if now < placement.expires_at < now + self.lasts and self._is_ending(placement)
        ]
        for end in islice(sorted({placement.expires_at for placement in placements}), _MOST_ENDS):
            fits = self._fits(cluster, ended=[placement for placement in placements if placement.expires_at <= end])
            yield _Start(end - now, max(0, fits - before), "when others end")
            before = max(before, fits)

    def _fits(self, cluster: ClusterName, ended: Sequence[Placement] = ()) -> int:
        """Count the missing replicas that the nodes of a cluster have room for, once some placements have ended."""
        workspace = self.subject.workload.workspace
        with self.capacity.grown(growth=False):
            room = self.capacity.room(cluster, workspace, without=ended, newcomer=self.shape)
            return room.count(self.shape, self.missing)

    def _is_ending(self, placement: Placement) -> bool:
        """Return whether a placement of another workload ends, and is not renewed before."""
        return placement.workload != self.subject.workload and not self._is_renewed(placement.workload)

    def _is_renewed(self, workload: WorkloadId) -> bool:
        desired = self.subject.inputs.desired
        template, policy = desired.templates.get(workload), desired.policies.get(workload)
        if template is None or policy is None:
            return False
        return lifecycle.renewal(template, policy) is not Renewal.NEVER


def _describe(start: _Start, missing: int) -> str:
    number = "all" if start.replicas == missing else str(start.replicas)
    return f"{number} in {format_duration(start.wait)} {start.why}" if start.why else f"{number} at once"


def _missing(subject: Subject) -> int:
    """Return how many replicas the workload still misses, beside those that are placed; one where that is unknown."""
    demand = subject.inputs.demands.get(subject.workload)
    missing = demand.missing if isinstance(demand, Demand) else 0
    return max(1, missing - subject.working_plan.replicas(subject.workload))


def _is_divisible(subject: Subject) -> bool:
    return unit_of_workload(subject.inputs, subject.workload).is_single
