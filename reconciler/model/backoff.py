"""The wait before a call is tried again: one rule for passes, watches, webhooks and the client."""

from __future__ import annotations

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
