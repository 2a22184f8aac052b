"""A real Argo CD applies what is committed, and takes it away again, by the bootstrap that we print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.argo_cd import APPLICATIONS, KINDS, NAMESPACE, ArgoCD, missing, teach
from tests.e2e.charts import PUBLISHED
from tests.e2e.components import Missing, sources
from tests.e2e.conftest import LAYOUT, Fleet
from tests.e2e.control_plane import Cluster, Json

QUICK = {
    "policies/serving.yaml": {"window: 30s": "window: 1s", "window: 5m": "window: 1s", "coolDown: 5m": "coolDown: 1s"}
}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start worker-2 with the kinds of the release that the bootstrap asks for."""
    if reason := missing():
        pytest.skip(reason)
    found = sources(KINDS)
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    cluster = start_cluster("argo")
    teach(cluster, found)
    cluster.add_node(
        "gpu", allocatable={"cpu": "64", "memory": "1Ti", "nvidia.com/gpu": "8"},
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    )  # fmt: skip
    for namespace in ("vllm-demo", "vllm-stack"):
        cluster.ensure_namespace(namespace)
    return cluster


@pytest.fixture
def argo_cd(cluster: Cluster, fleet: Fleet, charts: str, tmp_path: Path) -> Iterator[ArgoCD]:
    """Run Argo CD with the bootstrap of the layout, for the fleet's repository and the charts served here."""
    argo_cd = ArgoCD(cluster, tmp_path / "argo", known_as="worker-2")
    try:
        argo_cd.trust(fleet.server, "fleet.git")
        text = (LAYOUT / "bootstrap" / "argocd.yaml").read_text()
        text = text.replace("https://git.example.com/acme/fleet.git", fleet.url).replace(PUBLISHED, charts)
        cluster.kubectl("apply", "--server-side", "--filename=-", stdin=text)
        yield argo_cd
        cluster.kubectl("delete", "applicationsets,appprojects", "--all", "--namespace", NAMESPACE)
    finally:
        argo_cd.stop()


def test_burst_comes_and_goes_by_commits_alone(cluster: Cluster, argo_cd: ArgoCD, fleet: Fleet) -> None:
    fleet.describe(QUICK)
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == ("Synced", "Healthy"), "Argo CD has not applied the burst")
        [application] = cluster.items(APPLICATIONS)
        pods = cluster.items(
            "/api/v1/namespaces/vllm-demo/pods",
            f"overspill.dev/placement={application['metadata']['labels']['overspill.dev/placement']}",
        )
        assert len(pods) == 3
        fleet.observe(missing=0)
        fleet.until(lambda: len(fleet.subjects()) == 2, "no revert")
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there")
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_chart_is_installed_by_argo_cd_with_the_values_of_the_burst(
    cluster: Cluster, argo_cd: ArgoCD, fleet: Fleet, charts: str
) -> None:
    fleet.describe(QUICK | {"templates/vllm-helm.yaml": {PUBLISHED: charts}})
    fleet.observe(missing=2, namespace="vllm-stack")
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == ("Synced", "Healthy"), "Argo CD has not installed the chart")
        assert len(cluster.items("/api/v1/namespaces/vllm-stack/pods", "model=llama3")) == 2
        fleet.observe(missing=0, namespace="vllm-stack")
        fleet.until(lambda: len(fleet.subjects()) == 2, "no revert")
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there")
    assert cluster.items("/apis/apps/v1/namespaces/vllm-stack/deployments") == []


def settled(cluster: Cluster) -> tuple[str, str] | None:
    """Return sync and health of the one Application; None while there is none."""
    found: list[Json] = cluster.items(APPLICATIONS)
    if not found:
        return None
    status = found[0].get("status", {})
    return status.get("sync", {}).get("status", ""), status.get("health", {}).get("status", "")
