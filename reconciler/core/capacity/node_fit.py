"""The pods of one shape that each node of a cluster holds, kept while replicas take capacity.

A pass places thousands of replicas of few shapes. Each shape has its nodes counted once; after that only the nodes that
have changed since are counted again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.core.capacity.node import separate_groups
from reconciler.core.capacity.node_columns import NodeColumns
from reconciler.core.capacity.pod_anti_affinity import Domain
from reconciler.model.capacity import ReplicaShape
from reconciler.model.units import Resources

_FEW = 8
"""One node in so many may have changed for the others not to be counted again."""


class NodeFit:
    """The nodes that admit a shape without devices and pod rules, with the pods that each holds.

    `columns` are those of the cluster; a position is an index into them.
    """

    __slots__ = ("_admitting", "_first", "_is_own", "_pods", "_shape", "_total", "changes")

    def __init__(self, shape: ReplicaShape, columns: NodeColumns, shut: frozenset[Domain], changes: int = 0) -> None:
        """Count all nodes, but those in domains that are `shut` to the shape, after so many changes of nodes."""
        self._shape = shape
        self._admitting = columns.admitting(shape, shut)
        self._pods = columns.pods(shape, self._admitting)
        self._total = sum(self._pods)
        self._first = 0
        self.changes = changes
        """How many changes of nodes it has seen."""
        self._is_own = True

    def copy(self) -> NodeFit:
        """Return a copy for another state of the same nodes, which has seen none of its changes."""
        other = object.__new__(NodeFit)
        other._shape, other._admitting, other._pods = self._shape, self._admitting, self._pods
        other._total, other._first, other.changes = self._total, self._first, 0
        self._is_own = other._is_own = False
        return other

    def update(self, columns: NodeColumns, changed: Sequence[int]) -> None:
        """Count the nodes at the changed positions again that it has not seen yet; `changed` only ever grows."""
        if self.changes == len(changed):
            return
        new = changed[self.changes :]
        self.changes = len(changed)
        # 1. Many have changed: all are counted, which is a division along each column.
        if len(new) > len(self._pods) // _FEW:
            self._pods, self._is_own = columns.pods(self._shape, self._admitting), True
            self._total, self._first = sum(self._pods), 0
            return
        # 2. A few.
        if not self._is_own:
            self._pods, self._is_own = list(self._pods), True
        for position in new if len(new) == 1 else {*new}:
            if position not in self._admitting:
                continue
            pods = columns.pods_at(position, self._shape)
            self._total += pods - self._pods[position]
            self._pods[position] = pods
            if pods:
                self._first = min(self._first, position)

    def free(self, columns: NodeColumns) -> Resources:
        """Return the sum of the requested resources that are free on the nodes."""
        return columns.free(self._shape.requests.amounts, self._admitting)

    @property
    def pods(self) -> Sequence[int]:
        """The pods that each node holds, by its position."""
        return self._pods

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
