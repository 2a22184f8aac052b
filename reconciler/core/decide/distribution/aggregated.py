"""Aggregated: as few clusters as hold all of it."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.distribution import balanced
from reconciler.core.decide.distribution.target import ClusterShare

RETURNS = "the smallest share is given back first"


def precedence(target: ClusterShare) -> tuple[int, ...]:
    """Take those that have some of it first, then the roomiest."""
    return (not target.keeps, -target.free, target.rank)


def grow(more: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Share out over the fewest by what is free there, as Karmada does."""
    fewest = {target.cluster for target in _fewest(more, targets)}
    open_to = [target if target.cluster in fewest else _closed(target) for target in targets]
    return balanced.grow(more, open_to)


def shrink(kept: int, targets: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Keep the largest whole: the smallest is emptied first."""
    counts = {target.cluster: target.keeps for target in targets}
    for target in sorted(targets, key=lambda target: (-target.most, target.rank)):
        stays = min(kept, target.free)
        counts[target.cluster] += stays
        kept -= stays
    return tuple(counts[target.cluster] for target in targets)


def because(target: ClusterShare, targets: Sequence[ClusterShare]) -> str:
    """Say how many share it."""
    return f"{target.free} of {sum(other.free for other in targets)} free on the fewest that hold it"


def _fewest(more: int, targets: Sequence[ClusterShare]) -> list[ClusterShare]:
    chosen: list[ClusterShare] = []
    for target in sorted(targets, key=precedence):
        if more <= 0:
            break
        chosen.append(target)
        more -= target.free
    return chosen


def _closed(target: ClusterShare) -> ClusterShare:
    return ClusterShare(
        cluster=target.cluster, rank=target.rank, keeps=target.keeps, most=target.keeps, capacity=target.keeps
    )
