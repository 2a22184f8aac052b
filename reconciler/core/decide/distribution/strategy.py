"""The share of one cluster that strategies work on, and the interface of strategies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    # Its values of the labels that the policy spreads over; empty where it is no longer in the order.
    groups: tuple[str, ...] = ()
    # Its tier: those of a higher one get replicas only once all of a lower one are full.
    tier: int = 0
    # Of the replicas that it has, those that serve at least so well, the best first and all last; empty where they
    # serve equally well, or where it has none to give back.
    serving: tuple[int, ...] = ()
    # Its place by the scores that the policy weighs, which goes before the strategy where bounds choose; 0 without any.
    preference: int = 0

    @property
    def free(self) -> int:
        """How many more replicas it may come to have."""
        bound = self.most if self.weight else min(self.most, self.least)
        return max(0, bound - self.keeps)

    @property
    def best(self) -> int:
        """How well the best of its replicas serves: the index in `serving`; 0 is best."""
        return next((index for index, replicas in enumerate(self.serving) if replicas), 0)

    def at_least(self, index: int) -> int:
        """Return how many of the replicas that it has serve at least so well, by the index in `serving`.

        These are all where others are graded further.
        """
        return min(self.most, self.serving[index]) if index < len(self.serving) else self.most


class Strategy(Protocol):
    """The functions that the module of a strategy has. No answer depends on the order in which shares are given."""

    # The cluster that gives back first, in words.
    RETURNS: str

    def precedence(self, share: ClusterShare) -> tuple[int, ...]:
        """Return a sort key: the first clusters take part where not all of them may."""

    def grow(self, more: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
        """Add replicas to the shares, as far as they fit; return all shares.

        A share that keeps nothing gets its first replica only after one to each such share that goes before it by
        `precedence`, or none to any of the others: `divide.reachable` relies on that, and
        `test_shares_beyond_the_reach_of_the_replicas_count_in_reasons_alone` holds every strategy to it.
        """

    def shrink(self, kept: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
        """Divide the replicas that stay over the shares: the reverse of `grow`."""

    def because(self, growing: Sequence[ClusterShare], shares: Sequence[ClusterShare]) -> list[str]:
        """Return the reason for each share that grows, with its number among all shares that have a weight."""


def grades(shares: Iterable[ClusterShare]) -> range:
    """Return the indexes of `serving`, the best first: replicas of one stay before any of the next does."""
    return range(max((len(share.serving) for share in shares), default=0) or 1)
