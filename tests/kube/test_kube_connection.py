"""A Cluster file says how its API server is reached, without an address or a credential."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube import KubeObservations
from reconciler.core.load import assemble, parse_file
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.policy import Connection, Desired
from tests.kube.apiserver import kubeconfig
from tests.situations import cluster, desired


def read(connection: str) -> Desired:
    text = f"""\
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {{name: worker-1}}
spec: {{{connection}}}
"""
    return assemble(CommitId(""), {"cluster.yaml": parse_file(text.encode())})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", None),
        ("connection: {}", Connection(context="worker-1")),
        ("connection: {context: gke_worker-1}", Connection(context="gke_worker-1")),
        ("connection: {inCluster: true}", Connection(in_cluster=True)),
    ],
)
def test_connection_is_a_context_or_the_cluster_that_we_are_in(written: str, meant: Connection | None) -> None:
    assert read(written).clusters[ClusterName("worker-1")].connection == meant


def test_two_connections_at_once_are_refused() -> None:
    (problem, *_) = read("connection: {context: a, inCluster: true}").problems
    assert str(problem) == "cluster.yaml:4: spec.connection: has both context and inCluster (try leaving context out)"


def test_address_in_the_fleet_repository_is_refused() -> None:
    (problem, *_) = read("connection: {server: https://10.0.0.1}").problems
    assert "spec.connection.server: unknown field" in str(problem)


def test_cluster_that_we_are_not_in_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    view = KubeObservations(None, clock=SystemClock(), patience=timedelta(seconds=5))
    try:
        view.follow(desired(clusters=(cluster("worker-1", connection=Connection(in_cluster=True)),)))
        (problem,) = view.observe().problems
    finally:
        view.close()
    assert str(problem) == "cluster worker-1: cannot be watched: cannot be connected to: Service host/port is not set."


def test_kubeconfig_that_breaks_keeps_the_clusters_that_it_had(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "kubeconfig", ("worker-1", "http://127.0.0.1:1"))
    view = KubeObservations(path, clock=SystemClock(), patience=timedelta(seconds=5))
    try:
        view.follow(desired(clusters=(cluster("worker-1"),)))
        path.write_text("][")
        view.follow(desired(clusters=(cluster("worker-1"),)))
        told = [str(problem) for problem in view.observe().problems]
    finally:
        view.close()
    assert f"{path}: cannot be read: it is not a kubeconfig" in told
    assert any(line.startswith("cluster worker-1: cannot be watched") for line in told)
