"""`lab replay`: recorded passes decided again, or the plan of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

from reconciler.adapters.recording_files import read_recording
from reconciler.app.commands import connected
from reconciler.cli import options, printing
from reconciler.cli.actions.plans.plan import print_plan
from reconciler.core.recording.pass_record import PassRecord
from reconciler.daemon.reconcile import PassDecision, World, render_plan
from reconciler.errors import InvalidInput, Problem
from reconciler.lab.replay import Replay, Replayed
from reconciler.model.tree import Tips
from reconciler.settings import Settings
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

_SHORT = 12
_ROWS = 100
"""Passes that are listed for people; a mistake of one rule parts all passes of a day."""


def replay(settings: Settings, recording: Path, at: datetime | None, form: options.Output) -> None:
    """Print where recorded passes part, or the plan of the pass at a moment."""
    with connected(settings) as (world, memory):
        fetch_history(world)
        again = Replay(world.repository, memory.source, memory.branch, world.author)
        if at is None:
            _compare(again, recording, form)
        else:
            _show(world, again, recording, at, form)


def fetch_history(world: World) -> None:
    """Fetch the whole history of both branches."""
    tips = world.repository.fetch()
    for tip in (tips.source, tips.output):
        if tip is not None:
            world.repository.log(tip)


def _compare(again: Replay, recording: Path, form: options.Output) -> None:
    problems: list[Problem] = []
    parted: list[Replayed] = []
    first = last = None
    passes = 0
    for entry in again.run(read_recording(recording)):
        if isinstance(entry, Problem):
            problems.append(entry)
            continue
        passes += 1
        first, last = first or entry.record.at, entry.record.at
        if entry.parting is not None:
            parted.append(entry)
    if form == "json":
        printing.json_out(
            {
                "passes": passes,
                "first": first,
                "last": last,
                "partings": [
                    {
                        "at": entry.record.at,
                        "source": entry.record.source,
                        "output": entry.record.output,
                        "parting": entry.parting,
                    }
                    for entry in parted
                ],
                "problems": problems,
            }
        )
    else:
        _print(parted, passes, first, last)
    if printing.problems(problems) or parted:
        raise click.exceptions.Exit(1)


def _print(parted: list[Replayed], passes: int, first: datetime | None, last: datetime | None) -> None:
    rows = [
        (entry.record.at, entry.record.source[:_SHORT], parting.subject, parting.field, parting.recorded, parting.now)
        for entry in parted[:_ROWS]
        if (parting := entry.parting) is not None
    ]
    if rows:
        printing.table(("PASS", "SOURCE", "WHERE IT PARTS", "FIELD", "RECORDED", "NOW"), rows)
        if len(parted) > _ROWS:
            printing.sentence(f"... and {count(len(parted) - _ROWS, 'plan')} more (`-o json` lists all).")
        printing.write()
    if first is None or last is None:
        printing.sentence("No pass was decided again.")
        return
    span = f"{passes} {'pass' if passes == 1 else 'passes'} from {format_time(first)} to {format_time(last)}"
    outcome = f"{count(len(parted), 'plan')} parted from the recorded one" if parted else "all decided the same"
    printing.sentence(f"{span}: {outcome}.")


def _show(world: World, again: Replay, recording: Path, at: datetime, form: options.Output) -> None:
    """Print the plan of the last pass at or before a moment, decided again with all its reasons."""
    problems: list[Problem] = []
    shown = again.latest(_passes(recording, problems), at)
    if shown is None:
        raise InvalidInput(f"no pass at or before {format_time(at)} is recorded in {recording}")
    if isinstance(shown, Problem):
        raise InvalidInput(problems=(shown,))
    record = shown.record
    base = world.repository.log(record.output, limit=1) if record.output is not None else ()
    tips = Tips(source=record.source, output=record.output, output_at=base[0].at if base else None)
    decision = PassDecision(inputs=shown.inputs, tips=tips, plan=shown.plan)
    print_plan(decision, render_plan(world, decision), form)
    parts = ["made no commit" if not record.commits else f"made {', '.join(id_[:_SHORT] for id_ in record.commits)}"]
    if shown.parting is not None:
        parts.append(f"the recorded plan was another: {shown.parting.subject} {shown.parting.field}".rstrip())
    printing.note(f"the pass of {format_time(record.at)} {'; '.join(parts)}")
    if printing.problems(problems) or shown.parting is not None:
        raise click.exceptions.Exit(1)


def _passes(recording: Path, problems: list[Problem]) -> Iterator[PassRecord]:
    """Yield the recorded passes, and collect the problems of the recording."""
    for entry in read_recording(recording):
        if isinstance(entry, Problem):
            problems.append(entry)
        else:
            yield entry
