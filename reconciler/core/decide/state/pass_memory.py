"""What a pass keeps for the next one: the clusters that had no room, by kind of burst.

Nothing else lives from pass to pass in `core.decide`. Whoever decides one pass after the other owns one (`unchanged`)
and hands it to `decide`; without one a decision is made from its input alone, and is the same. Within a pass,
`CandidateFinder` shares answers among equal bursts; here are only those answers that cost as much again in a pass in
which one cluster has changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from operator import is_

from reconciler.model.ids import ClusterName
from reconciler.model.plan import Refusal
from reconciler.model.policy import Desired

_MOST_KINDS = 1000
"""Kinds of bursts whose refusals are kept of a cluster."""


class PassMemory:
    """Refusals of clusters without room, each kept while all that it was counted from are the very same objects.

    For one decision at a time, and for passes over one fleet: another one begins it again.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._fleet: Desired | None = None
        self._full: dict[ClusterName, tuple[tuple[object, ...], dict[Hashable, Refusal]]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._next = count()

    def begin(self, fleet: Desired) -> None:
        """Begin a pass over a fleet, without its requests. What was kept of another fleet is dropped."""
        if fleet is not self._fleet:
            self._fleet, self._full, self._numbers = fleet, {}, {}

    def number(self, kind: Hashable) -> int:
        """Return a number for a part of what decides how clusters answer a burst, which is quicker to compare."""
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = next(self._next)
        return number

    def refusal(self, kind: Hashable, cluster: ClusterName, basis: tuple[object, ...]) -> Refusal | None:
        """Return why a cluster had no room for bursts of a kind, if its room is counted from the same `basis` now."""
        refusals = self._of(cluster, basis)
        return None if refusals is None else refusals.get(kind)

    def keep(self, kind: Hashable, refusal: Refusal, basis: tuple[object, ...]) -> None:
        """Keep that a cluster, whose room is counted from `basis`, has no room for bursts of a kind."""
        refusals = self._of(refusal.cluster, basis)
        if refusals is None or len(refusals) >= _MOST_KINDS:
            refusals = {}
            self._full[refusal.cluster] = basis, refusals
        refusals[kind] = refusal

    def _of(self, cluster: ClusterName, basis: tuple[object, ...]) -> dict[Hashable, Refusal] | None:
        kept = self._full.get(cluster)
        return kept[1] if kept is not None and all(map(is_, kept[0], basis)) else None  # the key
