"""EGS's REST interface for workload placements (docs/reference/egs.md, "REST: calls"): reads, and orders to the loop.

A write answers once its commit is pushed. A read answers from the newest pass, which holds every answered write.
Problems name the field as it stands in the body: ``helmConfigs[0].chart``, ``steps[1].name``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from reconciler.access.rights import AccessRole, Caller
from reconciler.api import egs_openapi, orders
from reconciler.api.backend import Backend
from reconciler.api.body import answer, read_validated
from reconciler.api.lookup import ItemFilters, find_item, list_items
from reconciler.api.models import Answered, PlacementDocument, PlacementList, Written
from reconciler.api.orders import KEY
from reconciler.api.refusal import HttpError, error_responses
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.api.serialize import ItemSerializer
from reconciler.core.decide.state.order import Order
from reconciler.core.schema import Strict, validation_findings
from reconciler.core.schema.egs.placement import CreateBody, UpdateBody
from reconciler.core.schema.egs.request import RequestDraft, create_draft, update_draft
from reconciler.daemon.orders.order_queue import OrderResult
from reconciler.errors import Problem, Severity
from reconciler.model.ids import WorkspaceName
from reconciler.model.request import Verb
from reconciler.model.workload import Json
from reconciler.text.findings import Finding

_Body = TypeVar("_Body", bound=Strict)


def read_create(body: Json) -> RequestDraft | tuple[Finding, ...]:
    """Read the body of a POST; returns all problems of an invalid one."""
    file = _validate(body, CreateBody)
    return file if isinstance(file, tuple) else _draft_or_errors(*create_draft(file, _flattened_manifests(body)))


def read_update(body: Json) -> RequestDraft | tuple[Finding, ...]:
    """Read the body of a PUT; returns the problems of an invalid one. `fields_set` of the draft names its fields.

    ``name`` and ``workspaceName`` are included, so that a change of either can be refused. ``namespace`` is left out:
    it is ignored (docs/reference/egs.md, R20).
    """
    file = _validate(body, UpdateBody)
    return file if isinstance(file, tuple) else _draft_or_errors(*update_draft(file, _flattened_manifests(body)))


def _validate(body: Json, model: type[_Body]) -> _Body | tuple[Finding, ...]:
    """Validate a body against its schema."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        return validation_findings(error, model)


def _draft_or_errors(draft: RequestDraft, findings: tuple[Finding, ...]) -> RequestDraft | tuple[Finding, ...]:
    """Return the draft, or its errors; warnings alone keep the draft."""
    wrong = tuple(finding for finding in findings if finding.severity is Severity.ERROR)
    return wrong or draft


def _flattened_manifests(body: Json) -> frozenset[int]:
    """Return the indices of manifests in the flattened form (docs/reference/egs.md, R14)."""
    entries = body.get("manifestResources")
    return frozenset(
        index
        for index, entry in enumerate(entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping) and "manifest" not in entry
    )


