"""Numbers that Prometheus tells: the signal `prometheus` of a BurstPolicy.

From the query to the question about one workload, and from the answer to replicas. The format of answers is that of
``/api/v1/query`` (https://prometheus.io/docs/prometheus/latest/querying/api/). A missing answer is not an answer of
zero: the source of a missing series may be down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from jinja2 import TemplateError

from reconciler.bulkhead import Seam, attempt
from reconciler.core.expressions import dialect, sandbox
from reconciler.core.expressions.work import SHORT_WORK, EvaluationBudget
from reconciler.core.signals.question import MOST, Question, SourcedSignal
from reconciler.errors import Bug, InvalidInput, Problem, Severity
from reconciler.model.policy import Desired
from reconciler.model.workload import Json, WorkloadTemplate
from reconciler.text.findings import shortened

_SAMPLE = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?(?:[eE][+-]?[0-9]{1,4})?|Inf)|NaN")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:/-]")
_FAILURES = (TemplateError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, AttributeError)
"""Errors that an expression which passed every check may still raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(SourcedSignal[float]):
    """A query to Prometheus, and the replicas that its value comes to.

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

    def replicas_for(self, answer: float) -> int:
        """Count the replicas that a value comes to. Raises InvalidInput for a number that cannot be divided.

        NaN is above nothing: a mean over no requests at all is NaN.
        """
        if self.above is not None:
            return self.replicas if answer > self.above else 0
        if not math.isfinite(answer):
            raise InvalidInput(f"the answer is {answer}, which cannot be divided by replicas")
        return math.ceil(max(0.0, min(float(MOST), answer / (self.per_replica or 1))))

    def lasting(self, answer: float, past: float | None, since: datetime) -> int:
        """Count the replicas of the least value throughout the window, `past`."""
        del answer, since
        return 0 if past is None or not math.isfinite(past) else self.replicas_for(past)

    def cause(self, answer: float) -> str:
        """Compare a value with its limit, in a clause that follows the label."""
        if self.above is not None:
            return f"is {answer:.4g}, above {self.above:.4g}"
        return f"is {answer:.4g}, and a replica takes {self.per_replica:.4g}"


# Queries


def past_of(text: str, window: timedelta) -> str:
    """Write the query for the least value throughout a window; empty where no window has to pass.

    The text stands on lines of its own, since it may end in a comment.
    """
    if not window:
        return ""
    seconds = int(window.total_seconds())
    return f"min_over_time((\n{text}\n)[{seconds}s:{max(1, seconds // 4)}s])"


def questions(desired: Desired) -> tuple[tuple[Question[float], ...], tuple[Problem, ...]]:
    """List the questions about every workload that may burst, and the queries whose expressions fail."""
    asked: list[Question[float]] = []
    problems: list[Problem] = []
    for workload, policy in desired.policies.items():
        template = desired.templates[workload]
        variables = _variables(template)
        for query in policy.signals if template.ref is not None else ():
            if not isinstance(query, Query):
                continue
            try:
                text = attempt(
                    Seam.SIGNAL, f"{workload}: {query.label}", partial(_evaluate_query, query.text, variables)
                )
            except InvalidInput as error:
                message = f"{query.label} cannot be asked for {workload}: {error}"
                problems.append(Problem(path=f"policy {policy.name}", message=message, severity=Severity.WARNING))
                continue
            if isinstance(text, Bug):
                problems.append(text.problem(text.item, severity=Severity.WARNING))
            else:
                asked.append(
                    Question(
                        workload=workload,
                        policy=policy.name,
                        signal=query,
                        text=text,
                        past=past_of(text, policy.scale_up_window),
                        window=policy.scale_up_window,
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


def _variables(template: WorkloadTemplate) -> Mapping[str, Any]:
    """Return the names of a workload that queries read, with one budget for all queries about it."""
    if template.ref is None:
        return {}
    names: Mapping[str, str] = {
        "namespace": template.ref.namespace,
        "name": template.ref.name,
        "template": str(template.name),
        "workspace": str(template.workspace),
    }
    return sandbox.spec_variables({name: quoted(value) for name, value in names.items()}, EvaluationBudget(SHORT_WORK))


def _evaluate_query(text: str, variables: Mapping[str, Any]) -> str:
    """Evaluate a query; raises InvalidInput where an expression fails that passed every check."""
    try:
        return _evaluate(text, variables)
    except _FAILURES as error:
        raise InvalidInput(shortened(str(error), 300)) from error


def _evaluate(text: str, variables: Mapping[str, Any]) -> str:
    """Evaluate the expressions of a query with the names of a workload."""
    if not dialect.has_expression(text):
        return text
    if faults := dialect.read_expression(
        text, dialect.QUERY
    ).faults:  # an unchecked expression may not run, wherever it came from
        raise ValueError(faults[0].message)
    query: Json = sandbox.evaluate(text, variables)
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
        met = shortened(str(kind), 40)
        raise InvalidInput(f"the answer is a {met}, not one value (try rate(...), or another query)")
    if not result:
        raise InvalidInput("the answer is empty: is the metric there? (try '... or vector(0)' if nothing means 0)")
    if len(result) > 1:
        raise InvalidInput(f"the answer is {len(result)} series, not one (try sum(...))")
    if not isinstance(result[0], Mapping) or "value" not in result[0]:
        raise InvalidInput("the answer is a histogram, not one value (try histogram_quantile(0.95, ...))")
    return _number(result[0]["value"])


def answer_series(answer: Json) -> tuple[tuple[Mapping[str, str], float], ...]:
    """Read each series of a successful answer, its labels and its value. Raises InvalidInput for any other answer."""
    data = answer.get("data") if isinstance(answer, Mapping) else None
    result = data.get("result") if isinstance(data, Mapping) and data.get("resultType") == "vector" else None
    if not isinstance(result, list) or not all(
        isinstance(series, Mapping) and _are_labels(series.get("metric")) for series in result
    ):
        raise InvalidInput("the answer is not Prometheus's")
    return tuple((series["metric"], _number(series.get("value"))) for series in result)


def _are_labels(metric: Json) -> bool:
    return isinstance(metric, Mapping) and all(isinstance(value, str) for value in metric.values())


def answer_error(answer: Json) -> str:
    """Read why Prometheus refused a query; empty where the answer is not in Prometheus's format."""
    if not isinstance(answer, Mapping) or answer.get("status") != "error":
        return ""
    return f"{answer.get('errorType', 'error')}: {answer.get('error', '')}"


def _number(sample: Json) -> float:
    """Read a sample: its time, and its value as a text, since JSON has no NaN."""
    text = sample[1] if isinstance(sample, list) and len(sample) > 1 else None
    if not isinstance(text, str) or _SAMPLE.fullmatch(text) is None:
        raise InvalidInput("the answer is not Prometheus's")
    return float(text)
