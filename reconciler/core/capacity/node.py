"""Free capacity of one node while a pass places replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.core.capacity.pod_anti_affinity import Domain, in_domains
from reconciler.core.pods.node_affinity import selects_node
from reconciler.core.pods.taints import untolerated_taint
from reconciler.model.capacity import ClusterObservation, DeviceRequest, DeviceStock, ReplicaShape
from reconciler.model.kubernetes.scheduling import PodOnNode, Taint
from reconciler.model.units import ONE, Quantity, Resources

PODS = "pods"
"""Kubernetes counts the pods of a node as a resource; each pod takes one."""


@dataclass(slots=True)
class NodeCapacity:
    """Free capacity of one node, with the labels and taints of the node and of its pool."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    free: Resources
    allocatable: Resources
    devices: tuple[DeviceStock, ...]
    one_of: tuple[NodeCapacity, ...] = ()
    """The nodes that this capacity may be on, where it is unknown on which of them."""
    pods: tuple[PodOnNode, ...] | None = None

    def alone(self) -> NodeCapacity:
        """Return the node without the devices that other nodes can reach."""
        unshared = tuple(stock for stock in self.devices if not stock.shared)
        return self if len(unshared) == len(self.devices) else replace(self, devices=unshared)


def node_capacities(observation: ClusterObservation) -> list[NodeCapacity]:
    """List the nodes of a cluster, by pool and name, with their observed free capacity."""
    return [
        NodeCapacity(
            name=node.name,
            labels={**pool.labels, **node.labels} if node.labels else pool.labels,
            taints=pool.taints + node.taints,
            free=node.free,
            allocatable=node.allocatable,
            devices=node.devices,
            pods=node.pods,
        )
        for pool in sorted(observation.pools, key=lambda pool: pool.name)
        for node in sorted(pool.nodes, key=lambda node: node.name)
    ]


