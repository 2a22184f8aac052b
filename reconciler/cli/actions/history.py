"""`history`: past and present placements with their reasons, from the commits of the output branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler import app
from reconciler.cli import options, printing
from reconciler.core.commits.history import BurstHistory, as_they_stand, bursts, own
from reconciler.daemon.reconcile import World
from reconciler.daemon.steer import survey
from reconciler.errors import Bug, InvalidInput
from reconciler.model.ledger import Ledger
from reconciler.settings import Settings
from reconciler.text.ages import format_age
from reconciler.text.timestamps import format_time

_AT_LEAST = 200
"""Minimum of commits that are read at once; fewer would save nothing."""


def history(settings: Settings, workload: str | None, since: datetime | None, limit: int, form: options.Output) -> None:
    """Print placements from the commits of the output branch, newest first."""
    with app.connected(settings) as (world, memory):
        if workload is None:
            tips, selection = world.repository.fetch(), _Selection(since=since, limit=limit)
        else:
            decision = survey(world, memory)
            fleet = tuple(
                dict.fromkeys(map(str, (*decision.inputs.desired.templates, *decision.inputs.ledger.requests)))
            )
            matches = tuple(name for name in fleet if workload in (name, name.partition("/")[2]))
            tips = decision.tips
            selection = _Selection(since=since, limit=limit, name=workload, matches=matches, fleet=fleet)
        bugs: list[Bug] = []
        rows, more = _bursts(world, memory.branch.ledger(tips.output), selection, bugs)
        now = world.clock.now()
    if form == "json":
        printing.json_out({"placements": rows, "more": more})
        printing.problems(bug.problem(bug.item) for bug in bugs)
        return
    about = f"No placement of {workload}" if workload else "No placement"
    so_far = "it has not burst yet" if workload else "nothing has burst yet"
    printing.table(
        ("PLACEMENT", "WORKLOAD", "CLUSTER", "AGE", "LASTED", "LEFT", "FROM", "TO", "COMMITS", "WHY"),
        [_burst_row(burst, now) for burst in rows],
        empty=f"{about} in the history since then." if since else f"{about} in the history: {so_far}.",
        wide=("FROM", "TO"),
    )
    if more:
        printing.note("There are more; raise --limit to see them.")
    printing.problems(bug.problem(bug.item) for bug in bugs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """The placements to show."""

    since: datetime | None
    """Placements that ended before are left out."""
    limit: int
    """The number of placements to show."""
    name: str = ""
    """The workload or placement that a person named; empty for all."""
    matches: tuple[str, ...] = ()
    """The workloads of the fleet that `name` may mean."""
    fleet: tuple[str, ...] = ()
    """All workloads and requests of the fleet."""

    def is_of(self, burst: BurstHistory) -> bool:
        """Tell whether a placement has the name, or is of the workload that has it."""
        if not self.name or burst.workload in self.matches:
            return True
        names = [burst.workload, burst.id, burst.id.partition("/")[2]]
        # The fleet comes first: a template that another workspace once had under this name is not meant.
        return self.name in (names if self.matches else [*names, burst.workload.partition("/")[2]])

    def is_recent(self, burst: BurstHistory) -> bool:
        """Tell whether a placement was there at `since` or later."""
        return self.since is None or burst.ended_at is None or burst.ended_at >= self.since


def _bursts(
    world: World, ledger: Ledger, selection: _Selection, bugs: list[Bug]
) -> tuple[tuple[BurstHistory, ...], bool]:
    """Read past placements, newest first, and whether more than the limit exist; adds bugs to `bugs`.

    The log may be years long, so it is read in growing pieces, until each placement that is shown has its beginning.
    Raises InvalidInput for a name that neither the fleet nor the whole log has, or that the fleet has twice.
    """
    if len(selection.matches) > 1:
        raise _unclear(selection.name, "name the workload as <workspace>/<template>", selection.matches)
    limit, since, size = selection.limit, selection.since, max(_AT_LEAST, 10 * selection.limit)
    history: tuple[BurstHistory, ...] = ()
    while ledger.commit is not None:
        log = world.repository.log(ledger.commit, limit=size)
        bugs.clear()
        history = as_they_stand(bursts(own(log, world.author), bugs.append), ledger, log[0].at)
        named = [burst for burst in history if selection.is_of(burst)]
        recent = [burst for burst in named if selection.is_recent(burst)]
        exists = bool(named or selection.matches or not selection.name)
        enough = len(recent) > limit or (since is not None and bool(log) and log[-1].at < since)
        if exists and enough and all(burst.started_at for burst in recent[:limit]):
            return tuple(recent[:limit]), len(recent) > limit
        if len(log) < size:
            if not exists:
                break
            return tuple(recent[:limit]), len(recent) > limit
        size *= 4
    if selection.name and not selection.matches:
        names = (*selection.fleet, *(burst.workload for burst in history))
        raise _unclear(selection.name, "neither the fleet nor the history has it", names)
    return (), False


def _unclear(name: str, message: str, names: Sequence[str]) -> InvalidInput:
    listing = ", ".join(sorted(set(names))) or "none"
    return InvalidInput(f"telling the history of {name!r}: {message} (there are: {listing})")


def _burst_row(burst: BurstHistory, now: datetime) -> tuple[object, ...]:
    began = burst.steps[0].reasons.split("\n")[0] if burst.steps else ""
    told = ("put back by hand" if burst.put_back else "", burst.why, f"began: {began}" if began else "")
    why = "; ".join(filter(None, told)) if burst.put_back or burst.why else began
    age = format_age(now - burst.started_at) if burst.started_at else None
    lasted = format_age(burst.ended_at - burst.started_at) if burst.started_at and burst.ended_at else None
    left = None
    if burst.expires_at and not burst.ended_at:
        left = format_age(burst.expires_at - now) if burst.expires_at > now else "over"
    return (
        burst.id.partition("/")[2], burst.workload, burst.where, age, lasted, left, burst.started_at,
        burst.ended_at or (f"until {format_time(burst.expires_at)}" if burst.expires_at else None),
        len(burst.steps), why,
    )  # fmt: skip # a row as it is printed
