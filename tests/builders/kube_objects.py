"""Short ways to write the objects of an API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.core.observe.kubernetes.resources import Resource

GPU = "nvidia.com/gpu"
SINCE = "2026-11-20T10:00:00Z"
OVER_QUOTA = (
    f'pods "vllm-1-x" is forbidden: exceeded quota: gpus, requested: requests.{GPU}=1, used: requests.{GPU}=4,'
    f" limited: requests.{GPU}=4"
)
NO_QUOTA = f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor h100, 4 more needed"
CREATED = "2026-11-20T09:00:00Z"
NO_GPU = f"0/1 nodes are available: 1 Insufficient {GPU}."

Raw = dict[str, Any]


def node(name: str, gpus: int = 8, *, labels: Mapping[str, str] | None = None, ready: bool = True, **spec: Any) -> Raw:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(gpus)},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }


def containers(gpus: int = 1) -> list[Raw]:
    return [{"name": "main", "resources": {"limits": {GPU: str(gpus)}, "requests": {"cpu": "500m", GPU: str(gpus)}}}]


def pod(
    name: str,
    on: str = "",
    *,
    namespace: str = "demo",
    owner: tuple[str, str] | None = ("ReplicaSet", "vllm-1"),
    gpus: int = 1,
    labels: Mapping[str, str] | None = None,
    phase: str = "",
    waits: str = "",
    since: str = SINCE,
    reason: str = "Unschedulable",
    ready: bool = True,
    version: str = "",
    **spec: Any,
) -> Raw:
    """Make a pod on a node, or one that has none yet; `waits` is the scheduler's message, `version` its owner's."""
    metadata: Raw = {"name": name, "namespace": namespace, "labels": dict(labels or {}), "creationTimestamp": SINCE}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
        metadata["ownerReferences"][0] |= {"apiVersion": version} if version else {}
    told = {"type": "PodScheduled", "status": "False", "reason": reason, "message": waits, "lastTransitionTime": since}
    conditions = [told] if waits else []
    if on:
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": str(ready)}]
    return {
        "metadata": metadata,
        "spec": {"containers": containers(gpus), **({"nodeName": on} if on else {}), **spec},
        "status": {"phase": phase or ("Running" if on else "Pending"), "conditions": conditions},
    }


def workload(name: str, replicas: int = 1, *, namespace: str = "demo", owner: tuple[str, str] | None = None) -> Raw:
    """Make a Deployment, StatefulSet or ReplicaSet: they differ in nothing that is read of all of them."""
    metadata: Raw = {"name": name, "namespace": namespace}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return {
        "metadata": metadata,
        "spec": {"replicas": replicas, "template": {"spec": {"containers": containers()}}},
        "status": {},
    }


def autoscaler(
    name: str = "vllm",
    maximum: int = 6,
    *metrics: tuple[Raw, Raw],
    kind: str = "Deployment",
    namespace: str = "demo",
    conditions: Mapping[str, tuple[str, str]] | None = None,
    behavior: Raw | None = None,
    **status: Any,
) -> Raw:
    """Make an autoscaler of the workload of its name that stands at its maximum.

    Each metric is what it asks for and what was measured, `conditions` replace status and reason of those of the same
    type, and `status` replaces what it tells besides.
    """
    told = {
        "AbleToScale": ("True", "ReadyForNewScale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("True", "TooManyReplicas"),
        **(conditions or {}),
    }
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": CREATED},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
            "minReplicas": 1,
            "maxReplicas": maximum,
            "metrics": [asked for asked, _ in metrics],
            **({"behavior": behavior} if behavior else {}),
        },
        "status": {
            "currentReplicas": maximum,
            "desiredReplicas": maximum,
            "lastScaleTime": CREATED,
            "currentMetrics": [measured for _, measured in metrics],
            "conditions": [
                {"type": type_, "status": state, "reason": reason, "lastTransitionTime": SINCE}
                for type_, (state, reason) in told.items()
            ],
            **status,
        },
    }


def resource_metric(name: str = "cpu", target: Raw | None = None, **current: Any) -> tuple[Raw, Raw]:
    """Make a Resource metric; without a target it asks for 80 %."""
    asked = {"type": "Utilization", "averageUtilization": 80} if target is None else {"type": "AverageValue", **target}
    return (
        {"type": "Resource", "resource": {"name": name, "target": asked}},
        {"type": "Resource", "resource": {"name": name, "current": current}},
    )


def other_metric(type_: str, target: Raw, **current: Any) -> tuple[Raw, Raw]:
    """Make a Pods, Object or External metric of the same name."""
    source, metric = type_.lower(), {"name": "queue_depth", "selector": {"matchLabels": {"queue": "a"}}}
    return (
        {"type": type_, source: {"metric": metric, "target": target}},
        {"type": type_, source: {"metric": metric, "current": current}},
    )


NO_VALUE: Raw = {"type": ""}
"""What the controller leaves in the place of a metric that it could not read."""


def queued(
    name: str = "job-train-1a2b3",
    *counts: int,
    owner: tuple[str, str] | None = ("Job", "train"),
    reason: str = "Pending",
    message: str = NO_QUOTA,
    reserved: str = "False",
    namespace: str = "demo",
    **fields: Any,
) -> Raw:
    """Make a Workload of Kueue that waits for quota; `fields` go into its spec, or into its status by `status`."""
    metadata: Raw = {"name": name, "namespace": namespace, "creationTimestamp": CREATED}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    told = {"type": "QuotaReserved", "status": reserved, "reason": reason, "message": message}
    status = {"conditions": [{**told, "lastTransitionTime": SINCE, "observedGeneration": 1}]}
    return {
        "metadata": metadata,
        "spec": {
            "podSets": [
                {"name": f"set-{index}", "count": count, "template": {"spec": {"containers": containers(index + 1)}}}
                for index, count in enumerate(counts or (4,))
            ],
            "queueName": "queue-a",
            "active": True,
            "priority": 0,
            **{key: value for key, value in fields.items() if key != "status"},
        },
        "status": {**status, **fields.get("status", {})},
    }


DRIVER = "gpu.nvidia.com"


def device(name: str, product: str = "H100", memory: str = "80Gi", *, type_: str = "gpu", **fields: Any) -> Raw:
    """Make a device as NVIDIA's driver describes its GPUs, each with a UUID of its own."""
    attributes = {
        "type": {"string": type_},
        "productName": {"string": product},
        "uuid": {"string": f"GPU-{name}"},
        "driverVersion": {"version": "580.65.6"},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci-{name}"},
    }
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **fields}


