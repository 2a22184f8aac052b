"""k3s and clusters of one node: what is counted as room, and what as demand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.ids import ClusterName
from tests.builders.kube_objects import GPU, containers, node, pod
from tests.builders.waits import lack_of_room

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
SERVER = {
    "beta.kubernetes.io/instance-type": "k3s",
    "node-role.kubernetes.io/control-plane": "true",
    "node.kubernetes.io/instance-type": "k3s",
}
"""Labels of a k3s server, which has no taint (https://docs.k3s.io/cli/server)."""
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
"""The taint that kubeadm gives to control-plane nodes (https://kubernetes.io/docs/reference/labels-annotations-taints)."""


def capacity(*nodes: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> ClusterCapacity:
    state = ClusterState(frozenset())
    for resource, raws in ((Resource.NODES, nodes), (Resource.PODS, pods)):
        for raw in raws:
            state.apply(resource, raw)
    return ClusterCapacity(state.observation(ClusterName("edge"), AT))


def fits(room: ClusterCapacity, **spec: Any) -> int:
    """Count the replicas of a pod with a GPU that fit."""
    metadata = {"namespace": "demo", "labels": {"app": "vllm"}}
    return room.count(replica_shape({"containers": containers(), **spec}, metadata), 100)


def only(topology: str, kind: str) -> dict[str, Any]:
    """Write a required rule of a pod about its own kind."""
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": "vllm"}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_a_k3s_server_takes_pods_and_a_control_plane_of_kubeadm_does_not() -> None:
    assert fits(capacity(node("edge", 2, labels=SERVER))) == 2
    tainted = capacity(node("edge", 2, labels=SERVER, taints=[CONTROL_PLANE]))
    assert fits(tainted) == 0
    assert fits(tainted, tolerations=[{**CONTROL_PLANE, "operator": "Exists"}]) == 2


def test_one_node_is_one_host() -> None:
    one = capacity(node("edge", 4, labels=SERVER))
    host = "kubernetes.io/hostname"
    assert fits(one, **only(host, "podAntiAffinity")) == 1
    assert fits(one, **only(host, "podAffinity")) == 4
    spread = {"maxSkew": 1, "topologyKey": host, "whenUnsatisfiable": "DoNotSchedule"}
    assert fits(one, topologySpreadConstraints=[{**spread, "labelSelector": {"matchLabels": {"app": "vllm"}}}]) == 4


def test_one_node_without_zones_has_no_room_for_pods_that_are_spread_over_zones() -> None:
    """kube-scheduler leaves out nodes without the label of a topologyKey; local clusters have no zone."""
    zone = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "vllm"}},
    }
    assert fits(capacity(node("edge", 4, labels=SERVER)), topologySpreadConstraints=[zone]) == 0


def test_a_port_of_the_service_load_balancer_is_taken() -> None:
    """The pods of ServiceLB have a hostPort for each port of a Service (https://docs.k3s.io/networking)."""
    ports = [{"name": "lb-tcp-443", "image": "rancher/klipper-lb", "ports": [{"containerPort": 443, "hostPort": 443}]}]
    balancer = pod(
        "svclb-traefik-1a2b3c4d-x7k2p",
        on="edge",
        namespace="kube-system",
        owner=("DaemonSet", "svclb-traefik-1a2b3c4d"),
        containers=ports,
    )
    room = capacity(node("edge", 4, labels=SERVER), pods=(balancer,))
    assert fits(room) == 4
    for port, expected in ((443, 0), (8443, 1)):
        asked = [{**containers()[0], "ports": [{"containerPort": port, "hostPort": port}]}]
        assert fits(room, containers=asked) == expected


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (f"0/1 nodes are available: 1 Insufficient {GPU}. preemption: 0/1 nodes are available.", f"insufficient {GPU}"),
        (f"0/2 nodes are available: 1 Insufficient {GPU}, 1 node(s) had volume node affinity conflict.",
         f"insufficient {GPU}"),
        (f"0/2 nodes are available: 1 Insufficient {GPU}, 1 node(s) didn't match PersistentVolume's node affinity.",
         f"insufficient {GPU}"),
        ("0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.", None),
        ("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", None),
        ('0/1 nodes are available: persistentvolumeclaim "models" not found.', None),
    ],
    ids=["one full node", "volume on the full one", "the same, since 1.33", "the node is gone", "not bound", "missing"],
)  # fmt: skip # a table
def test_a_claim_on_a_full_node_is_demand_and_a_claim_alone_is_none(message: str, cause: str | None) -> None:
    """A volume of local-path is on the node of its first pod (https://docs.k3s.io/storage), where others wait."""
    assert lack_of_room(message) == cause
