"""The signals that policies take from a service outside, as one view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Generic, Protocol, TypeVar

from reconciler.adapters.rounds import Rounds
from reconciler.bulkhead import Seam, attempt
from reconciler.core.signals.question import Question, SourcedSignal, WatchedQuestion
from reconciler.errors import Bug, InvalidInput, Problem, Severity, Transient
from reconciler.model.capacity import Observed
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.signal import ReplicaRequest, SignalFreshness
from reconciler.ports import Clock, Wake

WOKEN_BY = "observation"
EVERY = timedelta(seconds=15)
"""Time between two rounds: half the default scale-up window of policies, and as long as most scrapes take."""
_MOST_PROBLEMS = 20


A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)

Questions = Callable[[Desired], tuple[tuple[Question[A], ...], tuple[Problem, ...]]]
"""Lists the questions about every workload that may burst, and the problems of those that cannot be asked."""


class SignalServer(Protocol[A_co]):
    """A server that answers questions."""

    def ask(self, question: str) -> A_co:
        """Return the answer to a question, or raise Transient or InvalidInput."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class AskedSignals(Generic[A]):
    """Asks each question in rounds, and keeps the last answers (a `ports.ClusterView`).

    Levels of replicas count from the start of this process's watch. A new question may come
    with one about the whole window, which is asked once; without its answer replicas only wait longer. The thread
    starts with the first question.
    """

    def __init__(
        self,
        server: SignalServer[A],
        *,
        source: str,
        questions: Questions[A],
        clock: Clock,
        wake: Wake | None = None,
        patience: timedelta = timedelta(),
        every: timedelta = EVERY,
    ) -> None:
        """Start without questions to `source`, the name of the service.

        `wake` is called, from the thread, when a number of replicas has changed. `patience`
        bounds the wait of `follow` for first answers; it is zero in a daemon, which is woken instead.
        """
        self._server = server
        self._source = source
        self._list_questions = questions
        self._clock = clock
        self._wake = wake
        self._patience = patience
        self._rounds = Rounds(source.lower(), self._ask, every=every, end=server.close)
        self._followed: Desired | None = None
        self._questions: tuple[Question[A], ...] = ()
        self._unaskable: tuple[Problem, ...] = ()
        self._max_age = timedelta()
        self._watches: Mapping[Question[A], WatchedQuestion[A]] = {}
        self._trouble = ""
        self._first = ""
        self._late: frozenset[str] = frozenset()
        """The questions to which no answer came when they were asked last."""
        self._observed = Observed()
        self._bug: Bug | None = None

    def follow(self, desired: Desired) -> None:
        """Ask the questions of these policies from now on."""
        if desired is self._followed:
            return
        asked, unaskable = self._list_questions(desired)
        with self._rounds.changed:
            fresh = asked != self._questions
            self._followed, self._unaskable = desired, unaskable
            self._questions = asked if fresh else self._questions
            self._max_age = desired.fleet.observation_max_age
            self._watches = {
                question: self._watches.get(question) or WatchedQuestion(question=question) for question in asked
            }
            self._publish()
            if asked:
                self._rounds.start()
            if fresh:
                self._rounds.hurry()
                self._rounds.wait(self._all_settled, self._patience)

    def observe(self) -> Observed:
        """Return the last answers; never wait for new ones."""
        observed, bug = self._observed, self._bug
        if bug is None:
            return observed
        return replace(observed, problems=(*observed.problems, bug.problem(bug.item)))

    def close(self) -> None:
        """Ask nothing more. A second call does nothing."""
        self._rounds.close()

    @property
    def is_asking(self) -> bool:
        """Whether rounds have begun and not ended."""
        return self._rounds.running

    def join(self, patience: timedelta) -> None:
        """Wait for so long, or until nothing is asked any more."""
        self._rounds.join(patience)

    def _all_settled(self) -> bool:
        """Return whether each question has an answer, or trouble that keeps it from having one."""
        return bool(self._trouble) or all(watch.at or watch.trouble for watch in self._watches.values())

    def _ask(self) -> None:
        """Ask a round of questions; a bug costs this one, and the next one is another try."""
        self._bug = attempt(Seam.SIGNAL, self._source.lower(), self._round)

    def _round(self) -> None:
        """Ask each text once, and publish the answers. A server that does not answer at all is asked once a round.

        A question that takes the server too long holds up no other: it comes after all that were answered, and ends the
        round. While others are answered, that is taken for its own trouble, and not the server's. This is a guess: of a
        server that dies at such a question, one round blames the question, and also waits for an answer about the past.
        The next round begins with others, and finds the server away. The past is asked for all the same, since a round
        with a question that always takes too long never ends otherwise.
        """
        texts = list(dict.fromkeys(question.text for question in self._questions))
        if self._first in texts:  # queries that the last round did not get to go first
            at = texts.index(self._first)
            texts = texts[at:] + texts[:at]
        self._late &= frozenset(texts)
        texts.sort(key=lambda text: text in self._late)
        answers: dict[str, A | InvalidInput] = {}
        trouble, self._first = "", ""
        for index, text in enumerate(texts):
            if self._rounds.closing:
                return
            try:
                value = attempt(Seam.SIGNAL, text, partial(self._server.ask, text))
                answers[text] = InvalidInput(value.summary) if isinstance(value, Bug) else value
            except InvalidInput as error:
                answers[text] = error
            except Transient as error:
                self._first = texts[(index + 1) % len(texts)]
                if answers and text in self._late:
                    answers[text] = InvalidInput(str(error))
                else:
                    trouble = str(error)
                self._late |= {text}
                break
            self._late -= {text}
        now = self._clock.now()
        past = {} if trouble else self._past(answers, now)
        with self._rounds.changed:
            before = _levels(self._observed)
            self._trouble = trouble
            self._watches = {
                question: watch
                if (answer := answers.get(question.text)) is None
                else watch.answered(answer, past.get(question.past), now, self._max_age)
                for question, watch in self._watches.items()
            }
            self._publish()
            changed = before != _levels(self._observed)
            self._rounds.changed.notify_all()
        if changed and self._wake is not None:
            self._wake(WOKEN_BY)

    def _past(self, answers: Mapping[str, A | InvalidInput], now: datetime) -> dict[str, A | None]:
        """Ask about the window of each question that is not watched yet, by the question's text."""
        past: dict[str, A | None] = {}
        for question, watch in list(self._watches.items()):
            text, answer = question.past, answers.get(question.text)
            if isinstance(answer, InvalidInput) or not answer or watch.is_watched(now, self._max_age):
                continue
            try:
                if text and text not in past:
                    past[text] = self._server.ask(text)
            except InvalidInput:
                past[text] = None  # a scalar has no past, and not every server keeps one
            except Transient:
                break
        return past

    def _publish(self) -> None:
        """Put all answers into the observation that passes read."""
        asks: dict[WorkloadId, tuple[ReplicaRequest, ...]] = {}
        freshness: dict[WorkloadId, tuple[SignalFreshness, ...]] = {}
        for question, watch in self._watches.items():
            workload = question.workload
            freshness[workload] = (*freshness.get(workload, ()), watch.freshness(self._trouble))
            if requests := watch.asks():
                asks[workload] = asks.get(workload, ()) + requests
        self._observed = Observed(asks=asks, freshness=freshness, problems=(*self._unaskable, *self._problems()))

    def _problems(self) -> tuple[Problem, ...]:
        """Return a problem if the server does not answer, and one for each question whose last answer was unusable."""
        message = f"cannot be asked: {self._trouble}"
        server = (
            (Problem(path=self._source.lower(), message=message, severity=Severity.WARNING),) if self._trouble else ()
        )
        # A signal belongs to many workloads; its problem is listed once.
        queries = {
            Problem(
                path=f"policy {question.policy}",
                message=f"{question.signal.label} tells nothing: {watch.trouble}",
                severity=Severity.WARNING,
            ): None
            for question, watch in self._watches.items()
            if watch.trouble
        }
        return (*server, *queries)[:_MOST_PROBLEMS]


