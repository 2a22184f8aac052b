"""GPRs, wait times and the inventory of GPU nodes (docs/reference/gprs.md)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from starlette.concurrency import run_in_threadpool

from reconciler.access.rights import AccessRole, Caller, has_role
from reconciler.api import egs_openapi, orders, paging
from reconciler.api.backend import Backend
from reconciler.api.body import answer, documents, read_validated
from reconciler.api.gpr_document import gpr_document, inventory_document, wait_document
from reconciler.api.lookup import readable_workspaces
from reconciler.api.models import Answered, GprDocument, GprList, InventoryDocument, WaitDocument, Written
from reconciler.api.redact import redact
from reconciler.api.refusal import ErrorDetail, HttpError, error_responses
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.core.decide.state.order import Order
from reconciler.core.explain.gprs import GprView, gpr_views
from reconciler.core.explain.inventory import build_inventory
from reconciler.core.explain.wait_time import GpuDemand, estimate_waits
from reconciler.core.schema import validation_findings
from reconciler.core.schema.egs.gpr_bodies import ReleaseBody, WaitBody
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.gpr import GprState
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.request import Verb
from reconciler.model.workload import Json
from reconciler.text.findings import Finding


def read_gpu_demand(body: Json) -> GpuDemand | tuple[Finding, ...]:
    """Read the body of a wait-time call; returns all problems of an invalid one."""
    try:
        asked = WaitBody.model_validate(body)
    except ValidationError as error:
        return validation_findings(error, WaitBody)
    return GpuDemand(
        workspace=WorkspaceName(asked.workspace),
        ask=asked.ask(),
        priority=asked.priority,
        clusters=tuple(dict.fromkeys(map(ClusterName, asked.named))),
        dedicated=asked.dedicated_nodes,
    )


def read_release(body: Json) -> str | tuple[Finding, ...]:
    """Read the id of the GPR to release; returns all problems of an invalid body."""
    try:
        return ReleaseBody.model_validate(body).gpr_id
    except ValidationError as error:
        return validation_findings(error, ReleaseBody)


PATH = "/api/v1/gpr"
_READ = error_responses(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
_BODY = error_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
_RELEASE = error_responses(HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.INTERNAL_SERVER_ERROR)
_OVER = frozenset({GprState.EARLY_RELEASED, GprState.COMPLETED, GprState.FAILED, GprState.DRAINING})
_HAS_GPUS = frozenset({GprState.PENDING, GprState.PROVISIONING, GprState.SUCCESSFUL})


class GprFilters(BaseModel):
    """The filters and the page of a list call."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)

    workspace_name: str = Field("", max_length=63, description="Only those of this workspace.")
    cluster: str = Field("", max_length=63, description="Only those that have GPUs on this cluster.")
    provisioning_status: GprState | None = Field(None, description="Only those in this state.")
    limit: int = Field(paging.LIMIT, ge=1, le=paging.MOST, description="Entries of a page.")
    continue_: str = Field(
        "", alias="continue", max_length=400, description="metadata.continue of the page before; nothing for the first."
    )


