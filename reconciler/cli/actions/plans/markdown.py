"""A plan as Markdown: the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.cli import printing
from reconciler.cli.actions.plans.rows import plan_rows
from reconciler.core.commits.templates import written
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.cost.rate import HourlyRate, hourly_rate
from reconciler.daemon.reconcile import PassDecision
from reconciler.errors import Problem, Severity
from reconciler.model.ledger import Drift
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Extend, Move, Resize, Restore, Revert
from reconciler.text.markdown import code, escaped, table
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

MARKER = "<!-- overspill plan -->"
"""The first line, by which a workflow finds the comment that it keeps up to date."""
_MOST_ROWS = 100
"""Rows of a table: a comment of GitHub holds 65,536 characters."""


def markdown_plan(decision: PassDecision, rendered: RenderedPlan, supposed: Sequence[str]) -> str:
    """Return a plan with its money, what is held back, and the problems of the files."""
    return "\n".join(_lines(decision, rendered, supposed)) + "\n"


def _lines(decision: PassDecision, rendered: RenderedPlan, supposed: Sequence[str]) -> Iterator[str]:
    yield MARKER
    commits, held = count(len(rendered.commits), "commit"), len(rendered.suppressed)
    yield f"### Overspill plan: {commits}, {held} held back"
    yield ""
    yield from (f"{escaped(question)}\n" for question in supposed)
    yield from _changes(rendered)
    if money := _money(decision, rendered):
        yield money
        yield ""
    if rendered.suppressed:
        yield "<details><summary>Held back</summary>"
        yield ""
        rows = [
            (code(str(entry.workload)), str(entry.reason), str(entry.replicas or ""), escaped(entry.message))
            for entry in rendered.suppressed
        ]
        yield _table(("workload", "reason", "replicas", "why"), rows)
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
    yield _table(("", "workload", "cluster", "replicas", "until", "why"), rows)
    yield ""


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that fits into a comment."""
    shown = [*rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        shown.append((f"and {len(rows) - _MOST_ROWS} more", *("",) * (len(headers) - 1)))
    return table(headers, shown)


def _money(decision: PassDecision, rendered: RenderedPlan) -> str:
    """Say how many GPUs more or fewer would run elsewhere, and what they cost; nothing where none would."""
    clusters, now = decision.inputs.desired.clusters, decision.inputs.now
    before = hourly_rate(_before(rendered.changes), clusters, now)
    after = hourly_rate(_after(rendered.changes), clusters, now)
    change = after.minus(before)
    if change == HourlyRate():
        return ""
    more = f"**{change.gpus:+d} GPUs** elsewhere"
    if change.gpus == change.unpriced_gpus:
        return f"{more}; their clusters have no price"
    dollars = f"{'-' if change.dollars < 0 else '+'}${abs(change.dollars):.2f} an hour"
    return f"{more}, {dollars}" + (f"; {change.unpriced_gpus:+d} without a price" if change.unpriced_gpus else "")


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
    for problem in sorted(problems, key=lambda problem: (problem.severity is not Severity.ERROR, problem))[:_MOST_ROWS]:
        yield f"- {'error' if problem.severity is Severity.ERROR else 'warning'}: {escaped(str(problem))}"
    yield ""
    yield "</details>"
    yield ""
