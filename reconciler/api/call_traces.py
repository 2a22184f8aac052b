"""Traces every call of the API as a part of its caller's trace."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.adapters.traces import Traces
from reconciler.api.call_metrics import METHODS, route_of
from reconciler.api.request_id import current_request_id


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
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        with self._traces.answer(method, Headers(scope=scope), current_request_id()) as note:
            try:
                await self._app(scope, receive, noting)
            finally:
                note(route_of(scope), status)
