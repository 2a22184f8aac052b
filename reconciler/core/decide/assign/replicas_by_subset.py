"""Replicas assigned to the subsets of a WorkloadSpread: on top of what their clusters have, or as if none of it stood.

Makes the layers that `core.decide.distribution.subsets` divides over. Replicas on the primary count for the subset that
it is in, and missing replicas that it still has room for there burst nowhere; nothing is ever written for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from operator import attrgetter

from reconciler.core.capacity.best_fit import count_beside, tightest_first
from reconciler.core.decide.assign.assignment import Assignment, Released, refuse_beyond_gpr_limit
from reconciler.core.decide.assign.ordinals import limit_to_free_ordinals, refuse_second_clusters
from reconciler.core.decide.assign.subset_order import SubsetRows, rows_of, share_of_slot, slots_in_tiers
from reconciler.core.decide.assign.subset_quota import SubsetQuota, quotas, refuse_over_quota
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.decide.distribution.subsets import Counts, Layer, minimums, share_out
from reconciler.core.fleet.object_owners import describe_object
from reconciler.core.spread.subset_selection import narrow_shape
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import sanitize


def assign_by_subset(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    shape: ReplicaShape,
    missing: int,
    *,
    released: Released,
) -> Assignment:
    """Assign missing or released replicas to the subsets of a workload. Others stay where they are."""
    return _Round(
        finder=finder, template=template, policy=policy, shape=shape, missing=missing, released=released
    ).assign()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """An assignment of a workload's missing replicas."""

    finder: CandidateFinder
    template: WorkloadTemplate
    policy: BurstPolicy
    shape: ReplicaShape
    missing: int
    released: Released

    def assign(self) -> Assignment:
        """Assign, and begin again with less wherever replicas that fit alone do not fit together."""
        workload, finder = self.template.workload, self.finder
        held, refusals = finder.held(workload), list[Refusal]()
        subsets = quotas(finder.inputs, workload, held.total())
        for place in self.released.left:
            held[place] -= self.released.places[place]
        able = self._alone(self._able(refusals), held, subsets, refusals)
        stays = self._stays(held, refusals)
        slots = slots_in_tiers(finder.inputs, workload, finder.order(workload))
        rows = rows_of(self.policy, slots, held, partial(self._room, able, held))
        barred = tuple(refuse_second_clusters(finder, workload, rows=rows, held=held, able=able))
        for refusal in barred:
            del able[refusal.cluster, refusal.subset]
            refusals.append(refusal)
        homes, strategy = self._homes(subsets), self.policy.distribution.strategy
        while True:
            layers = [
                Layer(
                    shares=(*home, *starmap(partial(self._share, slots, stays, able), enumerate(row, start=1))),
                    most=quota.most,
                    least=quota.least,
                )
                for row, quota, home in zip(rows, subsets, homes, strict=True)
            ]
            total = sum(share.keeps for layer in layers for share in layer.shares) + self.missing
            counts = share_out(total, layers, strategy)
            chosen = tuple(self._candidates_with_replicas(rows, subsets, counts, held, able))
            # 1. The subsets of one cluster do not fit there together: this one gets what fits beside the others.
            first = {
                place: gain for place, gain, _, _ in _gains(rows, subsets, minimums(total, layers, strategy), held)
            }
            squeezed = self._find_overcommitted(chosen, first)
            if squeezed is not None:
                place, fits = squeezed
                able[place] = able[place]._replace(room=fits)
                continue
            # 2. A placement would be a GPR too many for its workspace.
            comes_to = {place: replicas for place, replicas, _, _ in _totals(rows, subsets, counts)}
            new = [candidate for candidate in chosen if not held[candidate.key]]
            beyond = refuse_beyond_gpr_limit(finder, workload.workspace, new, ended=self.released.ended(comes_to))
            if beyond is not None:
                candidate, refusal = beyond
                refusals.append(replace(refusal, subset=candidate.subset))
                del able[candidate.key]
                continue
            # 3. All of it fits.
            refusals += self._full(rows, subsets, counts, held=held, able=able)
            home = sum(row[0] - quota.home for row, quota in zip(counts, subsets, strict=True) if quota.at_home)
            return Assignment(chosen=chosen, refusals=tuple(refusals), home=home, counts=comes_to)

    def _stays(self, held: Mapping[ClusterSubset, int], refusals: Sequence[Refusal]) -> Mapping[ClusterSubset, int]:
        """Count the replicas that may stay on each cluster, by subset."""
        returns = self.released.returns
        if returns is None:
            return held
        reasons = {(refusal.cluster, refusal.subset): refusal for refusal in refusals}
        return {place: returns.keeps(place, reasons.get(place)) for place in held}

    def _room(
        self, able: Mapping[ClusterSubset, Candidate], held: Mapping[ClusterSubset, int], place: ClusterSubset
    ) -> int:
        """Count the replicas that a cluster has room for, by which the roomiest is tried first.

        Those that may go back to that cluster count as room.
        """
        room = able[place].room if place in able else 0
        return (
            room
            if self.released.returns is None
            else room + sum(has for other, has in held.items() if other[0] == place[0])
        )

    def _share(
        self,
        slots: Mapping[ClusterSubset, Candidate],
        stays: Mapping[ClusterSubset, int],
        able: Mapping[ClusterSubset, Candidate],
        rank: int,
        place: ClusterSubset,
    ) -> ClusterShare:
        """Make the share of a cluster; what may go back to it is room, and nothing that it keeps for certain."""
        has = stays.get(place, 0)
        most = has + (able[place].room if place in able else 0)
        keeps = has if self.released.returns is None else 0
        return share_of_slot(slots, place, rank, keeps=keeps, most=most, room=0)

    def _able(self, refusals: list[Refusal]) -> dict[ClusterSubset, Candidate]:
        """Assess each cluster of each subset as if it were the only one."""
        able: dict[ClusterSubset, Candidate] = {}
        # Placements that end make room for as many GPRs; their number is known only once replicas are assigned.
        more_gprs = -self.released.ends
        for candidate in self.finder.order(self.template.workload):
            if candidate.key in self.released.left:
                continue
            answer = self.released.closed.get(candidate.key) or self.finder.assess(
                self.template, self.policy, self.shape, candidate, MOST, more_gprs=more_gprs
            )
            if isinstance(answer, Refusal):
                refusals.append(answer)
            else:
                able[candidate.key] = answer
        return limit_to_free_ordinals(self.finder, self.template.workload, able, refusals)

    def _alone(
        self,
        able: dict[ClusterSubset, Candidate],
        held: Mapping[ClusterSubset, int],
        subsets: Sequence[SubsetQuota],
        refusals: list[Refusal],
    ) -> dict[ClusterSubset, Candidate]:
        """Leave one subset on a cluster where two of them would make objects of the same names there."""
        objects = self.finder.inputs.reach.makers.objects_of(self.template.workload)
        if not objects:
            return able
        closed = {quota.subset.name for quota in subsets if quota.elsewhere == 0}
        occupied: dict[ClusterName, set[str]] = {}
        for cluster, subset in held:
            occupied.setdefault(cluster, set()).add(subset)
        left: dict[ClusterSubset, Candidate] = {}
        for (cluster, subset), candidate in able.items():
            if subset in closed or subset in occupied.setdefault(cluster, {subset}):
                left[cluster, subset] = candidate
                continue
            names = (f"subset {sanitize(name)}" if name else "no subset" for name in sorted(occupied[cluster]))
            refusals.append(
                Refusal(
                    cluster=cluster,
                    subset=subset,
                    reason=Reason.TAKEN,
                    message=f"{describe_object(objects[0])} is made there for {' and '.join(names)}",
                    remedy="put {{ placement.subset }} into the names of all that the template makes",
                )
            )
        return left

    def _homes(self, subsets: Sequence[SubsetQuota]) -> list[tuple[ClusterShare, ...]]:
        """Make the primary's share of each subset: the replicas that run there, and those it still has room for.

        It comes before all others. A subset that the primary is not in has none.
        """
        inputs, workspace = self.finder.inputs, self.template.workspace
        demand, primary = inputs.demands.get(self.template.workload), inputs.desired.workspaces[workspace].primary
        homes = list[tuple[ClusterShare, ...]]()
        waiting = (
            max(0, demand.wanted - demand.running)
            if isinstance(demand, Demand) and self.released.returns is None
            else 0
        )
        room = self.finder.capacity.room(primary, workspace).copy() if primary in inputs.observed.clusters else None
        for quota in subsets:
            if not quota.at_home:
                homes.append(())
                continue
            shape = narrow_shape(self.shape, quota.subset, inputs.desired.clusters[primary])
            left = waiting if quota.most is None else min(waiting, max(0, quota.most - quota.home))
            fits = room.count(shape, left) if room is not None and left else 0
            if room is not None and fits:
                room.take(shape, fits)
            waiting -= fits
            most = quota.home + fits
            home = ClusterShare(cluster=primary, rank=0, keeps=quota.home, most=most, capacity=most)
            homes.append((home._replace(tier=-MOST),))
        return homes

    def _candidates_with_replicas(
        self,
        rows: SubsetRows,
        subsets: Sequence[SubsetQuota],
        counts: Counts,
        held: Mapping[ClusterSubset, int],
        able: Mapping[ClusterSubset, Candidate],
    ) -> Iterator[Candidate]:
        """Yield the candidates that get replicas, in order, with the words that speak for them."""
        for place, gain, has, quota in _gains(rows, subsets, counts, held):
            bounds = [f"at most {quota.most}"] if quota.most is not None else []
            bounds += [f"at least {quota.least}"] if quota.least else []
            name, distribution = sanitize(quota.subset.name), self.policy.distribution
            words = [f"subset {name} then has {has} of {' and '.join(bounds)}"] if bounds else []
            if not distribution.traits.fills_in_order:
                words.append(f"{distribution.strategy} within {f'subset {name}' if name else 'no subset'}")
            yield able[place]._replace(replicas=gain, because=", ".join(words))

    def _find_overcommitted(
        self, chosen: Sequence[Candidate], first: Mapping[ClusterSubset, int]
    ) -> tuple[ClusterSubset, int] | None:
        """Find a candidate with less room than it is given beside the other subsets of its cluster, and that room.

        `first` are the minimums, which have their room before the rest.
        """
        several = Counter(candidate.cluster for candidate in chosen)
        for cluster in sorted(name for name, number in several.items() if number > 1):
            room = self.finder.capacity.room(cluster, self.template.workspace)
            candidates = [candidate for candidate in chosen if candidate.cluster == cluster]
            least = {candidate.key: min(candidate.replicas, first.get(candidate.key, 0)) for candidate in candidates}
            pieces = [(candidate, least[candidate.key]) for candidate in candidates]
            pieces += [(candidate, candidate.replicas - least[candidate.key]) for candidate in candidates]
            # In the order in which they are handed their room.
            in_order = tightest_first(room, candidates, attrgetter("shape"))
            shares = [(candidate.shape, 0) for candidate in in_order]
            for candidate, piece in pieces:
                index = in_order.index(candidate)
                wanted = shares[index][1] + piece
                fits = count_beside(room, shares, index, wanted)
                if fits < wanted:
                    return candidate.key, fits
                shares[index] = candidate.shape, fits
        return None

    def _full(
        self,
        rows: SubsetRows,
        subsets: Sequence[SubsetQuota],
        counts: Counts,
        *,
        held: Mapping[ClusterSubset, int],
        able: Mapping[ClusterSubset, Candidate],
    ) -> Iterator[Refusal]:
        """Refuse the clusters that have room for more, since their subset may hold no more."""
        for row, quota, has in zip(rows, subsets, counts, strict=True):
            if quota.most is not None and sum(has) >= quota.most:
                before = quota.home + sum(held.get(place, 0) for place in row)
                yield from (
                    refuse_over_quota(self.policy, quota, sum(has), place, before=before)
                    for place in row
                    if place in able
                )


def _totals(
    rows: SubsetRows, subsets: Sequence[SubsetQuota], counts: Counts
) -> Iterator[tuple[ClusterSubset, int, int, SubsetQuota]]:
    """Yield the replicas that each cluster comes to have, those of its whole subset, and the quota of that."""
    for row, quota, has in zip(rows, subsets, counts, strict=True):
        others = has[1:] if quota.at_home else has
        for place, comes_to in zip(row, others, strict=True):
            yield place, comes_to, sum(has), quota


def _gains(
    rows: SubsetRows, subsets: Sequence[SubsetQuota], counts: Counts, held: Mapping[ClusterSubset, int]
) -> Iterator[tuple[ClusterSubset, int, int, SubsetQuota]]:
    """Yield the replicas that each cluster gains, those of its whole subset, and the quota of that."""
    for place, comes_to, has, quota in _totals(rows, subsets, counts):
        if comes_to > held.get(place, 0):
            yield place, comes_to - held.get(place, 0), has, quota
