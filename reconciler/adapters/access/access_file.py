"""The access file, read again whenever it changes."""

from __future__ import annotations

import shlex
from pathlib import Path
from threading import Lock

import structlog

from reconciler.access.rights import Access
from reconciler.core.schema.access import read_access
from reconciler.errors import InvalidInput, Problem

log = structlog.get_logger()

_MOST = 1 << 20
_Stamp = tuple[int, int, int]


class AccessFileWatcher:
    """The newest valid content of an access file. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        """Take the path of a file and read it. Raises InvalidInput with all its problems."""
        self._path = path
        self._lock = Lock()
        self._stamp = _stamp(path)
        self._good = self._read()

    def __call__(self) -> Access:
        """Return the content. A broken or missing file keeps its last good version, with a warning.

        The stamp is taken before the file is read: a write meanwhile changes the stamp, and the file is read again.
        """
        with self._lock:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._good = self._read()
                except InvalidInput as error:
                    for problem in error.problems:
                        log.warning("access", line=f"{problem}; the last good version of {self._path} stays in force")
                else:
                    log.info("access", line=f"read {self._path} again: {len(self._good.tokens)} tokens")
            return self._good

    def _read(self) -> Access:
        try:
            with self._path.open("rb") as stream:
                data = stream.read(_MOST + 1)
        except OSError as error:
            hint = _begin_with(self._path) if isinstance(error, FileNotFoundError) else ""
            problem = Problem(path=str(self._path), message=f"cannot be read: {error.strerror}", hint=hint)
            raise InvalidInput(problems=(problem,)) from error
        return read_access(data, str(self._path))


def _begin_with(path: Path) -> str:
    """Return the command that makes the file with a first token."""
    command = "overspill token --name ada --workspace '*' --role Owner"
    return f"begin one: (echo tokens:; {command}) > {shlex.quote(str(path))}"


def _stamp(path: Path) -> _Stamp | None:
    """Return time, size and inode of a file, at least one of which changes with each version; None if unreadable."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
