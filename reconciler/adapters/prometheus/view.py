"""The signals that policies hear from Prometheus, as one view."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

from reconciler.core.expressions.promql import PrometheusQuestion, questions
from reconciler.core.observe.prometheus import WatchedQuery, lasting
from reconciler.errors import InvalidInput, Problem, Severity, Transient
from reconciler.model.capacity import Observed, ReplicaRequest, SignalFreshness
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired
from reconciler.ports import Clock, Wake

WOKEN_BY = "observation"
EVERY = timedelta(seconds=15)
"""How often a query is asked: half the scale-up window that policies have by default, and what most scrapes take."""
_MOST_TOLD = 20


class PrometheusAddress(Protocol):
    """What is asked."""

    def ask(self, query: str) -> float:
        """Return a query's one value, or raise Transient or InvalidInput."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class PrometheusSignals:
    """Asks each query every so often, and keeps the last answers (a `ports.ClusterView`).

    Since when a number of replicas has been asked for is what this process has watched. When it begins to, Prometheus
    is asked once what it has seen throughout the question's window; where it cannot say, that only delays. `wake` is
    called, from a thread of ours, when a number has changed. `patience` is how long `follow` may wait for first
    answers; a daemon has none, since it is woken. The thread begins with the first question.
    """

    def __init__(
        self,
        server: PrometheusAddress,
        *,
        clock: Clock,
        wake: Wake | None = None,
        patience: timedelta = timedelta(),
        every: timedelta = EVERY,
    ) -> None:
        self._server = server
        self._clock = clock
        self._wake = wake
        self._patience = patience.total_seconds()
        self._every = every.total_seconds()
        self._changed = Condition()
        self._followed: Desired | None = None
        self._questions: tuple[PrometheusQuestion, ...] = ()
        self._unaskable: tuple[Problem, ...] = ()
        self._max_age = timedelta()
        self._watches: Mapping[PrometheusQuestion, WatchedQuery] = {}
        self._trouble = ""
        self._first = ""
        self._observed = Observed()
        self._thread: Thread | None = None
        self._closing = False

    def follow(self, desired: Desired) -> None:
        """Ask the questions of these policies from now on."""
        if desired is self._followed:
            return
        asked, problems = questions(desired)
        with self._changed:
            fresh = asked != self._questions
            self._followed, self._unaskable = desired, problems
            self._questions = asked if fresh else self._questions
            self._max_age = desired.fleet.observation_max_age
            self._watches = {
                question: self._watches.get(question) or WatchedQuery(question=question) for question in asked
            }
            self._publish()
            if asked and self._thread is None:
                self._thread = Thread(target=self._run, name="prometheus", daemon=True)
                self._thread.start()
            if fresh:
                self._changed.notify_all()
            if fresh and self._patience:
                self._changed.wait_for(self._all_settled, self._patience)

    def observe(self) -> Observed:
        """Return what was last answered; never waits for an answer."""
        return self._observed

    def close(self) -> None:
        """Ask nothing more. A second call does nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _all_settled(self) -> bool:
        """Tell whether each question was answered or could not be, at least once."""
        return bool(self._trouble) or all(watch.at or watch.trouble for watch in self._watches.values())

    def _run(self) -> None:
        """Ask rounds of questions until closed; new questions begin a round at once."""
        while True:
            with self._changed:
                asked = self._questions
                closing = self._closing
            if closing:
                self._server.close()
                return
            began = monotonic()
            self._round(asked)
            with self._changed:
                rest = self._every - (monotonic() - began)
                self._changed.wait_for(partial(self._disturbed, asked), max(0.0, rest))

    def _disturbed(self, asked: tuple[PrometheusQuestion, ...]) -> bool:
        """Tell whether there is a reason not to rest."""
        return self._closing or self._questions is not asked

    def _round(self, asked: tuple[PrometheusQuestion, ...]) -> None:
        """Ask each query once, and publish what has come of it. Who does not answer at all is asked once a round."""
        texts = list(dict.fromkeys(question.text for question in asked))
        if self._first in texts:  # what was not reached the last time goes first
            at = texts.index(self._first)
            texts = texts[at:] + texts[:at]
        answers: dict[str, float | InvalidInput] = {}
        trouble, self._first = "", ""
        for index, text in enumerate(texts):
            if self._closing:
                return
            try:
                answers[text] = self._server.ask(text)
            except InvalidInput as error:
                answers[text] = error
            except Transient as error:
                trouble, self._first = str(error), texts[(index + 1) % len(texts)]
                break
        now = self._clock.now()
        past = {} if trouble else self._past(answers, now)
        with self._changed:
            before = _numbers(self._observed)
            self._trouble = trouble
            self._watches = {
                question: watch
                if (answer := answers.get(question.text)) is None
                else watch.answered(answer, past.get(_lasting(question)), now, self._max_age)
                for question, watch in self._watches.items()
            }
            self._publish()
            changed = before != _numbers(self._observed)
            self._changed.notify_all()
        if changed and self._wake is not None:
            self._wake(WOKEN_BY)

    def _past(self, answers: Mapping[str, float | InvalidInput], now: datetime) -> dict[str, float | None]:
        """Ask for the least value throughout the window of each question that nobody has watched, by the new query."""
        found: dict[str, float | None] = {}
        for question, watch in list(self._watches.items()):
            text, answer = _lasting(question), answers.get(question.text)
            if isinstance(answer, InvalidInput) or not answer or watch.goes_on(now, self._max_age):
                continue
            try:
                if text and text not in found:
                    found[text] = self._server.ask(text)
            except InvalidInput:
                found[text] = None  # a scalar has no past, and not every server keeps one
            except Transient:
                break
        return found

    def _publish(self) -> None:
        """Make of all answers what a pass sees."""
        asks: dict[WorkloadId, tuple[ReplicaRequest, ...]] = {}
        hearings: dict[WorkloadId, tuple[SignalFreshness, ...]] = {}
        for question, watch in self._watches.items():
            workload = question.workload
            hearings[workload] = (*hearings.get(workload, ()), watch.hearing(self._trouble))
            if told := watch.asks():
                asks[workload] = asks.get(workload, ()) + told
        self._observed = Observed(asks=asks, hearings=hearings, problems=(*self._unaskable, *self._problems()))

    def _problems(self) -> tuple[Problem, ...]:
        """Tell once that nobody answers, and of each query once what is wrong with it as far as is known.

        A query whose last answer was of no use is not mended because nobody answers now.
        """
        message = f"cannot be asked: {self._trouble}"
        away = (Problem(path="prometheus", message=message, severity=Severity.WARNING),) if self._trouble else ()
        found = {
            Problem(
                path=f"policy {question.policy}",
                message=f"{question.query.signal} tells nothing: {watch.trouble}",
                severity=Severity.WARNING,
            ): None
            for question, watch in self._watches.items()
            if watch.trouble
        }
        return (*away, *found)[:_MOST_TOLD]


class NoPrometheus:
    """Tells that policies have queries and nobody is asked (a `ports.ClusterView`)."""

    def __init__(self) -> None:
        self._followed: Desired | None = None
        self._observed = Observed()

    def follow(self, desired: Desired) -> None:
        """See whether any policy in force has a query."""
        if desired is self._followed:
            return
        self._followed = desired
        names = sorted({policy.name for policy in desired.policies.values() if policy.queries})
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        problem = Problem(
            path=f"policy {names[0]}{more}" if names else "",
            message="asks Prometheus, and none is configured: what is lent stays until it expires",
            hint="try --prometheus http://prometheus.monitoring:9090",
            severity=Severity.WARNING,
        )
        self._observed = Observed(problems=(problem,) if names else ())

    def observe(self) -> Observed:
        """Return the warning, if there is one."""
        return self._observed


def _lasting(question: PrometheusQuestion) -> str:
    """Write the query for the past of a question; empty where nothing waits for it."""
    return lasting(question.text, question.window) if question.window else ""


def _numbers(observed: Observed) -> object:
    """Take what a decision depends on of what was answered; the value itself moves all the time."""
    return {
        workload: [(ask.signal, ask.replicas, ask.since) for ask in asks] for workload, asks in observed.asks.items()
    }
