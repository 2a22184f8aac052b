"""The unit and the gang of a workload, the requirements of its placements, and the groups of their pods."""

from __future__ import annotations

from reconciler.core.capacity.chart_gangs import chart_gang
from reconciler.core.capacity.gangs import GangWorkload, additional_requirements, gang_workloads
from reconciler.core.capacity.pod_requirements import Gang, PodRequirements
from reconciler.core.capacity.units import PlacementUnit, unit_of
from reconciler.core.decide.state.pass_input import PassInput
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
    domain = policy.required_domain if policy is not None else ""
    return gang.within(domain) if domain and gang is not None else gang


def unit_of_workload(inputs: PassInput, workload: WorkloadId, placement: Placement | None = None) -> PlacementUnit:
    """Return what of a burst is placed together; `placement` is as for `gang_of`.

    A workload without a template has single replicas: nothing of it is placed any more. Requests are no bursts, and go
    where they say.
    """
    template, policy = inputs.desired.templates.get(workload), inputs.desired.policies.get(workload)
    if template is None:
        return PlacementUnit()
    sets = SetDivision.WHOLE if policy is None else policy.sets
    return unit_of(template, gang_of(inputs, workload, placement), sets)


def divided_gang(inputs: PassInput, workload: WorkloadId) -> GangWorkload | None:
    """Return the gang whose groups a policy divides over clusters; None for any other workload."""
    policy = inputs.desired.policies.get(workload)
    if policy is None or policy.sets is SetDivision.WHOLE:
        return None
    unit = unit_of_workload(inputs, workload)
    return unit.gang if unit.is_single else None


def more_requirements(gang: GangWorkload, here: int, more: int) -> PodRequirements:
    """Return what more replicas of a gang take on a cluster beside those `here`, which have their room."""
    needed = gang.of(here + more)
    return additional_requirements(needed, gang.of(here)) if here else needed


def gangs_of(inputs: PassInput, placement: Placement) -> tuple[Gang, ...]:
    """Return the gangs that a placement deploys, while its template or request exists."""
    workload, enrolment = placement.workload, inputs.enrolment
    if workload.request:
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        return entry.pods.gangs if entry is not None else ()
    gang = gang_of(inputs, workload, placement) if workload in inputs.desired.policies else None
    return gang.gangs(placement.replicas) if gang is not None else ()


def placement_needs(inputs: PassInput, placement: Placement) -> PodRequirements | None:
    """Return what a placement takes that went out whole; None where its replicas are all there is to it."""
    workload, enrolment = placement.workload, inputs.enrolment
    if workload.request:
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        return entry.needs if entry is not None else None
    gang = gang_of(inputs, workload, placement)
    return gang.of(placement.replicas) if gang is not None else None
