"""Three clusters with a fleet over them: a small one whose demand spills over, one with Flux, one with Argo CD.

Clusters and engines start once. A test gets them with a fleet of its own through the fixture
`three_clusters`, and leaves none of it behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e import argo_cd, command_step, flux, webhooks
from tests.e2e.argo_cd import ArgoCD
from tests.e2e.charts import PUBLISHED
from tests.e2e.components import Missing, sources
from tests.e2e.control_plane import Cluster
from tests.e2e.flux import Flux
from tests.e2e.kubeconfigs import LAYOUT, kubeconfig

if TYPE_CHECKING:
    from tests.e2e.conftest import Fleet

GPU = "nvidia.com/gpu"
HOME, FLUX, ARGO_CD = "worker-1", "worker-2", "worker-3"
NAMESPACES = ("vllm-demo", "vllm-stack")
H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"
NODES = {
    HOME: [("worker-1-gpu-1", 2, H100)],
    FLUX: [("worker-2-gpu-1", 8, A100)],
    ARGO_CD: [("worker-3-gpu-1", 8, H100), ("worker-3-gpu-2", 8, H100)],
}
"""Name, GPUs and model of each cluster's nodes."""

_GIT = "https://git.example.com/acme/fleet.git"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_LEFT = "deployments,statefulsets,replicasets,jobs,services,configmaps,secrets,pods"


class ThreeClusters:
    """The clusters and engines, and while `with_fleet` lasts, one fleet on them."""

    def __init__(self, home: Path) -> None:
        """Start everything; clusters side by side, since each waits more than it works."""
        self.clusters: dict[str, Cluster] = {}
        self._engines: list[Flux | ArgoCD] = []
        try:
            with ThreadPoolExecutor(len(NODES)) as pool:
                started = {name: pool.submit(Cluster, name, home / name) for name in NODES}
                self.clusters = {name: future.result() for name, future in started.items() if not future.exception()}
            for future in started.values():
                future.result()  # raises what has kept a cluster from starting
            for name in NODES:
                self._add_nodes(name)
                for namespace in NAMESPACES:
                    self.clusters[name].ensure_namespace(namespace)
            flux.teach(self.clusters[FLUX])
            released = sources(argo_cd.KINDS)
            assert not isinstance(released, Missing), released
            argo_cd.teach(self.clusters[ARGO_CD], released)
            self.flux = Flux(self.clusters[FLUX], home / "flux", known_as=FLUX)
            self._engines.append(self.flux)
            self.argo_cd = ArgoCD(self.clusters[ARGO_CD], home / "argocd", known_as=ARGO_CD)
            self._engines.append(self.argo_cd)
        except BaseException:
            self.stop()
            raise

    @contextmanager
    def with_fleet(self, fleet: Fleet, charts: str) -> Iterator[None]:
        """Lend the clusters to a fleet, and clean up behind it."""
        self._fleet, self._charts, self._following = fleet, charts, False
        try:
            yield
        finally:
            if self._following:
                self.flux.forget()
                self.argo_cd.forget()
            self.take_back_rights()
            for cluster in self.clusters.values():
                self._empty(cluster)

    def describe(self, edits: Mapping[str, Mapping[str, str]]) -> None:
        """Commit the layout for these clusters, with edits as in `Fleet.describe`, and have both engines follow it."""
        usual: dict[str, dict[str, str]] = {
            "fleet.yaml": {
                _GIT: self._fleet.url,
                "engine: argocd\n": f"engine: argocd\n  argocd: {{connection: {{context: {ARGO_CD}}}}}\n",
            },
            f"clusters/{FLUX}.yaml": {"\nspec:\n": "\nspec:\n  engine: flux\n"},
            "templates/vllm-helm.yaml": {PUBLISHED: self._charts},
        }
        for name, more in edits.items():
            usual[name] = usual.get(name, {}) | dict(more)
        self._fleet.describe(usual)
        self.left_to_a_person()
        self.flux.follow(self._fleet)
        self.argo_cd.follow(self._fleet)

    def left_to_a_person(self) -> None:
        """Clean up after engines that follow the fleet, whoever had them do so."""
        self._following = True

    def take_back_rights(self) -> None:
        """Leave no role of ours: what `bootstrap --apply` made is in the way of what kubectl applies."""
        for cluster in self.clusters.values():
            for kind in ("clusterrolebindings", "clusterroles", "rolebindings", "roles"):
                for found in cluster.items(f"{_RBAC}/{kind}"):
                    name, namespace = found["metadata"]["name"], found["metadata"].get("namespace")
                    if name.startswith("overspill"):
                        within = f"/namespaces/{namespace}" if namespace else ""
                        cluster.call("DELETE", f"{_RBAC}{within}/{kind}/{name}")

    @contextmanager
    def without_gpus(self, name: str) -> Iterator[None]:
        """Leave a cluster one node, without GPUs, in place of its own, and put those back in the end."""
        cluster, node = self.clusters[name], f"{name}-cpu-1"
        cluster.kubectl("delete", "nodes", *(gpu_node for gpu_node, _, _ in NODES[name]))
        cluster.add_node(node, allocatable={"cpu": "16", "memory": "64Gi"})
        try:
            yield
        finally:
            cluster.kubectl("delete", "nodes", node)
            self._add_nodes(name)

    def kubeconfig(self) -> Path:
        """Write a kubeconfig with a context for each cluster, and the right to read what the engines say."""
        for name, rights in ((FLUX, "rbac-flux.yaml"), (ARGO_CD, "rbac-argocd.yaml")):
            self.clusters[name].kubectl("apply", "--filename", str(LAYOUT / "bootstrap" / rights))
        return kubeconfig(self._fleet.path, *self.clusters.values())

    def announce(self, *, since: str) -> None:
        """Tell both engines of a push, as a git host would: all that came upon a commit of the output branch."""
        after = self._fleet.tip()
        if not flux.lacking(flux.NOTIFICATION):
            assert webhooks.generic(self.flux.webhook_url(), self.flux.hook_token) == 200
        self.argo_cd.announce(self._fleet.url, before=since, after=after, changed=self._fleet.changed(since))

    def stop(self) -> None:
        """End everything."""
        for engine in self._engines:
            engine.stop()
        for cluster in self.clusters.values():
            cluster.stop()

    def _add_nodes(self, name: str) -> None:
        for node, gpus, model in NODES[name]:
            self.clusters[name].add_node(
                node,
                allocatable={"cpu": "256", "memory": "2Ti", GPU: str(gpus)},
                labels={"nvidia.com/gpu.product": model},
            )

    def _empty(self, cluster: Cluster) -> None:
        """Leave no object that somebody made in the fleet's namespaces, or that a retained burst left."""
        for namespace in (*NAMESPACES, command_step.NAMESPACE):
            cluster.kubectl("delete", _LEFT, "--all", f"--namespace={namespace}", "--wait=false")
            pods = f"/api/v1/namespaces/{namespace}/pods"
            cluster.until(lambda pods=pods: not cluster.items(pods), "pods are still there")


def missing() -> str:
    """Say what the three clusters lack here beyond control planes; empty if they can be started."""
    return "; ".join(reason for reason in (flux.missing(), argo_cd.missing()) if reason)
