"""A Cluster file says how its API server is reached, without an address or a credential."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube import KubeObservations
from reconciler.adapters.kube.targets import Contexts
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.observe.unknown_clusters import with_unknown_clusters
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.policy import Connection, Desired
from tests.builders.inputs import NOW, cluster, desired
from tests.fakes.kube_api_server import kubeconfig


def read(connection: str, fleet: str = "") -> Desired:
    text = f"""\
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {{name: worker-1}}
spec: {{{connection}}}
"""
    files = {"clusters.yaml": text, **({"fleet.yaml": fleet} if fleet else {})}
    return assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in files.items()})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", None),
        ("connection: {}", Connection(context="worker-1")),
        ("connection: {context: gke_worker-1}", Connection(context="gke_worker-1")),
        ("connection: {inCluster: true}", Connection(in_cluster=True)),
        ("connection: {argocd: true}", Connection(argocd="worker-1")),
    ],
)
def test_connection_is_a_context_or_the_cluster_that_we_are_in(written: str, meant: Connection | None) -> None:
    assert read(written).clusters[ClusterName("worker-1")].connection == meant


def test_two_connections_at_once_are_refused() -> None:
    (problem, *_) = read("connection: {context: a, inCluster: true}").problems
    assert str(problem) == "clusters.yaml:4: spec.connection: has both context and inCluster (try leaving context out)"


@pytest.mark.parametrize("other", ["context: a", "inCluster: true"])
def test_login_of_argo_cd_and_another_way_at_once_are_refused(other: str) -> None:
    (problem, *_) = read(f"connection: {{{other}, argocd: true}}").problems
    assert str(problem).startswith("clusters.yaml:4: spec.connection: has both ")


FLEET = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {argocd: {connection: {%s}}}\n"


def test_login_of_argo_cd_needs_to_know_where_argo_cd_is() -> None:
    (problem,) = read("connection: {argocd: true}").problems
    assert str(problem) == (
        "clusters.yaml:4: spec.connection.argocd: nothing says how Argo CD's own cluster is reached"
        " (say in the Fleet: spec.argocd.connection: {context: ...} or {inCluster: true})"
    )
    assert read("connection: {argocd: true}", FLEET % "inCluster: true").problems == ()


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("", "has neither context nor inCluster (try inCluster: true)"),
        ("context: a, inCluster: true", "has both context and inCluster (try leaving context out)"),
    ],
)
def test_cluster_of_argo_cd_is_reached_in_one_way(written: str, wrong: str) -> None:
    (problem,) = read("", FLEET % written).problems
    assert str(problem) == f"fleet.yaml:4: spec.argocd.connection: {wrong}"


def test_broken_fleet_file_is_not_held_against_its_clusters() -> None:
    (problem,) = read("connection: {argocd: true}", FLEET % "").problems
    assert problem.path == "fleet.yaml"


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
    assert f"{path}: is not YAML, from line 1 on" in told
    assert any(line.startswith("cluster worker-1: cannot be watched") for line in told)


CUT_OFF = "apiVersion: v1\nclusters:\n- {name: worker-1, cluster: {server: 'http://127.0.0.1:1'}}\ncontexts:\n"
LACKING = "is not a kubeconfig, or is cut off: it lacks its clusters, contexts or users"
NO_ENTRY = "is not a kubeconfig: one of its contexts has no name, or no context"
BROKEN = {
    "empty": (b"", LACKING),
    "no mapping": (b"[]", "is not a kubeconfig: it is no mapping"),
    "no list": (b"clusters: {}\ncontexts: x\nusers: []\n", "is not a kubeconfig: its contexts are no list"),
    "no text": (b"\xff", "is not YAML"),
    "no YAML": (b"clusters: []\ncontexts: [\n", "is not YAML, from line 3 on"),
    "nothing in it": (b"{}", LACKING),
    "a context that is none": (b"clusters: []\ncontexts: [x]\nusers: []\n", NO_ENTRY),
    "a context without a name": (b"clusters: []\ncontexts: [{context: {}}]\nusers: []\n", NO_ENTRY),
    "cut off before contexts": (CUT_OFF.removesuffix("contexts:\n").encode(), LACKING),
    "cut off at contexts": (CUT_OFF.encode(), LACKING),
    "cut off after contexts": (
        f"{CUT_OFF}- {{name: worker-2, context: {{cluster: worker-1, user: x}}}}\n".encode(),
        LACKING,
    ),
}


@pytest.mark.parametrize(("written", "why"), BROKEN.values(), ids=BROKEN)
def test_kubeconfig_that_is_broken_or_cut_off_has_the_contexts_that_it_had(
    tmp_path: Path, written: bytes, why: str
) -> None:
    path = kubeconfig(tmp_path / "kubeconfig", ("worker-1", "http://127.0.0.1:1"))
    contexts = Contexts(path)
    assert contexts.read() == {"worker-1"}
    path.write_bytes(written)
    assert contexts.read() == {"worker-1"}
    assert [str(problem) for problem in contexts.unreadable] == [f"{path}: {why}"]
    kubeconfig(path, ("worker-2", "http://127.0.0.1:1"))
    assert contexts.read() == {"worker-2"}
    assert contexts.unreadable == ()


def test_kubeconfig_without_contexts_is_none_too_few(tmp_path: Path) -> None:
    contexts = Contexts(kubeconfig(tmp_path / "kubeconfig"))
    assert contexts.read() == set()
    assert contexts.unreadable == ()


def test_context_that_is_not_there_is_told_with_one_that_is(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    kubeconfig(path, ("worker-1", "http://127.0.0.1:9"), ("worker-3", "http://127.0.0.1:9"))
    lost = cluster("worker-3", connection=Connection(context="wroker-3"))
    with closing(KubeObservations(path, clock=SystemClock())) as view:
        view.follow(desired(clusters=[lost]))
        (problem,) = view.observe().problems
    assert str(problem) == (
        "cluster worker-3: cannot be watched: the kubeconfig has no context wroker-3"
        " (no Cluster uses yet: worker-1, worker-3)"
    )


def test_contexts_that_other_clusters_use_are_named_as_theirs(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    kubeconfig(path, ("worker-1", "http://127.0.0.1:9"))
    lost = cluster("worker-3", connection=Connection(context="wroker-3"))
    with closing(KubeObservations(path, clock=SystemClock())) as view:
        view.follow(desired(clusters=[cluster("worker-1"), lost]))
        told = [str(problem) for problem in view.observe().problems if "worker-3" in str(problem)]
    (line,) = told
    assert line == (
        "cluster worker-3: cannot be watched: the kubeconfig has no context wroker-3"
        " (other Clusters use all that it has: worker-1)"
    )


def test_the_context_of_another_cluster_is_never_offered(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    kubeconfig(path, ("worker-1", "http://127.0.0.1:9"), ("prod-2", "http://127.0.0.1:9"))
    fleet = desired(
        clusters=[
            cluster("worker-1"), cluster("worker-2"), cluster("worker-3", connection=Connection(context="worker-4"))
        ]
    )  # fmt: skip # a cluster for each way to name a context
    with closing(KubeObservations(path, clock=SystemClock())) as view:
        view.follow(fleet)
        observed = view.observe()
    problems = with_unknown_clusters(observed, fleet).problems
    told = [str(problem) for problem in problems if "context" in problem.message]
    assert len(told) == 2
    assert all("(no Cluster uses yet: prod-2" in line for line in told)


def test_an_observation_of_an_unknown_cluster_is_never_taken_for_one_that_is_observed() -> None:
    fleet = desired(clusters=[cluster("worker-1"), cluster("worker-2")])
    seen = {
        ClusterName(name): ClusterObservation(cluster=ClusterName(name), observed_at=NOW)
        for name in ("worker-1", "worker-11")
    }
    (problem,) = with_unknown_clusters(Observed(clusters=seen), fleet).problems
    assert problem.hint == "try 'worker-2'"


def test_cluster_that_nothing_leads_to_is_told_unless_somebody_else_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    kubeconfig(path, ("worker-44", "http://127.0.0.1:9"))
    fleet = desired(clusters=[cluster("worker-4")])
    with closing(KubeObservations(path, clock=SystemClock())) as view:
        view.follow(fleet)
        observed = view.observe()
    (problem,) = with_unknown_clusters(observed, fleet).problems
    assert str(problem) == (
        "cluster worker-4: is not watched: the kubeconfig has no context of its name, and nothing else here tells of it"
        " (no Cluster uses yet: worker-44; set its spec.connection.context, or name another kubeconfig)"
    )
    path.write_text("][")
    with closing(KubeObservations(path, clock=SystemClock())) as view:
        view.follow(fleet)
        unreadable = view.observe()
    assert [str(problem) for problem in with_unknown_clusters(unreadable, fleet).problems] == [
        f"{path}: is not YAML, from line 1 on"
    ]
    pushed = {ClusterName("worker-4"): ClusterObservation(cluster=ClusterName("worker-4"), observed_at=NOW)}
    assert with_unknown_clusters(replace(observed, clusters=pushed), fleet).problems == ()
