"""What is surely free once pods are gone of which nobody tells which nodes they are on."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.units import Resources


def sure(places: Sequence[int], pods: int) -> list[int]:
    """Say how many of some pods are on each node at the least, when so many of them can be on each at the most."""
    spare = max(0, sum(places) - pods)
    return [max(0, most - spare) for most in places]


def in_place(pod: Resources, wanted: Resources, nodes: Sequence[Resources]) -> Resources | None:
    """Say what a newcomer needs of a node beside the room of one pod, so that it fits in that pod's place anywhere.

    `nodes` are what is free on those that the pod can be on; what is needed has to be taken off each of them. None
    where one of them has too little, or more newcomers would find room without it. In place of a large pod there may be
    several newcomers.
    """
    for number in sorted({1, _most(pod, wanted)}, reverse=True):
        missing = wanted.times(number).minus(pod).amounts.items()
        needed = Resources(amounts={name: amount for name, amount in missing if amount and name in wanted.amounts})
        if not needed.amounts:
            return needed
        if all(free.holds(needed) for free in nodes):
            lost = sum(free.holds(wanted) - free.minus(needed).holds(wanted) for free in nodes)
            if lost < number:
                return needed
    return None


def _most(pod: Resources, wanted: Resources) -> int:
    """Count the newcomers whose extended resources a pod makes free, whatever else they need."""
    extended = [(pod.amounts.get(name, 0), amount) for name, amount in wanted.amounts.items() if amount and "/" in name]
    return max(1, min((free // amount for free, amount in extended), default=1))
