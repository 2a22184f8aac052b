"""Questions that are asked of API servers again and again, as heartbeats, and the cancellation of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from reconciler.adapters.kube.answers import Expired
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.errors import Transient

log = structlog.get_logger()


async def send_heartbeats(server: ApiServer, pace: WatchTiming, heard: Callable[[], None]) -> None:
    """Get the server's version regularly, for ever: a quiet watch brings nothing for the minute between bookmarks."""

    async def beat() -> None:
        await server.get("/version", {}, within=pace.connect)
        heard()

    await asyncio.sleep(pace.beat)
    await ask_regularly(beat, pace, every=pace.beat)


async def ask_regularly(ask: Callable[[], Awaitable[None]], pace: WatchTiming, *, every: float) -> None:
    """Ask a server something for ever: at once, `every` seconds after an answer, and as `pace` says after a failure."""
    failures = 0
    warned = False
    while True:
        try:
            await ask()
        except (Transient, Expired):  # the streams report the failure
            failures += 1
        except Exception:  # without answers a healthy cluster would become stale
            failures += 1
            if not warned:
                log.exception("bug; asking goes on")
            warned = True
        else:
            failures = 0
        await asyncio.sleep(pace.backoff(failures) if failures else every)


async def cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks until they end: a timeout of asyncio or aiohttp at the same moment swallows a cancellation."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)
