"""A thread that ends what has lapsed where no pass does so in time.

The end of a placement is in git, and needs nothing but the output branch. A pass needs more: files, clusters, charts, a
decision. So whatever holds a pass up, from its start on, ends here: a pass that hangs, that fails again and again, or
that has never ended yet. What a renewal would have extended is not among it, since that is due long before the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Event, Thread

import structlog

from reconciler.backoff import backoff
from reconciler.daemon.reconcile import Memory, Outcome, World
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.steer import carry_out, draft_sweep, retry_conflicts
from reconciler.errors import Conflict, Transient
from reconciler.model.ledger import Ledger, Placements
from reconciler.ports import Clock
from reconciler.text.wording import count

log = structlog.get_logger()

GRACE = timedelta(seconds=2)
"""Time for a pass to end what has lapsed, beside twice the time that a pass took last: it knows more of the reasons."""
LONGEST_GRACE = timedelta(seconds=20)
_EVERY = 0.5
"""Seconds between two looks at the clock."""
_LONGEST_PAUSE = 60.0
_LAST = 2.0
"""Seconds for the thread to end; one that waits for the remote ends with the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepWorld:
    """The world of a sweep, and the memory for its repository alone."""

    world: World
    memory: Memory


class Sweeper:
    """Ends what has lapsed, as `overspill sweep` does, once passes are late.

    `open_world` opens a repository of its own, since the one of passes may be in use. It is open for a sweep alone.
    """

    def __init__(
        self,
        latest: LatestSnapshot,
        open_world: Callable[[], AbstractContextManager[SweepWorld]],
        *,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        """Look at the placements that passes have left last."""
        self._latest, self._open_world, self._clock, self._random = latest, open_world, clock, random
        self._took = timedelta()
        self._began = clock.now()
        self._own: Ledger | None = None
        """The branch as the last sweep has left it."""
        self._known: Placements | None = None
        self._swept_at: datetime | None = None
        self._failures = 0
        self._logged: dict[type[Exception], str] = {}
        """The last message of each kind of failure since the last sweep that ended well."""
        self._not_before = 0.0
        self._closing = Event()
        self._thread = Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        """Begin to look at the clock."""
        self._thread.start()

    def close(self) -> None:
        """End nothing more. A second call does nothing."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_LAST)

    def note_pass(self, seconds: float) -> None:
        """Take note of the time that a pass took which ended well."""
        self._took = timedelta(seconds=seconds)

    def is_due(self) -> bool:
        """Return whether something has lapsed that passes had the time to end; also before any pass has ended well."""
        if time.monotonic() < self._not_before:
            return False
        before = self._clock.now() - min(LONGEST_GRACE, GRACE + 2 * self._took)
        known = self._placements()
        if known is None:
            return before >= self._began
        if known is not self._known:
            self._known, self._swept_at = known, None
        return any(
            self._swept_at is None or placement.expires_at > self._swept_at for placement in known.lapsed(before)
        )

    def sweep(self) -> Outcome:
        """End what has lapsed now. Raises what `draft_sweep` and a push raise."""
        now = self._clock.now()
        with self._open_world() as opened:
            world, memory = opened.world, opened.memory
            outcome = retry_conflicts(lambda: carry_out(world, memory, draft_sweep(world, memory)), random=self._random)
            self._own = memory.branch.ledger(outcome.commits[-1] if outcome.commits else outcome.decision.tips.output)
        self._known, self._swept_at = self._placements(), now
        if outcome.commits:
            ended = count(len(outcome.plan.changes), "placement")
            log.warning("swept", line=f"ended {ended} whose time was over, since no pass had done so")
        for problem in outcome.decision.refusal_problems:
            log.warning("problem", line=str(problem))
        return outcome

    def _placements(self) -> Placements | None:
        """Return the placements as the newest pass has left them, before the first one the last sweep; else None."""
        with suppress(Transient):
            return self._latest.read().decision.inputs.ledger.placements
        return None if self._own is None else self._own.placements

    def step(self) -> None:
        """Sweep if it is time; a failure is logged, and makes the next one wait longer."""
        try:
            if self.is_due():
                self.sweep()
                self._failures = 0
                self._logged.clear()
        except Exception as error:  # noqa: BLE001 - whatever it is, what lapses next must still be ended
            self._failures += 1
            pause = backoff(self._failures, first=1, longest=_LONGEST_PAUSE, luck=self._random())
            self._not_before = time.monotonic() + pause
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        """Log a failure, unless it is the last one of its kind again: the message of an outage differs at each try."""
        text, logged = str(error) or type(error).__name__, self._logged.get(type(error))
        if logged is not None and (text == logged or isinstance(error, Transient | Conflict)):
            return
        self._logged[type(error)] = text
        log.warning("cannot sweep", line=f"what has lapsed cannot be ended yet: {text}")

    def _run(self) -> None:
        while not self._closing.wait(_EVERY):
            self.step()
