"""Keeps open pages up to date: a stream of server-sent events that says when there is something new to look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from reconciler.daemon.snapshot import LatestSnapshot, Snapshot
from reconciler.errors import Transient

MOST = 64
"""Open streams; further pages look again at intervals. Each takes a connection, which callers of the API need too."""
_LOOK = 1.0
_BEAT = 15
"""Looks after which a silent stream says that it is alive, for proxies between."""
_LONGEST = 300
"""Looks after which a stream ends. The browser comes back, and is let in anew."""
_RETRY = b"retry: 3000\n\n"


class LiveStreams:
    """The streams of open pages, in the event loop of the server."""

    def __init__(self, latest: LatestSnapshot) -> None:
        """Follow the newest snapshot."""
        self._latest = latest
        self._open = 0
        self._closed = False

    @property
    def is_full(self) -> bool:
        """Whether no further stream may open."""
        return self._open >= MOST or self._closed

    def close(self) -> None:
        """End all streams, from any thread, so that a stopping server need not wait for them."""
        self._closed = True

    async def stream(self, *, stays: Callable[[], bool] = lambda: True) -> AsyncIterator[bytes]:
        """Yield an event for each new snapshot, for as long as whoever looks `stays` signed in."""
        self._open += 1
        try:
            seen = self._read()
            yield _RETRY
            for look in range(1, _LONGEST):
                await asyncio.sleep(_LOOK)
                if self._closed:
                    return
                newest = self._read()
                if newest is not seen:
                    if not stays():
                        yield b"event: over\ndata: signed out\n\n"
                        return
                    seen = newest
                    yield b"event: look\ndata: again\n\n"
                elif look % _BEAT == 0:
                    yield b": nothing new\n\n"
        finally:
            self._open -= 1

    def _read(self) -> Snapshot | None:
        try:
            return self._latest.read()
        except Transient:
            return None
