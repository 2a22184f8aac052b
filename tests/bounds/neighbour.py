"""Another tenant's burst, which lapses while an input beyond its bound is read in the same process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Event

from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.source import SourceReader
from reconciler.daemon.sweeper import Sweeper, SweepWorld
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

_LEAD = timedelta(seconds=0.2)
"""Time between the start of the sweeper and the end of the burst."""


class _Daemon(Passes):
    """A daemon whose clock stands until it is set, and goes on by itself from then on."""

    def __init__(self) -> None:
        self._set_at: float | None = None
        super().__init__(MemoryRepository(SOURCE_FILES))

    def now(self) -> datetime:
        passed = 0.0 if self._set_at is None else time.monotonic() - self._set_at
        return self.moment + timedelta(seconds=passed)

    def set_clock(self, moment: datetime) -> None:
        self.moment, self._set_at = moment, time.monotonic()

    @contextmanager
    def open_world(self) -> Iterator[SweepWorld]:
        memory = Memory(source=SourceReader(self.repository), branch=BranchReader(self.repository))
        yield SweepWorld(world=self.world(), memory=memory)


class _TimedSweeper(Sweeper):
    """A sweeper that notes when it has ended something for the first time."""

    def __init__(self, latest: LatestSnapshot, daemon: _Daemon) -> None:
        super().__init__(latest, daemon.open_world, clock=daemon, random=lambda: 0.5)
        self.ended = Event()
        self.ended_at: datetime | None = None

    def sweep(self) -> Outcome:
        outcome = super().sweep()
        if outcome.commits and self.ended_at is None:
            self.ended_at = self._clock.now()
            self.ended.set()
        return outcome


class Neighbour:
    """A daemon without passes: only its sweeper ends the burst, two seconds late where nothing keeps it."""

    def __init__(self) -> None:
        """Place a burst."""
        self._daemon = _Daemon()
        self._daemon.missing = 3
        latest = LatestSnapshot(self._daemon.memory.branch)
        latest.post(self._daemon.run())
        (burst,) = self._daemon.placements()
        self._end = burst.expires_at
        self._sweeper = _TimedSweeper(latest, self._daemon)

    def start(self) -> Event:
        """Start the sweeper shortly before the end of the burst; the event says that the burst has been ended."""
        self._daemon.set_clock(self._end - _LEAD)
        self._sweeper.start()
        return self._sweeper.ended

    def close(self) -> float:
        """Stop the sweeper, and return by how many seconds the burst was ended too late."""
        self._sweeper.close()
        if self._sweeper.ended_at is None:
            raise AssertionError("the burst of the neighbour was never ended")
        return (self._sweeper.ended_at - self._end).total_seconds()
