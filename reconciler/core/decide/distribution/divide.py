"""Division of replicas over clusters, and of fewer when some are taken back: the part common to all strategies.

Each cluster or group that the policy requires gets one replica first, then the minimums are filled in order, as far as
the replicas go; the strategy divides the rest. Where the clusters are in tiers, it divides within each, and the next
tier gets what the ones before it have no room for (Karmada's overflow of cluster affinities).

It divides by the whole distribution of a policy, and says why. `subsets` divides where subsets come before clusters,
and takes back for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.decide.distribution import aggregated, balanced, cluster_bounds, ordered, weighted
from reconciler.core.decide.distribution.cluster_bounds import Groups, Reached
from reconciler.core.decide.distribution.strategy import ClusterShare, Strategy
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Distribution, StrategyName

Divide = Callable[[int, Sequence[ClusterShare]], tuple[int, ...]]
"""Divides replicas over shares, on top of what each keeps; returns all shares."""

_STRATEGIES: Mapping[StrategyName, Strategy] = {
    StrategyName.ORDERED: ordered,
    StrategyName.WEIGHTED: weighted,
    StrategyName.BALANCED: balanced,
    StrategyName.AGGREGATED: aggregated,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The replicas that each cluster comes to have, and the reasons."""

    # The replicas that are divided, those without room too.
    total: int
    # Only clusters that come to have any.
    counts: Mapping[ClusterName, int]
    # The words that speak for each cluster that gets more than it keeps.
    because: Mapping[ClusterName, str]
    # The values that these clusters have of the labels that the policy spreads over.
    groups: tuple[Groups, ...] = ()
    # The clusters that have room and may take no part, for the bounds of the policy.
    left_out: tuple[ClusterShare, ...] = ()
    # Where a lower bound cannot be reached: what can be. Then none gets a second replica.
    out_of_reach: Reached | None = None


def share_out(
    total: int,
    shares: Sequence[ClusterShare],
    distribution: Distribution,
    *,
    beyond: Sequence[ClusterShare] = (),
) -> Division:
    """Divide a total; the replicas that a share keeps are part of it, and stay even where they are more.

    Where fewer clusters or groups can be reached than the policy requires, each gets one replica and no more, as with
    Kubernetes' minDomains: a larger total never gets less. `beyond` are more shares with room, which the replicas do
    not reach (see `reachable`): they count in the reasons alone.
    """
    more = max(0, total - sum(share.keeps for share in shares))
    prefers = preference(distribution.strategy)
    chosen = cluster_bounds.choose(more, shares, distribution, prefers)
    reached = cluster_bounds.reached([share.groups for share in chosen], distribution)
    out_of_reach = reached if any(reached.lacking(distribution, total)) else None
    sown = cluster_bounds.seeds(chosen, distribution)[:more]
    more, raised = _raise(more, chosen, {share.rank: 1 for share in sown})
    if out_of_reach is None:
        more, raised = _raise(more, raised, {share.rank: share.least for share in raised})
        taking = _shares_with_weight(raised)
        raised = _fill(grow(more, taking, distribution.strategy), taking, raised)
    counts = {share.cluster: share.keeps for share in raised if share.keeps}
    taken = {share.rank for share in chosen}
    left_out = [share for share in shares if share.rank not in taken] if more else []
    return Division(
        total=total,
        counts=counts,
        because=_because(chosen, counts, sown, distribution, beyond),
        groups=tuple(share.groups for share in raised if share.keeps and share.groups),
        left_out=tuple(sorted(left_out, key=prefers)),
        out_of_reach=out_of_reach,
    )


def precedence(strategy: StrategyName) -> Callable[[ClusterShare], tuple[int, ...]]:
    """Return the sort key by which a strategy prefers shares, those of the first tier to all others."""
    own = _STRATEGIES[strategy].precedence
    return lambda share: (share.tier, *own(share))


def preference(strategy: StrategyName) -> Callable[[ClusterShare], tuple[int, ...]]:
    """Return the sort key by which bounds choose shares: by tier, then by score, then as the strategy prefers them."""
    own = _STRATEGIES[strategy].precedence
    return lambda share: (share.tier, share.preference, *own(share))


def reachable(more: int, shares: Sequence[ClusterShare], distribution: Distribution) -> int:
    """Count the shares that so many replicas may reach: the first of `shares`, which keep nothing, by precedence.

    Each of them has room, a weight and no minimum, so that by the promise of `Strategy.grow` the replicas reach one
    share each at most; bounds may choose any of them.
    """
    return len(shares) if distribution.is_bounded else min(more, len(shares))


class SortedShares:
    """Shares of clusters that keep nothing, in the order in which a strategy prefers them, while their room changes.

    Of these a strategy without bounds and minimums uses no more than there are replicas: the first (`reachable`). So a
    division over hundreds of clusters costs no more than its replicas and the shares that have changed since the last.
    """

    def __init__(self, strategy: StrategyName) -> None:
        """Begin without any."""
        self.shares: Sequence[ClusterShare] = ()
        """All of them; the first is preferred to all others."""
        self._precedence = precedence(strategy)
        self._keyed: list[tuple[tuple[int, ...], ClusterShare]] = []

    def replace(self, clusters: Collection[ClusterName], shares: Iterable[ClusterShare]) -> None:
        """Put shares in place of those that clusters have."""
        self._keyed = [item for item in self._keyed if item[1].cluster not in clusters]
        self._keyed += [(self._precedence(share), share) for share in shares]
        self._keyed.sort()  # a key has the rank of its share, unlike any other's
        self.shares = [share for _, share in self._keyed]


