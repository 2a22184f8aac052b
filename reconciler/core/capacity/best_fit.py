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


def count_beside(room: ClusterCapacity, pods: Sequence[ShapeReplicas], index: int, most: int) -> int:
    """Count the replicas of the shape at `index`, up to `most`, that fit beside the others; nothing is taken.

    All of `pods` fit in their order already. The order binds the caller that takes the room: in another one they may
    not fit.
    """
    shape, low = pods[index]

    def fits(replicas: int) -> bool:
        wanted = *pods[:index], (shape, replicas), *pods[index + 1 :]
        return room.fitting_in_order(wanted) == len(wanted)

    if most <= low or fits(most):
        return max(low, most)
    high = most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
