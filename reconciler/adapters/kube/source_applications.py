"""Argo CD's Applications that templates are made from, each followed by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from reconciler.adapters.kube.followed_objects import FollowedObjects
from reconciler.adapters.kube.input_budget import InputBudget
from reconciler.adapters.kube.login import Login
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.stream import ListOptions
from reconciler.adapters.kube.targets import APPLICATIONS as TITLE
from reconciler.adapters.kube.targets import ApplicationTarget
from reconciler.adapters.kube.tasks import cancel, send_heartbeats
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.engines.argocd.applications import APPLICATIONS
from reconciler.core.engines.argocd.source_applications import SourceApplication
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.errors import Problem
from reconciler.model.manifest_source import DeployedSources, RepositorySource, UnreadSource
from reconciler.ports import Clock, MeasureCall, unmeasured_call


class FollowedApplications:
    """Keeps what each of some Applications has deployed in memory.

    Each has a watch of its own: those of a whole company are large, and nearly all of them concern no template. It
    lives in the event loop; `sources` and `troubles` are called from other threads. `moved` is called when Argo CD is
    at another server.
    """

    def __init__(
        self,
        target: ApplicationTarget,
        login: Login,
        *,
        clock: Clock,
        pace: WatchTiming,
        changed: Callable[[ChangeEffect], None],
        moved: Callable[[], None],
        measure: MeasureCall = unmeasured_call,
        budget: InputBudget | None = None,
    ) -> None:
        self.target = target
        self._clock = clock
        self._pace = pace
        self._changed = changed
        self._server = ApiServer(login, pace, moved, measure=measure, target=TITLE, budget=budget)
        self._followed: Mapping[str, tuple[SourceApplication, FollowedObjects]] = {}
        self._follow(target.names)
        self._beat = asyncio.create_task(send_heartbeats(self._server, pace, self._heard))

    async def retarget(self, target: ApplicationTarget) -> None:
        """Follow other Applications of the same Argo CD; those that stay are not listed anew."""
        gone = [objects for name, (_, objects) in self._followed.items() if name not in target.names]
        self.target = target
        self._follow(target.names)
        await asyncio.gather(*(objects.close() for objects in gone))

    async def close(self) -> None:
        """Stop the streams, and close the connection."""
        await cancel([self._beat])
        for _, objects in self._followed.values():
            await objects.close()
        await self._server.close()

    async def settle(self) -> None:
        """Wait until every Application has been listed, or has failed once."""
        for _, objects in self._followed.values():
            await objects.settled.wait()

    def sources(self) -> DeployedSources:
        """Return what Applications have deployed; those that are out of sight have no entry."""
        sources: dict[str, RepositorySource | UnreadSource] = {}
        for name, (application, objects) in self._followed.items():
            if objects.whole():
                with objects.lock:
                    sources[name] = application.source
        return sources

    def troubles(self) -> tuple[str, ...]:
        """Say why Applications cannot be watched, each reason once."""
        reasons = (trouble for _, objects in self._followed.values() for trouble in objects.troubles())
        return tuple(dict.fromkeys(reasons))

    def problems(self, place: str) -> Iterator[Problem]:
        """Report the Applications that cannot be read."""
        for _, objects in self._followed.values():
            yield from objects.unreadable.problems(place)

    def _follow(self, names: frozenset[str]) -> None:
        kept = {name: followed for name, followed in self._followed.items() if name in names}
        new = {name: self._begin(name) for name in sorted(names - kept.keys())}
        self._followed = {**kept, **new}

    def _begin(self, name: str) -> tuple[SourceApplication, FollowedObjects]:
        namespace = self.target.namespace
        application = SourceApplication(name, namespace)
        options = ListOptions(namespace=namespace, name=name)
        parts = {APPLICATIONS: application}
        objects = FollowedObjects(
            self._server, parts, options, clock=self._clock, pace=self._pace, changed=self._changed
        )
        return application, objects

    def _heard(self) -> None:
        for _, objects in self._followed.values():
            objects.heard()
