"""One cluster as a strategy sees it, and the one interface that all strategies have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.model.ids import ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShare:
    """A cluster, in replicas of one workload: `keeps` <= what it comes to have <= `most` <= `capacity`.

    `capacity` is all that it could hold, what it has included. `rank` is its place in the policy's order and unlike any
    other's. `least` is what it comes to have before others get more; one of `weight` 0 comes to have no more than that.
    `group` is its value of the label that is spread over.
    """

    cluster: ClusterName
    rank: int
    most: int
    capacity: int
    keeps: int = 0
    least: int = 0
    weight: int = 1
    group: str = ""

    @property
    def free(self) -> int:
        """How many more it may come to have."""
        bound = self.most if self.weight else min(self.most, self.least)
        return max(0, bound - self.keeps)


class Strategy(Protocol):
    """What a module of a strategy is. No answer depends on the order in which targets are given.

    `RETURNS` says which cluster gives back first.
    """

    RETURNS: str

    def precedence(self, target: ClusterShare) -> tuple[int, ...]:
        """Return what sorts targets by which is taken first, where not all of them may be."""

    def grow(self, more: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
        """Hand out so many on top of what each keeps, as far as they fit; return what each comes to have."""

    def shrink(self, kept: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
        """Say where so many stay, on top of what each keeps, when the others are given back: the reverse of `grow`."""

    def because(self, target: ClusterShare, targets: Sequence[ClusterShare]) -> str:
        """Say what spoke for one of them, with its numbers."""
