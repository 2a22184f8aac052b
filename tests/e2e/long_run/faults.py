"""The faults: what goes away when, for how long, and how it comes back."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.e2e.long_run.scale import Scale

EVERY = 75.0
"""Seconds from one fault to the next, where the time allows each kind once at that pace."""
QUIET = 0.1
"""The part of a run at its beginning and at its end in which no fault begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of fault."""

    name: str
    begin: Callable[[], object]
    end: Callable[[], object]
    lasts: tuple[float, float]
    """Seconds that it lasts, at least and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTime:
    """When a fault is to be played."""

    at: float
    """Seconds after the beginning."""
    fault: Fault
    lasts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedFault:
    """A fault as it was played, by the true clock (seconds since 1970)."""

    name: str
    began: float
    ended: float


def schedule(scale: Scale, faults: Sequence[Fault]) -> tuple[FaultTime, ...]:
    """Draw the times of all faults: each kind once before any comes again, and none begins while another lasts."""
    chance, length = random.Random(scale.seed + 1), scale.seconds * (1 - 2 * QUIET)
    number = max(len(faults), int(length // EVERY))
    pace, times, rest = length / number, list[FaultTime](), list[Fault]()
    for turn in range(number):
        rest = rest or chance.sample(faults, len(faults))
        fault = rest.pop()
        lasts = min(chance.uniform(*fault.lasts), 0.9 * pace)
        at = scale.seconds * QUIET + turn * pace + chance.uniform(0, max(0.0, 0.9 * pace - lasts))
        times.append(FaultTime(at=at, fault=fault, lasts=lasts))
    return tuple(times)


class FaultPlayer:
    """Plays a schedule of faults in one thread."""

    def __init__(self, times: Sequence[FaultTime]) -> None:
        """Take what is to be played; nothing happens yet."""
        self._times = times
        self.played: list[PlayedFault] = []
        self.failures: list[str] = []
        """Why a fault could not be played: then the run proves less than it says."""

    def play(self, stopped: threading.Event) -> None:
        """Play them all, each to its end. One that falls behind begins at once."""
        began = time.monotonic()
        for each in self._times:
            if stopped.wait(max(0.0, each.at - (time.monotonic() - began))):
                return
            begun = time.time()
            try:
                each.fault.begin()
                try:
                    stopped.wait(each.lasts)
                finally:
                    each.fault.end()
            except (AssertionError, OSError, KeyError) as error:
                self.failures.append(f"{each.fault.name}: {type(error).__name__}: {error}")
            self.played.append(PlayedFault(name=each.fault.name, began=begun, ended=time.time()))
