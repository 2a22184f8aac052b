"""The order in which the clusters of a WorkloadSpread's subsets are filled; replicas are given back in the reverse.

Within a subset, clusters of equal preferred terms are divided over by the strategy of the policy; by default they are
filled one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.spread.subset_selection import preference_weight
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.policy import BurstPolicy
from reconciler.text.wording import sanitize

SubsetRows = tuple[tuple[ClusterSubset, ...], ...]
"""The clusters of each subset in order; the last row is of replicas in no subset."""


class SubsetPlace(NamedTuple):
    """What decides the share of a subset that one of its clusters gets."""

    # Clusters with heavier preferred terms are in a lower tier, and are filled first.
    tier: int
    # For the Weighted strategy; with 0 it gets no replicas.
    weight: int = 1

    def share(self, share: ClusterShare) -> ClusterShare:
        """Return a share of new replicas."""
        return share._replace(tier=self.tier, weight=self.weight)

    def held(self, share: ClusterShare) -> ClusterShare:
        """Return a share of replicas that can be given back: all of them, whatever its weight."""
        return share._replace(tier=self.tier if self.weight else MOST, weight=self.weight or 1)


NOT_IN_SUBSET = SubsetPlace(tier=MOST)
"""A cluster that has replicas of a subset and no longer belongs to it: it comes last."""


def subset_places(finder: CandidateFinder, workload: WorkloadId) -> Mapping[ClusterSubset, SubsetPlace]:
    """Return the clusters of each subset, and those of the policy that are in none."""
    seen, clusters = finder.inputs.observed.clusters, finder.inputs.desired.clusters
    policy, places = finder.inputs.desired.policies[workload], {}
    for candidate in finder.order(workload):
        subset, tier = policy.subset(candidate.subset), 0
        if subset is not None and subset.preferred:
            tier = -preference_weight(subset, clusters[candidate.cluster], seen.get(candidate.cluster))
        places[candidate.key] = SubsetPlace(tier=tier, weight=candidate.weight)
    return places


def describe_subset_order(policy: BurstPolicy) -> str:
    """Describe the subsets of a policy with their bounds, and the strategy within each, in one line."""
    words = []
    for subset in policy.subsets:
        bounds = [f"at least {subset.least}"] if subset.least else []
        bounds += [f"at most {subset.most}"] if subset.most is not None else []
        words.append(f"{sanitize(subset.name)} ({', '.join(bounds)})" if bounds else sanitize(subset.name))
    distribution = policy.distribution
    within = "" if distribution.traits.fills_in_order else f"; {distribution.strategy} within each"
    return f"{policy.slot_file}, in order: {', '.join(words)}{within}"


def rows_of(
    finder: CandidateFinder,
    workload: WorkloadId,
    held: Mapping[ClusterSubset, int],
    free: Callable[[ClusterSubset], int],
) -> SubsetRows:
    """Order the clusters of each subset: by preferred terms, by score, by free room, then by name.

    Clusters that have replicas of a subset and no longer belong to it come last in its row. The last row is of no
    subset: the policy's candidates in their order, then other clusters with replicas in none.
    """
    candidates = {candidate.key: candidate for candidate in finder.order(workload)}
    places, rows = subset_places(finder, workload), []
    for subset in finder.inputs.desired.policies[workload].subsets:
        own = sorted(place for place in candidates if place[1] == subset.name)
        own.sort(key=lambda place: (places[place].tier, -candidates[place].score, -free(place)))
        rows.append((*own, *sorted(place for place in held if place[1] == subset.name and place not in candidates)))
    none = [candidate.key for candidate in finder.order(workload) if not candidate.subset]
    return (*rows, (*none, *sorted(place for place in held if not place[1] and place not in candidates)))
