"""Subsets in order: each as far as its maximum, after all minimums; and back in the reverse.

Within a subset replicas are divided by the strategy of the policy, which fills one cluster after the other by default.
A policy with subsets has no bounds on clusters, minimums or tiers: those are of `divide`, which has no bounds of groups
of shares.

OpenKruise's WorkloadSpread for the order and the maximums, its UnitedDeployment's two passes for the minimums
(docs/background/upstream/workloadspread.md, "Choosing a subset" and "UnitedDeployment"). Replicas above a maximum come
home before all others, the last subset's first; so replicas in no subset any more are a last subset that may hold
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reconciler.core.decide.distribution.divide import grow, shrink
from reconciler.core.decide.distribution.strategy import ClusterShare, grades
from reconciler.model.policy import StrategyName


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A subset. The replicas that its shares keep, or have, count for its bounds."""

    # Its clusters; those of a higher tier get replicas only once all of a lower one are full.
    shares: tuple[ClusterShare, ...]
    # How its replicas are divided over its clusters.
    strategy: StrategyName = StrategyName.ORDERED
    # The replicas that it may hold on all of them; None sets no bound.
    most: int | None = None
    least: int = 0


Counts = tuple[tuple[int, ...], ...]
"""The replicas of each share of each layer, in the order in which they were given."""


class _Divide(Protocol):
    """Divides replicas over the shares of one layer, on top of what each keeps; returns all shares."""

    def __call__(self, more: int, shares: Sequence[ClusterShare], strategy: StrategyName, /) -> tuple[int, ...]:
        """Return the replicas of each share."""


def share_out(total: int, layers: Sequence[Layer]) -> Counts:
    """Divide a total: the replicas that a share keeps are part of it, and stay above a maximum, too."""
    return _raise(total, layers, minimums(total, layers), [layer.most for layer in layers], grow)


def minimums(total: int, layers: Sequence[Layer]) -> Counts:
    """Divide no more of a total than all minimums come to, in order."""
    kept = tuple(tuple(share.keeps for share in layer.shares) for layer in layers)
    return _raise(total, layers, kept, [_least(layer) for layer in layers], grow)


def give_back(total: int, layers: Sequence[Layer]) -> Counts:
    """Divide the replicas of a smaller total that stay; a share keeps nothing for certain, and `most` is what it has.

    Above the maximums goes first, and minimums last. In between go the replicas that serve least
    (`ClusterShare.serving`), and of equal ones those of the last subset, and within a subset by its strategy.
    """
    counts: Counts = tuple((0,) * len(layer.shares) for layer in layers)
    levels = grades(share for layer in layers for share in layer.shares)
    for bounds in ([_least(layer) for layer in layers], [layer.most for layer in layers], [None] * len(layers)):
        for level in levels:
            counts = _raise(total, [_at_least(layer, level) for layer in layers], counts, bounds, shrink)
    return counts


def _at_least(layer: Layer, level: int) -> Layer:
    """Return a subset with those of its replicas that serve so well at least."""
    return replace(layer, shares=tuple(share._replace(most=share.at_least(level)) for share in layer.shares))


def _least(layer: Layer) -> int:
    return layer.least if layer.most is None else min(layer.least, layer.most)


def _raise(
    total: int, layers: Sequence[Layer], counts: Counts, levels: Sequence[int | None], divide: _Divide
) -> Counts:
    """Bring each subset to its level, one after the other, as far as the total and the room of its clusters go."""
    more, raised = total - sum(map(sum, counts)), []
    for layer, row, level in zip(layers, counts, levels, strict=True):
        left = more if level is None else min(more, level - sum(row))
        shares = [share._replace(keeps=has) for share, has in zip(layer.shares, row, strict=True)]
        new = divide(left, shares, layer.strategy) if left > 0 else row
        more -= sum(new) - sum(row)
        raised.append(tuple(new))
    return tuple(raised)
