"""The control plane of an engine: its reports on placements, and its logins to other clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from reconciler.adapters.kube.followed_objects import FollowedObjects
from reconciler.adapters.kube.input_budget import InputBudget
from reconciler.adapters.kube.login import Login
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.stream import ListOptions
from reconciler.adapters.kube.targets import ControlTarget
from reconciler.adapters.kube.tasks import cancel, send_heartbeats
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.engines.logins import ClusterLogin, ClusterLogins, Unusable
from reconciler.core.engines.reports import SELECTOR, ReportObjects
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.errors import Problem
from reconciler.model.rollout import EngineReport
from reconciler.ports import Clock, MeasureCall, unmeasured_call


class FollowedControlPlane:
    """Keeps the reports and logins of one control plane in memory (a `login.LoginStore`).

    It lives in the event loop; `reports`, `troubles` and `login` are called from other threads. `renewed` is called
    when logins have changed, `moved` when the control plane is at another server.
    """

    def __init__(
        self,
        target: ControlTarget,
        own_login: Login,
        *,
        clock: Clock,
        pace: WatchTiming,
        changed: Callable[[ChangeEffect], None],
        renewed: Callable[[], None],
        moved: Callable[[], None],
        measure: MeasureCall = unmeasured_call,
        budget: InputBudget | None = None,
    ) -> None:
        self.target = target
        self.own_login = own_login
        self._pace = pace
        self._server = ApiServer(own_login, pace, moved, measure=measure, target=target.title, budget=budget)
        self._report_objects: ReportObjects | None = None
        self._cluster_logins: ClusterLogins | None = None
        self._reports: FollowedObjects | None = None
        self._logins: FollowedObjects | None = None
        if target.reports is not None:
            source = target.reports
            self._report_objects = source.objects()
            options = ListOptions(namespace=source.namespace, selector=SELECTOR, page=source.page)
            self._reports = FollowedObjects(
                self._server, self._report_objects.parts, options, clock=clock, pace=pace, changed=changed
            )
        if target.logins is not None:
            self._cluster_logins = target.logins.logins()
            options = ListOptions(namespace=target.logins.namespace, selector=target.logins.selector)
            self._logins = FollowedObjects(
                self._server,
                {target.logins.resource: self._cluster_logins},
                options,
                clock=clock,
                pace=pace,
                changed=lambda _: renewed(),
            )
        self._beat = asyncio.create_task(send_heartbeats(self._server, pace, self._heard))

    @property
    def followed(self) -> list[FollowedObjects]:
        """The watched objects: reports, logins, or both."""
        return [objects for objects in (self._reports, self._logins) if objects is not None]

    async def close(self) -> None:
        """Stop the streams, and close the connection."""
        await cancel([self._beat])
        for objects in self.followed:
            await objects.close()
        await self._server.close()

    async def settle(self) -> None:
        """Wait until every resource has been listed or has failed once."""
        for objects in self.followed:
            await objects.settled.wait()

    def reports(self) -> Mapping[str, EngineReport] | None:
        """Return the reports on placements; the same object while nothing has changed.

        None while one of the resources is incomplete.
        """
        if self._reports is None or self._report_objects is None or not self._reports.whole():
            return None
        with self._reports.lock:
            return self._report_objects.reports.all()

    def troubles(self) -> tuple[str, ...]:
        """List the resources that cannot be watched, and why."""
        return tuple(trouble for objects in self.followed for trouble in objects.troubles())

    def problems(self, place: str) -> Iterator[Problem]:
        """Report the objects that cannot be read."""
        for objects in self.followed:
            yield from objects.unreadable.problems(place)

    async def read(self) -> None:
        """Wait for the first list of logins or its failure, up to the time-out of a connection."""
        if self._logins is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.connect):
                    await self._logins.settled.wait()

    def login(self, cluster: str) -> ClusterLogin | Unusable | None:
        """Return the newest login to a cluster; None before the first list."""
        if self._logins is None or self._cluster_logins is None or not self._logins.complete():
            return None
        with self._logins.lock:
            return self._cluster_logins.login(cluster)

    def _heard(self) -> None:
        for objects in self.followed:
            objects.heard()
