"""What of a workload goes whole, what a placement of it takes, and which groups its pods run in."""

from __future__ import annotations

from reconciler.core.charted import charted
from reconciler.core.grouped import wholes
from reconciler.core.needs import Gang, Needs
from reconciler.core.situation import Situation
from reconciler.core.wholes import Whole
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement


def whole(situation: Situation, workload: WorkloadId, placement: Placement | None = None) -> Whole | None:
    """Return what a burst takes if it goes whole; None where each pod is for itself, and for requests.

    What nothing but its pods tells of is known by the demand for it, or else by a `placement` that stands.
    """
    template, kinds = situation.desired.templates.get(workload), situation.desired.kinds
    if template is None:
        return None
    demand = situation.demands.get(workload)
    return wholes(situation.desired).get(workload) or charted(
        template, kinds, demand if isinstance(demand, Demand) else None, placement
    )


def gangs_of(situation: Situation, placement: Placement) -> tuple[Gang, ...]:
    """Return the groups of what a placement deploys, as far as what asks for it is still there; none of other pods."""
    workload, enrolment = placement.workload, situation.enrolment
    if workload.request:
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        return entry.pods.gangs if entry is not None else ()
    found = whole(situation, workload, placement) if workload in situation.desired.policies else None
    return found.gangs(placement.replicas) if found is not None else ()


def needs_there(situation: Situation, placement: Placement) -> Needs | None:
    """Return what a placement takes that went out whole; None where its replicas are all there is to it."""
    workload, enrolment = placement.workload, situation.enrolment
    if workload.request:
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        return entry.needs if entry is not None else None
    found = whole(situation, workload, placement)
    return found.of(placement.replicas) if found is not None else None
