"""Files, commits and branches as values, before anything is written.

Beside the output branch, a branch for each cluster can hold that cluster's directory alone. These branches are made
from the output branch, and nothing is ever read back from them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from reconciler.errors import InvalidInput
from reconciler.model.branch_loss import BranchLoss
from reconciler.model.branch_refusal import BranchRefusal
from reconciler.model.ids import BlobId, ClusterName, CommitId, TreeId


def checked_path(path: str) -> str:
    """Return `path` if it may be written to the output branch.

    Raises InvalidInput for what git or an engine could be tricked with: empty or dot segments, ``.git*`` in any case,
    absolute paths, backslashes and control characters. git's own fast-import accepts ``../x`` and ``.git/config``.
    """
    for part in path.split("/"):
        if part.lower().startswith(".git") or "\\" in part or not part.isprintable():
            raise InvalidInput(f"writing {path!r} to the output branch: {part!r} cannot be part of a path there")
    return removable_path(path)


def removable_path(path: str) -> str:
    """Return `path` if it may be removed from the output branch, where others may have given it any name.

    Raises InvalidInput for one that leads elsewhere, or to the whole branch.
    """
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise InvalidInput(f"changing {path!r} on the output branch: it is no path below its root")
    return path


def blob_of(data: bytes) -> BlobId:
    """Return the id that git gives to the content of a file."""
    return BlobId(hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The author or committer of a commit."""

    name: str
    email: str
    former: frozenset[str] = frozenset()
    """Other addresses that this one has committed with."""

    def has(self, email: str) -> bool:
        """Return whether an address is, or was, the one of this person or program."""
        return email == self.email or email in self.former


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit to be made on top of the preceding one: first the removals, then the writes.

    Paths are checked on construction.
    """

    message: str
    author: Identity
    at: datetime
    removes: tuple[str, ...] = ()
    """Directories or files that are removed whole; a missing one is no error."""
    writes: Mapping[str, bytes] = field(default_factory=dict)
    """Contents by path."""
    key: str = ""
    """The name of the change in logs."""

    def __post_init__(self) -> None:
        """Refuse a path that must never be written."""
        for path in self.removes:
            removable_path(path)
        for path in self.writes:
            checked_path(path)


class EntryType(Enum):
    """What stands at a path of a commit."""

    FILE = "file"
    LINK = "symbolic link"
    SUBMODULE = "submodule"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A path of a commit that is no directory."""

    path: str
    blob: BlobId
    """Of a link its target; of a submodule the id of its commit."""
    size: int = -1
    """In bytes; -1 where it was not requested."""
    type: EntryType = EntryType.FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A path that differs between two commits; None on a side without the path."""

    path: str
    old: BlobId | None
    new: BlobId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFiles:
    """What one commit changes on the commit below it."""

    parent: CommitId | None
    """None where it has none, or several."""
    changes: tuple[FileChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A branch that is to be merged into the source branch."""

    commit: CommitId
    base: CommitId
    """The newest commit that both have."""


class SignatureFault(Enum):
    """Why the tip of the source branch is not in force by its own signature."""

    UNSIGNED = "unsigned"
    OLDER = "older"
    """Signed, but neither later than what is in force nor a successor of it."""
    DELISTED = "delisted"
    """In force since before, though its signer is not allowed (any more)."""
    UNCHECKED = "unchecked"
    """git cannot check it here and now, as without ssh-keygen or on a full disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTip:
    """The tip of the source branch, and why its signature does not count."""

    commit: CommitId
    why: SignatureFault
    said: str = ""
    """Why it cannot be checked; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """The tips of the two branches; None for a branch that does not exist yet."""

    source: CommitId | None
    output: CommitId | None
    output_at: datetime | None = None
    """Committer time of the output tip: history must not run backwards even if the clock does."""
    held_back: SourceTip | None = None
    """The real tip of the source branch, where commits have to be signed and its signature does not count."""
    losses: tuple[BranchLoss, ...] = ()
    """Branches that lack their last known commits; `output` is the known one where the mirror holds it."""
    refused: tuple[BranchRefusal, ...] = ()
    """Branches of clusters that the remote refused at the last push of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCommit:
    """A commit as read back from git."""

    id: CommitId
    at: datetime
    author: Identity
    committer: Identity
    subject: str
    body: str
    trailers: Mapping[str, str] = field(default_factory=dict)
    """The last value of each key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChanges:
    """A commit with the files that differ from its first parent."""

    commit: LoggedCommit
    files: tuple[FileChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchSection:
    """Commits of a branch along first parents, oldest first."""

    base: LoggedCommit | None
    """The commit below the oldest one, no part of the section; None where the branch begins with the section."""
    commits: tuple[LoggedChanges, ...] = ()


ROOT = "clusters"
"""The directory whose directories are the clusters', on the output branch and on theirs."""


_BRANCH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")


def is_branch_name(name: str) -> bool:
    """Return whether a text is the name of a branch, and nothing that git or a refspec reads in another way."""
    parts = name.split("/")
    return (
        _BRANCH_NAME.fullmatch(name) is not None
        and ".." not in name
        and not any(part.endswith((".", ".lock")) for part in parts)
    )


def describe_standing(kind: str, path: str) -> tuple[str, str]:
    """Say what of a person's stands in place of a directory of ours on the output branch, and the remedy."""
    stands = f"a {kind} that is not Overspill's stands at {path} on the output branch"
    return f"{stands}, where its directory belongs, and stays", f"git mv {path} <another name> on that branch"


def branch_of(output: str, cluster: str) -> str:
    """Name the branch of a cluster after the output branch.

    They lie beside it, not below: git keeps no ``placements/worker-2`` where there is a ``placements``.
    """
    return f"{output}-by-cluster/{cluster}"


def alone(cluster: ClusterName, directory: TreeId | None) -> TreeId:
    """Return the id of a whole tree that holds a cluster's directory in its place and nothing else.

    As git names it: SHA-1 over the kind, the length and the entries. None is for a cluster that has no directory.
    """
    if directory is None:
        return _tree_id(b"")
    inner = _tree_id(b"40000 %s\0%b" % (cluster.encode(), bytes.fromhex(directory)))
    return _tree_id(b"40000 %s\0%b" % (ROOT.encode(), bytes.fromhex(inner)))


def _tree_id(entries: bytes) -> TreeId:
    return TreeId(hashlib.sha1(b"tree %d\0%b" % (len(entries), entries), usedforsecurity=False).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The tip of a cluster's branch: its commit, tree and commit time."""

    commit: CommitId
    tree: TreeId
    at: datetime
    is_foreign: bool = False
    """Whether it has files, and none of the cluster: a person has made a branch of a name that a cluster may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCommit:
    """A commit of a cluster's branch: the cluster's directory at that time, None if it did not exist."""

    message: str
    author: Identity
    at: datetime
    directory: TreeId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Commits that a cluster's branch lacks, oldest first, on top of its tip (None: the branch does not exist)."""

    cluster: ClusterName
    base: Branch | None
    snapshots: tuple[BranchCommit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """The move of a cluster's branch from its old commit, None for a new branch, to the pushed one."""

    cluster: ClusterName
    old: CommitId | None
    new: CommitId
