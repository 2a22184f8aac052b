"""Two clusters that are watched over HTTP, at a quick pace that leaves a busy machine time to answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube import KubeObservations, WatchTiming
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Cluster as ModelCluster
from reconciler.model.policy import Desired
from reconciler.model.units import ONE
from tests.builders.inputs import cluster, desired
from tests.builders.kube_objects import GPU, node
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

ONE_NAME, TWO_NAME = ClusterName("worker-1"), ClusterName("worker-2")
QUICK = WatchTiming(
    connect=5,
    answer=8,
    silence=2,
    steady=0.3,
    beat=0.1,
    first_backoff=0.02,
    longest_backoff=0.1,
    demand=0.01,
    capacity=0.1,
    page=3,
    absent=0.1,
)
LASTING = replace(QUICK, silence=60, beat=5)
"""A pace at which a quiet watch outlasts any test, and late heartbeats put nothing out of sight: a resource is listed
once, however busy the machine."""
PATIENCE = timedelta(seconds=15)


def fleet(*clusters: ModelCluster) -> Desired:
    return desired(clusters=clusters)


class SetClock(SystemClock):
    """The system clock, put ahead."""

    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


class Fleet:
    """Two clusters, and a kubeconfig that names them."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path / "kubeconfig"
        self.stack = stack
        self.one, self.two = Cluster(), Cluster()
        for each in (self.one, self.two):
            stack.enter_context(serving(each))
            each.put("nodes", node("gpu-1"))
        self.clock = SetClock()
        self.woken: list[str] = []
        self.process = ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0)
        self.login()
        self.desired = fleet(cluster("worker-1"), cluster("worker-2"))

    def login(self, token: str = "") -> None:
        kubeconfig(self.path, ("worker-1", self.one.url), ("worker-2", self.two.url), token=token)

    def view(self, pace: WatchTiming = QUICK, patience: timedelta = PATIENCE) -> KubeObservations:
        view = KubeObservations(
            self.path, clock=self.clock, wake=self.woken.append, patience=patience, pace=pace,
            measure=self.process.call,
        )  # fmt: skip # a view
        self.stack.callback(view.close)
        return view

    def following(self, pace: WatchTiming = QUICK) -> KubeObservations:
        view = self.view(pace)
        view.follow(self.desired)
        return view


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait for something to come true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def seen(view: KubeObservations, name: ClusterName = ONE_NAME) -> ClusterObservation:
    observed = view.observe()
    assert name in observed.clusters, observed.problems
    return observed.clusters[name]


def free(view: KubeObservations, name: ClusterName = ONE_NAME) -> int:
    return sum(node.free.amounts[GPU] for pool in seen(view, name).pools for node in pool.nodes) // ONE
