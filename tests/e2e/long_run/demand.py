"""The demand: workloads whose replicas at home rise beyond what fits there and fall again, by a seeded schedule."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.long_run.journal import Journal
from tests.e2e.long_run.scale import Scale

PERIOD = 120.0
"""Seconds, at least, from one rise of a workload to its next."""
SHORTEST = 20.0
"""Seconds, at least, that a rise lasts."""
MOST = 4
"""Replicas by which a workload rises at most; `stage.FIRST_CHOICE` says how many of them go to one cluster."""
_RETRY = 1.0
_KEPT = 3
"""Of so many workloads one keeps its last demand until the end, so that something stands then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """A rise of one workload."""

    at: float
    """Seconds after the beginning."""
    workload: str
    replicas: int
    """Replicas beyond those that fit at home."""
    lasts: float | None
    """Seconds until it falls; None for what stands until all demand goes."""


def workloads(scale: Scale) -> tuple[str, ...]:
    """Name the workloads that so many bursts take in the time given."""
    return tuple(f"load-{number:03}" for number in range(-(-scale.bursts // _rises_of_each(scale))))


def _rises_of_each(scale: Scale) -> int:
    return max(1, min(scale.bursts, int(scale.seconds // PERIOD)))


def schedule(scale: Scale) -> tuple[Rise, ...]:
    """Draw all rises, in the order of their times."""
    chance, of_each = random.Random(scale.seed), _rises_of_each(scale)
    period, rises = scale.seconds / of_each, list[Rise]()
    for number, workload in enumerate(workloads(scale)):
        for turn in range(of_each):
            if len(rises) == scale.bursts:
                break
            begins = turn * period + chance.uniform(0, 0.4) * period
            lasts = max(min(SHORTEST, 0.3 * period), chance.uniform(0.2, 0.4) * period)
            is_kept = turn == of_each - 1 and number % _KEPT == 0
            replicas = chance.randint(1, MOST)
            rises.append(Rise(at=begins, workload=workload, replicas=replicas, lasts=None if is_kept else lasts))
    return tuple(sorted(rises, key=lambda rise: (rise.at, rise.workload)))


class DemandPlayer:
    """Plays a schedule: one thread scales the objects at home, and the journal learns when.

    `scale_to` sets the replicas beyond those that fit at home, and raises OSError where home cannot be reached; it is
    tried again. A workload whose last burst is not over rises later.
    """

    def __init__(self, rises: tuple[Rise, ...], journal: Journal, scale_to: Callable[[str, int], None]) -> None:
        """Take what is to be played; nothing happens yet."""
        self._rises, self._journal, self._scale_to = rises, journal, scale_to
        self._due: list[tuple[float, Rise]] = []
        self._standing: set[str] = set()

    def play(self, seconds: float, stopped: threading.Event) -> None:
        """Play for so long; what has not risen by then does not rise any more. Falls that are due are waited for."""
        began, waiting, falls = time.monotonic(), list(self._rises), list[tuple[float, str]]()
        while not stopped.is_set():
            elapsed = time.monotonic() - began
            for fall in [fall for fall in falls if fall[0] <= elapsed]:
                falls.remove(fall)
                self._set(fall[1], 0, stopped)
            due = [rise for rise in waiting if rise.at <= elapsed < seconds]
            for rise in due:
                if self._journal.is_open(rise.workload):  # as by a rise that was due with it
                    continue
                waiting.remove(rise)
                self._set(rise.workload, rise.replicas, stopped)
                if rise.lasts is None:
                    self._standing.add(rise.workload)
                else:
                    falls.append((time.monotonic() - began + rise.lasts, rise.workload))
            if elapsed >= seconds and not falls:
                break
            stopped.wait(0.1)

    def end(self, stopped: threading.Event) -> None:
        """Take all demand away that still stands."""
        for workload in sorted(self._standing):
            self._set(workload, 0, stopped)
        self._standing.clear()

    def _set(self, workload: str, replicas: int, stopped: threading.Event) -> None:
        """Scale one workload, as often as it takes, and note when it was done."""
        asked = time.time()
        while not stopped.is_set():
            try:
                self._scale_to(workload, replicas)
            except OSError:
                stopped.wait(_RETRY)
                continue
            if replicas:
                self._journal.rises(workload, replicas, time.time())
            else:
                self._journal.falls(workload, asked, time.time())
            return
