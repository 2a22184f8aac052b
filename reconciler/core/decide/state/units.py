"""The unit of each workload of a pass: what of it is placed together, and which pods that takes."""

from __future__ import annotations

from reconciler.core.capacity.chart_gangs import chart_gang
from reconciler.core.capacity.gangs import GangWorkload, gang_workloads
from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.capacity.units import PlacementUnit, unit_of
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.engines.deployment import target_namespace
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.policy import SetDivision


def gang_of(inputs: PassInput, workload: WorkloadId, placement: Placement | None = None) -> GangWorkload | None:
    """Return what a burst takes if it goes whole; None where each pod is for itself, and for requests.

    What nothing but its pods tells of is known by the demand for it, or else by a `placement` that stands.
    """
    template, kinds = inputs.desired.templates.get(workload), inputs.desired.kinds
    if template is None:
        return None
    gangs, demand = gang_workloads(inputs.desired), inputs.demands.get(workload)
    demand = demand if isinstance(demand, Demand) else None
    # Most workloads declare no gang, and no pod of theirs tells of one.
    if workload not in gangs and (demand is None or demand.unit is None):
        return None
    gang = gangs.get(workload) or chart_gang(template, kinds, demand, placement)
    policy = inputs.desired.policies.get(workload)
    if gang is None:
        return None
    namespace = target_namespace(template.spec, inputs.desired.workspaces[template.workspace])
    return gang.within(namespace, policy.required_domain if policy is not None else "")


def unit_of_workload(inputs: PassInput, workload: WorkloadId, placement: Placement | None = None) -> PlacementUnit:
    """Return what of a workload is placed together; `placement` is as for `gang_of`.

    An open request knows its unit. A workload without a template has single replicas: nothing of it is placed any more.
    Whether it runs once is in the record of its placement, and what remains of a request stays `apart`.
    """
    enrolled = inputs.enrolment.entries.get(workload)
    if enrolled is not None:
        return enrolled.unit
    template, policy = inputs.desired.templates.get(workload), inputs.desired.policies.get(workload)
    if template is None:
        return PlacementUnit(once=placement is not None and placement.runs_once, apart=workload.request)
    sets = SetDivision.WHOLE if policy is None else policy.sets
    return unit_of(template, gang_of(inputs, workload, placement), sets)


def divided_gang(inputs: PassInput, workload: WorkloadId) -> GangWorkload | None:
    """Return the gang whose groups a policy divides over clusters; None for any other workload."""
    policy = inputs.desired.policies.get(workload)
    if policy is None or policy.sets is SetDivision.WHOLE:
        return None
    return unit_of_workload(inputs, workload).divided_gang


def placement_needs(inputs: PassInput, placement: Placement) -> PodRequirements | None:
    """Return what a placement takes that went out whole; None where its replicas are all that it takes."""
    return unit_of_workload(inputs, placement.workload, placement).needs(placement.replicas)
