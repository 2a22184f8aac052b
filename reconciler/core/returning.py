"""Replicas that come home because they are no longer missing there."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.demand import ceiling, fall_complete
from reconciler.core.distribute import drained
from reconciler.core.ending import revert
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.wording import count
from reconciler.model.demand import Demand
from reconciler.model.plan import Reason, Resize, Suppressed, Why
from reconciler.model.policy import BurstPolicy
from reconciler.model.units import format_duration


def give_back_what_is_not_needed(situation: Situation, standing: Standing) -> None:
    """Shrink and revert, last cluster first, once the demand has been lower for the whole scale-down window."""
    for workload in standing.placed():
        demand, policy = situation.demands.get(workload), situation.desired.policies.get(workload)
        # What a blind primary has lent is left where it is; `lending` tells that it is blind.
        if policy is not None and isinstance(demand, Demand):
            _give_back(situation, standing, demand, policy)


def _give_back(situation: Situation, standing: Standing, demand: Demand, policy: BurstPolicy) -> None:
    workload, placed = demand.workload, standing.replicas(demand.workload)
    window = policy.scale_down_window
    highest = ceiling(demand, window, situation.now)
    needed = placed if highest is None else min(placed, highest)
    keep = needed if policy.max_replicas is None else min(needed, policy.max_replicas)
    if keep > demand.deficit:
        until = fall_complete(demand, window, situation.now)
        but = "nobody has watched for the whole" if highest is None else f"up to {highest} were needed within the"
        standing.suppress(
            Suppressed(
                workload=workload,
                reason=Reason.SCALE_DOWN_WINDOW,
                message=f"{demand.deficit} of {placed} placed replicas are needed now, but {but} scale-down window of"
                f" {format_duration(window)}",
                replicas=placed - demand.deficit,
                until=until,
            )
        )
    if keep == placed:
        return
    limited = keep < needed
    detail = (
        f"policy {policy.name} allows {count(keep, 'replica')}"
        if limited
        else f"no more than {keep} of {placed} replicas were needed in the last {format_duration(window)}"
    )
    rungs = situation.reach.order(workload)
    for placement, rest in drained(placed - keep, standing.of(workload), rungs):
        if rest == 0:
            revert(situation, standing, placement, Why.POLICY if limited else Why.DEMAND_GONE, detail)
        else:
            after = replace(placement, replicas=rest, changed_at=situation.now, digest="")
            standing.change(Resize(before=placement, after=after, detail=detail))
