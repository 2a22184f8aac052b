"""Where a placement can move to, whole, within the bounds of its policy."""

from __future__ import annotations

from reconciler.core.growth import Growth, Offer
from reconciler.core.reach import Rung
from reconciler.core.sharing import values
from reconciler.core.spreading import full
from reconciler.model.demand import Demand
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate


def elsewhere(
    growth: Growth, template: WorkloadTemplate, policy: BurstPolicy, placement: Placement
) -> tuple[Offer | None, tuple[Refusal, ...]]:
    """Find the first cluster that takes a placement whole, as it is; a move never splits one.

    What one subset has made of a replica's shape is none of another's.
    """
    refusals: list[Refusal] = []
    demand = growth.situation.demands.get(placement.workload)
    own = demand.shape if policy.spread is not None and isinstance(demand, Demand) else None
    for offer in growth.offers(template, policy, own or placement.shape, placement.replicas, refusals, begun=-1):
        if offer.replicas < placement.replicas or offer.rung.cluster == placement.cluster:
            continue
        beyond = _beyond(growth, policy, placement, offer.rung)
        if beyond is None:
            return offer, tuple(refusals)
        refusals.append(beyond)
    return None, tuple(refusals)


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
