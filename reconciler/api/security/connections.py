"""Bounds on connections: how many there may be, and how long one may stay open without asking anything.

uvicorn's `limit_concurrency` counts silent connections as well, and answers 503 beyond it to a health check too; its
`timeout_keep_alive` begins with the first response. Both bounds stand here between asyncio and uvicorn's protocol, and
use nothing of uvicorn's inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_ALWAYS_ANSWERED = frozenset({"/healthz", "/readyz"})
_BUSY = PlainTextResponse("Service Unavailable", HTTPStatus.SERVICE_UNAVAILABLE, {"Connection": "close"})


class Connections:
    """The open connections of one server, for use in its event loop alone."""

    def __init__(self, *, patience: float, most: int, most_requests: int) -> None:
        """Take the seconds for each request's header, and how many connections and requests there may be at a time."""
        self._patience = patience
        self._most = most
        self._most_requests = most_requests
        self._open: dict[tuple[str, int] | None, _Connection] = {}  # by the client's address, as ASGI has it
        self._requests = 0

    def watched(self, factory: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """Put each connection that a protocol serves under the bounds."""
        return lambda: _Connection(factory(), self)

    def limited(self, app: ASGIApp) -> ASGIApp:
        """Answer 503 to requests beyond the bound, except to health checks, which are always answered.

        This has to be the outermost application: a request's connection is found by the address of its client.
        """

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            if self._requests >= self._most_requests and scope["path"] not in _ALWAYS_ANSWERED:
                await _BUSY(scope, receive, send)
                return
            connection = self._open.get(scope["client"])
            self._requests += 1
            if connection is not None:
                connection.begin_request()
            try:
                await app(scope, receive, send)
            finally:
                self._requests -= 1
                if connection is not None:
                    connection.end_request()

        return answer

    def add(self, connection: _Connection) -> float:
        """Count a new connection in, and return the seconds that it has for a header.

        Beyond the bound it takes the place of the oldest one without a request, or is closed if there is none.
        """
        if len(self._open) >= self._most:
            idle = [other for other in self._open.values() if not other.requests]
            min(idle, key=lambda other: other.since, default=connection).abort()
        self._open[connection.client] = connection
        return self._patience

    def remove(self, connection: _Connection) -> None:
        """Forget a connection that is closed."""
        if self._open.get(connection.client) is connection:
            del self._open[connection.client]


class _Connection(asyncio.Protocol):
    """Passes everything on to the protocol that serves, and closes a connection that only waits."""

    def __init__(self, served: asyncio.Protocol, connections: Connections) -> None:
        self._served = served
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._late: asyncio.TimerHandle | None = None  # closes the connection when no header comes
        self._patience = 0.0
        self.client: tuple[str, int] | None = None
        self.since = self._loop.time()
        self.requests = 0  # under way

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a header."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a server of TCP has no other transport
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.client = (str(peer[0]), int(peer[1])) if peer else None
        self._served.connection_made(transport)
        self._patience = self._connections.add(self)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Pass it on. A header that comes in small pieces does not begin the wait anew."""
        self._served.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._served.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self._served.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._served.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._served.connection_lost(exc)
        self._connections.remove(self)
        self._stop_waiting()

    def begin_request(self) -> None:
        """Note that a header has come."""
        self.requests += 1
        self._stop_waiting()

    def end_request(self) -> None:
        """Wait for the next request's header."""
        self.requests -= 1
        if not self.requests and self._transport is not None and not self._transport.is_closing():
            self._wait()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _wait(self) -> None:
        self._late = self._loop.call_later(self._patience, self.abort)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
