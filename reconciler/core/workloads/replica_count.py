"""Replicas of a placement by its observed pods, without pods that request no device where replicas do."""

from __future__ import annotations

from reconciler.core.pods.gpu_parts import shares_gpu
from reconciler.model.capacity import ClusterObservation, NonGpuPods, ReplicaShape
from reconciler.model.placement import Placement
from reconciler.text.wording import count

_NONE = NonGpuPods()


def requests_devices(shape: ReplicaShape) -> bool:
    """Return whether a replica requests an extended resource, claims a device, or asks for a part of a GPU."""
    return bool(shape.devices) or shape.requests.extended or shares_gpu(shape)


def bound_replicas(placement: Placement, seen: ClusterObservation | None) -> int:
    """Count the replicas of a placement that have a node."""
    if seen is None:
        return 0
    pods = seen.bound.get(placement.name, 0)
    return max(0, pods - _non_gpu_pods(placement, seen).bound) // placement.shape.group_size if pods else 0


def ready_replicas(placement: Placement, seen: ClusterObservation) -> int | None:
    """Count the ready replicas of a placement; None where they are not observed."""
    pods = seen.ready.get(placement.name)
    return None if pods is None else max(0, pods - _non_gpu_pods(placement, seen).ready) // placement.shape.group_size


def all_pods_ready(placement: Placement, seen: ClusterObservation) -> bool | None:
    """Return whether all existing pods of a placement are ready; None without a replica or an observation.

    They may be fewer than its replicas: others may be on their way, or not needed by its template.
    """
    name, pods = placement.name, seen.ready.get(placement.name)
    if pods is None:
        return None
    pending_pods = seen.pending_pods.get(name)
    pods_seen = seen.bound.get(name, 0) + (pending_pods.replicas if pending_pods else 0)
    return False if pods < pods_seen or name in seen.waiting_reasons else bool(ready_replicas(placement, seen)) or None


def pending_replicas(placement: Placement, seen: ClusterObservation) -> int:
    """Count the replicas of a placement that wait for a node, with one of their pods or with all."""
    pending_pods = seen.pending_pods.get(placement.name)
    if pending_pods is None or (pending_pods.helping and requests_devices(placement.shape)):
        return 0
    return min(placement.replicas, -(-pending_pods.replicas // placement.shape.group_size))


def describe_resize(before: Placement, after: Placement) -> str:
    """Describe a change of replicas; with equal replicas, the change of their pods."""
    if before.replicas != after.replicas:
        return f"{before.replicas} to {count(after.replicas, 'replica')}"
    pods = after.replicas * after.shape.group_size
    return f"{before.replicas * before.shape.group_size} to {count(pods, 'pod')}"


def bound_pods(placement: Placement, seen: ClusterObservation) -> tuple[int, int]:
    """Count the pods of a placement that have a node, and those of them that are no replicas."""
    pods = seen.bound.get(placement.name, 0)
    return pods, min(pods, _non_gpu_pods(placement, seen).bound)


def _non_gpu_pods(placement: Placement, seen: ClusterObservation) -> NonGpuPods:
    """Return the pods that cannot be replicas, as a router on CPUs beside replicas with GPUs."""
    non_gpu_pods = seen.non_gpu_pods.get(placement.name)
    return non_gpu_pods if non_gpu_pods is not None and requests_devices(placement.shape) else _NONE
