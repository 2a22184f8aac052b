"""A watched cluster: its streams, the resulting observation, its age, and stale signals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Lock

from reconciler.adapters.kube.followed_companions import FollowedCompanions
from reconciler.adapters.kube.followed_objects import FollowedObjects
from reconciler.adapters.kube.kept_objects import KeptObjects, TooMuchKept
from reconciler.adapters.kube.served_versions import ServedVersions
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.stream import ListOptions, Stream, describe_muted
from reconciler.adapters.kube.targets import ClusterTarget
from reconciler.adapters.kube.tasks import cancel, send_heartbeats
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.kube.unreadable_objects import UnreadableObjects
from reconciler.core.engines.reports import SELECTOR, ReportObjects
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.companions import companions_of
from reconciler.core.observe.kubernetes.live_objects import by_name
from reconciler.core.observe.kubernetes.resources import (
    SIGNAL_KINDS,
    TRAINING_RUNTIMES,
    CustomResource,
    Resource,
    Watched,
    needed_resources,
)
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.errors import Problem
from reconciler.model.capacity import ClusterObservation, UnreadKind
from reconciler.model.rollout import EngineReport
from reconciler.model.signal import SignalFreshness
from reconciler.model.workload import Json
from reconciler.ports import Clock


class LastHeard:
    """Remembers when each optional resource was last up to date.

    A resource that RBAC has forbidden from the start is no signal: a cluster without that right must not keep bursts
    from scaling down. A resource that was watched once, or that fails in another way, is a stale signal.
    """

    def __init__(self) -> None:
        self._at: dict[Watched, datetime] = {}

    def note(self, streams: Mapping[Watched, Stream], now: datetime) -> None:
        """Note which resources are up to date now."""
        for gone in self._at.keys() - streams.keys():
            del self._at[gone]
        for resource, stream in streams.items():
            if stream.resource.optional and stream.heard and stream.watched:
                self._at[resource] = now - timedelta(seconds=stream.behind)

    def at(self, resource: Watched) -> datetime | None:
        """Return when a resource was last up to date; None where it never was."""
        return self._at.get(resource)

    def stale(self, streams: Mapping[Watched, Stream]) -> tuple[SignalFreshness, ...]:
        """List the stale signals, each with the time at which it was last up to date."""
        stale_signals = []
        for resource, kind in SIGNAL_KINDS.items():
            stream, at = streams.get(resource), self._at.get(resource)
            if stream is not None and not stream.heard and (at is not None or not stream.refusal):
                stale_signals.append(SignalFreshness(signal=kind, at=at, trouble=stream.refusal or stream.trouble))
        return tuple(stale_signals)


class FollowedCluster:
    """Keeps one cluster in memory (a `stream.Sink`).

    It runs in the event loop; only methods that return a value are called from other threads. The time of the
    observation advances while every required stream works and the server answers heartbeats, so a cluster out of reach
    becomes stale by itself. A failing optional stream holds up nothing: its last objects are used, and its signals are
    stale since then. Streams of the engine's objects do not count.

    Open watches alone prove nothing: a proxy may hold back their events. So the time advances only if a watch has
    delivered an event or a bookmark within `WatchTiming.silence`; otherwise the time of the oldest list counts, since a
    silent stream lists anew. A stream that is known to be mute always counts by its list.
    """

    def __init__(
        self,
        target: ClusterTarget,
        server: ApiServer,
        *,
        clock: Clock,
        pace: WatchTiming,
        changed: Callable[[ChangeEffect], None],
    ) -> None:
        self.target = target
        self.settled = asyncio.Event()
        self._server = server
        self._clock = clock
        self._pace = pace
        self._changed = changed
        self._lock = Lock()
        self._state = ClusterState(
            target.refs, target.marks, target.kinds, target.sources, target.placed, placeable=target.placeable
        )
        self._kept = KeptObjects(lambda: server.received, lambda: (self._state,))
        self.unreadable = UnreadableObjects()
        self._streams: dict[Watched, Stream] = {}
        self._tasks: dict[Watched, asyncio.Task[None]] = {}
        self._changing_target = asyncio.Lock()
        self._beat = asyncio.create_task(send_heartbeats(server, pace, self._note_heartbeat))
        self._api_versions = ServedVersions(server, pace, self._note_api_versions)
        self._heard_at: datetime | None = None
        self._seen_at: datetime | None = None
        self._observation: ClusterObservation | None = None
        self._changed_at: datetime | None = None
        self._listed_at: dict[Watched, datetime] = {}
        self._unknown: frozenset[Watched] = frozenset()
        self._last_heard = LastHeard()
        self._dirty = True
        self._engine: FollowedObjects | None = None
        self._report_objects: ReportObjects | None = None
        self._companions = FollowedCompanions(server, clock=clock, pace=pace, changed=self._note)
        self._run(_needed(target) | self._state.customs)
        self._companions.begin(companions_of(target.sources))
        self._watch_engine()

    async def retarget(self, target: ClusterTarget) -> None:
        """Count other workloads from now on; the last observation stands until their objects have been listed."""
        async with self._changing_target:
            before, self.target = self.target, target
            await self._recount(target)
            await self._companions.follow(companions_of(target.sources))
            if before.reports != target.reports:
                if self._engine is not None:
                    await self._engine.close()
                self._watch_engine()

    async def _recount(self, target: ClusterTarget) -> None:
        with self._lock:
            listed_again = self._state.follow(
                target.refs, target.marks, target.kinds, target.sources, target.placed, placeable=target.placeable
            )
            self._dirty = True
            resources = _needed(target) | self._state.customs
        gone = {task for task in self._tasks if task not in resources or task in listed_again}
        await cancel([self._tasks.pop(resource) for resource in gone])
        with self._lock:
            for resource in gone:
                del self._streams[resource]
            for resource in gone - resources:
                self._state.retain(resource, set())
        self._run(resources - self._tasks.keys())
        self._watch_custom_kinds()

    async def renew(self) -> None:
        """Switch to a new login at once if there is one, and retry streams that failed without it."""
        async with self._changing_target:
            if self._beat.done() or not await self._server.renewed():
                return
            await cancel(self._tasks.values())
            self._start(self._streams)
            self._watch_custom_kinds()
            await self._companions.restart()
            await self._api_versions.restart()
            if self._engine is not None:
                await self._engine.restart()
        self._changed(ChangeEffect.CAPACITY)

    async def close(self) -> None:
        """Stop the streams, and close the connection."""
        async with self._changing_target:
            await cancel([self._beat, *self._tasks.values()])
            await self._api_versions.close()
            await self._companions.close()
            if self._engine is not None:
                await self._engine.close()
            await self._server.close()

    async def settle(self) -> None:
        """Wait for the first complete list of cluster, companions and engine, or for a first failure."""
        await self.settled.wait()
        await self._api_versions.settled.wait()
        await self._companions.settle()
        if self._engine is not None:
            await self._engine.settled.wait()

    def observation(self) -> ClusterObservation | None:
        """Return the newest complete observation; None before the first complete list."""
        with self._lock:
            if self._seen_at is not None and self._complete():
                at, now = self._watched_until(self._seen_at), self._clock.now()
                unknown = frozenset(kind for kind, stream in self._streams.items() if stream.unknown)
                unknown |= {Resource.NODE_POOLS} - self._streams.keys()
                outdated = self._dirty or unknown != self._unknown or self._state.is_outdated(at)
                if outdated or self._observation is None:
                    self._observation = self._with_additions(self._state.observation(self.target.name, at, unknown))
                    self._unknown, self._changed_at = unknown, now
                    self._dirty = False
                stale, unread = self._last_heard.stale(self._streams), self._unread_kinds(unknown)
                changed = self._changed_at if self._changed_at is not None and at < self._changed_at <= now else None
                before = self._observation
                if (before.observed_at, before.stale, before.unread, before.changed_at) != (at, stale, unread, changed):
                    self._observation = replace(before, observed_at=at, stale=stale, unread=unread, changed_at=changed)
            return self._observation

    def _unread_kinds(self, unknown: AbstractSet[Watched]) -> tuple[UnreadKind, ...]:
        """Describe the kinds of workloads and runtimes among unknown resources; signals have `LastHeard.stale`."""
        kinds = (each for each in unknown if isinstance(each, CustomResource) or each in TRAINING_RUNTIMES)
        by_name = {each.full_name: each for each in kinds}
        return tuple(
            UnreadKind(
                kind=resource.kind,
                group=resource.group,
                title=resource.full_name,
                why=self._streams[resource].refusal or self._streams[resource].trouble,
                at=self._last_heard.at(resource),
            )
            for _, resource in sorted(by_name.items())
        )

    def _with_additions(self, observation: ClusterObservation) -> ClusterObservation:
        """Add the companions of live workloads, which are watched by themselves, and the API versions."""
        companions, versions = self._companions.objects(), self._api_versions.names
        objects = by_name((*observation.objects, *companions)) if companions else observation.objects
        return replace(observation, objects=objects, api_versions=versions)

    def _watched_until(self, seen: datetime) -> datetime:
        """Return the time up to which the observation holds; it advances while heartbeats are answered."""
        now = self._clock.now()
        quiet = self._heard_at is not None and abs(now - self._heard_at).total_seconds() <= 2 * self._pace.beat
        return max(seen, self._proven_until(now)) if quiet and not self._failing_streams() else seen

    def _proven_until(self, alive: datetime) -> datetime:
        """Return the time up to which the required streams are complete, given that the server answered at `alive`.

        A working watch without events means that nothing has changed.
        """
        speaking = any(stream.speaks for stream in self._streams.values())
        needed = [stream for stream in self._streams.values() if not stream.resource.optional]
        return min(
            [alive, *(self._listed_at.get(stream.resource, alive) for stream in needed if stream.mute or not speaking)]
        )

    def trouble(self) -> str:
        """Describe the failure; empty without one, and while a stream reconnects for the first time."""
        if why := self._server.trouble():
            return why
        with self._lock:
            troubled = [stream for stream in self._failing_streams() if stream.failures > 1 or not stream.listed]
            return troubled[0].trouble if troubled else describe_muted(self._streams.values(), self._pace)

    def unwatched(self) -> tuple[str, ...]:
        """List the optional resources that cannot be watched, and why, unless the cluster itself fails."""
        with self._lock:
            if self._failing_streams():
                return ()
            optional = [stream for stream in self._streams.values() if stream.resource.optional]
        troubles = ((stream.resource.full_name, _why_unwatched(stream)) for stream in optional)
        lacking = [f"{name} are not looked at: {trouble}" for name, trouble in troubles if trouble]
        lacking += [stream.left_out for stream in list(self._streams.values()) if stream.left_out]
        beside = (*self._companions.troubles(), *(self._engine.troubles() if self._engine is not None else ()))
        return (*sorted(set(lacking)), *beside)

    def problems(self, place: str) -> Iterator[Problem]:
        """Report the objects of cluster and engine that cannot be read."""
        yield from self.unreadable.problems(place)
        yield from self._companions.problems(place)
        if self._engine is not None:
            yield from self._engine.unreadable.problems(place)

    def reports(self) -> Mapping[str, EngineReport] | None:
        """Return the engine's reports on placements here; the same object while nothing has changed.

        None while one of its resources is incomplete.
        """
        if self._engine is None or self._report_objects is None or not self._engine.whole():
            return None
        with self._engine.lock:
            return self._report_objects.reports.all()

    def page(self, resource: Watched, items: list[Json], seen: set[str]) -> None:
        """Apply a page of a list."""
        with self._lock:
            effects = []
            self._admit(resource, items)
            version = self._streams[resource].api_version
            for raw in items:
                seen.add(key_of(raw))
                effects.append(self.unreadable.apply(resource, raw, self._state.steps(resource, raw, version)))
        self._note(max(effects, default=ChangeEffect.NOTHING))

    def listed(self, resource: Watched, seen: set[str]) -> None:
        """Remove objects that a complete list does not name; the last of the first lists completes the observation."""
        with self._lock:
            self._state.retain(resource, seen, served=not self._streams[resource].absent)
            self.unreadable.retain(resource, seen)
            self._listed_at[resource] = self._clock.now() - timedelta(seconds=self._streams[resource].behind)
        self.heard()
        self._note(ChangeEffect.DEMAND)

    def refused(self, resource: Watched) -> None:
        """Keep the last objects of a resource that RBAC forbids, if a watch has ever kept them up to date."""
        with self._lock:
            if self._last_heard.at(resource) is None:
                self._state.retain(resource, set())
                self.unreadable.retain(resource, set())
        self.heard()
        self._note(ChangeEffect.DEMAND)

    def event(self, resource: Watched, type_: str, raw: Json) -> None:
        """Apply one event of a watch."""
        with self._lock:
            if type_ == "DELETED":
                effect = self._state.remove(resource, key_of(raw))
                self.unreadable.forget(resource, key_of(raw))
            else:
                self._admit(resource, (raw,))
                effect = self.unreadable.apply(resource, raw, self._state.steps(resource, raw))
        self._note(effect)

    def _admit(self, resource: Watched, items: Sequence[Json]) -> None:
        """Check that some objects may be added. Otherwise drop those of the resource, which is listed again.

        Until then the last observation stands, and grows old.
        """
        try:
            self._kept.admit(resource, [key_of(raw) for raw in items], lambda: self._state.keys(resource))
        except TooMuchKept:
            self._streams[resource].listed = False
            self._state.retain(resource, set())
            self.unreadable.retain(resource, set())
            raise

    def heard(self) -> None:
        """Note a sign of life, and advance the time of a complete observation."""
        self._heard_at = self._clock.now()
        self._last_heard.note(self._streams, self._heard_at)
        self._note_seen()

    def _note_seen(self) -> None:
        if self._heard_at is not None and self._complete() and not self._failing_streams():
            at = self._proven_until(self._heard_at)
            # A time from the future is from before the clock was put back.
            is_first = self._seen_at is None or self._seen_at > self._heard_at
            self._seen_at = at if self._seen_at is None or is_first else max(self._seen_at, at)
            self.settled.set()

    def _end_first_wait(self) -> None:
        """End the wait for the first observation: a required stream fails."""
        self.settled.set()

    def _run(self, resources: AbstractSet[Watched]) -> None:
        with self._lock:
            for resource in resources:
                self._streams[resource] = Stream(self._server, resource, self, self._pace)
        self._start(resources)

    def _watch_custom_kinds(self) -> None:
        """Watch custom resources that own pods of the followed workloads.

        The observation before them stands until they have been listed.
        """
        with self._lock:
            new = self._state.customs - self._streams.keys()
        self._run(new)

    def _start(self, resources: Iterable[Watched]) -> None:
        for resource in resources:
            # A failing optional stream ends the wait only if every required stream is listed.
            failed = self._note_seen if resource.optional else self._end_first_wait
            self._tasks[resource] = asyncio.create_task(self._streams[resource].run(failed))

    def _watch_engine(self) -> None:
        """Watch the engine's objects, where it keeps any in the cluster."""
        self._engine = self._report_objects = None
        source = self.target.reports
        if source is not None:
            objects = source.objects()
            options = ListOptions(namespace=source.namespace, selector=SELECTOR, page=source.page)
            self._engine = FollowedObjects(
                self._server, objects.parts, options, clock=self._clock, pace=self._pace, changed=self._changed
            )
            self._report_objects = objects

    def _note_heartbeat(self) -> None:
        """Pass an answered heartbeat on."""
        self.heard()
        self._companions.heard()
        if self._engine is not None:
            self._engine.heard()

    def _note_api_versions(self) -> None:
        """Note that the server serves other API versions than before, so that other placements can run there."""
        with self._lock:
            self._dirty = True
        if self._complete():
            self._changed(ChangeEffect.CAPACITY)

    def _complete(self) -> bool:
        return all(stream.listed or (stream.resource.optional and stream.failures) for stream in self._streams.values())

    def _failing_streams(self) -> list[Stream]:
        return [stream for stream in self._streams.values() if stream.failures and not stream.resource.optional]

    def _note(self, effect: ChangeEffect) -> None:
        if effect:
            self._dirty = True
            if not self._changing_target.locked():
                self._watch_custom_kinds()
            if self._complete():
                self._changed(effect)


def _needed(target: ClusterTarget) -> frozenset[Watched]:
    return needed_resources(
        target.refs, target.kinds, node_pools=target.node_pools, sources=target.sources, placed=target.placed
    )


def _why_unwatched(stream: Stream) -> str:
    """Say why an optional resource is not watched; empty where it is, and where a cluster may well lack the kind."""
    if stream.absent and stream.resource is Resource.NODE_POOLS:  # which its Cluster names
        return "its API server serves no such kind"
    return stream.refusal or (stream.trouble if stream.failures > 1 else "")
