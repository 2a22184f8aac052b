"""What Prometheus is asked for the sake of which workload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from jinja2 import TemplateError

from reconciler.core.expressions import dialect, sandbox
from reconciler.errors import Problem, Severity
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired, Query
from reconciler.model.workload import Json, WorkloadTemplate
from reconciler.text.findings import shortened

_UNSAFE = re.compile(r"[^A-Za-z0-9_.:/-]")
_FAILURES = (TemplateError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, AttributeError)
"""What an expression that passed every check may still raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusQuestion:
    """One query about one workload. `text` is what is sent; several workloads may share it.

    `window` is for how long an answer must hold before anything is placed because of it.
    """

    workload: WorkloadId
    policy: str
    query: Query
    text: str
    window: timedelta


def questions(desired: Desired) -> tuple[tuple[PrometheusQuestion, ...], tuple[Problem, ...]]:
    """List the questions of every workload that may burst, and the queries that cannot be put."""
    asked: list[PrometheusQuestion] = []
    problems: list[Problem] = []
    for workload, policy in desired.policies.items():
        template = desired.templates[workload]
        for query in policy.queries if template.ref is not None else ():
            try:
                text = _filled(query.text, template)
            except _FAILURES as error:
                message = f"{query.signal} cannot be asked for {workload}: {shortened(str(error), 300)}"
                problems.append(Problem(path=f"policy {policy.name}", message=message, severity=Severity.WARNING))
            else:
                asked.append(
                    PrometheusQuestion(
                        workload=workload, policy=policy.name, query=query, text=text, window=policy.scale_up_window
                    )
                )
    return tuple(asked), tuple(problems)


def quoted(text: str) -> str:
    r"""Write a text as it may stand within any of PromQL's quotes, and as what ends none of them.

    Names as Kubernetes has them stay what they are. Anything else becomes Go's ``\u`` escapes, which double and single
    quotes read alike, and which leave nothing that could end them.
    """
    return _UNSAFE.sub(lambda match: _escaped(match[0]), text)


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - what \u can say


def _filled(text: str, template: WorkloadTemplate) -> str:
    """Put the workload's names into a query."""
    if not dialect.has_expression(text) or template.ref is None:
        return text
    if faults := dialect.read(text, dialect.QUERY).faults:  # what has not passed may not run, wherever it came from
        raise ValueError(faults[0].message)
    names: Mapping[str, str] = {
        "namespace": template.ref.namespace,
        "name": template.ref.name,
        "template": str(template.name),
        "workspace": str(template.workspace),
    }
    made: Json = sandbox.run(text, sandbox.variables({name: quoted(value) for name, value in names.items()}))
    if not isinstance(made, str) or not made.strip():
        raise ValueError("the expression gives no text")
    return made
