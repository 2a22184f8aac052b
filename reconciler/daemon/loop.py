"""When a pass runs: the daemon's only loop, and the signals of the process that steer it.

The loop knows nothing of git or clusters. It runs a pass, handles the outcome, and waits for the next reason.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar

import structlog

from reconciler.backoff import backoff, quiet
from reconciler.errors import Bug, Conflict, HostKeyChanged, InvalidInput, LostBranch, OverspillError, Transient
from reconciler.ports import Clock

START = "start"
POLL = "poll"
HINT = "hint"
RELOAD = "reload"
ALARM = "alarm"
OBSERVATION = "observation"
ORDER = "order"
_STOP = "stop"

FETCHING = frozenset({START, POLL, HINT, RELOAD})
"""
Reasons to fetch first. Other passes work on the last fetched commits: if those are behind, the push is rejected, and
the pass runs again with a fetch.
"""

_EVERY_REASON = FETCHING | {ALARM, OBSERVATION, ORDER}
_PERSON_ACTED = frozenset({HINT, RELOAD, ORDER})
_NEVER: frozenset[str] = frozenset()

CONFLICT_TRIES = 10
_LEAST_ALARM = timedelta(seconds=1)
_POLL_JITTER = 0.1
_MISSED_POLLS = 10
_SLICE = 1.0
"""Most seconds of one wait: a signal that arrives just as a wait begins is handled only when that wait ends."""
MAINTAIN_EVERY = 200
KEEP_EVERY = 100

log = structlog.get_logger()


def conflict_pause(tries: int, *, luck: float) -> float:
    """Return the seconds to wait once the output branch has moved under a pass so many times in a row."""
    return backoff(tries, first=0.02, longest=1, luck=luck)


def unsettled(conflict: Conflict) -> Transient:
    """Return the error of a branch that could not be moved in all tries, from what the remote said of the last one."""
    return Transient(f"{conflict}; this was the last of {CONFLICT_TRIES} tries in a row")


class PassResult(StrEnum):
    """How a pass ended."""

    OK = "ok"
    CONFLICT = "conflict"
    """The output branch had moved: it runs again."""
    OUTAGE = "outage"
    """Something outside did not answer."""
    REFUSED = "refused"
    """An input was refused."""
    BUG = "bug"


class PassOutcome(Protocol):
    """The outcome of a pass for the loop: its commits, and the latest time of the next pass."""

    @property
    def commits(self) -> Sized:
        """The commits that were pushed."""
        ...

    @property
    def pushes(self) -> int:
        """Number of pushes that carried the commits; each leaves a pack in the mirror."""
        ...

    @property
    def wake_at(self) -> datetime | None:
        """The next moment at which the same inputs could decide otherwise."""
        ...

    @property
    def bugs(self) -> Collection[Bug]:
        """Every exception that nothing foresaw and that a bulkhead has contained."""
        ...


class Alarm(Protocol):
    """A timer that wakes the loop at a moment."""

    def at(self, moment: datetime | None) -> None:
        """Wake with reason ``alarm`` at `moment`, in place of any earlier setting."""
        ...


_RESULTS = {Conflict: PassResult.CONFLICT, InvalidInput: PassResult.REFUSED}

OutcomeT = TypeVar("OutcomeT", bound=PassOutcome)
OutcomeT_co = TypeVar("OutcomeT_co", bound=PassOutcome, covariant=True)


class Pass(Protocol[OutcomeT_co]):
    """A whole pass; without `fetch` on the branches as last fetched."""

    def __call__(self, *, fetch: bool) -> OutcomeT_co:
        """Run the pass; raises the errors of `reconciler.errors`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """The health of the loop."""

    passes: int
    """Passes that ended well."""
    bugs: int
    """Passes that ended in an unexpected exception, and exceptions that cost a pass one item when they were new."""
    idle: timedelta
    """Time since the last try ended, or since the loop was made."""
    stuck_after: timedelta
    """The longest `idle` of a loop that works."""
    trouble: str = ""
    """Why the last try failed; empty when it did not."""
    alarm: bool = False
    """Whether it failed since the remote may be another host than the one that is known."""
    lost: bool = False
    """Whether it failed because a branch of the remote lacks commits that it had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    """The wait for the next pass: until a moment of the monotonic clock, or until a reason arrives."""

    until: float
    cut_by: frozenset[str]


class Loop(Generic[OutcomeT]):
    """Runs `pass_` whenever there is a reason to, until `stop`.

    Reasons that come while a pass runs are put together into one more. The outcome of a pass decides the next step:

    * well: the alarm is set to the outcome's `wake_at`, and `tell` gets the outcome;
    * Conflict: again at once with a fetch, at most ten times, then as Transient;
    * Transient: again after a back-off that only `reload` cuts short; the outage is logged when it begins and when it
      ends;
    * InvalidInput: logged once; tried again at each poll, after a push hint, and for waiting callers;
    * anything else is a bug: logged with its traceback, counted, and tried again as Transient.

    `count` gets the result of each pass, and the seconds that it took.

    `keep` is called after passes that ended well, `maintain` after every 200 pushes, both while no reason waits; `keep`
    also after every 100 passes, as there is always a reason where a thousand clusters are watched.
    """

    def __init__(
        self,
        pass_: Pass[OutcomeT],
        *,
        clock: Clock,
        alarm: Alarm,
        tell: Callable[[OutcomeT], None],
        maintain: Callable[[], None],
        keep: Callable[[], None],
        random: Callable[[], float],
        count: Callable[[PassResult, float], None] = lambda _result, _seconds: None,
        poll: timedelta = timedelta(seconds=30),
        longest_backoff: timedelta = timedelta(minutes=1),
    ) -> None:
        self._pass = pass_
        self._clock = clock
        self._alarm = alarm
        self._tell = tell
        self._maintain = maintain
        self._keep = keep
        self._random = random
        self._count = count
        self._poll = poll
        self._longest_backoff = longest_backoff
        self._failures = 0  # in a row, refused input aside
        self._resting = timedelta()  # the last back-off
        # SimpleQueue.put may be interrupted by a signal handler that puts as well; a Condition or an Event may not.
        self._reasons: SimpleQueue[str] = SimpleQueue()
        self._pending: set[str] = set()
        self._stopping = False
        self._fetch = True
        self._poll_at = 0.0
        self._passes = self._bugs = self._tries = self._changed = 0
        self._trouble, self._lost = "", False
        self._alarmed = False
        self._contained: frozenset[Bug] = frozenset()
        self._logged: dict[type[Exception], str] = {}
        self._ended = time.monotonic()

    def wake(self, reason: str) -> None:
        """Ask for a pass soon, from any thread or signal handler; of equal reasons that wait, one is kept."""
        if reason not in self._pending:
            self._pending.add(reason)
            self._reasons.put(reason)

    def stop(self) -> None:
        """Let the pass under way end, and begin no other; from any thread or signal handler."""
        self._stopping = True
        self._reasons.put(_STOP)

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` has been called."""
        return self._stopping

    def vitals(self) -> Vitals:
        """Tell how the loop is doing, from any thread."""
        return Vitals(
            passes=self._passes,
            bugs=self._bugs,
            idle=timedelta(seconds=time.monotonic() - self._ended),
            stuck_after=_MISSED_POLLS * self._poll + max(self._longest_backoff, self._resting),
            trouble=self._trouble,
            alarm=self._alarmed,
            lost=self._lost,
        )

    def run(self) -> None:
        """Run passes until `stop`; the first begins at once."""
        while not self._stopping:
            rest = self._try()
            self._ended = time.monotonic()
            self._fetch |= not FETCHING.isdisjoint(self._wait(rest))

    def _try(self) -> _Rest:
        """Run a pass, and say how to wait for the next."""
        fetched = self._fetch
        try:
            outcome = self._pass_until_settled()
            if outcome is None:
                return _Rest(until=0, cut_by=_NEVER)
            self._note_success(outcome)
        except InvalidInput as error:
            self._fail(error, fetched=fetched)
            return _Rest(until=self._poll_at, cut_by=_PERSON_ACTED)
        except Exception as error:  # noqa: BLE001 - a bug must not end the daemon: what has lapsed must still be reverted
            self._fail(error, fetched=fetched)
            self._failures += 1
            if isinstance(error, Transient) and error.pause is not None:
                pause = quiet(self._failures, asked=error.pause.total_seconds(), luck=self._random())
            else:
                longest = self._longest_backoff.total_seconds()
                pause = backoff(self._failures, first=min(1.0, longest), longest=longest, luck=self._random())
            self._resting = timedelta(seconds=pause)
            return _Rest(until=time.monotonic() + pause, cut_by=frozenset({RELOAD}))
        return _Rest(until=self._poll_at, cut_by=_EVERY_REASON)

    def _pass_until_settled(self) -> OutcomeT | None:
        """Run the pass, and again whenever the branch has moved meanwhile; None when stopped in between."""
        last = Conflict()
        for tries in range(1, CONFLICT_TRIES + 1):
            try:
                return self._counted_pass()
            except Conflict as conflict:
                last = conflict
                self._fetch = True
                self._wait(_Rest(until=time.monotonic() + conflict_pause(tries, luck=self._random()), cut_by=_NEVER))
                if self._stopping:
                    return None
        raise unsettled(last)

    def _counted_pass(self) -> OutcomeT:
        """Run the pass, and count it by its result."""
        began, result = time.monotonic(), PassResult.BUG
        try:
            outcome = self._pass(fetch=self._fetch)
            result = PassResult.OK
        except OverspillError as error:
            result = _RESULTS.get(type(error), PassResult.OUTAGE)
            raise
        finally:
            self._count(result, time.monotonic() - began)
        return outcome

    def _note_success(self, outcome: OutcomeT) -> None:
        """Take note of a pass that ended well."""
        if self._fetch:
            self._set_poll()
        self._fetch = False
        # Times are whole seconds: an alarm within this one would find nothing new and spin.
        wake_at = outcome.wake_at
        self._alarm.at(wake_at and max(wake_at, self._clock.now() + _LEAST_ALARM))
        self._tell(outcome)
        if self._trouble:
            log.info("working again", failed_tries=self._tries)
        self._trouble, self._tries, self._alarmed, self._lost = "", 0, False, False
        self._logged.clear()
        self._failures = 0
        self._passes += 1
        contained = frozenset(outcome.bugs)
        self._bugs += len(contained - self._contained)
        self._contained = contained
        self._changed += outcome.pushes if outcome.commits else 0
        idle = self._reasons.empty()
        if idle or self._passes % KEEP_EVERY == 0:
            self._keep()
        if idle and self._changed >= MAINTAIN_EVERY:
            self._changed = 0
            self._run_maintenance()

    def _fail(self, error: Exception, *, fetched: bool) -> None:
        """Note a failed pass; the next one fetches, since the progress of this one is unknown."""
        if fetched:
            self._set_poll()
        self._fetch = True
        self._tries += 1
        self._trouble = str(error) or type(error).__name__
        self._alarmed = isinstance(error, HostKeyChanged)
        self._lost = isinstance(error, LostBranch) or (self._lost and isinstance(error, Transient | Conflict))
        refused, expected = isinstance(error, InvalidInput), isinstance(error, OverspillError)
        self._bugs += not expected
        logged = self._logged.get(type(error))
        # The message of an outage differs at each try; it is one outage all the same.
        if logged == self._trouble or (logged is not None and expected and not refused):
            return
        self._logged[type(error)] = self._trouble
        if self._alarmed:
            log.error("alarm: the remote may be another host; nothing is sent to it", why=self._trouble)
        elif self._lost and refused:
            log.error("nothing is written; looking again at each poll", why=self._trouble)
        elif refused:
            log.error("refused; trying again at each poll", why=self._trouble)
        elif expected:
            log.warning("backing off", why=self._trouble)
        else:
            log.error("bug; backing off", why=self._trouble, exc_info=error)

    def _set_poll(self) -> None:
        """Set the next poll, a tenth early or late at most, so that daemons of one remote do not poll in step."""
        jitter = 1 + _POLL_JITTER * (2 * self._random() - 1)
        self._poll_at = time.monotonic() + self._poll.total_seconds() * jitter

    def _wait(self, rest: _Rest) -> set[str]:
        """Wait as long as `rest` allows, and return the reasons that came; a wait that runs out counts as a poll."""
        reasons: set[str] = set()
        while not self._stopping:
            left = rest.until - time.monotonic()
            try:
                reason = self._reasons.get(timeout=max(0.0, min(left, _SLICE)))
            except Empty:
                if left > _SLICE:
                    continue
                return reasons | {POLL}
            self._pending.discard(reason)
            reasons.add(reason)
            if self._reasons.empty() and not rest.cut_by.isdisjoint(reasons):
                return reasons
        return reasons

    def _run_maintenance(self) -> None:
        """Let the repository tidy itself up; a failure does not stop the loop."""
        try:
            self._maintain()
        except OverspillError as error:
            log.warning("maintenance failed", why=str(error))


@contextmanager
def handle_signals(loop: Loop[Any]) -> Iterator[None]:
    """Hand this process's signals to the loop, and back again in the end. Call it in the main thread.

    SIGTERM and SIGINT let the pass under way finish, its push included. A second SIGINT is a KeyboardInterrupt at once.
    SIGHUP runs a pass now. The handlers do not log: they may interrupt the log call whose lock they would wait for.
    """
    interrupted = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if number == signal.SIGINT:
            if interrupted:
                raise KeyboardInterrupt
            interrupted = True
        loop.stop()

    def reload(_number: int, _frame: FrameType | None) -> None:
        loop.wake(RELOAD)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    if sys.platform != "win32":
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, reload)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
