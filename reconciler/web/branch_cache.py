"""What pages read from git, kept for as long as the branches stay where they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from threading import BoundedSemaphore, Lock

from reconciler.daemon.answers.desk import AnswerDesk, CostAnswer, Occupied, RecentCommits
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.ports import Clock

_PATIENCE = 10.0
_MOST_WAITING = 8
_EARLIER = timedelta(hours=1)
"""How much further back a log reaches than asked for, so that it serves for a while."""


class BranchCache:
    """The log of the output branch, and its costs. Safe to use from several threads, one of which asks git."""

    def __init__(self, desk: AnswerDesk, latest: LatestSnapshot, clock: Clock) -> None:
        """Read nothing yet."""
        self._desk, self._latest, self._clock = desk, latest, clock
        self._lock = Lock()
        self._places = BoundedSemaphore(_MOST_WAITING)
        self._logs: dict[int, tuple[datetime, RecentCommits]] = {}
        """The last log of each limit, so that a deep one takes the place of no other."""
        self._costs: CostAnswer | None = None

    def log(self, since: datetime, limit: int) -> RecentCommits:
        """Return our commits since a moment, or some earlier one. Raises Transient when too many ask."""
        with self._turn():
            kept, snapshot = self._logs.get(limit), self._latest.read()
            if kept is not None and kept[0] <= since:
                log = kept[1]
                if log.snapshot.decision.inputs.ledger.commit == snapshot.decision.inputs.ledger.commit:
                    return replace(log, snapshot=snapshot)
            earlier = since - _EARLIER
            log = self._desk.log(since=earlier, limit=limit)
            self._logs[limit] = earlier, log
            return log

    def costs(self, since: datetime) -> CostAnswer:
        """Return the costs since a moment, until now. Raises Transient and Conflict as `AnswerDesk.costs`."""
        with self._turn():
            kept, snapshot = self._costs, self._latest.read()
            if kept is not None and kept.meter.since == since:
                before, now = kept.snapshot.decision, snapshot.decision
                same_branch = before.inputs.ledger.commit == now.inputs.ledger.commit
                if same_branch and before.tips.source == now.tips.source:
                    return replace(kept, snapshot=snapshot, until=max(kept.until, self._clock.now()))
            self._costs = self._desk.costs(since)
            return self._costs

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until nobody else asks git. Raises Transient when that takes too long, or too many wait for it.

        Each that waits takes a thread of those that answer all calls.
        """
        if not self._places.acquire(blocking=False):
            raise Occupied("too many wait for an answer")
        try:
            if not self._lock.acquire(timeout=_PATIENCE):
                raise Occupied("others are being answered")
            try:
                yield
            finally:
                self._lock.release()
        finally:
            self._places.release()
