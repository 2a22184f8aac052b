"""Why a subset of a StatefulSet has one cluster: each of its clusters would count from the same ordinal.

The subsets of an ordinal workload are ranges (spread-and-groups.md, sections 2 and 6). Two clusters of one subset would
make pods of the same names, each with a volume of its own; so would what is in no subset, which begins where the
workload itself does. The cluster of a subset is the primary where that is in it, then the first that has some of it,
then the first that takes some.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.core.growth import Growth
from reconciler.core.quotas import Quota, quotas
from reconciler.core.reach import Rung
from reconciler.core.seats import Site, site
from reconciler.core.subsets import ordinal
from reconciler.core.wording import plain
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.workloadspread import WorkloadSpread


def barred(
    growth: Growth, spread: WorkloadSpread, workload: WorkloadId, rung: Rung, *, moving: Placement | None = None
) -> Refusal | None:
    """Say that a cluster would have ordinals that another has, or None; what is `moving` takes its own along."""
    if not ordinal(spread):
        return None
    desired = growth.situation.desired
    policy, primary = desired.policies[workload], desired.workspaces[workload.workspace].primary
    held = growth.seated(workload, policy)
    if moving is not None:
        held[site(moving, policy, desired.clusters)] -= moving.replicas
    found = quotas(growth.situation, workload, spread, held.total())
    at_home = any(quota.at_home and quota.subset.name == rung.subset for quota in found)
    there = sorted(cluster for (cluster, name), replicas in held.items() if name == rung.subset and replicas > 0)
    return _refusal(spread, rung.site, [primary] if at_home else there)


def beside_the_first(
    growth: Growth,
    workload: WorkloadId,
    spread: WorkloadSpread,
    *,
    rows: Sequence[Sequence[Site]],
    found: Sequence[Quota],
    held: Mapping[Site, int],
    offers: Collection[Site],
) -> Iterator[Refusal]:
    """Yield why clusters that offer something may have none of it: in each subset all but one.

    `rows` are the clusters of each subset in order, and of no subset at last, and `found` their quotas. Nothing is
    yielded for a workload without ordinals.
    """
    if not ordinal(spread):
        return
    primary = growth.situation.desired.workspaces[workload.workspace].primary
    for row, quota in zip(rows, found, strict=True):
        there = [place[0] for place in row if held.get(place)] or [place[0] for place in row if place in offers]
        for place in row:
            refusal = _refusal(spread, place, [primary] if quota.at_home else there) if place in offers else None
            if refusal is not None:
                yield refusal


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
