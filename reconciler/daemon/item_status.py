"""The status of requests and bursts on EGS's two axes, provisioning and phase (its REST interface)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.core.explain.request_state import state_of_request
from reconciler.daemon.reconcile import PassDecision
from reconciler.daemon.status import PlacementStatus, placement_status
from reconciler.errors import Bug
from reconciler.model.placement import Phase, Placement
from reconciler.model.plan import Suppressed
from reconciler.model.request import Provisioning, RequestRecord
from reconciler.model.rollout import EngineState
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, count, join_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCondition:
    """The condition of an item's deployment in one cluster: True, False, or Unknown without a report."""

    type: str
    """Available for each placement, Provisioned for what waits, Failed or Complete for what is over."""
    status: str
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStatus:
    """The status of an item on EGS's two axes, and in words."""

    provisioning: Provisioning
    """Whether the item has its GPUs."""
    phase: Phase
    """The phase of the workload."""
    message: str
    updated_at: datetime
    conditions: tuple[ItemCondition, ...] = ()


def burst_status(decision: PassDecision, placement: Placement) -> ItemStatus:
    """Tell how one burst stands."""
    status = placement_status(decision, placement)
    number = count(placement.replicas, "replica")
    plain = f"{number} on {placement.where} until {format_time(placement.expires_at)}"
    return ItemStatus(
        provisioning=status.provisioning,
        phase=_phase(status),
        message=as_clause(status.message) or plain,
        updated_at=_since(status),
        conditions=(_condition(status),),
    )


def request_status(decision: PassDecision, record: RequestRecord, held: Sequence[Suppressed]) -> ItemStatus:
    """Return the status of a request; `held` are its suppressed changes."""
    state = state_of_request(record, decision.inputs, held)
    parts = [placement_status(decision, placement) for placement in state.placements]
    where = join_names(placement.cluster for placement in state.placements) or record.cluster
    ends = f" until {format_time(state.ends_at)}" if state.ends_at is not None else ""
    plain = f"on {where}{ends}" if where else "it waits for its first placement"
    return ItemStatus(
        provisioning=state.provisioning,
        phase=state.phase,
        message=state.message or plain,
        updated_at=max([state.updated_at if record.ended is None else record.ended.at, *map(_since, parts)]),
        conditions=(*_request_conditions(record, held), *(_condition(part) for part in parts)),
    )


def unknown_status(subject: Placement | RequestRecord, bug: Bug) -> ItemStatus:
    """Make the status of an item that an unforeseen exception leaves unknown."""
    return ItemStatus(
        provisioning=Provisioning.PENDING, phase=Phase.PENDING, message=bug.summary, updated_at=subject.changed_at
    )


def _phase(part: PlacementStatus) -> Phase:
    """Return the phase; a placement given up by its engine has failed until its revert (docs/reference/egs.md, R18)."""
    return Phase.FAILED if part.engine is EngineState.FAILED else part.phase


def _since(part: PlacementStatus) -> datetime:
    return max(part.placement.changed_at, part.unhealthy_since or part.placement.changed_at)


def _request_conditions(record: RequestRecord, held: Sequence[Suppressed]) -> Iterator[ItemCondition]:
    """Tell the end of a request, or why it waits; the times are those of its record in git."""
    if record.ended is not None:
        failed = record.ended.status is Provisioning.FAILED
        yield ItemCondition(
            type="Failed" if failed else "Complete",
            status="True",
            reason="PlacementFailed" if failed else "Succeeded" if record.ended.succeeded else "Ended",
            message=record.ended.message,
            since=record.ended.at,
        )
        return
    for suppressed in held:
        yield ItemCondition(
            type="Provisioned",
            status="False",
            reason=suppressed.reason.value,
            message=suppressed.message,
            since=record.changed_at,
        )


def _condition(part: PlacementStatus) -> ItemCondition:
    placement, phase = part.placement, _phase(part)
    works = {Phase.RUNNING: "True", Phase.FAILED: "False"}.get(phase, "Unknown")
    message = as_clause(part.message) or f"{count(placement.replicas, 'replica')}, {phase.value.lower()}"
    return ItemCondition(
        type="Available",
        status=works,
        reason=(part.engine or phase).value,
        message=f"{placement.cluster}: {message}",
        since=_since(part),
    )
