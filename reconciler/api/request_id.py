"""The id of each call of the API: on its answer, in the lines of the log, in its order, and in the commit of that.

It is the caller's own (``X-Request-Id``), else the id of the caller's trace (``traceparent``, https://www.w3.org/TR/trace-context/),
else a new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from secrets import token_hex

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

HEADER = "X-Request-Id"
_OWN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Ids that are taken over: they go into commits and logs as they are."""
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_NO_TRACE = "0" * 32

_CURRENT = ContextVar("request_id", default="")


def current_request_id() -> str:
    """Return the id of the call that is being answered; empty outside of one."""
    return _CURRENT.get()


def request_id(headers: Headers, new: Callable[[], str] = lambda: token_hex(16)) -> str:
    """Return the id of a call with these headers."""
    own = headers.get(HEADER, "")
    if _OWN.fullmatch(own):
        return own
    trace = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    return trace[1] if trace is not None and trace[1] != _NO_TRACE else new()


class RequestIds:
    """An ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Name the calls of an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on with its id, and send that with the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = request_id(Headers(scope=scope))

        async def naming(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        scope.setdefault("state", {})["request_id"] = name  # for the answer to a bug, which no middleware sees
        token = _CURRENT.set(name)
        try:
            with bound_contextvars(request=name):
                await self._app(scope, receive, naming)
        finally:
            _CURRENT.reset(token)
