"""How long strangers may keep a connection without asking anything, and how many of them there may be.

uvicorn's own limit counts silent connections as well, and answers 503 beyond it, to whoever asks for the health too.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.h11_impl import H11Protocol

_ALWAYS = frozenset({"/healthz", "/readyz"})


def protocol(*, patience: float, most: int) -> type[asyncio.Protocol]:
    """Make uvicorn's protocol for connections that have `patience` seconds for each request's header.

    Beyond `most` connections, a new one takes the place of the oldest that asks nothing, or is closed if there is none.
    """
    return type("Prompt", (_Prompt,), {"patience": patience, "most": most})


class _Prompt(H11Protocol):
    """Ends connections that only wait."""

    patience: ClassVar[float]
    most: ClassVar[int]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._late: asyncio.TimerHandle | None = None
        self.since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Make room if there are too many, and begin to wait for a header."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            idle = [one for one in self.connections if isinstance(one, _Prompt) and one is not self and one.idle()]
            min(idle, key=lambda one: one.since, default=self).transport.abort()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request's header."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._forget()

    def idle(self) -> bool:
        """Tell whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        """Begin to wait for a header, or end it; what comes in small pieces does not begin it anew."""
        if not self.idle():
            self._forget()
        elif self._late is None:
            self._late = self.loop.call_later(self.patience, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def limited(app: ASGI3Application, *, most: int) -> ASGI3Application:
    """Answer 503 to requests beyond `most` at a time, except to those for the health, which are always answered."""
    under_way = 0

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        nonlocal under_way
        if under_way >= most and scope["type"] == "http" and scope["path"] not in _ALWAYS:
            await service_unavailable(scope, receive, send)
            return
        under_way += 1
        try:
            await app(scope, receive, send)
        finally:
            under_way -= 1

    return answer
