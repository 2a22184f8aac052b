"""The clusters that take part where a policy bounds the number of clusters, or of values of labels.

Clusters with replicas of the workload always take part, also where the bounds have been lowered since. Of the choices
that reach the lower bounds and hold all replicas, the first is made in the order in which clusters are preferred: a
cluster is passed over only where no such choice has it beside those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nlargest
from itertools import chain, product
from operator import contains, itemgetter
from typing import NamedTuple

from reconciler.core.decide.distribution.strategy import ClusterShare
from reconciler.model.policy import Distribution

Precedence = Callable[[ClusterShare], tuple[int, ...]]
Groups = tuple[str, ...]
"""The values of a cluster of the labels that its policy spreads over."""

_WIDTH = 4
"""The choices of label values that are carried on while more values are added: where labels cross one another, the
best choice of few values need not be a part of the best choice of more."""


class Reached(NamedTuple):
    """The totals over some clusters."""

    clusters: int
    # The number of values of each label that the policy spreads over.
    groups: tuple[int, ...]

    def lacking(self, distribution: Distribution, total: int) -> tuple[int, ...]:
        """Count the clusters, then the values of each label, that lower bounds lack within reach of that many units."""
        least = distribution.min_clusters, *(bound.min_groups for bound in distribution.spread_constraints)
        return tuple(max(0, min(n, total) - has) for n, has in zip(least, (self.clusters, *self.groups), strict=True))

    def lowered(self, distribution: Distribution) -> Distribution:
        """Lower the lower bounds to what is reached."""
        constraints = (
            replace(bound, min_groups=min(bound.min_groups, has))
            for bound, has in zip(distribution.spread_constraints, self.groups, strict=True)
        )
        least = min(distribution.min_clusters, self.clusters)
        return replace(distribution, min_clusters=least, spread_constraints=tuple(constraints))


def choose(
    more: int, shares: Sequence[ClusterShare], distribution: Distribution, precedence: Precedence
) -> tuple[ClusterShare, ...]:
    """Choose the clusters that a number of new replicas are divided over, in the order of preference.

    Without an upper bound these are all that have some or take some.
    """
    fit = sorted((share for share in shares if share.most), key=precedence)
    if not distribution.is_capped:
        return tuple(fit)
    choice = _Choice(more=more, fit=fit, distribution=distribution)
    return tuple(sorted(choice.best(), key=precedence))


def reached(clusters: Collection[Groups], distribution: Distribution) -> Reached:
    """Count clusters, and values of each label; one that is no longer in the order has none."""
    groups = (
        len({values[index] for values in clusters if values}) for index in range(len(distribution.spread_constraints))
    )
    return Reached(len(clusters), tuple(groups))


def seeds(shares: Sequence[ClusterShare], distribution: Distribution) -> tuple[ClusterShare, ...]:
    """List the shares that get one replica before all else, so that the lower bounds are reached.

    `shares` are in order of preference; those that keep replicas count already. The one that brings most bounds nearer
    is first.
    """
    reaching, new, left = _Reaching(distribution), list[ClusterShare](), dict[Groups, list[tuple[int, ClusterShare]]]()
    for place, share in enumerate(shares):
        if share.keeps:
            reaching.add(share.groups)
        else:
            left.setdefault(share.groups, []).append((-place, share))
    for alike in left.values():
        alike.reverse()
    while left and reaching.lacks:
        # Shares with the same values help equally: only the first of them is compared.
        best = max(left, key=lambda groups: (reaching.gain(groups), left[groups][-1][0]))
        if not reaching.gain(best):
            break
        reaching.add(best)
        new.append(left[best].pop()[1])
        left = {groups: alike for groups, alike in left.items() if alike}
    return tuple(new)


class _Reaching:
    """The clusters, and values of labels, that count for the bounds of a policy so far."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self._clusters = 0
        self._values: tuple[set[str], ...] = tuple(set() for _ in distribution.spread_constraints)

    def add(self, groups: Groups) -> None:
        """Count a cluster with these values; one that is no longer in the order has none."""
        self._clusters += 1
        for values, value in zip(self._values, groups, strict=False):
            values.add(value)

    def reached(self, more: int = 0) -> Reached:
        """Return the counts with a number of further clusters whose values are known or not asked for."""
        return Reached(self._clusters + more, tuple(map(len, self._values)))

    @property
    def lacks(self) -> bool:
        """Whether a lower bound is not reached."""
        return self._clusters < self._distribution.min_clusters or any(self.owed)

    @property
    def owed(self) -> tuple[int, ...]:
        """How many values of each label are missing."""
        spread = self._distribution.spread_constraints
        return tuple(max(0, bound.min_groups - len(has)) for has, bound in zip(self._values, spread, strict=True))

    def gain(self, groups: Groups) -> int:
        """Count the lower bounds that a cluster with these values would bring nearer."""
        new = zip(self.owed, self._values, groups, strict=False)
        nearer = sum(owed > 0 and value not in values for owed, values, value in new)
        return nearer + (self._clusters < self._distribution.min_clusters)

    def may_add(self, groups: Groups) -> bool:
        """Return whether a cluster with these values is within the upper bounds, and leaves places for missing ones."""
        return all(self._within_labels(groups)) and self.has_place(groups)

    def has_place(self, groups: Groups) -> bool:
        """Return whether a cluster with these values is one of as many as there may be, less those kept for others."""
        most = self._distribution.max_clusters
        if most is None:
            return True
        known = zip(self.owed, self._values, groups, strict=False)
        return most - self._clusters > max((0, *(owed for owed, values, value in known if value in values)))

    def _within_labels(self, groups: Groups) -> Iterator[bool]:
        bounds = self._distribution.spread_constraints
        for bound, values, value in zip(bounds, self._values, groups, strict=False):
            yield value in values or bound.max_groups is None or len(values) < bound.max_groups


