"""Rate limits: a token bucket for each caller."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

_RATE = re.compile(r"([0-9]{1,6})/([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_BURST = 4
"""The calls of so many seconds may come at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate of calls that may go on for ever, and a number that may come at once after a silence."""

    per_second: float
    burst: int


def parse_rate(text: str) -> Rate:
    """Read ``50/s``, ``600/m`` or ``1000/h``. Raises ValueError for anything else.

    Four seconds' worth may come at once, and no less than the number itself: 200 of ``50/s``, 600 of ``600/m``.
    """
    match = _RATE.fullmatch(text)
    if match is None or not int(match[1]):
        raise ValueError(f"{text!r} is not a number of calls a time")
    count, seconds = int(match[1]), _SECONDS[match[2]]
    return Rate(per_second=count / seconds, burst=max(count, _BURST * count // seconds))


class Buckets:
    """The bucket of each caller. Not safe to use from several threads.

    Beyond `most` callers the one whose last call is oldest is forgotten, and would begin with a full bucket.
    """

    def __init__(self, rate: Rate, *, most: int = 10_000) -> None:
        self._rate = rate
        self._most = most
        self._levels: dict[Hashable, tuple[float, float]] = {}

    def take(self, caller: Hashable, now: float) -> float:
        """Take one call out of a caller's bucket, and return the seconds to wait first; 0 lets the call in.

        `now` is in seconds of a clock that never goes back. A call that is not let in takes nothing.
        """
        level, at = self._levels.pop(caller, (float(self._rate.burst), now))
        level = min(float(self._rate.burst), level + (now - at) * self._rate.per_second)
        enters = level >= 1
        self._levels[caller] = (level - 1 if enters else level, now)
        if len(self._levels) > self._most:
            del self._levels[next(iter(self._levels))]
        return 0.0 if enters else (1 - level) / self._rate.per_second
