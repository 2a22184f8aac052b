"""One node while a pass hands out what is free on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.core.capacity.pod_anti_affinity import Domain, in_domains
from reconciler.core.workloads.node_affinity import selects_node
from reconciler.core.workloads.taints import untolerated_taint
from reconciler.model.capacity import ClusterObservation, DeviceStock, ReplicaShape
from reconciler.model.scheduling import PodOnNode, Taint
from reconciler.model.units import ONE, Resources

PODS = "pods"
"""Kubernetes counts pods on a node as a resource; every pod takes one."""


@dataclass(slots=True)
class NodeCapacity:
    """What is free on one node; labels and taints are its own and those of its pool."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    free: Resources
    allocatable: Resources
    devices: tuple[DeviceStock, ...]
    one_of: tuple[NodeCapacity, ...] = ()
    """Of room that is on one of several nodes, and nobody knows on which: those."""
    pods: tuple[PodOnNode, ...] | None = None

    def alone(self) -> NodeCapacity:
        """Return the node with the devices that no other can reach."""
        own = tuple(stock for stock in self.devices if not stock.shared)
        return self if len(own) == len(self.devices) else replace(self, devices=own)


def node_capacities(observation: ClusterObservation) -> list[NodeCapacity]:
    """Lay out the nodes of a cluster, by pool and name, each with all that was seen free."""
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
    """Count the pods of this shape that what is free on a node is enough for, devices aside."""
    pods = node.free.holds(shape.requests)
    if not pods or PODS in shape.requests.amounts:
        return pods
    places = node.free.amounts.get(PODS)
    return pods if places is None else min(pods, places // ONE)


def pod_usage(node: NodeCapacity, shape: ReplicaShape) -> Resources:
    """Return what one pod takes of a node."""
    if PODS in shape.requests.amounts or PODS not in node.free.amounts:
        return shape.requests
    return Resources(amounts={**shape.requests.amounts, PODS: ONE})


def device_views(shape: ReplicaShape, nodes: list[NodeCapacity]) -> list[list[NodeCapacity]]:
    """List the ways to look at nodes of which the better one is sure.

    Where other resources run short, pods on one node may use up the devices that several can reach, and leave its own
    to nobody: then only one or the other is sure. With several requests in a claim only a node's own devices are.
    """
    shared = [any(stock.shared for stock in node.devices) for node in nodes]
    own = [any(not stock.shared for stock in node.devices) for node in nodes]
    alone = [node.alone() for node in nodes]
    if any(shared) and len(shape.devices) > 1:
        return [alone]
    if not (any(shared) and any(own)):
        return [nodes]
    if all(pods_fitting(node, shape) >= sum(stock.free for stock in node.devices) for node in nodes):
        return [nodes]
    return [alone, [replace(node, devices=tuple(device for device in node.devices if device.shared)) for node in nodes]]


def separate_groups(held: list[int], size: int, limit: int) -> int:
    """Count the groups of `size` pods that fit when no two pods of a group share a node, which holds so many each.

    So many groups fit as there are pods for, when no node gives more than one to each.
    """
    groups = limit
    while (fewer := sum(min(pods, groups) for pods in held) // size) < groups:
        groups = fewer
    return groups


def max_pods_on_node(shape: ReplicaShape, pods: int, replicas: int) -> int:
    """Say how many of so many pods can be on one node, whatever room it has."""
    if shape.rules is not None and (shape.rules.apart or shape.rules.ports):
        return min(pods, 1)
    return min(pods, replicas) if shape.apart else pods


def max_pods_held(node: NodeCapacity, shape: ReplicaShape) -> int:
    """Count the pods of a shape that can be on a node at the most."""
    usable = not node.one_of and admits(node, shape)
    return node.allocatable.minus(node.free).holds(pod_usage(node, shape)) if usable else 0


def admits_anywhere(node: NodeCapacity, shape: ReplicaShape) -> bool:
    """Tell whether pods may go to a node wherever else they go: those that are apart, where it never holds two."""
    return admits(node, shape) and not (shape.apart and node.allocatable.holds(shape.requests) > 1)


def admits(node: NodeCapacity, shape: ReplicaShape) -> bool:
    """Tell whether pods may go to a node by its labels and taints; to each of those that some room is on."""
    if node.one_of:
        return all(admits(node_capacity, shape) for node_capacity in node.one_of)
    return selects_node(shape, node.labels, node.name) and untolerated_taint(shape.tolerations, node.taints) is None


def may_be_in_domains(node: NodeCapacity, shut: frozenset[Domain]) -> bool:
    """Tell whether a pod may be kept out of a node, or of one of those that some room is on."""
    return bool(shut) and any(in_domains(node_capacity.labels, shut) for node_capacity in node.one_of or (node,))
