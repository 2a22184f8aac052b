"""How long to wait before trying again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Bounded exponential back-off with full jitter: a random part of a span that doubles up to `longest`.

    Full jitter spreads daemons that lost the same server at the same moment better than a jittered half does. `random`
    returns numbers from 0 up to 1.
    """

    first: timedelta
    longest: timedelta
    random: Callable[[], float]
    tries: int = 0

    def wait(self) -> timedelta:
        """Return how long to wait now, and count the try."""
        # 2**30 times anything is beyond `longest`; a month of tries must not overflow a timedelta.
        span = min(self.longest, self.first * (1 << min(self.tries, 30)))
        self.tries += 1
        return span * self.random()

    def reset(self) -> None:
        """Begin again from `first`, since something worked."""
        self.tries = 0
