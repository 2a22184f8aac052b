"""`plan`: the commits that `run` would make, as a table, as a patch or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from reconciler import app
from reconciler.cli import options, printing
from reconciler.cli.actions.diff import patch
from reconciler.cli.actions.visibility import warn_of_old_observations, warn_without_observations
from reconciler.core.commits import message_parts
from reconciler.core.commits.messages import held, reason_clause
from reconciler.core.commits.templates import written
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.explain.workload import describe_injection
from reconciler.daemon.reconcile import View, draft
from reconciler.errors import Problem
from reconciler.forecast import view_at
from reconciler.model.ledger import Drift
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import (
    Change,
    Extend,
    Hold,
    Move,
    Place,
    Release,
    RequestChange,
    Resize,
    Restore,
    Revert,
    Shortage,
    Suppressed,
)
from reconciler.model.tree import Commit
from reconciler.ports import Repository
from reconciler.settings import Settings
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, count


def plan(settings: Settings, at: datetime | None, *, as_diff: bool, form: options.Output) -> None:
    """Print the commits that `run` would make, and the replicas that are held back."""
    with app.connected(settings) as (world, memory):
        view, rendered = draft(world, view_at(world, memory, at))
        files = _before(world.repository, view, rendered.commits) if as_diff else {}
    if as_diff and form != "json":
        click.echo(patch(rendered.commits, files), nl=False)
    else:
        print_plan(view, rendered, form)
    warn_without_observations(settings)
    warn_of_old_observations(settings, rendered.suppressed)
    if printing.problems(problems_of(view)):
        raise click.exceptions.Exit(1)


def print_plan(view: View, rendered: RenderedPlan, form: options.Output, *, empty: str = "Nothing to change.") -> None:
    """Print the commits of a plan and the replicas that are held back, as tables or as JSON."""
    if form == "json":
        printing.json_out(plan_document(view, rendered))
    else:
        _tables(view, rendered, empty)


def plan_document(view: View, rendered: RenderedPlan) -> dict[str, object]:
    """Return a plan for JSON: every commit with its files, the suppressed replicas, and the problems."""
    first = len(rendered.commits) - len(rendered.changes)
    changes: list[Change | None] = [*([None] * first), *rendered.changes]
    return {
        "at": view.now,
        "source": view.tips.source,
        "output": view.tips.output,
        "commits": [
            {
                "subject": commit.message.partition("\n")[0],
                "message": commit.message,
                "author": commit.author,
                "at": commit.at,
                "removes": commit.removes,
                "writes": commit.writes,
                "change": change,
                "notes": [*_notes(view, change)],
            }
            for commit, change in zip(rendered.commits, changes, strict=True)
        ],
        "suppressed": rendered.suppressed,
        "problems": problems_of(view),
        "wakeAt": view.plan.wake_at,
    }


def problems_of(view: View) -> tuple[Problem, ...]:
    """Return the problems of the files of both branches and of the observations."""
    return (*view.desired.problems, *view.ledger.problems, *view.observed.problems)


def print_suppressed(suppressed: Sequence[Suppressed]) -> None:
    """Print the replicas that are held back with the reasons, and the clusters that were refused."""
    if not suppressed:
        return
    printing.heading("Held back")
    rows = [(entry.workload, entry.reason, entry.replicas or None, entry.until, entry.message) for entry in suppressed]
    printing.table(("WORKLOAD", "REASON", "REPLICAS", "UNTIL", "WHY"), rows)
    refusals = [(entry.workload, refusal) for entry in suppressed for refusal in entry.refusals]
    if refusals:
        printing.heading("Refused clusters")
        printing.table(
            ("WORKLOAD", "CLUSTER", "REASON", "WHY", "WHAT WOULD CHANGE IT"),
            [
                (workload, refusal.where, refusal.reason, refusal.message, refusal.remedy)
                for workload, refusal in refusals
            ],
        )


def _tables(view: View, rendered: RenderedPlan, empty: str) -> None:
    headers = ("ACTION", "WORKLOAD", "PLACEMENT", "CLUSTER", "REPLICAS", "UNTIL", "WHY")
    first = rendered.commits[: len(rendered.commits) - len(rendered.changes)]
    rows = [*map(_beginning, first), *map(_row, rendered.changes)]
    printing.table(headers, rows, empty=empty)
    _subsets(view, rendered)
    print_suppressed(rendered.suppressed)
    counts = [count(len(rendered.commits), "commit"), f"{len(rendered.suppressed)} held back"]
    if view.plan.wake_at is not None:
        counts.append(f"the next look is due at {format_time(view.plan.wake_at)}")
    click.echo()
    printing.sentence(f"At {format_time(view.now)}: {', '.join(counts)}.")


def _subsets(view: View, rendered: RenderedPlan) -> None:
    """Print the changes of subsets to the pods of placements that are written."""
    rows = [
        (placement.workload, placement.name, placement.where, note)
        for change in rendered.changes
        for note in _notes(view, change)
        if (placement := written(change)) is not None
    ]
    if rows:
        printing.heading("Pods of subsets")
        printing.table(("WORKLOAD", "PLACEMENT", "CLUSTER", "WHAT IS CHANGED"), list(dict.fromkeys(rows)))


def _notes(view: View, change: Change | None) -> Iterator[str]:
    """Yield the changes of a subset to the pods of the placement that a change writes."""
    placement = None if change is None else written(change)
    if placement is not None:
        yield from describe_injection(view.desired, placement)


def _beginning(commit: Commit) -> tuple[object, ...]:
    """Return the row of a commit before any change: it begins a branch or a directory, which its subject names."""
    return ("Start", None, None, None, None, None, commit.message.partition("\n")[0].partition(": ")[2])


def _row(change: Change) -> tuple[object, ...]:
    """Return the row of a change."""
    if isinstance(change, RequestChange):
        return _request_row(change)
    cells: tuple[object, ...]
    match change:
        case Place(placement=placement, shortage=None, choice=choice, detail=detail):
            cells = (
                placement.replicas,
                placement.expires_at,
                f"{as_clause(detail) or 'asked for by name'}{reason_clause(choice)}",
            )
        case Place(placement=placement, shortage=Shortage() as shortage, choice=choice):
            missing = f"{message_parts.missing(shortage)}{message_parts.causes(shortage, placement)}"
            cells = (placement.replicas, placement.expires_at, f"{missing}{reason_clause(choice)}")
        case Resize(before=before, after=placement, detail=detail, shortage=shortage, choice=choice):
            cells = (
                f"{before.replicas} -> {placement.replicas}",
                placement.expires_at,
                f"{as_clause(detail)}{message_parts.signals(shortage, placement)}{reason_clause(choice)}",
            )
        case Extend(after=placement, detail=detail):
            cells = (placement.replicas, placement.expires_at, detail)
        case Move(before=before, after=placement, why=why, detail=detail, choice=choice):
            cells = (
                placement.replicas,
                placement.expires_at,
                f"from {before.where}, {why}: {as_clause(detail)}{reason_clause(choice)}",
            )
        case Revert(placement=placement, why=why, detail=detail, restraint=restraint):
            hold = restraint if restraint is not None and restraint.kind is RestraintKind.HOLD else None
            reason = f"{why}: {as_clause(detail)}" if as_clause(detail) else str(why)
            until = held(hold)
            reason += f"; {until[0].lower()}{as_clause(until[1:])}" if until else ""
            cells = (f"{placement.replicas} -> 0", None, reason)
        case Restore(drifted=Drift(placement=placement), detail=detail):
            cells = (placement.replicas, placement.expires_at, detail)
        case Hold(placement=placement, restraint=restraint):
            cells = (None, restraint.until, restraint.reason)
        case Release(workload=workload, restraints=restraints, detail=detail):
            clusters = ", ".join(sorted({restraint.cluster or "all" for restraint in restraints}))
            return ("Release", workload, None, clusters, None, None, detail)
    return (type(change).__name__, placement.workload, placement.name, placement.where, *cells)


def _request_row(change: RequestChange) -> tuple[object, ...]:
    """Return the row of a change to the record of a request."""
    record = message_parts.record_of(change)
    clusters = ", ".join(record.request.clusters)
    return (type(change).__name__, record.workload, None, clusters, None, None, message_parts.why(change))


def _before(repository: Repository, view: View, commits: Sequence[Commit]) -> dict[str, bytes]:
    """Read the files that the commits touch as they are at the output branch's tip."""
    touched = sorted({path for commit in commits for path in (*commit.removes, *commit.writes)})
    if view.tips.output is None or not touched:
        return {}
    entries = repository.entries(view.tips.output, under=touched)
    contents = repository.read({entry.blob for entry in entries})
    return {entry.path: contents[entry.blob] for entry in entries}
