"""The order in which the clusters of a WorkloadSpread's subsets are filled, and the reverse in which they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reconciler.core.decide.assign.assignment import newest_first
from reconciler.core.decide.assign.subset_quota import quotas
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.decide.distribution.subsets import Layer, give_back
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.spread.placement_subset import cluster_subset, replicas_by_subset
from reconciler.core.spread.subset_selection import preference_weight
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.text.wording import sanitize

RETURNS = "the last subset gives back first"

SubsetRows = tuple[tuple[ClusterSubset, ...], ...]
"""The clusters of each subset in order; the last row is of replicas in no subset."""


def describe_subset_order(spread: WorkloadSpread) -> str:
    """Describe the subsets of a spread with their bounds, in one line."""
    words = []
    for subset in spread.subsets:
        bounds = [f"at least {subset.least}"] if subset.least else []
        bounds += [f"at most {subset.most}"] if subset.most is not None else []
        words.append(f"{sanitize(subset.name)} ({', '.join(bounds)})" if bounds else sanitize(subset.name))
    return f"WorkloadSpread {spread.id}, in order: {', '.join(words)}"


def rows_of(
    finder: CandidateFinder,
    workload: WorkloadId,
    spread: WorkloadSpread,
    held: Mapping[ClusterSubset, int],
    free: Callable[[ClusterSubset], int],
) -> SubsetRows:
    """Order the clusters of each subset: by preferred terms, by score, by free room, then by name.

    Clusters that have replicas of a subset and no longer belong to it come last in its row. The last row is of no
    subset: the policy's candidates in their order, then other clusters with replicas in none.
    """
    inputs, candidates = finder.inputs, {candidate.key: candidate for candidate in finder.order(workload)}
    seen, clusters = inputs.observed.clusters, inputs.desired.clusters
    rows = []
    for subset in spread.subsets:
        own = sorted(place for place in candidates if place[1] == subset.name)
        if len(own) > 1:
            preferences = {place: preference_weight(subset, clusters[place[0]], seen.get(place[0])) for place in own}
            own.sort(key=lambda place: (-preferences[place], -candidates[place].score, -free(place)))
        rows.append((*own, *sorted(place for place in held if place[1] == subset.name and place not in candidates)))
    none = [candidate.key for candidate in finder.order(workload) if not candidate.subset]
    return (*rows, (*none, *sorted(place for place in held if not place[1] and place not in candidates)))


def take_back(
    inputs: PassInput, working_plan: WorkingPlan, surplus: int, placements: Sequence[Placement], spread: WorkloadSpread
) -> tuple[tuple[Placement, int], ...]:
    """Choose which of a workload's placements lose a surplus, each with the replicas it keeps.

    Replicas above the maximum of a subset go first, since they may not stay anyhow, then those in no subset, then those
    of the last subset, and in it of the cluster that would be filled last; within a cluster the newest placement first.
    Percentages are of the replicas that are left.
    """
    workload, clusters = placements[0].workload, inputs.desired.clusters
    policy, finder = inputs.desired.policies[workload], CandidateFinder(inputs, working_plan)
    places = {placement.path: cluster_subset(placement, policy, clusters) for placement in placements}
    held = replicas_by_subset(placements, policy, clusters)
    shapes = {places[placement.path]: placement.shape for placement in placements}

    def free(place: ClusterSubset) -> int:
        seen = place in shapes and place[0] in inputs.observed.clusters
        return finder.capacity.room(place[0], workload.workspace).count(shapes[place], MOST) if seen else 0

    *rows, none = rows_of(finder, workload, spread, held, free)
    subsets = quotas(inputs, workload, spread, working_plan.replicas(workload) - surplus)
    layers = [
        Layer(shares=_held_shares(row, held), most=quota.elsewhere, least=max(0, quota.least - quota.home))
        for row, quota in zip(rows, subsets, strict=True)
    ]
    layers = [*_lower(layers, surplus), Layer(shares=_held_shares(none, held), most=0)]
    stays = give_back(max(0, held.total() - surplus), layers)
    last_first = [pair for row, kept in zip((*rows, none), stays, strict=True) for pair in zip(row, kept, strict=True)]
    return tuple(
        pair
        for place, kept in reversed(last_first)
        for pair in newest_first([placement for placement in placements if places[placement.path] == place], kept)
    )


def _lower(layers: Sequence[Layer], surplus: int) -> list[Layer]:
    """Take replicas above the maximums off the shares of the subsets, as far as the surplus goes."""
    has = [sum(share.most for share in layer.shares) for layer in layers]
    within = sum(n if layer.most is None else min(n, layer.most) for n, layer in zip(has, layers, strict=True))
    stays = give_back(max(sum(has) - surplus, within), layers)
    return [
        replace(
            layer,
            shares=tuple(share._replace(most=n, capacity=n) for share, n in zip(layer.shares, kept, strict=True)),
        )
        for layer, kept in zip(layers, stays, strict=True)
    ]


def _held_shares(row: Sequence[ClusterSubset], held: Mapping[ClusterSubset, int]) -> tuple[ClusterShare, ...]:
    """Make shares of the replicas that can be taken back."""
    return tuple(
        ClusterShare(cluster=place[0], rank=rank, most=held.get(place, 0), capacity=held.get(place, 0))
        for rank, place in enumerate(row, start=1)
    )
