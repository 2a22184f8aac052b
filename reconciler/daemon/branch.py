"""Reads the output branch into a Ledger, and follows it at the cost of what changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.core.ledger import (
    ROOTS,
    Record,
    Records,
    assembled,
    directory_of,
    is_ours,
    is_record,
    places,
    read_record,
    relative,
    theirs,
    touched,
)
from reconciler.errors import OverspillError
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.ledger import Ledger, Tampered
from reconciler.model.placement import Placement
from reconciler.ports import Repository

_AT_ONCE = 512
"""Files that are in memory at the same time while many are read."""

_FEW = 200
"""Directories up to which git is asked for each by name; beyond, one listing of everything is cheaper."""

_EMPTY = Ledger(commit=None)


class BranchReader:
    """The Ledger of the output branch at any tip.

    The first tip is read whole, later ones by their difference from the one before; a file whose blob has not changed
    is never read twice. What is returned depends on the tip alone, not on the tips before it, and is never changed
    afterwards. After a call that raised the next one does the same work again.
    """

    def __init__(self, repository: Repository) -> None:
        """Read nothing yet."""
        self._repository = repository
        self._ledger = _EMPTY
        self._records = Records()
        self._blobs: dict[str, BlobId] = {}
        self._known: CommitId | None = None

    def ledger(self, tip: CommitId | None) -> Ledger:
        """Return what the output branch says at `tip`; the same tip gives the same object.

        Raises Transient when the remote is needed for older history and is away.
        """
        if tip == self._ledger.commit:
            return self._ledger
        if tip is None:
            self._ledger, self._records, self._blobs, self._known = _EMPTY, Records(), {}, None
            return self._ledger
        changed = self._difference(tip)
        tampered = self._tampered(tip)
        records = self._traced(tip, self._records.changed(self._read(changed)), tampered)
        self._ledger, self._records, self._known = assembled(tip, records, tampered), records, tip
        for path, blob in changed.items():
            if blob is None:
                del self._blobs[path]
            else:
                self._blobs[path] = blob
        return self._ledger

    def blob(self, path: str) -> BlobId | None:
        """Return the blob of a record as it was last read."""
        return self._blobs.get(path)

    def _difference(self, tip: CommitId) -> dict[str, BlobId | None]:
        """Find the records that are not as they were last read, None for those that are gone."""
        if self._known is not None:
            try:
                changes = self._repository.changes(self._known, tip, under=ROOTS)
            except OverspillError:
                self._known = None  # the branch has jumped, and what we knew is gone: do not ask for it again
            else:
                there = {change.path: change.new for change in changes if is_record(change.path)}
                return {path: blob for path, blob in there.items() if self._blobs.get(path) != blob}
        entries = self._repository.entries(tip, under=ROOTS)
        found: dict[str, BlobId | None] = {entry.path: entry.blob for entry in entries if is_record(entry.path)}
        gone: dict[str, BlobId | None] = {path: None for path in self._blobs if path not in found}
        return gone | {path: blob for path, blob in found.items() if self._blobs.get(path) != blob}

    def _read(self, changed: Mapping[str, BlobId | None]) -> dict[str, Record | None]:
        """Read the records that changed."""
        records: dict[str, Record | None] = {path: None for path, blob in changed.items() if blob is None}
        records.update(self._parsed((path, blob) for path, blob in changed.items() if blob is not None))
        return records

    def _parsed(self, files: Iterable[tuple[str, BlobId]]) -> Iterator[tuple[str, Record]]:
        wanted = list(files)
        for start in range(0, len(wanted), _AT_ONCE):
            batch = wanted[start : start + _AT_ONCE]
            contents = self._repository.read({blob for _, blob in batch})
            for path, blob in batch:
                yield path, read_record(contents[blob], path)

    def _traced(self, tip: CommitId, records: Records, tampered: Sequence[Tampered]) -> Records:
        """Ask earlier versions of broken records whose they are, where neither their text nor the daemon knows.

        Those of another tip may say otherwise: what they said before is forgotten.
        """
        told = {path: record for path, record in records.broken.items() if record.traced}
        if told:
            anew = {path: replace(record, workload=None, traced=False) for path, record in told.items()}
            records = records.changed(anew)
        known = {f"{change.placement.path}/placement.yaml" for change in tampered}
        lost = {path: record for path, record in records.untraced.items() if path not in known}
        if not lost:
            return records
        found: dict[str, Record | None] = {}
        for path, record in lost.items():
            earlier = ((path, blob) for blob in self._repository.earlier(tip, path))
            good = (version.workload for _, version in self._parsed(earlier) if isinstance(version, Placement))
            found[path] = replace(record, workload=next(good, None), traced=True)
        return records.changed(found)

    def _tampered(self, tip: CommitId) -> tuple[Tampered, ...]:
        """Compare the tip with what the daemon last wrote, and tell which of its placements people changed since."""
        base = self._repository.last_written(tip)
        if base is None or base == tip:
            return ()
        directories = touched(self._repository.changes(base, tip, under=ROOTS[:1]))
        files = self._files(base, directories)
        paths = {f"{directory}/placement.yaml" for directory in directories}
        records = [(path, blob) for there in files.values() for path, blob in there.items() if path in paths]
        placements = dict(self._parsed(records))
        found: list[Tampered] = []
        for directory, changes in sorted(directories.items()):
            path = f"{directory}/placement.yaml"
            placement = placements.get(path)
            if not isinstance(placement, Placement):
                continue
            changed = {change.path: change.new for change in changes}
            if path not in changed and self._theirs(placement, files[directory], changed):
                continue
            removed = path in changed and changed[path] is None
            found.append(Tampered(placement=placement, removed=removed, files=files[directory]))
        return tuple(found)

    def _files(self, base: CommitId, directories: Collection[str]) -> dict[str, dict[str, BlobId]]:
        """List our files of some placements by path, each by its directory."""
        files: dict[str, dict[str, BlobId]] = {directory: {} for directory in directories}
        if not files:
            return files
        under = sorted(place for directory in files for place in places(directory)) if len(files) <= _FEW else ROOTS[:1]
        for entry in self._repository.entries(base, under=under):
            directory = directory_of(entry.path)
            if directory in files and is_ours(entry.path):
                files[directory][entry.path] = entry.blob
        return files

    def _theirs(self, placement: Placement, files: Mapping[str, BlobId], changed: Collection[str]) -> bool:
        contents = self._repository.read(set(files.values()))
        there = {relative(path): contents[blob] for path, blob in files.items()}
        return theirs(placement, there, [relative(path) for path in changed])
