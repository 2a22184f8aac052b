"""What the three clusters share for scenarios: both engines follow one branch, and wait for a signed push only."""

from __future__ import annotations

from reconciler.core.schema import yaml
from tests.e2e.api_server import Json
from tests.e2e.argo_cd import APPLICATIONS
from tests.e2e.conftest import Fleet
from tests.e2e.flux import KUSTOMIZATIONS
from tests.e2e.three_clusters.clusters import ARGO_CD, FLUX, HOME, NODES, ThreeClusters

PODS = "/api/v1/namespaces/vllm-demo/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/vllm-demo/deployments"
ANY_MODEL = """            nodeSelector:
              nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
"""
EDITS = {
    "templates/vllm.yaml": {ANY_MODEL: ""},
    "policies/serving.yaml": {
        "headroom: 1": "headroom: 0",
        "window: 10s": "window: 1s",
        "window: 15m": "window: 3s",
        "coolDown: 5m": "coolDown: 1s",
        "maxReplicas: 8": "maxReplicas: 2",
    },
}


def test_overflow_runs_in_both_clusters_and_goes_with_its_demand(three_clusters: ThreeClusters, fleet: Fleet) -> None:
    home, flux, argo_cd = (three_clusters.clusters[name] for name in (HOME, FLUX, ARGO_CD))
    gpus = sum(count for _, count, _ in NODES[HOME])
    home.create(DEPLOYMENTS, deployment(gpus))
    three_clusters.describe(EDITS)
    with fleet.daemon("--kubeconfig", str(three_clusters.kubeconfig())):
        fleet.until(fleet.log, "the daemon has not begun the branch")
        before = fleet.tip()
        begun = fleet.git("rev-parse", "placements:clusters", at=fleet.bare)
        home.kubectl("scale", "deployment/vllm", "--namespace=vllm-demo", f"--replicas={gpus + 5}")
        fleet.until(lambda: replicas(fleet) == {FLUX: 2, ARGO_CD: 3}, "no bursts")
        three_clusters.announce(since=before)
        flux.until(lambda: running(flux.items(PODS)) == 2, "Flux has not applied", told=three_clusters.flux.last_words)
        argo_cd.until(lambda: running(argo_cd.items(PODS)) == 3, "no pods", told=three_clusters.argo_cd.last_words)
        before = fleet.tip()
        home.kubectl("scale", "deployment/vllm", "--namespace=vllm-demo", f"--replicas={gpus}")
        fleet.until(lambda: replicas(fleet) == {}, "no reverts")
        three_clusters.announce(since=before)
        flux.until(lambda: not flux.items(KUSTOMIZATIONS, "overspill.dev/placement"), "Flux keeps its burst")
        argo_cd.until(lambda: not argo_cd.items(APPLICATIONS), "Argo CD keeps its burst")
    for cluster in (flux, argo_cd):
        assert cluster.inventory(selector="overspill.dev/placement") == frozenset()
    assert fleet.git("rev-parse", "placements:clusters", at=fleet.bare) == begun, "the tree is not what it was"


def replicas(fleet: Fleet) -> dict[str, int]:
    """Count what the branch asks for, by cluster: pods that are noticed one after another burst in steps."""
    tree = fleet.check_out()
    counts: dict[str, int] = {}
    for file in tree.glob("clusters/*/*/**/*.yaml"):
        for document in yaml.parse(file.read_bytes(), file.name):
            if document.value["kind"] == "Deployment":
                counts[file.relative_to(tree).parts[1]] = document.value["spec"]["replicas"]
    return counts


def running(pods: list[Json]) -> int:
    """Count the pods that run."""
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def deployment(replicas: int) -> Json:
    """Write the object on the primary cluster that the layout's template names."""
    container = {"name": "main", "image": "registry.invalid/vllm:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "vllm"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}, "spec": spec}
