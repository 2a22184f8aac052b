"""The share of one cluster that strategies work on, and the interface of strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from reconciler.model.ids import ClusterName


class ClusterShare(NamedTuple):
    """A cluster's share of a workload's replicas: `keeps` <= the share <= `most` <= `capacity`.

    A tuple, since each pass makes tens of thousands.
    """

    cluster: ClusterName
    # Its place in the order, unlike any other's.
    rank: int
    # The largest share that it may come to have.
    most: int
    # All replicas that it could hold, those that it has included.
    capacity: int
    # The replicas that it has for certain.
    keeps: int = 0
    # The share that it comes to have before others get more.
    least: int = 0
    # Its weight for the strategy; with 0 it gets no more than `least`.
    weight: int = 1
    # Its value of the label that the policy spreads over.
    group: str = ""

    @property
    def free(self) -> int:
        """How many more replicas it may come to have."""
        bound = self.most if self.weight else min(self.most, self.least)
        return max(0, bound - self.keeps)


class Strategy(Protocol):
    """The functions that the module of a strategy has. No answer depends on the order in which shares are given."""

    # The cluster that gives back first, in words.
    RETURNS: str

    def precedence(self, share: ClusterShare) -> tuple[int, ...]:
        """Return a sort key: the first clusters take part where not all of them may."""

    def grow(self, more: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
        """Add replicas to the shares, as far as they fit; return all shares."""

    def shrink(self, kept: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
        """Divide the replicas that stay over the shares: the reverse of `grow`."""

    def because(self, growing: Sequence[ClusterShare], shares: Sequence[ClusterShare]) -> list[str]:
        """Return the reason for each share that grows, with its number among all shares."""
