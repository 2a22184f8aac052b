"""The nodes of a cluster as columns: for each resource a list of what is free, and the kinds of labels and taints.

Counting the pods of a shape is a division along a column, and labels and taints are compared once for each kind of
node. The columns are lists of Python integers: nano units of memory do not fit into 64 bits, and for the nodes of one
cluster a list is as fast as an array (docs/decisions/0031).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reconciler.core.capacity.node import PODS, NodeCapacity, admits, may_be_in_domains, pods_fitting
from reconciler.core.capacity.pod_anti_affinity import Domain
from reconciler.model.capacity import ReplicaShape
from reconciler.model.units import ONE, Quantity, Resources

_UNLIMITED = 2**31
"""Pods of a shape that requests nothing, as `Resources.holds` counts them."""


def node_kinds(nodes: Sequence[NodeCapacity]) -> list[int]:
    """Give the same number to nodes with the same labels and taints: they admit the same pods, but by name.

    A node that may be one of several is of a kind of its own.
    """
    numbers: dict[object, int] = {}
    return [
        numbers.setdefault((frozenset(node.labels.items()), node.taints, position if node.one_of else -1), len(numbers))
        for position, node in enumerate(nodes)
    ]


class NodeColumns:
    """The columns of some nodes; a position is an index into them."""

    __slots__ = ("_columns", "_kinds", "_nodes", "_places")

    def __init__(self, nodes: Sequence[NodeCapacity], kinds: list[int]) -> None:
        """Begin without a column: each is made when it is first asked for. `kinds` are those of `node_kinds`."""
        self._nodes = nodes
        self._kinds = kinds
        self._columns: dict[str, list[int]] = {}
        self._places: list[int] | None = None

    def admitting(self, shape: ReplicaShape, shut: frozenset[Domain]) -> Sequence[int]:
        """Return the positions of nodes that admit a shape, without those in domains that are `shut` to it."""
        nodes = self._nodes
        if any(term.fields for term in shape.node_terms):
            return [at for at, node in enumerate(nodes) if admits(node, shape) and not may_be_in_domains(node, shut)]
        answers: dict[int, bool] = {}
        for kind, node in zip(self._kinds, nodes, strict=True):
            if kind not in answers:
                answers[kind] = admits(node, shape) and not may_be_in_domains(node, shut)
        if all(answers.values()):
            return range(len(nodes))
        return [at for at, kind in enumerate(self._kinds) if answers[kind]]

    def pods(self, shape: ReplicaShape, admitting: Sequence[int]) -> list[int]:
        """Count the pods of a shape that each node holds, devices aside; none on nodes that do not admit it."""
        counts: list[int] | None = None
        for name, amount in shape.requests.amounts.items():
            if amount:
                fitting = [free // amount for free in self._column(name)]
                counts = fitting if counts is None else list(map(min, counts, fitting))
        if counts is None:
            counts = [_UNLIMITED] * len(self._nodes)
        if PODS not in shape.requests.amounts:
            counts = list(map(min, counts, self._pod_places()))
        if len(admitting) == len(counts):
            return counts
        admitted = [0] * len(counts)
        for position in admitting:
            admitted[position] = counts[position]
        return admitted

    def pods_at(self, position: int, shape: ReplicaShape) -> int:
        """Count the pods of a shape that one node holds, which admits it."""
        return pods_fitting(self._nodes[position], shape)

    def free(self, names: Collection[str], admitting: Sequence[int]) -> Resources:
        """Sum what is free of some resources on nodes."""
        sums = {}
        for name in names:
            column = self._column(name)
            whole = len(admitting) == len(column)
            sums[name] = Quantity(sum(column) if whole else sum(map(column.__getitem__, admitting)))
        return Resources(amounts=sums)

    def update(self, position: int) -> None:
        """Take over what is free of a node."""
        amounts = self._nodes[position].free.amounts
        for name, column in self._columns.items():
            column[position] = amounts.get(name, 0)
        if self._places is not None:
            self._places[position] = _places(self._nodes[position])

    def copy(self, nodes: Sequence[NodeCapacity]) -> NodeColumns:
        """Return the columns of other nodes, which are equal to these."""
        other = NodeColumns(nodes, self._kinds)
        other._columns = {name: list(column) for name, column in self._columns.items()}
        other._places = None if self._places is None else list(self._places)
        return other

    def _column(self, name: str) -> list[int]:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = [node.free.amounts.get(name, 0) for node in self._nodes]
        return column

    def _pod_places(self) -> list[int]:
        if self._places is None:
            self._places = list(map(_places, self._nodes))
        return self._places


def _places(node: NodeCapacity) -> int:
    """Count the pods that Kubernetes lets a node have in addition, whatever they request."""
    places = node.free.amounts.get(PODS)
    return _UNLIMITED if places is None else places // ONE