class UnaskedSignals:
    """Warns that policies have signals of a service that is not configured (a `ports.ClusterView`)."""

    def __init__(self, kind: type[SourcedSignal[A]], *, source: str, hint: str) -> None:
        self._kind = kind
        self._source = source
        self._hint = hint
        self._followed: Desired | None = None
        self._observed = Observed()

    def follow(self, desired: Desired) -> None:
        """Look for policies in force that have such a signal."""
        if desired is self._followed:
            return
        self._followed = desired
        names = sorted({policy.name for policy in desired.policies.values() if self._concerns(policy)})
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        problem = Problem(
            path=f"policy {names[0]}{more}" if names else "",
            message=f"asks {self._source}, and none is configured: bursts stay until they expire",
            hint=self._hint,
            severity=Severity.WARNING,
        )
        self._observed = Observed(problems=(problem,) if names else ())

    def observe(self) -> Observed:
        """Return the warning, if any."""
        return self._observed

    def _concerns(self, policy: BurstPolicy) -> bool:
        return any(isinstance(signal, self._kind) for signal in policy.signals)


def _levels(observed: Observed) -> object:
    """Return the part of the answers that a decision depends on; the values themselves move all the time."""
    return {
        workload: [(ask.signal, ask.replicas, ask.since) for ask in asks] for workload, asks in observed.asks.items()
    }