_Worth = tuple[int, ...]
"""Groups and clusters up to the lower bounds, then room up to all replicas: the greater, the better."""
_Values = tuple[frozenset[str], ...]
"""For each label with an upper bound the values that may be used."""


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """A choice of clusters for a number of new replicas."""

    more: int
    # The clusters that have replicas or take some, as they are preferred.
    fit: Sequence[ClusterShare]
    distribution: Distribution

    @cached_property
    def begun(self) -> tuple[ClusterShare, ...]:
        """The clusters that take part in any case."""
        return tuple(share for share in self.fit if share.keeps)

    def worth(self, shares: Collection[ClusterShare]) -> _Worth:
        """Rate a choice of clusters."""
        has = reached([share.groups for share in shares], self.distribution)
        return self._rated(has, sum(share.free for share in shares))

    def _rated(self, has: Reached, room: int) -> _Worth:
        bounds = zip(has.groups, self.distribution.spread_constraints, strict=True)
        groups = (min(number, bound.min_groups) for number, bound in bounds)
        return *groups, min(has.clusters, self.distribution.min_clusters), min(self.more, room)

    def best(self) -> Collection[ClusterShare]:
        """Admit shares that are worth as much as any choice: each in its turn, unless others have to go first."""
        core, rest = [*self.begun], [share for share in self.fit if not share.keeps]
        admitted = self.admit(core, rest)
        if self.worth(admitted) == self.worth(self.fit):
            return admitted
        worth, passed_over = self.most_worth(core, rest), dict[Groups, int]()
        while rest and self.worth(admitted) < worth:
            share, *rest = rest
            # What is no roomier than one with the same values that was passed over helps no more than that.
            hopeless = share.free <= passed_over.get(share.groups, -1)
            if not hopeless and self.suffices(core, share, rest, worth):
                core.append(share)
            else:
                passed_over[share.groups] = max(share.free, passed_over.get(share.groups, -1))
            admitted = self.admit(core, rest)
        return admitted

    def admit(self, core: Iterable[ClusterShare], others: Iterable[ClusterShare]) -> Collection[ClusterShare]:
        """Admit others beside the core, within the bounds and while places are left for what lower bounds lack."""
        taken, reaching = dict.fromkeys(core), _Reaching(self.distribution)
        for share in taken:
            reaching.add(share.groups)
        for share in others:
            if share not in taken and reaching.may_add(share.groups):
                taken[share] = None
                reaching.add(share.groups)
        return taken.keys()

    def suffices(
        self, core: Sequence[ClusterShare], share: ClusterShare, rest: Sequence[ClusterShare], worth: _Worth
    ) -> bool:
        """Return whether a choice with a share beside the core, and others of the rest, is worth so much."""
        reaching = _Reaching(self.distribution)
        for each in core:
            reaching.add(each.groups)
        return reaching.may_add(share.groups) and self.most_worth([*core, share], rest, worth) >= worth

    def most_worth(
        self, core: Sequence[ClusterShare], pool: Sequence[ClusterShare], enough: _Worth | None = None
    ) -> _Worth:
        """Return what the best choice of shares of the pool beside those of the core is worth, up to what is `enough`.

        Values of labels with an upper bound are added one after the other, what is worth most first.
        """
        rooms: dict[Groups, list[int]] = {}
        for share in sorted(pool, key=lambda share: -share.free):
            rooms.setdefault(share.groups, []).append(share.free)
        cells = {groups: tuple(groups[index] for index in self._bounded) for groups in rooms}
        # No values within the upper bounds are worth more than all of them.
        most = self._worth_of(core, rooms)
        if enough is not None and most < enough:
            return most
        enough = most if enough is None else enough
        used = tuple(frozenset(share.groups[index] for share in core if share.groups) for index in self._bounded)
        states, tried, best = [used], {used}, self._worth_of(core, _within(used, cells, rooms))
        while states and best < enough:
            wider: list[tuple[_Worth, _Values]] = []
            for values, cell in product(states, dict.fromkeys(cells.values())):
                opened = tuple(has | {value} for has, value in zip(values, cell, strict=True))
                if opened not in tried and self._may_open(values, opened):
                    tried.add(opened)
                    worth = self._worth_of(core, _within(opened, cells, rooms))
                    if worth >= enough:
                        return worth
                    wider.append((worth, opened))
            wider.sort(key=itemgetter(0), reverse=True)
            states = [values for _, values in wider[:_WIDTH]]
            best = max((best, *(worth for worth, _ in wider[:1])))
        return best

    def _worth_of(self, core: Sequence[ClusterShare], rooms: Mapping[Groups, Sequence[int]]) -> _Worth:
        """Return what the best of these shares are worth beside the core, as far as its first share tells the others.

        Where clusters are bounded and labels cross, the share that helps most may leave no place for what still lacks:
        then each is tried as the first.
        """
        crossed = self.distribution.max_clusters is not None and self._lacking_labels > 1
        leads = rooms if crossed else ()
        return max((self._worth_after(core, rooms, lead) for lead in leads), default=self._worth_after(core, rooms))

    def _worth_after(
        self, core: Sequence[ClusterShare], rooms: Mapping[Groups, Sequence[int]], lead: Groups | None = None
    ) -> _Worth:
        """Return what the roomiest of these shares are worth beside the core, those first that lower bounds lack."""
        reaching = _Reaching(self.distribution)
        for share in core:
            reaching.add(share.groups)
        room, most = sum(share.free for share in core), self.distribution.max_clusters
        while reaching.lacks:
            able = [lead] if lead else [groups for groups in rooms if reaching.has_place(groups)]
            best = max(able, key=lambda groups: (reaching.gain(groups), rooms[groups][0]), default=None)
            if best is None or not reaching.gain(best):
                break
            lead = None
            reaching.add(best)
            room += rooms[best][0]
            rooms = {groups: free[groups == best :] for groups, free in rooms.items() if len(free) > (groups == best)}
        has = reaching.reached().clusters
        # Places are kept for values that are missing, also where no share has them.
        places = sum(map(len, rooms.values())) if most is None else max(0, most - has - max((0, *reaching.owed)))
        rest = nlargest(places, chain.from_iterable(rooms.values()))
        return self._rated(reaching.reached(len(rest)), room + sum(rest))

    @cached_property
    def _lacking_labels(self) -> int:
        return sum(bound.min_groups > 1 for bound in self.distribution.spread_constraints)

    @cached_property
    def _bounded(self) -> tuple[int, ...]:
        """The labels with an upper bound, by their index."""
        constraints = self.distribution.spread_constraints
        return tuple(index for index, bound in enumerate(constraints) if bound.max_groups is not None)

    def _may_open(self, values: _Values, opened: _Values) -> bool:
        """Return whether values may be added, within the upper bounds; what is used already may be more."""
        most = (self.distribution.spread_constraints[index].max_groups or 0 for index in self._bounded)
        return all(len(new) <= max(bound, len(has)) for bound, has, new in zip(most, values, opened, strict=True))


def _within(
    values: _Values, cells: Mapping[Groups, tuple[str, ...]], rooms: Mapping[Groups, Sequence[int]]
) -> Mapping[Groups, Sequence[int]]:
    """Return the shares with these values of the labels that have an upper bound."""
    return {groups: rooms[groups] for groups, cell in cells.items() if all(map(contains, values, cell))}
