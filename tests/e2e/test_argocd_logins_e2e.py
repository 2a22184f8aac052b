"""The daemon reaches clusters by the Secrets of a real Argo CD, and learns from it what became of a burst."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube import KubeObservations
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.rollout import EngineState
from tests.e2e.argo_cd import NAMESPACE, ArgoCD, missing, teach
from tests.e2e.components import Missing, sources
from tests.e2e.conftest import LAYOUT, Fleet
from tests.e2e.control_plane import Cluster
from tests.e2e.test_watching_e2e import DEPLOYMENTS, GPU, H100, bound, demand, deployment, watching

BY_ARGO_CD = {"spec:\n": "spec:\n  connection: {argocd: true}\n"}
EDITS = {
    "fleet.yaml": {"engine: argocd\n": "engine: argocd\n  argocd: {connection: {context: control}}\n"},
    "clusters/worker-1.yaml": BY_ARGO_CD,
    "clusters/worker-2.yaml": BY_ARGO_CD,
    "policies/serving.yaml": {"headroom: 1": "headroom: 0", "window: 10s": "window: 1s", "window: 15m": "window: 3s"},
}


@pytest.fixture
def home(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start worker-1, which is short of GPUs."""
    cluster = start_cluster("argocd-home")
    cluster.add_node("gpu-1", allocatable={"cpu": "64", "memory": "512Gi", GPU: "2"}, labels=H100)
    cluster.ensure_namespace("vllm-demo")
    cluster.create(DEPLOYMENTS, deployment(2))
    return cluster


@pytest.fixture
def away(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start worker-2, which has GPUs and Argo CD."""
    if reason := missing():
        pytest.skip(reason)
    found = sources("github.com/argoproj/argo-cd/v3@v3.3.18")
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    cluster = start_cluster("argocd-away")
    teach(cluster, found)
    cluster.add_node("gpu-1", allocatable={"cpu": "64", "memory": "512Gi", GPU: "8"}, labels=H100)
    cluster.ensure_namespace("vllm-demo")
    return cluster


@pytest.fixture
def argo_cd(home: Cluster, away: Cluster, fleet: Fleet, tmp_path: Path) -> Iterator[ArgoCD]:
    """Run Argo CD, which knows both clusters."""
    argo_cd = ArgoCD(away, tmp_path / "argo", known_as="worker-2")
    try:
        argo_cd.know("worker-1", home.access)
        argo_cd.trust(fleet.server, "fleet.git")
        text = (LAYOUT / "bootstrap" / "argocd.yaml").read_text()
        away.kubectl(
            "apply",
            "--server-side",
            "--filename=-",
            stdin=text.replace("https://git.example.com/acme/fleet.git", fleet.url),
        )
        yield argo_cd
        away.kubectl("delete", "applicationsets,appprojects", "--all", "--namespace", NAMESPACE)
    finally:
        argo_cd.stop()


def test_clusters_are_seen_by_argo_cds_logins_and_a_burst_by_its_application(
    home: Cluster, away: Cluster, argo_cd: ArgoCD, fleet: Fleet
) -> None:
    fleet.describe(EDITS)
    config = kubeconfig(fleet.path, away)
    with watching(fleet, config) as status:
        fleet.until(lambda: demand(status()).get("running") == 2, "the Deployment is not seen")
        home.kubectl("scale", "deployment/vllm", "-n", "vllm-demo", "--replicas=5")
        fleet.until(lambda: any("3 replicas on worker-2" in one for one in fleet.subjects()), "no burst")
        argo_cd.look()
        away.until(lambda: bound(status()) == 3, "its replicas are not seen")
    assert home.access.token not in fleet.last_words()
    (record,) = fleet.check_out().glob("clusters/worker-2/*/placement.yaml")
    until_healthy(away, fleet, config, record.parent.name)
    assert away.access.token not in fleet.last_words()


def until_healthy(away: Cluster, fleet: Fleet, config: Path, placement: str) -> None:
    """Watch as the daemon does until Argo CD calls the burst healthy, and compare what it says with the branch."""
    view = KubeObservations(config, clock=SystemClock(), patience=timedelta(seconds=20))
    try:
        files = fleet.check_out("main")
        read = {str(path.relative_to(files)): parse_file(path.read_bytes()) for path in files.rglob("*.yaml")}
        view.follow(assemble(CommitId(""), read))
        path = f"clusters/worker-2/{placement}"

        def healthy() -> bool:
            seen: Observed = view.observe()
            return path in seen.reports and seen.reports[path].state is EngineState.HEALTHY

        away.until(healthy, "no report that it is healthy")
        seen = view.observe()
        assert ClusterName("worker-2") in seen.reporting
        report = seen.reports[path]
        assert report.digest in (fleet.check_out() / path / "placement.yaml").read_text()
        assert report.revision == fleet.git("rev-parse", "placements", at=fleet.bare).strip()
    finally:
        view.close()


def kubeconfig(path: Path, control: Cluster) -> Path:
    """Log in to Argo CD's cluster alone, with the rights of bootstrap/rbac-argocd*.yaml and no others."""
    for name in ("rbac-argocd.yaml", "rbac-argocd-logins.yaml"):
        control.kubectl("apply", "-f", str(LAYOUT / "bootstrap" / name))
    token = control.kubectl("create", "token", "overspill", "--namespace=overspill-system").strip()
    authority = base64.b64encode(control.access.authority.read_bytes()).decode()
    server = {"server": control.access.server, "certificate-authority-data": authority}
    target = path / "kubeconfig"
    target.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "control", "cluster": server}],
                "users": [{"name": "control", "user": {"token": token}}],
                "contexts": [{"name": "control", "context": {"cluster": "control", "user": "control"}}],
            }
        )
    )
    return target
