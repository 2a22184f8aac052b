"""Renewal: bursts that are about to end and are still needed last for their own time again.

Every end stays absolute and in git: a burst that no pass renews in time ends, also where no daemon runs (`sweep`). So
a renewal is committed some time before the end, for a pass that fails or a daemon that starts anew to be made up for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.core.cost.budgets import describe_used_up
from reconciler.core.decide.assign.serving import serving
from reconciler.core.decide.assign.surplus import take_surplus
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.runs import is_run, may_still_run
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.turns.claims import Claims
from reconciler.core.decide.turns.queue import Turn
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import UnseenPrimary, peak_missing
from reconciler.core.workloads import replica_count
from reconciler.model.action import Action
from reconciler.model.budget import BudgetState
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Reason, Suppressed
from reconciler.model.policy import BurstPolicy, Renewal
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time
from reconciler.text.wording import conjugate, count

LONGEST_LEAD = timedelta(minutes=10)
"""A renewal is due this long before the end, or a quarter of the burst's own time, whichever is less."""
_SHARE = 4
_RUNS = "it runs once, and nothing says that it is complete"


def renew_needed(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, turns: Sequence[Turn] = ()
) -> None:
    """Extend the bursts that are about to end and are still needed, as far as nobody has more right to their room.

    `turns` are those that have been taken in this pass: what found no room claims that of these bursts.
    """
    if not inputs.reach.renews():
        return
    due: dict[WorkloadId, list[Placement]] = {}
    for placement in working_plan.ending(LONGEST_LEAD):
        if _due(inputs, placement) <= inputs.now:
            due.setdefault(placement.workload, []).append(placement)
    if not due:
        return
    claims = Claims(inputs, working_plan, finder, turns)
    for workload, placements in due.items():
        working_plan.decide(workload, partial(_renew, inputs, working_plan, claims, workload, placements))


