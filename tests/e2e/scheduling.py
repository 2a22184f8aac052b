"""What a cluster has by our reading of what its API server lists, and what kube-scheduler makes of its pods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import CAPACITY, QUEUES, Resource
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from reconciler.model.workload import WorkloadRef
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster


def observed(
    cluster: Cluster, namespace: str = "", deployments: Iterable[str] = (), *, nodes: str = ""
) -> ClusterObservation:
    """Observe a cluster with some Deployments of a namespace, and of its nodes those that labels select."""
    state = ClusterState(
        frozenset(WorkloadRef(namespace=namespace, name=name, kind="Deployment") for name in deployments)
    )
    for resource in {*CAPACITY, Resource.DEPLOYMENTS, Resource.TEMPLATES} - QUEUES:
        for raw in cluster.items(resource.paths()[0], nodes if resource is Resource.NODES else ""):
            state.apply(resource, raw)
    return state.observation(ClusterName(cluster.name), datetime.now(UTC))


def replicas_that_fit(seen: ClusterObservation, most: int) -> dict[str, int]:
    """Count how many more pods of each observed Deployment fit, up to `most`, by its name."""
    fitting = {}
    for workload in seen.workloads:
        assert workload.shape is not None, workload.ref
        fitting[workload.ref.name] = ClusterCapacity(seen).count(workload.shape, most)
    return fitting


def decided(cluster: Cluster, namespace: str, total: int, *, labels: str = "", errors: bool = False) -> list[Json]:
    """Wait until a namespace has so many pods and the scheduler has decided on each, and return them.

    `labels` select the pods that are meant. With `errors` it has also decided on those that it has given up for an
    error, as of a selector, though it will try again.
    """
    pods: list[Json] = []

    def settled() -> bool:
        pods[:] = cluster.items(f"/api/v1/namespaces/{namespace}/pods", labels)
        return len(pods) == total and all(
            bound(pod) or unschedulable(pod) or (errors and _is_unscheduled(pod, "SchedulerError")) for pod in pods
        )

    cluster.until(settled, "the scheduler has not decided on every pod")
    return pods


def ready(node: Json) -> bool:
    """Tell whether pods may go to a node, as far as its readiness goes."""
    taints = node["spec"].get("taints", [])
    return not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in taints) and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in node["status"].get("conditions", ())
    )


def bound(pod: Json) -> bool:
    """Tell whether a pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def unschedulable(pod: Json) -> bool:
    """Tell whether the scheduler has found no node for a pod."""
    return _is_unscheduled(pod, "Unschedulable")


def _is_unscheduled(pod: Json, reason: str) -> bool:
    return any(condition.get("reason") == reason for condition in pod.get("status", {}).get("conditions", []))
