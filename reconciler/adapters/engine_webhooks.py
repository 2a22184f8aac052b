"""Calls the webhooks of engines for each push, so that they need not poll.

Each endpoint has a thread of its own, which begins with the first push and ends with the process at the latest: a slow
or dead endpoint holds up no other. Pushes that come meanwhile, or that failed, are joined into one event. A failure
loses nothing for good: engines poll as well, only later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Condition, Thread

import structlog

from reconciler.adapters.webhook_call import WebhookRejected, announce
from reconciler.backoff import Backoff
from reconciler.errors import Problem, Severity
from reconciler.model.events.event import Endpoint, Event, Push

log = structlog.get_logger()

_LEAST = 0.05
"""Seconds of the shortest time-out, so that the last try can succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTiming(Backoff):
    """The timing of deliveries, in seconds."""

    answer: float = 10
    tries: int = 5
    """Tries for one push; the endpoint is called again with the next push."""
    first_backoff: float = 1
    longest_backoff: float = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointReport:
    """An endpoint has begun to fail, or works again."""

    endpoint: Endpoint
    why: str  # empty when it works again
    tries: int = 0  # that had failed by then


class EngineWebhooks:
    """Calls the webhooks of engines for each push (a `ports.EventSink`). `report` is called from threads of ours."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        report: Callable[[EndpointReport], None] | None = None,
        pace: WebhookTiming | None = None,
    ) -> None:
        self._couriers = [_Courier(endpoint, report or _ignore, pace or WebhookTiming()) for endpoint in endpoints]
        self._repo_url = ""

    def publish(self, _events: Sequence[Event], pushes: Sequence[Push]) -> None:
        """Call every endpoint soon for the branches that moved; engines do not need the events."""
        for push in pushes:
            # A pass that only ends what has lapsed may not have read the Fleet; where engines fetch stays the same.
            self._repo_url = push.repo_url or self._repo_url
            for courier in self._couriers:
                courier.take(replace(push, repo_url=self._repo_url))

    def close(self, patience: timedelta) -> tuple[Problem, ...]:
        """Deliver the pushes that wait, as far as patience goes, and return the endpoints that failed. Call it once."""
        until = time.monotonic() + patience.total_seconds()
        for courier in self._couriers:
            courier.hurry(until)
        return tuple(problem for courier in self._couriers if (problem := courier.wait(until)) is not None)


def _ignore(_report: EndpointReport) -> None:
    """Report nothing: `close` returns the endpoints that failed."""


class _Courier:
    """Delivers pushes to one endpoint, one after the other."""

    def __init__(self, endpoint: Endpoint, report: Callable[[EndpointReport], None], pace: WebhookTiming) -> None:
        self._endpoint = endpoint
        self._report = report
        self._pace = pace
        self._changed = Condition()
        self._waiting: dict[str, Push] = {}  # not delivered yet, by branch
        self._due = False  # and worth a try
        self._until: float | None = None  # when to give up, once closing
        self._ending = False  # the try under way began after that was said
        self._failures = 0
        self._why = ""
        self._thread: Thread | None = None

    def take(self, push: Push) -> None:
        """Queue a push, joined with the waiting push of the same branch."""
        with self._changed:
            if self._until is not None:
                return
            waiting = self._waiting.get(push.branch)
            self._waiting[push.branch] = push if waiting is None else waiting.then(push)
            self._due = True
            if self._thread is None:
                # A daemon thread does not keep the process alive: a name look-up cannot be cancelled.
                self._thread = Thread(target=self._run, name=f"notify {self._endpoint.engine}", daemon=True)
                self._thread.start()
            self._changed.notify()

    def hurry(self, until: float) -> None:
        """Ask to be done by a moment of the monotonic clock."""
        with self._changed:
            self._until = until
            self._changed.notify()

    def wait(self, until: float) -> Problem | None:
        """Wait for the end, and return the problem if a push was not delivered."""
        if self._thread is None:
            return None
        self._thread.join(max(0.0, until - time.monotonic()))
        with self._changed:
            if not self._waiting and not self._thread.is_alive():
                return None
            why = self._why or "it does not answer in time"
        message = f"was not told of the last push, and sees it when it polls: {why}"
        return Problem(path=str(self._endpoint), message=message, severity=Severity.WARNING)

    def _run(self) -> None:
        """Deliver until no push waits and no more will come."""
        while (push := self._next()) is not None:
            try:
                why, again = announce(self._endpoint, push, timeout=self._timeout()), True
            except WebhookRejected as error:
                why, again = str(error), False
            except Exception as error:  # a bug must not end the thread: later pushes would go untold
                log.exception("bug; not told of a push", endpoint=str(self._endpoint))
                why, again = f"a bug in Overspill ({type(error).__name__})", False
            if why:
                self._keep_for_retry(push, why, again=again)
            else:
                self._note_delivery()

    def _next(self) -> Push | None:
        """Wait for a push to deliver; None at the end."""
        with self._changed:
            while not self._due:
                if self._until is not None:
                    return None
                self._changed.wait()
            self._due = False
            self._ending = self._until is not None
            return self._waiting.pop(next(iter(self._waiting)))

    def _note_delivery(self) -> None:
        failure = self._why
        tries, self._failures, self._why = self._failures, 0, ""
        with self._changed:
            self._due = bool(self._waiting)
        if failure:
            self._report(EndpointReport(endpoint=self._endpoint, why="", tries=tries))

    def _keep_for_retry(self, push: Push, why: str, *, again: bool) -> None:
        """Keep the push for another try: after a while or, if a retry is of no use, with the next push."""
        failure, self._why = self._why, why
        self._failures += 1
        if not failure:
            self._report(EndpointReport(endpoint=self._endpoint, why=why))
        with self._changed:
            later = self._waiting.get(push.branch)
            self._waiting[push.branch] = push if later is None else push.then(later)
            if again and (self._due or self._failures % self._pace.tries):
                self._due = self._rest(self._pace.backoff(self._failures))

    def _rest(self, pause: float) -> bool:
        """Wait before the next try, and return whether there is time for it.

        A new push does not cut the wait short, since the next try covers it. The end of the process does: one last try
        is made at once.
        """
        if self._until is None:
            self._changed.wait_for(lambda: self._until is not None, pause)
        elif self._ending:
            if time.monotonic() + pause > self._until:
                return False
            self._changed.wait_for(lambda: False, pause)
        return True

    def _timeout(self) -> float:
        """Say how many seconds a try may take."""
        if self._until is None:
            return self._pace.answer
        return max(_LEAST, min(self._pace.answer, self._until - time.monotonic()))