def wake_to_renew(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Have a pass run when the next renewal is due."""
    if not inputs.reach.renews():
        return
    for placement in working_plan.ending(LONGEST_LEAD):
        working_plan.wake(_due(inputs, placement))
    later = working_plan.next_expiry(inputs.now + LONGEST_LEAD)
    if later is not None:
        working_plan.wake(later - LONGEST_LEAD)


def _due(inputs: PassInput, placement: Placement) -> datetime:
    """Return when the renewal of a burst is due; its end where it is not renewed."""
    policy = inputs.desired.policies.get(placement.workload)
    template = inputs.desired.templates.get(placement.workload)
    if policy is None or template is None or lifecycle.renewal(template, policy) is Renewal.NEVER:
        return placement.expires_at
    lasts = lifecycle.placement_duration(template, policy, inputs.desired.limits.get(placement.workload.workspace))
    return placement.expires_at - min(lasts / _SHARE, LONGEST_LEAD)


def _renew(
    inputs: PassInput, working_plan: WorkingPlan, claims: Claims, workload: WorkloadId, due: Sequence[Placement]
) -> None:
    """Extend the placements of one workload that are due, as far as they are needed."""
    policy, template = inputs.desired.policies[workload], inputs.desired.templates[workload]
    limits = inputs.desired.limits.get(workload.workspace)
    needs = {placement.path: _need(inputs, working_plan, placement, policy.scale_down_window) for placement in due}
    budget = inputs.budgets.used_up(workload, policy.name)
    for placement in sorted(due, key=lambda each: serving(inputs, each).parts):  # what serves least yields first
        until = lifecycle.renewed_end(placement, template, policy, limits)
        need = needs[placement.path]
        if need.unneeded or until <= placement.expires_at:
            continue
        if budget is not None:
            working_plan.suppress(_over_budget(placement, budget))
            continue
        kept = _give_back(inputs, working_plan, claims, placement)
        if kept is not None:
            detail = f"{need.words}{_describe_bound(placement, policy, limits)}"
            longer = replace(kept, expires_at=until)
            working_plan.change(Change(action=Action.EXTEND, before=kept, after=longer, detail=detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """What a placement is still needed for."""

    words: str = ""
    unneeded: str = ""
    """Why it is not, or why nobody knows; empty where it is needed."""


def _need(inputs: PassInput, working_plan: WorkingPlan, placement: Placement, window: timedelta) -> _Need:
    """Say what a placement is needed for: a run until it is over, others for what was missing at once in a `window`.

    A run is needed whatever its primary shows, and also where that is unseen.
    """
    demand = inputs.demands.get(placement.workload)
    # 1. It is needed until it is over.
    if is_run(inputs, placement):
        over = f"no pod of it is seen on {placement.cluster} any more"
        return _Need(words=_RUNS, unneeded="" if may_still_run(inputs, placement) else over)
    # 2. Nobody knows whether it is needed.
    if demand is None:
        return _Need(unneeded="its demand is not measured")
    if isinstance(demand, UnseenPrimary):
        return _Need(unneeded=f"not renewed, since {demand.message}")
    # 3. It is needed for as many replicas as are missing.
    if placement.path in _needed_paths(inputs, working_plan, demand, window):
        return _Need(words=_describe_need(inputs, demand, window))
    if demand.missing:
        return _Need(unneeded=f"its others are as many as are missing on {demand.primary}")
    return _Need(unneeded=f"no replica is missing on {demand.primary} any more")


def _over_budget(placement: Placement, budget: BudgetState) -> Suppressed:
    """Say of a burst that is needed why it ends all the same."""
    ends = f"{placement.name} on {placement.cluster} ends at {format_time(placement.expires_at)} and is not renewed"
    return Suppressed(
        workload=placement.workload,
        reason=Reason.OVER_BUDGET,
        message=f"{ends}: {describe_used_up(budget)}",
        replicas=placement.replicas,
        until=budget.ends_at,
    )


def _give_back(inputs: PassInput, working_plan: WorkingPlan, claims: Claims, placement: Placement) -> Placement | None:
    """Take the replicas away from a placement that others have more right to; None where it keeps none."""
    claim = claims.on(placement)
    if claim is None:
        return placement
    why, turn = EndReason.FAIR_SHARE, None
    if claim.waits_from is not None:
        turn = lifecycle.turn(placement, why, inputs.now, claim.waits_from)
    if claim.replicas >= placement.replicas:
        seen = inputs.observed.clusters.get(placement.cluster)
        phase = lifecycle.final_phase(placement, replica_count.bound_replicas(placement, seen), why)
        working_plan.change(
            Change(action=Action.REVERT, before=placement, why=why, detail=claim.detail, restraint=turn, phase=phase)
        )
        return None
    after = lifecycle.resized_placement(placement, inputs.desired, inputs.now, placement.replicas - claim.replicas)
    working_plan.change(
        Change(action=Action.RESIZE, before=placement, after=after, why=why, detail=claim.detail, restraint=turn)
    )
    return after


def _needed_paths(inputs: PassInput, working_plan: WorkingPlan, demand: Demand, window: timedelta) -> frozenset[str]:
    """Name by path the placements that the missing replicas need: those that scale-down would leave."""
    placements = working_plan.of(demand.workload)
    surplus = sum(placement.replicas for placement in placements) - _replicas_needed(inputs, demand, window)
    ends = take_surplus(inputs, working_plan, surplus, placements, partly=False) if surplus > 0 else ()
    gone = {each.placement.path for each in ends if each.rest == 0}
    return frozenset(placement.path for placement in placements if placement.path not in gone)


def _replicas_needed(inputs: PassInput, demand: Demand, window: timedelta) -> int:
    """Count the replicas that were missing at once within a window, as far as it has been watched; 0s for now alone."""
    before = peak_missing(demand, window, inputs.seen_at(demand)) if window else None
    return max(demand.missing, before or 0)


def _describe_need(inputs: PassInput, demand: Demand, window: timedelta) -> str:
    """Say what a burst is still needed for."""
    if demand.missing:
        verb, what = ("missing on", demand.needed) if demand.needed else ("wanted beforehand for", demand.missing)
        return f"{count(what, 'replica')} {conjugate(what, 'is')} still {verb} {demand.primary}"
    most = count(_replicas_needed(inputs, demand, window), "replica")
    return f"up to {most} were missing on {demand.primary} in the last {format_duration(window)}"


def _describe_bound(placement: Placement, policy: BurstPolicy, limits: WorkspaceLimits | None) -> str:
    """Say until when it may last at most, where that is bounded."""
    longest = lifecycle.longest_duration(policy, limits)
    return "" if longest is None else f"; it may last until {format_time(placement.created_at + longest)}"


def why_not_renewed(inputs: PassInput, working_plan: WorkingPlan, placement: Placement) -> str:
    """Say of a burst that has ended why it was not renewed; empty where its policy does not renew."""
    workload = placement.workload
    policy, template = inputs.desired.policies.get(workload), inputs.desired.templates.get(workload)
    demand = inputs.demands.get(workload)
    if policy is None or template is None or lifecycle.renewal(template, policy) is Renewal.NEVER or demand is None:
        return ""
    limits = inputs.desired.limits.get(workload.workspace)
    # 1. A person set its end, or nobody may have more.
    if placement.fixed_end:
        return "a person set that end"
    if lifecycle.at_longest(placement, policy, limits):
        return "it may not last longer"
    # 2. Nobody knows whether it is needed, or nobody needs it.
    need = _need(inputs, working_plan, placement, timedelta())
    if need.unneeded:
        return need.unneeded
    # 3. What it may cost is spent.
    budget = inputs.budgets.used_up(workload, policy.name)
    if budget is not None:
        return f"not renewed, since {describe_used_up(budget)}"
    # 4. It is needed, and no pass ran between the renewal's time and the end.
    return f"no pass ran in time to renew it, and {need.words}"
