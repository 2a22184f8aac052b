"""Watched objects beside those that are counted: reports and logins of an engine, companions of live workloads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from threading import Lock

from reconciler.adapters.kube.kept_objects import KeptObjects, TooMuchKept
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.stream import ListOptions, Stream, describe_muted
from reconciler.adapters.kube.tasks import cancel
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.kube.unreadable_objects import UnreadableObjects
from reconciler.core.engines.reports import EngineResource
from reconciler.core.observe.kubernetes.resources import CompanionResource, Watched
from reconciler.core.workloads.watch import ChangeEffect, ResourcePart, key_of
from reconciler.model.workload import Json
from reconciler.ports import Clock


class FollowedObjects:
    """Keeps the parts of some resources up to date (a `stream.Sink`); objects themselves are not kept.

    It runs in the event loop; parts are read under `lock` from other threads. No other stream of the server waits for
    it. The owner of the server sends the heartbeats and passes their answers on by `heard`.
    """

    def __init__(
        self,
        server: ApiServer,
        parts: Mapping[EngineResource, ResourcePart] | Mapping[CompanionResource, ResourcePart],
        options: ListOptions,
        *,
        clock: Clock,
        pace: WatchTiming,
        changed: Callable[[ChangeEffect], None],
    ) -> None:
        self.lock = Lock()
        self.settled = asyncio.Event()
        self._parts: dict[Watched, ResourcePart] = dict(parts.items())
        self._kept = KeptObjects(lambda: server.received, self._parts.values)
        self.unreadable = UnreadableObjects()
        self._clock = clock
        self._pace = pace
        self._changed = changed
        self._stood_at: datetime | None = None
        self._streams = [Stream(server, resource, self, pace, options) for resource in parts]
        self._tasks: list[asyncio.Task[None]] = []
        self._start()

    def _start(self) -> None:
        self._tasks = [asyncio.create_task(stream.run(self.settled.set)) for stream in self._streams]

    async def restart(self) -> None:
        """Reopen every watch at its resourceVersion, and retry failed streams at once."""
        await cancel(self._tasks)
        self._start()

    async def close(self) -> None:
        """Stop the streams; the connection belongs to the owner of the server."""
        await cancel(self._tasks)

    def complete(self) -> bool:
        """Return whether every resource has been listed once."""
        return all(stream.listed for stream in self._streams)

    def whole(self) -> bool:
        """Return whether all objects are up to date: every watch worked at the last answered heartbeat.

        A resource that is not served has no objects. A resource that RBAC forbids is unknown, and one with a mute watch
        is out of date.
        """
        if self._stood_at is None or any(stream.refusal or stream.mute for stream in self._streams):
            return False
        return abs(self._clock.now() - self._stood_at).total_seconds() <= 2 * self._pace.beat

    def troubles(self) -> tuple[str, ...]:
        """List the resources that cannot be watched, and why, except for streams that reconnect for the first time."""
        reasons = [
            f"{stream.resource.full_name} are not looked at: {stream.refusal or stream.trouble}"
            for stream in self._streams
            if stream.refusal or stream.failures > 1 or (stream.failures and not stream.listed)
        ]
        silent = describe_muted(self._streams, self._pace)
        left_out = (stream.left_out for stream in self._streams)
        return (*reasons, *filter(None, (silent, *left_out)))

    def page(self, resource: Watched, items: list[Json], seen: set[str]) -> None:
        """Apply a page of a list."""
        with self.lock:
            effects = []
            self._admit(resource, items)
            for raw in items:
                seen.add(key_of(raw))
                effects.append(self.unreadable.apply(resource, raw, [partial(self._parts[resource].apply, raw)]))
        self._note(max(effects, default=ChangeEffect.NOTHING))

    def listed(self, resource: Watched, seen: set[str]) -> None:
        """Remove objects that a complete list does not name. The first list is a change even if it is empty."""
        self._drop(resource, seen)
        if self.complete():
            self.heard()
            self.settled.set()
        self._note(ChangeEffect.DEMAND)

    def refused(self, resource: Watched) -> None:
        """Keep the last objects of a resource that RBAC forbids, if a watch has ever kept them up to date."""
        if not any(stream.watched for stream in self._streams if stream.resource is resource):
            self._drop(resource, set())
        if self.complete():
            self.settled.set()
        self._note(ChangeEffect.DEMAND)

    def event(self, resource: Watched, type_: str, raw: Json) -> None:
        """Apply one event of a watch."""
        with self.lock:
            part = self._parts[resource]
            if type_ == "DELETED":
                effect = part.remove(key_of(raw))
                self.unreadable.forget(resource, key_of(raw))
            else:
                self._admit(resource, (raw,))
                effect = self.unreadable.apply(resource, raw, [partial(part.apply, raw)])
        self._note(effect)

    def heard(self) -> None:
        """Note an answered heartbeat, while every stream works."""
        if self.complete() and not any(stream.failures or stream.refusal for stream in self._streams):
            self._stood_at = self._clock.now()

    def _admit(self, resource: Watched, items: Sequence[Json]) -> None:
        """Check that some objects may be added. Otherwise drop those of the resource, which is listed again."""
        part = self._parts[resource]
        try:
            self._kept.admit(resource, [key_of(raw) for raw in items], part.keys)
        except TooMuchKept:
            for stream in self._streams:
                stream.listed = stream.listed and stream.resource is not resource
            self._stood_at = None
            for key in set(part.keys()):
                part.remove(key)
            self.unreadable.retain(resource, set())
            raise

    def _drop(self, resource: Watched, seen: set[str]) -> None:
        """Drop all objects of a resource but these."""
        with self.lock:
            part = self._parts[resource]
            for key in set(part.keys()) - seen:
                part.remove(key)
            self.unreadable.retain(resource, seen)

    def _note(self, effect: ChangeEffect) -> None:
        if effect:
            self._changed(effect)
