"""Which versions of files stood in paths before, back to where each path was really added or deleted.

A path still stands where a directory takes the place of its file, or a link or a submodule that of its directory: that
is no deletion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.core.fleet.read_file import is_read
from reconciler.model.ids import BlobId
from reconciler.model.tree import EntryType, TreeEntry

_MOST_WRITTEN = 1_000
"""Files of one commit that are looked at for what has moved into them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange:
    """What a commit changed in one path."""

    path: str
    old: BlobId | None
    """The regular file before; None for none, for a link and for a submodule."""
    stood: bool
    """Whether a file, a link or a submodule stood there before."""
    stands: bool
    """Whether one stands there after it."""
    new: BlobId | None = None
    """The regular file after; None for none, for a link and for a submodule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFiles:
    """What the files became that a commit wrote, for one of the paths that it changed."""

    blobs: tuple[BlobId, ...]
    """All of them, that of the path among them: one tuple for all paths, since a commit may change many. Empty for a
    commit that wrote very many."""
    own: BlobId | None = None
    """What the path itself became; None for no file."""


def written_files(after: Iterable[tuple[str, BlobId | None]]) -> tuple[BlobId, ...]:
    """Return what a commit wrote in files that are read, of what it left at the paths that it changed.

    That is nothing where these are very many.
    """
    written = tuple(blob for path, blob in after if blob is not None and is_read(path))
    return written if len(written) <= _MOST_WRITTEN else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathHistory:
    """The earlier versions of a file, newest first."""

    asked: str
    """The path that was asked for: its own, or that of the link or submodule in the place of its directory."""
    versions: tuple[BlobId, ...] = ()
    ended: bool = False
    """Whether they go back to where the path was added or deleted; False where there may be older ones."""
    taken_by: Mapping[BlobId, CommitFiles] = field(default_factory=dict)
    """By version: the files of the commit that took it away, into which its objects may have moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathHistories:
    """The histories of paths, by path."""

    paths: Mapping[str, PathHistory] = field(default_factory=dict)
    based: bool = False
    """Whether those that have not ended go on at the commit that the question named."""
    complete: bool = True
    """False where the remote itself lacks older commits."""


def path_histories(asked: Collection[str], commits: Iterable[Sequence[PathChange]]) -> dict[str, PathHistory]:
    """Follow paths back through the changes of commits, newest first."""
    open_paths = {path: path for path in asked}
    versions: dict[str, list[BlobId]] = {path: [] for path in asked}
    taken_by: dict[str, dict[BlobId, CommitFiles]] = {path: {} for path in asked}
    owners = dict(open_paths)
    for changes in commits:
        written = written_files((change.path, change.new) for change in changes)
        removed = [change for change in changes if change.stood and not change.stands]
        added = [change for change in changes if change.stands and not change.stood]
        hidden: dict[str, str] = {}
        for change in changes:
            owner = open_paths.get(change.path)
            if owner is None:
                continue
            below = f"{change.path}/"
            if not change.stands and not any(other.path.startswith(below) for other in added):
                del open_paths[change.path]  # deleted: what is in its place came later
                continue
            if change.old is not None:
                versions[change.path].append(change.old)
                taken_by[change.path].setdefault(change.old, CommitFiles(blobs=written, own=change.new))
            if not change.stood:
                del open_paths[change.path]
                for other in removed:
                    if other.path.startswith(below) and other.old is not None:
                        hidden[other.path] = owner
                        versions[other.path] = [other.old]
                        taken_by[other.path] = {other.old: CommitFiles(blobs=written)}
        open_paths |= hidden
        owners |= hidden
        if not open_paths:
            break
    return {
        path: PathHistory(
            asked=owner,
            versions=tuple(dict.fromkeys(versions[path])),
            ended=path not in open_paths,
            taken_by=taken_by[path],
        )
        for path, owner in owners.items()
    }


def uncommitted_changes(
    asked: Collection[str], directories: Collection[str], committed: Iterable[TreeEntry]
) -> list[PathChange]:
    """List what a work tree changes at some paths, compared with the entries of its commit.

    `directories` are those of the paths that are directories there.
    """
    entries = {entry.path: entry.blob if entry.type is EntryType.FILE else None for entry in committed}
    below: dict[str, list[str]] = {}
    for path in entries:
        parts = path.split("/")
        for length in range(1, len(parts)):
            if (parent := "/".join(parts[:length])) in asked:
                below.setdefault(parent, []).append(path)
    changes: list[PathChange] = []
    for path in sorted(asked):
        stood, stands = path in entries, path not in directories
        if stood or stands:
            changes.append(PathChange(path=path, old=entries.get(path), stood=stood, stands=stands))
        if stood and not stands:
            changes.append(PathChange(path=f"{path}/", old=None, stood=False, stands=True))
        if stands:
            removed = below.get(path, ())
            changes += [PathChange(path=old, old=entries[old], stood=True, stands=False) for old in removed]
    return changes
