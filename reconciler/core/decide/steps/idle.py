"""Idle placements: they end when their GPUs have been unused for longer than their terms allow."""

from __future__ import annotations

from functools import partial
from itertools import chain

from reconciler.core.decide.candidates.gpr_terms import terms
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import revert
from reconciler.core.observe.demand import unseen
from reconciler.core.observe.gpu_use import IdleTerm
from reconciler.model.capacity import ClusterObservation
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import Placement
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time


def end_idle(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Revert placements that have been unused for as long as their terms say, and wake when others will have been.

    EGS counts from when the GPUs were last used. A placement that has just changed is not idle yet, and the GPUs of a
    cluster that is unseen may be in use again.
    """
    for cluster, seen in sorted(inputs.observed.clusters.items()):
        if not seen.unused or unseen(inputs.desired.fleet, inputs.observed, cluster, inputs.now):
            continue
        for placement in working_plan.on(cluster):
            working_plan.decide(placement.workload, partial(_end_idle, inputs, working_plan, placement, seen))


def idle_terms(inputs: PassInput) -> tuple[IdleTerm, ...]:
    """List the placements that are to end when their GPUs are idle, and that have stood for that long.

    Where no terms ask for it, it costs nothing.
    """
    if not _any_asks(inputs):
        return ()
    return tuple(
        IdleTerm(cluster=cluster, placement=placement.name, idle=own.idle, changed_at=placement.changed_at)
        for cluster, seen in sorted(inputs.observed.clusters.items())
        if seen.gpu_pods
        for placement in inputs.ledger.placements.on(cluster).placements
        if placement.name in seen.gpu_pods
        and (own := terms(placement.workload, cluster, inputs)).enforce_idle
        and own.idle is not None
        and inputs.now - placement.changed_at >= own.idle
    )


def _any_asks(inputs: PassInput) -> bool:
    asking = (template.terms for template in inputs.desired.gpr_templates.values())
    requested = (record.request.terms for record in inputs.requests.values())
    return any(own.enforce_idle for own in chain(asking, requested))


def _end_idle(inputs: PassInput, working_plan: WorkingPlan, placement: Placement, seen: ClusterObservation) -> None:
    own, unused = terms(placement.workload, seen.cluster, inputs), seen.unused.get(placement.name)
    if unused is None or own.idle is None or not own.enforce_idle:
        return
    since = max(unused, placement.changed_at)
    if inputs.now - since < own.idle:
        working_plan.wake(since + own.idle)
        return
    allowed = format_duration(own.idle)
    detail = f"its GPUs have not been used since {format_time(since)}, and {allowed} are allowed"
    revert(inputs, working_plan, placement, EndReason.IDLE, detail)
