"""What is told of every call of the API: metrics by its method, route and status, and a span of its caller's trace."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.adapters.traces import NoteAnswer, Traces
from reconciler.api.request_id import current_request_id

CountCall: TypeAlias = Callable[[str, str, int, float], None]
"""Counts a call: its method, the path of its route, its status, and the seconds that it took."""

_NO_ROUTE = "none"
"""The route of calls that have none: paths are what callers choose, and their number has no bound."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class CallMetrics:
    """An ASGI middleware."""

    def __init__(self, app: ASGIApp, count: CountCall) -> None:
        """Measure the calls of an application."""
        self._app, self._count = app, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, and count it once it is answered or has failed."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, began = _method(scope, other="other"), perf_counter()

        def count(route: str, status: int) -> None:
            self._count(method, route, status, perf_counter() - began)

        await _pass_on(self._app, scope, receive, send, count)


class CallTraces:
    """An ASGI middleware."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        """Trace the calls of an application."""
        self._app, self._traces = app, traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, and end its span once it is answered or has failed."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = _method(scope, other="_OTHER")
        with self._traces.answer(method, Headers(scope=scope), current_request_id()) as note:
            await _pass_on(self._app, scope, receive, send, note)


async def _pass_on(app: ASGIApp, scope: Scope, receive: Receive, send: Send, note: NoteAnswer) -> None:
    """Pass a call on, and note its route and its status once it is answered or has failed."""
    status = 500

    async def noting(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    try:
        await app(scope, receive, noting)
    finally:
        note(_route(scope), status)


def _method(scope: Scope, *, other: str) -> str:
    """Return the method of a call; `other` for any that HTTP does not have, of which callers may invent many."""
    method: str = scope["method"]
    return method if method in _METHODS else other


def _route(scope: Scope) -> str:
    """Return the path of a call's route, in which parameters are names in braces."""
    path: str = getattr(scope.get("route"), "path", _NO_ROUTE)
    return path
