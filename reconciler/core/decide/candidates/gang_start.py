"""The start of a gang in a cluster without room for all of it: its minimum, and the pods that fit beside that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from reconciler.core.capacity.best_fit import ShapeReplicas, count_beside, tightest_first
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import PodRequirements, PodSet
from reconciler.core.workloads.replica_count import requests_devices
from reconciler.text.wording import conjugate, count


@dataclass(frozen=True, slots=True, kw_only=True)
class GangStart:
    """The pods of a gang that have room in a cluster, where that is enough for its minimum."""

    # The pods that fit, by shape, in the order in which they find room.
    fits: tuple[ShapeReplicas, ...]
    # All pods of the gang, and those that start it.
    pods: int
    least: int

    def describe(self) -> str:
        """Say which pods fit, start and wait; empty where all of them fit after all, in another order."""
        fit = sum(number for _, number in self.fits)
        if fit == self.pods:
            return ""
        fits = conjugate(fit, "fits")
        return (
            f"{fit} of its {count(self.pods, 'pod')} {fits} now: its minimum of {self.least} starts,"
            " and the others wait there"
        )


def may_start(need: PodRequirements) -> bool:
    """Tell whether a gang starts with fewer pods than all.

    No pod may be missing of those that want topology domains, or are asked for as so many nodes.
    """
    parts = need.main, *need.others
    whole = need.domains or need.shared or any(part.apart for part in parts)
    return not whole and any(part.start < part.replicas for part in parts)


def minimum(need: PodRequirements) -> tuple[ShapeReplicas, ...]:
    """Return the pods that have to start at once."""
    return _shape_counts(need.parts, [part.start for part in need.parts])


def start(room: ClusterCapacity, need: PodRequirements) -> GangStart | None:
    """Find the pods that have room beside each other, each role's minimum first; None where the minimum has none.

    No room is taken. Other pods may fit all the same, since the scheduler may choose other nodes.
    """
    parts = tightest_first(room, need.parts, attrgetter("shape"))
    fits = [(part.shape, part.start) for part in parts]
    if not may_start(need) or room.fitting_in_order(fits) < len(fits):
        return None
    for index, part in enumerate(parts):
        fits[index] = part.shape, count_beside(room, fits, index, part.replicas)
    return GangStart(fits=tuple(pods for pods in fits if pods[1]), pods=need.pods, least=need.start)


def waiting(need: PodRequirements, bound: int, helping: int) -> tuple[ShapeReplicas, ...]:
    """Return the pods of a gang without a node where `bound` pods have one, `helping` of them without a device.

    The roles of bound pods are unknown. The largest pods are assumed to be bound first.
    """
    left, missing = {True: helping, False: bound - helping}, list[PodSet]()
    for part in need.parts:
        helps = not requests_devices(part.shape)
        placed = min(part.replicas, max(0, left[helps]))
        left[helps] -= placed
        missing.append(replace(part, replicas=part.replicas - placed))
    return _shape_counts(missing, [part.replicas for part in missing])


def _shape_counts(parts: Sequence[PodSet], number: Sequence[int]) -> tuple[ShapeReplicas, ...]:
    return tuple((part.shape, some) for part, some in zip(parts, number, strict=True) if some)
