"""Source updates: placements whose template is made from a source are brought to the version that it has now.

A burst so never runs another version than its primary for longer than it takes to see it. What was placed before its
template had a source, and what runs once and has begun, stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from reconciler.core.capacity.gpu_slices import recorded_shape
from reconciler.core.decide.state.gate import update_waits
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.ledger import lifecycle
from reconciler.model.action import Action
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.manifest_source import MadeFrom
from reconciler.model.plan import Change


def update_to_sources(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Write each placement anew whose source has changed since, with the replicas that it has."""
    made = {workload for workload, template in inputs.desired.templates.items() if template.made_from is not None}
    for workload in working_plan.placed() if made else ():
        if workload in made and workload in inputs.desired.policies:
            working_plan.decide(workload, partial(_update, inputs, working_plan, workload))


def _update(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> None:
    template = inputs.desired.templates[workload]
    current = template.made_from
    unit = unit_of_workload(inputs, workload)
    if current is None or unit.keeps_version or template.unread:
        return
    shape = _shape(inputs, workload) if unit.gang is None else None
    for placement in working_plan.of(workload):
        before = placement.made_from
        if before is None or before.digest == current.digest:
            continue
        after = lifecycle.resized_placement(placement, inputs.desired, inputs.now, placement.replicas)
        if shape is not None:
            after = replace(after, shape=recorded_shape(shape, inputs.observed.clusters.get(placement.cluster)))
        resize = Change(action=Action.RESIZE, before=placement, after=after, detail=_detail(before, current))
        waits = update_waits(inputs, resize)
        if waits is not None:
            working_plan.suppress(waits)
            continue
        working_plan.change(resize)


def _shape(inputs: PassInput, workload: WorkloadId) -> ReplicaShape | None:
    """Return the shape that a replica has now, where it is the same on every cluster; None where it is unknown."""
    demand = inputs.demands.get(workload)
    template, policy = inputs.desired.templates[workload], inputs.desired.policies[workload]
    if not isinstance(demand, Demand) or policy.subsets or template.patches:
        return None
    return demand.shape


def _detail(before: MadeFrom, current: MadeFrom) -> str:
    """Say what has changed, as far as it is known."""
    if before.images != current.images:
        return f"its source runs {current.images} now, {before.images} before"
    return "its source has changed"
