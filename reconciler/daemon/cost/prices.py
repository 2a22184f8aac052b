"""Reads the Cluster files of earlier commits of the source branch, for the prices that held then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.read_file import assemble, is_read, parse_file
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.core.schema.yaml import MAX_BYTES
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.policy import Cluster
from reconciler.ports import Repository

_AT_ONCE = 256
_FIRST_LOOK, _GROWTH = 64, 4
"""Commits of the source branch that are read at first, and the factor of each further step."""
_RELEVANT = re.compile(rb"""kind["']?\s*:\s*["']?(?:Cluster|Fleet|Workspace)\b""")
"""Files that say what a Cluster file holds: the Fleet and the Workspaces say which paths count."""
_EPOCH = datetime.fromtimestamp(0, UTC)
_KINDS = (ClusterFile, FleetFile, WorkspaceFile)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFiles:
    """The Cluster files of a source commit, with the files that say which of them count."""

    commit: CommitId
    files: Mapping[str, ParsedFile]
    clusters: Mapping[ClusterName, Cluster]


class PriceReader:
    """Reads the Cluster files of source commits, and follows them at the cost of what differs.

    A file with an error is as it was at the commit before; without one before, its clusters have no price.
    """

    def __init__(self, repository: Repository) -> None:
        """Read nothing yet."""
        self._repository = repository
        self._history: dict[CommitId, int] = {}
        self._tip: CommitId | None = None

    def at(self, commit: CommitId, tip: CommitId) -> PriceFiles | None:
        """Read the files of a source commit; None where it is not in the history of the branch's tip."""
        if self._age(commit, tip) is None:
            return None
        entries = self._repository.entries(commit)
        return self._changed(None, commit, {entry.path: entry.blob for entry in entries})

    def follow(
        self, before: PriceFiles | None, commit: CommitId, tip: CommitId
    ) -> Iterator[tuple[datetime, PriceFiles]]:
        """Yield the files of each later commit up to one, and when it was made, oldest first.

        Where the branch does not lead from one to the other, only those of the last are read. Nothing is yielded where
        that is not in the history of the branch's tip.
        """
        age = self._age(commit, tip)
        if age is None:
            return
        if before is not None and (self._age(before.commit, tip) or -1) >= age:
            section = self._repository.section(commit, since=_EPOCH, base=before.commit)
            if section.base is not None and section.base.id == before.commit:
                for change in section.commits:
                    changed = {file.path: file.new for file in change.files}
                    before = self._changed(before, change.commit.id, changed)
                    yield change.commit.at, before
                return
        (logged,) = self._repository.log(commit, limit=1)
        anew = self.at(commit, tip)
        if anew is not None:
            yield logged.at, anew

    def _age(self, commit: CommitId, tip: CommitId) -> int | None:
        """Count the commits after one in the history of a tip; None where it is not in there."""
        if tip != self._tip:
            self._history, self._tip = {tip: 0}, tip
        size = _FIRST_LOOK
        while commit not in self._history:
            log = self._repository.log(tip, limit=size)
            self._history = {logged.id: age for age, logged in enumerate(log)}
            if len(log) < size:
                break
            size *= _GROWTH
        return self._history.get(commit)

    def _changed(self, before: PriceFiles | None, commit: CommitId, changed: Mapping[str, BlobId | None]) -> PriceFiles:
        """Return the files after a change; None stands for one that is gone."""
        files = {} if before is None else dict(before.files)
        relevant = {path: blob for path, blob in changed.items() if is_read(path)}
        parsed = self._read(blob for blob in relevant.values() if blob is not None)
        for path, blob in relevant.items():
            file = None if blob is None else parsed.get(blob)
            if file is None:
                files.pop(path, None)
            elif not file.broken:
                files[path] = file
        if before is not None and files == before.files:
            return replace(before, commit=commit)
        return PriceFiles(commit=commit, files=files, clusters=assemble(commit, files).clusters)

    def _read(self, blobs: Iterable[BlobId]) -> dict[BlobId, ParsedFile]:
        """Read the files that may describe clusters, and of these the objects that count."""
        wanted = list(dict.fromkeys(blobs))
        files: dict[BlobId, ParsedFile] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            for blob, data in self._repository.read(wanted[start : start + _AT_ONCE]).items():
                if len(data) <= MAX_BYTES and _RELEVANT.search(data) is not None:
                    file = parse_file(data)
                    own = tuple(declared for declared in file.objects if isinstance(declared.value, _KINDS))
                    if own or file.broken:
                        files[blob] = replace(file, objects=own)
        return files
