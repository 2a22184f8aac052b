"""Ordered: one cluster after the other is filled; replicas that overflow go to the next, and come home first."""

from __future__ import annotations

from bisect import bisect_right
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


def because(growing: Sequence[ClusterShare], shares: Sequence[ClusterShare]) -> list[str]:
    """Say of each its place in the order."""
    ranks = sorted(share.rank for share in shares)
    return [f"number {bisect_right(ranks, share.rank)} in order" for share in growing]
