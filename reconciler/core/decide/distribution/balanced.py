"""Balanced: each cluster in proportion to what fits there, so that all of them fill up alike."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution.target import ClusterShare
from reconciler.core.decide.distribution.webster import Claim, apportion

RETURNS = "the fullest cluster gives back first"


def precedence(target: ClusterShare) -> tuple[int, ...]:
    """Take those that have any first, then the roomiest."""
    return (-_room(target), target.rank)


def grow(more: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Share out by what is free on top of what each keeps; what is there already is not counted again."""
    claims = [Claim(weight=_room(target), most=target.free, rank=target.rank) for target in targets]
    return tuple(target.keeps + given for target, given in zip(targets, apportion(more, claims), strict=True))


def shrink(kept: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Share out what stays, each at most what it has: who is the fullest gives back first."""
    return grow(kept, targets)


def because(target: ClusterShare, targets: Sequence[ClusterShare]) -> str:
    """Say its part of all that is free."""
    return f"{_room(target)} of {sum(map(_room, targets))} free"


def _room(target: ClusterShare) -> int:
    return target.capacity - target.keeps
