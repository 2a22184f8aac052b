"""What is known of one question to Prometheus: the last answer, and since when it has come to which number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import isfinite

from reconciler.core.answers import SignalLevel, cause, replicas, risen
from reconciler.core.questions import PrometheusQuestion
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaRequest, SignalFreshness


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedQuery:
    """One question as it has been watched so far. Without an answer the last stays what it is, and grows old.

    `at` is when it was last answered, None before; `trouble` why the newest answer is none, if it is.
    """

    question: PrometheusQuestion
    at: datetime | None = None
    value: float = 0
    levels: tuple[SignalLevel, ...] = ()
    trouble: str = ""

    def goes_on(self, now: datetime, max_age: timedelta) -> bool:
        """Tell whether the last answer is young enough for the next one to go on from."""
        return self.at is not None and timedelta() <= now - self.at <= max_age

    def answered(
        self, answer: float | InvalidInput, past: float | None, now: datetime, max_age: timedelta
    ) -> WatchedQuery:
        """Take note of an answer.

        `past` is the least value of the whole window, where it is known; it counts for a watch that has just begun.
        """
        query, window = self.question.query, now - self.question.window
        try:
            if isinstance(answer, InvalidInput):
                raise answer
            number = replicas(query, answer)
        except InvalidInput as error:
            return replace(self, trouble=str(error))
        before = self.levels
        if not self.goes_on(now, max_age):
            lasting = 0 if past is None or not isfinite(past) else replicas(query, past)
            before = (SignalLevel(since=window, replicas=lasting),) if lasting else ()
        return WatchedQuery(question=self.question, at=now, value=answer, levels=risen(before, number, now, window))

    def hearing(self, trouble: str) -> SignalFreshness:
        """Tell when the signal was last heard; `trouble` is what is in the way of all, where nothing is of this one."""
        return SignalFreshness(signal=self.question.query.signal, at=self.at, trouble=self.trouble or trouble)

    def asks(self) -> tuple[ReplicaRequest, ...]:
        """Give what is asked for, each number since it has been."""
        query = self.question.query
        return tuple(
            ReplicaRequest(
                signal=query.signal,
                replicas=level.replicas,
                since=level.since,
                cause=cause(query, self.value),
                beyond=False,
            )
            for level in self.levels
        )
