"""The outages of a receiver and of its targets: when each is tried again, and how its begin and its end are told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CourierReport:
    """A receiver, or one of its targets, has begun to fail, or works again."""

    receiver: str
    """Its name, with the target where it has several."""
    why: str
    """Empty once it works."""
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outage:
    """Failures in a row."""

    why: str
    tries: int
    not_before: float
    """When it is tried again, by the monotonic clock."""


class Outages:
    """Keeps and reports the outages of one receiver.

    They are kept by target, and those of the receiver as a whole under None: its marks cannot be moved, or a bug.
    `backoff` is the wait in seconds after so many failures in a row.
    """

    def __init__(
        self, receiver: str, *, backoff: Callable[[int], float], report: Callable[[CourierReport], None]
    ) -> None:
        self._receiver = receiver
        self._backoff = backoff
        self._report = report
        self._outages: dict[str | None, _Outage] = {}

    def note_failure(self, target: str | None, why: str) -> None:
        """Wait before the next try; the first failure of a row is reported."""
        before = self._outages.get(target)
        tries = 1 if before is None else before.tries + 1
        self._outages[target] = _Outage(why=why, tries=tries, not_before=time.monotonic() + self._backoff(tries))
        if before is None:
            self._report(CourierReport(receiver=self._title(target), why=why))

    def note_success(self, target: str | None) -> None:
        """End the outage, if there is one."""
        outage = self._outages.pop(target, None)
        if outage is not None:
            self._report(CourierReport(receiver=self._title(target), why="", tries=outage.tries))

    def why(self, target: str | None) -> str:
        """Return why the last try failed; empty where none has."""
        return self._outages[target].why if target in self._outages else ""

    def not_before(self, target: str | None) -> float:
        """Return when a target may be tried, by the monotonic clock; 0 for one that works."""
        return self._outages[target].not_before if target in self._outages else 0.0

    def _title(self, target: str | None) -> str:
        return f"{self._receiver} ({target})" if target else self._receiver
