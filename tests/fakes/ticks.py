"""A clock for `adapters.rounds.Rounds` that stands still until it is moved, and tells when a thread rests by it."""

from __future__ import annotations

from threading import Condition

_PATIENCE = 60
"""Seconds after which a thread that should have read the clock is given up."""


class Ticks:
    """Counts seconds, and how often they were read since they were set."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._seconds = 0.0
        self._reads = 0

    def __call__(self) -> float:
        with self._changed:
            self._reads += 1
            self._changed.notify_all()
            return self._seconds

    def move(self, seconds: float, changed: Condition) -> None:
        """Set the clock, and wake the thread that rests by `changed`."""
        with self._changed:
            self._seconds, self._reads = seconds, 0
        with changed:
            changed.notify_all()

    def until_rest(self, changed: Condition) -> None:
        """Wait until the thread has read what the clock was set to, and rests again."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._reads > 0, _PATIENCE)
        with changed:  # the thread holds it from reading the clock until it rests
            pass
