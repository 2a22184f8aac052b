"""Answers to proposals, as ``overspill approve`` and ``overspill reject`` give them.

Each is a commit in the name of the caller, who needs the role Owner in the workspace: it spends the workspace's money.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from reconciler.access.rights import AccessRole, Caller, has_role
from reconciler.api import egs_openapi, orders
from reconciler.api.asking import OneAtATime
from reconciler.api.backend import Backend
from reconciler.api.body import answer, read_validated
from reconciler.api.models import Answered, SteeredDocument
from reconciler.api.refusal import HttpError
from reconciler.api.routes.steering import STEERING_ANSWERS, draft_changes, pushed_changes, reader
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.core.decide.orders.approve import find_proposal, plan_approval, plan_rejection
from reconciler.core.schema.steering import RulingBody
from reconciler.errors import InvalidInput
from reconciler.model.approval import BurstProposal
from reconciler.model.plan import Plan
from reconciler.model.request import Verb


def router(callers: Callers, backend: Backend) -> APIRouter:
    """Build the routes."""
    routes = guarded_router(callers)
    busy = OneAtATime()

    @routes.post(
        "/api/v1/approve",
        operation_id="approveBurst",
        response_model=Answered[SteeredDocument],
        response_model_exclude_unset=True,
        responses=STEERING_ANSWERS,
        openapi_extra=egs_openapi.APPROVAL,
        tags=["placements"],
    )
    async def approve(request: Request) -> dict[str, Any]:
        """Approve a burst that is proposed, in the name of the caller: the next pass places it as it was shown."""
        return await _rule(backend, busy, request, Verb.APPROVE, plan_approval)

    @routes.post(
        "/api/v1/reject",
        operation_id="rejectBurst",
        response_model=Answered[SteeredDocument],
        response_model_exclude_unset=True,
        responses=STEERING_ANSWERS,
        openapi_extra=egs_openapi.REJECTION,
        tags=["placements"],
    )
    async def reject(request: Request) -> dict[str, Any]:
        """Refuse a burst that is proposed, and hold its workload, in the name of the caller."""
        return await _rule(backend, busy, request, Verb.REJECT, plan_rejection)

    return routes


async def _rule(
    backend: Backend, busy: OneAtATime, request: Request, verb: Verb, decide: Callable[..., Plan]
) -> dict[str, Any]:
    caller, body = caller_of(request), await read_validated(reader(RulingBody), request)
    proposal = await run_in_threadpool(_proposal, backend, caller, body.workload)
    person = orders.author(caller)
    if body.dry_run:
        planned = partial(decide, proposal=proposal, by=person, reason=body.reason)
        return answer(await run_in_threadpool(draft_changes, backend, busy, caller, planned))
    order = orders.ruling(proposal, verb, person, body.reason)
    result = await orders.execute(backend.queue, order)
    if result.carried is None:
        raise AssertionError("an order that is not denied has its commits")
    return answer(await run_in_threadpool(pushed_changes, backend, caller, result.carried))


def _proposal(backend: Backend, caller: Caller, text: str) -> BurstProposal:
    """Find a proposal that a caller may see; raises HttpError for one that is not theirs to answer."""
    known = backend.snapshot().decision.inputs.ledger.proposals
    visible = {
        workload: proposal
        for workload, proposal in known.items()
        if has_role(caller, AccessRole.VIEWER, workload.workspace)
    }
    try:
        proposal = find_proposal(visible, text)
    except InvalidInput as error:
        raise HttpError(HTTPStatus.NOT_FOUND, str(error)) from error
    require_role(caller, AccessRole.OWNER, proposal.workload.workspace)
    return proposal
