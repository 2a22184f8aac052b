"""`history`: what was, and why, as the commits of the output branch tell it."""

from __future__ import annotations

from datetime import datetime

import click

from reconciler import app
from reconciler.cli import options, printing
from reconciler.core.history import Burst, bursts
from reconciler.core.times import format_time
from reconciler.ports import Repository
from reconciler.settings import Settings

_AT_LEAST = 200
"""Commits that are read at once; fewer would save nothing."""


@options.examples(
    "overspill history",
    "overspill history llm/vllm --since -7d",
    "overspill history --limit 100 -o json",
)
@click.command()
@click.argument("workload", required=False)
@options.connected()
@click.option("--since", type=options.MOMENT, help="Leave out what ended before: 2026-11-20T10:15:00Z, or -7d.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Placements to show at most.")
@options.output
def history(settings: Settings, workload: str | None, since: datetime | None, limit: int, form: options.Output) -> None:
    """Tell which placements there were and why, newest first.

    All of it is read back from the commits of the output branch. WORKLOAD may also be one placement.
    """
    with app.connected(settings) as (world, _):
        found, more = _bursts(world.repository, workload, since, limit)
    if form == "json":
        printing.json_out({"placements": found, "more": more})
        return
    about = f" of {workload}" if workload else ""
    printing.table(
        ("PLACEMENT", "WORKLOAD", "CLUSTER", "FROM", "TO", "COMMITS", "WHY"),
        [_burst_row(one) for one in found],
        empty=f"No placement{about} in the history{' since then' if since else ''}: nothing has burst yet.",
    )
    if more:
        printing.note("There are more; raise --limit to see them.")


def _bursts(
    repository: Repository, workload: str | None, since: datetime | None, limit: int
) -> tuple[tuple[Burst, ...], bool]:
    """Read placements back, newest first, and tell whether there are more than `limit`.

    The log may be years long, so it is read in growing pieces, until each placement that is shown has its beginning.
    """
    tip, size = repository.fetch().output, max(_AT_LEAST, 10 * limit)
    while tip is not None:
        log = repository.log(tip, limit=size)
        found = [
            one
            for one in bursts(log)
            if (workload is None or workload in (one.workload, one.id, one.id.partition("/")[2]))
            and (since is None or one.ended_at is None or one.ended_at >= since)
        ]
        whole = len(log) < size
        enough = len(found) > limit or (since is not None and bool(log) and log[-1].at < since)
        if whole or (enough and all(one.started_at for one in found[:limit])):
            return tuple(found[:limit]), len(found) > limit
        size *= 4
    return (), False


def _burst_row(burst: Burst) -> tuple[object, ...]:
    began = burst.steps[0].reasons.split("\n")[0] if burst.steps else ""
    why = f"{burst.why}; began: {began}" if burst.why else began
    return (
        burst.id, burst.workload, burst.cluster, burst.started_at,
        burst.ended_at or (f"until {format_time(burst.expires_at)}" if burst.expires_at else None),
        len(burst.steps), why,
    )  # fmt: skip
