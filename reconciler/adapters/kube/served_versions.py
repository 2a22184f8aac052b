"""The API versions that one API server serves, asked for again and again: they have no watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from reconciler.adapters.kube.answers import Forbidden, NotServed
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.tasks import ask_regularly, cancel
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.observe.kubernetes.api_versions import PATH, read_api_versions


class ServedVersions:
    """Keeps the API versions of one API server; `changed` is called when they are others than before.

    A server that does not answer serves what it served before. Of one that forbids the question, or names no version
    at all, nothing is known.
    """

    def __init__(self, server: ApiServer, pace: WatchTiming, changed: Callable[[], None]) -> None:
        """Begin to ask."""
        self.names: AbstractSet[str] | None = None
        """As ``batch/v1``; None while unknown."""
        self.settled = asyncio.Event()
        """Set after the first answer, and after the first failure."""
        self._server = server
        self._pace = pace
        self._changed = changed
        self._task = self._begin()

    async def restart(self) -> None:
        """Ask at once, with the login of now."""
        await cancel([self._task])
        self._task = self._begin()

    async def close(self) -> None:
        """Stop asking."""
        await cancel([self._task])

    def _begin(self) -> asyncio.Task[None]:
        return asyncio.create_task(ask_regularly(self._ask, self._pace, every=self._pace.absent))

    async def _ask(self) -> None:
        try:
            self._note(read_api_versions(await self._server.get(PATH, {}, within=self._pace.connect)) or None)
        except (Forbidden, NotServed):
            self._note(None)
        finally:
            self.settled.set()

    def _note(self, names: AbstractSet[str] | None) -> None:
        if names != self.names:
            self.names = names
            self._changed()
