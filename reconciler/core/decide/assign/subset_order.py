"""The clusters of a WorkloadSpread subset by subset, each in order; and what they give back, in the reverse of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reconciler.core.decide.assign.share import newest_first
from reconciler.core.decide.assign.subset_quota import quotas
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.decide.distribution.subsets import Layer, give_back
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.spread.matching import preference
from reconciler.core.spread.placement_subset import Site, seated, site
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.workload_spread import WorkloadSpread
from reconciler.text.wording import plain

RETURNS = "the last subset gives back first"

Sites = tuple[tuple[Site, ...], ...]
"""Of each subset in order, its clusters in order; of no subset at last."""


def describe_subset_order(spread: WorkloadSpread) -> str:
    """Say how a spread shares out, in one line."""
    said = []
    for one in spread.subsets:
        bounds = [f"at least {one.least}"] if one.least else []
        bounds += [f"at most {one.most}"] if one.most is not None else []
        said.append(f"{plain(one.name)} ({', '.join(bounds)})" if bounds else plain(one.name))
    return f"WorkloadSpread {spread.id}, in order: {', '.join(said)}"


def rows_of(
    finder: CandidateFinder,
    workload: WorkloadId,
    spread: WorkloadSpread,
    held: Mapping[Site, int],
    free: Callable[[Site], int],
) -> Sites:
    """Put the clusters of each subset in order: by preferred terms, then by what is free, then by name.

    What a subset has on clusters that are none of its own any more comes last. The last row is of no subset: the
    policy's candidates in their order, and where else some are in none.
    """
    inputs, candidates = finder.inputs, {candidate.site for candidate in finder.order(workload)}
    seen, clusters = inputs.observed.clusters, inputs.desired.clusters
    rows = []
    for subset in spread.subsets:
        own = sorted(place for place in candidates if place[1] == subset.name)
        if len(own) > 1:
            liked = {place: preference(subset, clusters[place[0]], seen.get(place[0])) for place in own}
            own.sort(key=lambda place: (-liked[place], -free(place)))
        rows.append((*own, *sorted(place for place in held if place[1] == subset.name and place not in candidates)))
    none = [candidate.site for candidate in finder.order(workload) if not candidate.subset]
    return (*rows, (*none, *sorted(place for place in held if not place[1] and place not in candidates)))


def given_back(
    inputs: PassInput, working_plan: WorkingPlan, surplus: int, placements: Sequence[Placement], spread: WorkloadSpread
) -> tuple[tuple[Placement, int], ...]:
    """Say which of a workload's placements give replicas back and how many each keeps.

    What is above the maximum of a subset goes first, since it may not stay anyhow, then what is in none, then the last
    subset, and in it the cluster that would be filled last; within that the newest placement. A percentage is one of
    what is left.
    """
    workload, clusters = placements[0].workload, inputs.desired.clusters
    policy, finder = inputs.desired.policies[workload], CandidateFinder(inputs, working_plan)
    sites = {one.path: site(one, policy, clusters) for one in placements}
    held, shapes = seated(placements, policy, clusters), {sites[one.path]: one.shape for one in placements}

    def free(place: Site) -> int:
        seen = place in shapes and place[0] in inputs.observed.clusters
        return finder.rooms.room(place[0], workload.workspace).count(shapes[place], MOST) if seen else 0

    *rows, none = rows_of(finder, workload, spread, held, free)
    found = quotas(inputs, workload, spread, working_plan.replicas(workload) - surplus)
    layers = [
        Layer(targets=_having(row, held), most=quota.lent, least=max(0, quota.least - quota.home))
        for row, quota in zip(rows, found, strict=True)
    ]
    layers = [*_lowered(layers, surplus), Layer(targets=_having(none, held), most=0)]
    stays = give_back(max(0, held.total() - surplus), layers)
    last_first = [pair for row, kept in zip((*rows, none), stays, strict=True) for pair in zip(row, kept, strict=True)]
    return tuple(
        found
        for place, kept in reversed(last_first)
        for found in newest_first([one for one in placements if sites[one.path] == place], kept)
    )


def _lowered(layers: Sequence[Layer], surplus: int) -> list[Layer]:
    """Take what is above the maximums off what the subsets have, as far as a surplus goes."""
    has = [sum(target.most for target in layer.targets) for layer in layers]
    within = sum(n if layer.most is None else min(n, layer.most) for n, layer in zip(has, layers, strict=True))
    stays = give_back(max(sum(has) - surplus, within), layers)
    return [
        replace(
            layer,
            targets=tuple(replace(one, most=n, capacity=n) for one, n in zip(layer.targets, kept, strict=True)),
        )
        for layer, kept in zip(layers, stays, strict=True)
    ]


def _having(row: Sequence[Site], held: Mapping[Site, int]) -> tuple[ClusterShare, ...]:
    """Make targets of what there is to give back."""
    return tuple(
        ClusterShare(cluster=place[0], rank=rank, most=held.get(place, 0), capacity=held.get(place, 0))
        for rank, place in enumerate(row, start=1)
    )
