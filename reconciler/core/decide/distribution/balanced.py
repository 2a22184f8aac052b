"""Balanced: each cluster in proportion to what fits there, so that all of them fill up alike."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution.strategy import ClusterShare
from reconciler.core.decide.distribution.webster import Claim, apportion

RETURNS = "the fullest cluster gives back first"


def precedence(share: ClusterShare) -> tuple[int, ...]:
    """Take the roomiest first."""
    return (-_room(share), share.rank)


def grow(more: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Divide by free room; the replicas that a cluster keeps do not count."""
    claims = [Claim(weight=_room(share), most=share.free, rank=share.rank) for share in shares]
    return tuple(share.keeps + given for share, given in zip(shares, apportion(more, claims), strict=True))


def shrink(kept: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Divide the replicas that stay by room: the fullest cluster gives back first."""
    return grow(kept, shares)


def because(growing: Sequence[ClusterShare], shares: Sequence[ClusterShare]) -> list[str]:
    """Say of each its part of all free room."""
    free = sum(map(_room, shares))
    return [f"{_room(share)} of {free} free" for share in growing]


def _room(share: ClusterShare) -> int:
    return share.capacity - share.keeps
