"""The pods of one shape that each node of a cluster holds, kept while replicas take capacity.

A pass places thousands of replicas of few shapes. Each shape has its nodes counted once; after that only the nodes that
have changed since are counted again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.core.capacity.node import NodeCapacity, admits, may_be_in_domains, pods_fitting, separate_groups
from reconciler.core.capacity.pod_anti_affinity import Domain
from reconciler.model.capacity import ReplicaShape
from reconciler.model.units import Quantity, Resources


class NodeFit:
    """The nodes that admit a shape without devices and pod rules, with the pods that each holds.

    `nodes` are those of the cluster; a position is an index into them.
    """

    __slots__ = ("_admitting", "_changes", "_first", "_free", "_names", "_pods", "_shape", "_sums", "_total")

    def __init__(
        self, shape: ReplicaShape, nodes: Sequence[NodeCapacity], shut: frozenset[Domain], changes: int = 0
    ) -> None:
        """Count all nodes, but those in domains that are `shut` to the shape, after so many changes of nodes."""
        self._shape = shape
        self._names = tuple(shape.requests.amounts)
        self._admitting = frozenset(
            position for position, node in enumerate(nodes) if admits(node, shape) and not may_be_in_domains(node, shut)
        )
        self._pods = [0] * len(nodes)
        self._free = [node.free for node in nodes]
        self._sums = dict.fromkeys(self._names, 0)
        for position in self._admitting:
            self._pods[position] = pods_fitting(nodes[position], shape)
            for name in self._names:
                self._sums[name] += nodes[position].free.amounts.get(name, 0)
        self._total = sum(self._pods)
        self._first = 0
        self._changes = changes

    def copy(self) -> NodeFit:
        """Return a copy for another state of the same nodes, which has seen none of its changes."""
        other = object.__new__(NodeFit)
        other._shape, other._names, other._admitting = self._shape, self._names, self._admitting
        other._pods, other._free, other._sums = list(self._pods), list(self._free), dict(self._sums)
        other._total, other._first, other._changes = self._total, self._first, 0
        return other

    def update(self, nodes: Sequence[NodeCapacity], changed: Sequence[int]) -> None:
        """Count the nodes at the changed positions again that it has not seen yet; `changed` only ever grows."""
        if self._changes == len(changed):
            return
        for position in self._admitting.intersection(changed[self._changes :]):
            node, before = nodes[position], self._free[position]
            pods = pods_fitting(node, self._shape)
            self._total += pods - self._pods[position]
            self._pods[position], self._free[position] = pods, node.free
            for name in self._names:
                self._sums[name] += node.free.amounts.get(name, 0) - before.amounts.get(name, 0)
            if pods:
                self._first = min(self._first, position)
        self._changes = len(changed)

    def free(self) -> Resources:
        """Return the sum of the requested resources that are free on the nodes."""
        return Resources(amounts={name: Quantity(amount) for name, amount in self._sums.items()})

    def node_count(self) -> int:
        """Count the nodes that hold a pod."""
        return sum(1 for pods in self._pods if pods)

    def count(self, limit: int) -> int:
        """Count the replicas that fit, up to `limit`."""
        if self._shape.apart:
            return separate_groups(self._pods, self._shape.group_size, limit)
        return min(limit, self._total // self._shape.group_size)

    def holding(self) -> Iterator[tuple[int, int]]:
        """Yield the positions of the nodes that hold pods, with their number, in the order of the nodes."""
        pods = self._pods
        while self._first < len(pods) and not pods[self._first]:
            self._first += 1
        for position in range(self._first, len(pods)):
            if pods[position]:
                yield position, pods[position]
