"""Succeeded placements: what runs to completion gives its GPUs back when it is complete, before its time is over."""

from __future__ import annotations

from functools import partial

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import revert
from reconciler.core.ledger import lifecycle
from reconciler.core.workloads.single_run import complete_objects, may_succeed, pods_to_succeed
from reconciler.model.capacity import SucceededPods
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import Placement
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count


def end_succeeded(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Revert placements that have run to completion; their workloads are held, and their requests closed.

    A run that was complete stays so, also where its cluster has gone out of sight since.
    """
    for cluster, seen in sorted(inputs.observed.clusters.items()):
        for placement in working_plan.on(cluster) if seen.succeeded else ():
            finished = seen.succeeded.get(placement.name)
            if finished is not None:
                step = partial(_end_succeeded, inputs, working_plan, placement, finished)
                working_plan.decide(placement.workload, step)


def _end_succeeded(inputs: PassInput, working_plan: WorkingPlan, placement: Placement, finished: SucceededPods) -> None:
    if finished.at < placement.changed_at or not _is_complete(inputs, placement, finished):
        return
    by_pods = finished.pods is not None and not finished.objects
    what = f"the last of its {count(finished.pods or 0, 'pod')}" if by_pods else "its run"
    detail = f"{what} was complete at {format_time(finished.at)}"
    revert(inputs, working_plan, placement, EndReason.SUCCEEDED, detail)


def _is_complete(inputs: PassInput, placement: Placement, finished: SucceededPods) -> bool:
    """Tell whether a placement is complete: by the observation, by its objects, or since enough pods have succeeded.

    Objects and pods are counted against the template that they were made of. What serves is never complete.
    """
    template, kinds = inputs.desired.templates.get(placement.workload), inputs.desired.kinds
    if template is None or not may_succeed(template.spec, template.ref, kinds, once=template.runs_once):
        return False
    if finished.pods is None:
        return True
    if placement.template_version != lifecycle.file_version(template):
        return False
    objects, needed = complete_objects(template.spec, kinds), pods_to_succeed(template, placement, kinds)
    by_objects = objects is not None and finished.objects >= objects
    return by_objects or (needed is not None and finished.pods >= needed)
