"""What people did on the output branch by hand, and what a decision makes of it."""

from __future__ import annotations

from reconciler.core import lifecycle
from reconciler.core.ending import governing
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.model.demand import Demand
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import Hold, Release, Restore


def respect_people(situation: Situation, standing: Standing) -> None:
    """Hold back what a person deleted, put right what a person edited, and let go of holds that are done."""
    for tampered in situation.ledger.tampered:
        placement = tampered.placement
        if tampered.removed:
            restraint = lifecycle.hold(placement, governing(situation.desired, placement.workload), situation.now)
            standing.change(Hold(workload=placement.workload, placement=placement, restraint=restraint))
        else:
            standing.change(Restore(tampered=tampered, detail="its files were edited by hand"))
    for workload in sorted(situation.ledger.restraints):
        demand = situation.demands.get(workload)
        holds = tuple(
            restraint
            for restraint in situation.ledger.restraints[workload]
            if restraint.kind is RestraintKind.HOLD and situation.now < restraint.until
        )
        if holds and isinstance(demand, Demand) and not demand.deficit:
            detail = f"nothing is missing on {demand.primary} any more"
            standing.change(Release(workload=workload, restraints=holds, detail=detail))
