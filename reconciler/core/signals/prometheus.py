"""Numbers that Prometheus tells: the signal `prometheus` of a BurstPolicy.

From the query to the question about one workload, from the answer to replicas, and since when so many have been asked
for. The format of answers is that of ``/api/v1/query`` (https://prometheus.io/docs/prometheus/latest/querying/api/). A
missing answer is not an answer of zero: the source of a missing series may be down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from jinja2 import TemplateError

from reconciler.bulkhead import Seam, attempt
from reconciler.core.expressions import dialect, sandbox
from reconciler.errors import Bug, InvalidInput, Problem, Severity
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.signal import DemandLevel, Foresight, ReplicaRequest, SignalFreshness
from reconciler.model.workload import Json, WorkloadTemplate
from reconciler.text.findings import shortened

MOST = 100_000
"""Replicas that an answer may come to; a queue of a billion asks for no more than every cluster has."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:/-]")
_FAILURES = (TemplateError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, AttributeError)
"""Errors that an expression which passed every check may still raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query to Prometheus, and the replicas that its value comes to (a `model.signal.Signal`).

    Either `per_replica` is set, or `above` and `replicas` are.
    """

    name: str
    text: str
    """PromQL, which may hold expressions that name the workload."""
    per_replica: float | None = None
    """How much of the value one replica takes."""
    above: float | None = None
    """The value above which `replicas` are missing."""
    replicas: int = 0

    @property
    def label(self) -> str:
        """Name of the signal in commits, tables and messages."""
        return f"prometheus {self.name}"

    @property
    def source(self) -> str:
        """The service that is asked."""
        return "Prometheus"

    def asks(self, now: datetime) -> tuple[ReplicaRequest, ...]:
        """Return nothing: Prometheus tells."""
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

    def replicas_for(self, value: float) -> int:
        """Count the replicas that a value comes to. Raises InvalidInput for a number that cannot be divided.

        NaN is above nothing: a mean over no requests at all is NaN.
        """
        if self.above is not None:
            return self.replicas if value > self.above else 0
        if not math.isfinite(value):
            raise InvalidInput(f"the answer is {value}, which cannot be divided by replicas")
        return math.ceil(max(0.0, min(float(MOST), value / (self.per_replica or 1))))

    def cause(self, value: float) -> str:
        """Compare a value with its limit, in a clause that follows the label."""
        if self.above is not None:
            return f"is {value:.4g}, above {self.above:.4g}"
        return f"is {value:.4g}, and a replica takes {self.per_replica:.4g}"


# Queries


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusQuestion:
    """A query about one workload."""

    workload: WorkloadId
    policy: str
    query: Query
    text: str
    """The query text. Several workloads may share it."""
    window: timedelta
    """How long an answer must hold before replicas are placed because of it."""

    @property
    def past(self) -> str:
        """Query for the least value throughout the window, for a question without earlier answers.

        Empty where no window has to pass. The text stands on lines of its own, since it may end in a comment.
        """
        if not self.window:
            return ""
        seconds = int(self.window.total_seconds())
        return f"min_over_time((\n{self.text}\n)[{seconds}s:{max(1, seconds // 4)}s])"


def queries_of(policy: BurstPolicy) -> tuple[Query, ...]:
    """Return the queries among the signals of a policy."""
    return tuple(signal for signal in policy.signals if isinstance(signal, Query))


def questions(desired: Desired) -> tuple[tuple[PrometheusQuestion, ...], tuple[Problem, ...]]:
    """List the questions about every workload that may burst, and the queries whose expressions fail."""
    asked: list[PrometheusQuestion] = []
    problems: list[Problem] = []
    for workload, policy in desired.policies.items():
        template = desired.templates[workload]
        for query in queries_of(policy) if template.ref is not None else ():
            try:
                text = attempt(
                    Seam.SIGNAL, f"{workload}: {query.label}", partial(_evaluate_query, query.text, template)
                )
            except InvalidInput as error:
                message = f"{query.label} cannot be asked for {workload}: {error}"
                problems.append(Problem(path=f"policy {policy.name}", message=message, severity=Severity.WARNING))
                continue
            if isinstance(text, Bug):
                problems.append(text.problem(text.item, severity=Severity.WARNING))
            else:
                asked.append(
                    PrometheusQuestion(
                        workload=workload, policy=policy.name, query=query, text=text, window=policy.scale_up_window
                    )
                )
    return tuple(asked), tuple(problems)


