"""Keeps open pages up to date: a stream of server-sent events that says when there is something new to look at."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

from reconciler.access.rights import Caller
from reconciler.daemon.snapshot import LatestSnapshot, Snapshot
from reconciler.errors import Transient

MOST = 64
"""Open streams; further pages look again at intervals. Each takes a connection, which callers of the API need too."""
MOST_OF_CALLER = 8
"""Open streams of one caller, whose token several people may share; pages that nobody looks at hold none."""
_LOOK = 1.0
_BEAT = 15
"""Looks after which a silent stream says that it is alive, for proxies between."""
_LONGEST = 300
"""Looks after which a stream ends. The browser comes back, and is let in anew."""
_RETRY = b"retry: 3000\n\n"
_RETRY_LATER = b"retry: 30000\n\n"


class LiveStreams:
    """The streams of open pages, in the event loop of the server."""

    def __init__(self, latest: LatestSnapshot) -> None:
        """Follow the newest snapshot."""
        self._latest = latest
        self._open: Counter[tuple[str, str]] = Counter()
        """Open streams by caller; those without any have no entry."""
        self._closed = False

    def has_room(self, caller: Caller) -> bool:
        """Return whether a caller may open a further stream."""
        return not self._closed and self._open.total() < MOST and self._open[caller.key] < MOST_OF_CALLER

    def close(self) -> None:
        """End all streams, from any thread, so that a stopping server need not wait for them."""
        self._closed = True

    async def stream(self, caller: Caller, *, stays: Callable[[], bool] = lambda: True) -> AsyncIterator[bytes]:
        """Yield an event for each new snapshot, for as long as the caller `stays` signed in.

        A stream for which others have taken the last place since `has_room` ends at once.
        """
        if not self.has_room(caller):
            yield _RETRY_LATER
            return
        self._open[caller.key] += 1
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
            self._open -= Counter([caller.key])

    def _read(self) -> Snapshot | None:
        try:
            return self._latest.read()
        except Transient:
            return None
