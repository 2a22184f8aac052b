"""Webhooks of git hosts: a push starts a pass at once instead of at the next poll.

The payload is never trusted. A delivery only causes a fetch, so a lost, forged or repeated one does no other harm.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from reconciler.api.body import read_body
from reconciler.api.refusal import HttpError, error_responses
from reconciler.api.security import signature
from reconciler.api.security.callers import Callers
from reconciler.ports import Clock, Wake

_REMEMBERED = 1024
"""Delivery ids that are kept to recognise repeated deliveries; hosts repeat them within minutes."""


_ANSWERS = {
    HTTPStatus.NO_CONTENT: {"description": "Another event, or another branch"},
    **error_responses(
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.TOO_MANY_REQUESTS,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _GitHost:
    """A kind of git host."""

    check: signature.Check
    """Verifies the signature."""
    event: str
    """The header, in lower case, that names the event."""
    push: str
    """The event of a push."""
    deliveries: tuple[str, ...]
    """Headers that hold the delivery id, the first that is present."""


HOSTS: Mapping[str, _GitHost] = {
    "github": _GitHost(check=signature.github, event="x-github-event", push="push", deliveries=("x-github-delivery",)),
    "gitlab": _GitHost(
        check=signature.gitlab,
        event="x-gitlab-event",
        push="Push Hook",
        deliveries=("webhook-id", "idempotency-key", "x-gitlab-event-uuid"),
    ),
    "gitea": _GitHost(check=signature.gitea, event="x-gitea-event", push="push", deliveries=("x-gitea-delivery",)),
}


class _Deliveries:
    """Remembers the ids of the newest deliveries."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_new(self, delivery: str) -> bool:
        """Return whether a delivery is new, and remember its id; an empty id is always new."""
        if not delivery:
            return True
        if delivery in self._ids:
            return False
        self._ids[delivery] = None
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)
        return True


def router(callers: Callers, wake: Wake, clock: Clock, *, secret: str, branches: Collection[str]) -> APIRouter:
    """Build the routes. Pushes to `branches` wake the loop. Without a `secret` every delivery is refused.

    Deliveries that prove nothing count as failed logins of their address.
    """
    routes = APIRouter()
    deliveries = _Deliveries()
    refs = frozenset(f"refs/heads/{branch}" for branch in branches)

    async def hint(request: Request, name: str) -> Response:
        if not secret:
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                "webhooks are not taken here: no secret is configured",
                hint="set OVERSPILL_WEBHOOK_SECRET_FILE or OVERSPILL_WEBHOOK_SECRET and start again",
            )
        host = HOSTS[name]
        try:
            body = await read_body(request)
        except HttpError:
            callers.count_failure(request)
            raise
        if not host.check(request.headers, body, secret, clock.now()):
            callers.count_failure(request)
            raise HttpError(
                HTTPStatus.UNAUTHORIZED,
                "the signature is missing, wrong or too old",
                hint=f"give the webhook in {name} the same secret as here",
                headers={"WWW-Authenticate": 'Signature realm="overspill"'},
            )
        if request.headers.get(host.event) != host.push:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        if _ref(body, request.headers.get("content-type", "")) not in refs:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        delivery = next((request.headers[header] for header in host.deliveries if header in request.headers), "")
        if deliveries.is_new(f"{name}:{delivery[:200]}" if delivery else ""):
            wake("hint")
        return JSONResponse({"statusCode": HTTPStatus.ACCEPTED, "status": "OK"}, HTTPStatus.ACCEPTED)

    def add(name: str) -> None:
        async def receive(request: Request) -> Response:
            return await hint(request, name)

        routes.add_api_route(
            f"/api/v1/webhooks/{name}",
            receive,
            methods=["POST"],
            operation_id=f"{name}Webhook",
            summary=f"Take note of a push to {name}",
            status_code=HTTPStatus.ACCEPTED,
            response_class=JSONResponse,
            responses=_ANSWERS,
        )

    for name in HOSTS:
        add(name)
    return routes


def _ref(body: bytes, content_type: str) -> str:
    """Return the ref of a push event, empty if it has none. GitHub can send its JSON in a form.

    Raises HttpError for a body that is not JSON: its signature is good, so the host is misconfigured.
    """
    try:
        if content_type.startswith("application/x-www-form-urlencoded"):
            body = parse_qs(body.decode()).get("payload", [""])[0].encode()
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the payload is not JSON") from error
    ref = payload.get("ref") if isinstance(payload, dict) else None
    return ref if isinstance(ref, str) else ""
