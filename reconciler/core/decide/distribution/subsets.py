"""Subsets in order: each as far as its maximum, after all minimums; and back in the reverse.

Within a subset replicas are divided by the strategy of the policy, which fills one cluster after the other by default.
A policy with subsets has no bounds on clusters, minimums or tiers. What a policy without subsets takes back is a single
subset without bounds.

OpenKruise's WorkloadSpread for the order and the maximums, its UnitedDeployment's two passes for the minimums
(docs/background/upstream/workloadspread.md, "Choosing a subset" and "UnitedDeployment"). Replicas above a maximum come
home before all others, the last subset's first; so replicas in no subset any more are a last subset that may hold
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.decide.distribution.divide import Divide, grow, keep_guarantees, shrink
from reconciler.core.decide.distribution.strategy import ClusterShare, grades
from reconciler.model.policy import Distribution, StrategyName


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A subset. The replicas that its shares keep, or have, count for its bounds."""

    # Its clusters; those of a higher tier get replicas only once all of a lower one are full.
    shares: tuple[ClusterShare, ...]
    # The replicas that it may hold on all of them; None sets no bound.
    most: int | None = None
    least: int = 0


Counts = tuple[tuple[int, ...], ...]
"""The replicas of each share of each layer, in the order in which they were given."""


def share_out(total: int, layers: Sequence[Layer], strategy: StrategyName) -> Counts:
    """Divide a total: the replicas that a share keeps are part of it, and stay above a maximum, too."""
    least, most = minimums(total, layers, strategy), [layer.most for layer in layers]
    return _raise(total, layers, least, most, partial(grow, strategy=strategy))


def minimums(total: int, layers: Sequence[Layer], strategy: StrategyName) -> Counts:
    """Divide no more of a total than all minimums come to, in order."""
    kept = tuple(tuple(share.keeps for share in layer.shares) for layer in layers)
    return _raise(total, layers, kept, [_least(layer) for layer in layers], partial(grow, strategy=strategy))


def give_back(total: int, layers: Sequence[Layer], distribution: Distribution) -> Counts:
    """Divide the replicas of a smaller total that stay; a share keeps nothing for certain, and `most` is what it has.

    Above the maximums goes first, and guarantees last: one replica for each cluster and group that there has to be,
    then the minimums of clusters, those of later ones first, then those of subsets. In between go the replicas that
    serve least (`ClusterShare.serving`), and of equal ones those of the last subset, and within a subset those without
    a weight, then those that the strategy gives back first.
    """
    layers = [replace(layer, shares=_weightless_last(layer.shares)) for layer in layers]
    levels, counts = grades(share for layer in layers for share in layer.shares), list[tuple[int, ...]]()
    for layer in layers:
        counts.append(keep_guarantees(total - sum(map(sum, counts)), layer.shares, distribution, levels))
    by_level = [[_at_least(layer, level) for layer in layers] for level in levels]
    for bounds in ([_least(layer) for layer in layers], [layer.most for layer in layers], [None] * len(layers)):
        for served in by_level:
            counts = list(_raise(total, served, counts, bounds, partial(shrink, strategy=distribution.strategy)))
    return tuple(counts)


def _weightless_last(shares: Sequence[ClusterShare]) -> tuple[ClusterShare, ...]:
    """Put shares without a weight, which get no more, into a tier after all others, which gives back first."""
    last = 1 + max((share.tier for share in shares), default=0)
    return tuple(share if share.weight else share._replace(tier=last, weight=1) for share in shares)


def _at_least(layer: Layer, level: int) -> Layer:
    """Return a subset with those of its replicas that serve so well at least."""
    return replace(layer, shares=tuple(share._replace(most=share.at_least(level)) for share in layer.shares))


def _least(layer: Layer) -> int:
    return layer.least if layer.most is None else min(layer.least, layer.most)


def _raise(
    total: int, layers: Sequence[Layer], counts: Sequence[Sequence[int]], levels: Sequence[int | None], divide: Divide
) -> Counts:
    """Bring each subset to its level, one after the other, as far as the total and the room of its clusters go."""
    more, raised = total - sum(map(sum, counts)), []
    for layer, had, level in zip(layers, counts, levels, strict=True):
        row, left = had, more if level is None else min(more, level - sum(had))
        if left > 0:
            shares = zip(layer.shares, had, strict=True)
            row = divide(left, [share._replace(keeps=has, most=max(has, share.most)) for share, has in shares])
            more -= sum(row) - sum(had)
        raised.append(tuple(row))
    return tuple(raised)
