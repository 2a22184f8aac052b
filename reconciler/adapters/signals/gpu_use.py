"""Whether the GPUs of placements are used, as Prometheus tells beside the passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Protocol

from reconciler.adapters.rounds import Rounds
from reconciler.adapters.signals.view import EVERY, WOKEN_BY
from reconciler.bulkhead import Seam, attempt
from reconciler.core.observe.gpu_use import (
    GpuAnswer,
    GpuAnswers,
    GpuQuestion,
    PodKey,
    read_answer,
    round_interval,
)
from reconciler.errors import Bug, InvalidInput, Transient
from reconciler.model.workload import Json
from reconciler.ports import Clock, Wake


class SeriesAddress(Protocol):
    """A server that answers queries of many series."""

    def ask_series(self, query: str) -> Json:
        """Return a query's answer, or raise Transient or InvalidInput."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class PrometheusGpuUse:
    """Asks each question in rounds, and keeps the last answers (a `ports.GpuUseView`).

    Rounds begin with the first question; a fleet without idle times is never asked about. A question that is new, as
    each placement may make one, waits for the next round.
    """

    def __init__(
        self,
        server: SeriesAddress,
        *,
        label: str,
        clock: Clock,
        wake: Wake | None = None,
        patience: timedelta = timedelta(),
        every: timedelta = EVERY,
        ticks: Callable[[], float] = monotonic,
    ) -> None:
        """Start without questions; `label` names clusters, and `every` is the least time between two rounds.

        The rest is as of `AskedSignals` and `Rounds`.
        """
        self.label = label
        self._server = server
        self._clock = clock
        self._wake = wake
        self._patience = patience
        self._least = every
        self._rounds = Rounds("prometheus-gpus", self._round, every=every, end=server.close, clock=ticks)
        self._questions: tuple[GpuQuestion, ...] = ()
        self._answers: Mapping[GpuQuestion, GpuAnswer] = {}
        self._trouble = ""

    def follow(self, questions: tuple[GpuQuestion, ...], max_age: timedelta) -> None:
        """Ask these questions from now on, new ones in the next round; a command asks and waits at once."""
        self._rounds.set_interval(round_interval(questions, least=self._least, max_age=max_age))
        if questions == self._questions:
            return
        with self._rounds.changed:
            self._questions = questions
            self._answers = {question: answer for question, answer in self._answers.items() if question in questions}
            self._trouble = self._trouble if questions else ""
            if questions:
                self._rounds.start()
            if self._patience:
                self._rounds.hurry()
                self._rounds.wait(self._all_settled, self._patience)

    def observe(self) -> GpuAnswers:
        """Return the last answers; never wait for new ones."""
        with self._rounds.changed:
            return GpuAnswers(answers=self._answers, trouble=self._trouble)

    def close(self) -> None:
        """Ask nothing more. A second call does nothing."""
        self._rounds.close()

    def _all_settled(self) -> bool:
        return bool(self._trouble) or all(question in self._answers for question in self._questions)

    def _round(self) -> None:
        """Ask each question once, and publish the answers; one that was not answered keeps its last answer."""
        answers: dict[GpuQuestion, GpuAnswer] = {}
        trouble = ""
        for question in self._questions:
            if self._rounds.closing:
                return
            try:
                answer = attempt(Seam.SIGNAL, "prometheus", partial(self._ask, question))
            except Transient as error:  # as the other questions would be answered
                trouble = str(error)
                break
            except InvalidInput as error:
                trouble = str(error)
                continue
            if isinstance(answer, Bug):
                trouble = answer.summary
            else:
                answers[question] = answer
        with self._rounds.changed:
            before = self._idle()
            kept = {question: self._answers[question] for question in self._questions if question in self._answers}
            self._answers = {**kept, **{each: answers[each] for each in self._questions if each in answers}}
            news = (self._idle(), trouble) != (before, self._trouble)
            self._trouble = trouble if self._questions else ""
            self._rounds.changed.notify_all()
        if news and self._wake is not None:
            self._wake(WOKEN_BY)

    def _ask(self, question: GpuQuestion) -> GpuAnswer:
        """Ask one question. Raises Transient and InvalidInput."""
        pods = read_answer(self._server.ask_series(question.text), question)
        return GpuAnswer(at=self._clock.now(), pods=pods)

    def _idle(self) -> Mapping[GpuQuestion, frozenset[PodKey]]:
        """Return the part of the answers that a decision depends on; counts of samples move all the time."""
        return {
            question: frozenset(key for key, use in answer.pods.items() if use.is_idle(use.measured))
            for question, answer in self._answers.items()
        }
