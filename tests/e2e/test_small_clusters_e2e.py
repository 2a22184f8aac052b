"""Clusters of one node, with the labels, ports and volumes of k3s: our count and our reading are the scheduler's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.pods.pod_shape import replica_shape
from tests.builders.waits import lack_of_room
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.scheduling import observed, ready
from tests.observe.test_small_clusters import CONTROL_PLANE, SERVER

GPU, NAMESPACE, HOST, ZONE = "nvidia.com/gpu", "small", "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GPUS = 4
HTTPS = 443
"""The port that the pod of the service load balancer has on each node."""


def only(case: str, kind: str) -> Json:
    """Write a required rule of pods about their own kind, by host."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"case": case}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(case: str, key: str) -> Json:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"case": case}}}]}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A node, and pods that may go to it alone."""

    name: str
    fits: int
    spec: Json = field(default_factory=dict)
    taints: tuple[Json, ...] = ()
    port: int = 0

    def pod(self) -> Json:
        resources = {"requests": {"cpu": "1", GPU: "1"}, "limits": {GPU: "1"}}
        ports = [{"containerPort": self.port, "hostPort": self.port}] if self.port else []
        container = {"name": "server", "image": "registry.invalid/server:1", "resources": resources, "ports": ports}
        return {"containers": [container], "nodeSelector": {"case": self.name}, **self.spec}

    @property
    def metadata(self) -> Json:
        return {"namespace": NAMESPACE, "labels": {"app": "vllm", "case": self.name}}


CASES = (
    Case(name="server-of-k3s", fits=GPUS),
    Case(name="control-plane-of-kubeadm", fits=0, taints=(CONTROL_PLANE,)),
    Case(
        name="tolerated-control-plane",
        fits=GPUS,
        taints=(CONTROL_PLANE,),
        spec={"tolerations": [{**CONTROL_PLANE, "operator": "Exists"}]},
    ),
    Case(name="apart-by-host", fits=1, spec=only("apart-by-host", "podAntiAffinity")),
    Case(name="together-by-host", fits=GPUS, spec=only("together-by-host", "podAffinity")),
    Case(name="spread-over-hosts", fits=GPUS, spec=spread("spread-over-hosts", HOST)),
    Case(name="spread-over-zones", fits=0, spec=spread("spread-over-zones", ZONE)),
    Case(name="port-of-the-load-balancer", fits=0, port=HTTPS),
    Case(name="port-that-is-free", fits=1, port=8443),
)


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    made = start_cluster("edge")
    made.ensure_namespace(NAMESPACE)
    return made


def add_node(cluster: Cluster, name: str, case: str, *, gpus: int = GPUS, taints: Iterable[Json] = ()) -> None:
    allocatable = {"cpu": "32", "memory": "64Gi", GPU: str(gpus)}
    cluster.add_node(name, allocatable=allocatable, labels={**SERVER, "case": case}, taints=taints)
    cluster.until(lambda: ready(cluster.call("GET", f"/api/v1/nodes/{name}")), f"node {name} is not ready")


def add_pods(cluster: Cluster, case: str, spec: Json, labels: Json, number: int) -> list[Json]:
    """Make pods, and return them once the scheduler has decided about each."""
    for index in range(number):
        metadata = {"name": f"{case}-{index}", "labels": labels}
        cluster.create(f"/api/v1/namespaces/{NAMESPACE}/pods", {"metadata": metadata, "spec": spec})

    def decided() -> bool:
        pods = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods", f"case={case}")
        return len(pods) >= number and all(pod["spec"].get("nodeName") or message(pod) for pod in pods)

    cluster.until(decided, f"the scheduler has not decided about {case}")
    return cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods", f"case={case}")


def message(pod: Json) -> str:
    """Return the scheduler's words about a pod that it has found no node for."""
    told = [one for one in pod.get("status", {}).get("conditions", ()) if one.get("reason") == "Unschedulable"]
    return str(told[0]["message"]) if told else ""


def counted(cluster: Cluster, case: Case) -> int:
    """Count the replicas that fit by what a watch tells."""
    return ClusterCapacity(observed(cluster)).count(replica_shape(case.pod(), case.metadata), 2 * GPUS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_fits_on_one_node_is_what_the_scheduler_places_there(cluster: Cluster, case: Case) -> None:
    add_node(cluster, case.name, case.name, taints=case.taints)
    cluster.occupy(case.name, {"cpu": "10m"}, namespace="kube-system", name=f"svclb-{case.name}", ports=[HTTPS])
    fits = counted(cluster, case)
    pods = add_pods(cluster, case.name, case.pod(), case.metadata["labels"], GPUS + 1)
    placed = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    assert (fits, placed) == (case.fits, case.fits)


def add_claim(cluster: Cluster, name: str, node: str) -> None:
    """Make a claim with a volume on one node, as the provisioner of local-path makes it for its first pod."""
    body = {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "local-path",
            "hostPath": {"path": f"/var/lib/rancher/k3s/storage/{name}"},
            "claimRef": {"namespace": NAMESPACE, "name": name},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
                }
            },
        },
    }
    cluster.create("/api/v1/persistentvolumes", body)
    claim = {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "local-path",
            "volumeName": name,
        },
    }
    cluster.create(f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims", claim)

    def bound() -> bool:
        claims = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims")
        return any(
            each["metadata"]["name"] == name and each.get("status", {}).get("phase") == "Bound" for each in claims
        )

    cluster.until(bound, f"claim {name} is not bound")


@pytest.mark.parametrize(
    ("case", "others", "volume_on", "cause"),
    [
        ("full", (), "full", f"insufficient {GPU}"),
        ("full-beside-a-free-one", ("free",), "full-beside-a-free-one", f"insufficient {GPU}"),
        ("node-is-gone", (), "nowhere", None),
    ],
    ids=["one full node", "the volume is on the full node", "the node of the volume is gone"],
)
def test_pods_behind_a_local_volume_are_demand_where_its_node_is_full(
    cluster: Cluster, case: str, others: tuple[str, ...], volume_on: str, cause: str | None
) -> None:
    for name in (case, *others):
        add_node(cluster, name, case, gpus=1)
    add_claim(cluster, f"models-{case}", volume_on)
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": f"models-{case}"}}
    spec = {**Case(name=case, fits=0).pod(), "volumes": [volume]}
    pods = add_pods(cluster, case, spec, {"app": "vllm", "case": case}, 2)
    (waiting, *_) = [pod for pod in pods if not pod["spec"].get("nodeName")]
    assert lack_of_room(message(waiting)) == cause, message(waiting)
