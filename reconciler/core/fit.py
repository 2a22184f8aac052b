"""How many replicas a cluster can hold, node by node.

Counting a cluster's free GPUs is not enough: eight nodes with one free GPU each hold no replica that needs eight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.core.affinity import described, selected
from reconciler.core.devices import Handed, Stockroom
from reconciler.core.wording import amounts, count, is_gpu, listed
from reconciler.model.capacity import ClusterObservation, ReplicaShape, Taint, Toleration
from reconciler.model.devices import CLASS_PREFIX, DeviceStock
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
    devices: tuple[DeviceStock, ...]


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
                devices=node.devices,
            )
            for pool in sorted(observation.pools, key=lambda pool: pool.name)
            for node in sorted(pool.nodes, key=lambda node: node.name)
        ]
        self._stockroom = Stockroom(observation.device_classes)
        self._handed = Handed()

    def count(self, shape: ReplicaShape, limit: int) -> int:
        """Count the replicas of this shape that fit, up to `limit`. A replica is a whole group of pods or nothing."""
        nodes = self._admitting(shape)
        if not shape.devices:
            return self._counted(shape, limit, nodes)
        nodes = list(nodes)
        return max(self._counted(shape, limit, ways) for ways in _apart(shape, nodes))

    def take(self, shape: ReplicaShape, replicas: int) -> None:
        """Take the room of replicas, as much of it as there is: what was promised may have been lost since."""
        pods = replicas * shape.group_size
        for node in self._admitting(shape):
            if not pods:
                return
            here = self._held(node, shape, pods, self._handed)
            if here:
                node.free = node.free.minus(_pod(shape, node).times(here))
                pods -= here

    def free(self, shape: ReplicaShape) -> Resources:
        """Add up what is free of the requested resources and devices on the nodes that admit this shape."""
        names = shape.requests.amounts.keys()
        nodes = [node for node in self._nodes if _admits(node, shape)]
        summed = total(node.free for node in nodes)
        found = {name: summed.amounts.get(name, Quantity(0)) for name in names}
        for request in shape.devices:
            option = request.options[0]
            left = sum(self._stockroom.free(node.name, node.devices, option, self._handed) for node in nodes)
            found[f"{CLASS_PREFIX}{option.device_class}"] = Quantity(left * ONE)
        return Resources(amounts=found)

    def shortfall(self, shape: ReplicaShape) -> str:
        """Say with numbers why not one replica fits."""
        if shape.obstacle:
            return shape.obstacle
        if not self._nodes:
            return "no node is ready"
        chosen = [node for node in self._nodes if selected(shape, node.labels, node.name)]
        if not chosen:
            return f"no node has {described(shape)}"
        admitted = [node for node in chosen if not repelled(shape.tolerations, node.taints)]
        if not admitted:
            taint = repelled(shape.tolerations, chosen[0].taints)
            return f"{count(len(chosen), 'node')} tainted {taint}, which the workload does not tolerate"
        obstacle = self._stockroom.obstacle(shape, (stock for node in admitted for stock in node.devices))
        return obstacle or self._too_few_devices(shape, admitted) or _scarcity(shape, admitted)

    def _counted(self, shape: ReplicaShape, limit: int, nodes: Iterable[_NodeRoom]) -> int:
        pods, wanted, handed = 0, limit * shape.group_size, self._handed.copy()
        for node in nodes:
            if pods >= wanted:
                break
            pods += self._held(node, shape, wanted - pods, handed)
        return pods // shape.group_size

    def _admitting(self, shape: ReplicaShape) -> Iterable[_NodeRoom]:
        """Yield the nodes that a replica may go to; none if nobody can count what it needs."""
        nodes = (node for node in self._nodes if _admits(node, shape))
        if shape.obstacle:
            return ()
        if not shape.devices:
            return nodes
        admitting = list(nodes)
        if self._stockroom.obstacle(shape, (stock for node in admitting for stock in node.devices)):
            return ()
        # Nodes that have devices of their own come first: they may use up those that other nodes need.
        return sorted(admitting, key=lambda node: -sum(stock.free for stock in node.devices if not stock.shared))

    def _held(self, node: _NodeRoom, shape: ReplicaShape, most: int, handed: Handed) -> int:
        """Count the pods that a node holds, up to `most`, and note the devices that they take."""
        pods = min(most, node.free.holds(_pod(shape, node)))
        return self._stockroom.hand_out(node.name, node.devices, shape.devices, pods, handed) if shape.devices else pods

    def _too_few_devices(self, shape: ReplicaShape, nodes: list[_NodeRoom]) -> str:
        """Name the first request of devices that no one node can meet; empty if each finds some node."""
        for request in shape.devices:
            option = request.options[0]
            name = f"{CLASS_PREFIX}{option.device_class}"
            if any(
                self._stockroom.hand_out(node.name, node.devices, (request,), 1, self._handed.copy()) for node in nodes
            ):
                continue
            left = [self._stockroom.free(node.name, node.devices, option, self._handed) for node in nodes]
            needs = f"needs {'every one' if option.every else _amount(name, Quantity(option.count * ONE))}"
            if not any(left):
                return f"{needs} on one node, none is free on {count(len(nodes), 'node')}"
            largest, summed = (_amount(name, Quantity(number * ONE)) for number in (max(left), sum(left)))
            return f"{needs} on one node, largest has {largest} free ({summed} over {count(len(nodes), 'node')})"
        return ""


def _apart(shape: ReplicaShape, nodes: list[_NodeRoom]) -> list[list[_NodeRoom]]:
    """List the ways to look at nodes of which the better one is sure.

    Where other resources run short, pods on one node may use up the devices that several can reach, and leave its own
    to nobody: then only one or the other is sure. With several requests in a claim only a node's own devices are.
    """
    shared = [any(stock.shared for stock in node.devices) for node in nodes]
    own = [any(not stock.shared for stock in node.devices) for node in nodes]
    alone = [replace(node, devices=tuple(stock for stock in node.devices if not stock.shared)) for node in nodes]
    if any(shared) and len(shape.devices) > 1:
        return [alone]
    if not (any(shared) and any(own)):
        return [nodes]
    if all(node.free.holds(_pod(shape, node)) >= sum(stock.free for stock in node.devices) for node in nodes):
        return [nodes]
    return [alone, [replace(node, devices=tuple(one for one in node.devices if one.shared)) for node in nodes]]


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


def _admits(node: _NodeRoom, shape: ReplicaShape) -> bool:
    return selected(shape, node.labels, node.name) and repelled(shape.tolerations, node.taints) is None


def _pod(shape: ReplicaShape, node: _NodeRoom) -> Resources:
    if PODS in shape.requests.amounts or PODS not in node.free.amounts:
        return shape.requests
    return Resources(amounts={**shape.requests.amounts, PODS: ONE})
