"""Why a subset of a StatefulSet has one cluster: each of its clusters would count from the same ordinal.

The subsets of an ordinal workload are ranges (docs/reference/workloadspread.md, "StatefulSets"). Two clusters of one
subset would make pods of the same names, each with a volume of its own; so would what is in no subset, which begins
where the workload itself does. The cluster of a subset is the primary where that is in it, then the first that has some
of it, then the first that takes some.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.core.decide.assign.subset_quota import SubsetQuota, quotas
from reconciler.core.decide.candidates.finder import CandidateFinder, Offer
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.core.spread.placement_subset import Site, site
from reconciler.core.spread.subset_pods import first_ordinal, ordinal
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.workload_spread import WorkloadSpread
from reconciler.text.wording import plain


def barred(
    finder: CandidateFinder,
    spread: WorkloadSpread,
    workload: WorkloadId,
    candidate: Candidate,
    *,
    moving: Placement | None = None,
) -> Refusal | None:
    """Say that a cluster would have ordinals that another has, or None; what is `moving` takes its own along."""
    if not ordinal(spread):
        return None
    desired = finder.inputs.desired
    policy, primary = desired.policies[workload], desired.workspaces[workload.workspace].primary
    held = finder.seated(workload, policy)
    if moving is not None:
        held[site(moving, policy, desired.clusters)] -= moving.replicas
    found = quotas(finder.inputs, workload, spread, held.total())
    at_home = any(quota.at_home and quota.subset.name == candidate.subset for quota in found)
    there = sorted(cluster for (cluster, name), replicas in held.items() if name == candidate.subset and replicas > 0)
    needed = 1 if moving is None else moving.replicas
    return (
        _refusal(spread, candidate.site, [primary] if at_home else there)
        or (_past(finder, workload, spread, candidate.site, needed, moving=moving)[1])
    )


def kept_apart(
    finder: CandidateFinder,
    workload: WorkloadId,
    spread: WorkloadSpread | None,
    offers: Mapping[Site, Offer],
    refusals: list[Refusal],
) -> dict[Site, Offer]:
    """Cut offers down to the ordinals that no other placement has; refuse those of which nothing is left.

    Ranges are apart as a spread stands. What was placed before it was changed keeps the ordinals that it was given.
    """
    left = dict(offers)
    if spread is None or not ordinal(spread):
        return left
    for place, offer in offers.items():
        free, refusal = _past(finder, workload, spread, place, offer.replicas)
        if free:
            left[place] = replace(offer, replicas=free)
            continue
        del left[place]
        refusals += [refusal] if refusal is not None else []
    return left


def beside_the_first(
    finder: CandidateFinder,
    workload: WorkloadId,
    spread: WorkloadSpread,
    *,
    rows: Sequence[Sequence[Site]],
    found: Sequence[SubsetQuota],
    held: Mapping[Site, int],
    offers: Collection[Site],
) -> Iterator[Refusal]:
    """Yield why clusters that offer something may have none of it: in each subset all but one.

    `rows` are the clusters of each subset in order, and of no subset at last, and `found` their quotas. Nothing is
    yielded for a workload without ordinals.
    """
    if not ordinal(spread):
        return
    primary = finder.inputs.desired.workspaces[workload.workspace].primary
    for row, quota in zip(rows, found, strict=True):
        there = [place[0] for place in row if held.get(place)] or [place[0] for place in row if place in offers]
        for place in row:
            refusal = _refusal(spread, place, [primary] if quota.at_home else there) if place in offers else None
            if refusal is not None:
                yield refusal


def _past(
    finder: CandidateFinder,
    workload: WorkloadId,
    spread: WorkloadSpread,
    place: Site,
    wanted: int,
    *,
    moving: Placement | None = None,
) -> tuple[int, Refusal | None]:
    """Count how many of the `wanted` ordinals from a subset's next one on are free of those that others were given."""
    inputs = finder.inputs
    policy, clusters = inputs.desired.policies[workload], inputs.desired.clusters
    has, others = [], list[tuple[int, Placement]]()
    for one in inputs.ledger.placements.of(workload).placements:
        if one.first_ordinal is None or (moving is not None and one.name == moving.name):
            continue
        if site(one, policy, clusters) == place:
            has.append(one.first_ordinal + one.replicas)
        elif one.subset != place[1]:
            others.append((one.first_ordinal, one))
    begin = max(has, default=first_ordinal(spread, place[1]) or 0)
    ahead = min(((max(first, begin), one.where) for first, one in others if first + one.replicas > begin), default=None)
    if ahead is None or ahead[0] >= begin + wanted:
        return wanted, None
    if ahead[0] > begin and moving is None:
        return ahead[0] - begin, None
    name = f"{spread.target.kind} {spread.target.name}"
    return 0, Refusal(
        cluster=place[0],
        subset=place[1],
        reason=Reason.TAKEN,
        message=f"{name} has ordinal {ahead[0]} on {plain(ahead[1])} since before WorkloadSpread {spread.id} changed",
        remedy="wait until that placement has ended, or end it with `overspill revert`",
    )


def _refusal(spread: WorkloadSpread, place: Site, taken: Sequence[ClusterName]) -> Refusal | None:
    """Say that a subset's ordinals are `taken` by others; of several that have them already, the first may get more."""
    cluster, subset = place
    if subset and (not taken or cluster == taken[0]):
        return None
    target, name = f"{spread.target.kind} {spread.target.name}", plain(subset)
    message = f"{target} has no ordinals for what is in no subset"
    remedy = f"have a subset of WorkloadSpread {spread.id} take it"
    if subset:
        message = f"{target} has the ordinals of subset {name} on {taken[0]}, and two clusters would have the same"
        remedy = f"give it a subset of its own in WorkloadSpread {spread.id}, with a maxReplicas in each before it"
    return Refusal(cluster=cluster, subset=subset, reason=Reason.TAKEN, message=message, remedy=remedy)