def resource_slice(
    name: str, devices: list[Raw], node: str = "gpu-1", *, pool: str = "", generation: int = 1, of: int = 1, **spec: Any
) -> Raw:
    """Make a slice of devices on a node; with `nodeSelector`, `allNodes` or the like, of those that can reach them."""
    where = {} if spec.keys() & {"nodeSelector", "allNodes", "perDeviceNodeSelection"} else {"nodeName": node}
    of_pool = {"name": pool or node, "generation": generation, "resourceSliceCount": of}
    return {
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": of_pool, **where, "devices": devices, **spec},
    }


def device_class(name: str = DRIVER, *expressions: str) -> Raw:
    told = expressions or (f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "gpu"',)
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": one}} for one in told]}}


def claim(name: str, *devices: str, pool: str = "gpu-1", namespace: str = "demo", **result: Any) -> Raw:
    """Make a claim that holds these devices; with none, one that has nothing allocated."""
    results = [{"request": "gpu", "driver": DRIVER, "pool": pool, "device": one, **result} for one in devices]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {},
        "status": {"allocation": {"devices": {"results": results}}} if devices else {},
    }


def claim_template(*requests: Raw, name: str = "gpus", namespace: str = "demo", **devices: Any) -> Raw:
    asked = [{"name": f"request-{index}", **request} for index, request in enumerate(requests)]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": asked, **devices}}},
    }


def exactly(count: int = 1, *expressions: str, of: str = DRIVER, **fields: Any) -> Raw:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {"exactly": {"deviceClassName": of, "count": count, "selectors": selectors, **fields}}


def many(*, nodes: int, pods: int) -> Iterator[tuple[Resource, Raw]]:
    """Make a large cluster one object at a time, each with strings of its own, as they come off the wire.

    Nodes have sixty labels of hardware and one that no other has; five pods belong to each ReplicaSet, and one of fifty
    has no node.
    """
    for index in range(nodes):
        labels = {f"feature.node.kubernetes.io/cpu-{key}": str(key * (index % 7)) for key in range(60)}
        labels["topology.kubernetes.io/zone"] = f"zone-{index % 3}"
        labels["cloud.example.com/instance"] = f"i-{index:016x}"
        yield Resource.NODES, node(f"gpu-node-{index:04d}.example.internal", labels=labels)
    for index in range(pods):
        on = f"gpu-node-{index % nodes:04d}.example.internal" if index % 50 else ""
        group = index // 5
        owner = ("ReplicaSet", f"service-{group}-6d4cf56db6")
        since = f"2026-11-20T10:{group % 60:02d}:00Z"
        yield (
            Resource.PODS,
            pod(
                f"service-{group}-6d4cf56db6-{index:05x}",
                on,
                owner=owner,
                namespace=f"team-{group % 40}",
                waits="" if on else NO_GPU,
                since=since,
            ),
        )
