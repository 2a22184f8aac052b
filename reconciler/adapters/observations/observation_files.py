"""Observations from files of another program: a source without network.

A writer should write to a hidden file (``.worker-1.yaml.tmp``) and rename it. Most partial writes are noticed: a
file that changes while it is read, is empty or does not parse keeps its last good version.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from threading import Lock

from reconciler.bulkhead import Seam, attempt
from reconciler.core.observe import observation_file
from reconciler.errors import Bug, InvalidInput, Problem, Severity
from reconciler.model.capacity import ClusterObservation, ObservationPlace, Observed
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired
from reconciler.text.file_names import may_hold_objects

MAX_BYTES = 1 << 20
"""Most bytes of a file; a larger fleet needs a file for each cluster."""
_ATOMIC = "try writing to a temporary name in the same directory and renaming it"

_Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileState:
    """The state of one file after it was read last."""

    stamp: _Stamp | None = None
    """Time, size and inode."""
    read: bool = True
    """False if it is to be read again at the next look, whether or not its stamp has changed."""
    good: tuple[tuple[ClusterObservation, int], ...] = ()
    """The last good content: observations with their lines."""
    problems: tuple[Problem, ...] = ()


class FileObservations:
    """Observations in a file, or in the ``*.yaml``, ``*.yml`` and ``*.json`` of a directory (a `ports.ClusterView`).

    Files are read again only when their time, size or inode has changed. Hidden files and subdirectories are ignored.
    Of two observations of one cluster the newer wins, then the one in the file that sorts first.
    """

    def __init__(self, path: Path) -> None:
        """Take a path that exists; an empty directory is fine. Raises InvalidInput for one that does not."""
        if not path.exists():
            raise InvalidInput(
                f"reading observations: {path} does not exist (try creating the directory, or another --observations)"
            )
        self._path = path
        self._lock = Lock()
        self._files: dict[str, _FileState] = {}

    def follow(self, desired: Desired) -> None:
        """Do nothing: the writer of the files decides which clusters and workloads are in them."""

    def observe(self) -> Observed:
        """Read changed files, and return the newest observation of each cluster.

        An unreadable file is in `problems` and keeps its last good version; the clusters of a removed file are gone.
        """
        with self._lock:
            stamps, missing = self._stamps()
            self._files = {path: self._current(path, stamp) for path, stamp in stamps.items()}
            files = dict(self._files)
        clusters: dict[ClusterName, ClusterObservation] = {}
        places: dict[ClusterName, ObservationPlace] = {}
        repeated: list[Problem] = []
        for path, file in files.items():
            for seen, line in file.good:
                place, other = ObservationPlace(path, line), places.get(seen.cluster)
                if other is not None and seen.observed_at <= clusters[seen.cluster].observed_at:
                    repeated.append(_repeated(seen.cluster, place, other))
                    continue
                if other is not None:
                    repeated.append(_repeated(seen.cluster, other, place))
                clusters[seen.cluster], places[seen.cluster] = seen, place
        problems = missing + tuple(problem for file in files.values() for problem in file.problems) + tuple(repeated)
        return Observed(clusters=clusters, places=places, problems=problems)

    def changed(self) -> bool:
        """Return whether `observe` has a file to read, changed or to be retried; reads no content."""
        with self._lock:
            stamps, _ = self._stamps()
            if not all(file.read for file in self._files.values()):
                return True
            return stamps != {path: file.stamp for path, file in self._files.items()}

    def _stamps(self) -> tuple[dict[str, _Stamp], tuple[Problem, ...]]:
        """Return each file's stamp, sorted by path, and the problem of a path that cannot be read at all."""
        try:
            return {path: _stamp(stat) for path, stat in sorted(self._stats(), key=itemgetter(0))}, ()
        except OSError as error:
            return {}, (Problem(path=str(self._path), message=f"cannot be read: {error.strerror}"),)

    def _stats(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the observation files with their stat results."""
        if not self._path.is_dir():
            yield str(self._path), self._path.stat()
            return
        with os.scandir(self._path) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not may_hold_objects(entry.name):
                    continue
                try:
                    # Links are followed: a mounted ConfigMap consists of links.
                    if entry.is_file():
                        yield entry.path, entry.stat()
                except FileNotFoundError:  # removed since the directory was listed
                    continue

    def _current(self, path: str, stamp: _Stamp) -> _FileState:
        """Return the state of a file, which is read only if its stamp has changed."""
        file = self._files.get(path, _FileState())
        if file.stamp == stamp and file.read:
            return file
        if stamp[1] > MAX_BYTES:
            problem = Problem(path=path, message="is over 1 MiB", hint="try one file for each cluster")
            return replace(file, stamp=stamp, read=True, problems=(problem,))
        try:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
                after = os.fstat(stream.fileno())
        except OSError as error:
            problem = Problem(path=path, message=f"cannot be read: {error.strerror}")
            return replace(file, stamp=stamp, read=False, problems=(problem,))
        if _stamp(after) != stamp:  # it changed while it was read
            return replace(file, stamp=stamp, read=False)
        if file.good and file.stamp != stamp and not _looks_complete(path, data):
            return replace(file, stamp=stamp, read=False)
        try:
            seen = attempt(Seam.OBSERVATION_FILE, path, partial(observation_file.read_with_lines, data, path))
        except InvalidInput as error:
            problems = error.problems or (Problem(path=path, message=str(error)),)
            return replace(file, stamp=stamp, read=True, problems=problems)
        if isinstance(seen, Bug):
            return replace(file, stamp=stamp, read=True, problems=(seen.problem(path),))
        if not data.strip():
            problem = Problem(path=path, message="is empty", hint=_ATOMIC)
            return replace(file, stamp=stamp, read=True, problems=(problem,))
        return _FileState(stamp=stamp, good=seen)


def _repeated(cluster: ClusterName, passed_over: ObservationPlace, counts: ObservationPlace) -> Problem:
    """Warn of an observation in whose place another of its cluster counts."""
    return Problem(
        path=passed_over.path,
        line=passed_over.line,
        field="cluster",
        message=f"{cluster} is observed in {counts.path} as well, which counts",
        hint="keep one observation of each cluster",
        severity=Severity.WARNING,
    )


def _stamp(stat: os.stat_result) -> _Stamp:
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _looks_complete(path: str, data: bytes) -> bool:
    """Return whether a file seems complete: YAML that is cut within a line may still parse, with 1 instead of 16.

    JSON that is cut never parses. YAML without a final newline is accepted if it is the same at the next look.
    """
    return path.endswith(".json") or data.endswith(b"\n")
