"""Placements that end or move because their time is over, or because the fleet repository no longer allows them.

The workloads with placements outside of their policy follow from the fleet repository and the output branch alone, and
nearly always there are none. They are searched again only where one of both has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.runs import restraint_after
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.close_requests import follow_end, why_unwanted
from reconciler.core.decide.steps.renew import why_not_renewed
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.ledger import lifecycle
from reconciler.core.workloads import replica_count
from reconciler.errors import Bug
from reconciler.model.action import Action
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import PlacementGroup, Placements
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Change
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.tree import Identity
from reconciler.model.units import format_duration


def outside_policy(inputs: PassInput, working_plan: WorkingPlan) -> tuple[WorkloadId, ...]:
    """List the workloads, by name, with placements that may be outside of their policy: on a cluster, or in number.

    A superset: workloads that this pass has changed are among them, and so are those with a WorkloadSpread, whose
    quotas depend on the replicas of the primary.
    """
    placements = inputs.ledger.placements
    suspects = _outside(placements.workloads(), inputs.desired, inputs.reach, placements)
    return tuple(
        sorted(workload for workload in {*suspects, *working_plan.changed_workloads()} if working_plan.of(workload))
    )


def _outside(
    workloads: Iterable[WorkloadId], desired: Desired, reach: ClusterOrder, placements: Placements
) -> Iterable[WorkloadId]:
    return (workload for workload in workloads if not _within(workload, placements.of(workload), desired, reach))


def _within(workload: WorkloadId, group: PlacementGroup, desired: Desired, reach: ClusterOrder) -> bool:
    policy = desired.policies.get(workload)
    if policy is None or workload not in desired.templates or policy.subsets:
        return False
    if not group.clusters <= reach.allowed(workload):
        return False
    lowest_limit = reach.lowest_limit(workload)
    return policy.capped(group.replicas) == group.replicas and (lowest_limit is None or group.most <= lowest_limit)


def end_expired(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Revert every placement whose time is over, also where clusters are unseen and where nothing else is decided.

    Where the details of its end cannot be worked out, it ends without them.
    """
    for placement in working_plan.expired():
        lasted = format_duration(placement.expires_at - placement.created_at)
        late = inputs.now - placement.expires_at
        overdue = f", {format_duration(late)} late" if late.total_seconds() >= 1 else ""
        detail = f"its {lasted} are over{overdue}"
        unrenewed = attempt(Seam.EXPIRY, placement.path, partial(why_not_renewed, inputs, working_plan, placement))
        if isinstance(unrenewed, str) and unrenewed:
            detail = f"{detail}; {unrenewed}"
        ended = attempt(Seam.EXPIRY, placement.path, partial(make_revert, inputs, placement, EndReason.EXPIRED, detail))
        if isinstance(ended, Bug):
            working_plan.note_bug(ended)
            held = lifecycle.run_hold(placement, EndReason.EXPIRED, inputs.now) if placement.runs_once else None
            ended = Change(action=Action.REVERT, before=placement, why=EndReason.EXPIRED, detail=detail, restraint=held)
        if ended.restraint is None and _has_rivals(inputs, working_plan, placement.workload):
            ended = replace(ended, restraint=lifecycle.turn(placement, EndReason.EXPIRED, inputs.now, inputs.now))
        working_plan.change(ended)
        close = partial(follow_end, inputs, working_plan, placement, EndReason.EXPIRED, detail)
        working_plan.decide(placement.workload, close, always=True)


def _has_rivals(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> bool:
    """Tell whether a burst is still missing replicas, and another one of its priority as well."""
    own = inputs.demands.get(workload)
    if not isinstance(own, Demand) or not own.missing:
        return False
    level = priority(workload, inputs)
    return any(
        isinstance(demand, Demand)
        and demand.missing > working_plan.replicas(demand.workload)
        and demand.workload != workload
        and priority(demand.workload, inputs) == level
        for demand in inputs.demands.values()
    )


def end_unwanted(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Revert the placements of workloads that the fleet repository and the requests no longer have."""
    for workload in outside_policy(inputs, working_plan):
        working_plan.decide(workload, partial(_end_unwanted, inputs, working_plan, workload))


def _end_unwanted(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> None:
    missing = missing_file(inputs.desired, workload)
    # 1. Its request has gone or ended.
    if missing and workload.request:
        reason = why_unwanted(inputs, working_plan, workload)
    # 2. Its template or policy has gone.
    else:
        reason = missing if inputs.absence_counts else ""
    for placement in working_plan.of(workload) if reason else ():
        revert(inputs, working_plan, placement, EndReason.POLICY, reason)


def revert(
    inputs: PassInput,
    working_plan: WorkingPlan,
    placement: Placement,
    why: EndReason,
    detail: str,
    *,
    author: Identity | None = None,
    restraint: Restraint | None = None,
) -> None:
    """Revert a placement as `make_revert` does; a request goes on with its other placements, or ends."""
    working_plan.change(make_revert(inputs, placement, why, detail, author=author, restraint=restraint))
    follow_end(inputs, working_plan, placement, why, detail, author=author)


def make_revert(
    inputs: PassInput,
    placement: Placement,
    why: EndReason,
    detail: str,
    *,
    author: Identity | None = None,
    restraint: Restraint | None = None,
) -> Change:
    """Make the revert of a placement; without a `restraint` the workload gets the one that such an end leaves."""
    restraint = restraint or restraint_after(inputs, placement, why)
    seen = inputs.observed.clusters.get(placement.cluster)
    phase = lifecycle.final_phase(placement, replica_count.bound_replicas(placement, seen), why)
    return Change(
        action=Action.REVERT, before=placement, why=why, detail=detail, restraint=restraint, phase=phase, author=author
    )


def policy_of(desired: Desired, workload: WorkloadId) -> BurstPolicy:
    """Return a workload's policy, or the defaults where it is gone and placements still have to end."""
    return desired.policies.get(workload) or BurstPolicy(name="")


def missing_file(desired: Desired, workload: WorkloadId) -> str:
    """Say that the template or the policy of a workload has gone; empty where both are in the fleet repository."""
    if workload not in desired.templates:
        return f"template {workload} is no longer in the fleet repository"
    if workload not in desired.policies:
        return f"no policy lets {workload} burst any more"
    return ""
