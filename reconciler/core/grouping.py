"""What a placement takes that went out whole, and which groups its pods run in."""

from __future__ import annotations

from reconciler.core.enrolling import Enrolment
from reconciler.core.needs import Gang, Needs
from reconciler.core.wholes import whole
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired


def gangs_of(desired: Desired, enrolment: Enrolment | None, placement: Placement) -> tuple[Gang, ...]:
    """Return the groups of what a placement deploys, as far as what asks for it is still there; none of other pods."""
    workload = placement.workload
    if workload.request:
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        return entry.pods.gangs if entry is not None else ()
    template = desired.templates.get(workload)
    found = whole(template, desired.kinds) if template is not None and workload in desired.policies else None
    return found.gangs(placement.replicas) if found is not None else ()


def needs_there(desired: Desired, enrolment: Enrolment | None, placement: Placement) -> Needs | None:
    """Return what a placement takes that went out whole; None where its replicas are all there is to it."""
    workload = placement.workload
    if workload.request:
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        return entry.needs if entry is not None else None
    template = desired.templates.get(workload)
    found = whole(template, desired.kinds) if template is not None else None
    return found.of(placement.replicas) if found is not None else None
