"""`cost`: GPU-hours and money of placements, from the commits of the two branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from reconciler.app.commands import connected
from reconciler.cli import printing
from reconciler.cli.actions.visibility import tell_losses
from reconciler.cli.commands.state import CostForm
from reconciler.core.cost.report import CostGroup, CostReport, CostRow, report
from reconciler.daemon.cost.costs import CostReader
from reconciler.errors import Conflict, InvalidInput
from reconciler.settings import Settings
from reconciler.text import markdown
from reconciler.text.timestamps import format_time
from reconciler.text.wording import join_names


def cost(settings: Settings, since: datetime, until: datetime | None, by: Sequence[str], form: CostForm) -> None:
    """Print what placements cost from one moment to another."""
    with connected(settings) as (world, _):
        now = world.clock.now()
        end = now if until is None else min(until, now)
        if since >= end:
            raise click.UsageError(f"--since {format_time(since)} is not before --until {format_time(end)}")
        tips = world.repository.fetch()
        try:
            meter = CostReader(world.repository, world.author).meter(tips, since, end)
        except Conflict as error:
            raise InvalidInput(
                "adding up costs: the repository does not hold the commits of its branches since then"
                " (if it is a shallow clone, try git fetch --unshallow in it; if a branch was rewritten, try again)"
            ) from error
    groups = tuple(dict.fromkeys(map(CostGroup, by)))
    tell_losses(tips.losses)
    answer = report(meter, end, groups)
    if form == "json":
        printing.json_out(answer)
        return
    headers = [*(group.upper() for group in groups), "GPU-HOURS", "DOLLARS", "GPU-HOURS WITHOUT PRICE", "GPUS NOW"]
    rows = [*_rows(answer, groups)]
    if form == "markdown":
        cells = [[markdown.escaped(printing.cell(value)) for value in row] for row in rows]
        printing.say(markdown.table(headers, cells))
    else:
        empty = "nothing has burst yet" if tips.output is None else "nothing was placed then"
        printing.table(headers, rows, empty=f"No costs: {empty}.")
    for note in _notes(answer):
        printing.note(note)


def _rows(answer: CostReport, groups: Sequence[CostGroup]) -> Iterator[Sequence[object]]:
    for row in answer.rows:
        yield (*(row.group[group] for group in groups), *_figures(row))
    if len(answer.rows) > 1:
        yield ("total", *[""] * (len(groups) - 1), *_figures(answer.total))


def _figures(row: CostRow) -> Sequence[object]:
    unpriced = f"{row.unpriced_gpu_hours:.2f}" if row.unpriced_gpu_hours else None
    # What has no price at all has not cost 0 $.
    priced = row.gpu_hours > row.unpriced_gpu_hours or not row.unpriced_gpu_hours
    return f"{row.gpu_hours:.2f}", f"{row.dollars:.2f}" if priced else None, unpriced, row.gpus_now


def _notes(answer: CostReport) -> Iterator[str]:
    """Tell what the dollars leave out, and the way out."""
    if answer.unpriced:
        hours = join_names(f"{hours:.2f} on {cluster}" for cluster, hours in answer.unpriced.items())
        yield (
            f"GPU-hours without a price, which the dollars leave out: {hours}"
            " (try pricePerGPUHour in the file of the Cluster; it holds from then on)"
        )
    if answer.uncounted:
        yield f"The GPUs of {join_names(answer.uncounted)} are unknown, and count as none."