def pods_fitting(node: NodeCapacity, shape: ReplicaShape) -> int:
    """Count the pods of this shape that fit into the free capacity of a node, devices aside."""
    pods = node.free.holds(requests_on(node, shape))
    if not pods or PODS in shape.requests.amounts:
        return pods
    places = node.free.amounts.get(PODS)
    return pods if places is None else min(pods, places // ONE)


def pod_usage(node: NodeCapacity, shape: ReplicaShape) -> Resources:
    """Return the resources that one pod takes of a node."""
    requests = requests_on(node, shape)
    if PODS in requests.amounts or PODS not in node.free.amounts:
        return requests
    return Resources(amounts={**requests.amounts, PODS: ONE})


def has_plugin(node: NodeCapacity, resource: str) -> bool:
    """Return whether a node has an extended resource itself: then a DeviceClass behind it does not count there."""
    return bool(node.allocatable.amounts.get(resource) or node.free.amounts.get(resource))


def requests_on(node: NodeCapacity, shape: ReplicaShape) -> Resources:
    """Return what one pod requests of a node's resources: those for which it has a device plugin are not claimed.

    So does ``filterExtendedResources`` of Kubernetes 1.36, pkg/scheduler/framework/plugins/dynamicresources.
    """
    given = [request for request in shape.devices if request.resource and has_plugin(node, request.resource)]
    if not given:
        return shape.requests
    amounts = {request.resource: Quantity(request.options[0].count * ONE) for request in given}
    return Resources(amounts={**shape.requests.amounts, **amounts})


def cannot_bind(node: NodeCapacity, shape: ReplicaShape) -> bool:
    """Return whether the scheduler chooses a node for pods and fails to bind them, again and again.

    So does that of Kubernetes 1.36 where pods claim devices and request extended resources with DeviceClasses behind
    them, all of which a device plugin has there: "nil or empty request mappings" (PreBind of DynamicResources).
    """
    claimed = devices_on(node, shape)
    return 0 < len(claimed) < len(shape.devices) and not any(request.resource for request in claimed)


def devices_on(node: NodeCapacity, shape: ReplicaShape) -> tuple[DeviceRequest, ...]:
    """Return the devices that one pod claims on a node."""
    return tuple(request for request in shape.devices if not (request.resource and has_plugin(node, request.resource)))


def device_views(shape: ReplicaShape, nodes: list[NodeCapacity]) -> list[list[NodeCapacity]]:
    """List views of the nodes' devices, each a lower bound; the larger count of them holds.

    Where other resources run short, pods on a node may use up devices that several nodes share, and leave its own
    unused: then only one kind or the other is certain. With several requests in a claim only a node's own devices are.
    """
    shared = [any(stock.shared for stock in node.devices) for node in nodes]
    unshared = [any(not stock.shared for stock in node.devices) for node in nodes]
    alone = [node.alone() for node in nodes]
    if any(shared) and len(shape.devices) > 1:
        return [alone]
    if not (any(shared) and any(unshared)):
        return [nodes]
    if all(pods_fitting(node, shape) >= sum(stock.free for stock in node.devices) for node in nodes):
        return [nodes]
    return [alone, [replace(node, devices=tuple(device for device in node.devices if device.shared)) for node in nodes]]


def separate_groups(held: list[int], size: int, limit: int) -> int:
    """Count the groups of `size` pods that fit when no two pods of a group share a node.

    `held` is how many pods each node holds. A node gives at most one pod to each group.
    """
    # Any fewer groups can have what some number of them can: the search takes a step for each bit of the number.
    low, high = 0, max(0, min(limit, sum(held) // size))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(pods, middle) for pods in held) >= middle * size else (low, middle - 1)
    return low


def max_pods_on_node(shape: ReplicaShape, pods: int, replicas: int) -> int:
    """Return the most pods that may share a node, whatever its capacity."""
    if shape.rules is not None and (shape.rules.ports or any(rule.itself for rule in shape.rules.apart)):
        return min(pods, 1)
    return min(pods, replicas) if shape.apart else pods


def max_pods_held(node: NodeCapacity, shape: ReplicaShape) -> int:
    """Return the most pods of a shape that a node may be running."""
    usable = not node.one_of and admits(node, shape)
    return node.allocatable.minus(node.free).holds(pod_usage(node, shape)) if usable else 0


def admits_anywhere(node: NodeCapacity, shape: ReplicaShape) -> bool:
    """Return whether a node admits a shape wherever its other pods go: with `apart`, if it never holds two."""
    return admits(node, shape) and not (shape.apart and node.allocatable.holds(shape.requests) > 1)


def admits(node: NodeCapacity, shape: ReplicaShape) -> bool:
    """Return whether a node admits a shape by its labels and taints; with `one_of`, whether all of those do."""
    if node.one_of:
        return all(admits(possible, shape) for possible in node.one_of)
    return selects_node(shape, node.labels, node.name) and untolerated_taint(shape.tolerations, node.taints) is None


def may_be_in_domains(node: NodeCapacity, shut: frozenset[Domain]) -> bool:
    """Return whether a node, or any of its `one_of`, is in one of these domains."""
    return bool(shut) and any(in_domains(possible.labels, shut) for possible in node.one_of or (node,))


def keep_to_domain(shape: ReplicaShape, key: str, value: str) -> ReplicaShape:
    """Restrict a shape to the nodes with this value of a label; a shape that is kept to another one fits nowhere."""
    other = shape.node_selector.get(key, value)
    if other != value:
        return replace(shape, obstacle=f"is kept to {key}={other}")
    return replace(shape, node_selector=dict(sorted({**shape.node_selector, key: value}.items())))


def domain_of(node: NodeCapacity, key: str) -> str | None:
    """Return a node's value of a label, None without it; with `one_of`, only the value of all of those."""
    values = {possible.labels.get(key) for possible in node.one_of or (node,)}
    return values.pop() if len(values) == 1 else None
