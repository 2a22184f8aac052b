"""Transfers: replicas leave some placements of a workload and arrive on other clusters, each in a commit of its own.

Movers of bursts (`relocate`) and people (`orders.rebalance`) name what leaves, and the assignment where it goes. What
gives up replicas comes first, so that no commit has more of them than before. What arrives keeps the end of what left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from reconciler.core.capacity.gpu_slices import recorded_shape
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.assign.assignment import Assignment, SetPods
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import make_revert
from reconciler.core.ledger import lifecycle
from reconciler.core.ledger.restraints import MOVES_PERIOD
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset, Placement, Restraint
from reconciler.model.plan import Change, Choice, Reason, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why replicas leave their clusters, and what follows: a rule that moves replicas is a row below."""

    why: EndReason
    """The reason of what goes."""
    must_go: bool = False
    """Whether nothing may stay: what has no room elsewhere is reverted, whatever the budget of moves says."""
    told: Reason = Reason.NO_CAPACITY
    """The reason of what has no room elsewhere, and stays."""
    takes: Callable[[PlacementUnit], bool] = lambda _: True
    """Whether units of a kind leave for it at all."""
    may_run: bool = True
    """Whether what leaves may still be at work, so that what runs once stays unless it has to go."""
    pause: timedelta = timedelta()
    """How long the workload stays away from a cluster that it has left, where its policy says less."""


FORBIDDEN = Cause(why=EndReason.POLICY, must_go=True)
"""Files no longer allow it there."""
REBALANCED = Cause(why=EndReason.REQUESTED, must_go=True)
"""A person wants its replicas to be shared out again."""
CLUSTER_LOST = Cause(why=EndReason.CLUSTER_LOST, told=Reason.CLUSTER_LOST)
"""Its cluster has been lost for too long."""
NO_NODE = Cause(why=EndReason.FAILED, takes=lambda unit: unit.is_loose)
"""Its pods have had no node for too long."""
NONE_RUNS = Cause(why=EndReason.FAILED, takes=lambda unit: not unit.is_loose, may_run=False)
"""Its pods go together, and none of them has a node: they have found none for too long, or a queue has ended them."""
BOUND_UNMET = Cause(
    why=EndReason.POLICY, told=Reason.BOUND_UNMET, takes=lambda unit: not unit.is_set, pause=MOVES_PERIOD
)
"""A lower bound of its policy is not met, which is not worth more than one try an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Replicas of one placement that leave their cluster, if others have room for them."""

    placement: Placement
    replicas: int
    cause: Cause
    detail: str
    restraint: Restraint | None = None
    """What a move leaves; None for nothing."""
    closed: Mapping[ClusterSubset, Refusal] = field(default_factory=dict)
    """The clusters and subsets where it is of no use, and why."""
    towards: frozenset[ClusterSubset] = frozenset()
    """The clusters and subsets of which one at least has to get some of it, else all of it stays; empty for any."""


class Telling(Protocol):
    """Says what a commit says of replicas that arrive."""

    def __call__(self, candidate: Candidate, joined: Placement | None, /) -> tuple[str, tuple[Refusal, ...]]:
        """Return the detail, and the clusters that were refused; `joined` is what grows, None for a new placement."""


def transfer(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    departures: Sequence[Departure],
    assignment: Assignment,
    *,
    tell: Telling,
    in_one_commit: bool = False,
) -> None:
    """Take the replicas of departures away, then place those that are assigned, all of one workload.

    The first change of a departure leaves its restraint. New placements come after those that grow. All of one
    placement that goes to one cluster may move `in_one_commit`.
    """
    workload, first = departures[0].placement.workload, earliest_end(departures)
    gone = {departure.placement.path for departure in departures}
    there = {
        candidate.key: [each for each in working_plan.on_slot(workload, candidate.key) if each.path not in gone]
        for candidate in assignment.chosen
    }
    arrivals = [
        _arrival(inputs, finder, candidate, assignment.pods, there[candidate.key], first=first, tell=tell)
        for candidate in assignment.chosen
    ]
    if in_one_commit:
        (departure,), (arrival,) = departures, arrivals
        working_plan.change(_move(departure, arrival))
        return
    for departure in sorted(departures, key=lambda departure: departure.replicas < departure.placement.replicas):
        working_plan.change(_leave(inputs, departure))
    for arrival in sorted(arrivals, key=lambda arrival: arrival.action is Action.PLACE):
        working_plan.change(arrival)


def earliest_end(departures: Iterable[Departure]) -> Placement:
    """Return the placement of which something leaves that ends first: new placements end when it would have."""
    placements = (departure.placement for departure in departures)
    return min(placements, key=lambda placement: (placement.expires_at, placement.created_at, placement.name))


def _leave(inputs: PassInput, departure: Departure) -> Change:
    placement, rest = departure.placement, departure.placement.replicas - departure.replicas
    if not rest:
        return make_revert(inputs, placement, departure.cause.why, departure.detail, restraint=departure.restraint)
    after = lifecycle.resized_placement(placement, inputs.desired, inputs.now, rest)
    return Change(
        action=Action.RESIZE,
        before=placement,
        after=after,
        why=departure.cause.why,
        detail=departure.detail,
        restraint=departure.restraint,
    )


def _move(departure: Departure, arrival: Change) -> Change:
    """Make one change of both. On a cluster that has a placement of the workload the two become one.

    Two placements would deploy the same objects there, and the end of one would delete those of the other.
    """
    return replace(
        arrival,
        action=Action.MOVE,
        before=departure.placement,
        joined=arrival.before,
        why=departure.cause.why,
        restraint=departure.restraint,
    )


def _arrival(
    inputs: PassInput,
    finder: CandidateFinder,
    candidate: Candidate,
    pods: SetPods | None,
    here: Sequence[Placement],
    *,
    first: Placement,
    tell: Telling,
) -> Change:
    """Resize the newest placement on a cluster, or begin one that ends when the first of those does that were left."""
    workload, desired = first.workload, inputs.desired
    before = max(here, key=lambda placement: (placement.created_at, placement.name), default=None)
    detail, refused = tell(candidate, before)
    choice, shape = _take(finder, workload, candidate, pods), candidate.shape if pods is None else pods.shape
    if before is not None:
        replicas = before.replicas + candidate.replicas
        grown = lifecycle.resized_placement(before, desired, inputs.now, replicas)
        recorded = recorded_shape(shape, inputs.observed.clusters.get(candidate.cluster))
        after = replace(grown, shape=recorded, subset=candidate.subset)
        return Change(action=Action.RESIZE, before=before, after=after, detail=detail, choice=choice, refused=refused)
    made = finder.placement(
        desired.templates[workload],
        desired.policies[workload],
        shape,
        candidate.cluster,
        candidate.replicas,
        subset=candidate.subset,
    )
    made = replace(made, created_at=first.created_at, expires_at=first.expires_at, fixed_end=first.fixed_end)
    return Change(action=Action.PLACE, after=made, choice=choice, refused=refused, detail=detail)


def _take(finder: CandidateFinder, workload: WorkloadId, candidate: Candidate, pods: SetPods | None) -> Choice:
    """Record the choice of a cluster, and hand out the room there."""
    if pods is not None:
        return gang_placement.choose(finder, candidate, pods, workload.workspace)
    choice = finder.choice(candidate, workload.workspace)
    finder.capacity.take_replicas(candidate.cluster, workload, candidate.shape, candidate.replicas)
    return choice
