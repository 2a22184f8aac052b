"""Ordered: one cluster after the other, each as far as it goes; what overflows goes to the next, and returns first."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution.target import ClusterShare

RETURNS = "the last cluster in the order gives back first"


def precedence(target: ClusterShare) -> tuple[int, ...]:
    """Take them as the policy has them."""
    return (target.rank,)


def grow(more: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Fill them in order."""
    counts = [target.keeps for target in targets]
    for place in sorted(range(len(targets)), key=lambda place: precedence(targets[place])):
        given = min(more, targets[place].free)
        counts[place] += given
        more -= given
    return tuple(counts)


def shrink(kept: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Keep the first ones: the last cluster gives back first."""
    return grow(kept, targets)


def because(target: ClusterShare, targets: Sequence[ClusterShare]) -> str:
    """Say its place among them."""
    return f"number {sum(other.rank <= target.rank for other in targets)} in order"
