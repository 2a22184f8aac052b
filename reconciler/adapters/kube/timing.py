"""Times of watches: time-outs, back-offs, and how long changes are gathered."""

from __future__ import annotations

import random
from dataclasses import dataclass

from reconciler.model.backoff import backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """Times in seconds, and the size of a list's pages."""

    connect: float = 10
    answer: float = 60
    silence: float = 90
    """A watch without an event for so long is dead, or mute: API servers send a bookmark each minute. Not much longer,
    since an observation may be two minutes old unless the Fleet says otherwise."""
    watch: float = 290
    steady: float = 3  # a watch that ends sooner counts as a failure
    beat: float = 5  # between two questions for a sign of life
    first_backoff: float = 0.5
    longest_backoff: float = 60
    absent: float = 60  # before a resource that was not served is tried again
    demand: float = 0.2  # for which a change of demand waits for others
    capacity: float = 3  # and one of capacity
    page: int = 200

    def backoff(self, failures: int) -> float:
        """Draw the wait in seconds after so many failures in a row."""
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        return backoff(failures, first=self.first_backoff, longest=self.longest_backoff, luck=luck)
