"""Manual changes on the output branch: deleted placements are held back, edited files are restored."""

from __future__ import annotations

from functools import partial

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.runs import is_awaited
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import policy_of, revert
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import next_peak_change, peak_missing
from reconciler.model.action import Action
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import Drift
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Change


def follow_manual_changes(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Hold workloads whose placements a person deleted, restore edited files, and release holds that are over."""
    for drifted in inputs.ledger.drifted:
        step = partial(_follow, inputs, working_plan, drifted)
        working_plan.decide(drifted.placement.workload, step, always=True)
    for workload in sorted(inputs.ledger.restraints):
        working_plan.decide(workload, partial(_release_holds, inputs, working_plan, workload))


def _follow(inputs: PassInput, working_plan: WorkingPlan, drifted: Drift) -> None:
    placement = drifted.placement
    if drifted.removed:
        workload, detail = placement.workload, f"deleted by hand on {placement.cluster}"
        hold = lifecycle.hold(placement, policy_of(inputs.desired, workload), inputs.now)
        if hold is None:
            revert(inputs, working_plan, placement, EndReason.REQUESTED, detail)
        else:
            working_plan.change(Change(action=Action.HOLD, workload=workload, before=placement, restraint=hold))
    else:
        working_plan.change(Change(action=Action.RESTORE, drifted=drifted, detail="its files were edited by hand"))


def _release_holds(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> None:
    holds = tuple(
        restraint
        for restraint in inputs.ledger.restraints[workload]
        if restraint.kind is RestraintKind.HOLD and inputs.now < restraint.until
    )
    demand = inputs.demands.get(workload)
    if holds and isinstance(demand, Demand):
        _release(inputs, working_plan, demand, holds)


def _release(inputs: PassInput, working_plan: WorkingPlan, demand: Demand, holds: tuple[Restraint, ...]) -> None:
    """End the holds of a workload whose demand has gone: none was seen for the whole scale-down window.

    A single look is not enough: pods that are made anew wait for nothing until the scheduler has seen them, and a
    signal that is not heard may ask for all there was. What the primary holds back may be asked for again.
    """
    window = policy_of(inputs.desired, demand.workload).scale_down_window
    if demand.stale or demand.missing or is_awaited(inputs, demand):
        return
    at = inputs.seen_at(demand)
    if peak_missing(demand, window, at) == 0:
        detail = f"nothing is missing on {demand.primary} any more"
        working_plan.change(Change(action=Action.RELEASE, workload=demand.workload, restraints=holds, detail=detail))
    else:
        working_plan.wake(next_peak_change(demand, window, at))
