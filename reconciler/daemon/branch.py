"""Reads the output branch into a Ledger, and follows it at the cost of its changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.ledger.read import (
    ROOTS,
    LedgerRecords,
    Record,
    assemble_ledger,
    directory_of,
    edits_by_placement,
    is_foreign_edit,
    is_ours,
    is_record,
    path_in_cluster,
    placement_paths,
    read_record,
)
from reconciler.core.recording.ledger_cache import read_cached, write_cached
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Bug, OverspillError
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.ledger import Drift, Ledger
from reconciler.model.placement import Placement
from reconciler.model.tree import ROOT, Commit, blob_of
from reconciler.ports import LedgerCache, Repository

_AT_ONCE = 512
"""Files that are in memory at the same time while many are read."""

_FEW = 200
"""Directories up to which git is asked for each by name; beyond, one listing of everything is cheaper."""

_LEAST_CHANGES = 100
_CHANGED_PART = 20
"""One record of so many has to change before all are kept again. Parsing one takes as long as keeping forty, and a
start parses those that have changed since."""

_EMPTY = Ledger(commit=None)
_OUR_DIRECTORIES = (*ROOTS, f"{ROOT}/")
"""With what lies directly below the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """Commits that this daemon has written."""

    base: CommitId | None
    """The tip below the first of them."""
    tip: CommitId
    """The last of them."""
    commits: Sequence[Commit]

    def plain(self, broken: Collection[str]) -> bool:
        """Return whether the commits remove and write single files only: git alone knows the contents of a directory.

        A `broken` record may lie in a directory that has the path of a file of ours, which replaces it.
        """
        gone = all(is_record(path) or is_ours(path) for commit in self.commits for path in commit.removes)
        return gone and not any(
            other.startswith(f"{path}/") for other in broken for commit in self.commits for path in commit.writes
        )

    def records(self) -> dict[str, bytes | None]:
        """Return the contents of the records that these commits touch, by path; None for those that are gone."""
        files: dict[str, bytes | None] = {}
        for commit in self.commits:
            files.update(dict.fromkeys(filter(is_record, commit.removes)))
            files.update((path, data) for path, data in commit.writes.items() if is_record(path))
        return files


