"""Ordered: one cluster after the other is filled; replicas that overflow go to the next, and come home first."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution.strategy import ClusterShare

RETURNS = "the last cluster in the order gives back first"


def precedence(share: ClusterShare) -> tuple[int, ...]:
    """Take clusters in the order of their ranks."""
    return (share.rank,)


def grow(more: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Fill the clusters in order."""
    counts = [share.keeps for share in shares]
    for place in sorted(range(len(shares)), key=lambda place: precedence(shares[place])):
        given = min(more, shares[place].free)
        counts[place] += given
        more -= given
    return tuple(counts)


def shrink(kept: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Keep the first ones: the last cluster gives back first."""
    return grow(kept, shares)


def because(share: ClusterShare, shares: Sequence[ClusterShare]) -> str:
    """Say its place in the order."""
    return f"number {sum(other.rank <= share.rank for other in shares)} in order"
