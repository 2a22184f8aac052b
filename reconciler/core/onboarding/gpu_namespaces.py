"""The namespaces of a tenant, by the pods of its primary cluster that ask for GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.pods.gpu_parts import gpu_part_obstacle
from reconciler.core.pods.pod_requests import pod_requests
from reconciler.model.ids import ClusterName, is_name
from reconciler.model.workload import Json
from reconciler.text.wording import conjugate, count, is_gpu

_ENDED = frozenset({"Succeeded", "Failed"})
_OF_KUBERNETES = frozenset({"kube-system", "kube-public", "kube-node-lease"})


def asks_for_gpus(pod: Json) -> bool:
    """Return whether a pod that has not ended requests GPUs, or parts of some."""
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return False
    amounts = pod_requests(pod["spec"]).amounts
    gpus = any(is_gpu(resource) and amount for resource, amount in amounts.items())
    return gpus or bool(gpu_part_obstacle(amounts, pod.get("metadata")))


def tenant_namespaces(pods: Mapping[str, int], primary: ClusterName) -> dict[str, str]:
    """Return the namespaces with such pods and why each is one, by name; those of Kubernetes itself are no tenant's."""
    return {
        namespace: f"{count(number, 'pod')} there {conjugate(number, 'asks')} for GPUs, in {primary}"
        for namespace, number in sorted(pods.items())
        if namespace not in _OF_KUBERNETES and is_name(namespace)
    }