def keep_guarantees(
    total: int, shares: Sequence[ClusterShare], distribution: Distribution, levels: Iterable[int]
) -> tuple[int, ...]:
    """Divide the replicas that stay of a total for what a policy guarantees; `levels` are those of `grades`.

    These are one replica for each cluster and group that there has to be, then minimums.
    """
    prefers = preference(distribution.strategy)
    by_preference = sorted(shares, key=lambda share: (share.best, *prefers(share)))
    sown = cluster_bounds.seeds(by_preference, distribution)[:total]
    more, raised = _raise(total, shares, {share.rank: 1 for share in sown})
    for level in levels:
        more, raised = _raise(more, raised, {share.rank: min(share.least, share.at_least(level)) for share in raised})
    return tuple(share.keeps for share in raised)


def grow(more: int, shares: Sequence[ClusterShare], strategy: StrategyName) -> tuple[int, ...]:
    """Add replicas to shares by a strategy, one tier after the other, as far as each has room; return all shares."""
    return _by_tier(_STRATEGIES[strategy].grow, more, shares)


def shrink(kept: int, shares: Sequence[ClusterShare], strategy: StrategyName) -> tuple[int, ...]:
    """Divide the replicas that stay over shares by a strategy: the reverse of `grow`, the last tier first."""
    return _by_tier(_STRATEGIES[strategy].shrink, kept, shares)


def returns(distribution: Distribution) -> str:
    """Say which cluster gives back first."""
    tiers = "the last tier gives back first, and in it " if distribution.tiers else ""
    return f"{distribution.strategy}: {tiers}{within(distribution.strategy)}"


def within(strategy: StrategyName) -> str:
    """Say which cluster of one tier, or of one subset, gives back first."""
    return _STRATEGIES[strategy].RETURNS


def _raise(
    more: int, shares: Sequence[ClusterShare], floors: Mapping[int, int]
) -> tuple[int, tuple[ClusterShare, ...]]:
    """Raise each share to its floor, by rank, in the policy's order, as far as the replicas and its room go."""
    if not any(floors.values()):
        return more, tuple(shares)
    raised: dict[int, ClusterShare] = {}
    for share in sorted(shares, key=lambda share: share.rank):
        floor = min(floors.get(share.rank, 0), share.most)
        given = min(more, max(0, floor - share.keeps))
        raised[share.rank] = share._replace(keeps=share.keeps + given) if given else share
        more -= given
    return more, tuple(raised[share.rank] for share in shares)


def _by_tier(divide: Divide, more: int, shares: Sequence[ClusterShare]) -> tuple[int, ...]:
    """Divide within one tier after the other, each as far as it has room; return all shares."""
    tiers = sorted({share.tier for share in shares})
    if tiers == tiers[:1]:
        return divide(more, shares)
    counts: dict[int, int] = {}
    for tier in tiers:
        here = [share for share in shares if share.tier == tier]
        given = divide(more, here)
        counts |= {share.rank: has for share, has in zip(here, given, strict=True)}
        more -= sum(given) - sum(share.keeps for share in here)
    return tuple(counts[share.rank] for share in shares)


def _shares_with_weight(shares: Sequence[ClusterShare]) -> list[ClusterShare]:
    return [share for share in shares if share.weight]


def _fill(
    counts: Sequence[int], taking: Sequence[ClusterShare], shares: Sequence[ClusterShare]
) -> tuple[ClusterShare, ...]:
    """Set the counts of the shares that take part to those of the strategy."""
    given = {share.rank: count for share, count in zip(taking, counts, strict=True)}
    return tuple(
        share if given.get(share.rank, share.keeps) == share.keeps else share._replace(keeps=given[share.rank])
        for share in shares
    )


def _because(
    chosen: Sequence[ClusterShare],
    counts: Mapping[ClusterName, int],
    sown: Sequence[ClusterShare],
    distribution: Distribution,
    beyond: Sequence[ClusterShare],
) -> Mapping[ClusterName, str]:
    """Return the reason of each share that has grown."""
    strategy, reasons = _STRATEGIES[distribution.strategy], {}
    growing = [share for share in chosen if counts.get(share.cluster, 0) > share.keeps]
    taking = _shares_with_weight([*chosen, *beyond])
    for tier in sorted({share.tier for share in growing}):
        here, others = ([share for share in of if share.tier == tier] for of in (growing, taking))
        for share, why in zip(here, strategy.because(here, others), strict=True):
            count = counts[share.cluster]
            if count <= share.least:
                reason = f"its minimum of {share.least}"
            else:
                reason = "one for each that there has to be" if count == 1 and share in sown else why
            reasons[share.cluster] = f"{distribution.strategy}: {reason}"
    return reasons
