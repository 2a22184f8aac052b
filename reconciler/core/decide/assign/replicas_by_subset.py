"""What the clusters of a WorkloadSpread get of a workload: its subsets in order, on top of what they have or anew.

Makes layers of subsets for `core.distribution.subsets`. What runs on the primary counts for the subset that the primary
is in, and what the primary itself still has room for there is lent to nobody; nothing is ever written for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.capacity.best_fit import Wanted, fitting
from reconciler.core.decide.assign.ordinals import beside_the_first, kept_apart
from reconciler.core.decide.assign.share import Share, ShareOut, beyond_gprs
from reconciler.core.decide.assign.subset_limits import over
from reconciler.core.decide.assign.subset_order import Sites, rows_of
from reconciler.core.decide.assign.subset_quota import SubsetQuota, quotas
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder, Offer
from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.decide.distribution.subsets import Counts, Layer, minimums, share_out
from reconciler.core.fleet.object_owners import describe_object as called
from reconciler.core.spread.matching import narrowed
from reconciler.core.spread.placement_subset import Site
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.model.workload_spread import Subset, WorkloadSpread
from reconciler.text.wording import plain


def share_out_by_subset(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    wanted: int,
    *,
    without: Site | None = None,
    ended: int = 0,
) -> ShareOut:
    """Share out `wanted` replicas more over the subsets of a workload. What it has stays where it is.

    `without` gets none of them, and so many placements as have `ended` make room for their GPRs.
    """
    return _Round(
        finder=finder, template=template, policy=policy, shape=shape, wanted=wanted, without=without, ended=ended
    ).share()


@dataclass(frozen=True, slots=True, kw_only=True)
class Anew:
    """How all that a workload has elsewhere is shared out as if none of it stood.

    `keeps` says how much of what a site has may stay, by why it gets nothing new (None where it may), and `ended` which
    of so many `placements` end where sites come to have so much.
    """

    keeps: Callable[[Site, Refusal | None], int]
    ended: Callable[[Mapping[Site, int]], int]
    placements: int


def spread_anew(
    finder: CandidateFinder, template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape, anew: Anew
) -> ShareOut:
    """Share out over the subsets of a workload what it has elsewhere. What runs on its primary stays there."""
    wanted = finder.seated(template.workload, policy).total()
    return _Round(finder=finder, template=template, policy=policy, shape=shape, wanted=wanted, anew=anew).share()


_BEYOND = SubsetQuota(subset=Subset(name=""), most=None, least=0, home=0, at_home=False)
"""What may be in no subset: as much as the policy's own clusters take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One sharing out of a workload's missing replicas."""

    finder: CandidateFinder
    template: WorkloadTemplate
    policy: BurstPolicy
    shape: ReplicaShape
    wanted: int
    without: Site | None = None
    ended: int = 0
    anew: Anew | None = None

    def share(self) -> ShareOut:
        """Share out, and begin again with less wherever what fits alone does not fit together."""
        workload, finder, share_out_by_subset = self.template.workload, self.finder, self.policy.spread
        if share_out_by_subset is None:
            raise AssertionError(f"{workload} has no spread")
        held, refusals = finder.seated(workload, self.policy), list[Refusal]()
        found = (*quotas(finder.inputs, workload, share_out_by_subset, held.total()), _BEYOND)
        offers = self._alone(self._offers(refusals), held, found, refusals)
        stays = self._stays(held, refusals)
        rows = rows_of(finder, workload, share_out_by_subset, held, partial(self._room, offers, held))
        barred = tuple(
            beside_the_first(finder, workload, share_out_by_subset, rows=rows, found=found, held=held, offers=offers)
        )
        for refusal in barred:
            del offers[refusal.cluster, refusal.subset]
            refusals.append(refusal)
        homes = self._homes(found)
        while True:
            layers = [
                self._layer(row, quota, stays, offers, home)
                for row, quota, home in zip(rows, found, homes, strict=True)
            ]
            total = sum(target.keeps for layer in layers for target in layer.targets) + self.wanted
            counts = share_out(total, layers)
            shares = tuple(self._shares(rows, found, counts, held, offers))
            first = {place: gain for place, gain, _, _ in _gained(rows, found, minimums(total, layers), held)}
            squeezed = self._squeezed(shares, first)
            if squeezed is not None:
                place, fits = squeezed
                offers[place] = replace(offers[place], replicas=fits)
                continue
            comes_to = {place: replicas for place, replicas, _, _ in _counted(rows, found, counts)}
            ended = self.ended if self.anew is None else self.anew.ended(comes_to)
            new = [one for one in shares if not held[one.offer.candidate.site]]
            beyond = beyond_gprs(finder, workload.workspace, new, ended=ended)
            if beyond is not None:
                share, refusal = beyond
                refusals.append(replace(refusal, subset=share.offer.candidate.subset))
                del offers[share.offer.candidate.site]
                continue
            refusals += self._full(share_out_by_subset, rows, found, counts, held=held, offers=offers)
            home = sum(row[0] - quota.home for row, quota in zip(counts, found, strict=True) if quota.at_home)
            return ShareOut(shares=shares, refusals=tuple(refusals), home=home, counts=comes_to)

    def _stays(self, held: Mapping[Site, int], refusals: Sequence[Refusal]) -> Mapping[Site, int]:
        """Say how much of what each site has may stay there."""
        if self.anew is None:
            return held
        why = {(one.cluster, one.subset): one for one in refusals}
        return {place: self.anew.keeps(place, why.get(place)) for place in held}

    def _room(self, offers: Mapping[Site, Offer], held: Mapping[Site, int], place: Site) -> int:
        """Count what a site has room for, by which the roomiest is found: anew with what its cluster has of it all."""
        more = offers[place].replicas if place in offers else 0
        return more if self.anew is None else more + sum(has for other, has in held.items() if other[0] == place[0])

    def _layer(
        self,
        row: Sequence[Site],
        quota: SubsetQuota,
        stays: Mapping[Site, int],
        offers: Mapping[Site, Offer],
        home: ClusterShare | None,
    ) -> Layer:
        """Make a layer of a subset, the primary first. Anew no cluster keeps anything for certain."""
        targets = [home] if home is not None else []
        for rank, place in enumerate(row, start=1):
            has = stays.get(place, 0)
            most = has + (offers[place].replicas if place in offers else 0)
            keeps = has if self.anew is None else 0
            targets.append(ClusterShare(cluster=place[0], rank=rank, keeps=keeps, most=most, capacity=most))
        return Layer(targets=tuple(targets), most=quota.most, least=quota.least)

    def _offers(self, refusals: list[Refusal]) -> dict[Site, Offer]:
        """Ask each cluster of each subset what it would take, were it the only one."""
        offers: dict[Site, Offer] = {}
        # What ends makes room for as many GPRs; how many that are is known only when it is shared out.
        more = -self.ended if self.anew is None else -self.anew.placements
        for candidate in self.finder.order(self.template.workload):
            if candidate.site == self.without:
                continue
            answer = self.finder.assess(self.template, self.policy, self.shape, candidate, MOST, more=more)
            if isinstance(answer, Refusal):
                refusals.append(answer)
            else:
                offers[candidate.site] = answer
        return kept_apart(self.finder, self.template.workload, self.policy.spread, offers, refusals)

    def _alone(
        self, offers: dict[Site, Offer], held: Mapping[Site, int], found: Sequence[SubsetQuota], refusals: list[Refusal]
    ) -> dict[Site, Offer]:
        """Leave one subset on a cluster where what two would make there has the same names."""
        things = self.finder.inputs.reach.makers.things(self.template.workload)
        if not things:
            return offers
        closed = {quota.subset.name for quota in found if quota.lent == 0}
        there: dict[ClusterName, set[str]] = {}
        for cluster, subset in held:
            there.setdefault(cluster, set()).add(subset)
        left: dict[Site, Offer] = {}
        for (cluster, subset), offer in offers.items():
            if subset in closed or subset in there.setdefault(cluster, {subset}):
                left[cluster, subset] = offer
                continue
            others = " and ".join(f"subset {plain(one)}" if one else "no subset" for one in sorted(there[cluster]))
            refusals.append(
                Refusal(
                    cluster=cluster,
                    subset=subset,
                    reason=Reason.TAKEN,
                    message=f"{called(things[0])} is made there for {others}",
                    remedy="put {{ placement.subset }} into the names of all that the template makes",
                )
            )
        return left

    def _homes(self, found: Sequence[SubsetQuota]) -> list[ClusterShare | None]:
        """Make targets of the primary: what runs there, and what its own scheduler still has room for."""
        inputs, workspace = self.finder.inputs, self.template.workspace
        demand, primary = inputs.demands.get(self.template.workload), inputs.desired.workspaces[workspace].primary
        homes: list[ClusterShare | None] = []
        waiting = max(0, demand.wanted - demand.running) if isinstance(demand, Demand) and self.anew is None else 0
        room = self.finder.rooms.room(primary, workspace).copy() if primary in inputs.observed.clusters else None
        for quota in found:
            if not quota.at_home:
                homes.append(None)
                continue
            shape = narrowed(self.shape, quota.subset, inputs.desired.clusters[primary])
            left = waiting if quota.most is None else min(waiting, max(0, quota.most - quota.home))
            more = room.count(shape, left) if room is not None and left else 0
            if room is not None and more:
                room.take(shape, more)
            waiting -= more
            most = quota.home + more
            homes.append(ClusterShare(cluster=primary, rank=0, keeps=quota.home, most=most, capacity=most))
        return homes

    def _shares(
        self,
        rows: Sites,
        found: Sequence[SubsetQuota],
        counts: Counts,
        held: Mapping[Site, int],
        offers: Mapping[Site, Offer],
    ) -> Iterator[Share]:
        """Yield what each cluster is given, in order."""
        for place, gain, has, quota in _gained(rows, found, counts, held):
            bounds = [f"at most {quota.most}"] if quota.most is not None else []
            bounds += [f"at least {quota.least}"] if quota.least else []
            because = f"subset {plain(quota.subset.name)} then has {has} of {' and '.join(bounds)}" if bounds else ""
            yield Share(offer=offers[place], replicas=gain, because=because)

    def _squeezed(self, shares: Sequence[Share], first: Mapping[Site, int]) -> tuple[Site, int] | None:
        """Find a subset's part of a cluster that holds less than it was given beside the cluster's others.

        `first` are the minimums, which have their room before the rest.
        """
        several = Counter(share.offer.candidate.cluster for share in shares)
        for cluster in sorted(name for name, number in several.items() if number > 1):
            room = self.finder.rooms.room(cluster, self.template.workspace)
            here = [share for share in shares if share.offer.candidate.cluster == cluster]
            least = {
                share.offer.candidate.site: min(share.replicas, first.get(share.offer.candidate.site, 0))
                for share in here
            }
            pieces = [(share, least[share.offer.candidate.site]) for share in here]
            pieces += [(share, share.replicas - least[share.offer.candidate.site]) for share in here]
            given: dict[Site, Wanted] = {}
            for share, piece in pieces:
                place, shape = share.offer.candidate.site, share.offer.shape
                has = given[place][1] if place in given else 0
                beside = [one for other, one in given.items() if other != place]
                fits = fitting(room, beside, shape, has + piece) if piece else has
                if fits < has + piece:
                    return place, fits
                if fits:
                    given[place] = shape, fits
        return None

    def _full(
        self,
        share_out_by_subset: WorkloadSpread,
        rows: Sites,
        found: Sequence[SubsetQuota],
        counts: Counts,
        *,
        held: Mapping[Site, int],
        offers: Mapping[Site, Offer],
    ) -> Iterator[Refusal]:
        """Say of clusters that would take more that their subset may not hold more."""
        for row, quota, has in zip(rows, found, counts, strict=True):
            if quota.most is not None and sum(has) >= quota.most:
                before = quota.home + sum(held.get(place, 0) for place in row)
                yield from (
                    over(share_out_by_subset, quota, sum(has), place, before=before) for place in row if place in offers
                )


def _counted(rows: Sites, found: Sequence[SubsetQuota], counts: Counts) -> Iterator[tuple[Site, int, int, SubsetQuota]]:
    """Yield what each site comes to have, and what its whole subset does."""
    for row, quota, has in zip(rows, found, counts, strict=True):
        elsewhere = has[1:] if quota.at_home else has
        for place, comes_to in zip(row, elsewhere, strict=True):
            yield place, comes_to, sum(has), quota


def _gained(
    rows: Sites, found: Sequence[SubsetQuota], counts: Counts, held: Mapping[Site, int]
) -> Iterator[tuple[Site, int, int, SubsetQuota]]:
    """Yield what gets more, how many, and what its whole subset comes to."""
    for place, comes_to, has, quota in _counted(rows, found, counts):
        if comes_to > held.get(place, 0):
            yield place, comes_to - held.get(place, 0), has, quota
