"""Placements on clusters that files no longer allow: they move where another cluster has room, else they end."""

from __future__ import annotations

from functools import partial

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import outside_policy
from reconciler.core.decide.steps.relocate import relocate
from reconciler.core.decide.steps.transfer import FORBIDDEN, Departure
from reconciler.model.ids import WorkloadId


def move_excluded(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Move placements off clusters that their files no longer allow, where others have room; revert the rest.

    Placements that are no longer needed have been scaled down before: they end where they are.
    """
    for workload in outside_policy(inputs, working_plan):
        working_plan.decide(workload, partial(_move_excluded, inputs, working_plan, finder, workload))


def _move_excluded(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId) -> None:
    for placement in working_plan.of(workload):
        refusal = inputs.exclusion(placement)
        if refusal is not None:
            departure = Departure(
                placement=placement,
                replicas=placement.replicas,
                cause=FORBIDDEN,
                detail=f"{placement.cluster}: {refusal.message}",
            )
            relocate(inputs, working_plan, finder, departure)
