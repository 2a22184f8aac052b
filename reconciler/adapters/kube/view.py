"""Observations of all reachable clusters."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from operator import is_
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import structlog

from reconciler.adapters.kube.cluster import FollowedCluster
from reconciler.adapters.kube.control_plane import FollowedControlPlane
from reconciler.adapters.kube.input_budget import InputBudget
from reconciler.adapters.kube.login import ArgoSecretLogin, KubeconfigLogin, Login
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.source_applications import FollowedApplications
from reconciler.adapters.kube.targets import (
    APPLICATIONS,
    ApplicationTarget,
    ClusterTarget,
    Contexts,
    ControlTarget,
    Targets,
    watch_targets,
)
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.bulkhead import Seam, attempt
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.errors import Bug, Problem, Severity, Transient
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired, EngineName
from reconciler.model.rollout import EngineReport
from reconciler.ports import Clock, MeasureCall, Wake, unmeasured_call

log = structlog.get_logger()
T = TypeVar("T")
WOKEN_BY = "observation"
_SOON = 10
"""Seconds for the event loop to add or drop clusters, which needs no answer of a server."""
_LAST = 0.01
"""Seconds for sockets to close, which takes a few iterations of the event loop."""


class KubeObservations:
    """Watches the clusters of the fleet (a `ports.ClusterView`).

    It watches clusters with a `Cluster.connection` or whose name is a context of the kubeconfig, and the control planes
    of engines, which need not be among them. `plugins` are the login plugins that Argo CD's Secrets may run here.
    `wake` is called from the watching thread after a change of demand or capacity. `patience` bounds the wait of
    `follow` for new clusters; it is zero in the daemon, which is woken instead. The thread starts with the first
    cluster. `measure` measures each request.
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        *,
        clock: Clock,
        wake: Wake | None = None,
        patience: timedelta = timedelta(),
        pace: WatchTiming | None = None,
        plugins: frozenset[str] = frozenset(),
        measure: MeasureCall = unmeasured_call,
    ) -> None:
        self._measure = measure
        self._kubeconfig = kubeconfig
        self._clock = clock
        self._wake = wake
        self._patience = patience.total_seconds()
        self._pace = pace or WatchTiming()
        self._plugins = plugins
        self._contexts = Contexts(kubeconfig)
        self._followed: tuple[Desired | None, frozenset[str]] = (None, frozenset())
        self._targets = Targets()
        self._clusters: dict[ClusterName, FollowedCluster] = {}
        self._control: dict[EngineName, FollowedControlPlane] = {}
        self._applications: FollowedApplications | None = None
        self._report_parts: tuple[Mapping[str, EngineReport], ...] = ()
        self._reports: Mapping[str, EngineReport] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._settling = asyncio.Lock()
        self._budget = InputBudget()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._wake_due = 0.0
        self._wake_timer: asyncio.TimerHandle | None = None

    def follow(self, desired: Desired) -> None:
        """Watch the clusters of the fleet, and on each primary the workloads that may burst."""
        contexts = self._contexts.read()
        if desired is self._followed[0] and contexts == self._followed[1]:
            return
        targets = watch_targets(desired, contexts, has_kubeconfig=self._kubeconfig is not None)
        before = self._targets
        changed = (targets.clusters, targets.control) != (before.clusters, before.control)
        changed = changed or targets.applications != before.applications
        if changed:
            self._run(self._settle(targets), _SOON)
        self._followed, self._targets = (desired, contexts), targets
        if changed and self._patience:
            with suppress(Transient):  # `observe` reports the clusters that are still missing
                self._run(self._wait(), self._patience + _SOON)

    def observe(self) -> Observed:
        """Return the newest observation of each cluster; clusters without a complete observation are left out.

        An engine out of reach has no reports, rather than its last ones.
        """
        problems = [*self._contexts.unreadable, *self._contexts.hidden({*self._targets.contexts().values()})]
        seen = {}
        all_reports: list[Mapping[str, EngineReport]] = []
        reporting: dict[ClusterName, EngineName] = {}
        for name, cluster in list(self._clusters.items()):
            trouble = self._targets.lost.get(f"cluster {name}") or cluster.trouble()
            observation = attempt(Seam.CLUSTER, f"cluster {name}", cluster.observation)
            problems += cluster.problems(f"cluster {name}")
            if isinstance(observation, Bug):
                problems.append(observation.problem(observation.item))
                continue
            if observation is not None:
                seen[name] = observation
            elif not trouble and self._patience:
                trouble = f"could not be listed within {self._patience:g} s"
            words = (*((f"cannot be watched: {trouble}",) if trouble else ()), *cluster.unwatched())
            problems += _warnings(f"cluster {name}", words)
            reports = attempt(Seam.ENGINE, f"cluster {name}", cluster.reports)
            if isinstance(reports, Bug):
                problems.append(reports.problem(reports.item))
            elif reports is not None:
                all_reports.append(reports)
                reporting[name] = cluster.target.engine
        for engine, plane in list(self._control.items()):
            title = plane.target.title
            lost = self._targets.lost.get(title)
            problems += _warnings(title, (f"cannot be watched: {lost}",) if lost else plane.troubles())
            reports = attempt(Seam.ENGINE, title, plane.reports)
            problems += plane.problems(title)
            if isinstance(reports, Bug):
                problems.append(reports.problem(title))
            elif reports is not None:
                all_reports.append(reports)
                reporting |= dict.fromkeys(self._targets.deployed.get(engine, ()), engine)
        applications = self._applications
        if applications is not None:
            lost = self._targets.lost.get(APPLICATIONS)
            problems += _warnings(APPLICATIONS, (f"cannot be watched: {lost}",) if lost else applications.troubles())
            problems += applications.problems(APPLICATIONS)
        return Observed(
            clusters=seen,
            applications={} if applications is None else applications.sources(),
            reports=self._join_reports(tuple(filter(None, all_reports))),
            reporting=reporting,
            nameless={} if self._contexts.unreadable else self._targets.nameless,  # whose error says it all
            reached_by={name: str(target.connection) for name, target in self._targets.clusters.items()},
            problems=tuple(problems),
        )

    def _join_reports(self, parts: tuple[Mapping[str, EngineReport], ...]) -> Mapping[str, EngineReport]:
        """Join the reports of all engines; the same object while its parts are the same."""
        if len(parts) != len(self._report_parts) or not all(map(is_, parts, self._report_parts)):
            self._report_parts = parts
            self._reports = {path: report for part in parts for path, report in part.items()}
        return self._reports

    def close(self) -> None:
        """Drop all clusters and end the thread. A second call does nothing."""
        if self._loop is None or self._thread is None:
            return
        self._run(self._settle(Targets()), _SOON)
        self._run(asyncio.sleep(_LAST), _SOON)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None
        self._followed, self._targets = (None, frozenset()), Targets()

    def _run(self, coroutine: Coroutine[Any, Any, T], within: float) -> T:
        """Run a coroutine in the event loop, and start the loop if there is none yet.

        Raises Transient when it takes too long, as on a busy machine; the coroutine goes on.
        """
        if self._loop is None:
            self._loop = NamingLoop()
            self._thread = Thread(target=self._loop.run_forever, name="kube", daemon=True)
            self._thread.start()
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(within)
        except TimeoutError as error:
            raise Transient(
                f"watching clusters: nothing came of it for {within:g} s (try again; is this machine busy?)"
            ) from error

    async def _settle(self, targets: Targets) -> None:
        """Add new clusters, drop those that are no target any more, and retarget the others."""
        async with self._settling:  # the call before may still go on after its time-out
            await self._follow_targets(targets)

    async def _follow_targets(self, targets: Targets) -> None:
        going = []
        for name in list(self._clusters):
            target = targets.clusters.get(name)
            if target is None or not target.same_connection(self._clusters[name].target):
                going.append(self._clusters.pop(name).close())
                continue
            while (cluster := self._clusters[name]).target != target:  # the cluster may get another server meanwhile
                await cluster.retarget(target)
        stale = [name for name, plane in self._control.items() if plane.target != targets.control.get(name)]
        going += [self._control.pop(name).close() for name in stale]
        for engine, control in targets.control.items():
            if engine not in self._control:
                self._control[engine] = self._followed_control_plane(control)
        for name, target in targets.clusters.items():
            if name not in self._clusters:
                self._clusters[name] = self._followed_cluster(target)
        before = self._applications
        if before is not None and not before.target.same_place(targets.applications):
            self._applications = None
            going.append(before.close())
        if targets.applications is not None:
            if self._applications is None:
                self._applications = self._followed_applications(targets.applications)
            else:
                await self._applications.retarget(targets.applications)
        await asyncio.gather(*going, *self._background)
        if not (targets.clusters or targets.control or targets.applications) and self._wake_timer is not None:
            self._wake_timer.cancel()
            self._wake_timer = None

    def _followed_cluster(self, target: ClusterTarget) -> FollowedCluster:
        def moved() -> None:
            if self._clusters.get(target.name) is followed:
                self._begin_anew(target.name)

        login, title = self._login(target), str(target.name)
        server = ApiServer(login, self._pace, moved, measure=self._measure, target=title, budget=self._budget)
        followed = FollowedCluster(target, server, clock=self._clock, pace=self._pace, changed=self._schedule_wake)
        return followed

    def _followed_control_plane(self, target: ControlTarget) -> FollowedControlPlane:
        def moved() -> None:
            if self._control.get(target.engine) is not followed:
                return
            self._control[target.engine] = self._followed_control_plane(target)
            self._spawn(followed.close())
            for name in self._reached_by(target.engine):
                self._begin_anew(name)  # by the logins of the new control plane

        followed = FollowedControlPlane(
            target,
            KubeconfigLogin(target.connection, self._kubeconfig),
            clock=self._clock,
            pace=self._pace,
            changed=self._schedule_wake,
            renewed=lambda: self._renew(target.engine),
            moved=moved,
            measure=self._measure,
            budget=self._budget,
        )
        return followed

    def _followed_applications(self, target: ApplicationTarget) -> FollowedApplications:
        def moved() -> None:
            if self._applications is followed:
                self._applications = self._followed_applications(followed.target)
                self._spawn(followed.close())

        followed = FollowedApplications(
            target,
            KubeconfigLogin(target.connection, self._kubeconfig),
            clock=self._clock,
            pace=self._pace,
            changed=self._schedule_wake,
            moved=moved,
            measure=self._measure,
            budget=self._budget,
        )
        return followed

    def _begin_anew(self, name: ClusterName) -> None:
        """Drop the observation of a cluster, and watch its new server."""
        before = self._clusters[name]
        self._clusters[name] = self._followed_cluster(before.target)
        self._spawn(before.close())
        self._schedule_wake(ChangeEffect.CAPACITY)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start a background task; `close` and retargeting wait for it."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _login(self, target: ClusterTarget) -> Login:
        plane = self._control.get(target.control.engine) if target.control is not None else None
        if plane is None:
            return KubeconfigLogin(target.connection, self._kubeconfig)
        return ArgoSecretLogin(target.connection.argocd, plane, local=plane.own_login, plugins=self._plugins)

    def _reached_by(self, engine: EngineName) -> list[ClusterName]:
        """List the clusters whose login comes from an engine's control plane."""
        return [
            name
            for name, cluster in self._clusters.items()
            if cluster.target.control is not None and cluster.target.control.engine is engine
        ]

    def _renew(self, engine: EngineName) -> None:
        """Renew the logins of the clusters that use an engine's control plane."""
        for name in self._reached_by(engine):
            self._spawn(self._clusters[name].renew())

    async def _wait(self) -> None:
        """Wait until each cluster has been listed or has failed once."""
        followed: list[FollowedCluster | FollowedControlPlane | FollowedApplications] = [
            *self._clusters.values(),
            *self._control.values(),
            *((self._applications,) if self._applications is not None else ()),
        ]
        waiting = [asyncio.create_task(cluster.settle()) for cluster in followed]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=self._patience)
            for task in late:
                task.cancel()

    def _schedule_wake(self, effect: ChangeEffect) -> None:
        """Wake the daemon after a delay that gathers changes; the delay for demand is shorter than for capacity."""
        if self._wake is None:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + (self._pace.demand if effect is ChangeEffect.DEMAND else self._pace.capacity)
        if self._wake_timer is not None:
            if self._wake_due <= due:
                return
            self._wake_timer.cancel()
        self._wake_due = due
        self._wake_timer = loop.call_at(due, self._wake_now)

    def _wake_now(self) -> None:
        self._wake_timer = None
        if self._wake is not None:
            self._wake(WOKEN_BY)


def _warnings(path: str, messages: Iterable[str]) -> Iterable[Problem]:
    return (Problem(path=path, message=message, severity=Severity.WARNING) for message in messages)


class NamingLoop(asyncio.SelectorEventLoop):
    """An event loop with a thread for each look-up of a name.

    asyncio shares a few threads, and a name server that does not answer blocks each for many seconds: the names of some
    clusters would block all others. A connector looks a name up once at a time, so there are at most as many threads
    as servers. The end of the process waits for none of them.
    """

    async def getaddrinfo(self, host: Any, port: Any, **kind: Any) -> Any:
        """Resolve a name as `socket.getaddrinfo` does."""
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()  # the caller can be cancelled, the look-up cannot

        def look_up() -> None:
            try:
                answer.set_result(socket.getaddrinfo(host, port, **kind))
            except Exception as error:  # noqa: BLE001 - the caller gets it
                answer.set_exception(error)

        Thread(target=look_up, name=f"name {host}", daemon=True).start()
        return await asyncio.wrap_future(answer, loop=self)
