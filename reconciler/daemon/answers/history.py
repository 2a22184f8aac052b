"""Past and present placements with their reasons, from the commits of the output branch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.commits.history import BurstHistory, as_they_stand, bursts, left_out, own
from reconciler.daemon.reconcile import PassDecision
from reconciler.errors import Bug, InvalidInput, Problem
from reconciler.model.ids import WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.tree import Identity
from reconciler.ports import Repository
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause

_AT_LEAST = 200
"""Minimum of commits that are read at once; fewer would save nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySelection:
    """The placements to show."""

    since: datetime | None = None
    """Placements that ended before are left out."""
    limit: int
    """The number of placements to show."""
    name: str = ""
    """The workload or placement that a person named; empty for all."""
    matches: tuple[str, ...] = ()
    """The workloads of the fleet that `name` may mean."""
    fleet: tuple[str, ...] = ()
    """All workloads and requests of the fleet."""
    within: Collection[WorkspaceName] | None = None
    """The workspaces that may be shown; None for all."""
    depth: int | None = None
    """The number of newest commits to look at; None for as many as it takes."""

    @classmethod
    def of(
        cls,
        decision: PassDecision | None,
        name: str,
        *,
        since: datetime | None,
        limit: int,
        within: Collection[WorkspaceName] | None = None,
    ) -> HistorySelection:
        """Select placements by the name of a workload or a placement among those of a fleet; all without a name."""
        if decision is None or not name:
            return cls(since=since, limit=limit, within=within)
        workloads = (*decision.inputs.desired.templates, *decision.inputs.ledger.requests)
        visible = (workload for workload in workloads if within is None or workload.workspace in within)
        fleet = tuple(dict.fromkeys(map(str, visible)))
        matches = tuple(workload for workload in fleet if name in (workload, workload.partition("/")[2]))
        return cls(since=since, limit=limit, name=name, matches=matches, fleet=fleet, within=within)

    def may_show(self, burst: BurstHistory) -> bool:
        """Return whether a placement is of a workspace that may be shown."""
        return self.within is None or burst.workload.partition("/")[0] in self.within

    def is_of(self, burst: BurstHistory) -> bool:
        """Return whether a placement has the name, or is of the workload that has it."""
        if not self.name or burst.workload in self.matches:
            return True
        names = [burst.workload, burst.id, burst.id.partition("/")[2]]
        # The fleet comes first: a template that another workspace once had under this name is not meant.
        return self.name in (names if self.matches else [*names, burst.workload.partition("/")[2]])

    def is_recent(self, burst: BurstHistory) -> bool:
        """Return whether a placement was there at `since` or later."""
        return self.since is None or burst.ended_at is None or burst.ended_at >= self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedHistory:
    """Past placements, newest first."""

    placements: tuple[BurstHistory, ...] = ()
    more: bool = False
    """Whether more exist than were asked for."""
    bugs: tuple[Bug, ...] = ()
    """Commits that could not be read, each of which is left out."""
    left_out: Problem | None = None
    """A warning of commits that look like ours, but for their committer."""


def read_history(
    repository: Repository, author: Identity, ledger: Ledger, selection: HistorySelection
) -> SelectedHistory:
    """Read past placements from a branch that `author` commits to.

    The log may be years long, so it is read in growing pieces, until each placement that is shown has its beginning.
    Raises InvalidInput for a name that neither the fleet nor the whole log has, or that the fleet has twice.
    """
    if len(selection.matches) > 1:
        raise _unclear(selection.name, "name the workload as <workspace>/<template>", selection.matches)
    limit, since = selection.limit, selection.since
    size = selection.depth or max(_AT_LEAST, 10 * limit)
    history: tuple[BurstHistory, ...] = ()
    while ledger.commit is not None:
        bugs: list[Bug] = []
        log = repository.log(ledger.commit, limit=size)
        history = as_they_stand(bursts(own(log, author), bugs.append), ledger, log[0].at)
        history = tuple(burst for burst in history if selection.may_show(burst))
        named = [burst for burst in history if selection.is_of(burst)]
        recent = [burst for burst in named if selection.is_recent(burst)]
        exists = bool(named or selection.matches or not selection.name)
        enough = len(recent) > limit or (since is not None and bool(log) and log[-1].at < since)
        whole = selection.depth is not None or len(log) < size
        if exists and (whole or (enough and all(burst.started_at for burst in recent[:limit]))):
            return SelectedHistory(
                placements=tuple(recent[:limit]),
                more=len(recent) > limit,
                bugs=tuple(bugs),
                left_out=left_out(log, author),
            )
        if whole:
            break
        size *= 4
    if selection.name and not selection.matches:
        names = (*selection.fleet, *(burst.workload for burst in history))
        raise _unclear(selection.name, "neither the fleet nor the history has it", names)
    return SelectedHistory()


def describe_end(read: Callable[[HistorySelection], SelectedHistory], selection: HistorySelection) -> str:
    """Say when and why the placement that a selection names has ended; empty where no recent commit tells it.

    One read of a bounded number of commits: most names without a placement are mistyped, and no commit has those.
    """
    try:
        history = read(replace(selection, depth=_AT_LEAST))
    except InvalidInput:
        return ""
    for burst in history.placements:
        if burst.ended_at is not None and selection.name in (burst.id, burst.id.partition("/")[2]):
            why = burst.steps[-1].reasons.partition("\n")[0] if burst.steps else burst.why
            return f"placement {burst.id} ended at {format_time(burst.ended_at)}{f': {as_clause(why)}' if why else ''}"
    return ""


def _unclear(name: str, message: str, names: Sequence[str]) -> InvalidInput:
    listing = ", ".join(sorted(set(names))) or "none"
    return InvalidInput(f"telling the history of {name!r}: {message} (there are: {listing})")
