"""Where a placement can move to, whole, within the bounds of its policy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.core import lifecycle, placing, together
from reconciler.core.admitted import admitted, brought
from reconciler.core.grouping import needs_there, whole
from reconciler.core.growth import Growth, Offer
from reconciler.core.needs import Needs
from reconciler.core.reach import Rung
from reconciler.core.sharing import values
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.subsetlimits import full
from reconciler.core.subsets import subset_of
from reconciler.core.wording import count, plain
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.model.workloadspread import Subset


def elsewhere(
    growth: Growth, template: WorkloadTemplate, policy: BurstPolicy, placement: Placement
) -> tuple[Offer | None, tuple[Refusal, ...]]:
    """Find the first cluster that takes a placement whole, as it is; a move never splits one.

    What one subset has made of a replica's shape is none of another's, nor is what its cluster has added to it. Whom
    other pods keep away nobody has written down; the primary shows it.
    """
    refusals: list[Refusal] = []
    demand = growth.situation.demands.get(placement.workload)
    seen = demand.shape if isinstance(demand, Demand) else None
    own = seen if policy.spread is not None or _made_of(growth, template, placement, seen) else None
    shape = own or replace(placement.shape, who=seen.who if seen is not None else ())
    made_for = subset_of(policy.spread, placement.subset) if policy.spread is not None and own is None else None
    for rung in growth.order(placement.workload):
        # Each by itself: what another could take of it, and does not get, begins nothing there.
        answer = growth.assess(template, policy, shape, rung, placement.replicas, more=-1)
        if not isinstance(answer, Refusal):
            if rung.cluster == placement.cluster:
                continue
            answer = _unsplit(growth, policy, placement, answer, made_for)
        if not isinstance(answer, Refusal):
            return answer, tuple(refusals)
        refusals.append(answer)
    return None, tuple(refusals)


def _made_of(growth: Growth, template: WorkloadTemplate, placement: Placement, seen: ReplicaShape | None) -> bool:
    """Tell whether a placement's replicas are those seen on the primary, with what its cluster adds to them."""
    there = growth.situation.observed.clusters.get(placement.cluster)
    if there is None or seen is None or seen.unstated is None:
        return False
    here = brought(seen, (one.manifest for one in template.spec.manifests))
    return admitted(here, there).recorded == placement.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a placement has room as a whole, what it takes there, and the placement as it will be."""

    offer: Offer
    needs: Needs
    placement: Placement


def elsewhere_whole(
    situation: Situation, standing: Standing, growth: Growth, placement: Placement
) -> tuple[Found | None, tuple[Refusal, ...]]:
    """Find the first cluster without any of a workload that has room for all of a placement that goes whole.

    Where none has, it is the first that has room for the minimum of a gang.
    """
    there = {one.cluster for one in standing.of(placement.workload)}
    rungs = (rung for rung in situation.reach.order(placement.workload) if rung.cluster not in there)

    def asked(rung: Rung, *, least: bool) -> Found | Refusal:
        return _whole(situation, standing, growth, placement, rung=rung, least=least)

    needed = needs_there(situation, placement)
    return together.first(needed, rungs, asked)


def _whole(
    situation: Situation, standing: Standing, growth: Growth, placement: Placement, *, rung: Rung, least: bool
) -> Found | Refusal:
    """Say whether a cluster has room for a placement, of which nothing stays behind: for all, or at `least` enough."""
    workload, desired = placement.workload, situation.desired
    if workload.request:
        asked = placing.assess(situation, growth, standing.requests[workload], rung, more=-1, least=least)
        if isinstance(asked, Refusal):
            return asked
        offer, needed = asked
        shape, replicas = needed.main.shape, needed.main.replicas
    else:
        goes_whole = whole(situation, workload, placement)
        if goes_whole is None or goes_whole.shape is None:
            message = goes_whole.unknown if goes_whole is not None else "nothing of it runs in groups any more"
            return Refusal(cluster=rung.cluster, reason=Reason.NO_SHAPE, message=message)
        replicas, shape = placement.replicas, goes_whole.shape
        answer = together.assess(
            situation, growth, workload, rung, goes_whole, replicas=replicas, more_gprs=-1, least=least
        )
        if isinstance(answer, Refusal):
            return answer
        offer, needed = answer, goes_whole.of(replicas)
    cluster = desired.clusters[rung.cluster]
    moved = replace(
        lifecycle.renewed(placement, desired, situation.now, replicas),
        name=lifecycle.placement_name(workload, cluster.name, situation.now),
        cluster=cluster.name,
        engine=cluster.engine,
        subset="",
        shape=shape.recorded,
    )
    return Found(offer=offer, needs=needed, placement=moved)


def _unsplit(
    growth: Growth, policy: BurstPolicy, placement: Placement, offer: Offer, made_for: Subset | None
) -> Offer | Refusal:
    """Say why a placement may not move to a cluster that takes some of it; the offer where it may."""
    rung, limit = offer.rung, offer.rung.limit
    refusal: Refusal | None
    if offer.replicas < placement.replicas:
        limited = limit is not None and limit - growth.here(placement.workload, policy, rung) == offer.replicas
        what = f"may have {offer.replicas} more" if limited else f"has room for {offer.replicas}"
        refusal = Refusal(
            cluster=rung.cluster,
            reason=Reason.CLUSTER_LIMIT if limited else Reason.NO_CAPACITY,
            message=f"{what} of its {count(placement.replicas, 'replica')}, which move together",
        )
    elif made_for is not None and made_for.patch and rung.subset != made_for.name:
        message = f"nobody says what its replicas are without the patch of subset {plain(made_for.name)}"
        refusal = Refusal(cluster=rung.cluster, reason=Reason.NO_SHAPE, message=message)
    else:
        refusal = _beyond(growth, policy, placement, rung)
    return offer if refusal is None else replace(refusal, subset=rung.subset)


def _beyond(growth: Growth, policy: BurstPolicy, placement: Placement, rung: Rung) -> Refusal | None:
    """Say that a move would spread a workload over more values of a label than it may; None where it would not."""
    if policy.spread is not None:
        return full(growth, policy.spread, placement, rung)
    most = policy.distribution.max_groups
    if most is None:
        return None
    stay = growth.held(placement.workload)
    stay[placement.cluster] -= placement.replicas
    there = {one.group for one in growth.order(placement.workload) if stay[one.cluster] > 0}
    if rung.group in there or len(there) < most:
        return None
    return Refusal(
        cluster=rung.cluster,
        reason=Reason.SPREAD_LIMIT,
        message=f"policy {policy.name} spreads over {values(most, policy)} at most",
        remedy=f"raise spec.distribution.spreadConstraint.maxGroups of policy {policy.name}",
    )
