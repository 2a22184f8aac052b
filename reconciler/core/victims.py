"""Who has to go so that a newcomer has room: what of it has to fit, how much of it does, and the fewest who will do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from reconciler.core.fit import ClusterCapacity
from reconciler.core.needs import PodRequirements
from reconciler.core.starting import may_start, minimum
from reconciler.model.capacity import ReplicaShape
from reconciler.model.placement import Placement


def all_of(needed: PodRequirements, *, least: bool) -> tuple[tuple[ReplicaShape, int], ...]:
    """Return what has to fit; nothing of what wants domains of its own, since who goes may leave it none."""
    if least:
        return minimum(needed) if may_start(needed) else ()
    return () if needed.domains else tuple(part.room for part in needed.parts)


def served(room: ClusterCapacity, wanted: Sequence[tuple[ReplicaShape, int]], *, whole: bool) -> int:
    """Count the replicas that fit; of what goes to one cluster whole that is all of it, counted as one, or none."""
    if whole:
        return int(room.together(wanted) == len(wanted))
    ((shape, most),) = wanted
    return room.count(shape, most)


def fewest(candidates: list[Placement], enough: Callable[[Sequence[Placement]], bool]) -> tuple[Placement, ...]:
    """Choose who goes: the first that is enough by itself, else as many in order as it takes, less who need not go."""
    chosen = candidates[: bisect_left(range(len(candidates) + 1), True, key=lambda number: enough(candidates[:number]))]
    alone = next((one for one in candidates if len(chosen) > 1 and enough([one])), None)
    if alone is not None:
        return (alone,)
    for one in reversed(chosen[:-1]):
        rest = [other for other in chosen if other is not one]
        if enough(rest):
            chosen = rest
    return tuple(chosen)
