"""`history`: past and present placements with their reasons, by a daemon or by this machine.

Both answers are printed from their JSON, so that they read alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reconciler.adapters.clock import SystemClock
from reconciler.app.commands import connected
from reconciler.cli import options, printing
from reconciler.cli.actions.remote import moment
from reconciler.cli.actions.visibility import tell_losses
from reconciler.daemon.answers.history import HistorySelection, read_history
from reconciler.daemon.steer import survey
from reconciler.model.placement import place_name
from reconciler.settings import Settings
from reconciler.text.ages import format_age
from reconciler.text.to_json import json_value

if TYPE_CHECKING:  # it takes long to import, and commands without a daemon do not need it
    from reconciler.client import Client


def history(settings: Settings, workload: str | None, since: datetime | None, limit: int, form: options.Output) -> None:
    """Print placements from the commits of the output branch, newest first."""
    with connected(settings) as (world, memory):
        decision = None if workload is None else survey(world, memory)
        tips = world.repository.fetch() if decision is None else decision.tips
        selection = HistorySelection.of(decision, workload or "", since=since, limit=limit)
        past = read_history(world.repository, world.author, memory.branch.ledger(tips.output), selection)
    document = json_value({"placements": past.placements, "more": past.more})
    _print(document, workload, since=since, form=form)
    left_out = [past.left_out] if past.left_out else []
    printing.problems([*(bug.problem(bug.item) for bug in past.bugs), *left_out])
    tell_losses(tips.losses)


def history_remotely(
    client: Client, workload: str | None, since: datetime | None, limit: int, form: options.Output
) -> None:
    """Print the history that a daemon tells."""
    past = client.history(workload=workload or "", since=since, limit=limit)
    _print({"placements": past.placements, "more": past.more}, workload, since=since, form=form)


def _print(document: Mapping[str, Any], workload: str | None, *, since: datetime | None, form: options.Output) -> None:
    if form == "json":
        printing.json_out(document)
        return
    now = SystemClock().now()
    about = f"No placement of {workload}" if workload else "No placement"
    so_far = "it has not burst yet" if workload else "nothing has burst yet"
    printing.table(
        ("PLACEMENT", "WORKLOAD", "CLUSTER", "AGE", "LASTED", "LEFT", "FROM", "TO", "COMMITS", "WHY"),
        [_row(burst, now) for burst in document["placements"]],
        empty=f"{about} in the history since then." if since else f"{about} in the history: {so_far}.",
        wide=("FROM", "TO"),
    )
    if document["more"]:
        printing.note("There are more; raise --limit to see them.")


def _row(burst: Mapping[str, Any], now: datetime) -> tuple[object, ...]:
    steps, why = burst["steps"], burst["why"]
    began = steps[0]["reasons"].split("\n")[0] if steps else ""
    told = ("put back by hand" if burst["putBack"] else "", why, f"began: {began}" if began else "")
    reason = "; ".join(filter(None, told)) if burst["putBack"] or why else began
    started, ended, expires = (moment(burst[name]) for name in ("startedAt", "endedAt", "expiresAt"))
    age = format_age(now - started) if started else None
    lasted = format_age(ended - started) if started and ended else None
    left = None
    if expires and not ended:
        left = format_age(expires - now) if expires > now else "over"
    return (
        burst["id"].partition("/")[2], burst["workload"], place_name(burst["cluster"], burst["subset"]), age, lasted,
        left, started, ended or (f"until {burst['expiresAt']}" if expires else None), len(steps), reason,
    )  # fmt: skip # a row as it is printed