def fast_route(endpoint: Callable[[Request], Awaitable[Response]], callers: Callers) -> type[APIRoute]:
    """Return the class of a guarded route that skips FastAPI's parameters for calls without an Idempotency-Key.

    Such a call needs nothing but its caller, and FastAPI takes as long to match absent parameters as we take to read
    the body.
    """

    class Alone(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            solved = super().get_route_handler()

            async def handle(request: Request) -> Response:
                if KEY in request.headers:
                    return await solved(request)
                await callers.admit(request)
                return await endpoint(request)

            return handle

    return Alone


PATH = "/api/v1/workload-placement"
_ONE = b'{"statusCode":200,"status":"OK","message":"Success","data":%b}'

Workspace = Annotated[
    str, Query(alias="workspaceName", max_length=63, description="Which workspace's, where several have one so called.")
]
_READ = error_responses(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
_FIND = error_responses(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
_WRITE = error_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the routes."""
    routes = guarded_router(callers)
    _add_write_routes(routes, callers, backend)
    _add_read_routes(routes, backend)
    return routes


def _add_read_routes(routes: APIRouter, backend: Backend) -> None:
    serializer = ItemSerializer(backend.shelf)

    def page(request: Request, filters: ItemFilters) -> Response:
        return list_items(backend.snapshot(), serializer, caller_of(request), filters)

    def one(request: Request, name: str, workspace: str) -> Response:
        snapshot, caller = backend.snapshot(), caller_of(request)
        (text,) = serializer.serialize(snapshot, [find_item(snapshot, caller, name, workspace)], caller)
        return Response(_ONE % text, media_type="application/json")

    @routes.get(
        PATH,
        operation_id="listPlacements",
        response_model=PlacementList,
        responses={**_READ, **egs_openapi.LISTED},
        tags=["placements"],
    )
    def placements(request: Request, filters: Annotated[ItemFilters, Query()]) -> Response:
        """List requests and bursts, in the order of workspace and name, a page at a time."""
        return page(request, filters)

    @routes.get(
        f"{PATH}/workspace/{{workspace}}",
        operation_id="listPlacementsOfWorkspace",
        response_model=PlacementList,
        responses=_READ,
        tags=["placements"],
    )
    def placements_of(request: Request, workspace: str, filters: Annotated[ItemFilters, Query()]) -> Response:
        """List the placements of one workspace, by the path that EGS's SDK calls."""
        return page(request, filters.model_copy(update={"workspace_name": workspace}))

    @routes.get(
        f"{PATH}/get/{{name}}",
        operation_id="getPlacementByName",
        response_model=Answered[PlacementDocument],
        responses=_FIND,
        tags=["placements"],
    )
    def placement_as_the_sdk_asks(request: Request, name: str, workspace: Workspace = "") -> Response:
        """Read one, as EGS's SDK asks for it."""
        return one(request, name, workspace)

    @routes.get(
        f"{PATH}/{{name}}",
        operation_id="getPlacement",
        response_model=Answered[PlacementDocument],
        responses={**_FIND, **egs_openapi.READ},
        tags=["placements"],
    )
    def placement(request: Request, name: str, workspace: Workspace = "") -> Response:
        """Read one request or burst."""
        return one(request, name, workspace)


def _add_write_routes(routes: APIRouter, callers: Callers, backend: Backend) -> None:
    async def written(order: Order, message: str = "Success") -> Response:
        receipt = await orders.execute(backend.queue, order)
        body = answer(_receipt_document(order, receipt), message=message)
        return Response(json.dumps(body, ensure_ascii=False), media_type="application/json")

    async def create(request: Request, key: orders.Key = "") -> Response:
        """Ask for a placement. A name that is taken is refused, unless by the same call with its Idempotency-Key."""
        caller = caller_of(request)
        draft = await read_validated(read_create, request)
        if draft.workspace is None:
            missing = Problem(path="request", field="workspaceName", message="is required")
            raise HttpError(HTTPStatus.BAD_REQUEST, str(missing), problems=(missing,))
        require_role(caller, AccessRole.EDITOR, draft.workspace)
        order = Order(
            number=0,
            verb=Verb.CREATE,
            name=draft.name,
            workspace=draft.workspace,
            author=orders.author(caller),
            within=None,
            draft=draft,
            key=orders.digest_key(caller, key),
        )
        return await written(order)

    plain = fast_route(create, callers)
    # A version of EGS's SDK calls the path with a slash at its end.
    routes.add_api_route(f"{PATH}/", create, methods=["POST"], include_in_schema=False, route_class_override=plain)
    routes.add_api_route(
        PATH,
        create,
        methods=["POST"],
        operation_id="createPlacement",
        response_model=Answered[Written],
        responses={**_WRITE, **egs_openapi.CREATED},
        openapi_extra=egs_openapi.CREATION,
        tags=["placements"],
        route_class_override=plain,
    )

    @routes.put(
        f"{PATH}/{{name}}",
        operation_id="updatePlacement",
        response_model=Answered[Written],
        responses={**_WRITE, **egs_openapi.UPDATED},
        openapi_extra=egs_openapi.UPDATE,
        tags=["placements"],
    )
    async def update(request: Request, name: str, workspace: Workspace = "") -> Response:
        """Change the given fields: any while a placement waits, its duration and deletion policy once it is placed."""
        caller = caller_of(request)
        place = await _editable_workspace(backend, caller, name, workspace)
        draft = await read_validated(read_update, request)
        order = Order(
            number=0,
            verb=Verb.UPDATE,
            name=name,
            workspace=place,
            author=orders.author(caller),
            within=None,
            draft=draft,
            given=draft.fields_set,
        )
        return await written(order, "Workload Placement updated successfully")

    @routes.delete(
        f"{PATH}/{{name}}",
        operation_id="deletePlacement",
        response_model=Answered[Written],
        responses={**_WRITE, **egs_openapi.DELETED},
        tags=["placements"],
    )
    async def delete(request: Request, name: str, workspace: Workspace = "") -> Response:
        """End it now: its placements are reverted, and a request is forgotten."""
        caller = caller_of(request)
        order = Order(
            number=0,
            verb=Verb.DELETE,
            name=name,
            workspace=await _editable_workspace(backend, caller, name, workspace),
            author=orders.author(caller),
            within=None,
            strict=backend.strict,
        )
        return await written(order, "Workload Placement deleted successfully")


async def _editable_workspace(backend: Backend, caller: Caller, name: str, workspace: str) -> WorkspaceName:
    """Return the workspace of an item to change; raises HttpError for a caller who is no editor there."""
    item = await run_in_threadpool(find_item, backend.snapshot(), caller, name, workspace)
    require_role(caller, AccessRole.EDITOR, item.workspace)
    return item.workspace


def _receipt_document(order: Order, receipt: OrderResult) -> dict[str, Json]:
    warnings = list(receipt.answer.notes)
    return {"name": order.name, "workspaceName": order.workspace, "commit": receipt.commit, "warnings": warnings}
