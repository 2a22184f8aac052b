"""The nodes of a cluster as columns: for each resource a list of what is free, and the kinds of labels and taints.

Counting the pods of a shape is a division along a column, and labels and taints are compared once for each kind of
node. Amounts are counted in nano units, which do not fit into a machine word: a column holds them divided by their
greatest common divisor, which is exact (docs/decisions/0031-columns-of-nodes.md).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd

from reconciler.core.capacity.node import PODS, NodeCapacity, admits, may_be_in_domains, pods_fitting
from reconciler.core.capacity.pod_anti_affinity import Domain
from reconciler.model.capacity import ReplicaShape
from reconciler.model.units import ONE, Quantity, Resources

_UNLIMITED = 2**31
"""Pods of a shape that requests nothing, as `Resources.holds` counts them."""


class _Column:
    """What the nodes have free of one resource, in units of `unit`."""

    __slots__ = ("amounts", "sum", "unit")

    def __init__(self, free: Sequence[int]) -> None:
        self.unit = gcd(*free) or 1
        self.amounts = [amount // self.unit for amount in free]
        self.sum = sum(self.amounts)

    def fitting(self, amount: int) -> list[int]:
        """Count how often an amount fits on each node."""
        amounts, amount = self._over(amount)
        return [free // amount for free in amounts]

    def bound(self, counts: list[int], amount: int) -> None:
        """Lower counts to how often an amount fits; those that are zero are not looked at."""
        amounts, amount = self._over(amount)
        for position, count in enumerate(counts):
            if count and amounts[position] < count * amount:
                counts[position] = amounts[position] // amount

    def _over(self, amount: int) -> tuple[list[int], int]:
        """Return the amounts of nodes and an amount in one unit."""
        common = gcd(self.unit, amount)
        if common == self.unit:
            return self.amounts, amount // common
        factor = self.unit // common
        return [free * factor for free in self.amounts], amount // common

    def put(self, position: int, free: int) -> None:
        """Set what one node has free, in nano units."""
        unit = gcd(self.unit, free)
        if unit != self.unit:
            factor = self.unit // unit
            self.amounts = [amount * factor for amount in self.amounts]
            self.sum *= factor
            self.unit = unit
        amount = free // unit
        self.sum += amount - self.amounts[position]
        self.amounts[position] = amount

    def total(self, positions: Collection[int]) -> Quantity:
        """Sum what is free at some positions."""
        amounts = self.amounts
        whole = len(positions) == len(amounts)
        return Quantity(self.unit * (self.sum if whole else sum(map(amounts.__getitem__, positions))))

    def copy(self) -> _Column:
        """Return a copy."""
        other = object.__new__(_Column)
        other.unit, other.amounts, other.sum = self.unit, list(self.amounts), self.sum
        return other


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
        self._columns: dict[str, _Column] = {}
        self._places: list[int] | None = None
        """The pods that each node may have in addition; empty where no node says so."""

    def admitting(self, shape: ReplicaShape, shut: frozenset[Domain]) -> Collection[int]:
        """Return the positions of nodes that admit a shape, without those in domains that are `shut` to it."""
        nodes = self._nodes
        if any(term.fields for term in shape.node_terms):
            named = (at for at, node in enumerate(nodes) if admits(node, shape) and not may_be_in_domains(node, shut))
            return frozenset(named)
        answers: dict[int, bool] = {}
        for kind, node in zip(self._kinds, nodes, strict=True):
            if kind not in answers:
                answers[kind] = admits(node, shape) and not may_be_in_domains(node, shut)
        if all(answers.values()):
            return range(len(nodes))
        return frozenset(at for at, kind in enumerate(self._kinds) if answers[kind])

    def pods(self, shape: ReplicaShape, admitting: Collection[int]) -> list[int]:
        """Count the pods of a shape that each node holds, devices aside; none on nodes that do not admit it."""
        counts: list[int] | None = None
        # Extended resources, as GPUs are, run short first, and leave the fewest nodes to look at.
        for name, amount in sorted(shape.requests.amounts.items(), key=_is_plentiful):
            if amount:
                column = self._column(name)
                if counts is None:
                    counts = column.fitting(amount)
                else:
                    column.bound(counts, amount)
        if counts is None:
            counts = [_UNLIMITED] * len(self._nodes)
        if PODS not in shape.requests.amounts and self._pod_places():
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

    def free(self, names: Collection[str], admitting: Collection[int]) -> Resources:
        """Sum what is free of some resources on nodes."""
        return Resources(amounts={name: self._column(name).total(admitting) for name in names})

    def update(self, position: int) -> None:
        """Take over what is free of a node."""
        amounts = self._nodes[position].free.amounts
        for name, column in self._columns.items():
            column.put(position, amounts.get(name, 0))
        if self._places:
            self._places[position] = _places(self._nodes[position])

    def copy(self, nodes: Sequence[NodeCapacity]) -> NodeColumns:
        """Return the columns of other nodes, which are equal to these."""
        other = NodeColumns(nodes, self._kinds)
        other._columns = {name: column.copy() for name, column in self._columns.items()}
        other._places = None if self._places is None else list(self._places)
        return other

    def _column(self, name: str) -> _Column:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = _Column([node.free.amounts.get(name, 0) for node in self._nodes])
        return column

    def _pod_places(self) -> list[int]:
        if self._places is None:
            bounded = any(PODS in node.free.amounts for node in self._nodes)
            self._places = list(map(_places, self._nodes)) if bounded else []
        return self._places


def _is_plentiful(request: tuple[str, Quantity]) -> bool:
    return "/" not in request[0]


def _places(node: NodeCapacity) -> int:
    """Count the pods that Kubernetes lets a node have in addition, whatever they request."""
    places = node.free.amounts.get(PODS)
    return _UNLIMITED if places is None else places // ONE
