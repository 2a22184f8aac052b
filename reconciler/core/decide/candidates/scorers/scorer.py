"""The shape of a scorer, and what it is told of the workload whose clusters it scores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.candidates.scorers.gpu_pressure import GpuPressure
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import WorkloadId
from reconciler.model.score import BEST


class Points(NamedTuple):
    """The points of one cluster, from 0 to BEST, and what they were read from."""

    value: float
    detail: str = ""


ALIKE = Points(BEST)
"""The points of clusters between which a scorer knows no difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A workload whose clusters are scored, as the pass stands."""

    inputs: PassInput
    working_plan: WorkingPlan
    workload: WorkloadId
    # Of one replica; None where it is unknown.
    shape: ReplicaShape | None
    # None where replicas are given back: no room is asked for.
    capacity: FleetCapacity | None
    pressure: GpuPressure


class Scorer(Protocol):
    """Says how well clusters suit a workload."""

    @property
    def follows_plan(self) -> bool:
        """Whether points change with what a pass decides: clusters are then ordered again after each change."""

    @property
    def weighs_delay(self) -> bool:
        """Whether points count the time in which autoscalers add nodes.

        Where no scorer of a policy does, clusters that have to add nodes are ordered by that time first.
        """

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Return the points of each candidate, in their order."""

    def key(self, subject: Subject) -> Hashable:
        """Return a value that is equal for subjects that get equal points for equal candidates, within a pass."""


def best_ratio(costs: Sequence[float | None]) -> list[float]:
    """Turn costs into points: the lowest has all, one that is twice as high half of them, an unknown one none.

    Where something costs nothing, the others share the lower half.
    """
    positive = [cost for cost in costs if cost]
    least, most = min(positive, default=0.0), BEST / 2 if 0 in costs else BEST
    return [0.0 if cost is None else most * least / cost if cost else BEST for cost in costs]
