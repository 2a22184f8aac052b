"""What Overspill commits is judged by the API servers, controllers and schedulers of the clusters that it is for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.core.schema import yaml
from tests.e2e.conftest import LAYOUT, Fleet
from tests.e2e.control_plane import Cluster, Json, missing, program

NAMESPACE = "vllm-demo"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/vllm"
QUICK = {
    "fleet.yaml": {"engine: argocd": "engine: manifests"},
    "policies/serving.yaml": {
        "headroom: 1": "headroom: 0",
        "window: 10s": "window: 1s",
        "window: 15m": "window: 1s",
        "coolDown: 5m": "coolDown: 1s",
    },
}


@pytest.fixture(scope="module")
def world(start_cluster: Callable[[str], Cluster]) -> dict[str, Cluster]:
    """Make the clusters that the layout's observations describe: nodes, taints, and who else uses them."""
    clusters: dict[str, Cluster] = {}
    for name in ("worker-2", "worker-3"):
        cluster = clusters[name] = start_cluster(name)
        path = LAYOUT / "observations" / f"{name}.yaml"
        [document] = yaml.parse(path.read_bytes(), path.name)
        for pool in document.value["pools"]:
            for node in pool["nodes"]:
                cluster.add_node(
                    node["name"],
                    allocatable={key: str(amount) for key, amount in pool["allocatable"].items()},
                    labels=pool["labels"],
                    taints=pool.get("taints", ()),
                    cordoned=node.get("cordoned", False),
                )
                if used := node.get("used"):
                    cluster.occupy(node["name"], {key: str(amount) for key, amount in used.items()})
        cluster.ensure_namespace(NAMESPACE)
        cluster.until(lambda cluster=cluster: furnished(cluster), "the namespace is not ready")
    return clusters


def test_burst_runs_where_it_was_placed_and_leaves_nothing_when_it_is_reverted(
    world: dict[str, Cluster], fleet: Fleet
) -> None:
    if reason := missing(["kustomize"]):
        pytest.skip(reason)
    near, far = world["worker-2"], world["worker-3"]
    before = {cluster.name: settled(cluster) for cluster in world.values()}
    fleet.describe(QUICK)
    fleet.observe(missing=8)  # worker-2 has four GPUs free, and so many does the policy allow
    with fleet.daemon():
        fleet.until(lambda: len(fleet.subjects()) == 2, "no bursts")
        placed = fleet.check_out()
        near_burst, far_burst = burst(placed, near), burst(placed, far)

        # Each file by itself, checked as strictly as the server can, before anything is really there.
        for cluster, directory in ((near, near_burst), (far, far_burst)):
            for file in sorted((directory / "manifests").iterdir()):
                strictly = ("apply", "--server-side", "--dry-run=server", "--validate=strict")
                cluster.kubectl(*strictly, "--filename", str(file))
            assert settled(cluster) == before[cluster.name]

        # Two of the ways that plain manifests are applied by.
        near.kubectl("apply", "--server-side", "--filename", str(near_burst / "manifests"))
        far.kubectl("apply", "--filename=-", stdin=kustomize(far_burst))
        for cluster, directory in ((near, near_burst), (far, far_burst)):
            cluster.until(lambda cluster=cluster: ready(cluster) == 4, "the burst does not run")
            pods = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods", f"overspill.dev/placement={directory.name}")
            assert len(pods) == 4, "each replica carries its placement's label"
        assert nodes(near) == {"worker-2-gpu-1"}
        assert nodes(far) <= {"worker-3-gpu-1", "worker-3-gpu-2"}, "worker-3-gpu-3 is cordoned"

        fleet.observe(missing=0)
        fleet.until(lambda: len(fleet.subjects()) == 4, "no reverts")
    assert all(subject.startswith('Revert "burst(llm/vllm): 4 replicas on worker-') for subject in fleet.subjects()[2:])
    assert not list((fleet.check_out() / "clusters").rglob("*.yaml"))

    # What has gone from the branch goes from the cluster: by file in one, by our label in the other.
    near.kubectl("delete", "--filename", str(near_burst / "manifests"))
    kinds = "configmaps,services,deployments.apps"
    far.kubectl("delete", kinds, f"--namespace={NAMESPACE}", f"--selector=overspill.dev/placement={far_burst.name}")
    for cluster in world.values():
        cluster.until(
            lambda cluster=cluster: settled(cluster) == before[cluster.name],
            f"left behind or taken along: {settled(cluster) ^ before[cluster.name]}",
        )
        assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_the_next_replica_would_have_had_no_node(world: dict[str, Cluster], fleet: Fleet) -> None:
    """Hold the layout's words to it: worker-2 has room for four, by its scheduler's count too."""
    cluster = world["worker-2"]
    fleet.describe(QUICK)
    fleet.observe(missing=4)
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
    directory = burst(fleet.check_out(), cluster)
    cluster.kubectl("apply", "--server-side", "--filename", str(directory / "manifests"))
    try:
        cluster.until(lambda: ready(cluster) == 4, "the burst does not run")
        cluster.kubectl("scale", "deployment/vllm", "--replicas=5", f"--namespace={NAMESPACE}")
        cluster.until(lambda: len(pending(cluster)) == 1, "a fifth replica has found a node")
        [pod] = pending(cluster)
        assert "Insufficient nvidia.com/gpu" in pod["status"]["conditions"][0]["message"]
    finally:
        cluster.kubectl("delete", "--filename", str(directory / "manifests"))


def burst(tree: Path, cluster: Cluster) -> Path:
    """Return the directory of the one placement on a cluster."""
    [directory] = (tree / "clusters" / cluster.name).iterdir()
    return directory


def kustomize(directory: Path) -> str:
    """Build a directory with kustomize."""
    command = [program("kustomize"), "build", str(directory)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def settled(cluster: Cluster) -> frozenset[str]:
    """Name all objects but those that others make of others' objects whenever they get to it."""
    return frozenset(name for name in cluster.inventory() if not name.startswith(("EndpointSlice ", "Endpoints ")))


def furnished(cluster: Cluster) -> bool:
    """Tell whether the namespace has what the controller manager puts into every namespace."""
    kinds = ("serviceaccounts", "configmaps")
    return all(cluster.items(f"/api/v1/namespaces/{NAMESPACE}/{kind}") for kind in kinds)


def ready(cluster: Cluster) -> int:
    """Count the replicas of the burst that are ready, by the Deployment's own status."""
    count: int = cluster.call("GET", DEPLOYMENT)["status"].get("readyReplicas", 0)
    return count


def nodes(cluster: Cluster) -> set[str]:
    """Name the nodes that the burst's pods run on."""
    return {pod["spec"]["nodeName"] for pod in cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods")}


def pending(cluster: Cluster) -> list[Json]:
    """List the pods that the scheduler has found no node for."""
    return [
        pod
        for pod in cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods")
        if pod["status"].get("conditions") and not pod["spec"].get("nodeName")
    ]
