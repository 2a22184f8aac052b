"""Questions to services outside, and their answers: what the signals `prometheus` and `slurm` share.

From the answer to replicas, and since when so many have been asked for. Of what an answer is made only its kind of
signal knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

from reconciler.errors import InvalidInput
from reconciler.model.bounds import ASKED_REPLICAS
from reconciler.model.ids import WorkloadId
from reconciler.model.signal import DemandLevel, Foresight, ReplicaRequest, SignalFreshness

A = TypeVar("A")
"""The answers of a service."""

MOST = ASKED_REPLICAS.most
"""Replicas that an answer may come to."""


class SourcedSignal(ABC, Generic[A]):
    """A signal that a service outside tells (a `model.signal.Signal`)."""

    __slots__ = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the signal in commits, tables and messages."""

    @property
    @abstractmethod
    def source(self) -> str:
        """The service that is asked."""

    @abstractmethod
    def replicas_for(self, answer: A) -> int:
        """Count the replicas that an answer comes to. Raises InvalidInput for an answer that comes to no number."""

    @abstractmethod
    def lasting(self, answer: A, past: A | None, since: datetime) -> int:
        """Count the replicas that have surely been missing since a moment.

        `past` is the answer to the question about the time since then, None if unknown.
        """

    @abstractmethod
    def cause(self, answer: A) -> str:
        """Describe an answer in a clause that follows the label."""

    def asks(self, now: datetime) -> tuple[ReplicaRequest, ...]:
        """Return nothing: the service tells."""
        del now
        return ()

    @property
    def looks_back(self) -> timedelta:
        """Zero: nothing is foreseen."""
        return timedelta()

    def foresees(self, levels: tuple[DemandLevel, ...], missing: int, now: datetime) -> Foresight:
        """Foresee nothing."""
        del levels, missing, now
        return Foresight(request=None, statement="")

    def next_change(self, now: datetime) -> datetime | None:
        """Return None: the time alone changes nothing."""
        del now
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[A]):
    """A question about one workload."""

    workload: WorkloadId
    policy: str
    signal: SourcedSignal[A]
    text: str
    """What is sent. Several workloads may share it."""
    past: str
    """What is sent to learn about the whole window, for a question without earlier answers; may be empty."""
    window: timedelta
    """How long an answer must hold before replicas are placed because of it."""


class SignalLevel(NamedTuple):
    """At least so many replicas have been asked for since a moment."""

    since: datetime
    replicas: int


def update_levels(
    levels: tuple[SignalLevel, ...], replicas: int, at: datetime, watched: datetime
) -> tuple[SignalLevel, ...]:
    """Add the number of replicas that is asked for at a moment to the levels that were reached before.

    The levels are in the order of their replicas, the earliest the lowest; a level above `replicas` is dropped. Of
    levels that have lasted since before `watched` the highest is kept, since nothing waits for longer than that.
    """
    since = at
    reached = list(levels)
    while reached and reached[-1].replicas >= replicas:
        since = reached.pop().since
    if replicas:
        reached.append(SignalLevel(since=since, replicas=replicas))
    lasting = [level for level in reached if level.since <= watched]
    return (*lasting[-1:], *(level for level in reached if level.since > watched))


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedQuestion(Generic[A]):
    """A question, its last answer, and since when the answers have come to which number of replicas.

    Without a new answer the last one stays, and grows old.
    """

    question: Question[A]
    at: datetime | None = None
    """When the question was last answered; None before the first answer."""
    cause: str = ""
    """What the last answer says."""
    levels: tuple[SignalLevel, ...] = ()
    trouble: str = ""
    """Why the newest answer is of no use, if it is not."""

    def is_watched(self, now: datetime, max_age: timedelta) -> bool:
        """Return whether the last answer is young enough for the next one to continue its levels."""
        return self.at is not None and timedelta() <= now - self.at <= max_age

    def answered(
        self, answer: A | InvalidInput, past: A | None, now: datetime, max_age: timedelta
    ) -> WatchedQuestion[A]:
        """Return the question with a new answer.

        `past` is the answer about the window, None if unknown; it counts where no last answer can be continued.
        """
        signal, window_start = self.question.signal, now - self.question.window
        try:
            if isinstance(answer, InvalidInput):
                raise answer
            number = signal.replicas_for(answer)
        except InvalidInput as error:
            return replace(self, trouble=str(error))
        levels = self.levels
        if not self.is_watched(now, max_age):
            lasting = signal.lasting(answer, past, window_start)
            levels = (SignalLevel(since=window_start, replicas=lasting),) if lasting else ()
        levels = update_levels(levels, number, now, window_start)
        return WatchedQuestion(question=self.question, at=now, cause=signal.cause(answer), levels=levels)

    def freshness(self, server_trouble: str) -> SignalFreshness:
        """Return when the question was last answered; `server_trouble` keeps all questions from being answered."""
        return SignalFreshness(signal=self.question.signal.label, at=self.at, trouble=self.trouble or server_trouble)

    def asks(self) -> tuple[ReplicaRequest, ...]:
        """Return the replicas that are asked for, each level since it was reached."""
        return tuple(
            ReplicaRequest(
                signal=self.question.signal.label,
                replicas=level.replicas,
                since=level.since,
                cause=self.cause,
                beyond=False,
            )
            for level in self.levels
        )
