"""Which resource it is that runs short on every node, in words."""

from __future__ import annotations

from reconciler.core.noderoom import NodeCapacity, pods_fitting
from reconciler.core.wording import amounts, count, is_gpu, listed
from reconciler.model.capacity import ReplicaShape
from reconciler.model.units import Quantity, Resources


def scarcity(shape: ReplicaShape, nodes: list[NodeCapacity]) -> str:
    """Name the resource that too little of is free on any one node, accelerators first."""
    for name in sorted(shape.requests.amounts, key=_by_scarcity):
        request = shape.requests.amounts[name]
        largest = max(node.free.amounts.get(name, Quantity(0)) for node in nodes)
        if not largest:
            return f"needs {amount(name, request)} on one node, none is free on {count(len(nodes), 'node')}"
        if largest < request:
            summed = sum(node.free.amounts.get(name, 0) for node in nodes)
            return (
                f"needs {amount(name, request)} on one node, largest has {amount(name, largest)} free"
                f" ({amount(name, Quantity(summed))} over {count(len(nodes), 'node')})"
            )
    together = listed(amounts(shape.requests))
    able = sum(pods_fitting(node, shape) > 0 for node in nodes) if shape.apart else 0
    if able:
        return f"needs {together} free on each of {count(shape.group_size, 'node')}, {able} of {len(nodes)} has that"
    group = f" for {count(shape.group_size, 'pod')} of a group" if shape.group_size > 1 else ""
    return f"none of {count(len(nodes), 'node')} has {together} free together{group}"


def amount(name: str, quantity: Quantity) -> str:
    """Write so much of a resource."""
    return amounts(Resources(amounts={name: quantity}))[0]


def _by_scarcity(name: str) -> tuple[bool, bool, str]:
    """Sort resources by how likely they are what runs out: GPUs, other extended resources, then the rest."""
    return (not is_gpu(name), "/" not in name, name)
