"""The state of the fleet and its history, as ``overspill status`` and ``overspill history`` print them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from reconciler.api import paging
from reconciler.api.asking import OneAtATime, asked
from reconciler.api.backend import Backend
from reconciler.api.body import answer
from reconciler.api.lookup import readable_workspaces
from reconciler.api.models import Answered, FleetDocument, HistoryPage
from reconciler.api.redact import redact
from reconciler.api.refusal import HttpError, error_responses
from reconciler.api.security.callers import Callers, caller_of, guarded_router
from reconciler.api.snapshot_cache import SnapshotCache
from reconciler.daemon.answers.history import HistorySelection
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.snapshot import Snapshot
from reconciler.daemon.status import FleetStatus, status
from reconciler.model.ids import WorkspaceName
from reconciler.text.timestamps import UTC_PATTERN, parse_time
from reconciler.text.to_json import json_value


class HistoryFilters(BaseModel):
    """The filters and the page of the history."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workload: str = Field("", max_length=200, description="Only those of this workload, or the placement of this name.")
    since: str = Field(
        "",
        pattern=f"^$|{UTC_PATTERN}",
        description="Without those that ended before: a moment in UTC, 2026-11-20T10:15:00Z.",
    )
    limit: int = Field(paging.LIMIT, ge=1, le=paging.MOST, description="Entries of a page.")
    continue_: str = Field(
        "", alias="continue", max_length=400, description="metadata.continue of the page before; nothing for the first."
    )


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the routes."""
    routes = guarded_router(callers)
    cache, busy = SnapshotCache(lambda snapshot: status(snapshot.decision)), OneAtATime()

    @routes.get("/api/v1/status", operation_id="getStatus", response_model=Answered[FleetDocument], tags=["fleet"])
    def fleet_status(request: Request) -> dict[str, Any]:
        """Show the demand of every workload, every placement and every cluster, as the newest pass saw them.

        A caller without a role for all workspaces sees what is of its own; problems of files and policies' budgets are
        for callers with such a role. That nothing is written, since branches are lost, is for everybody.
        """
        snapshot, within = backend.snapshot(), readable_workspaces(caller_of(request))
        whole = cache.of(snapshot)
        visible = whole if within is None else status_within(whole, snapshot, within)
        return answer(redact(json_value(visible), snapshot, caller_of(request)))

    @routes.get(
        "/api/v1/history",
        operation_id="getHistory",
        response_model=HistoryPage,
        responses=error_responses(HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY),
        tags=["fleet"],
    )
    def history(request: Request, filters: Annotated[HistoryFilters, Query()]) -> dict[str, Any]:
        """List past and present placements with their commits and reasons, the one that began last first."""
        since = _moment(filters.since)
        start = paging.read_offset(filters.continue_)
        end, within = start + filters.limit, readable_workspaces(caller_of(request))
        caller = caller_of(request)
        with busy.of(caller), asked(backend.snapshot(), caller):
            past = backend.answers.history(
                lambda snapshot: HistorySelection.of(
                    snapshot.decision, filters.workload, since=since, limit=end, within=within
                )
            )
        for bug in past.bugs:
            BUGS.note(bug)
        page = redact(json_value(past.placements[start:]), backend.snapshot(), caller_of(request))
        following = {"limit": filters.limit, "continue": paging.offset_token(end) if past.more else ""}
        return {**answer(page), "metadata": following}

    return routes


def _moment(text: str) -> Any:
    """Read a moment of a query, None where there is none."""
    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), hint="try 2026-11-20T10:15:00Z") from error


def status_within(fleet: FleetStatus, snapshot: Snapshot, workspaces: Collection[WorkspaceName]) -> FleetStatus:
    """Leave out what is of other workspaces, and what is of no single one."""
    described = snapshot.decision.inputs.desired.workspaces
    own = [described[name] for name in workspaces if name in described]
    clusters = {cluster for workspace in own for cluster in workspace.everywhere}
    return replace(
        fleet,
        workloads=tuple(row for row in fleet.workloads if row.workload.workspace in workspaces),
        requests=tuple(row for row in fleet.requests if row.request.workspace in workspaces),
        placements=tuple(row for row in fleet.placements if row.placement.workload.workspace in workspaces),
        leaving=tuple(row for row in fleet.leaving if snapshot.owners.get(row.name) in workspaces),
        clusters=tuple(row for row in fleet.clusters if row.cluster in clusters),
        budgets=tuple(row for row in fleet.budgets if row.owner.workspace in workspaces),
        problems=snapshot.decision.shared_problems,
    )
