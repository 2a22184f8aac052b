"""In which order replicas of several shapes take room, so that each leaves to the others what only they can use.

Rooms are filled first-fit, so that what fits on any node would take the only one of what fits on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from reconciler.core.capacity.room import ClusterCapacity
from reconciler.model.capacity import ReplicaShape

_T = TypeVar("_T")

ShapeReplicas = tuple[ReplicaShape, int]
"""So many replicas of a shape."""


def tightest_first(room: ClusterCapacity, wanted: Iterable[_T], shape: Callable[[_T], ReplicaShape]) -> list[_T]:
    """Put what is wanted in order: what has the fewest nodes to go to comes first, and else all stays as it was."""
    items = list(wanted)
    alike = {shape(item).likeness: shape(item) for item in items}
    if len(alike) <= 1:
        return items
    choices = {likeness: room.choices(shape) for likeness, shape in alike.items()}
    return sorted(items, key=lambda item: choices[shape(item).likeness])


def fitting_beside(room: ClusterCapacity, beside: Sequence[ShapeReplicas], shape: ReplicaShape, most: int) -> int:
    """Count the replicas of a shape, up to `most`, that fit with all of what goes beside them; nothing is taken."""

    def fits(replicas: int) -> bool:
        wanted = tightest_first(room, [*beside, (shape, replicas)], lambda pair: pair[0])
        return room.together(wanted) == len(wanted)

    low, high = 0, most
    if most <= 0 or fits(most):
        return max(0, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
