"""Scale down: replicas come home that are above a limit, or that are no longer missing on their primary."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reconciler.core.decide.assign.subset_quota import quotas
from reconciler.core.decide.assign.surplus import describe_order, take_surplus
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.runs import describe_run_at_home, is_awaited
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import outside_policy, revert
from reconciler.core.fleet.burst_replicas import describe_maximum
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import next_peak_change, peak_missing
from reconciler.core.signals.merge import HEADROOM, headroom_end
from reconciler.model.action import Action
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import PlacementGroup
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Reason, Suppressed
from reconciler.model.policy import BurstPolicy
from reconciler.model.units import format_duration
from reconciler.text.wording import count, sanitize


def scale_down(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Take back replicas above a limit at once, and those no longer missing after the scale-down window.

    What runs once and has begun on its primary goes at once: it would do the same work again.
    """
    outside = frozenset(outside_policy(inputs, working_plan))
    for workload in working_plan.placed():
        policy = inputs.desired.policies.get(workload)
        if policy is not None and (workload in outside or _may_shrink(inputs, working_plan, workload, policy)):
            step = partial(_scale_down, inputs, working_plan, workload, policy, outside=workload in outside)
            working_plan.decide(workload, step)


def follow_subset_maximums(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Carry out the maximums of subsets again for what this pass has changed: a percentage of fewer replicas is less.

    Replicas that leave a cluster and have room nowhere else are reverted after `scale_down`.
    """
    for workload in working_plan.touched():
        policy = inputs.desired.policies.get(workload)
        if policy is not None and policy.subsets:
            step = partial(_keep_quotas, inputs, working_plan, workload, policy)
            working_plan.decide(workload, step)


def _may_shrink(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, policy: BurstPolicy) -> bool:
    """Tell whether there is anything to look at: a workload within its policy may have more than it is missing."""
    demand = inputs.demands.get(workload)
    if not isinstance(demand, Demand) or working_plan.replicas(workload) > demand.missing:
        return True
    if describe_run_at_home(inputs, demand):
        return True
    return bool(policy.subsets) or policy.headroom_duration is not None


def _scale_down(
    inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, policy: BurstPolicy, *, outside: bool
) -> None:
    demand = inputs.demands.get(workload)
    if outside:
        _keep_quotas(inputs, working_plan, workload, policy)
        _keep_limits(inputs, working_plan, workload, policy)
    # Replicas of an unseen primary stay; `scale_up` suppresses with that reason.
    if isinstance(demand, Demand):
        _follow_demand(inputs, working_plan, demand, policy)
    _keep_quotas(inputs, working_plan, workload, policy)


def _unsure(inputs: PassInput, group: PlacementGroup, policy: BurstPolicy) -> bool:
    """Tell whether the policy that these were placed by may be in the file that cannot be read."""
    return not inputs.absence_counts and any(placement.policy != policy.name for placement in group.placements)


def _keep_quotas(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, policy: BurstPolicy) -> None:
    """Carry out the maximums of subsets, last first; what the primary has above one is only told.

    OpenKruise leaves what is above a maximum until there are too many; here a maximum that people lower is carried
    out at once, as everywhere. A percentage of fewer replicas may be less, so it goes on until all have theirs.
    """
    before, placed = 0, working_plan.replicas(workload)
    if _unsure(inputs, working_plan.group(workload), policy):
        return
    while placed != before:
        for quota in reversed(quotas(inputs, workload, placed)):
            name, placements = sanitize(quota.subset.name), working_plan.of(workload)
            here = [placement for placement in placements if inputs.slot(placement)[1] == quota.subset.name]
            detail = f"subset {name} of {policy.slot_file} may have {quota.most}"
            _drain(inputs, working_plan, here, quota.elsewhere, why=EndReason.POLICY, detail=detail)
        before, placed = placed, working_plan.replicas(workload)


def _keep_limits(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, policy: BurstPolicy) -> None:
    """Carry out limits that people have lowered: of one cluster, and of all together."""
    group, lowest_limit = working_plan.group(workload), inputs.reach.lowest_limit(workload)
    if policy.capped(group.replicas) == group.replicas and (lowest_limit is None or group.most <= lowest_limit):
        return
    if _unsure(inputs, group, policy):
        return
    for candidate in inputs.reach.order(workload):
        here = working_plan.on_slot(workload, candidate.key)
        detail = f"policy {policy.name} allows {candidate.limit} on {candidate.cluster}"
        _drain(inputs, working_plan, here, candidate.limit, why=EndReason.POLICY, detail=detail)
    stays, placements = policy.capped(working_plan.replicas(workload)), working_plan.of(workload)
    detail, order = describe_maximum(policy), describe_order(policy)
    _drain(inputs, working_plan, placements, stays, why=EndReason.POLICY, detail=detail, order=order)


def _follow_demand(inputs: PassInput, working_plan: WorkingPlan, demand: Demand, policy: BurstPolicy) -> None:
    """Remove the replicas that were not missing for the whole scale-down window.

    A run ends where its workload runs, or has run or been deleted, at home.
    """
    placed, window = working_plan.replicas(demand.workload), policy.scale_down_window
    twice = describe_run_at_home(inputs, demand)
    if twice:
        _drain(inputs, working_plan, working_plan.of(demand.workload), 0, why=EndReason.DEMAND_GONE, detail=twice)
        return
    if is_awaited(inputs, demand):
        return
    if policy.headroom_duration is not None and any(step.signal == HEADROOM for step in demand.waiting):
        working_plan.wake(headroom_end(demand.waiting, policy.headroom_duration))
    if placed <= demand.missing:
        return
    if demand.stale:
        working_plan.suppress(_signal_unheard(demand, placed))
        return
    at = inputs.seen_at(demand)
    highest = peak_missing(demand, window, at)
    keep = placed if highest is None else min(placed, highest)
    if keep > demand.missing:
        but = "demand was not watched for the whole" if highest is None else f"up to {highest} were needed within the"
        working_plan.suppress(
            Suppressed(
                workload=demand.workload,
                reason=Reason.SCALE_DOWN_WINDOW,
                message=f"{demand.missing} of {placed} placed replicas are needed now, but {but} scale-down window of"
                f" {format_duration(window)}",
                replicas=placed - demand.missing,
                until=next_peak_change(demand, window, at),
            )
        )
    if placed > keep:
        detail = f"no more than {keep} of {placed} replicas were needed in the last {format_duration(window)}"
        placements, order = working_plan.of(demand.workload), describe_order(policy)
        _drain(inputs, working_plan, placements, keep, why=EndReason.DEMAND_GONE, detail=detail, order=order)


def _signal_unheard(demand: Demand, placed: int) -> Suppressed:
    """Say that nothing is given back, since a signal that may still ask for it cannot be heard."""
    return Suppressed(
        workload=demand.workload,
        reason=Reason.SIGNAL_UNHEARD,
        message=f"{'; '.join(demand.stale)}; its {count(placed, 'replica')} elsewhere stay until they expire",
        replicas=placed - demand.missing,
    )


def _drain(
    inputs: PassInput,
    working_plan: WorkingPlan,
    placements: Sequence[Placement],
    stays: int | None,
    *,
    why: EndReason,
    detail: str,
    order: str = "",
) -> None:
    """Leave `stays` replicas of placements of one workload, None for all; what serves least goes, then by `order`.

    `order` is in words.
    """
    surplus = 0 if stays is None else sum(placement.replicas for placement in placements) - stays
    if surplus <= 0:
        return
    partly = why is not EndReason.DEMAND_GONE
    for placement, rest, because in take_surplus(inputs, working_plan, surplus, placements, partly=partly):
        chosen = because or order
        reason = f"{detail}; {chosen}" if chosen else detail
        if rest == 0:
            revert(inputs, working_plan, placement, why, reason)
            continue
        after = lifecycle.resized_placement(placement, inputs.desired, inputs.now, rest)
        working_plan.change(Change(action=Action.RESIZE, before=placement, after=after, why=why, detail=reason))
