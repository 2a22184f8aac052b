"""Events of a pass: of changes once their commits are pushed, and of changes that are held back.

Events use the words of the commit messages and of the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType

from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits import cluster_branches, messages
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.errors import Bug
from reconciler.model.action import TRAITS, Action
from reconciler.model.demand import Demand
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import CommitId, WorkloadId
from reconciler.model.placement import Phase
from reconciler.model.plan import Change, Reason, Suppressed
from reconciler.model.tree import Advance

SuppressedByReason = Mapping[tuple[WorkloadId, Reason], Suppressed]
"""Suppressed changes by workload and reason: the numbers in the message change with every pass."""


def with_commits(changes: Sequence[Change], commits: Sequence[CommitId]) -> Iterator[tuple[Change, CommitId]]:
    """Pair changes with their commits: those that begin a branch stand before them, and carry no change."""
    return zip(changes, commits[len(commits) - len(changes) :], strict=True)


def of_push(
    changes: Sequence[Change],
    commits: Sequence[CommitId],
    branches: Sequence[Advance],
    at: datetime,
    note_bug: Callable[[Bug], None] = lambda _: None,
    *,
    titles: Sequence[str] = (),
    unserved: Mapping[WorkloadId, timedelta] = MappingProxyType({}),
) -> tuple[Event, ...]:
    """Make an event of each change that a push carries, in the order of their commits.

    Branches of clusters that are put right with nothing else to push are one event. A change of which none can be made
    has none: `note_bug` gets why. `titles` are the subjects of the changes' commits, `unserved` is `unserved_times` of
    the pass.
    """
    if branches and not commits:
        clusters = tuple(advance.cluster for advance in branches)
        line = cluster_branches.line(branches)
        return (Event(kind=EventKind.BRANCHES_FOLLOWED, at=at, line=line, clusters=clusters),)
    events: list[Event] = []
    for (change, commit), title in zip(with_commits(changes, commits), titles or [""] * len(changes), strict=True):
        event = attempt(Seam.EVENT, commit, partial(_event, change, commit, title, at, unserved))
        if isinstance(event, Bug):
            note_bug(event)
        else:
            events.append(event)
    return tuple(events)


def of_held_back(
    before: SuppressedByReason, now: SuppressedByReason, changes: Iterable[Event], at: datetime
) -> Iterator[Event]:
    """Yield events of changes that are newly held back, or no longer are; `changes` are the events of this pass.

    An event of a change that was waited for says itself that nothing holds it back any more.
    """
    grown, shrunk = _resize_events(changes)
    for workload, reason in sorted(before.keys() - now.keys()):
        if workload not in (shrunk if reason is Reason.SCALE_DOWN_WINDOW else grown):
            yield Event(
                kind=EventKind.NO_LONGER_HELD_BACK,
                at=at,
                line=f"{workload}: no longer held back ({reason})",
                workload=workload,
                held_by=reason,
            )
    for key, suppressed in now.items():
        if key not in before:
            yield Event(
                kind=EventKind.HELD_BACK,
                at=at,
                line=f"{suppressed.workload}: {suppressed.message}",
                workload=suppressed.workload,
                clusters=tuple(sorted({refusal.cluster for refusal in suppressed.refusals})),
                replicas=suppressed.replicas,
                reasons=(
                    suppressed.message,
                    *(f"{refusal.where}: {refusal.message}" for refusal in suppressed.refusals),
                ),
                held_by=suppressed.reason,
            )


def unserved_times(inputs: PassInput) -> Mapping[WorkloadId, timedelta]:
    """Return how long the first missing replica of each workload has been served by no placement."""
    placements = inputs.ledger.placements
    since = {
        workload: demand.lacking_since(sum(placement.replicas for placement in placements.of(workload).placements))
        for workload, demand in inputs.demands.items()
        if isinstance(demand, Demand) and demand.needed
    }
    return {workload: inputs.now - moment for workload, moment in since.items() if moment is not None}


def _event(
    change: Change, commit: CommitId, title: str, at: datetime, unserved: Mapping[WorkloadId, timedelta]
) -> Event:
    failed = change.action is Action.REVERT and change.phase is Phase.FAILED
    return Event(
        kind=EventKind.FAILED if failed else TRAITS[change.action].event,
        at=at,
        line=messages.line(change, title),
        workload=change.workload,
        clusters=change.clusters,
        before=change.replicas_before,
        replicas=change.replicas_after if change.proposal is None else change.proposal.replicas,
        reasons=messages.reason_paragraphs(change),
        commit=commit,
        waited=unserved.get(change.workload) if change.shortage is not None else None,
    )


def _resize_events(changes: Iterable[Event]) -> tuple[frozenset[WorkloadId], frozenset[WorkloadId]]:
    """Return the workloads that got replicas elsewhere and those that gave some back."""
    grown: set[WorkloadId] = set()
    shrunk: set[WorkloadId] = set()
    for event in changes:
        if event.workload is not None and event.kind in _RESIZING:
            (grown if event.replicas > event.before else shrunk).add(event.workload)
    return frozenset(grown), frozenset(shrunk)


_RESIZING = frozenset({EventKind.PLACED, EventKind.RESIZED, EventKind.ENDED, EventKind.FAILED})
"""Events that follow the demand; a placement that a person deletes does not."""
