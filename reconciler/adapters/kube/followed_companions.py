"""Companions of live workloads in one cluster, each followed by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from reconciler.adapters.kube.followed_objects import FollowedObjects
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.stream import ListOptions
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.observe.kubernetes.companions import LiveCompanion
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.errors import Problem
from reconciler.model.capacity import ObservedObject
from reconciler.model.manifest_source import Companion
from reconciler.ports import Clock


class FollowedCompanions:
    """Keeps some objects of a cluster in memory.

    Each has a watch of its own by its name, so that rights by name are enough and nothing else of its kind is read. It
    lives in the event loop; `objects` and `troubles` are called from other threads.
    """

    def __init__(
        self, server: ApiServer, *, clock: Clock, pace: WatchTiming, changed: Callable[[ChangeEffect], None]
    ) -> None:
        self._server = server
        self._clock = clock
        self._pace = pace
        self._changed = changed
        self._followed: Mapping[Companion, tuple[LiveCompanion, FollowedObjects]] = {}

    async def follow(self, wanted: frozenset[Companion]) -> None:
        """Follow these objects from now on; those that stay are not listed anew."""
        gone = self.begin(wanted)
        await asyncio.gather(*(objects.close() for objects in gone))

    def begin(self, wanted: frozenset[Companion]) -> list[FollowedObjects]:
        """Follow these objects from now on, and return the streams of others, which are to be closed."""
        before = self._followed
        kept = {companion: followed for companion, followed in before.items() if companion in wanted}
        new = {companion: self._open(companion) for companion in sorted(wanted - kept.keys())}
        self._followed = {**kept, **new}
        return [objects for companion, (_, objects) in before.items() if companion not in wanted]

    async def restart(self) -> None:
        """Reopen every watch with a new login."""
        for _, objects in self._followed.values():
            await objects.restart()

    async def close(self) -> None:
        """Stop the streams; the connection belongs to the owner of the server."""
        await asyncio.gather(*(objects.close() for _, objects in self._followed.values()))

    async def settle(self) -> None:
        """Wait until every object has been listed, or has failed once."""
        for _, objects in self._followed.values():
            await objects.settled.wait()

    def objects(self) -> tuple[ObservedObject, ...]:
        """Return the objects that are there and may be read."""
        objects: list[ObservedObject] = []
        for companion, stream in self._followed.values():
            with stream.lock:
                if companion.object is not None:
                    objects.append(companion.object)
        return tuple(objects)

    def troubles(self) -> tuple[str, ...]:
        """Say which objects cannot be watched, and why."""
        return tuple(
            f"{companion.title}: {trouble}"
            for companion, (_, objects) in self._followed.items()
            for trouble in objects.troubles()
        )

    def problems(self, place: str) -> Iterator[Problem]:
        """Report the objects that cannot be read."""
        for _, objects in self._followed.values():
            yield from objects.unreadable.problems(place)

    def heard(self) -> None:
        """Note an answered heartbeat."""
        for _, objects in self._followed.values():
            objects.heard()

    def _open(self, companion: Companion) -> tuple[LiveCompanion, FollowedObjects]:
        live = LiveCompanion(companion)
        options = ListOptions(namespace=companion.namespace, name=companion.name)
        objects = FollowedObjects(
            self._server, {live.resource: live}, options, clock=self._clock, pace=self._pace, changed=self._changed
        )
        return live, objects
