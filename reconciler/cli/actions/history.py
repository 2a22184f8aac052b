"""`history`: what was, and why, as the commits of the output branch tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler import app
from reconciler.cli import options, printing
from reconciler.core.commits.history import BurstHistory, bursts
from reconciler.daemon.steer import survey
from reconciler.errors import InvalidInput
from reconciler.model.ids import CommitId
from reconciler.ports import Repository
from reconciler.settings import Settings
from reconciler.text.timestamps import format_time

_AT_LEAST = 200
"""Commits that are read at once; fewer would save nothing."""


def history(settings: Settings, workload: str | None, since: datetime | None, limit: int, form: options.Output) -> None:
    """Print placements from the commits of the output branch, newest first."""
    with app.connected(settings) as (world, memory):
        if workload is None:
            tip, wanted = world.repository.fetch().output, _Wanted(since=since, limit=limit)
        else:
            view = survey(world, memory)
            fleet = tuple(dict.fromkeys(map(str, (*view.desired.templates, *view.ledger.requests))))
            named = tuple(one for one in fleet if workload in (one, one.partition("/")[2]))
            tip = view.tips.output
            wanted = _Wanted(since=since, limit=limit, name=workload, named=named, fleet=fleet)
        found, more = _bursts(world.repository, tip, wanted)
    if form == "json":
        printing.json_out({"placements": found, "more": more})
        return
    about = f"No placement of {workload}" if workload else "No placement"
    so_far = "it has not burst yet" if workload else "nothing has burst yet"
    printing.table(
        ("PLACEMENT", "WORKLOAD", "CLUSTER", "FROM", "TO", "COMMITS", "WHY"),
        [_burst_row(one) for one in found],
        empty=f"{about} in the history since then." if since else f"{about} in the history: {so_far}.",
    )
    if more:
        printing.note("There are more; raise --limit to see them.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Which placements to show. `named` are the workloads of the fleet that a person's `name` may mean."""

    since: datetime | None
    limit: int
    name: str = ""
    named: tuple[str, ...] = ()
    fleet: tuple[str, ...] = ()

    def is_of(self, burst: BurstHistory) -> bool:
        """Tell whether a placement is of what was named."""
        if not self.name or burst.workload in self.named:
            return True
        names = [burst.workload, burst.id, burst.id.partition("/")[2]]
        # The fleet comes first: a template that another workspace once had under this name is not what is meant.
        return self.name in (names if self.named else [*names, burst.workload.partition("/")[2]])

    def is_recent(self, burst: BurstHistory) -> bool:
        """Tell whether a placement stood at the moment from which on to show them, or later."""
        return self.since is None or burst.ended_at is None or burst.ended_at >= self.since


def _bursts(repository: Repository, tip: CommitId | None, wanted: _Wanted) -> tuple[tuple[BurstHistory, ...], bool]:
    """Read placements back, newest first, and tell whether there are more than the limit.

    The log may be years long, so it is read in growing pieces, until each placement that is shown has its beginning.
    Raises InvalidInput for a name that neither the fleet nor the whole log has, or that the fleet has twice.
    """
    if len(wanted.named) > 1:
        raise _unclear(wanted.name, "name the workload as <workspace>/<template>", wanted.named)
    limit, since, size = wanted.limit, wanted.since, max(_AT_LEAST, 10 * wanted.limit)
    told: tuple[BurstHistory, ...] = ()
    while tip is not None:
        log = repository.log(tip, limit=size)
        told = bursts(log)
        of_it = [one for one in told if wanted.is_of(one)]
        found = [one for one in of_it if wanted.is_recent(one)]
        known = bool(of_it or wanted.named or not wanted.name)
        enough = len(found) > limit or (since is not None and bool(log) and log[-1].at < since)
        if known and enough and all(one.started_at for one in found[:limit]):
            return tuple(found[:limit]), len(found) > limit
        if len(log) < size:
            if not known:
                break
            return tuple(found[:limit]), len(found) > limit
        size *= 4
    if wanted.name and not wanted.named:
        there = (*wanted.fleet, *(one.workload for one in told))
        raise _unclear(wanted.name, "neither the fleet nor the history has it", there)
    return (), False


def _unclear(name: str, why: str, there: Sequence[str]) -> InvalidInput:
    known = ", ".join(sorted(set(there))) or "none"
    return InvalidInput(f"telling the history of {name!r}: {why} (there are: {known})")


def _burst_row(burst: BurstHistory) -> tuple[object, ...]:
    began = burst.steps[0].reasons.split("\n")[0] if burst.steps else ""
    why = f"{burst.why}; began: {began}" if burst.why else began
    return (
        burst.id, burst.workload, burst.where, burst.started_at,
        burst.ended_at or (f"until {format_time(burst.expires_at)}" if burst.expires_at else None),
        len(burst.steps), why,
    )  # fmt: skip # a row as it is printed
