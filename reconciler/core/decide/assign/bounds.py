"""The bounds of a policy on clusters and values of a label, as an assignment holds them and describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.core.decide.distribution import ClusterShare, Division, share_out
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy, Distribution
from reconciler.text.wording import count, join_names


def off_order(
    candidates: Sequence[Candidate], held: Mapping[ClusterName, int], *, stay: bool = True
) -> list[ClusterShare]:
    """Make shares of clusters that have replicas and are no longer in the order: they come last and get no more."""
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


def divide_in_reach(
    total: int,
    shares: Sequence[ClusterShare],
    distribution: Distribution,
    *,
    lowered: bool,
    beyond: Sequence[ClusterShare] = (),
) -> Division:
    """Divide a total as `share_out` does; a lower bound that is out of reach may be `lowered` to what is in reach."""
    division = share_out(total, shares, distribution, beyond=beyond)
    if division.out_of_reach is None or not lowered:
        return division
    clusters, groups = division.out_of_reach
    within = replace(
        distribution,
        min_clusters=min(distribution.min_clusters, clusters),
        min_groups=min(distribution.min_groups, groups),
    )
    return replace(share_out(total, shares, within, beyond=beyond), out_of_reach=division.out_of_reach)


def describe_label_values(number: int, policy: BurstPolicy) -> str:
    """Call so many values of the label that a policy spreads over."""
    return f"{count(number, 'value')} of {policy.distribution.spread_by}"


def left_out(division: Division, policy: BurstPolicy) -> Iterator[Refusal]:
    """Refuse the clusters that have room and are beyond an upper bound of the policy, with that bound."""
    distribution = policy.distribution
    taken = [cluster for cluster, replicas in sorted(division.counts.items()) if replicas]
    for share in division.left_out:
        if not share.free:
            continue
        clusters, groups = distribution.max_clusters, distribution.max_groups
        if groups is None or (clusters is not None and len(taken) >= clusters):
            most, bound = count(clusters or 0, "cluster"), "maxClusters"
        else:
            most, bound = describe_label_values(groups, policy), "spreadConstraint.maxGroups"
        yield Refusal(
            cluster=share.cluster,
            reason=Reason.SPREAD_LIMIT,
            message=f"policy {policy.name} spreads over {most} at most: {join_names(taken)}",
            remedy=f"raise spec.distribution.{bound} of policy {policy.name}",
        )


def out_of_reach(division: Division, policy: BurstPolicy, *, each: str = "one replica") -> str:
    """Describe the lower bound of the policy that is out of reach, and what `each` has until then; empty for none."""
    if division.out_of_reach is None:
        return ""
    distribution, (clusters, groups) = policy.distribution, division.out_of_reach
    few = groups < distribution.min_groups
    bound = "spreadConstraint.minGroups" if few else "minClusters"
    least = (
        describe_label_values(distribution.min_groups, policy) if few else count(distribution.min_clusters, "cluster")
    )
    return (
        f"policy {policy.name} spreads over {least} at least, and only {groups if few else clusters} can be used:"
        f" until then each has {each} (free or add such clusters, or lower spec.distribution.{bound})"
    )
