"""How long everything may take, and how often it is tried."""

from __future__ import annotations

import random
from dataclasses import dataclass

from reconciler.model.backoff import backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """Times in seconds.

    `silence` is longer than the minute between two bookmarks of an API server, so that a watch which says nothing for
    that long is dead, or has nothing to say at all; it is not much longer, since an observation may be two minutes old
    unless the Fleet says otherwise. `steady` is how long a watch has to last not to count as one that ends at once.
    `beat` is how often a cluster is asked for a sign of life between events. `absent` is how long a resource that is
    not served is left alone. `demand` and `capacity` are how long a change of either kind waits for others before it is
    told.
    """

    connect: float = 10
    answer: float = 60
    silence: float = 90
    watch: float = 290
    steady: float = 3
    beat: float = 5
    first_backoff: float = 0.5
    longest_backoff: float = 60
    absent: float = 60
    demand: float = 0.2
    capacity: float = 3
    page: int = 200

    def backoff(self, failures: int) -> float:
        """Draw the wait in seconds after so many failures in a row."""
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        return backoff(failures, first=self.first_backoff, longest=self.longest_backoff, luck=luck)
