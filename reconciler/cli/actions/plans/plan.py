"""`plan`: the commits that `run` would make, as a table, as a patch or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from reconciler import app
from reconciler.bulkhead import Seam, attempt
from reconciler.cli import options, printing
from reconciler.cli.actions.plans.diff import patch
from reconciler.cli.actions.plans.markdown import markdown_plan
from reconciler.cli.actions.plans.rows import plan_rows
from reconciler.cli.actions.visibility import warn_of_old_observations, warn_without_observations
from reconciler.cli.commands.plan import PlanForm
from reconciler.cli.exit_codes import REFUSED, WOULD_CHANGE
from reconciler.core.commits.templates import written
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.explain.workload import describe_injection
from reconciler.core.observe.supposition import ClusterDown, Supposition
from reconciler.daemon.reconcile import PassDecision, draft
from reconciler.errors import Bug
from reconciler.model.plan import Change, Move, Place, Suppressed
from reconciler.model.tree import Commit
from reconciler.ports import Repository
from reconciler.preview import decision_at, suppose_world
from reconciler.settings import Settings
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count


def plan(
    settings: Settings,
    at: datetime | None,
    what_if: Sequence[Supposition],
    *,
    as_diff: bool,
    detailed_exitcode: bool,
    form: PlanForm,
) -> None:
    """Print the commits that `run` would make, and the replicas that are held back."""
    supposed: tuple[str, ...] = ()
    with app.connected(settings) as (world, memory):
        if what_if:
            world, memory, supposed = suppose_world(world, memory, what_if)  # noqa: PLW2901 - the world from here on
        decision, rendered = draft(world, decision_at(world, memory, at))
        files = _before(world.repository, decision, rendered.commits) if as_diff else {}
    if form == "json":
        printing.json_out({"supposed": supposed, **plan_document(decision, rendered)})
    elif form == "markdown":
        click.echo(markdown_plan(decision, rendered, supposed), nl=False)
    else:
        _questions(supposed)
        if as_diff:
            click.echo(patch(rendered.commits, files), nl=False)
        else:
            print_plan(decision, rendered, form)
    warn_without_observations(settings)
    if not any(isinstance(supposition, ClusterDown) for supposition in what_if):
        warn_of_old_observations(settings, rendered.suppressed)
    if printing.problems((*decision.problems, *rendered.problems)):
        raise click.exceptions.Exit(REFUSED)
    if detailed_exitcode and rendered.commits:
        raise click.exceptions.Exit(WOULD_CHANGE)


def _questions(supposed: Sequence[str]) -> None:
    """Print what is supposed, with a blank line before what follows."""
    for question in supposed:
        printing.sentence(question)
    if supposed:
        click.echo()


def print_plan(
    decision: PassDecision, rendered: RenderedPlan, form: options.Output, *, empty: str = "Nothing to change."
) -> None:
    """Print the commits of a plan and the replicas that are held back, as tables or as JSON."""
    if form == "json":
        printing.json_out(plan_document(decision, rendered))
    else:
        _tables(decision, rendered, empty)


def plan_document(decision: PassDecision, rendered: RenderedPlan) -> dict[str, object]:
    """Return a plan for JSON: every commit with its files, the suppressed replicas, and the problems."""
    first = len(rendered.commits) - len(rendered.changes)
    changes: list[Change | None] = [*([None] * first), *rendered.changes]
    return {
        "at": decision.inputs.now,
        "source": decision.tips.source,
        "output": decision.tips.output,
        "commits": [
            {
                "subject": commit.message.partition("\n")[0],
                "message": commit.message,
                "author": commit.author,
                "at": commit.at,
                "removes": commit.removes,
                "writes": commit.writes,
                "change": change,
                "notes": [*_notes(decision, change)],
            }
            for commit, change in zip(rendered.commits, changes, strict=True)
        ],
        "suppressed": rendered.suppressed,
        "problems": (*decision.problems, *rendered.problems),
        "wakeAt": decision.plan.wake_at,
    }


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


def _tables(decision: PassDecision, rendered: RenderedPlan, empty: str) -> None:
    headers = ("ACTION", "WORKLOAD", "PLACEMENT", "CLUSTER", "REPLICAS", "UNTIL", "WHY")
    printing.table(headers, plan_rows(rendered), empty=empty)
    _subsets(decision, rendered)
    print_suppressed(rendered.suppressed)
    counts = [count(len(rendered.commits), "commit"), f"{len(rendered.suppressed)} held back"]
    if decision.plan.wake_at is not None:
        counts.append(f"the next look is due at {format_time(decision.plan.wake_at)}")
    click.echo()
    printing.sentence(f"At {format_time(decision.inputs.now)}: {', '.join(counts)}.")
    if any(_names_placement(change) for change in rendered.changes):
        printing.sentence(
            "The digits of a new placement's name come from the time of the pass: a later one has others."
        )


def _names_placement(change: Change | None) -> bool:
    return isinstance(change, Place) or (isinstance(change, Move) and change.before.id != change.after.id)


def _subsets(decision: PassDecision, rendered: RenderedPlan) -> None:
    """Print the changes of subsets to the pods of placements that are written."""
    rows = [
        (placement.workload, placement.name, placement.where, note)
        for change in rendered.changes
        for note in _notes(decision, change)
        if (placement := written(change)) is not None
    ]
    if rows:
        printing.heading("Pods of subsets")
        printing.table(("WORKLOAD", "PLACEMENT", "CLUSTER", "WHAT IS CHANGED"), list(dict.fromkeys(rows)))


def _notes(decision: PassDecision, change: Change | None) -> Iterator[str]:
    """Yield the changes of a subset to the pods of the placement that a change writes."""
    placement = None if change is None else written(change)
    if placement is None:
        return
    notes = attempt(Seam.STATUS, placement.path, lambda: (*describe_injection(decision.inputs.desired, placement),))
    if isinstance(notes, Bug):
        printing.bugs((notes.problem(notes.item),))
        yield notes.summary
    else:
        yield from notes


def _before(repository: Repository, decision: PassDecision, commits: Sequence[Commit]) -> dict[str, bytes]:
    """Read the files that the commits touch as they are at the output branch's tip."""
    touched = sorted({path for commit in commits for path in (*commit.removes, *commit.writes)})
    if decision.tips.output is None or not touched:
        return {}
    entries = repository.entries(decision.tips.output, under=touched)
    contents = repository.read({entry.blob for entry in entries})
    return {entry.path: contents[entry.blob] for entry in entries}
