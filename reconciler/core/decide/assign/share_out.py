"""What a workload's clusters get of it and give back, by the distribution of its policy.

Makes targets of clusters for `core.distribution`, and shares and refusals of what that answers. Where a policy only
fills one cluster after the other, a cluster that is not needed is never looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.core.decide.assign import replicas_by_subset, subset_order
from reconciler.core.decide.assign.share import Share, ShareOut, beyond_gprs, newest_first
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder, Offer
from reconciler.core.decide.distribution import ClusterShare, Division, give_back, returns, share_out
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy, StrategyName
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count, listed


def share_out_replicas(
    finder: CandidateFinder, template: WorkloadTemplate, policy: BurstPolicy, shape: ReplicaShape, wanted: int
) -> ShareOut:
    """Share out `wanted` replicas more over the clusters of a workload. What it has stays where it is."""
    refusals: list[Refusal] = []
    if policy.spread is not None:
        return replicas_by_subset.share_out_by_subset(finder, template, policy, shape, wanted)
    if policy.fills_in_order:
        offers = finder.offers(template, policy, shape, wanted, refusals)
        return ShareOut(shares=tuple(_in_order(wanted, offers)), refusals=tuple(refusals))
    found: dict[ClusterName, Offer] = {}
    for candidate in finder.order(template.workload):
        answer = finder.assess(template, policy, shape, candidate, MOST)
        if isinstance(answer, Refusal):
            refusals.append(answer)
        else:
            found[candidate.cluster] = answer
    while True:
        division, shares = _divided(finder, template, policy, found, wanted)
        held = finder.held(template.workload)
        new = (share for share in shares if not held[share.offer.candidate.cluster])
        beyond = beyond_gprs(finder, template.workspace, new)
        if beyond is None:
            refusals += _left_out(division, policy)
            return ShareOut(shares=shares, refusals=tuple(refusals), lacking=_lacking(division, policy))
        refusals.append(beyond[1])
        del found[beyond[1].cluster]


def _divided(
    finder: CandidateFinder,
    template: WorkloadTemplate,
    policy: BurstPolicy,
    found: Mapping[ClusterName, Offer],
    wanted: int,
) -> tuple[Division, tuple[Share, ...]]:
    """Share out over the clusters that offer something, and over what stands."""
    held, candidates = finder.held(template.workload), finder.order(template.workload)
    targets = [_target(candidate, held[candidate.cluster], found.get(candidate.cluster)) for candidate in candidates]
    division = share_out(held.total() + wanted, [*targets, *_others(candidates, held)], policy.distribution)
    shares = tuple(
        Share(
            offer=found[candidate.cluster],
            replicas=division.counts[candidate.cluster] - held[candidate.cluster],
            because=spoken_for(division, candidate, policy),
        )
        for candidate in candidates
        if candidate.cluster in division.because
    )
    return division, shares


def given_back(
    inputs: PassInput, working_plan: WorkingPlan, surplus: int, placements: Sequence[Placement]
) -> tuple[tuple[Placement, int], ...]:
    """Say which of a workload's placements give replicas back and how many each keeps: the reverse of sharing out.

    The last cluster in the order is told first, and within it the newest placement gives back first; a cluster that is
    no longer in the order gives back before all others.
    """
    workload = placements[0].workload
    policy, candidates = inputs.desired.policies[workload], inputs.reach.order(workload)
    if policy.spread is not None:
        return subset_order.given_back(inputs, working_plan, surplus, placements, policy.spread)
    held = Counter[ClusterName]()
    for placement in placements:
        held[placement.cluster] += placement.replicas
    room = _rooms(inputs, working_plan, placements) if policy.distribution.strategy is StrategyName.BALANCED else {}
    targets = [
        target_of(
            candidate, most=held[candidate.cluster], capacity=held[candidate.cluster] + room.get(candidate.cluster, 0)
        )
        for candidate in candidates
        if candidate.cluster in held
    ]
    targets += _others(candidates, held, stay=False)
    stays = give_back(max(0, held.total() - surplus), targets, policy.distribution)
    last_first = sorted(targets, key=lambda target: target.rank, reverse=True)
    return tuple(
        found for target in last_first for found in newest_first(_on(placements, target.cluster), stays[target.cluster])
    )


def with_reason(detail: str, policy: BurstPolicy) -> str:
    """Add to why replicas come home which of them do first; in order, that needs no words."""
    if policy.spread is not None:
        return f"{detail}; {subset_order.RETURNS}"
    return detail if policy.fills_in_order else f"{detail}; {returns(policy.distribution)}"


def describe_distribution(policy: BurstPolicy) -> str:
    """Say how a policy shares out, in one line; nothing where it fills one cluster after the other."""
    if policy.spread is not None:
        return subset_order.describe_subset_order(policy.spread)
    if policy.fills_in_order:
        return ""
    distribution = policy.distribution
    said = [str(distribution.strategy)]
    said += [f"at least {count(least, 'cluster')}"] if (least := distribution.min_clusters) else []
    said += [f"at most {count(most, 'cluster')}"] if (most := distribution.max_clusters) is not None else []
    said += [f"at least {values(least, policy)}"] if (least := distribution.min_groups) else []
    said += [f"at most {values(most, policy)}"] if (most := distribution.max_groups) is not None else []
    return ", ".join(said)


def target_of(candidate: Candidate, *, most: int, capacity: int, keeps: int = 0) -> ClusterShare:
    """Make a target of a cluster in a workload's order, with all that its policy says of it."""
    return ClusterShare(
        cluster=candidate.cluster,
        rank=candidate.rank,
        keeps=keeps,
        most=most,
        capacity=capacity,
        least=candidate.least,
        weight=candidate.weight,
        group=candidate.group,
    )


