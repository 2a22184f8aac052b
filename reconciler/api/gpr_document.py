"""GPRs, wait times and the inventory in the JSON of EGS's REST interface, with fields of our own beside.

The fields are those of docs/reference/egs.md, "Inventory and GPRs as answers". Fields without an
observation, such as temperatures, are left out rather than guessed.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.core.explain.gprs import GprView
from reconciler.core.explain.inventory import GpuAllocation, GpuInventory, Health, InventoryNode
from reconciler.core.explain.wait_time import WaitEstimate, write_wait
from reconciler.model.units import format_duration
from reconciler.model.workload import Json
from reconciler.text.timestamps import format_time


def gpr_document(gpr: GprView, now: datetime) -> dict[str, Json]:
    """Convert one GPR."""
    return {
        "gprId": gpr.id,
        "gprName": gpr.name,
        "workspaceName": gpr.workspace,
        "clusterName": gpr.cluster,
        "placementName": gpr.placement,
        "numberOfGPUs": gpr.gpus,
        "numberOfGPUNodes": gpr.nodes,
        "memoryPerGpu": gpr.memory,
        "gpuShape": gpr.shape,
        "instanceType": gpr.instance_type,
        "priority": gpr.priority,
        "priorityBand": gpr.band,
        "enableEviction": gpr.evictable,
        "requeueOnFailure": gpr.requeue,
        "evictedBy": gpr.evicted_by,
        "status": {
            "provisioningStatus": gpr.state.value,
            "message": gpr.reason,
            "requestedAt": _moment(gpr.asked_at),
            "startTimestamp": _moment(gpr.started_at),
            "completionTimestamp": _moment(gpr.completed_at),
            "expiresAt": _moment(gpr.exit_at),
            "remainingDuration": None if gpr.left is None else format_duration(gpr.left),
            "estimatedStartTime": _moment(gpr.starts_at),
            "estimatedWaitTime": None if gpr.starts_at is None else write_wait(gpr.starts_at - now),
        },
    }


def wait_document(wait: WaitEstimate) -> dict[str, Json]:
    """Convert the wait estimate of one cluster; null is an unknown time."""
    return {
        "clusterName": wait.cluster,
        "estimatedWaitTime": None if wait.wait is None else write_wait(wait.wait),
        "estimatedStartTime": _moment(wait.at),
        "ahead": [str(workload) for workload in wait.ahead],
        "reasons": list(wait.reasons),
    }


def inventory_document(inventory: GpuInventory) -> dict[str, Json]:
    """Convert the inventory: GPU nodes, GPUs of placements by cluster, and the age of each observation."""
    return {
        "managedNodes": [_node(gpu_node) for gpu_node in inventory.managed],
        "unmanagedNodes": [_node(gpu_node) for gpu_node in inventory.unmanaged],
        "allocations": [_allocation(allocation) for allocation in inventory.allocations],
        "clusters": [
            {"clusterName": cluster.cluster, "observedAt": _moment(cluster.observed_at), "message": cluster.message}
            for cluster in inventory.clusters
        ],
    }


def _node(node: InventoryNode) -> Json:
    free = node.free > 0 and node.health is Health.HEALTHY
    return {
        "gpuNodeName": node.node,
        "clusterName": node.cluster,
        "gpuShape": node.model,
        "gpuModelName": node.model,
        "instanceType": node.instance_type,
        "memory": node.memory,
        "gpuCount": node.count,
        "availableGPUs": node.free,
        "region": node.region,
        "zone": node.zone,
        "nodeHealth": node.health.value,
        "gpuNodeState": "NODE_AVAILABLE" if free else "NODE_RESERVED",
        "resourceName": node.resource,
        "isSlice": node.part,
        "sliceKind": "" if node.slices is None else node.slices.value,
        "gpuShare": str(node.share),
    }


def _allocation(allocation: GpuAllocation) -> Json:
    return {
        "clusterName": allocation.cluster,
        "placementName": allocation.placement,
        "workspaceName": allocation.workload.workspace,
        "workload": str(allocation.workload),
        "totalGPUsAllocated": allocation.gpus,
        "replicas": allocation.replicas,
        "boundReplicas": allocation.bound,
        "allocationTimeStamp": _moment(allocation.since),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
