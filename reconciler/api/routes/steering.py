"""Reverts and extensions of placements, as ``overspill revert`` and ``overspill extend`` order them.

Each is a commit in the name of the caller, who needs the role Editor in the workspace of every placement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from reconciler.access.rights import AccessRole, Caller, has_role
from reconciler.api import egs_openapi, orders
from reconciler.api.asking import OneAtATime, asked
from reconciler.api.backend import Backend
from reconciler.api.body import answer, read_validated
from reconciler.api.lookup import readable_workspaces
from reconciler.api.models import Answered, SteeredDocument
from reconciler.api.redact import redact
from reconciler.api.refusal import HttpError, error_responses
from reconciler.api.routes.plan import plan_json
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.core.decide.orders.steer import UnknownPlacement, find_among, moved_end, plan_extension, plan_revert
from reconciler.core.decide.state.order import Order, Steering
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.schema import Strict, validation_findings
from reconciler.core.schema.steering import ExtendBody, RevertBody
from reconciler.daemon.answers.history import HistorySelection, describe_end
from reconciler.daemon.answers.plan_report import report_plan
from reconciler.daemon.orders.order_queue import CarriedOrder
from reconciler.errors import InvalidInput, OverspillError
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.request import Verb
from reconciler.model.workload import Json
from reconciler.text.findings import Finding
from reconciler.text.to_json import json_value

_Body = TypeVar("_Body", bound=Strict)

STEERING_ANSWERS = error_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)


def reader(model: type[_Body]) -> Callable[[Json], _Body | tuple[Finding, ...]]:
    """Return the reader of a body; it returns all problems of an invalid one."""

    def read(body: Json) -> _Body | tuple[Finding, ...]:
        try:
            return model.model_validate(body)
        except ValidationError as error:
            return validation_findings(error, model)

    return read


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the routes."""
    routes = guarded_router(callers)
    busy = OneAtATime()

    @routes.post(
        "/api/v1/revert",
        operation_id="revertPlacements",
        response_model=Answered[SteeredDocument],
        response_model_exclude_unset=True,
        responses=STEERING_ANSWERS,
        openapi_extra=egs_openapi.REVERT,
        tags=["placements"],
    )
    async def revert(request: Request) -> dict[str, Any]:
        """End placements now, and hold their workloads back, in the name of the caller: all of them, or none."""
        caller, body = caller_of(request), await read_validated(reader(RevertBody), request)
        placements = await run_in_threadpool(_editable, backend, busy, caller, body.placements)
        steering = Steering(paths=_paths(placements), reason=body.reason, everywhere=body.everywhere)

        def decide(inputs: PassInput) -> Plan:
            return plan_revert(inputs, placements, by=caller.name, reason=body.reason, everywhere=body.everywhere)

        if body.dry_run:
            return answer(await run_in_threadpool(draft_changes, backend, busy, caller, decide))
        return await _carry_out(backend, caller, Verb.REVERT, placements, steering)

    @routes.post(
        "/api/v1/extend",
        operation_id="extendPlacement",
        response_model=Answered[SteeredDocument],
        response_model_exclude_unset=True,
        responses=STEERING_ANSWERS,
        openapi_extra=egs_openapi.EXTENSION,
        tags=["placements"],
    )
    async def extend(request: Request) -> dict[str, Any]:
        """Give a placement another end, later or earlier, in the name of the caller."""
        caller, body = caller_of(request), await read_validated(reader(ExtendBody), request)
        placements = await run_in_threadpool(_editable, backend, busy, caller, [body.placement])
        placement = placements[0]
        steering = Steering(paths=_paths(placements), reason=body.reason, by=body.by, until=body.until)

        def decide(inputs: PassInput) -> Plan:
            until = body.until or moved_end(placement, body.by or timedelta())
            return plan_extension(inputs, placement, until, by=caller.name, reason=body.reason)

        if body.dry_run:
            return answer(await run_in_threadpool(draft_changes, backend, busy, caller, decide))
        return await _carry_out(backend, caller, Verb.EXTEND, placements, steering)

    return routes


def _editable(backend: Backend, busy: OneAtATime, caller: Caller, names: Iterable[str]) -> tuple[Placement, ...]:
    """Find placements that a caller may see, each once; raises HttpError for one that is not to be changed."""
    known = backend.snapshot().decision.inputs.ledger.placements.values()
    visible = [placement for placement in known if has_role(caller, AccessRole.VIEWER, placement.workload.workspace)]
    try:
        placements = {placement.path: placement for name in names for placement in (find_among(visible, name),)}
    except InvalidInput as error:
        end = _end(backend, busy, caller, error.name) if isinstance(error, UnknownPlacement) else ""
        raise HttpError(HTTPStatus.NOT_FOUND, end or str(error)) from error
    for placement in placements.values():
        require_role(caller, AccessRole.EDITOR, placement.workload.workspace)
    return tuple(placements.values())


def _end(backend: Backend, busy: OneAtATime, caller: Caller, name: str) -> str:
    """Say when and why a placement that a caller may see has ended; empty where that is not known, or not now.

    Raises HttpError 429 while another question of the caller is being answered.
    """
    selection = HistorySelection(limit=1, name=name, within=readable_workspaces(caller))
    try:
        with busy.of(caller):
            end = describe_end(lambda asked_for: backend.answers.history(lambda _: asked_for), selection)
    except OverspillError:
        return ""
    return str(redact(end, backend.snapshot(), caller))  # its reason may name who took its room


def _paths(placements: Iterable[Placement]) -> tuple[str, ...]:
    return tuple(placement.path for placement in placements)


async def _carry_out(
    backend: Backend, caller: Caller, verb: Verb, placements: Sequence[Placement], steering: Steering
) -> dict[str, Any]:
    """Have a pass carry an order out, and answer with its commits."""
    order = Order(
        number=0,
        verb=verb,
        name=placements[0].name,
        workspace=None,
        author=orders.author(caller),
        within=frozenset(placement.workload.workspace for placement in placements),
        steering=steering,
    )
    result = await orders.execute(backend.queue, order)
    if result.carried is None:
        raise AssertionError("an order that is not denied has its commits")
    return answer(await run_in_threadpool(pushed_changes, backend, caller, result.carried))


def draft_changes(backend: Backend, busy: OneAtATime, caller: Caller, decide: Callable[[PassInput], Plan]) -> Json:
    """Return the commits that an order would make, as a dry run shows them."""
    with busy.of(caller), asked(backend.snapshot(), caller):
        document = plan_json(backend.answers, backend.answers.draft(decide, orders.author(caller)), caller, diff=False)
    return {name: value for name, value in document.items() if name != "supposed"}


def pushed_changes(backend: Backend, caller: Caller, carried: CarriedOrder) -> Json:
    """Return the commits of an order, without what the rest of its pass has found."""
    report = replace(report_plan(carried.decision, carried.rendered), problems=(), wake_at=None)
    document = {
        **json_value(report),
        "pushed": [*carried.commits],
        "branches": {advance.cluster: advance.new for advance in carried.branches},
        "lines": [event.line for event in carried.events],
        "outputBranch": backend.output_branch,
    }
    return redact(document, backend.snapshot(), caller)
