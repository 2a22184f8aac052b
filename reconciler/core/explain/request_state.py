"""The state of a request on EGS's two axes: its GPUs, and its pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.state.enrolment import request_end
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.provisioning import provisioning_of_request
from reconciler.core.ledger import lifecycle
from reconciler.core.workloads import replica_count
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Phase, Placement
from reconciler.model.plan import Plan, Suppressed
from reconciler.model.request import Provisioning, RequestRecord
from reconciler.model.rollout import EngineState
from reconciler.text.wording import count

_WORST = (Phase.FAILED, Phase.PENDING, Phase.RUNNING, Phase.SUCCEEDED, Phase.COMPLETED)
"""Phases from the worst on: the worst of several placements is that of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """The state of one request."""

    record: RequestRecord
    provisioning: Provisioning
    phase: Phase
    message: str
    placements: tuple[Placement, ...]
    # The placements that it asks for.
    wanted: int
    # The end of its time; None before its start.
    ends_at: datetime | None
    # The last change of it in git.
    updated_at: datetime


def suppressed_by_request(plan: Plan) -> Mapping[WorkloadId, tuple[Suppressed, ...]]:
    """Group the suppressed changes of a plan by request."""
    by_workload: defaultdict[WorkloadId, list[Suppressed]] = defaultdict(list)
    for suppressed in plan.suppressed:
        if suppressed.workload.request:
            by_workload[suppressed.workload].append(suppressed)
    return {workload: tuple(held) for workload, held in by_workload.items()}


def state_of_request(record: RequestRecord, inputs: PassInput, held: Sequence[Suppressed] = ()) -> RequestState:
    """Return the state of a request in the ledger; `held` are its suppressed changes."""
    placements = inputs.ledger.placements.of(record.workload).placements
    wanted = _wanted(record, placements, inputs)
    return RequestState(
        record=record,
        provisioning=provisioning_of_request(record, placements, inputs, wanted=wanted, held=bool(held)),
        phase=_phase(record, placements, inputs),
        message=_message(record, placements, wanted, inputs, held),
        placements=placements,
        wanted=wanted,
        ends_at=request_end(record, inputs.desired),
        updated_at=max([record.changed_at, *(placement.changed_at for placement in placements)]),
    )


def provisioning_state(record: RequestRecord, inputs: PassInput, held: Sequence[Suppressed] = ()) -> Provisioning:
    """Return the state of a request's GPUs alone, for those who count thousands of them."""
    placements = inputs.ledger.placements.of(record.workload).placements
    wanted = _wanted(record, placements, inputs)
    return provisioning_of_request(record, placements, inputs, wanted=wanted, held=bool(held))


def _wanted(record: RequestRecord, placements: Sequence[Placement], inputs: PassInput) -> int:
    """Count the placements that a request asks for."""
    missing = inputs.enrolment.missing_placements(record.workload, len(placements))
    return len(placements) + missing


def placement_phase(placement: Placement, inputs: PassInput) -> Phase:
    """Return the phase of one placement; one that its engine has given up has failed (docs/reference/egs.md, R18)."""
    ailment = inputs.rollouts.ailing.get(placement.path)
    if ailment is not None and ailment.state is EngineState.FAILED:
        return Phase.FAILED
    seen = inputs.observed.clusters.get(placement.cluster)
    bound = replica_count.bound_replicas(placement, seen)
    return lifecycle.phase(placement, bound, well=gang_health.is_healthy(inputs, placement))


def _phase(record: RequestRecord, placements: Sequence[Placement], inputs: PassInput) -> Phase:
    if record.ended is not None:
        if record.ended.succeeded:
            return Phase.SUCCEEDED
        return Phase.FAILED if record.ended.status is Provisioning.FAILED else Phase.COMPLETED
    phases = {placement_phase(placement, inputs) for placement in placements}
    return next((phase for phase in _WORST if phase in phases), Phase.PENDING)


def _message(
    record: RequestRecord,
    placements: Sequence[Placement],
    wanted: int,
    inputs: PassInput,
    held: Sequence[Suppressed],
) -> str:
    """Describe the parts of the state that the two axes leave out."""
    if record.ended is not None:
        return record.ended.message
    parts = [f"on {len(placements)} of {count(wanted, 'cluster')}"] if placements and wanted > 1 else []
    ailing = inputs.rollouts.ailing
    for placement in placements:
        ailment = ailing.get(placement.path)
        why = gang_health.describe_partial_gang(inputs, placement) or (ailment.message if ailment is not None else "")
        if why:
            parts.append(f"{placement.cluster}: {why}")
    parts += [f"{suppressed.reason}: {suppressed.message}" for suppressed in held]
    return "; ".join(parts)
