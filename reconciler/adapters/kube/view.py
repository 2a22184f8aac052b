"""All clusters that can be reached, as one view."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import structlog
from kubernetes.aio.config.kube_config import KubeConfigMerger
from yaml import YAMLError

from reconciler.adapters.kube.cluster import FollowedCluster, Target
from reconciler.adapters.kube.pace import Pace
from reconciler.adapters.kube.server import ApiServer
from reconciler.core.kubernetes.parts import Effect
from reconciler.errors import Problem, Severity
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Connection, Desired
from reconciler.model.workload import WorkloadRef
from reconciler.ports import Clock, Wake

log = structlog.get_logger()
T = TypeVar("T")
WOKEN_BY = "observation"
_SOON = 10
"""Seconds for the event loop to take up or let go of clusters, which asks no server."""


class KubeObservations:
    """Watches the clusters of the fleet (a `ports.ClusterView`).

    A cluster is watched that says how (`Cluster.connection`), or whose name is a context of the kubeconfig. `wake` is
    called, from a thread of ours, when something has changed that matters. `patience` is how long `follow` may wait for
    clusters that are new to it; a daemon has none, since it is woken. The thread begins with the first cluster.
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        *,
        clock: Clock,
        wake: Wake | None = None,
        patience: timedelta = timedelta(),
        pace: Pace | None = None,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._clock = clock
        self._wake = wake
        self._patience = patience.total_seconds()
        self._pace = pace or Pace()
        self._contexts: tuple[object, frozenset[str]] = (None, frozenset())
        self._wrong: tuple[Problem, ...] = ()
        self._followed: tuple[Desired | None, frozenset[str]] = (None, frozenset())
        self._targets: dict[ClusterName, Target] = {}
        self._clusters: dict[ClusterName, FollowedCluster] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._due = 0.0
        self._ringing: asyncio.TimerHandle | None = None

    def follow(self, desired: Desired) -> None:
        """Watch the clusters of the fleet, and of each primary the workloads that may burst from it."""
        contexts = self._known_contexts()
        if desired is self._followed[0] and contexts == self._followed[1]:
            return
        targets = _wanted(desired, contexts, asked=self._kubeconfig is not None)
        changed = targets != self._targets
        if changed:
            self._run(self._settle(targets), _SOON)
        self._followed, self._targets = (desired, contexts), targets
        if changed and self._patience:
            self._run(self._wait(), self._patience + _SOON)

    def observe(self) -> Observed:
        """Return each cluster as it was last seen; those that were never seen whole are left out."""
        problems = list(self._wrong)
        seen = {}
        for name, cluster in list(self._clusters.items()):
            observation, trouble = cluster.observation(), cluster.trouble()
            if observation is not None:
                seen[name] = observation
            elif not trouble and self._patience:
                trouble = f"could not be listed within {self._patience:g} s"
            told = (*((f"cannot be watched: {trouble}",) if trouble else ()), *cluster.lacks())
            problems += (Problem(path=f"cluster {name}", message=one, severity=Severity.WARNING) for one in told)
        return Observed(clusters=seen, problems=tuple(problems))

    def close(self) -> None:
        """Let go of all clusters and end the thread. A second call does nothing."""
        if self._loop is None or self._thread is None:
            return
        self._run(self._settle({}), _SOON)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None
        self._followed, self._targets = (None, frozenset()), {}

    def _known_contexts(self) -> frozenset[str]:
        """Read which contexts the kubeconfig has, whenever it has changed; a broken one keeps those that it had."""
        if self._kubeconfig is None:
            return frozenset()
        stamp, known = self._contexts
        try:
            stat = self._kubeconfig.stat()
            now = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if now != stamp:
                self._wrong = ()
                self._contexts = (now, _contexts(self._kubeconfig))
        except (OSError, YAMLError, AttributeError, KeyError, TypeError) as error:
            told = (error.strerror if isinstance(error, OSError) else None) or "it is not a kubeconfig"
            self._wrong = (Problem(path=str(self._kubeconfig), message=f"cannot be read: {told}"),)
            return known
        return self._contexts[1]

    def _run(self, coroutine: Coroutine[Any, Any, T], within: float) -> T:
        """Run something in the event loop, which begins here when there is none yet."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(target=self._loop.run_forever, name="kube", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(within)

    async def _settle(self, targets: dict[ClusterName, Target]) -> None:
        """Take up clusters that are new, let go of those that are not wanted any more, and tell the others."""
        going = []
        for name, cluster in list(self._clusters.items()):
            target = targets.get(name)
            if target is None or target.connection != cluster.target.connection:
                going.append(self._clusters.pop(name).close())
            elif target != cluster.target:
                await cluster.retarget(target)
        for name, target in targets.items():
            if name not in self._clusters:
                server = ApiServer(target.connection, self._kubeconfig, self._pace)
                self._clusters[name] = FollowedCluster(
                    target, server, clock=self._clock, pace=self._pace, changed=self._ring
                )
        await asyncio.gather(*going)
        if not targets and self._ringing is not None:
            self._ringing.cancel()
            self._ringing = None

    async def _wait(self) -> None:
        """Wait until each cluster has been seen, or has failed once."""
        waiting = [asyncio.create_task(cluster.settled.wait()) for cluster in self._clusters.values()]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=self._patience)
            for task in late:
                task.cancel()

    def _ring(self, effect: Effect) -> None:
        """Wake the daemon soon: changes come in flocks, and demand is more urgent than room."""
        if self._wake is None:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + (self._pace.demand if effect is Effect.DEMAND else self._pace.capacity)
        if self._ringing is not None:
            if self._due <= due:
                return
            self._ringing.cancel()
        self._due = due
        self._ringing = loop.call_at(due, self._rung)

    def _rung(self) -> None:
        self._ringing = None
        if self._wake is not None:
            self._wake(WOKEN_BY)


def _wanted(desired: Desired, contexts: frozenset[str], *, asked: bool) -> dict[ClusterName, Target]:
    """Say which clusters can be watched, and for whose sake; `asked` tells that there is a kubeconfig at all."""
    refs: dict[ClusterName, set[WorkloadRef]] = {}
    for workload in desired.policies:
        ref = desired.templates[workload].ref
        if ref is not None:
            refs.setdefault(desired.workspaces[workload.workspace].primary, set()).add(ref)
    targets = {}
    for name, cluster in desired.clusters.items():
        connection = cluster.connection
        if connection is None:
            if name not in contexts:
                continue
            connection = Connection(context=name)
        # Without any kubeconfig this machine is not meant to see the clusters: files or pushes tell of them.
        if connection.in_cluster or asked:
            targets[name] = Target(name=name, connection=connection, refs=frozenset(refs.get(name, ())))
    return targets


def _contexts(kubeconfig: Path) -> frozenset[str]:
    """Read the names of a kubeconfig's contexts."""
    config = KubeConfigMerger(str(kubeconfig)).config
    return frozenset(str(context["name"]) for context in config["contexts"].value)
