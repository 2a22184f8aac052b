"""The order in which replicas of several shapes take capacity, the most constrained shape first.

Nodes are filled first-fit. A shape that fits on any node would otherwise take the only node of a shape that fits
nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.model.capacity import ReplicaShape

_T = TypeVar("_T")

ShapeReplicas = tuple[ReplicaShape, int]
"""A shape, and a number of replicas of it."""


def tightest_first(room: ClusterCapacity, wanted: Iterable[_T], shape: Callable[[_T], ReplicaShape]) -> list[_T]:
    """Sort by the number of nodes that each shape fits on, fewest first; ties keep their order."""
    items = list(wanted)
    if len(items) <= 1:
        return items
    shapes = {shape(item).likeness: shape(item) for item in items}
    if len(shapes) <= 1:
        return items
    node_counts = {likeness: room.node_count(shape) for likeness, shape in shapes.items()}
    return sorted(items, key=lambda item: node_counts[shape(item).likeness])


def count_beside(room: ClusterCapacity, beside: Sequence[ShapeReplicas], shape: ReplicaShape, most: int) -> int:
    """Count the replicas of a shape, up to `most`, that fit together with all of `beside`; nothing is taken."""

    def fits(replicas: int) -> bool:
        wanted = tightest_first(room, [*beside, (shape, replicas)], lambda pair: pair[0])
        return room.fitting_in_order(wanted) == len(wanted)

    low, high = 0, most
    if most <= 0 or fits(most):
        return max(0, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
