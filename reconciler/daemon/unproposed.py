"""Takes off the output branch what was merged with an approval and not proposed, before a pass is decided on it.

Nobody can keep a host from merging what stands on a branch. So the pass that would read the approval first puts all
else back, in a commit of its own: no pass takes it for a placement, no branch of a cluster gets it, and an engine that
has seen it already removes it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import structlog

from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits.unproposed_changes import UnproposedChanges, discard_commit, find_unproposed
from reconciler.core.ledger.read import approved_workload
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Bug
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.tree import Commit, Identity, Tips
from reconciler.ports import Repository

log = structlog.get_logger()

_MOST = 1000
"""Commits of others since our last one that are looked through."""
_ALWAYS = datetime.min.replace(tzinfo=UTC)


def take_off_unproposed(
    repository: Repository, ledger: Ledger, tips: Tips, author: Identity, now: datetime
) -> tuple[Event, ...]:
    """Push a commit for each merge that brought more than its approval, and return what is told of them.

    Costs nothing where the branch holds no approval. Raises Conflict where the branch has moved.
    """
    broken = any(approved_workload(problem.path) is not None for problem in ledger.problems)
    if tips.output is None or tips.losses or not (ledger.approvals or broken):
        return ()
    base = repository.last_written(tips.output)
    if base is None or base == tips.output:
        return ()
    section = repository.section(tips.output, since=_ALWAYS, base=base, limit=_MOST)
    found = attempt(Seam.EDIT, tips.output, partial(find_unproposed, section, author))
    if isinstance(found, Bug):
        BUGS.note(found)
        return ()
    written = [(each, commit) for each in found if (commit := _commit(repository, tips.output, each, author, now))]
    if not written:
        return ()
    ids = repository.write(tips.output, [commit for _, commit in written])
    repository.begin_push(ids[-1], old=tips.output)()
    for each, _ in written:
        log.warning("discarded", line=each.line, merged=each.commits[-1][:12])
    return _events(written, ids, now)


def _commit(
    repository: Repository, tip: CommitId, changes: UnproposedChanges, author: Identity, now: datetime
) -> Commit | None:
    paths = {change.path for change in changes.files}
    standing = {entry.path: entry.blob for entry in repository.entries(tip, under=sorted(paths)) if entry.path in paths}
    contents = repository.read([change.old for change in changes.files if change.old is not None])
    return discard_commit(changes, standing, contents, author=author, at=now)


def _events(
    written: Sequence[tuple[UnproposedChanges, Commit]], ids: Sequence[CommitId], now: datetime
) -> tuple[Event, ...]:
    return tuple(
        Event(kind=EventKind.DISCARDED, at=now, line=changes.line, workload=changes.workload, commit=commit)
        for (changes, _), commit in zip(written, ids, strict=True)
    )
