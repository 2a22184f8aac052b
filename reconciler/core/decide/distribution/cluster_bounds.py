"""Which clusters take part where a policy bounds how many may, and over how many values of a label.

Clusters that have some of the workload stay among them, also where the bounds have been lowered since. The others come
as their strategy prefers them; and while those that are chosen do not hold all of it, the roomiest of the others is
put ahead, for as long as that helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reconciler.core.decide.distribution.target import ClusterShare
from reconciler.model.policy import Distribution

Precedence = Callable[[ClusterShare], tuple[int, ...]]


def choose(
    more: int, targets: Sequence[ClusterShare], distribution: Distribution, precedence: Precedence
) -> tuple[ClusterShare, ...]:
    """Choose the clusters that so many replicas more are shared out over, as the strategy prefers them.

    Without an upper bound these are all that have some or take some.
    """
    fit = sorted((target for target in targets if target.most), key=precedence)
    begun = [target for target in fit if target.keeps]
    ahead: list[ClusterShare] = []
    chosen = _admitted(_unique(begun, fit), distribution)
    while _worth(chosen, more, distribution) < _worth(fit, more, distribution):
        ways = [
            (target, _admitted(_unique(begun, [target, *ahead], fit), distribution))
            for target in _roomiest(set(fit).difference(chosen))
        ]
        best = max(ways, key=lambda way: _worth(way[1], more, distribution), default=None)
        if best is not None and _worth(best[1], more, distribution) > _worth(chosen, more, distribution):
            ahead.insert(0, best[0])
            chosen = best[1]
            continue
        # None is worth more than the last one that would make room for it: that stays, and the one before it may go.
        loose = [target for target in chosen if not target.keeps and target not in ahead]
        if not loose:
            break
        ahead.insert(0, loose[-1])
    return tuple(sorted(chosen, key=precedence))


def reached(targets: Iterable[ClusterShare]) -> tuple[int, int]:
    """Count clusters, and values of the label."""
    there = tuple(targets)
    return len(there), len({target.group for target in there})


def seeds(targets: Sequence[ClusterShare], distribution: Distribution) -> tuple[ClusterShare, ...]:
    """List the targets that get one replica before all else, so that there are as many as there have to be.

    `targets` are in order of preference; those that keep some are there already.
    """
    found = [target for target in targets if target.keeps]
    new: list[ClusterShare] = []
    for by_group in (True, False):
        for target in targets:
            clusters, groups = reached(found)
            fresh = target not in found and (not by_group or all(target.group != one.group for one in found))
            lacks = groups < distribution.min_groups if by_group else clusters < distribution.min_clusters
            if fresh and lacks:
                found.append(target)
                new.append(target)
    return tuple(new)


def _roomiest(targets: Iterable[ClusterShare]) -> list[ClusterShare]:
    """Take the roomiest of each group, the roomiest first: no other one of its group could help more."""
    found: dict[str, ClusterShare] = {}
    for target in sorted(targets, key=lambda target: (-target.free, target.rank)):
        found.setdefault(target.group, target)
    return list(found.values())


def _unique(*lists: Sequence[ClusterShare]) -> list[ClusterShare]:
    return list(dict.fromkeys(target for targets in lists for target in targets))


def _admitted(targets: Sequence[ClusterShare], distribution: Distribution) -> list[ClusterShare]:
    """Take one after the other, as far as the bounds allow and as long as enough places are left for new groups."""
    taken: list[ClusterShare] = []
    groups: set[str] = set()
    most = len(targets) + distribution.min_groups if distribution.max_clusters is None else distribution.max_clusters
    for target in targets:
        new = target.group not in groups
        places = most - len(taken)
        owed = max(0, distribution.min_groups - len(groups))
        full = distribution.max_groups is not None and len(groups) >= distribution.max_groups
        if target.keeps or (places > 0 and not (new and full) and (new or places > owed)):
            taken.append(target)
            groups.add(target.group)
    return taken


def _worth(targets: Sequence[ClusterShare], more: int, distribution: Distribution) -> tuple[int, int, int]:
    """Say how well a choice does: enough groups, enough clusters, and room for all."""
    clusters, groups = reached(targets)
    return (
        min(groups, distribution.min_groups),
        min(clusters, distribution.min_clusters),
        min(more, sum(target.free for target in targets)),
    )
