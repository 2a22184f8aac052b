"""What Prometheus answers, and what it comes to in replicas.

The format is that of ``/api/v1/query`` (https://prometheus.io/docs/prometheus/latest/querying/api/). No answer is not
an answer of nothing: a series that is missing may be one whose source is down.

What is known of one question to Prometheus: the last answer, and since when it has come to which number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import NamedTuple

from reconciler.core.expressions.promql import PrometheusQuestion
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaRequest, SignalFreshness
from reconciler.model.policy import Query
from reconciler.model.workload import Json

MOST = 100_000
"""Replicas that an answer may come to; a queue of a billion asks for no more than every cluster has."""


class SignalLevel(NamedTuple):
    """Since when at least so many replicas have been asked for."""

    since: datetime
    replicas: int


def value(answer: Json) -> float:
    """Read the one value of a successful answer. Raises InvalidInput that says what to change in the query."""
    data = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(data, Mapping) or answer.get("status") != "success":
        raise InvalidInput("the answer is not Prometheus's")
    kind, result = data.get("resultType"), data.get("result")
    if kind == "scalar":
        return _number(result)
    if kind != "vector" or not isinstance(result, list):
        raise InvalidInput(f"the answer is a {kind}, not one value (try rate(...), or another query)")
    if not result:
        raise InvalidInput("the answer is empty: is the metric there? (try '... or vector(0)' if nothing means 0)")
    if len(result) > 1:
        raise InvalidInput(f"the answer is {len(result)} series, not one (try sum(...))")
    if not isinstance(result[0], Mapping) or "value" not in result[0]:
        raise InvalidInput("the answer is a histogram, not one value (try histogram_quantile(0.95, ...))")
    return _number(result[0]["value"])


def refusal(answer: Json) -> str:
    """Read why Prometheus did not answer; empty where the answer is none of its own."""
    if not isinstance(answer, Mapping) or answer.get("status") != "error":
        return ""
    return f"{answer.get('errorType', 'error')}: {answer.get('error', '')}"


def replicas(query: Query, number: float) -> int:
    """Count the replicas that a value comes to. Raises InvalidInput for a number that cannot be shared out.

    NaN is not above anything: it is what a mean over no requests at all comes to.
    """
    if query.above is not None:
        return query.replicas if number > query.above else 0
    if not math.isfinite(number):
        raise InvalidInput(f"the answer is {number}, which cannot be divided by replicas")
    return math.ceil(max(0.0, min(float(MOST), number / (query.per_replica or 1))))


def _number(sample: Json) -> float:
    """Read a sample: its time, and its value as a text, since JSON has no NaN."""
    try:
        return float(sample[1])
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InvalidInput("the answer is not Prometheus's") from error


def lasting(text: str, window: timedelta) -> str:
    """Write the query for the least value that another one has had throughout a window.

    It spares whoever asks for the first time the wait for what Prometheus has watched already. The inner query stands
    on lines of its own, since it may end in a comment.
    """
    seconds = int(window.total_seconds())
    return f"min_over_time((\n{text}\n)[{seconds}s:{max(1, seconds // 4)}s])"


def cause(query: Query, number: float) -> str:
    """Say what a value is held against, as a clause that follows the signal's name."""
    if query.above is not None:
        return f"is {number:.4g}, above {query.above:.4g}"
    return f"is {number:.4g}, and a replica takes {query.per_replica:.4g}"


def risen(levels: tuple[SignalLevel, ...], now: int, at: datetime, watched: datetime) -> tuple[SignalLevel, ...]:
    """Add the present number of replicas to since when each lower number has been asked for.

    The levels are in the order of their replicas, the earliest the lowest; what is asked for no longer is forgotten. Of
    those that have lasted since before `watched` the highest is kept, since nothing waits for longer than that.
    """
    since = at
    kept = list(levels)
    while kept and kept[-1].replicas >= now:
        since = kept.pop().since
    if now:
        kept.append(SignalLevel(since=since, replicas=now))
    lasting = [level for level in kept if level.since <= watched]
    return (*lasting[-1:], *(level for level in kept if level.since > watched))


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
