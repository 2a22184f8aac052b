"""A plan as Markdown: the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, takewhile

from reconciler.cli import printing
from reconciler.cli.actions.plans.rows import plan_rows
from reconciler.core.commits.templates import written
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.cost.rate import hourly_rate
from reconciler.daemon.reconcile import PassDecision
from reconciler.errors import Problem, Severity
from reconciler.model.ids import ClusterName
from reconciler.model.ledger import Drift
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Extend, Move, Resize, Restore, Revert
from reconciler.model.policy import Cluster
from reconciler.text.markdown import code, escaped, row, table
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

MARKER = "<!-- overspill plan -->"
"""The first line, by which a workflow finds the comment that it keeps up to date."""
_MOST_LINES = 100
"""Rows of a table, or problems."""
_QUESTIONS, _COMMITS, _HELD_BACK, _PROBLEMS = 2_000, 24_000, 15_000, 15_000
"""Most characters of each part; with its headings the whole stays below 60,000. A comment of GitHub holds 65,536."""


def markdown_plan(decision: PassDecision, rendered: RenderedPlan, supposed: Sequence[str]) -> str:
    """Return a plan with its money, what is held back, and the problems of the files."""
    return "\n".join(_lines(decision, rendered, supposed)) + "\n"


def _lines(decision: PassDecision, rendered: RenderedPlan, supposed: Sequence[str]) -> Iterator[str]:
    yield MARKER
    commits, held = count(len(rendered.commits), "commit"), len(rendered.suppressed)
    yield f"### Overspill plan: {commits}, {held} held back"
    yield ""
    yield from _fitting([f"{escaped(question)}\n" for question in supposed], _QUESTIONS, "{}\n")
    yield from _changes(rendered)
    if cost := money(rendered.changes, decision.inputs.desired.clusters, decision.inputs.now):
        yield cost
        yield ""
    if rendered.suppressed:
        yield "<details><summary>Held back</summary>"
        yield ""
        rows = [
            (code(str(entry.workload)), str(entry.reason), str(entry.replicas or ""), escaped(entry.message))
            for entry in rendered.suppressed
        ]
        yield _table(("workload", "reason", "replicas", "why"), rows, _HELD_BACK)
        yield ""
        yield "</details>"
        yield ""
    yield from _problems((*decision.problems, *rendered.problems))
    source = str(decision.tips.source or "")[:12]
    yield f"Of {code(source)}, as the clusters were seen at {format_time(decision.inputs.now)}."


def _changes(rendered: RenderedPlan) -> Iterator[str]:
    if not rendered.commits:
        yield "Nothing to change."
        yield ""
        return
    rows = []
    for action, workload, _, cluster, replicas, until, why in plan_rows(rendered):
        cells = (workload, cluster, replicas, until)
        rows.append((escaped(str(action)), *(escaped(printing.cell(cell)) for cell in (*cells, why))))
    yield _table(("", "workload", "cluster", "replicas", "until", "why"), rows, _COMMITS)
    yield ""


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]], most: int) -> str:
    """Return a table whose rows have at most the given number of characters."""
    empty = ("",) * (len(headers) - 1)
    return "\n".join([table(headers, []), *_fitting([row(cells) for cells in rows], most, row(("{}", *empty)))])


def _fitting(lines: Sequence[str], most: int, rest: str) -> Iterator[str]:
    """Yield the first lines, as many as fit, and how many more there are, in the form of `rest`."""
    ends = accumulate(len(line) + 1 for line in lines[:_MOST_LINES])
    fitting = sum(1 for _ in takewhile(lambda end: end <= most, ends))
    yield from lines[:fitting]
    if fitting < len(lines):
        yield rest.format(f"and {len(lines) - fitting} more")


def money(changes: Sequence[Change], clusters: Mapping[ClusterName, Cluster], moment: datetime) -> str:
    """Say how many GPUs more or fewer would run elsewhere, and what they cost; nothing where neither changes."""
    before, after = (hourly_rate(placements, clusters, moment) for placements in (_before(changes), _after(changes)))
    change = after.minus(before)
    cents = round(change.dollars * 100)
    if not (change.gpus or cents or change.unpriced_gpus):
        return ""
    gpus = f"**{change.gpus:+d} GPUs** elsewhere" if change.gpus else ""
    if not change.priced:
        return f"{gpus}; their clusters have no price"
    sign = "-" if cents < 0 else "+" if cents else ""
    dollars = f"{sign}${abs(cents) / 100:.2f} an hour"
    unpriced = f"; {change.unpriced_gpus:+d} GPUs without a price" if change.unpriced_gpus else ""
    return (f"{gpus}, {dollars}" if gpus else f"**{dollars}** elsewhere") + unpriced


def _before(changes: Sequence[Change]) -> Iterator[Placement]:
    """Yield the placements that changes end or replace."""
    for change in changes:
        match change:
            case Resize(before=placement) | Move(before=placement) | Extend(before=placement):
                yield placement
            case Revert(placement=placement) | Restore(drifted=Drift(placement=placement)):
                yield placement


def _after(changes: Sequence[Change]) -> Iterator[Placement]:
    """Yield the placements that changes write."""
    for change in changes:
        placement = written(change)
        if placement is not None:
            yield placement


def _problems(problems: Sequence[Problem]) -> Iterator[str]:
    """List the errors and warnings of files and clusters."""
    if not problems:
        return
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    yield f"<details><summary>{count(errors, 'error')}, {count(len(problems) - errors, 'warning')}</summary>"
    yield ""
    lines = [
        f"- {'error' if problem.severity is Severity.ERROR else 'warning'}: {escaped(str(problem))}"
        for problem in sorted(problems, key=lambda problem: (problem.severity is not Severity.ERROR, problem))
    ]
    yield from _fitting(lines, _PROBLEMS, "- {}")
    yield ""
    yield "</details>"
    yield ""
