"""Whether the GPUs of placements are used, as Prometheus tells beside the passes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

from reconciler.adapters.signals.view import EVERY, WOKEN_BY
from reconciler.bulkhead import Seam, attempt
from reconciler.core.observe.gpu_use import GpuAnswer, GpuAnswers, GpuQuestion, PodKey, read_answer
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

    The thread starts with the first question; a fleet without idle times is never asked about.
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
    ) -> None:
        """Start without questions; `label` names clusters, and the rest is as of `PrometheusSignals`."""
        self.label = label
        self._server = server
        self._clock = clock
        self._wake = wake
        self._patience = patience.total_seconds()
        self._every = every.total_seconds()
        self._changed = Condition()
        self._questions: tuple[GpuQuestion, ...] = ()
        self._answers: Mapping[GpuQuestion, GpuAnswer] = {}
        self._trouble = ""
        self._thread: Thread | None = None
        self._closing = False

    def follow(self, questions: tuple[GpuQuestion, ...]) -> None:
        """Ask these questions from now on; new ones at once."""
        if questions == self._questions:
            return
        with self._changed:
            self._questions = questions
            self._answers = {question: answer for question, answer in self._answers.items() if question in questions}
            self._trouble = self._trouble if questions else ""
            if questions and self._thread is None:
                self._thread = Thread(target=self._run, name="prometheus-gpus", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            if self._patience:
                self._changed.wait_for(self._all_settled, self._patience)

    def observe(self) -> GpuAnswers:
        """Return the last answers; never wait for new ones."""
        with self._changed:
            return GpuAnswers(answers=self._answers, trouble=self._trouble)

    def close(self) -> None:
        """Ask nothing more. A second call does nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _all_settled(self) -> bool:
        return bool(self._trouble) or all(question in self._answers for question in self._questions)

    def _run(self) -> None:
        """Ask rounds of questions until closed; new questions start a round at once."""
        while True:
            with self._changed:
                asked, closing = self._questions, self._closing
            if closing:
                self._server.close()
                return
            start = monotonic()
            self._round(asked)
            with self._changed:
                rest = self._every - (monotonic() - start)
                self._changed.wait_for(partial(self._must_act, asked), max(0.0, rest))

    def _must_act(self, asked: tuple[GpuQuestion, ...]) -> bool:
        return self._closing or self._questions is not asked

    def _round(self, asked: tuple[GpuQuestion, ...]) -> None:
        """Ask each question once, and publish the answers; one that was not answered keeps its last answer."""
        answers: dict[GpuQuestion, GpuAnswer] = {}
        trouble = ""
        for question in asked:
            if self._closing:
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
        with self._changed:
            before = self._idle()
            kept = {question: self._answers[question] for question in self._questions if question in self._answers}
            self._answers = {**kept, **{each: answers[each] for each in self._questions if each in answers}}
            news = (self._idle(), trouble) != (before, self._trouble)
            self._trouble = trouble if self._questions else ""
            self._changed.notify_all()
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
