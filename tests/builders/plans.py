"""What a plan does, as tests compare it."""

from __future__ import annotations

from reconciler.model.action import Action
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan


def begun(plan: Plan) -> list[Placement]:
    """List the placements that a plan begins, in its order."""
    return [change.placement for change in plan.changes if change.action is Action.PLACE]