def quoted(text: str) -> str:
    r"""Escape a text so that it can stand within any of PromQL's quotes and ends none of them.

    Names as Kubernetes has them stay as they are. Other characters become Go's ``\u`` escapes, which double and single
    quotes read alike.
    """
    return _UNSAFE.sub(lambda match: _escape(match[0]), text)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - what \u can say


def _evaluate_query(text: str, template: WorkloadTemplate) -> str:
    """Evaluate a query; raises InvalidInput where an expression fails that passed every check."""
    try:
        return _evaluate(text, template)
    except _FAILURES as error:
        raise InvalidInput(shortened(str(error), 300)) from error


def _evaluate(text: str, template: WorkloadTemplate) -> str:
    """Evaluate the expressions of a query with the names of a workload."""
    if not dialect.has_expression(text) or template.ref is None:
        return text
    if faults := dialect.read_expression(
        text, dialect.QUERY
    ).faults:  # an unchecked expression may not run, wherever it came from
        raise ValueError(faults[0].message)
    names: Mapping[str, str] = {
        "namespace": template.ref.namespace,
        "name": template.ref.name,
        "template": str(template.name),
        "workspace": str(template.workspace),
    }
    query: Json = sandbox.evaluate(text, sandbox.spec_variables({name: quoted(value) for name, value in names.items()}))
    if not isinstance(query, str) or not query.strip():
        raise ValueError("the expression gives no text")
    return query


# Answers


def answer_value(answer: Json) -> float:
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


def answer_error(answer: Json) -> str:
    """Read why Prometheus refused a query; empty where the answer is not in Prometheus's format."""
    if not isinstance(answer, Mapping) or answer.get("status") != "error":
        return ""
    return f"{answer.get('errorType', 'error')}: {answer.get('error', '')}"


def _number(sample: Json) -> float:
    """Read a sample: its time, and its value as a text, since JSON has no NaN."""
    try:
        return float(sample[1])
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InvalidInput("the answer is not Prometheus's") from error


# Since when it is answered


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
class WatchedQuery:
    """A question, its last answer, and since when the answers have come to which number of replicas.

    Without a new answer the last one stays, and grows old.
    """

    question: PrometheusQuestion
    at: datetime | None = None
    """When the question was last answered; None before the first answer."""
    value: float = 0
    levels: tuple[SignalLevel, ...] = ()
    trouble: str = ""
    """Why the newest answer is of no use, if it is not."""

    def is_watched(self, now: datetime, max_age: timedelta) -> bool:
        """Tell whether the last answer is young enough for the next one to continue its levels."""
        return self.at is not None and timedelta() <= now - self.at <= max_age

    def answered(
        self, answer: float | InvalidInput, past: float | None, now: datetime, max_age: timedelta
    ) -> WatchedQuery:
        """Return the question with a new answer.

        `past` is the least value throughout the window, None if unknown; it counts where no last answer can
        be continued.
        """
        query, window_start = self.question.query, now - self.question.window
        try:
            if isinstance(answer, InvalidInput):
                raise answer
            number = query.replicas_for(answer)
        except InvalidInput as error:
            return replace(self, trouble=str(error))
        levels = self.levels
        if not self.is_watched(now, max_age):
            lasting = 0 if past is None or not math.isfinite(past) else query.replicas_for(past)
            levels = (SignalLevel(since=window_start, replicas=lasting),) if lasting else ()
        levels = update_levels(levels, number, now, window_start)
        return WatchedQuery(question=self.question, at=now, value=answer, levels=levels)

    def freshness(self, server_trouble: str) -> SignalFreshness:
        """Return when the question was last answered; `server_trouble` keeps all questions from being answered."""
        return SignalFreshness(signal=self.question.query.label, at=self.at, trouble=self.trouble or server_trouble)

    def asks(self) -> tuple[ReplicaRequest, ...]:
        """Return the replicas that are asked for, each level since it was reached."""
        query = self.question.query
        return tuple(
            ReplicaRequest(
                signal=query.label,
                replicas=level.replicas,
                since=level.since,
                cause=query.cause(self.value),
                beyond=False,
            )
            for level in self.levels
        )
