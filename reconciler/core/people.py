"""What people did on the output branch by hand, and what a decision makes of it."""

from __future__ import annotations

from reconciler.core import lifecycle
from reconciler.core.demand import ceiling, next_fall
from reconciler.core.ending import governing, revert
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.model.demand import Demand
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Hold, Release, Restore, Why


def respect_people(situation: Situation, standing: Standing) -> None:
    """Hold back what a person deleted, put right what a person edited, and let go of holds that are done."""
    for tampered in situation.ledger.tampered:
        placement = tampered.placement
        if tampered.removed and placement.workload.request:
            revert(situation, standing, placement, Why.REQUESTED, f"deleted by hand on {placement.cluster}")
        elif tampered.removed:
            restraint = lifecycle.hold(placement, governing(situation.desired, placement.workload), situation.now)
            standing.change(Hold(workload=placement.workload, placement=placement, restraint=restraint))
        else:
            standing.change(Restore(tampered=tampered, detail="its files were edited by hand"))
    for workload in sorted(situation.ledger.restraints):
        holds = tuple(
            restraint
            for restraint in situation.ledger.restraints[workload]
            if restraint.kind is RestraintKind.HOLD and situation.now < restraint.until
        )
        demand = situation.demands.get(workload)
        if holds and isinstance(demand, Demand):
            _let_go(situation, standing, demand, holds)


def _let_go(situation: Situation, standing: Standing, demand: Demand, holds: tuple[Restraint, ...]) -> None:
    """End the holds of a workload whose demand has gone: none was seen for the whole scale-down window.

    A single look is not enough: pods that are made anew wait for nothing until the scheduler has seen them, and a
    signal that is not heard may ask for all there was.
    """
    window = governing(situation.desired, demand.workload).scale_down_window
    if demand.unheard or demand.deficit:
        return
    if ceiling(demand, window) == 0:
        detail = f"nothing is missing on {demand.primary} any more"
        standing.change(Release(workload=demand.workload, restraints=holds, detail=detail))
    else:
        standing.wake(next_fall(demand, window))
