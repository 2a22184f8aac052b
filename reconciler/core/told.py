"""What a request that waits has been told, so that all that are like it can be told the same.

Thousands of requests that wait are of a few kinds. Of each kind one is tried on each cluster; for the others what came
of it holds until something has changed that it could depend on. Nothing of this outlives its pass.
"""

from __future__ import annotations

from collections.abc import Hashable

from reconciler.model.ids import ClusterName
from reconciler.model.plan import Reason, Refusal, Suppressed

_OF_ALL = frozenset(
    {
        Reason.UNKNOWN_CLUSTER,
        Reason.NOT_IN_WORKSPACE,
        Reason.CORDONED,
        Reason.UNSEEN,
        Reason.UNHEALTHY,
        Reason.NO_CAPACITY,
        Reason.GPR_LIMIT,
    }
)
"""Reasons that name nothing of the request itself."""


class RefusalCache:
    """What this pass has told requests of each kind. What is told `at` one state of things does not hold at another."""

    def __init__(self) -> None:
        self._refusals: dict[tuple[Hashable, ClusterName], tuple[Hashable, Refusal]] = {}
        self._suppressed: dict[Hashable, tuple[Hashable, Suppressed]] = {}

    def refusal(self, kind: Hashable, cluster: ClusterName, at: Hashable) -> Refusal | None:
        """Return why a cluster refuses requests of a kind, where that is known."""
        known = self._refusals.get((kind, cluster))
        return known[1] if known is not None and known[0] == at else None

    def refuse(self, kind: Hashable, refusal: Refusal, at: Hashable) -> None:
        """Note why a cluster has refused a request of a kind, where that is so for all of them."""
        if refusal.reason in _OF_ALL:
            self._refusals[kind, refusal.cluster] = at, refusal

    def suppressed(self, kind: Hashable, at: Hashable) -> Suppressed | None:
        """Return what was noted of a request of a kind that has found no room anywhere."""
        known = self._suppressed.get(kind)
        return known[1] if known is not None and known[0] == at else None

    def suppress(self, kind: Hashable, suppressed: Suppressed, at: Hashable) -> None:
        """Note that a request of a kind finds no room anywhere, if all of them are refused as it is."""
        if all(refusal.reason in _OF_ALL for refusal in suppressed.refusals):
            self._suppressed[kind] = at, suppressed
