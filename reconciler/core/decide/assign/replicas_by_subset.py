"""Replicas assigned to the subsets of a WorkloadSpread: on top of what their clusters have, or as if none of it stood.

Makes the layers that `core.decide.distribution.subsets` divides over. Replicas on the primary count for the subset that
it is in, and missing replicas that it still has room for there burst nowhere; nothing is ever written for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from operator import attrgetter

from reconciler.core.capacity.best_fit import count_beside, tightest_first
from reconciler.core.decide.assign.assignment import Assignment, Released, assign_within_gpr_limit
from reconciler.core.decide.assign.ordinals import limit_to_free_ordinals, refuse_second_clusters
from reconciler.core.decide.assign.subset_order import rows_of, share_of_slot, slots_in_tiers
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
    subsets = _Subsets(finder, template, policy, shape, released=released)
    return assign_within_gpr_limit(finder, template.workload, partial(subsets.divide, missing), released=released)


class _Subsets:
    """The subsets that the replicas of a workload are divided over, with the clusters of each."""

    def __init__(
        self,
        finder: CandidateFinder,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        shape: ReplicaShape,
        *,
        released: Released,
    ) -> None:
        """Assess each cluster of each subset by itself."""
        self._finder, self._template, self._policy, self._shape = finder, template, policy, shape
        self._workload, self._released = template.workload, released
        # The replicas of each slot that stay there, unless they may return.
        self._held = finder.held(self._workload)
        self._quotas = quotas(finder.inputs, self._workload, self._held.total())
        for slot in released.left:
            self._held[slot] -= released.places[slot]
        self._refusals = list[Refusal]()
        # The slots that have room, and what they have.
        self._able = self._alone(self._assessed())
        self._refused = {(refusal.cluster, refusal.subset): refusal for refusal in self._refusals}
        self._slots = slots_in_tiers(finder.inputs, self._workload, finder.order(self._workload))
        self._rows = rows_of(policy, self._slots, self._held, self._room)
        for refusal in [*refuse_second_clusters(finder, self._workload, self._rows, self._held, self._able)]:
            del self._able[refusal.cluster, refusal.subset]
            self._refusals.append(refusal)
        self._homes = self._shares_at_home()

    def divide(self, missing: int, beyond: Sequence[Refusal]) -> Assignment:
        """Divide replicas, with less wherever those that fit alone do not fit together; without what is `beyond`."""
        for refusal in beyond:
            self._able.pop((refusal.cluster, refusal.subset), None)
        while True:
            layers = [
                Layer(shares=(*home, *starmap(self._share, enumerate(row, 1))), most=quota.most, least=quota.least)
                for row, quota, home in zip(self._rows, self._quotas, self._homes, strict=True)
            ]
            total = sum(share.keeps for layer in layers for share in layer.shares) + missing
            strategy = self._policy.distribution.strategy
            counts = share_out(total, layers, strategy)
            chosen = tuple(self._candidates_with_replicas(counts))
            first = {slot: gain for slot, gain, _, _ in self._gains(minimums(total, layers, strategy))}
            squeezed = self._find_overcommitted(chosen, first)
            if squeezed is None:
                break
            slot, fits = squeezed
            self._able[slot] = self._able[slot]._replace(room=fits)
        return Assignment(
            chosen=chosen,
            refusals=(*self._refusals, *beyond, *self._full(counts)),
            home=sum(row[0] - quota.home for row, quota in zip(counts, self._quotas, strict=True) if quota.at_home),
            counts={slot: replicas for slot, replicas, _, _ in self._totals(counts)},
        )

    def _room(self, slot: ClusterSubset) -> int:
        """Count the replicas that a cluster has room for, by which the roomiest is tried first.

        Those that may go back to that cluster count as room.
        """
        room = self._able[slot].room if slot in self._able else 0
        if self._released.returns is None:
            return room
        return room + sum(has for other, has in self._held.items() if other[0] == slot[0])

    def _share(self, rank: int, slot: ClusterSubset) -> ClusterShare:
        """Make the share of a cluster, with its rank in its subset."""
        has, room = self._held.get(slot, 0), self._able[slot].room if slot in self._able else 0
        keeps, most = self._released.bounds_of(slot, has, room, self._refused.get(slot))
        return share_of_slot(self._slots, slot, rank, keeps=keeps, most=most, room=0)

    def _assessed(self) -> dict[ClusterSubset, Candidate]:
        """Assess each cluster of each subset as if it were the only one."""
        able: dict[ClusterSubset, Candidate] = {}
        # Placements that end make room for as many GPRs; their number is known only once replicas are assigned.
        more_gprs = -self._released.ends
        for candidate in self._finder.order(self._workload):
            if candidate.key in self._released.left:
                continue
            answer = self._released.closed.get(candidate.key) or self._finder.assess(
                self._template, self._policy, self._shape, candidate, MOST, more_gprs=more_gprs
            )
            if isinstance(answer, Refusal):
                self._refusals.append(answer)
            else:
                able[candidate.key] = answer
        return limit_to_free_ordinals(self._finder, self._workload, able, self._refusals)

    def _alone(self, able: dict[ClusterSubset, Candidate]) -> dict[ClusterSubset, Candidate]:
        """Leave one subset on a cluster where two of them would make objects of the same names there."""
        objects = self._finder.inputs.reach.makers.objects_of(self._workload)
        if not objects:
            return able
        closed = {quota.subset.name for quota in self._quotas if quota.elsewhere == 0}
        occupied: dict[ClusterName, set[str]] = {}
        for cluster, subset in self._held:
            occupied.setdefault(cluster, set()).add(subset)
        left: dict[ClusterSubset, Candidate] = {}
        for (cluster, subset), candidate in able.items():
            if subset in closed or subset in occupied.setdefault(cluster, {subset}):
                left[cluster, subset] = candidate
                continue
            names = (f"subset {sanitize(name)}" if name else "no subset" for name in sorted(occupied[cluster]))
            self._refusals.append(
                Refusal(
                    cluster=cluster,
                    subset=subset,
                    reason=Reason.TAKEN,
                    message=f"{describe_object(objects[0])} is made there for {' and '.join(names)}",
                    remedy="put {{ placement.subset }} into the names of all that the template makes",
                )
            )
        return left

    def _shares_at_home(self) -> list[tuple[ClusterShare, ...]]:
        """Make the primary's share of each subset: the replicas that run there, and those it still has room for.

        It comes before all others. A subset that the primary is not in has none.
        """
        inputs, workspace = self._finder.inputs, self._template.workspace
        demand, primary = inputs.demands.get(self._workload), inputs.desired.workspaces[workspace].primary
        homes = list[tuple[ClusterShare, ...]]()
        returns = self._released.returns is not None
        waiting = max(0, demand.wanted - demand.running) if isinstance(demand, Demand) and not returns else 0
        room = self._finder.capacity.room(primary, workspace).copy() if primary in inputs.observed.clusters else None
        for quota in self._quotas:
            if not quota.at_home:
                homes.append(())
                continue
            shape = narrow_shape(self._shape, quota.subset, inputs.desired.clusters[primary])
            left = waiting if quota.most is None else min(waiting, max(0, quota.most - quota.home))
            fits = room.count(shape, left) if room is not None and left else 0
            if room is not None and fits:
                room.take(shape, fits)
            waiting -= fits
            most = quota.home + fits
            home = ClusterShare(cluster=primary, rank=0, keeps=quota.home, most=most, capacity=most, tier=-MOST)
            homes.append((home,))
        return homes

    def _candidates_with_replicas(self, counts: Counts) -> Iterator[Candidate]:
        """Yield the candidates that get replicas, in order, with the words that speak for them."""
        for slot, gain, has, quota in self._gains(counts):
            bounds = [f"at most {quota.most}"] if quota.most is not None else []
            bounds += [f"at least {quota.least}"] if quota.least else []
            name, distribution = sanitize(quota.subset.name), self._policy.distribution
            words = [f"subset {name} then has {has} of {' and '.join(bounds)}"] if bounds else []
            if not distribution.traits.fills_in_order:
                words.append(f"{distribution.strategy} within {f'subset {name}' if name else 'no subset'}")
            yield self._able[slot]._replace(replicas=gain, because=", ".join(words))

    def _find_overcommitted(
        self, chosen: Sequence[Candidate], first: Mapping[ClusterSubset, int]
    ) -> tuple[ClusterSubset, int] | None:
        """Find a candidate with less room than it is given beside the other subsets of its cluster, and that room.

        `first` are the minimums, which have their room before the rest.
        """
        several = Counter(candidate.cluster for candidate in chosen)
        for cluster in sorted(name for name, number in several.items() if number > 1):
            room = self._finder.capacity.room(cluster, self._template.workspace)
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

    def _full(self, counts: Counts) -> Iterator[Refusal]:
        """Refuse the clusters that have room for more, since their subset may hold no more."""
        for row, quota, has in zip(self._rows, self._quotas, counts, strict=True):
            if quota.most is None or sum(has) < quota.most:
                continue
            before = quota.home + sum(self._held.get(slot, 0) for slot in row)
            for slot in row:
                if slot in self._able:
                    yield refuse_over_quota(self._policy, quota, sum(has), slot, before=before)

    def _totals(self, counts: Counts) -> Iterator[tuple[ClusterSubset, int, int, SubsetQuota]]:
        """Yield the replicas that each cluster then has, those of its whole subset, and the quota of that."""
        for row, quota, has in zip(self._rows, self._quotas, counts, strict=True):
            for slot, replicas in zip(row, has[1:] if quota.at_home else has, strict=True):
                yield slot, replicas, sum(has), quota

    def _gains(self, counts: Counts) -> Iterator[tuple[ClusterSubset, int, int, SubsetQuota]]:
        """Yield the replicas that each cluster gains, those of its whole subset, and the quota of that."""
        for slot, replicas, has, quota in self._totals(counts):
            gain = replicas - self._held.get(slot, 0)
            if gain > 0:
                yield slot, gain, has, quota
