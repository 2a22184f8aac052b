"""Weighted: each cluster in proportion to the weight that the policy gives it, whatever is free there."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution.strategy import ClusterShare
from reconciler.core.decide.distribution.webster import Claim, apportion

RETURNS = "the cluster furthest above its share gives back first"


def precedence(share: ClusterShare) -> tuple[int, ...]:
    """Take the heaviest first."""
    return (-share.weight, share.rank)


def grow(more: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Bring clusters nearer to their weights: kept replicas count, and a cluster above its weight gets no more."""
    claims = [Claim(weight=share.weight, seats=share.keeps, most=share.most, rank=share.rank) for share in shares]
    return apportion(more, claims)


def shrink(kept: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Divide the replicas that stay by weight: the cluster furthest above its weight gives back first."""
    return grow(kept, shares)


def because(growing: Sequence[ClusterShare], shares: Sequence[ClusterShare]) -> list[str]:
    """Say of each its weight and the sum of all."""
    weight = sum(share.weight for share in shares)
    return [f"weight {share.weight} of {weight}" for share in growing]
