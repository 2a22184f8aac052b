"""A plan as a value to print: each commit with its row and its files, what is held back, and what it costs.

The commands print its JSON, whether a daemon or this machine made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.cost.rate import HourlyRate, hourly_rate
from reconciler.core.explain.placement_notes import describe_injection
from reconciler.daemon.answers.plan_rows import PlanRow, plan_rows
from reconciler.daemon.reconcile import PassDecision
from reconciler.errors import Bug, Problem
from reconciler.model.action import Action
from reconciler.model.ids import ClusterName, CommitId, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Suppressed
from reconciler.model.policy import Cluster
from reconciler.model.tree import Commit, Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommit:
    """A commit that a plan would make."""

    subject: str
    message: str
    author: Identity
    at: datetime
    removes: tuple[str, ...]
    writes: Mapping[str, bytes]
    change: Change | None
    """None for a commit that only begins a branch or a directory."""
    notes: tuple[str, ...]
    """The changes of a subset to the pods of the placement."""
    row: PlanRow


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """A plan."""

    at: datetime
    source: CommitId | None
    output: CommitId | None
    commits: tuple[PlannedCommit, ...]
    suppressed: tuple[Suppressed, ...]
    cost: HourlyRate
    """How much more all placements would cost than they do."""
    problems: tuple[Problem, ...]
    wake_at: datetime | None


def report_plan(decision: PassDecision, rendered: RenderedPlan) -> PlanReport:
    """Report a plan."""
    first = len(rendered.commits) - len(rendered.changes)
    changes: list[Change | None] = [*([None] * first), *rendered.changes]
    bugs: list[Bug] = []
    commits = tuple(
        PlannedCommit(
            subject=commit.message.partition("\n")[0],
            message=commit.message,
            author=commit.author,
            at=commit.at,
            removes=commit.removes,
            writes=commit.writes,
            change=change,
            notes=(*_notes(decision, change, bugs),),
            row=row,
        )
        for commit, change, row in zip(rendered.commits, changes, plan_rows(rendered), strict=True)
    )
    return PlanReport(
        at=decision.inputs.now,
        source=decision.tips.source,
        output=decision.tips.output,
        commits=commits,
        suppressed=rendered.suppressed,
        cost=cost_of(rendered.changes, decision.inputs.desired.clusters, decision.inputs.now),
        problems=(*decision.problems, *rendered.problems, *(bug.problem(bug.item) for bug in bugs)),
        wake_at=decision.plan.wake_at,
    )


def placements_of(changes: Sequence[Change]) -> Iterator[Placement]:
    """Yield the placements that changes end, replace, write or keep."""
    yield from _before(changes)
    yield from _after(changes)


def visible_part(rendered: RenderedPlan, may_see: Callable[[WorkloadId], bool]) -> RenderedPlan:
    """Leave out the changes and the held-back replicas of others, and files that others share.

    Of each commit the files of its placements are left.
    """
    first = len(rendered.commits) - len(rendered.changes)
    rows = plan_rows(rendered)[first:]
    kept = [
        (_own_files(commit, change), change)
        for commit, change, row in zip(rendered.commits[first:], rendered.changes, rows, strict=True)
        if row.workload is not None and may_see(row.workload)
    ]
    return replace(
        rendered,
        commits=tuple(commit for commit, _ in kept),
        changes=tuple(change for _, change in kept),
        suppressed=tuple(entry for entry in rendered.suppressed if may_see(entry.workload)),
    )


def cost_of(changes: Sequence[Change], clusters: Mapping[ClusterName, Cluster], moment: datetime) -> HourlyRate:
    """Return how much more placements cost by the hour after some changes than before."""
    before, after = (hourly_rate(placements, clusters, moment) for placements in (_before(changes), _after(changes)))
    return after.minus(before)


def _own_files(commit: Commit, change: Change) -> Commit:
    """Leave out files of a commit that are not of the placement alone."""
    own = tuple(f"{placement.path}/" for placement in placements_of((change,)))
    return replace(
        commit,
        removes=tuple(path for path in commit.removes if f"{path}/".startswith(own)),
        writes={path: data for path, data in commit.writes.items() if path.startswith(own)},
    )


def _before(changes: Sequence[Change]) -> Iterator[Placement]:
    """Yield the placements of changes until then; what a person deleted is gone already."""
    for change in changes:
        if change.action is not Action.HOLD:
            yield from filter(None, (change.before, change.joined))


def _after(changes: Sequence[Change]) -> Iterator[Placement]:
    """Yield the placements of changes from here on."""
    yield from (change.after for change in changes if change.after is not None)


def _notes(decision: PassDecision, change: Change | None, bugs: list[Bug]) -> Iterator[str]:
    """Yield the changes of a subset to the pods of the placement that a change writes."""
    placement = None if change is None else change.rewritten
    if placement is None:
        return
    notes = attempt(Seam.STATUS, placement.path, lambda: (*describe_injection(decision.inputs.desired, placement),))
    if isinstance(notes, Bug):
        bugs.append(notes)
        yield notes.summary
    else:
        yield from notes
