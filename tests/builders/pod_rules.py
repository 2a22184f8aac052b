"""Short ways to say pods with rules and the nodes that they look at, raw, and what we count of them."""

from __future__ import annotations

from typing import Any

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from tests.builders.inputs import NOW
from tests.fakes.kube_scheduler import GPU, REQUIRED, Raw

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
LABELS = {"app": "vllm"}
SELECTOR = {"matchLabels": LABELS}


def seen(nodes: list[Raw]) -> ClusterObservation:
    """Observe the nodes the way a cluster is watched."""
    state = ClusterState()
    for node in nodes:
        raw = {
            "metadata": {"name": node["name"], "labels": node["labels"]},
            "spec": {"taints": node["taints"], "unschedulable": node["cordoned"]},
            "status": {
                "allocatable": {GPU: str(node["gpus"]), "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        state.apply(Resource.NODES, raw)
        for number, pod in enumerate(node["pods"]):
            metadata = {"name": f"{node['name']}-{number}", "namespace": pod["namespace"], "labels": pod["labels"]}
            metadata |= {"deletionTimestamp": "2026-11-20T10:00:00Z"} if pod.get("leaving") else {}
            spec = {**pod["spec"], "nodeName": node["name"]}
            state.apply(Resource.PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
    return state.observation(ClusterName("worker-2"), NOW)


def counted(nodes: list[Raw], pod: Raw, limit: int = 50) -> int:
    metadata = {"labels": pod["labels"], "namespace": pod["namespace"]}
    return ClusterCapacity(seen(nodes)).count(replica_shape(pod["spec"], metadata), limit)


def why_not(nodes: list[Raw], pod: Raw) -> str:
    metadata = {"labels": pod["labels"], "namespace": pod["namespace"]}
    return ClusterCapacity(seen(nodes)).shortfall(replica_shape(pod["spec"], metadata))


def node(name: str, gpus: int = 2, *, pods: list[Raw] | None = None, **labels: str) -> Raw:
    known = {"zone": ZONE, "rack": RACK}
    named = {known[key]: value for key, value in labels.items()} | {HOST: name}
    return {"name": name, "labels": named, "gpus": gpus, "taints": [], "cordoned": False, "pods": pods or []}


def pod(namespace: str = "llm", labels: Raw | None = None, **spec: Any) -> Raw:
    containers = [{"resources": {"requests": {GPU: "1"}}, "ports": spec.pop("ports", [])}]
    return {"namespace": namespace, "labels": labels or LABELS, "spec": {"containers": containers, **spec}}


def other(
    labels: Raw | None = None, namespace: str = "llm", ports: list[Raw] | None = None, keeps: list[Raw] | None = None
) -> Raw:
    """Make a pod of somebody else; by the terms that it `keeps` it is not beside others."""
    affinity = {"affinity": {"podAntiAffinity": {REQUIRED: keeps}}} if keeps else {}
    return {
        "namespace": namespace,
        "labels": labels or {},
        "spec": {"containers": [{"ports": ports or []}], **affinity},
    }


def term(key: str, **fields: Any) -> Raw:
    return {"topologyKey": key, "labelSelector": SELECTOR, **fields}


def apart(*keys: str) -> Raw:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(key) for key in keys]}}}


def together(*keys: str) -> Raw:
    return {"affinity": {"podAffinity": {REQUIRED: [term(key) for key in keys]}}}


def evenly(key: str, skew: int = 1, **fields: Any) -> Raw:
    return term(key, maxSkew=skew, whenUnsatisfiable="DoNotSchedule", **fields)
