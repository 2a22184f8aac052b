"""The nodes that the autoscaler of a cluster may add, as its Cluster declares them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.cluster import ScalableNodes
from reconciler.model.policy import Cluster

_LAST = "~"
"""Sorts after the name of any pool, so that existing nodes are filled first."""
_HOSTNAME = "kubernetes.io/hostname"
"""The node label that kubelets set, with a value of its own for each node."""


def longest_delay(cluster: Cluster | None) -> timedelta:
    """Return the longest time in which the autoscaler of a cluster adds a node; zero without one."""
    return max((nodes.delay for nodes in cluster.autoscaling), default=timedelta()) if cluster else timedelta()


def growth_delay(cluster: Cluster, seen: ClusterObservation, shape: ReplicaShape) -> timedelta | None:
    """Return the shortest time in which the autoscaler adds a node that a pod of this shape may have; None for none."""
    delays = sorted({nodes.delay for nodes, _ in addable_nodes(cluster, seen)})
    bare = replace(seen, pools=())
    pod = replace(shape, group_size=1)
    return next(
        (delay for delay in delays if ClusterCapacity(with_added_nodes(cluster, bare, delay)).count(pod, 1)), None
    )


def with_added_nodes(cluster: Cluster, seen: ClusterObservation, within: timedelta) -> ClusterObservation:
    """Add the nodes that the autoscaler of a cluster could add within a time, as if they were empty."""
    pools = [
        Pool(
            name=f"{_LAST}{index}",
            nodes=tuple(
                Node(
                    name=(name := f"{_LAST}{index}-{number}"),
                    free=nodes.allocatable,
                    allocatable=nodes.allocatable,
                    labels={_HOSTNAME: name},
                    pods=(),
                )
                for number in range(missing)
            ),
            labels=nodes.labels,
            taints=nodes.taints,
        )
        for index, (nodes, missing) in enumerate(addable_nodes(cluster, seen))
        if nodes.delay <= within
    ]
    return replace(seen, pools=(*seen.pools, *pools)) if pools else seen


def addable_nodes(cluster: Cluster, seen: ClusterObservation) -> Iterator[tuple[ScalableNodes, int]]:
    """Count the nodes of each kind that could still be added; existing ones that take no pods count as existing."""
    labels = [{**pool.labels, **node.labels} for pool in seen.pools for node in pool.nodes]
    labels += [dict(node.labels) for node in seen.closed]
    for nodes in cluster.autoscaling:
        present = sum(nodes.labels.items() <= label.items() for label in labels)
        if present < nodes.most:
            yield nodes, nodes.most - present