class BranchReader:
    """The Ledger of the output branch at any tip.

    The first tip is read whole, a later tip by its difference from the tip before, and our own commits on top of that
    not at all; a file whose blob has not changed is never read twice, nor by the next run of the program where there is
    a cache. The Ledger depends on the tip alone, not on the tips before it, and never changes. After a call that
    raised, the next one does the same work again.
    """

    def __init__(self, repository: Repository, cache: LedgerCache | None = None) -> None:
        """Read nothing yet."""
        self._repository = repository
        self._cache = cache
        self._restored = cache is None
        self._unread: Mapping[str, BlobId] = {}
        self._unkept = 0
        self._ledger = _EMPTY
        self._records = LedgerRecords()
        self._blobs: dict[str, BlobId] = {}
        self._known: CommitId | None = None
        self._expected: Mapping[tuple[str, bytes], Record] = {}
        self._written: _Written | None = None
        self.obstacles: Mapping[str, str] = {}
        """Files, links and submodules where directories of ours belong: the kind of each, by path."""

    def ledger(self, tip: CommitId | None) -> Ledger:
        """Return the Ledger at `tip`; the same tip gives the same object.

        Raises Transient when the remote is needed for older history and is away.
        """
        if tip == self._ledger.commit:
            return self._ledger
        if tip is None:
            self._ledger, self._records, self._blobs, self._known = _EMPTY, LedgerRecords(), {}, None
            self.obstacles = {}
            return self._ledger
        if not self._restored:
            self._restored = True
            self._restore()
        written, broken = self._written, self._records.broken
        if written is not None and (written.base, written.tip) == (self._ledger.commit, tip) and written.plain(broken):
            changed, read = self._made(written.records())
            drifted: tuple[Drift, ...] = ()  # our own commit is the tip
        else:
            changed = self._difference(tip)
            drifted = self._find_drift(tip)
            read = self._read(changed)
            self.obstacles = self._repository.obstacles(tip, _OUR_DIRECTORIES)
        records = self._find_workloads(tip, self._records.changed(read), drifted)
        self._ledger, self._records, self._known = assemble_ledger(tip, records, drifted), records, tip
        if changed:
            self._blobs = _apply_changes(self._blobs, changed)
        self._unread = {}
        self._unkept += len(changed)
        return self._ledger

    def keep(self, *, least: int = _LEAST_CHANGES) -> None:
        """Keep the records for the next run, if `least` and a twentieth of them have changed since they were kept.

        It takes six microseconds for each of them, and its failure costs nothing but itself.
        """
        cache, commit = self._cache, self._ledger.commit
        if cache is None or commit is None or self._unkept < max(least, len(self._blobs) // _CHANGED_PART):
            return
        self._unkept = 0
        bug = attempt(Seam.CACHE, commit, lambda: cache.write(write_cached(commit, self._records, self._blobs)))
        if isinstance(bug, Bug):
            BUGS.note(bug)

    def _restore(self) -> None:
        """Begin with the records of the last run, if any were kept."""
        data = None if self._cache is None else self._cache.read()
        if data is None:
            return
        cached = attempt(Seam.CACHE, "the last run", lambda: read_cached(data))
        if isinstance(cached, Bug):
            BUGS.note(cached)
            return
        self._records, self._blobs, self._known = cached.records, dict(cached.blobs), cached.commit
        self._unread = cached.unread

    @property
    def blobs(self) -> Mapping[str, BlobId]:
        """Return the blob of each record as it was last read, by path; the mapping never changes."""
        return self._blobs

    def blob(self, path: str) -> BlobId | None:
        """Return the blob of a record as it was last read."""
        return self._blobs.get(path)

    def expect(self, records: Mapping[tuple[str, bytes], Record]) -> None:
        """Keep the values of files that are about to be written, by path and content, in place of earlier ones."""
        self._expected = records

    def wrote(self, base: CommitId | None, tip: CommitId, commits: Sequence[Commit]) -> None:
        """Take note of commits that we wrote on top of `base`, the last of them `tip`, in place of those before."""
        self._written = _Written(base=base, tip=tip, commits=commits)

    def _made(self, files: Mapping[str, bytes | None]) -> tuple[dict[str, BlobId | None], dict[str, Record | None]]:
        """Return the changed blobs and records of our commits; None for removed files."""
        blobs = {path: None if data is None else blob_of(data) for path, data in files.items()}
        changed = {path: blob for path, blob in blobs.items() if self._blobs.get(path) != blob}
        read: dict[str, Record | None] = {}
        for path in changed:
            data = files[path]
            read[path] = None if data is None else self._recognise(path, data)
        return changed, read

    def _difference(self, tip: CommitId) -> dict[str, BlobId | None]:
        """Find the records that are not as they were last read, None for those that are gone."""
        if self._known is not None:
            try:
                changes = self._repository.changes(self._known, tip, under=ROOTS)
            except OverspillError:
                self._known = None  # the branch was rewritten: the cached state is void
            else:
                records = {change.path: change.new for change in changes if is_record(change.path)}
                records = {**self._unread, **records}
                return {path: blob for path, blob in records.items() if self._blobs.get(path) != blob}
        entries = self._repository.entries(tip, under=ROOTS)
        blobs: dict[str, BlobId | None] = {entry.path: entry.blob for entry in entries if is_record(entry.path)}
        gone: dict[str, BlobId | None] = {path: None for path in self._blobs if path not in blobs}
        return gone | {path: blob for path, blob in blobs.items() if self._blobs.get(path) != blob}

    def _read(self, changed: Mapping[str, BlobId | None]) -> dict[str, Record | None]:
        """Read the records that changed."""
        records: dict[str, Record | None] = {path: None for path, blob in changed.items() if blob is None}
        records.update(self._parse((path, blob) for path, blob in changed.items() if blob is not None))
        return records

    def _parse(self, files: Iterable[tuple[str, BlobId]]) -> Iterator[tuple[str, Record]]:
        wanted = list(files)
        for start in range(0, len(wanted), _AT_ONCE):
            batch = wanted[start : start + _AT_ONCE]
            contents = self._repository.read({blob for _, blob in batch})
            for path, blob in batch:
                yield path, self._recognise(path, contents[blob])

    def _recognise(self, path: str, data: bytes) -> Record:
        expected = self._expected.get((path, data))
        return read_record(data, path) if expected is None else expected

    def _find_workloads(self, tip: CommitId, records: LedgerRecords, drifted: Sequence[Drift]) -> LedgerRecords:
        """Find the workloads of broken records in their earlier versions, where neither text nor drift names them.

        Earlier versions differ from tip to tip: owners traced at another tip are forgotten.
        """
        traced = {path: record for path, record in records.broken.items() if record.traced}
        if traced:
            anew = {path: replace(record, workload=None, traced=False) for path, record in traced.items()}
            records = records.changed(anew)
        paths = {f"{change.placement.path}/placement.yaml" for change in drifted}
        untraced = {path: record for path, record in records.untraced.items() if path not in paths}
        if not untraced:
            return records
        owners: dict[str, Record | None] = {}
        for path, record in untraced.items():
            earlier = ((path, blob) for blob in self._repository.earlier(tip, path))
            good = (version.workload for _, version in self._parse(earlier) if isinstance(version, Placement))
            owners[path] = replace(record, workload=next(good, None), traced=True)
        return records.changed(owners)

    def _find_drift(self, tip: CommitId) -> tuple[Drift, ...]:
        """Compare the tip with the commit that the daemon last wrote: the placements that people changed since."""
        base = self._repository.last_written(tip)
        if base is None or base == tip:
            return ()
        directories = edits_by_placement(self._repository.changes(base, tip, under=ROOTS[:1]))
        files = self._files(base, directories)
        paths = {f"{directory}/placement.yaml" for directory in directories}
        records = [(path, blob) for blobs in files.values() for path, blob in blobs.items() if path in paths]
        placements = dict(self._parse(records))
        drifted: list[Drift] = []
        for directory, changes in sorted(directories.items()):
            path = f"{directory}/placement.yaml"
            placement = placements.get(path)
            if not isinstance(placement, Placement):
                continue
            changed = {change.path: change.new for change in changes}
            if path not in changed:
                # If the author of the change is unknown, the placement stays as it is.
                compare = partial(self._is_theirs, placement, files[directory], changed)
                foreign = attempt(Seam.EDIT, directory, compare)
                if isinstance(foreign, Bug):
                    BUGS.note(foreign)
                if foreign:
                    continue
            removed = path in changed and changed[path] is None
            drifted.append(Drift(placement=placement, removed=removed, files=files[directory]))
        return tuple(drifted)

    def _files(self, base: CommitId, directories: Collection[str]) -> dict[str, dict[str, BlobId]]:
        """List our files of some placements by path, each by its directory."""
        files: dict[str, dict[str, BlobId]] = {directory: {} for directory in directories}
        if not files:
            return files
        under = (
            sorted(place for directory in files for place in placement_paths(directory))
            if len(files) <= _FEW
            else ROOTS[:1]
        )
        for entry in self._repository.entries(base, under=under):
            directory = directory_of(entry.path)
            if directory in files and is_ours(entry.path):
                files[directory][entry.path] = entry.blob
        return files

    def _is_theirs(self, placement: Placement, files: Mapping[str, BlobId], changed: Collection[str]) -> bool:
        contents = self._repository.read(set(files.values()))
        written = {path_in_cluster(path): contents[blob] for path, blob in files.items()}
        return is_foreign_edit(placement, written, [path_in_cluster(path) for path in changed])


def _apply_changes(before: Mapping[str, BlobId], changes: Mapping[str, BlobId | None]) -> dict[str, BlobId]:
    """Return a changed copy; going through all of it would cost more than the copy."""
    blobs = dict(before)
    for path, blob in changes.items():
        if blob is None:
            blobs.pop(path, None)
        else:
            blobs[path] = blob
    return blobs
