"""Asks the history what stood in paths that hold no object now: once for each commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.objects import Identity
from reconciler.core.fleet.path_history import CommitFiles, PathHistories, PathHistory
from reconciler.core.fleet.standing_paths import held_names, is_whole
from reconciler.model.ids import BlobId, CommitId

_AT_ONCE = 20
_MOST_VERSIONS = 200
"""Earlier versions of a path that are read."""

Read = Callable[[Iterable[BlobId]], Mapping[BlobId, ParsedFile]]


class PastPaths(Protocol):
    """The history of the source branch, as far as it tells what stood in paths."""

    def past_versions(self, commit: CommitId, paths: Collection[str], *, base: CommitId | None = None) -> PathHistories:
        """List the versions that stood at some paths before those at `commit`, newest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldNames:
    """The objects in the files that a commit wrote: workspaces by kind and name."""

    all: Mapping[Identity, Collection[str]]
    by_blob: Mapping[BlobId, Mapping[Identity, Collection[str]]]
    """Those of each file that holds any."""

    def without(self, blob: BlobId) -> Mapping[Identity, Collection[str]]:
        """Return the objects of the other files."""
        names: dict[Identity, set[str]] = {}
        for other, held in self.by_blob.items():
            for name, workspaces in held.items() if other != blob else ():
                names.setdefault(name, set()).update(workspaces)
        return names


class LostObjects:
    """Remembers the earlier versions with objects of each path that may have lost them.

    All these paths are asked about at once, once for each commit, and from the commit on that was asked about last.
    """

    def __init__(self, history: PastPaths) -> None:
        """Know nothing yet."""
        self._history = history
        self._commit: CommitId | None = None
        self._known: dict[str, dict[str, tuple[BlobId, ...]]] = {}
        """By the path that is asked about: the earlier versions by path, oldest first."""
        self._taken_by: dict[tuple[str, BlobId], CommitFiles] = {}
        """By path and version: the files of the commit that took it away."""
        self._names: dict[tuple[BlobId, ...], _HeldNames] = {}
        """The names of the objects in those, which are kept in place of the files: there may be many."""

    def copy(self) -> LostObjects:
        """Return another with the same memory."""
        other = LostObjects(self._history)
        other._commit, other._known, other._taken_by = self._commit, dict(self._known), dict(self._taken_by)
        other._names = dict(self._names)
        return other

    def names_beside(self, path: str, blob: BlobId, read: Read) -> Mapping[Identity, Collection[str]]:
        """Return what other files held after the commit that took a version away: workspaces by kind and name."""
        taken_by = self._taken_by.get((path, blob))
        if taken_by is None:
            return {}
        blobs, own = taken_by.blobs, taken_by.own
        if blobs not in self._names:
            files = read(blobs)
            by_blob = {blob: held_names([file]) for blob, file in files.items()}
            self._names[blobs] = _HeldNames(
                all=held_names(files.values()), by_blob={blob: names for blob, names in by_blob.items() if names}
            )
        names = self._names[blobs]
        alone = own in names.by_blob and blobs.count(own) == 1
        return names.without(own) if own is not None and alone else names.all

    def versions(self, commit: CommitId, suspects: Collection[str], read: Read) -> dict[str, tuple[BlobId, ...]]:
        """Return earlier versions that hold objects, by path and oldest first, of paths that may have lost some.

        Raises Transient where history has to be fetched and cannot be.
        """
        known: dict[str, dict[str, tuple[BlobId, ...]]] = {}
        complete = True
        if suspects:
            answer = self._history.past_versions(commit, suspects, base=self._commit)
            known, unknown = self._follow(suspects, answer, read)
            if unknown:
                answer = self._history.past_versions(commit, unknown)
                known |= self._follow(unknown, answer, read)[0]
            complete = answer.complete
        remembered = [known, self._known]
        if complete:
            self._commit, self._known = commit, known
            remembered = [known]
        found = (pair for each in remembered for below in each.values() for pair in below.items())
        held = {(path, blob) for path, versions in found for blob in versions}
        self._taken_by = {place: files for place, files in self._taken_by.items() if place in held}
        asked = {files.blobs for files in self._taken_by.values()}
        self._names = {blobs: names for blobs, names in self._names.items() if blobs in asked}
        return {path: versions for below in known.values() for path, versions in below.items() if versions}

    def _follow(
        self, asked: Iterable[str], answer: PathHistories, read: Read
    ) -> tuple[dict[str, dict[str, tuple[BlobId, ...]]], set[str]]:
        """Return the versions with objects of each path that was asked about, and the paths that need a longer look."""
        by_asked: dict[str, list[tuple[str, PathHistory]]] = {}
        for path, history in answer.paths.items():
            by_asked.setdefault(history.asked, []).append((path, history))
        found: dict[str, dict[str, tuple[BlobId, ...]]] = {}
        unknown: set[str] = set()
        for name in asked:
            for path, history in by_asked.get(name, ()):
                versions, whole = _with_objects(history.versions, read)
                taken = history.taken_by
                self._taken_by |= {(path, blob): taken[blob] for blob in versions if blob in taken}
                if not (whole or history.ended) and answer.based:
                    before = self._known.get(name, {}).get(path)
                    if before is None:
                        unknown.add(name)
                        break
                    versions = (*before, *versions)
                found.setdefault(name, {})[path] = versions
            own = answer.paths.get(name)
            if answer.based and own is not None and not own.ended:
                # The files of a directory in whose place it stands have no history of their own since then.
                found[name] = {**self._known.get(name, {}), **found.get(name, {})}
        return found, unknown


def _with_objects(versions: tuple[BlobId, ...], read: Read) -> tuple[tuple[BlobId, ...], bool]:
    """Return those of some versions, newest first, that hold objects, oldest first, back to one that is whole.

    The second value says that there is such a one.
    """
    kept: list[BlobId] = []
    for start in range(0, min(len(versions), _MOST_VERSIONS), _AT_ONCE):
        batch = versions[start : start + _AT_ONCE]
        files = read(batch)
        for blob in batch:
            if not files[blob].broken and files[blob].objects:
                kept.append(blob)
                if is_whole(files[blob]):
                    return tuple(reversed(kept)), True
    return tuple(reversed(kept)), False