def spoken_for(division: Division, candidate: Candidate, policy: BurstPolicy) -> str:
    """Say what spoke for a cluster; its place in the order alone needs no words."""
    plain = (
        policy.distribution.strategy is StrategyName.ORDERED and division.counts[candidate.cluster] > candidate.least
    )
    return "" if plain else division.because[candidate.cluster]


def values(number: int, policy: BurstPolicy) -> str:
    """Call so many values of the label that a policy spreads over."""
    return f"{count(number, 'value')} of {policy.distribution.spread_by}"


def _in_order(wanted: int, offers: Iterable[Offer]) -> Iterator[Share]:
    """Fill the clusters one after the other, each as far as it goes."""
    if wanted <= 0:
        return
    for offer in offers:
        share = min(wanted, offer.replicas)
        if share:
            yield Share(offer=offer, replicas=share)
            wanted -= share
        if not wanted:
            return


def _target(candidate: Candidate, has: int, offer: Offer | None) -> ClusterShare:
    most = has + (0 if offer is None else offer.replicas)
    return target_of(candidate, keeps=has, most=most, capacity=most)


def _others(
    candidates: Sequence[Candidate], held: Mapping[ClusterName, int], *, stay: bool = True
) -> list[ClusterShare]:
    """Make targets of the clusters that have some and are not in the order any more: they come last and get nothing."""
    named = {candidate.cluster for candidate in candidates}
    off = sorted(cluster for cluster in held if cluster not in named)
    return [
        ClusterShare(
            cluster=cluster,
            rank=len(candidates) + place,
            keeps=held[cluster] if stay else 0,
            most=held[cluster],
            capacity=held[cluster],
            weight=0,
        )
        for place, cluster in enumerate(off, start=1)
    ]


def _on(placements: Iterable[Placement], cluster: ClusterName) -> list[Placement]:
    return [placement for placement in placements if placement.cluster == cluster]


def _rooms(inputs: PassInput, working_plan: WorkingPlan, placements: Sequence[Placement]) -> Mapping[ClusterName, int]:
    """Count how many more each cluster would take. One that nobody sees counts as full.

    Counted anew for what stands now: what a pass hands out comes later.
    """
    finder, workload, shape = CandidateFinder(inputs, working_plan), placements[0].workload, placements[0].shape
    held = finder.held(workload)
    found = {}
    for candidate in finder.order(workload):
        if candidate.cluster in held and candidate.cluster in inputs.observed.clusters:
            room = finder.rooms.room(candidate.cluster, workload.workspace).count(shape, MOST)
            bound = room if candidate.limit is None else max(0, candidate.limit - held[candidate.cluster])
            found[candidate.cluster] = min(room, bound)
    return found


def _left_out(division: Division, policy: BurstPolicy) -> Iterator[Refusal]:
    """Say of the clusters that would take some and may not which bound they are beyond."""
    distribution = policy.distribution
    there = [cluster for cluster, replicas in sorted(division.counts.items()) if replicas]
    for target in division.left_out:
        if not target.free:
            continue
        clusters, groups = distribution.max_clusters, distribution.max_groups
        if groups is None or (clusters is not None and len(there) >= clusters):
            most, bound = count(clusters or 0, "cluster"), "maxClusters"
        else:
            most, bound = values(groups, policy), "spreadConstraint.maxGroups"
        yield Refusal(
            cluster=target.cluster,
            reason=Reason.SPREAD_LIMIT,
            message=f"policy {policy.name} spreads over {most} at most: {listed(there)}",
            remedy=f"raise spec.distribution.{bound} of policy {policy.name}",
        )


def _lacking(division: Division, policy: BurstPolicy) -> str:
    """Say which lower bound is out of reach."""
    if division.lacking is None:
        return ""
    distribution, (clusters, groups) = policy.distribution, division.lacking
    few = groups < distribution.min_groups
    bound = "spreadConstraint.minGroups" if few else "minClusters"
    least = values(distribution.min_groups, policy) if few else count(distribution.min_clusters, "cluster")
    return (
        f"policy {policy.name} spreads over {least} at least, and only {groups if few else clusters} can be used:"
        f" until then each has one replica (free or add such clusters, or lower spec.distribution.{bound})"
    )
