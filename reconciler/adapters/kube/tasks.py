"""Signs of life of a server, and the end of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog

from reconciler.adapters.kube.answers import Expired
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.errors import Transient

log = structlog.get_logger()


async def send_heartbeats(server: ApiServer, pace: WatchTiming, heard: Callable[[], None]) -> None:
    """Ask for a sign of life regularly, for ever: between two bookmarks a quiet watch says nothing for a minute."""
    failures = 0
    warned = False
    while True:
        await asyncio.sleep(pace.backoff(failures) if failures else pace.beat)
        try:
            await server.get("/version", {}, within=pace.connect)
        except (Transient, Expired):  # the streams tell what goes wrong
            failures += 1
        except Exception:  # without signs of life a cluster that is well would grow stale
            failures += 1
            if not warned:
                log.exception("bug; asking for signs of life goes on")
            warned = True
        else:
            failures = 0
            heard()


async def cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """End tasks. A cancellation can be lost to a timeout, of asyncio or aiohttp, that runs out at the same moment."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)
