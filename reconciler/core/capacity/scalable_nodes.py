"""The nodes that the autoscaler of a cluster may add: what its Cluster declares, within the limits of its NodePools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.node_pool_room import Growth, NodePoolRoom
from reconciler.model.capacity import ClusterObservation, Node, NodePool, Pool, ReplicaShape
from reconciler.model.cluster import NODE_POOL_LABEL, ScalableNodes
from reconciler.model.policy import Cluster
from reconciler.model.units import Resources

_LAST = "~"
"""Sorts after the name of any pool, so that existing nodes are filled first."""
_HOSTNAME = "kubernetes.io/hostname"
"""The node label that kubelets set, with a value of its own for each node."""


def longest_delay(cluster: Cluster | None) -> timedelta:
    """Return the longest time in which the autoscaler of a cluster adds a node; zero without one."""
    return max((nodes.delay for nodes in cluster.autoscaling), default=timedelta()) if cluster else timedelta()


def first_growth(cluster: Cluster, seen: ClusterObservation, shape: ReplicaShape) -> ScalableNodes | None:
    """Return the nodes that the autoscaler adds soonest, of those that a pod of this shape may have; None for none."""
    addable = sorted((nodes for nodes, _ in addable_nodes(cluster, seen)), key=lambda nodes: nodes.delay)
    return next((nodes for nodes in addable if _holds(nodes, seen, shape)), None)


def held_growth(cluster: Cluster, seen: ClusterObservation, shape: ReplicaShape) -> Iterator[Growth]:
    """Yield the nodes that a pod of this shape may have, and that a NodePool does not let the autoscaler add."""
    return (growth for growth in growth_of(cluster, seen) if growth.held and _holds(growth.nodes, seen, shape))


def with_added_nodes(cluster: Cluster, seen: ClusterObservation, within: timedelta) -> ClusterObservation:
    """Add the nodes that the autoscaler of a cluster could add within a time, as if they were empty."""
    pools = [
        _pool(nodes, index, missing)
        for index, (nodes, missing) in enumerate(addable_nodes(cluster, seen))
        if nodes.delay <= within
    ]
    return replace(seen, pools=(*seen.pools, *pools)) if pools else seen


def _holds(nodes: ScalableNodes, seen: ClusterObservation, shape: ReplicaShape) -> bool:
    """Return whether one node of a kind, by itself, holds a pod of this shape."""
    alone = ClusterCapacity(replace(seen, pools=(_pool(nodes, 0, 1),)))
    return bool(alone.count(replace(shape, group_size=1, admission=()), 1))


def _pool(nodes: ScalableNodes, index: int, number: int) -> Pool:
    """Make a pool of so many empty nodes."""
    names = [f"{_LAST}{index}-{position}" for position in range(number)]
    return Pool(
        name=f"{_LAST}{index}",
        nodes=tuple(
            Node(
                name=name,
                free=nodes.allocatable,
                allocatable=nodes.allocatable,
                labels={_HOSTNAME: name},
                pods=(),
            )
            for name in names
        ),
        labels=nodes.labels,
        taints=nodes.taints,
    )


def addable_nodes(cluster: Cluster, seen: ClusterObservation) -> Iterator[tuple[ScalableNodes, int]]:
    """Count the nodes of each kind that could still be added; existing ones that take no pods count as existing."""
    for growth in growth_of(cluster, seen):
        if growth.count:
            yield growth.nodes, growth.count


def growth_of(cluster: Cluster, seen: ClusterObservation) -> Iterator[Growth]:
    """Yield what an autoscaler may still add of each kind of nodes, those that it cannot add more of included.

    Kinds of nodes of one NodePool share what it leaves, in their order.
    """
    present = _PresentNodes(seen)
    left: dict[str, NodePoolRoom] = {}
    for declared in cluster.autoscaling:
        name = declared.node_pool
        pool = seen.node_pools.get(name) if name and seen.node_pools is not None else None
        nodes = declared if pool is None else _launched(declared, pool)
        missing = max(0, nodes.most - present.count(nodes.labels))
        if not name or seen.node_pools is None or not missing:
            yield Growth(nodes=nodes, count=missing)
        elif pool is None:
            yield Growth(nodes=nodes, count=0, held=f"there is no NodePool {name}", remedy=f"create NodePool {name}")
        else:
            if name not in left:
                left[name] = NodePoolRoom(name, pool, present.of_node_pool(name))
            yield left[name].take(nodes, missing)


def _launched(nodes: ScalableNodes, pool: NodePool) -> ScalableNodes:
    """Return declared nodes as Karpenter launches them: with the labels and taints of their NodePool as well."""
    taints = (*nodes.taints, *(taint for taint in pool.taints if taint not in nodes.taints))
    return replace(nodes, labels={**nodes.labels, **pool.node_labels}, taints=taints)


class _PresentNodes:
    """The nodes that are there, whether or not they take pods."""

    def __init__(self, seen: ClusterObservation) -> None:
        self._nodes: list[tuple[Mapping[str, str], Resources]] = [
            ({**pool.labels, **node.labels}, node.allocatable) for pool in seen.pools for node in pool.nodes
        ]
        self._nodes += [(node.labels, node.allocatable) for node in seen.closed]

    def count(self, labels: Mapping[str, str]) -> int:
        """Count the nodes with all of these labels."""
        return sum(labels.items() <= own.items() for own, _ in self._nodes)

    def of_node_pool(self, name: str) -> tuple[Resources, ...]:
        """Return the allocatable resources of each node of a NodePool."""
        return tuple(allocatable for labels, allocatable in self._nodes if labels.get(NODE_POOL_LABEL) == name)
