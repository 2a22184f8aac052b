"""What has been answered of the room in a cluster, so that alike replicas are counted once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from reconciler.core.kept import IdentityCache

_MOST = 1000
"""Answers that are kept for one room; it would take that many different shapes."""


@dataclass(frozen=True, slots=True)
class FitCache:
    """What has been answered of one room: how often shapes fit, each up to a limit, and why they do not."""

    counts: dict[tuple[Hashable, int], int] = field(default_factory=dict)
    shortfalls: dict[Hashable, str] = field(default_factory=dict)

    def bound(self) -> None:
        """Forget all when there are too many to keep."""
        if len(self.counts) >= _MOST:
            self.counts.clear()
        if len(self.shortfalls) >= _MOST:
            self.shortfalls.clear()


UNTOUCHED = IdentityCache[FitCache](lambda _: FitCache())
"""What has been answered of the clusters as they were seen, before anything was taken there."""
