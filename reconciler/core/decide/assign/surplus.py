"""The surplus of a workload: which of its placements lose the replicas that are too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.core.decide.assign.copies import take_copies_back
from reconciler.core.decide.assign.replicas_by_cluster import take_back
from reconciler.core.decide.candidates.gang import unit_of_workload
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.placement import Placement


def take_surplus(
    inputs: PassInput, working_plan: WorkingPlan, surplus: int, placements: Sequence[Placement], *, partly: bool
) -> Iterable[tuple[Placement, int]]:
    """Choose which placements of one workload lose a surplus, each with the replicas that it keeps.

    `partly` ends a copy of what has a fixed number of replicas where only a part of it is too many.
    """
    unit = unit_of_workload(inputs, placements[0].workload, placements[0])
    if unit.whole:
        return take_copies_back(inputs, working_plan, surplus, placements, partly=partly)
    return take_back(inputs, working_plan, surplus, placements)
