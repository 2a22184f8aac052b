"""What people did on the output branch by hand, and what a decision makes of it."""

from __future__ import annotations

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import governing, revert
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import ceiling, next_fall
from reconciler.model.demand import Demand
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Hold, Release, Restore, Why


def respect_people(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Hold back what a person deleted, put right what a person edited, and let go of holds that are done."""
    for drifted in inputs.ledger.drifted:
        placement = drifted.placement
        if drifted.removed and placement.workload.request:
            revert(inputs, working_plan, placement, Why.REQUESTED, f"deleted by hand on {placement.cluster}")
        elif drifted.removed:
            restraint = lifecycle.hold(placement, governing(inputs.desired, placement.workload), inputs.now)
            working_plan.change(Hold(workload=placement.workload, placement=placement, restraint=restraint))
        else:
            working_plan.change(Restore(drifted=drifted, detail="its files were edited by hand"))
    for workload in sorted(inputs.ledger.restraints):
        holds = tuple(
            restraint
            for restraint in inputs.ledger.restraints[workload]
            if restraint.kind is RestraintKind.HOLD and inputs.now < restraint.until
        )
        demand = inputs.demands.get(workload)
        if holds and isinstance(demand, Demand):
            _let_go(inputs, working_plan, demand, holds)


def _let_go(inputs: PassInput, working_plan: WorkingPlan, demand: Demand, holds: tuple[Restraint, ...]) -> None:
    """End the holds of a workload whose demand has gone: none was seen for the whole scale-down window.

    A single look is not enough: pods that are made anew wait for nothing until the scheduler has seen them, and a
    signal that is not heard may ask for all there was.
    """
    window = governing(inputs.desired, demand.workload).scale_down_window
    if demand.stale or demand.deficit:
        return
    if ceiling(demand, window) == 0:
        detail = f"nothing is missing on {demand.primary} any more"
        working_plan.change(Release(workload=demand.workload, restraints=holds, detail=detail))
    else:
        working_plan.wake(next_fall(demand, window))
