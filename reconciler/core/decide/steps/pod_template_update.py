"""Pod template updates: gangs whose template makes another number of pods of a replica are resized.

MultiKueue creates a gang in the worker cluster once and never scales it afterwards (docs/background/upstream/groups.md,
"MultiKueue"). A single copy never gets another number of replicas here either, so that no other resize would take such
a change up.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from reconciler.core.capacity.gangs import GangWorkload, additional_requirements, gang_workloads
from reconciler.core.capacity.gpu_slices import recorded_shape
from reconciler.core.capacity.pod_requirements import PodRequirements, PodSet
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.gate import update_waits
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.cluster_order import candidate_of
from reconciler.core.ledger import lifecycle
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Refusal, Suppressed
from reconciler.text.wording import as_clause, count


def update_pod_templates(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> None:
    """Resize the placements whose replicas have come to be of another number of pods, where the new pods fit."""
    for workload in sorted(gang_workloads(inputs.desired)):
        if workload in inputs.desired.policies and working_plan.of(workload):
            working_plan.decide(workload, partial(_update, inputs, working_plan, finder, workload))


def _update(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId) -> None:
    template = inputs.desired.templates[workload]
    for placement in working_plan.of(workload):
        if placement.template_version in {"", lifecycle.file_version(template)}:
            continue
        unit = unit_of_workload(inputs, workload, placement)
        if unit.keeps_version:
            continue
        if unit.gang is not None and unit.shape is not None and _differs(placement, unit.shape):
            _resize(inputs, working_plan, finder, placement, into=(unit.gang, unit.shape))


def _differs(placement: Placement, shape: ReplicaShape) -> bool:
    """Tell whether a replica is of another number of pods; any other change is taken up by the next resize."""
    return placement.shape.group_size != shape.group_size


def _resize(
    inputs: PassInput,
    working_plan: WorkingPlan,
    finder: CandidateFinder,
    placement: Placement,
    *,
    into: tuple[GangWorkload, ReplicaShape],
) -> None:
    gang, shape = into
    before, after = placement.shape.group_size, shape.group_size
    detail = f"its template makes {count(after, 'pod')} of a replica, {before} before"
    resized = lifecycle.resized_placement(placement, inputs.desired, inputs.now, placement.replicas)
    resize = Change(
        action=Action.RESIZE,
        before=placement,
        after=replace(resized, shape=recorded_shape(shape, inputs.observed.clusters.get(placement.cluster))),
        detail=detail,
    )
    waits = update_waits(inputs, resize)
    if waits is not None:
        working_plan.suppress(waits)
        return
    placed = _placed_pods(placement)
    answer = _room(inputs, finder, placement, gang, placed) if after > before else None
    if isinstance(answer, Refusal):
        working_plan.suppress(
            Suppressed(
                workload=placement.workload,
                reason=answer.reason,
                message=f"{detail}; what it has on {placement.cluster} stays: {as_clause(answer.message)}",
                replicas=placement.replicas,
                until=finder.next_change(placement.workload),
                refusals=(answer,),
            )
        )
        return
    if answer is not None:
        need = additional_requirements(gang.of(placement.replicas), placed)
        gang_placement.take(finder, placement.cluster, need, placement.workload.workspace)
    working_plan.change(resize)


def _placed_pods(placement: Placement) -> PodRequirements:
    """Return the requirements of the pods that stand."""
    pods = placement.replicas * placement.shape.group_size
    return PodRequirements(main=PodSet(shape=replace(placement.shape, group_size=1), replicas=pods))


def _room(
    inputs: PassInput,
    finder: CandidateFinder,
    placement: Placement,
    gang: GangWorkload,
    placed: PodRequirements,
) -> Candidate | Refusal:
    """Say whether the cluster has room for the gang as its template makes it now, beside the pods that stand."""
    order = finder.order(placement.workload)
    candidate = candidate_of(order, placement.cluster)._replace(limit=None)
    replicas = placement.replicas
    workload = placement.workload
    return gang_placement.assess(inputs, finder, workload, candidate, gang, replicas=replicas, placed=placed)
