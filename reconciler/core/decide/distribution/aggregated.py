"""Aggregated: the fewest clusters that hold all replicas."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution import balanced
from reconciler.core.decide.distribution.strategy import ClusterShare

RETURNS = "the smallest share is given back first"


def precedence(share: ClusterShare) -> tuple[int, ...]:
    """Take the clusters with replicas of the workload first, then the roomiest."""
    return (not share.keeps, -share.free, share.rank)


def grow(more: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Divide over the fewest clusters by free room, as Karmada does."""
    fewest = {share.rank for share in _fewest(more, shares)}
    open_to = [share if share.rank in fewest else _close(share) for share in shares]
    return balanced.grow(more, open_to)


def shrink(kept: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Keep the largest shares whole: the smallest is emptied first."""
    counts = {share.rank: share.keeps for share in shares}
    for share in sorted(shares, key=lambda share: (-share.most, share.rank)):
        stays = min(kept, share.free)
        counts[share.rank] += stays
        kept -= stays
    return tuple(counts[share.rank] for share in shares)


def because(growing: Sequence[ClusterShare], shares: Sequence[ClusterShare]) -> list[str]:
    """Say of each its part of the free room on the clusters that take part."""
    del shares
    free = sum(share.free for share in growing if share.weight)
    return [f"{share.free} of {free} free on the fewest that hold it" for share in growing]


def _fewest(more: int, shares: Sequence[ClusterShare]) -> list[ClusterShare]:
    chosen: list[ClusterShare] = []
    for share in sorted(shares, key=precedence):
        if more <= 0:
            break
        chosen.append(share)
        more -= share.free
    return chosen


def _close(share: ClusterShare) -> ClusterShare:
    return ClusterShare(
        cluster=share.cluster, rank=share.rank, keeps=share.keeps, most=share.keeps, capacity=share.keeps
    )
