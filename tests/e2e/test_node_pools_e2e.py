"""The limits of a NodePool, as Karpenter keeps them, bound a burst to a cluster without nodes, and it grows with them.

Its nodes are spot nodes with a taint and a label, of which the Cluster declares nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.core.schema import yaml
from tests.builders.inputs import GPU
from tests.e2e import karpenter
from tests.e2e.api_server import Json
from tests.e2e.conftest import Fleet
from tests.e2e.control_plane import Cluster
from tests.e2e.karpenter import POOL, POOL_LABEL, Karpenter
from tests.e2e.kubeconfigs import kubeconfig

NAMESPACE = "vllm-demo"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
SPOT = {"key": "capacity", "value": "spot", "effect": "NoSchedule"}
AT_HOME = 2
"""Replicas that worker-1 holds by itself."""
LIMIT = 2
"""GPUs that the NodePool may have at first, one on each of its nodes."""

_DECLARED = f"""\
  autoscaling:
  - labels: {{{POOL_LABEL}: {POOL}}}
    allocatable: {{cpu: "15", memory: 120Gi, {GPU}: "1"}}
    maxNodes: 20
    delay: 2m
"""
_EDITS = {
    "fleet.yaml": {"engine: argocd": "engine: manifests"},
    "clusters/worker-2.yaml": {"  availability:": f"{_DECLARED}  availability:"},
    "policies/serving.yaml": {
        "headroom: 1": "headroom: 0",
        "window: 10s": "window: 1s",
        "window: 15m": "window: 3s",
        "  - name: worker-3\n": "",
    },
}


@pytest.fixture
def home(start_cluster: Callable[[str], Cluster]) -> Cluster:
    cluster = start_cluster("worker-1")
    cluster.add_node("gpu-1", allocatable={"cpu": "64", "memory": "512Gi", GPU: str(AT_HOME)}, labels=H100)
    cluster.ensure_namespace(NAMESPACE)
    cluster.create(DEPLOYMENTS, deployment(AT_HOME))
    return cluster


@pytest.fixture
def away(start_cluster: Callable[[str], Cluster]) -> Cluster:
    if reason := karpenter.missing():
        pytest.skip(reason)
    cluster = start_cluster("worker-2")
    cluster.add_node("cpu-1", allocatable={"cpu": "16", "memory": "64Gi"})
    cluster.ensure_namespace(NAMESPACE)
    return cluster


@pytest.fixture
def autoscaler(away: Cluster, tmp_path: Path) -> Iterator[Karpenter]:
    """Have Karpenter add nodes to worker-2 up to the limit."""
    started = Karpenter(
        away,
        tmp_path / "karpenter",
        resources={"cpu": "16", "memory": "128Gi", GPU: "1"},
        limits={GPU: str(LIMIT)},
        template={"labels": H100, "taints": [SPOT], "capacity_type": "spot"},
    )
    try:
        yield started
    finally:
        started.stop()


def test_a_burst_grows_with_the_limits_of_a_node_pool_and_its_nodes_go_with_the_revert(
    fleet: Fleet, away: Cluster, autoscaler: Karpenter, home: Cluster
) -> None:
    fleet.describe(_EDITS)
    config, recording = kubeconfig(fleet.path, home, away), fleet.path / "passes"

    def explained() -> str:
        return fleet.asks("explain", "llm/vllm", "--output", "json", "--kubeconfig", str(config))

    def until_explained(words: str) -> None:
        fleet.until(lambda: words in explained(), f"explain does not say {words!r}, but {explained()}")

    def until_placed_and_running(replicas: int) -> Path:
        """Apply what is committed, as plain manifests are, and wait until all of it runs on nodes of Karpenter."""
        fleet.until(lambda: placed(fleet) == [replicas], f"not {replicas} replicas, but {placed(fleet)}")
        (manifests,) = fleet.check_out().glob("clusters/worker-2/*/manifests")
        away.kubectl("apply", "--recursive", "--filename", str(manifests))
        away.until(lambda: len(running(away)) == replicas, "they do not run", told=autoscaler.last_words)
        assert {pod["spec"]["nodeName"] for pod in running(away)} == {
            node["metadata"]["name"] for node in autoscaler.nodes()
        }
        return manifests

    autoscaler.refer_to("elsewhere")
    with fleet.daemon("--kubeconfig", str(config), settings={"RECORD": str(recording)}):
        scale(home, AT_HOME + LIMIT + 2)
        until_explained(f"NodePool {POOL} is not Ready: ")
        assert fleet.subjects() == []
        autoscaler.refer_to(POOL)
        until_placed_and_running(LIMIT)
        told = " ".join(" ".join(fleet.log("--format=%B")).split())
        assert f"on spot nodes that NodePool {POOL} adds in about 2m" in told
        until_explained(f"NodePool {POOL}: limit {GPU} {LIMIT} of {LIMIT} used")
        differs = f"NodePoolDiffers: NodePool {POOL}: its nodes have the taint capacity=spot:NoSchedule"
        assert differs in fleet.asks("status", "--output", "json", "--kubeconfig", str(config))

        autoscaler.limit({GPU: str(LIMIT + 1)})
        manifests = until_placed_and_running(LIMIT + 1)
        until_explained(f"NodePool {POOL}: limit {GPU} {LIMIT + 1} of {LIMIT + 1} used")

        scale(home, AT_HOME)
        fleet.until(lambda: placed(fleet) == [], "not given back")
        away.kubectl("delete", "--recursive", "--filename", str(manifests))
        away.until(lambda: not autoscaler.nodes(), "the nodes are still there", told=autoscaler.last_words)
    assert re.fullmatch(r"\d+ passes from .*Z to .*Z: all decided the same\.\n", fleet.replay(recording))


def scale(cluster: Cluster, replicas: int) -> None:
    cluster.kubectl("scale", "deployment/vllm", f"--namespace={NAMESPACE}", f"--replicas={replicas}")


def running(cluster: Cluster) -> list[Json]:
    return [pod for pod in cluster.items(PODS) if pod["status"].get("phase") == "Running"]


def placed(fleet: Fleet) -> list[int]:
    """Return the replicas of each placement on the output branch."""
    if not fleet.log():
        return []
    records = [
        yaml.parse(path.read_bytes(), path.name)[0].value
        for path in fleet.check_out().glob("clusters/*/*/placement.yaml")
    ]
    return [int(record["metadata"]["annotations"]["overspill.dev/replicas"]) for record in records]


def deployment(replicas: int) -> Json:
    container = {"name": "main", "image": "registry.invalid/vllm:1", "resources": {"limits": {GPU: "1"}}}
    pod = {"containers": [container], "nodeSelector": H100, "tolerations": [{**SPOT, "operator": "Equal"}]}
    template = {"metadata": {"labels": {"app": "vllm"}}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "vllm"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}, "spec": spec}
