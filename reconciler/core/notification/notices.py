"""Notices of the commits of the output branch, and of what no commit tells; and which of them a receiver hears of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256

from reconciler.bulkhead import NoteBug, Seam, attempt
from reconciler.core.commits.history import reasons_in_body
from reconciler.core.commits.trailers import Trailer, action, is_own
from reconciler.errors import Bug
from reconciler.model.action import TRAITS, Action
from reconciler.model.end_reason import ENDS
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance, Notification
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Phase
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.text.timestamps import format_time
from reconciler.text.wording import sanitize

_KINDS: Mapping[Action, EventKind] = {
    **{action: traits.event for action, traits in TRAITS.items()},
    Action.DISCARD: EventKind.DISCARDED,
}
"""Actions without an entry are housekeeping, of which nobody is told."""
_WARNINGS = frozenset({
    EventKind.DELETED, EventKind.RESTORED, EventKind.PROPOSED, EventKind.DISCARDED, EventKind.HELD_BACK,
    EventKind.CLUSTER_LOST, EventKind.BUDGET_NEARLY_SPENT, EventKind.BUDGET_SPENT,
})  # fmt: skip # a list of words
_UNWANTED = frozenset(why.value for why, end in ENDS.items() if end.is_unwanted)
_WORKLOAD = re.compile(r"\(([^/()\s]+)/([^/()\s]+)\):")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_REASONS = 20


def notices_of(
    commits: Iterable[LoggedCommit], committer: Identity, note_bug: NoteBug = lambda _: None
) -> tuple[Notice, ...]:
    """Return a notice of each commit that is Overspill's own, in the order of the commits.

    A commit of which none can be made is passed over: `note_bug` gets why.
    """
    notices: list[Notice] = []
    for commit in commits:
        if not is_own(commit, committer):
            continue
        notice = attempt(Seam.COMMIT, commit.id, partial(_notice, commit))
        if isinstance(notice, Bug):
            note_bug(notice)
        elif notice is not None:
            notices.append(notice)
    return tuple(notices)


def live_notice(event: Event, workspaces: tuple[WorkspaceName, ...] = ()) -> Notice:
    """Make the notice of an event that no commit tells, such as a change that is held back."""
    key = f"{event.kind}\n{event.workload}\n{event.held_by}\n{event.line}\n{format_time(event.at)}"
    warning = event.kind in _WARNINGS
    return Notice(
        id=sha256(key.encode()).hexdigest()[:40],
        event=event,
        importance=Importance.WARNING if warning else Importance.INFO,
        workspaces=workspaces,
    )


def wanted(notification: Notification, notices: Iterable[Notice]) -> Iterator[Notice]:
    """Yield the notices that a receiver hears of."""
    for notice in notices:
        workload = notice.event.workload
        concerned = notice.workspaces if workload is None else (workload.workspace,)
        if notification.workspaces and not {*concerned} & {*notification.workspaces}:
            continue
        if notification.events and notice.event.kind not in notification.events:
            continue
        if notice.importance.rank >= notification.least.rank:
            yield notice


def _notice(commit: LoggedCommit) -> Notice | None:
    """Make the notice of a commit; None for housekeeping."""
    done = action(commit)
    kind = None if done is None else _KINDS.get(done)
    if kind is None:
        return None
    if kind is EventKind.ENDED and Trailer.PHASE.read(commit) == Phase.FAILED:
        kind = EventKind.FAILED
    source = Trailer.SOURCE.read(commit)
    clusters = (Trailer.MOVED_FROM.read(commit), Trailer.CLUSTER.read(commit))
    event = Event(
        kind=kind,
        at=commit.at,
        line=sanitize(commit.subject),
        workload=_workload(commit),
        clusters=tuple(ClusterName(sanitize(name)) for name in clusters if name),
        reasons=tuple(map(sanitize, reasons_in_body(commit.body).splitlines()[:_MOST_REASONS])),
        commit=commit.id,
    )
    return Notice(
        id=commit.id,
        event=event,
        importance=_importance(kind, "" if done is Action.RESIZE else Trailer.WHY.read(commit)),
        source=CommitId(source) if _COMMIT.fullmatch(source) else None,
        placement=sanitize(Trailer.PLACEMENT.read(commit)),
    )


def _workload(commit: LoggedCommit) -> WorkloadId | None:
    names = _WORKLOAD.search(commit.subject)
    if names is None:
        return None
    return WorkloadId(WorkspaceName(names[1]), TemplateName(names[2]), Trailer.REQUEST.among(commit))


def _importance(kind: EventKind, why: str) -> Importance:
    """Rank an event: what failed, then what somebody may have to look into."""
    if kind is EventKind.FAILED:
        return Importance.ERROR
    return Importance.WARNING if kind in _WARNINGS or why in _UNWANTED else Importance.INFO
