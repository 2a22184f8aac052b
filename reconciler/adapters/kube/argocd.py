"""The cluster that Argo CD runs in: its Applications, and the logins that it has for other clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from reconciler.adapters.kube.followed_objects import FollowedObjects
from reconciler.adapters.kube.login import Door
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.stream import Scope
from reconciler.adapters.kube.targets import ArgoCDTarget
from reconciler.adapters.kube.tasks import beating, cancel
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.observe.kubernetes import argocd_cluster_secret, engine_reports
from reconciler.core.observe.kubernetes.argocd_cluster_secret import ClusterLogin, ClusterSecrets, Unusable
from reconciler.core.observe.kubernetes.part import ChangeEffect
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.model.rollout import EngineReport
from reconciler.ports import Clock

_LARGE = 25
"""Applications asked for at once: their status names every object that they deploy, which may be 100 KiB each."""


class FollowedArgoCD:
    """Keeps what is wanted of Argo CD's cluster in memory (a `login.Logins`).

    It lives in the event loop; `reports`, `troubles` and `login` are called from other threads. `renewed` is
    called when logins have changed, `moved` when Argo CD is to be looked for at another server.
    """

    def __init__(
        self,
        target: ArgoCDTarget,
        door: Door,
        *,
        clock: Clock,
        pace: WatchTiming,
        changed: Callable[[ChangeEffect], None],
        renewed: Callable[[], None],
        moved: Callable[[], None],
    ) -> None:
        self.target = target
        self.door = door
        self._pace = pace
        self._server = ApiServer(door, pace, moved)
        self._objects = engine_reports.ArgoCDObjects(target.project)
        self._secrets = ClusterSecrets()
        self._applications: FollowedObjects | None = None
        self._logins: FollowedObjects | None = None
        if target.applications:
            scope = Scope(namespace=target.namespace, selector=engine_reports.SELECTOR, page=_LARGE)
            self._applications = FollowedObjects(
                self._server, self._objects.parts, scope, clock=clock, pace=pace, changed=changed
            )
        if target.logins:
            scope = Scope(namespace=target.namespace, selector=argocd_cluster_secret.SELECTOR)
            self._logins = FollowedObjects(
                self._server,
                {Resource.SECRETS: self._secrets},
                scope,
                clock=clock,
                pace=pace,
                changed=lambda _: renewed(),
            )
        self._beat = asyncio.create_task(beating(self._server, pace, self._heard))

    @property
    def followed(self) -> list[FollowedObjects]:
        """What is followed there."""
        return [
            followed_objects for followed_objects in (self._applications, self._logins) if followed_objects is not None
        ]

    async def close(self) -> None:
        """Stop, and close the connection."""
        await cancel([self._beat])
        for followed_objects in self.followed:
            await followed_objects.close()
        await self._server.close()

    async def settle(self) -> None:
        """Wait until all has been listed, or has failed once."""
        for followed_objects in self.followed:
            await followed_objects.settled.wait()

    def reports(self) -> Mapping[str, EngineReport] | None:
        """Return what Argo CD says of placements; the same object for as long as nothing has changed.

        None while not all Applications are known as they are.
        """
        if self._applications is None or not self._applications.whole():
            return None
        with self._applications.lock:
            return self._objects.reports.all()

    def troubles(self) -> tuple[str, ...]:
        """Say what is not looked at, and why."""
        return tuple(trouble for followed_objects in self.followed for trouble in followed_objects.troubles())

    async def read(self) -> None:
        """Wait for the first list of the logins, or for its failure, as long as one waits for a connection."""
        if self._logins is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.connect):
                    await self._logins.settled.wait()

    def login(self, cluster: str) -> ClusterLogin | Unusable | None:
        """Return the login for a cluster as it is known now; None before the first list."""
        if self._logins is None or not self._logins.complete():
            return None
        with self._logins.lock:
            return self._secrets.login(cluster)

    def _heard(self) -> None:
        for followed_objects in self.followed:
            followed_objects.heard()
