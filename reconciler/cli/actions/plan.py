"""`plan`: what `run` would commit now, as a table, as a patch or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from reconciler import app
from reconciler.ahead import look_ahead
from reconciler.cli import options, printing
from reconciler.cli.actions.diff import patch
from reconciler.cli.actions.visibility import warn_of_old_observations, warn_without_observations
from reconciler.core.commits import message_parts
from reconciler.core.commits.fill import written
from reconciler.core.commits.messages import by, held
from reconciler.core.commits.write import Rendered
from reconciler.core.explain.workload import of_subset
from reconciler.daemon.reconcile import View, draft
from reconciler.errors import Problem
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
from reconciler.text.wording import clause, count


def plan(settings: Settings, at: datetime | None, *, as_diff: bool, form: options.Output) -> None:
    """Print the commits that `run` would make, and the replicas that are held back."""
    with app.connected(settings) as (world, memory):
        view, rendered = draft(world, look_ahead(world, memory, at))
        files = _before(world.repository, view, rendered.commits) if as_diff else {}
    if as_diff and form != "json":
        click.echo(patch(rendered.commits, files), nl=False)
    else:
        show(view, rendered, form)
    warn_without_observations(settings)
    warn_of_old_observations(settings, rendered.suppressed)
    if printing.problems(problems_of(view)):
        raise click.exceptions.Exit(1)


def show(view: View, rendered: Rendered, form: options.Output, *, empty: str = "Nothing to change.") -> None:
    """Print what would be committed and what is held back, as tables or all of it as JSON."""
    if form == "json":
        printing.json_out(answer(view, rendered))
    else:
        _tables(view, rendered, empty)


def answer(view: View, rendered: Rendered) -> dict[str, object]:
    """Gather all that a plan holds, for JSON: every commit to its last byte, and what was not done."""
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
    """Gather all that is wrong with the files of both branches and with the observations."""
    return (*view.desired.problems, *view.ledger.problems, *view.observed.problems)


def held_back(suppressed: Sequence[Suppressed]) -> None:
    """Print what was not done and why, with the clusters that were refused."""
    if not suppressed:
        return
    printing.heading("Held back")
    rows = [(one.workload, one.reason, one.replicas or None, one.until, one.message) for one in suppressed]
    printing.table(("WORKLOAD", "REASON", "REPLICAS", "UNTIL", "WHY"), rows)
    refusals = [(one.workload, refusal) for one in suppressed for refusal in one.refusals]
    if refusals:
        printing.heading("Refused clusters")
        printing.table(
            ("WORKLOAD", "CLUSTER", "REASON", "WHY", "WHAT WOULD CHANGE IT"),
            [(workload, one.where, one.reason, one.message, one.remedy) for workload, one in refusals],
        )


def _tables(view: View, rendered: Rendered, empty: str) -> None:
    headers = ("ACTION", "WORKLOAD", "PLACEMENT", "CLUSTER", "REPLICAS", "UNTIL", "WHY")
    first = rendered.commits[: len(rendered.commits) - len(rendered.changes)]
    rows = [*map(_beginning, first), *map(_row, rendered.changes)]
    printing.table(headers, rows, empty=empty)
    _subsets(view, rendered)
    held_back(rendered.suppressed)
    told = [count(len(rendered.commits), "commit"), f"{len(rendered.suppressed)} held back"]
    if view.plan.wake_at is not None:
        told.append(f"the next look is due at {format_time(view.plan.wake_at)}")
    click.echo()
    printing.sentence(f"At {format_time(view.now)}: {', '.join(told)}.")


def _subsets(view: View, rendered: Rendered) -> None:
    """Print what subsets change in the pods of placements that are written anew."""
    rows = [
        (one.workload, one.name, one.where, note)
        for change in rendered.changes
        for note in _notes(view, change)
        if (one := written(change)) is not None
    ]
    if rows:
        printing.heading("Pods of subsets")
        printing.table(("WORKLOAD", "PLACEMENT", "CLUSTER", "WHAT IS CHANGED"), list(dict.fromkeys(rows)))


def _notes(view: View, change: Change | None) -> Iterator[str]:
    """Say what a subset changes in the pods that a change writes anew."""
    placement = None if change is None else written(change)
    if placement is not None:
        yield from of_subset(view.desired, placement)


def _beginning(commit: Commit) -> tuple[object, ...]:
    """Lay a commit out that begins something on the branch, before any change: its subject says what."""
    return ("Start", None, None, None, None, None, commit.message.partition("\n")[0].partition(": ")[2])


def _row(change: Change) -> tuple[object, ...]:
    """Lay a change out in the columns of the table."""
    if isinstance(change, RequestChange):
        return _request_row(change)
    told: tuple[object, ...]
    match change:
        case Place(placement=it, shortage=None, choice=choice, detail=detail):
            told = (it.replicas, it.expires_at, f"{clause(detail) or 'asked for by name'}{by(choice)}")
        case Place(placement=it, shortage=Shortage() as shortage, choice=choice):
            missing = f"{message_parts.missing(shortage)}{message_parts.causes(shortage, it)}"
            told = (it.replicas, it.expires_at, f"{missing}{by(choice)}")
        case Resize(before=before, after=it, detail=detail, shortage=shortage, choice=choice):
            told = (
                f"{before.replicas} -> {it.replicas}",
                it.expires_at,
                f"{clause(detail)}{message_parts.signals(shortage, it)}{by(choice)}",
            )
        case Extend(after=it, detail=detail):
            told = (it.replicas, it.expires_at, detail)
        case Move(before=before, after=it, why=why, detail=detail, choice=choice):
            told = (it.replicas, it.expires_at, f"from {before.where}, {why}: {clause(detail)}{by(choice)}")
        case Revert(placement=it, why=why, detail=detail, restraint=restraint):
            keeps = restraint if restraint is not None and restraint.kind is RestraintKind.HOLD else None
            reason = f"{why}: {clause(detail)}" if clause(detail) else str(why)
            until = held(keeps)
            reason += f"; {until[0].lower()}{clause(until[1:])}" if until else ""
            told = (f"{it.replicas} -> 0", None, reason)
        case Restore(drifted=Drift(placement=it), detail=detail):
            told = (it.replicas, it.expires_at, detail)
        case Hold(placement=it, restraint=restraint):
            told = (None, restraint.until, restraint.reason)
        case Release(workload=workload, restraints=restraints, detail=detail):
            clusters = ", ".join(sorted({restraint.cluster or "all" for restraint in restraints}))
            return ("Release", workload, None, clusters, None, None, detail)
    return (type(change).__name__, it.workload, it.name, it.where, *told)


def _request_row(change: RequestChange) -> tuple[object, ...]:
    """Lay a change of a request itself out in the columns of the table."""
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
