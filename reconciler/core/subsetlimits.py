"""What a subset of a WorkloadSpread may still get of a workload, beside what it has on all of its clusters."""

from __future__ import annotations

from reconciler.core.growth import MOST, Growth
from reconciler.core.ordinals import barred
from reconciler.core.quotas import Quota, quotas
from reconciler.core.reach import Rung
from reconciler.core.seats import Site, site
from reconciler.core.wording import count, plain
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.workloadspread import WorkloadSpread


def full(growth: Growth, spread: WorkloadSpread, placement: Placement, rung: Rung) -> Refusal | None:
    """Say that a subset may not hold a placement that is to move into it from elsewhere; None where it may."""
    situation, workload = growth.situation, placement.workload
    taken = barred(growth, spread, workload, rung, moving=placement)
    if taken is not None or not rung.subset:
        return taken
    left, quota = _left(growth, spread, workload, rung)
    comes_from = site(placement, situation.desired.policies[workload], situation.desired.clusters)
    moves = 0 if comes_from[1] == rung.subset else placement.replicas
    if moves <= left or quota.most is None:
        return None
    return over(spread, quota, quota.most - left, rung.site)


def room_in(growth: Growth, spread: WorkloadSpread, workload: WorkloadId, rung: Rung) -> int:
    """Count the replicas that a subset may still get, whatever its clusters have room for."""
    if barred(growth, spread, workload, rung) is not None:
        return 0
    return max(0, _left(growth, spread, workload, rung)[0]) if rung.subset else MOST


def over(spread: WorkloadSpread, quota: Quota, has: int, place: Site, *, before: int | None = None) -> Refusal:
    """Refuse a cluster for a subset that has as many as it may, or comes to them from what it had `before`."""
    name = plain(quota.subset.name)
    verb = "has" if before is None or before >= has else "comes to"
    return Refusal(
        cluster=place[0],
        subset=place[1],
        reason=Reason.SPREAD_LIMIT,
        message=f"subset {name} {verb} {has} of at most {count(quota.most or 0, 'replica')}",
        remedy=f"raise maxReplicas of subset {name} in WorkloadSpread {spread.id}",
    )


def _left(growth: Growth, spread: WorkloadSpread, workload: WorkloadId, rung: Rung) -> tuple[int, Quota]:
    """Count how many a subset lacks of its maximum."""
    held = growth.seated(workload, growth.situation.desired.policies[workload])
    found = quotas(growth.situation, workload, spread, held.total())
    quota = next(one for one in found if one.subset.name == rung.subset)
    has = quota.home + sum(replicas for (_, name), replicas in held.items() if name == rung.subset)
    return (MOST if quota.most is None else quota.most - has), quota
