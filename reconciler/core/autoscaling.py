"""What autoscalers could add to clusters, as people declare it: their bounds cannot be seen from a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from reconciler.model.autoscaling import ScalableNodes
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.policy import Cluster

_LAST = "~"
"""Sorts after the name of any pool, so that nodes that are there are filled first."""
_HOSTNAME = "kubernetes.io/hostname"
"""What its kubelet labels each node with, a value of its own."""


def grown(cluster: Cluster, seen: ClusterObservation, within: timedelta) -> ClusterObservation:
    """Add to a cluster the nodes that its autoscaler could have there within a time, as if they were empty."""
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
        for index, (nodes, missing) in enumerate(addable(cluster, seen))
        if nodes.delay <= within
    ]
    return replace(seen, pools=(*seen.pools, *pools)) if pools else seen


def addable(cluster: Cluster, seen: ClusterObservation) -> Iterator[tuple[ScalableNodes, int]]:
    """Count how many nodes of each kind could still be added; those that take no pods are there, too."""
    labels = [{**pool.labels, **node.labels} for pool in seen.pools for node in pool.nodes]
    labels += [dict(node.labels) for node in seen.closed]
    for nodes in cluster.autoscaling:
        there = sum(nodes.labels.items() <= one.items() for one in labels)
        if there < nodes.most:
            yield nodes, nodes.most - there
