"""The bounds of a policy on clusters and values of a label, as an assignment holds them and describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from reconciler.core.decide.candidates.kind_answers import off_order_candidate, share_of
from reconciler.core.decide.distribution import ClusterShare, Division, Reached, share_out
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy, Distribution, SpreadConstraint
from reconciler.text.wording import count, join_names


def share_of_unit(candidate: Candidate, *, keeps: int = 0) -> ClusterShare:
    """Make the share of a candidate that gets one whole unit: weights and minimums are of replicas, and bind none."""
    return share_of(candidate, most=1, capacity=1, keeps=keeps)._replace(least=0, weight=1)


def off_order(candidates: Sequence[Candidate], held: Mapping[ClusterName, int]) -> list[ClusterShare]:
    """Make shares of clusters that have replicas and are no longer in the order: they come last."""
    named, shares = {candidate.cluster for candidate in candidates}, list[ClusterShare]()
    for rank, cluster in enumerate(sorted(held.keys() - named), start=len(candidates) + 1):
        has = held[cluster]
        shares.append(share_of(off_order_candidate(cluster, rank), keeps=has, most=has, capacity=has))
    return shares


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
    within = division.out_of_reach.lowered(distribution)
    return replace(share_out(total, shares, within, beyond=beyond), out_of_reach=division.out_of_reach)


def describe_label_values(number: int, bound: SpreadConstraint) -> str:
    """Format a number of values of a label that a policy spreads over."""
    return f"{count(number, 'value')} of {bound.label}"


def left_out(division: Division, policy: BurstPolicy) -> Iterator[Refusal]:
    """Refuse the clusters that have room and are beyond an upper bound of the policy, with that bound."""
    taken = [cluster for cluster, replicas in sorted(division.counts.items()) if replicas]
    for share in division.left_out:
        if not share.free:
            continue
        most, field = _upper_bound(share, len(taken), division.groups, policy.distribution)
        yield Refusal(
            cluster=share.cluster,
            reason=Reason.SPREAD_LIMIT,
            message=f"policy {policy.name} spreads over {most} at most: {join_names(taken)}",
            remedy=f"raise spec.distribution.{field} of policy {policy.name}",
        )


def _upper_bound(
    share: ClusterShare, taken: int, groups: Sequence[tuple[str, ...]], distribution: Distribution
) -> tuple[str, str]:
    """Return the upper bound that leaves a cluster out beside a number of others with these values, and its field."""
    clusters, full = distribution.max_clusters, None
    for index, bound in enumerate(distribution.spread_constraints):
        values = {own[index] for own in groups}
        if bound.max_groups is not None and share.groups[index] not in values and len(values) >= bound.max_groups:
            full = full or bound
    if full is None or (clusters is not None and taken >= clusters):
        return count(clusters or 0, "cluster"), "maxClusters"
    return describe_label_values(full.max_groups or 0, full), f"{full.field}.maxGroups"


class UnmetBound(NamedTuple):
    """A lower bound of a policy on clusters, or values of a label, that is not reached."""

    wanted: str
    has: int
    """The clusters, or values, that are used or can be."""
    field: str
    """Its field, below `spec.distribution`."""


def unmet_bound(has: Reached, policy: BurstPolicy, units: int) -> UnmetBound:
    """Describe the lower bound that is missed and is within reach of that number of units; labels before clusters."""
    distribution = policy.distribution
    words, number, field = count(distribution.min_clusters, "cluster"), has.clusters, "minClusters"
    _, *lacking = has.lacking(distribution, units)
    for bound, groups, lacks in zip(distribution.spread_constraints, has.groups, lacking, strict=True):
        if lacks:
            words, number, field = describe_label_values(bound.min_groups, bound), groups, f"{bound.field}.minGroups"
            break
    return UnmetBound(f"policy {policy.name} spreads over {words} at least", number, field)


def out_of_reach(division: Division, policy: BurstPolicy, *, each: str = "one replica") -> str:
    """Describe the lower bound of the policy that is out of reach, and what `each` has until then; empty for none.

    It keeps missing replicas from being placed (SpreadLimit). One that placed replicas do not meet is another matter
    (BoundUnmet): a move may mend it, and none of them waits.
    """
    if division.out_of_reach is None:
        return ""
    unmet = unmet_bound(division.out_of_reach, policy, division.total)
    return (
        f"{unmet.wanted}, and only {unmet.has} can be used: until then each has {each}"
        f" (free or add such clusters, or lower spec.distribution.{unmet.field})"
    )
