"""How what is listed by name stands, on EGS's two axes (its REST interface): requests and bursts alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.core.explain.request_state import state_of_request
from reconciler.daemon.reconcile import View
from reconciler.daemon.status import PlacementStatus, placement_status
from reconciler.model.placement import Phase, Placement
from reconciler.model.plan import Suppressed
from reconciler.model.request import Provisioning, RequestRecord
from reconciler.model.rollout import EngineState
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, count, join_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCondition:
    """Whether an item's deployment in one cluster works: True, False, or Unknown while nobody says."""

    status: str
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStatus:
    """How an item stands on EGS's two axes, and in words."""

    provisioning: Provisioning
    """Whether it has its GPUs."""
    phase: Phase
    """The phase of the workload."""
    message: str
    updated_at: datetime
    conditions: tuple[ItemCondition, ...] = ()


def burst_status(view: View, placement: Placement) -> ItemStatus:
    """Tell how one burst stands."""
    status = placement_status(view, placement)
    number = count(placement.replicas, "replica")
    plain = f"{number} on {placement.where} until {format_time(placement.expires_at)}"
    return ItemStatus(
        provisioning=status.provisioning,
        phase=_phase(status),
        message=as_clause(status.message) or plain,
        updated_at=_since(status),
        conditions=(_condition(status),),
    )


def request_status(view: View, record: RequestRecord, held: Sequence[Suppressed]) -> ItemStatus:
    """Tell how a request stands; `held` is what the pass held back of it."""
    state = state_of_request(record, view, held)
    parts = [placement_status(view, placement) for placement in state.placements]
    where = join_names(placement.cluster for placement in state.placements) or record.cluster
    ends = f" until {format_time(state.ends_at)}" if state.ends_at is not None else ""
    plain = f"on {where}{ends}" if where else "it waits for its first placement"
    return ItemStatus(
        provisioning=state.provisioning,
        phase=state.phase,
        message=state.message or plain,
        updated_at=max([state.updated_at if record.ended is None else record.ended.at, *map(_since, parts)]),
        conditions=tuple(_condition(part) for part in parts),
    )


def _phase(part: PlacementStatus) -> Phase:
    """Tell the phase; what its engine has given up has failed, until a pass reverts it (docs/egs.md, R18)."""
    return Phase.FAILED if part.engine is EngineState.FAILED else part.phase


def _since(part: PlacementStatus) -> datetime:
    return max(part.placement.changed_at, part.unhealthy_since or part.placement.changed_at)


def _condition(part: PlacementStatus) -> ItemCondition:
    placement, phase = part.placement, _phase(part)
    works = {Phase.RUNNING: "True", Phase.FAILED: "False"}.get(phase, "Unknown")
    message = as_clause(part.message) or f"{count(placement.replicas, 'replica')}, {phase.value.lower()}"
    return ItemCondition(
        status=works,
        reason=(part.engine or phase).value,
        message=f"{placement.cluster}: {message}",
        since=_since(part),
    )
