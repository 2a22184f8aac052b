"""Whether the source branch confirms a mass deletion: since the commit that deleted, wherever its message went.

A pull request reaches a branch as a merge commit, a squash, a rebase or a fast-forward, and other commits come behind
it before anybody looks. So every commit counts that is in the history of the tip and not in that of the commit before
the deletion; an older confirmation was of another deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.core.commits.trailers import confirms_deletion
from reconciler.core.decide.state.pass_input import MassDeletion
from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.objects import Identity, identity
from reconciler.core.fleet.paths import FLEET_FILE
from reconciler.core.fleet.read_file import is_read, parse_file
from reconciler.core.schema.yaml import MAX_BYTES
from reconciler.errors import Conflict
from reconciler.model.bounds import SOURCE_HISTORY
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.policy import Desired
from reconciler.model.tree import FileChange
from reconciler.ports import Repository

_LOOKS = (20, 500, SOURCE_HISTORY.most)
"""Commits that are searched for the deletion at first, and where it is not among these."""
_EVER = datetime.min.replace(tzinfo=UTC)
_OF_WORKLOADS = ("WorkloadTemplate", "WorkloadPlacement", "GPUProvisioningRequest")
_LETTING = frozenset({"BurstPolicy", "Workspace"})
"""Kinds that let workloads burst."""


class DeletionConfirmations:
    """Answers for one mass deletion at a time, and remembers the answer for its source commit."""

    def __init__(self, repository: Repository) -> None:
        """Read nothing yet."""
        self._repository = repository
        self._answer: tuple[CommitId, MassDeletion, bool] | None = None

    def confirmed(self, desired: Desired, deletion: MassDeletion) -> bool:
        """Return whether a commit since the last of the deletions confirms it, up to the commit of a fleet."""
        tip = desired.commit
        if self._answer is None or self._answer[:2] != (tip, deletion):
            self._answer = (tip, deletion, self._ask(tip, _Gone.of(desired, deletion)))
        return self._answer[2]

    def _ask(self, tip: CommitId, gone: _Gone) -> bool:
        """Read the commits since the deletion; the tip alone where the branch has no commit that deletes this.

        That is so where the branch was replaced by another.
        """
        try:
            found, base = self._before_deletion(tip, gone)
            commits = self._repository.log(tip, base=base, limit=SOURCE_HISTORY.most if found else 1)
        except Conflict:  # the remote has no more of the history than the mirror
            commits = self._repository.log(tip, limit=1)
        return any(map(confirms_deletion, commits))

    def _before_deletion(self, tip: CommitId, gone: _Gone) -> tuple[bool, CommitId | None]:
        """Find the newest commit along first parents that deleted a part of what is gone.

        Returns whether there is one, and the commit before it.
        """
        for limit in _LOOKS:
            section = self._repository.section(tip, since=_EVER, limit=limit)
            commits = section.commits
            deleting = (at for at in range(len(commits) - 1, -1, -1) if self._deletes(commits[at].files, gone))
            # What the Fleet ignores, and where it reads a kind from, takes objects out of force as well.
            refitting = (
                at
                for at in range(len(commits) - 1, -1, -1)
                if any(file.path == FLEET_FILE and file.old is not None for file in commits[at].files)
            )
            position = next(deleting, None)
            if position is None and (section.base is None or limit == _LOOKS[-1]):
                position = next(refitting, None)
            if position is not None:
                below = section.base if position == 0 else commits[position - 1].commit
                return True, None if below is None else below.id
            if section.base is None:
                break
        return False, None

    def _deletes(self, changes: Iterable[FileChange], gone: _Gone) -> bool:
        """Return whether changed files had an object before that they no longer have, and that is gone now."""
        changed = [change for change in changes if change.old is not None and is_read(change.path)]
        blobs = {blob for change in changed for blob in (change.old, change.new) if blob is not None}
        contents = self._repository.read(blobs) if blobs else {}
        files = {blob: parse_file(data) for blob, data in contents.items() if len(data) <= MAX_BYTES}
        before = frozenset(name for change in changed for name in _held(files, change.old))
        after = frozenset(name for change in changed for name in _held(files, change.new))
        return bool((before - after) & gone.names) or any(name[0] in gone.kinds for name in before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gone:
    """The objects whose absence a mass deletion is about."""

    names: frozenset[Identity]
    kinds: frozenset[str]
    """Kinds of which any may be the one: what lets a workload burst is not known once it is gone."""

    @classmethod
    def of(cls, desired: Desired, deletion: MassDeletion) -> _Gone:
        """Return the objects that a fleet lacks."""
        absent = [workload for workload in deletion.workloads if workload not in desired.templates]
        names = {(kind, str(workload.name)) for workload in absent for kind in _OF_WORKLOADS}
        names |= {("Cluster", str(cluster)) for cluster in deletion.clusters}
        return cls(names=frozenset(names), kinds=_LETTING if len(absent) < len(deletion.workloads) else frozenset())


def _held(files: Mapping[BlobId, ParsedFile], blob: BlobId | None) -> frozenset[Identity]:
    """Return what a version of a file holds."""
    file = files.get(blob) if blob is not None else None
    return frozenset() if file is None else frozenset(identity(declared.value) for declared in file.objects)
