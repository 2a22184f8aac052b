"""Replicas shared out and given back: what all strategies have in common.

First one replica for each cluster or group that there have to be, then the minimums in order, each as far as there are
so many; the strategy shares out the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.decide.distribution import aggregated, balanced, cluster_bounds, ordered, weighted
from reconciler.core.decide.distribution.target import ClusterShare, Strategy
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Distribution, StrategyName

_STRATEGIES: Mapping[StrategyName, Strategy] = {
    StrategyName.ORDERED: ordered,
    StrategyName.WEIGHTED: weighted,
    StrategyName.BALANCED: balanced,
    StrategyName.AGGREGATED: aggregated,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """What each cluster comes to have, of those that have any, and why.

    `because` is there for those that got more. `left_out` could take some and may not, for the bounds. `lacking` tells
    of a lower bound that cannot be reached: how many clusters there are, and groups; then no group gets a second one.
    """

    counts: Mapping[ClusterName, int]
    because: Mapping[ClusterName, str]
    left_out: tuple[ClusterShare, ...] = ()
    lacking: tuple[int, int] | None = None


def share_out(total: int, targets: Sequence[ClusterShare], distribution: Distribution) -> Division:
    """Divide a total; what a target keeps is part of it, and stays even where that is more.

    Where fewer clusters or groups can be reached than there have to be, there is one replica for each and no more, as
    Kubernetes' minDomains has it: a larger total never gets less.
    """
    strategy = _STRATEGIES[distribution.strategy]
    more = max(0, total - sum(target.keeps for target in targets))
    chosen = cluster_bounds.choose(more, targets, distribution, strategy.precedence)
    clusters, groups = cluster_bounds.reached(chosen)
    lacking = None
    if groups < min(distribution.min_groups, total) or clusters < min(distribution.min_clusters, total):
        lacking = clusters, groups
    sown = cluster_bounds.seeds(chosen, distribution)[:more]
    more, raised = _raised(more, chosen, {target.cluster: 1 for target in sown})
    if lacking is None:
        more, raised = _raised(more, raised, {target.cluster: target.least for target in raised})
        taking = _taking(raised)
        raised = _filled(strategy.grow(more, taking), taking, raised)
    counts = {target.cluster: target.keeps for target in raised if target.keeps}
    return Division(
        counts=counts,
        because=_because(chosen, counts, sown, distribution),
        left_out=tuple(sorted(set(targets).difference(chosen), key=strategy.precedence)) if more else (),
        lacking=lacking,
    )


def give_back(total: int, targets: Sequence[ClusterShare], distribution: Distribution) -> Mapping[ClusterName, int]:
    """Say how many of a smaller total stay where; a target keeps nothing for certain, and `most` is what it has.

    The least is taken away last, later ones' first; what a policy does not name any more goes before all else.
    """
    strategy = _STRATEGIES[distribution.strategy]
    by_preference = sorted(targets, key=lambda target: (not target.weight, *strategy.precedence(target)))
    sown = cluster_bounds.seeds(by_preference, distribution)[:total]
    more, raised = _raised(total, by_preference, {target.cluster: 1 for target in sown})
    more, raised = _raised(more, raised, {target.cluster: target.least for target in raised})
    before = more + sum(target.keeps for target in raised)
    taking = _taking(raised)
    raised = _filled(strategy.shrink(more, taking), taking, raised)
    left = before - sum(target.keeps for target in raised)
    _, raised = _raised(left, raised, {target.cluster: target.most for target in raised})
    return {target.cluster: target.keeps for target in raised}


def returns(distribution: Distribution) -> str:
    """Say which cluster gives back first."""
    return f"{distribution.strategy}: {_STRATEGIES[distribution.strategy].RETURNS}"


def _raised(
    more: int, targets: Sequence[ClusterShare], floors: Mapping[ClusterName, int]
) -> tuple[int, tuple[ClusterShare, ...]]:
    """Bring each to its floor in the policy's order, as far as there are so many and it holds them."""
    raised: dict[ClusterName, ClusterShare] = {}
    for target in sorted(targets, key=lambda target: target.rank):
        floor = min(floors.get(target.cluster, 0), target.most)
        given = min(more, max(0, floor - target.keeps))
        raised[target.cluster] = replace(target, keeps=target.keeps + given)
        more -= given
    return more, tuple(raised[target.cluster] for target in targets)


def _taking(targets: Sequence[ClusterShare]) -> list[ClusterShare]:
    return [target for target in targets if target.weight]


def _filled(
    counts: Sequence[int], taking: Sequence[ClusterShare], targets: Sequence[ClusterShare]
) -> tuple[ClusterShare, ...]:
    """Let those that take part have what the strategy gave them."""
    given = {target.cluster: count for target, count in zip(taking, counts, strict=True)}
    return tuple(replace(target, keeps=given.get(target.cluster, target.keeps)) for target in targets)


def _because(
    chosen: Sequence[ClusterShare],
    counts: Mapping[ClusterName, int],
    sown: Sequence[ClusterShare],
    distribution: Distribution,
) -> Mapping[ClusterName, str]:
    """Say of each that got more what spoke for it."""
    strategy, said = _STRATEGIES[distribution.strategy], {}
    growing = [target for target in chosen if counts.get(target.cluster, 0) > target.keeps]
    taking = _taking(chosen if distribution.strategy is not StrategyName.AGGREGATED else growing)
    for target in growing:
        count = counts[target.cluster]
        if count <= target.least:
            why = f"its minimum of {target.least}"
        elif count == 1 and target in sown:
            why = "one for each that there has to be"
        else:
            why = strategy.because(target, taking)
        said[target.cluster] = f"{distribution.strategy}: {why}"
    return said
