"""The surplus of a workload: which of its placements lose the replicas that are too many, for all kinds of workloads.

What serves least goes first: unseen, without a node, not ready (`serving`). Two things come before it. What may not
stay anyhow goes first of all: on clusters that the policy no longer names, in no subset, above the maximum of a subset.
And the guarantees of the policy hold as long as there are replicas for them. Among equals, replicas go in the reverse
of the order in which they were placed: by the strategy, then the newest placement of a cluster first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from reconciler.core.decide.assign.bounds import share_of_unit
from reconciler.core.decide.assign.serving import Serving, add_up, describe_given_up, serving
from reconciler.core.decide.assign.subset_order import rows_of, share_of_slot, slots_in_tiers
from reconciler.core.decide.assign.subset_quota import quotas
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.scorers import ranked
from reconciler.core.decide.distribution import ClusterShare, Layer, give_back, returns, within
from reconciler.core.decide.distribution.cluster_bounds import seeds
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.candidate import Candidate
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.model.policy import BurstPolicy, Distribution


class GivenUp(NamedTuple):
    """Replicas that one placement loses."""

    placement: Placement
    # The replicas that it keeps.
    rest: int
    # How little those serve that go, in words; empty where the order among equals decides alone.
    because: str = ""


def take_surplus(
    inputs: PassInput, working_plan: WorkingPlan, surplus: int, placements: Sequence[Placement], *, partly: bool
) -> tuple[GivenUp, ...]:
    """Choose which placements of one workload lose a surplus: the reverse of `assign`, what serves least first.

    `partly` ends a placement that is one unit where only a part of it is too many, as where a limit was lowered.
    """
    workload = placements[0].workload
    held = _Held(inputs=inputs, working_plan=working_plan, workload=workload, placements=placements)
    whole = unit_of_workload(inputs, workload, placements[0]).whole
    ended = tuple(held.units(surplus, partly=partly) if whole else held.divided(surplus))
    return ended if add_up(held.serving.values()).is_mixed else tuple(each._replace(because="") for each in ended)


def give_up(inputs: PassInput, placements: Iterable[Placement], stays: int) -> Iterator[GivenUp]:
    """Leave so many replicas of the placements of one cluster: what serves least goes first, then what is newest."""
    return _leave([(placement, serving(inputs, placement)) for placement in placements], stays)


def describe_order(policy: BurstPolicy) -> str:
    """Describe which of equal replicas a policy takes back first; empty for clusters in order, which need no words."""
    if policy.subsets:
        last, distribution = "the last subset gives back first", policy.distribution
        return last if distribution.traits.fills_in_order else f"{last}, and in it {within(distribution.strategy)}"
    return "" if policy.fills_in_order else returns(policy.distribution)


@dataclass(frozen=True, kw_only=True)
class _Held:
    """The placements of one workload that give up replicas."""

    inputs: PassInput
    working_plan: WorkingPlan
    workload: WorkloadId
    placements: Sequence[Placement]

    @cached_property
    def serving(self) -> Mapping[str, Serving]:
        """How well each placement serves, by path."""
        return {placement.path: serving(self.inputs, placement) for placement in self.placements}

    @cached_property
    def places(self) -> Mapping[ClusterSubset, tuple[Placement, ...]]:
        """The placements of each cluster, by subset."""
        places: dict[ClusterSubset, tuple[Placement, ...]] = {}
        for placement in self.placements:
            place = self.inputs.slot(placement)
            places[place] = (*places.get(place, ()), placement)
        return places

    @property
    def policy(self) -> BurstPolicy:
        return self.inputs.desired.policies[self.workload]

    @cached_property
    def finder(self) -> CandidateFinder:
        """Finds room as placements stand now; this pass has handed out none yet."""
        return CandidateFinder(self.inputs, self.working_plan)

    @cached_property
    def room(self) -> Mapping[ClusterSubset, int]:
        """How many more replicas each cluster would take, by subset, within its limit; none where it is not seen."""
        held, room = self.finder.held(self.workload), {}
        limits = {candidate.key: candidate.limit for candidate in self.finder.order(self.workload)}
        for place, placements in self.places.items():
            if place[0] not in self.inputs.observed.clusters:
                continue
            fits = self.finder.capacity.room(place[0], self.workload.workspace).count(placements[-1].shape, MOST)
            limit = limits.get(place)
            room[place] = fits if limit is None else min(fits, max(0, limit - held[place]))
        return room

    def divided(self, surplus: int) -> Iterator[GivenUp]:
        """Yield what loses replicas, the last cluster first. Percentages are of the replicas that are left.

        Replicas above the maximum of a subset go first, then those in no subset, then those of the last subset, and in
        it by the distribution of the policy. Without subsets all are in none.
        """
        order = ranked(self.inputs, self.working_plan, self.workload)
        slots = slots_in_tiers(self.inputs, self.workload, (each for each in order if each.key in self.places))
        *rows, none = rows_of(self.policy, slots, self.places, lambda slot: self.room.get(slot, 0))
        *bounds, _ = quotas(self.inputs, self.workload, self.working_plan.replicas(self.workload) - surplus)
        layers = [
            replace(self._layer(row, slots), most=quota.elsewhere, least=max(0, quota.least - quota.home))
            for row, quota in zip(rows, bounds, strict=True)
        ]
        outside = replace(self._layer(none, slots), most=0 if bounds else None)
        distribution, held = self.policy.distribution, sum(map(self._replicas, self.places))
        layers = [*_lower(layers, surplus, distribution), outside]
        stays = give_back(max(0, held - surplus), layers, distribution)
        for row, kept in reversed(list(zip((*rows, none), stays, strict=True))):
            for slot, rest in reversed(list(zip(row, kept, strict=True))):
                yield from _leave([(each, self.serving[each.path]) for each in self.places[slot]], rest)

    def units(self, surplus: int, *, partly: bool) -> Iterator[GivenUp]:
        """Yield the placements that end, each of which is one unit."""
        for placement in reversed(self._kept_units()):
            if surplus <= 0:
                return
            if partly or placement.replicas <= surplus:
                surplus -= placement.replicas
                yield GivenUp(placement, 0, describe_given_up(self.serving[placement.path], 0))

    def _kept_units(self) -> list[Placement]:
        """List units in the order in which they are kept: as many clusters and groups as there have to be first.

        Of equal ones those of the last cluster in the order go first.
        """
        order = {candidate.key: candidate for candidate in ranked(self.inputs, self.working_plan, self.workload)}
        found = [(order.get(place), each) for place, placements in self.places.items() for each in placements]

        def key(unit: tuple[Candidate | None, Placement]) -> tuple[object, ...]:
            candidate, placement = unit
            worst = tuple(-part for part in self.serving[placement.path].parts)
            rank = 0 if candidate is None else candidate.rank
            return candidate is None, worst, rank, placement.created_at, placement.name

        found.sort(key=key)
        shares = [
            share_of_unit(candidate)._replace(rank=index)
            for index, (candidate, _) in enumerate(found)
            if candidate is not None
        ]
        first = [share.rank for share in seeds(shares, self.policy.distribution)]
        return [found[index][1] for index in (*first, *(index for index in range(len(found)) if index not in first))]

    def _replicas(self, place: ClusterSubset) -> int:
        return sum(placement.replicas for placement in self.places.get(place, ()))

    def _layer(self, row: Iterable[ClusterSubset], slots: Mapping[ClusterSubset, Candidate]) -> Layer:
        """Make a layer of the replicas of a subset that can be taken back."""
        room = self.room if self.policy.distribution.traits.shrinks_by_room else {}
        shares = list[ClusterShare]()
        for rank, slot in enumerate(row, start=1):
            serves = add_up(self.serving[placement.path] for placement in self.places[slot])
            share = share_of_slot(slots, slot, rank, most=serves.all, room=room.get(slot, 0))
            # What the policy no longer names serves less than all else, by grades of its own.
            before = () if slot in slots else (0,) * len(serves)
            shares.append(share._replace(serving=(*before, *serves)))
        return Layer(shares=tuple(shares))


def _lower(layers: Sequence[Layer], surplus: int, distribution: Distribution) -> list[Layer]:
    """Take replicas above the maximums off the shares of the subsets, as far as the surplus goes."""
    has = [sum(share.most for share in layer.shares) for layer in layers]
    within = sum(n if layer.most is None else min(n, layer.most) for n, layer in zip(has, layers, strict=True))
    if within == sum(has):
        return list(layers)
    stays = give_back(max(sum(has) - surplus, within), layers, distribution)
    return [
        replace(
            layer,
            shares=tuple(
                share._replace(most=n, capacity=share.capacity - share.most + n)
                for share, n in zip(layer.shares, kept, strict=True)
            ),
        )
        for layer, kept in zip(layers, stays, strict=True)
    ]


def _leave(placements: Sequence[tuple[Placement, Serving]], stays: int) -> Iterator[GivenUp]:
    """Yield the placements of one cluster that lose replicas when a number stays, the newest first."""
    oldest = sorted(placements, key=lambda pair: (pair[0].created_at, pair[0].name))
    kept = [0] * len(oldest)
    for grade in range(len(Serving._fields)):
        for index, (_, served) in enumerate(oldest):
            more = min(stays, served[grade] - kept[index])
            kept[index] += more
            stays -= more
    for (placement, served), rest in reversed(list(zip(oldest, kept, strict=True))):
        if rest < placement.replicas:
            yield GivenUp(placement, rest, describe_given_up(served, rest))
