"""The order in which the clusters of a WorkloadSpread's subsets are filled; replicas are given back in the reverse.

Within a subset, clusters of equal preferred terms are divided over by the strategy of the policy; by default they are
filled one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from reconciler.core.decide.candidates.kind_answers import off_order_candidate, share_of
from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.spread.subset_selection import preference_weight
from reconciler.model.candidate import Candidate
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.policy import BurstPolicy
from reconciler.text.wording import sanitize

SubsetRows = tuple[tuple[ClusterSubset, ...], ...]
"""The clusters of each subset in order; the last row is of replicas in no subset."""


def slots_in_tiers(
    inputs: PassInput, workload: WorkloadId, order: Iterable[Candidate]
) -> Mapping[ClusterSubset, Candidate]:
    """Return the candidates of an order by cluster and subset; those with heavier preferred terms are filled first.

    Those of equal weight keep the tiers that they are in.
    """
    seen, clusters, policy = inputs.observed.clusters, inputs.desired.clusters, inputs.desired.policies[workload]
    slots = {candidate.key: candidate for candidate in order}
    if not any(subset.preferred for subset in policy.subsets):
        return slots
    levels: dict[ClusterSubset, tuple[int, int]] = {}
    for slot, candidate in slots.items():
        subset, weight = policy.subset(candidate.subset), 0
        if subset is not None and subset.preferred:
            weight = preference_weight(subset, clusters[candidate.cluster], seen.get(candidate.cluster))
        levels[slot] = -weight, candidate.tier
    # What is in no order any more has tier 0, which is the last one.
    tiers = {level: -number for number, level in enumerate(sorted({*levels.values()}, reverse=True))}
    return {slot: candidate._replace(tier=tiers[levels[slot]]) for slot, candidate in slots.items()}


def share_of_slot(
    slots: Mapping[ClusterSubset, Candidate], slot: ClusterSubset, rank: int, *, keeps: int = 0, most: int, room: int
) -> ClusterShare:
    """Make the share of a slot, with its rank in its subset."""
    candidate = slots.get(slot) or off_order_candidate(slot[0])
    return share_of(candidate, most=most, capacity=most + room, keeps=keeps)._replace(rank=rank)


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
    policy: BurstPolicy,
    slots: Mapping[ClusterSubset, Candidate],
    held: Iterable[ClusterSubset],
    free: Callable[[ClusterSubset], int],
) -> SubsetRows:
    """Order the clusters of each subset: by preferred terms, by score, by free room, then by name.

    Clusters that have replicas of a subset and no longer belong to it come last in its row. The last row is of no
    subset: the policy's candidates in their order, then other clusters with replicas in none.
    """
    rows, others = [], sorted(slot for slot in held if slot not in slots)
    for subset in policy.subsets:
        own = sorted(slot for slot in slots if slot[1] == subset.name)
        own.sort(key=lambda slot: (slots[slot].tier, -slots[slot].score, -free(slot)))
        rows.append((*own, *(slot for slot in others if slot[1] == subset.name)))
    return (*rows, tuple(slot for slot in (*slots, *others) if not slot[1]))
