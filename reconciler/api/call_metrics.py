"""Measures every call of the API by its method, its route and its status."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CountCall: TypeAlias = Callable[[str, str, int, float], None]
"""Counts a call: its method, the path of its route, its status, and the seconds that it took."""

_NO_ROUTE = "none"
"""The route of calls that have none: paths are what callers choose, and their number has no bound."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def route_of(scope: Scope) -> str:
    """Return the path of a call's route, in which parameters are names in braces."""
    path: str = getattr(scope.get("route"), "path", _NO_ROUTE)
    return path


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
        began, status = perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._count(method, route_of(scope), status, perf_counter() - began)
