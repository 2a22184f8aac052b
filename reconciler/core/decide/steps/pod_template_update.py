"""What a template has come to make of each replica reaches what stands of it, where that goes whole.

MultiKueue creates a set in the worker cluster once and never raises its number afterwards (docs/reference/groups.md,
"MultiKueue"). One copy never gets another number of replicas here either, so that no resize would take such a change
up.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.capacity.gangs import GangWorkload, more, wholes
from reconciler.core.capacity.pod_needs import PodRequirements, PodSet
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.candidates.finder import CandidateFinder, Offer
from reconciler.core.decide.candidates.gang import whole
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.cluster_order import candidate_of
from reconciler.core.ledger import lifecycle
from reconciler.model.capacity import ReplicaShape
from reconciler.model.placement import Placement
from reconciler.model.plan import Refusal, Resize, Suppressed
from reconciler.text.wording import clause, count


def take_up_other_pods(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Resize what stands of a template by another number of pods a replica, where these fit beside it."""
    desired, grouped = inputs.desired, wholes(inputs.desired)
    for workload in working_plan.placed() if grouped else ():
        if workload not in grouped or workload not in desired.policies:
            continue
        template = desired.templates[workload]
        for placement in working_plan.of(workload):
            if placement.template_version in {"", lifecycle.version(template)}:
                continue
            goes_whole = whole(inputs, workload, placement)
            shape = goes_whole.shape if goes_whole is not None else None
            if goes_whole is not None and shape is not None and _differs(placement, shape):
                _resize(inputs, working_plan, finder, placement, into=(goes_whole, shape))


def _differs(placement: Placement, shape: ReplicaShape) -> bool:
    """Tell whether a replica has come to be of another number of pods; other pods are taken up by the next resize."""
    return placement.shape.group_size != shape.group_size


def _resize(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    into: tuple[GangWorkload, ReplicaShape],
) -> None:
    goes_whole, shape = into
    before, after = placement.shape.group_size, shape.group_size
    detail = f"its template makes {count(after, 'pod')} of a replica, {before} before"
    there = _there(placement)
    answer = _room(inputs, finder, placement, goes_whole, there) if after > before else None
    if isinstance(answer, Refusal):
        working_plan.suppress(
            Suppressed(
                workload=placement.workload,
                reason=answer.reason,
                message=f"{detail}; what it has on {placement.cluster} stays: {clause(answer.message)}",
                replicas=placement.replicas,
                until=finder.next_change(placement.workload),
                refusals=(answer,),
            )
        )
        return
    if answer is not None:
        gang_placement.take(finder, placement.cluster, more(goes_whole.of(placement.replicas), there))
    resized = lifecycle.renewed(placement, inputs.desired, inputs.now, placement.replicas)
    working_plan.change(Resize(before=placement, after=replace(resized, shape=shape.recorded), detail=detail))


def _there(placement: Placement) -> PodRequirements:
    """Return what the pods take that stand."""
    pods = placement.replicas * placement.shape.group_size
    return PodRequirements(main=PodSet(shape=replace(placement.shape, group_size=1), replicas=pods))


def _room(
    inputs: PassInput,
    finder: CandidateFinder,
    placement: Placement,
    goes_whole: GangWorkload,
    there: PodRequirements,
) -> Offer | Refusal:
    """Say whether what is there has room for all of what it is to become."""
    order = inputs.reach.order(placement.workload)
    candidate = replace(candidate_of(order, placement.cluster), limit=None)
    replicas = placement.replicas
    workload = placement.workload
    return gang_placement.assess(inputs, finder, workload, candidate, goes_whole, replicas=replicas, there=there)