class _GprCache:
    """Caches the GPRs of the newest snapshot, which is read far more often than it changes."""

    def __init__(self) -> None:
        self._last: tuple[Snapshot, tuple[GprView, ...]] | None = None

    def of(self, snapshot: Snapshot) -> tuple[GprView, ...]:
        """List the GPRs of a snapshot, the most urgent first."""
        last = self._last
        if last is None or last[0] is not snapshot:
            last = self._last = snapshot, gpr_views(snapshot.decision.inputs, snapshot.decision.plan, BUGS.note)
        return last[1]


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the routes."""
    routes = guarded_router(callers)
    cache = _GprCache()

    @routes.get(PATH, operation_id="listGprs", response_model=GprList, responses=_READ, tags=["gprs"])
    def listed(request: Request, filters: Annotated[GprFilters, Query()]) -> dict[str, Any]:
        """List GPRs, those with the highest priority first, then the oldest."""
        if filters.workspace_name:
            require_role(caller_of(request), AccessRole.VIEWER, WorkspaceName(filters.workspace_name))
        snapshot = backend.snapshot()
        gpr_views = [gpr_view for gpr_view in cache.of(snapshot) if _matches(gpr_view, filters, caller_of(request))]
        start = paging.read_offset(filters.continue_)
        end = start + filters.limit
        following = paging.offset_token(end) if end < len(gpr_views) else ""
        caller, now = caller_of(request), snapshot.decision.inputs.now
        page = documents(
            gpr_views[start:end],
            lambda gpr_view: redact(gpr_document(gpr_view, now), snapshot, caller),
            lambda gpr_view: gpr_view.id,
        )
        return {
            **answer(page),
            "metadata": {"total": len(gpr_views), "limit": filters.limit, "continue": following},
        }

    @routes.get(
        f"{PATH}/{{gpr_id}}",
        operation_id="getGpr",
        response_model=Answered[GprDocument],
        responses=error_responses(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
        tags=["gprs"],
    )
    def one(request: Request, gpr_id: str) -> dict[str, Any]:
        """Read one GPR."""
        snapshot, caller = backend.snapshot(), caller_of(request)
        return answer(
            redact(
                gpr_document(_find_gpr(cache.of(snapshot), caller, gpr_id), snapshot.decision.inputs.now),
                snapshot,
                caller,
            )
        )

    @routes.put(
        PATH,
        operation_id="releaseGpr",
        response_model=Answered[Written],
        responses={**_BODY, **_RELEASE},
        openapi_extra=egs_openapi.RELEASE,
        tags=["gprs"],
    )
    async def release(request: Request) -> dict[str, Any]:
        """Give the GPUs of a placement back now: a burst is reverted and held back, a request is ended."""
        caller = caller_of(request)
        gpr_id = await read_validated(read_release, request)
        gpr_views = await run_in_threadpool(cache.of, backend.snapshot())
        gpr = _find_gpr(gpr_views, caller, gpr_id)
        require_role(caller, AccessRole.EDITOR, gpr.workspace)
        order = Order(
            number=0,
            verb=Verb.RELEASE,
            name=_placement_to_release(gpr, gpr_views),
            workspace=gpr.workspace,
            author=orders.author(caller),
            within=None,
        )
        receipt = await orders.execute(backend.queue, order)
        written = {"name": order.name, "workspaceName": gpr.workspace, "commit": receipt.commit}
        return answer(written, message="GPR released successfully")

    @routes.post(
        f"{PATH}/waittime",
        operation_id="estimateWaitTime",
        response_model=Answered[list[WaitDocument]],
        responses=_BODY,
        openapi_extra=egs_openapi.WAIT,
        tags=["gprs"],
    )
    async def wait_time(request: Request) -> dict[str, Any]:
        """Estimate when GPUs can be had on each cluster, the shortest wait first, and what that depends on."""
        asking = await read_validated(read_gpu_demand, request)
        require_role(caller_of(request), AccessRole.VIEWER, asking.workspace)
        snapshot = backend.snapshot()
        wait_estimates = await run_in_threadpool(
            estimate_waits, asking, snapshot.decision.inputs, snapshot.decision.plan, BUGS.note
        )
        caller = caller_of(request)
        return answer(
            documents(
                wait_estimates,
                lambda estimate: redact(wait_document(estimate), snapshot, caller),
                lambda estimate: f"cluster {estimate.cluster}",
            )
        )

    @routes.get(
        "/api/v1/inventory/list",
        operation_id="listInventory",
        response_model=Answered[InventoryDocument],
        tags=["gprs"],
    )
    def stock(request: Request) -> dict[str, Any]:
        """List the GPU nodes of the clusters of the caller's workspaces, and the GPUs that placements have there."""
        within = readable_workspaces(caller_of(request))
        gpu_inventory = build_inventory(
            backend.snapshot().decision.inputs, None if within is None else frozenset(within), BUGS.note
        )
        return answer(inventory_document(gpu_inventory))

    return routes


def _matches(gpr: GprView, filters: GprFilters, caller: Caller) -> bool:
    return (
        filters.workspace_name in ("", gpr.workspace)
        and filters.cluster in ("", gpr.cluster)
        and filters.provisioning_status in (None, gpr.state)
        and has_role(caller, AccessRole.VIEWER, gpr.workspace)
    )


def _find_gpr(gprs_known: tuple[GprView, ...], caller: Caller, gpr_id: str) -> GprView:
    """Find a GPR by id; raises HttpError 404 for one that the caller may not see."""
    for gpr in gprs_known:
        if gpr.id == gpr_id and has_role(caller, AccessRole.VIEWER, gpr.workspace):
            return gpr
    hint = f"GET {PATH} lists them; `overspill history` has the bursts that have ended, with when, why and by whom"
    raise HttpError(HTTPStatus.NOT_FOUND, "GPR not found", hint=hint)


def _placement_to_release(gpr: GprView, gprs_known: tuple[GprView, ...]) -> str:
    """Name the placement or request whose end frees the GPUs of a GPR.

    Raises HttpError 409 for a GPR without GPUs, and for one whose workload has GPUs on several clusters.
    """
    if gpr.cluster is None or gpr.state not in _HAS_GPUS:
        raise _not_releasable(f"earlyRelease needs GPUs, and the GPR is {gpr.state.value}", gpr)
    if gpr.placement is not None and not gpr.workload.request:
        return gpr.placement
    if sum(gpr_view.workload == gpr.workload and gpr_view.cluster is not None for gpr_view in gprs_known) > 1:
        raise _not_releasable(f"{gpr.workload} has GPUs on several clusters, and gives them back together", gpr)
    return gpr.name


def _not_releasable(message: str, gpr: GprView) -> HttpError:
    delete = f"DELETE /api/v1/workload-placement/{gpr.name}"
    if gpr.state not in _OVER:
        way_out = f"{delete} ends a request, wherever it is and whether or not it waits"
    elif gpr.workload.request:
        way_out = f"its GPUs are given back already; {delete} frees its name"
    else:
        way_out = f"its GPUs are given back already; `overspill history {gpr.workload}` tells its life"
    return HttpError(
        HTTPStatus.CONFLICT,
        "Field update not allowed",
        hint=way_out,
        detail=ErrorDetail(key="InvalidUpdate", text=message, reason="Conflict", details="Modification restricted"),
    )
