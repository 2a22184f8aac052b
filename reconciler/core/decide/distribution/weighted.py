"""Weighted: each cluster in proportion to the weight that the policy gives it, whatever is free there."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution.target import ClusterShare
from reconciler.core.decide.distribution.webster import Claim, apportion

RETURNS = "the cluster furthest above its share gives back first"


def precedence(target: ClusterShare) -> tuple[int, ...]:
    """Take the heaviest first."""
    return (-target.weight, target.rank)


def grow(more: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Bring them nearer to their shares: what a cluster has counts, and one that has too much waits for the others."""
    claims = [Claim(weight=target.weight, seats=target.keeps, most=target.most, rank=target.rank) for target in targets]
    return apportion(more, claims)


def shrink(kept: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Share out what stays, each at most what it has: who is the furthest above its share gives back first."""
    return grow(kept, targets)


def because(target: ClusterShare, targets: Sequence[ClusterShare]) -> str:
    """Say its part of all weights."""
    return f"weight {target.weight} of {sum(other.weight for other in targets)}"
