"""What pages read from git, kept for as long as the branches stay where they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from threading import BoundedSemaphore, Lock

from reconciler.access.rights import Caller
from reconciler.api.asking import OneAtATime
from reconciler.daemon.answers.desk import AnswerDesk, CostAnswer, Occupied, RecentCommits
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.ports import Clock

_PATIENCE = 10.0
_MOST_WAITING = 8
_EARLIER = timedelta(hours=1)
"""How much further back a log reaches than asked for, so that it serves for a while."""


class BranchCache:
    """The log of the output branch, and its costs.

    Safe to use from several threads, one of which asks git. A caller asks git once at a time, as with questions to the
    API; what is kept waits for nobody.
    """

    def __init__(self, desk: AnswerDesk, latest: LatestSnapshot, clock: Clock) -> None:
        """Read nothing yet."""
        self._desk, self._latest, self._clock = desk, latest, clock
        self._lock, self._busy = Lock(), OneAtATime()
        self._places = BoundedSemaphore(_MOST_WAITING)
        self._logs: dict[int, tuple[datetime, RecentCommits]] = {}
        """The last log of each limit, so that a deep one takes the place of no other."""
        self._costs: CostAnswer | None = None

    def log(self, caller: Caller, since: datetime, limit: int) -> RecentCommits:
        """Return our commits since a moment, or some earlier one.

        Raises Transient when too many ask, and HttpError 429 when the caller asks already.
        """
        if (kept := self._kept_log(since, limit)) is not None:
            return kept
        with self._busy.of(caller), self._turn():
            if (kept := self._kept_log(since, limit)) is not None:  # whoever came before has read it
                return kept
            earlier = since - _EARLIER
            log = self._desk.log(since=earlier, limit=limit)
            self._logs[limit] = earlier, log
            return log

    def costs(self, caller: Caller, since: datetime) -> CostAnswer:
        """Return the costs since a moment, until now.

        Raises Transient and Conflict as `AnswerDesk.costs`, and HttpError 429 when the caller asks already.
        """
        if (kept := self._kept_costs(since)) is not None:
            return kept
        with self._busy.of(caller), self._turn():
            if (kept := self._kept_costs(since)) is not None:
                return kept
            self._costs = self._desk.costs(since)
            return self._costs

    def _kept_log(self, since: datetime, limit: int) -> RecentCommits | None:
        """Return the log that was read last, if it reaches as far back and the branch stays where it was."""
        kept, snapshot = self._logs.get(limit), self._latest.read()
        if kept is None or kept[0] > since:
            return None
        log = kept[1]
        same_branch = log.snapshot.decision.inputs.ledger.commit == snapshot.decision.inputs.ledger.commit
        return replace(log, snapshot=snapshot) if same_branch else None

    def _kept_costs(self, since: datetime) -> CostAnswer | None:
        """Return the costs that were read last, if they begin then and both branches stay where they were."""
        costs, snapshot = self._costs, self._latest.read()
        if costs is None or costs.meter.since != since:
            return None
        before, now = costs.snapshot.decision, snapshot.decision
        same_branch = before.inputs.ledger.commit == now.inputs.ledger.commit
        if not same_branch or before.tips.source != now.tips.source:
            return None
        return replace(costs, snapshot=snapshot, until=max(costs.until, self._clock.now()))

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
