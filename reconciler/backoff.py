"""The wait before a call is tried again: one rule for passes, watches, webhooks and the client."""

from __future__ import annotations

import random
from dataclasses import dataclass

_MOST_DOUBLINGS = 30
"""2**30 times anything is beyond every bound, and a month of failures must not overflow a float."""


def backoff(failures: int, *, first: float, longest: float, luck: float) -> float:
    """Return the seconds to wait after so many failures in a row (1 or more).

    The span doubles from `first` with each failure, up to `longest`. `luck`, a random number from 0 up to 1, picks a
    point in its upper half: callers that lost the same server at the same moment come back at different ones, and
    none of them at once.
    """
    span = min(longest, first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
    return span * (1 + luck) / 2


LONGEST_QUIET = 600.0
"""Seconds that a server which names no time is left alone at most."""


def quiet(failures: int, *, asked: float, luck: float) -> float:
    """Return the seconds to leave a server alone after it has rate-limited a number of calls in a row.

    Each call prolongs such a limit, so that it is never less than the server asked for, and grows as `backoff` does.
    """
    return backoff(failures, first=2 * asked, longest=max(2 * asked, LONGEST_QUIET), luck=luck)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The bounds of a back-off, in seconds: what the timings of different callers have in common."""

    first_backoff: float
    """After a first failure."""
    longest_backoff: float
    """However many follow."""

    def backoff(self, failures: int) -> float:
        """Draw the wait in seconds after so many failures in a row."""
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        return backoff(failures, first=self.first_backoff, longest=self.longest_backoff, luck=luck)
