"""The clusters that take part where a policy bounds the number of clusters, or of values of a label.

Clusters with replicas of the workload always take part, also where the bounds have been lowered since. The others are
chosen by the precedence of the strategy; while the chosen ones do not hold all replicas, another one is put ahead, for
as long as that helps: of the roomiest of each group the one that helps most, then the one that the strategy prefers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reconciler.core.decide.distribution.strategy import ClusterShare
from reconciler.model.policy import Distribution

Precedence = Callable[[ClusterShare], tuple[int, ...]]


def choose(
    more: int, shares: Sequence[ClusterShare], distribution: Distribution, precedence: Precedence
) -> tuple[ClusterShare, ...]:
    """Choose the clusters that so many replicas more are shared out over, as the strategy prefers them.

    Without an upper bound these are all that have some or take some.
    """
    fit = sorted((share for share in shares if share.most), key=precedence)
    if not distribution.is_bounded:
        return tuple(fit)
    begun = [share for share in fit if share.keeps]
    ahead: list[ClusterShare] = []
    chosen = _admit(_unique(begun, fit), distribution)
    while _worth(chosen, more, distribution) < _worth(fit, more, distribution):
        options = [
            (share, _admit(_unique(begun, [share, *ahead], fit), distribution))
            for share in _roomiest(set(fit).difference(chosen))
        ]
        # Of those that help as much as any, the one that the strategy prefers.
        options.sort(key=lambda option: precedence(option[0]))
        best = max(options, key=lambda option: _worth(option[1], more, distribution), default=None)
        if best is not None and _worth(best[1], more, distribution) > _worth(chosen, more, distribution):
            ahead.insert(0, best[0])
            chosen = best[1]
            continue
        # No option helps as long as the last share takes its place: that one stays, and the one before it may go.
        loose = [share for share in chosen if not share.keeps and share not in ahead]
        if not loose:
            break
        ahead.insert(0, loose[-1])
    return tuple(sorted(chosen, key=precedence))


def reached(shares: Iterable[ClusterShare]) -> tuple[int, int]:
    """Count clusters, and values of the label."""
    listed = tuple(shares)
    return len(listed), len({share.group for share in listed})


def seeds(shares: Sequence[ClusterShare], distribution: Distribution) -> tuple[ClusterShare, ...]:
    """List the shares that get one replica before all else, so that the lower bounds are reached.

    `shares` are in order of preference; those that keep replicas count already.
    """
    if distribution.min_clusters == distribution.min_groups == 0:
        return ()
    reaching = [share for share in shares if share.keeps]
    new: list[ClusterShare] = []
    for by_group in (True, False):
        for share in shares:
            clusters, groups = reached(reaching)
            fresh = share not in reaching and (not by_group or all(share.group != other.group for other in reaching))
            lacks = groups < distribution.min_groups if by_group else clusters < distribution.min_clusters
            if fresh and lacks:
                reaching.append(share)
                new.append(share)
    return tuple(new)


def _roomiest(shares: Iterable[ClusterShare]) -> list[ClusterShare]:
    """List the roomiest share of each group, the roomiest first: no other of its group could help more."""
    first: dict[str, ClusterShare] = {}
    for share in sorted(shares, key=lambda share: (-share.free, share.rank)):
        first.setdefault(share.group, share)
    return list(first.values())


def _unique(*lists: Sequence[ClusterShare]) -> list[ClusterShare]:
    return list(dict.fromkeys(share for shares in lists for share in shares))


def _admit(shares: Sequence[ClusterShare], distribution: Distribution) -> list[ClusterShare]:
    """Admit one share after the other, within the bounds and while enough places are left for new groups."""
    taken: list[ClusterShare] = []
    groups: set[str] = set()
    most = len(shares) + distribution.min_groups if distribution.max_clusters is None else distribution.max_clusters
    for share in shares:
        new = share.group not in groups
        places = most - len(taken)
        owed = max(0, distribution.min_groups - len(groups))
        full = distribution.max_groups is not None and len(groups) >= distribution.max_groups
        if share.keeps or (places > 0 and not (new and full) and (new or places > owed)):
            taken.append(share)
            groups.add(share.group)
    return taken


def _worth(shares: Sequence[ClusterShare], more: int, distribution: Distribution) -> tuple[int, int, int]:
    """Rate a choice of clusters: enough groups, then enough clusters, then room for all replicas."""
    clusters, groups = reached(shares)
    return (
        min(groups, distribution.min_groups),
        min(clusters, distribution.min_clusters),
        min(more, sum(share.free for share in shares)),
    )
