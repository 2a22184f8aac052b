"""Shares of clusters that keep nothing, in the order in which a strategy prefers them, while their room changes.

Of these shares a strategy without bounds and minimums uses no more than there are replicas: the first. So a division
over hundreds of clusters costs no more than its replicas and the shares that have changed since the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.core.decide.distribution.divide import precedence
from reconciler.core.decide.distribution.strategy import ClusterShare
from reconciler.model.ids import ClusterName
from reconciler.model.policy import StrategyName


class SortedShares:
    """Shares by the precedence of a strategy."""

    def __init__(self, strategy: StrategyName) -> None:
        """Begin without any."""
        self.shares: Sequence[ClusterShare] = ()
        """All of them; the first is preferred to all others."""
        self._precedence = precedence(strategy)
        self._keyed: list[tuple[tuple[int, ...], ClusterShare]] = []

    def replace(self, clusters: Collection[ClusterName], shares: Iterable[ClusterShare]) -> None:
        """Put shares in place of those that clusters have."""
        self._keyed = [item for item in self._keyed if item[1].cluster not in clusters]
        self._keyed += [(self._precedence(share), share) for share in shares]
        self._keyed.sort()  # a key has the rank of its share, unlike any other's
        self.shares = [share for _, share in self._keyed]
