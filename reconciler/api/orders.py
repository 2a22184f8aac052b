"""Orders of callers: their author, their idempotency key, and the answer once they are carried out."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated

import structlog
from fastapi import Header

from reconciler.access.rights import Caller
from reconciler.api.refusal import BRANCH_LOST, BUG, ErrorDetail, HttpError
from reconciler.api.request_id import current_request_id
from reconciler.core.commits.branch_loss import NOTHING_HAPPENS, WHO_SETTLES
from reconciler.core.decide.state.order import Order, Ruling
from reconciler.core.ledger.proposal_record import proposal_id
from reconciler.daemon.orders.order_queue import OrderQueue, OrderResult
from reconciler.errors import LostBranch, OverspillError, Transient
from reconciler.model.approval import BurstProposal
from reconciler.model.request import Answer, Denial, Verb
from reconciler.model.tree import Identity

PATIENCE = 30.0
"""Seconds that a caller waits for the pushed commit; a pass takes one or two, an outage of the remote longer."""
_RETRY_AFTER = 5
_MOST_KEY = 200
_NO_MAIL = "users.noreply.overspill.dev"
"""Domain of authors whose token holds no mail address; it delivers no mail."""

KEY = "Idempotency-Key"
Key = Annotated[
    str,
    Header(
        alias=KEY,
        max_length=_MOST_KEY,
        pattern=r"^[ -~]*$",
        description="Any text of your own, another for each creation: with it the same call is safe to retry.",
    ),
]

_RETRY_HINTS = {
    Verb.CREATE: "with the same Idempotency-Key a retry is safe whatever became of this one",
    Verb.UPDATE: "the same update a second time changes nothing more",
    Verb.DELETE: "a 404 then says that it is gone",
    Verb.RELEASE: "a 409 then says that it is over",
    Verb.REVERT: "a 404 then says that it is over",
    Verb.APPROVE: "a second yes is refused where the first was heard",
    Verb.REJECT: "a 404 then says that it is over",
    Verb.ANNOTATE: "the same note a second time changes nothing more",
    Verb.EXTEND: "with until in place of by it changes nothing more a second time",
}
"""Why a retry is safe after an answer was lost, by verb."""

log = structlog.get_logger()


def author(caller: Caller) -> Identity:
    """Return the caller as author of a commit."""
    if caller.email:
        return Identity(name=caller.name, email=caller.email)
    local = re.sub(r"[^a-z0-9.-]+", "-", caller.name.lower()).strip("-.") or "caller"
    return Identity(name=caller.name, email=f"{local}@{_NO_MAIL}")


def digest_key(caller: Caller, key: str) -> str:
    """Hash an idempotency key together with its caller; an empty key stays empty."""
    return sha256(f"{caller.kind}\n{caller.name}\n{key}".encode()).hexdigest() if key else ""


async def execute(queue: OrderQueue, order: Order) -> OrderResult:
    """Submit an order and wait until its commit is pushed.

    Raises HttpError for a denial, and 503 where it is unknown whether the order was carried out, or where nothing is
    written until a person has settled the loss of a branch.
    """
    try:
        order = replace(order, request_id=current_request_id())
        receipt = await asyncio.wait_for(asyncio.wrap_future(queue.submit(order)), PATIENCE)
    except (TimeoutError, Transient) as error:
        raise _unavailable("the repository cannot be written now", order.verb) from error
    except LostBranch as error:
        raise HttpError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"the order is not carried out: {NOTHING_HAPPENS}",
            hint=WHO_SETTLES,
            detail=ErrorDetail(reason=BRANCH_LOST),
        ) from error
    except OverspillError as error:
        log.warning("order not carried out", why=str(error))
        reason = "the fleet repository has to be mended first; the daemon's log says what"
        raise _unavailable(reason, order.verb) from error
    except Exception as error:
        # The loop has logged the traceback.
        raise HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, BUG) from error
    if receipt.answer.denial is not None:
        raise denial_error(receipt.answer.denial, order.name, receipt.answer)
    return receipt


def _unavailable(message: str, verb: Verb) -> HttpError:
    return HttpError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"{message}: nothing is known to have been written",
        hint=f"try again; {_RETRY_HINTS[verb]}",
        headers={"Retry-After": str(_RETRY_AFTER)},
    )


def denial_error(denial: Denial, name: str, answer: Answer) -> HttpError:
    """Build the error of a denied order, in EGS's wording where it has one (docs/reference/egs.md, "REST: calls")."""
    status, message, detail = _ERRORS[denial]
    text = detail.text or answer.message
    return HttpError(
        status,
        message or answer.message,
        hint=answer.hint or _WAYS_OUT.get(denial, ""),
        problems=answer.problems,
        detail=ErrorDetail(
            key=detail.key,
            text=text,
            title=detail.title.format(name=name),
            cause=detail.cause.format(name=name) or text,
            reason=detail.reason,
            details=detail.details,
        ),
    )


_WAYS_OUT = {
    Denial.EXISTS: "change or delete it, or take another name",
    Denial.MISSING: "GET /api/v1/workload-placement lists those that you may see",
    Denial.KEY_REUSED: "send the body of that call again, or take another Idempotency-Key",
}
"""Hints for denials for which EGS has a message alone."""

_ERRORS: dict[Denial, tuple[HTTPStatus, str, ErrorDetail]] = {
    Denial.EXISTS: (
        HTTPStatus.CONFLICT,
        "Already Exists",
        ErrorDetail(
            text="Already Exists",
            title="Error registering WorkloadPlacement",
            cause='workloadplacements.worker.kubeslice.io "{name}" already exists',
            reason="AlreadyExists",
        ),
    ),
    Denial.MISSING: (
        HTTPStatus.NOT_FOUND,
        "Not Found",
        ErrorDetail(
            text="Workload Placement not found",
            title="WorkloadPlacement with name '{name}' not found",
            cause="resource not found",
            reason="NotFound",
        ),
    ),
    Denial.INVALID_UPDATE: (
        HTTPStatus.CONFLICT,
        "Field update not allowed",
        ErrorDetail(
            key="InvalidUpdate", title="Invalid field update", reason="Conflict", details="Modification restricted"
        ),
    ),
    Denial.DELETION_RESTRICTED: (
        HTTPStatus.CONFLICT,
        "Deletion not permitted for completed workload",
        ErrorDetail(
            key="DeletionRestricted",
            text="Cannot delete workload placement when phase is Successful, Completed, or Failed",
            title="Deletion restricted",
            cause="WorkloadPlacement cannot be deleted after completion",
            reason="Conflict",
            details="Deletion blocked by status phase",
        ),
    ),
    Denial.INVALID: (HTTPStatus.UNPROCESSABLE_ENTITY, "", ErrorDetail(key="Invalid", reason="Invalid")),
    Denial.KEY_REUSED: (HTTPStatus.UNPROCESSABLE_ENTITY, "", ErrorDetail(key="KeyReused", reason="KeyReused")),
    Denial.BUG: (HTTPStatus.INTERNAL_SERVER_ERROR, BUG, ErrorDetail(text=BUG)),
}


def ruling(proposal: BurstProposal, verb: Verb, author: Identity, reason: str) -> Order:
    """Make the order that approves or refuses a proposal, and none that takes its place."""
    workload = proposal.workload
    return Order(
        number=0,
        verb=verb,
        name=workload.name,
        workspace=workload.workspace,
        author=author,
        within=frozenset({workload.workspace}),
        ruling=Ruling(workload=workload, proposal=proposal_id(proposal), reason=reason),
    )
