"""Transfers: replicas leave some placements of a workload and arrive on other clusters, each in a commit of its own.

Movers of bursts (`relocate`) and people (`orders.rebalance`) name what leaves, and the assignment where it goes. What
gives up replicas comes first, so that no commit has more of them than before. What arrives keeps the end of what left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import make_revert
from reconciler.core.ledger import lifecycle
from reconciler.core.spread.placement_subset import cluster_subset
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import ClusterSubset, Placement, Restraint
from reconciler.model.plan import Change, Choice, Reason, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Replicas of one placement that leave their cluster, if others have room for them."""

    placement: Placement
    replicas: int
    why: EndReason
    """The reason of what goes."""
    detail: str
    stays: Reason | None
    """The reason of what has no room elsewhere and stays; None where nothing may stay, and is reverted instead."""
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
    chosen: Sequence[Candidate],
    *,
    tell: Telling,
) -> None:
    """Take the replicas of departures away, then place those of the chosen candidates, all of one workload.

    The first change of a departure leaves its restraint. New placements come after those that grow.
    """
    workload = departures[0].placement.workload
    choices = list[tuple[Candidate, Choice]]()
    for candidate in chosen:
        choices.append((candidate, finder.choice(candidate, workload.workspace)))
        finder.capacity.take_replicas(candidate.cluster, workload, candidate.shape, candidate.replicas)
    for departure in sorted(departures, key=lambda departure: departure.replicas < departure.placement.replicas):
        working_plan.change(_leave(inputs, departure))
    first = earliest_end(departures)
    gone = {departure.placement.path for departure in departures}
    there = [placement for placement in working_plan.of(workload) if placement.path not in gone]
    arrivals = [
        _arrival(inputs, finder, candidate, choice, on_slot(inputs, there, candidate), first=first, tell=tell)
        for candidate, choice in choices
    ]
    for arrival in sorted(arrivals, key=lambda arrival: arrival.action is Action.PLACE):
        working_plan.change(arrival)


def earliest_end(departures: Iterable[Departure]) -> Placement:
    """Return the placement of which something leaves that ends first: new placements end when it would have."""
    placements = (departure.placement for departure in departures)
    return min(placements, key=lambda placement: (placement.expires_at, placement.created_at, placement.name))


def on_slot(inputs: PassInput, placements: Iterable[Placement], candidate: Candidate) -> list[Placement]:
    """List the placements of a workload where the replicas of a candidate go."""
    policies, clusters = inputs.desired.policies, inputs.desired.clusters
    return [each for each in placements if cluster_subset(each, policies[each.workload], clusters) == candidate.key]


def _leave(inputs: PassInput, departure: Departure) -> Change:
    placement, rest = departure.placement, departure.placement.replicas - departure.replicas
    if not rest:
        return make_revert(inputs, placement, departure.why, departure.detail, restraint=departure.restraint)
    after = lifecycle.resized_placement(placement, inputs.desired, inputs.now, rest)
    return Change(
        action=Action.RESIZE,
        before=placement,
        after=after,
        why=departure.why,
        detail=departure.detail,
        restraint=departure.restraint,
    )


def _arrival(
    inputs: PassInput,
    finder: CandidateFinder,
    candidate: Candidate,
    choice: Choice,
    here: Sequence[Placement],
    *,
    first: Placement,
    tell: Telling,
) -> Change:
    """Resize the newest placement on a cluster, or begin one that ends when the first of those does that were left."""
    workload, desired = first.workload, inputs.desired
    before = max(here, key=lambda placement: (placement.created_at, placement.name), default=None)
    detail, refused = tell(candidate, before)
    if before is not None:
        replicas = before.replicas + candidate.replicas
        grown = lifecycle.resized_placement(before, desired, inputs.now, replicas)
        after = replace(grown, shape=candidate.shape.recorded, subset=candidate.subset)
        return Change(action=Action.RESIZE, before=before, after=after, detail=detail, choice=choice, refused=refused)
    made = finder.placement(
        desired.templates[workload],
        desired.policies[workload],
        candidate.shape,
        candidate.cluster,
        candidate.replicas,
        subset=candidate.subset,
    )
    made = replace(made, created_at=first.created_at, expires_at=first.expires_at, fixed_end=first.fixed_end)
    return Change(action=Action.PLACE, after=made, choice=choice, refused=refused, detail=detail)
