"""How many replicas a cluster can hold, node by node.

Counting a cluster's free GPUs is not enough: eight nodes with one free GPU each hold no replica that needs eight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.core.wording import amounts, count, is_gpu, listed
from reconciler.model.capacity import ClusterObservation, ReplicaShape, Taint, Toleration
from reconciler.model.units import ONE, Quantity, Resources, total

PODS = "pods"
"""Kubernetes counts pods on a node as a resource; every pod takes one."""

_REPELLING = frozenset({"NoSchedule", "NoExecute"})


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Tell whether any toleration accepts the taint, as the scheduler's TaintToleration plugin does."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (
            (not toleration.key and toleration.operator == "Exists")
            or (toleration.key == taint.key and (toleration.operator == "Exists" or toleration.value == taint.value))
        )
        for toleration in tolerations
    )


def repelled(tolerations: tuple[Toleration, ...], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that keeps pods away and is not tolerated. PreferNoSchedule keeps nobody away."""
    for taint in taints:
        if taint.effect in _REPELLING and not tolerates(tolerations, taint):
            return taint
    return None


@dataclass(slots=True)
class _NodeRoom:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    free: Resources


class Room:
    """What is free in one cluster while a pass hands it out.

    Replicas are taken first-fit over the nodes by pool and name, so the same inputs always leave the same room.
    """

    def __init__(self, observation: ClusterObservation) -> None:
        """Begin with what was observed free."""
        self._nodes = [
            _NodeRoom(
                name=node.name,
                labels={**pool.labels, **node.labels} if node.labels else pool.labels,
                taints=pool.taints + node.taints,
                free=node.free,
            )
            for pool in sorted(observation.pools, key=lambda pool: pool.name)
            for node in sorted(pool.nodes, key=lambda node: node.name)
        ]

    def count(self, shape: ReplicaShape, limit: int) -> int:
        """Count the replicas of this shape that fit, up to `limit`. A replica is a whole group of pods or nothing."""
        pods, wanted = 0, limit * shape.group_size
        for node in self._nodes:
            if pods >= wanted:
                break
            if _admits(node, shape):
                pods += min(wanted - pods, node.free.holds(_pod(shape, node)))
        return pods // shape.group_size

    def take(self, shape: ReplicaShape, replicas: int) -> None:
        """Take the room of replicas, as much of it as there is: what was promised may have been lost since."""
        pods = replicas * shape.group_size
        for node in self._nodes:
            if not pods:
                return
            if _admits(node, shape):
                request = _pod(shape, node)
                here = min(pods, node.free.holds(request))
                if here:
                    node.free = node.free.minus(request.times(here))
                    pods -= here

    def free(self, shape: ReplicaShape) -> Resources:
        """Add up what is free of the requested resources on the nodes that admit this shape."""
        names = shape.requests.amounts.keys()
        nodes = [node for node in self._nodes if _admits(node, shape)]
        summed = total(node.free for node in nodes)
        return Resources(amounts={name: summed.amounts.get(name, Quantity(0)) for name in names})

    def shortfall(self, shape: ReplicaShape) -> str:
        """Say with numbers why not one replica fits."""
        if not self._nodes:
            return "no node is ready"
        selected = [node for node in self._nodes if _selected(node, shape)]
        if not selected:
            wanted = ", ".join(f"{key}={value}" for key, value in sorted(shape.node_selector.items()))
            return f"no node has {wanted}"
        admitted = [node for node in selected if not repelled(shape.tolerations, node.taints)]
        if not admitted:
            taint = repelled(shape.tolerations, selected[0].taints)
            return f"{count(len(selected), 'node')} tainted {taint}, which the workload does not tolerate"
        return _scarcity(shape, admitted)


def _scarcity(shape: ReplicaShape, nodes: list[_NodeRoom]) -> str:
    """Name the resource that too little of is free on any one node, accelerators first."""
    for name in sorted(shape.requests.amounts, key=_by_scarcity):
        request = shape.requests.amounts[name]
        largest = max(node.free.amounts.get(name, Quantity(0)) for node in nodes)
        if not largest:
            return f"needs {_amount(name, request)} on one node, none is free on {count(len(nodes), 'node')}"
        if largest < request:
            summed = sum(node.free.amounts.get(name, 0) for node in nodes)
            return (
                f"needs {_amount(name, request)} on one node, largest has {_amount(name, largest)} free"
                f" ({_amount(name, Quantity(summed))} over {count(len(nodes), 'node')})"
            )
    together = listed(amounts(shape.requests))
    group = f" for {count(shape.group_size, 'pod')} of a group" if shape.group_size > 1 else ""
    return f"none of {count(len(nodes), 'node')} has {together} free together{group}"


def _amount(name: str, quantity: Quantity) -> str:
    return amounts(Resources(amounts={name: quantity}))[0]


def _by_scarcity(name: str) -> tuple[bool, bool, str]:
    """Sort resources by how likely they are what runs out: GPUs, other extended resources, then the rest."""
    return (not is_gpu(name), "/" not in name, name)


def _selected(node: _NodeRoom, shape: ReplicaShape) -> bool:
    return all(node.labels.get(key) == value for key, value in shape.node_selector.items())


def _admits(node: _NodeRoom, shape: ReplicaShape) -> bool:
    return _selected(node, shape) and repelled(shape.tolerations, node.taints) is None


def _pod(shape: ReplicaShape, node: _NodeRoom) -> Resources:
    if PODS in shape.requests.amounts or PODS not in node.free.amounts:
        return shape.requests
    return Resources(amounts={**shape.requests.amounts, PODS: ONE})
