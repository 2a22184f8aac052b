"""What came onto the output branch with an approval and was not proposed.

Reviewers say yes to a proposal: to one file. Whoever may push to the branch of a proposal can put others beside it, and
a merge before the daemon has seen them brings all of it. The approval counts, and whatever came with it is as before.

Hosts merge in three ways. A merge commit and a squash are one commit on the first parents, with the approval in it. A
rebase lands a row of commits that the host makes within a moment. Of a fast-forward, our own commit of the proposal is
on the branch itself, and what stands upon it came with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.commits.trailers import Trailer, write_trailers
from reconciler.core.ledger.read import approved_workload
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.ids import BlobId, CommitId, WorkloadId
from reconciler.model.tree import BranchSection, Commit, FileChange, Identity, LoggedChanges, checked_path
from reconciler.text.wording import count, join_names, sanitize, sentence, wrap_text

_MOMENT = timedelta(seconds=2)
"""Time between the commits of one rebase, which no person needs between two merges."""
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UnproposedChanges:
    """What one merge brought beside approvals."""

    workload: WorkloadId
    """Whose approval it came with, the first of several."""
    commits: tuple[CommitId, ...]
    by: str
    """Who committed the last of them: often the host."""
    files: tuple[FileChange, ...]
    """Each path once: as it was before, and as the merge left it."""

    @property
    def line(self) -> str:
        """What is told of it, in one line."""
        names = ", ".join(sanitize(change.path, 120) for change in self.files[:_NAMED])
        more = f" and {len(self.files) - _NAMED} more" if len(self.files) > _NAMED else ""
        return (
            f"discard({self.workload}): {count(len(self.files), 'file')} merged with its approval that Overspill"
            f" did not propose: {names}{more}"
        )


def find_unproposed(section: BranchSection, committer: Identity) -> tuple[UnproposedChanges, ...]:
    """Find what came with approvals in a section of the output branch that others have committed, oldest first.

    A merge that brings several approvals brings none: nobody can say which of them a reviewer was shown.
    """
    return tuple(filter(None, (_unproposed(merge) for merge in _merges(section.commits, committer))))


def discard_commit(
    changes: UnproposedChanges,
    standing: Mapping[str, BlobId],
    contents: Mapping[BlobId, bytes],
    *,
    author: Identity,
    at: datetime,
) -> Commit | None:
    """Write the commit that puts files back as they were before a merge; None where nothing of it stands any more.

    `standing` are the blobs at the tip by path, and `contents` those of the earlier files. A file that somebody has
    changed since then is that person's, and stays.
    """
    stands = [change for change in changes.files if standing.get(change.path) == change.new]
    undone = [change for change in stands if change.old is None or _is_writable(change.path)]
    if not undone:
        return None
    title = changes.line.partition(": ")[0]
    merged = join_names(commit[:12] for commit in changes.commits)
    body = [
        sentence(changes.line.partition(": ")[2]),
        f"{sanitize(changes.by, 100)} committed {merged}: everything beside the approval is as it was before.",
        *(
            f"{sanitize(change.path)} stays: no path of that name is written here."
            for change in stands
            if change not in undone
        ),
        "To have it on this branch, push it without a proposal.",
    ]
    trailers = write_trailers([(Trailer.ACTION, Action.DISCARD)])
    text = "\n".join(map(wrap_text, body))
    return Commit(
        message=f"{title}: {count(len(undone), 'file')} merged with its approval\n\n{text}\n\n{trailers}\n",
        author=author,
        at=at,
        removes=tuple(change.path for change in undone if change.old is None),
        writes={change.path: contents[change.old] for change in undone if change.old is not None},
        key=title,
    )


def _is_writable(path: str) -> bool:
    try:
        checked_path(path)
    except InvalidInput:
        return False
    return True


def _merges(commits: Sequence[LoggedChanges], committer: Identity) -> Iterator[list[LoggedChanges]]:
    """Yield the commits that landed together, of those with an approval among them."""
    rows: list[list[LoggedChanges]] = []
    for logged in commits:
        if rows and _landed_together(rows[-1], logged, committer):
            rows[-1].append(logged)
        else:
            rows.append([logged])
    yield from (row for row in rows if any(map(_approvals, row)))


def _landed_together(row: Sequence[LoggedChanges], logged: LoggedChanges, committer: Identity) -> bool:
    last, this = row[-1].commit, logged.commit
    # 1. The host made both within a moment.
    if last.committer == this.committer and abs(this.at - last.at) <= _MOMENT:
        return True
    # 2. It stands upon our own commit of a proposal, which only a fast-forward brings.
    ours = any(_approvals(each) and committer.has(each.commit.committer.email) for each in row)
    return ours and not _approvals(logged)


def _approvals(logged: LoggedChanges) -> list[str]:
    """List the approvals that a commit adds."""
    return [
        change.path
        for change in logged.files
        if change.old is None and change.new is not None and approved_workload(change.path) is not None
    ]


def _unproposed(merge: Sequence[LoggedChanges]) -> UnproposedChanges | None:
    approvals = [path for logged in merge for path in _approvals(logged)]
    workload = next(filter(None, map(approved_workload, approvals)), None)
    files: dict[str, FileChange] = {}
    for logged in merge:
        for change in logged.files:
            before = files.get(change.path, change).old
            files[change.path] = FileChange(path=change.path, old=before, new=change.new)
    kept = set(approvals) if len(approvals) == 1 else set()
    others = tuple(change for path, change in sorted(files.items()) if path not in kept and change.old != change.new)
    if workload is None or not others:
        return None
    return UnproposedChanges(
        workload=workload,
        commits=tuple(logged.commit.id for logged in merge),
        by=merge[-1].commit.committer.name,
        files=others,
    )
