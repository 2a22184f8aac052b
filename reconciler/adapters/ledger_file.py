"""The ledger of the last run, in a file beside the mirror: `ports.LedgerCache`.

The first line says which program wrote the rest and how to tell that it is whole. A file of another program, a damaged
one and one of somebody else count as none. Its contents are JSON: reading them executes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import reconciler
from reconciler.adapters import operating_system
from reconciler.ports import LedgerCache

FORMAT = 1
MAX_SIZE = 64 << 20
"""Bytes of the contents; some 250,000 placements. More are not kept."""

_MAX_HEAD = 1 << 10


class LedgerFile(LedgerCache):
    """A file that is replaced as a whole, so that a reader sees one version of it whoever writes at the time."""

    def __init__(self, path: Path, *, writable: bool, report: Callable[[str], None] = lambda _: None) -> None:
        """Open nothing yet. One process at a time may have it `writable`; `report` gets why it is no use."""
        self._path = path
        self._writable = writable
        self._report = report

    def read(self) -> bytes | None:
        """Return what was written last, by this program as it is now."""
        try:
            return self._read()
        except FileNotFoundError:
            return None
        except OSError as error:
            why = error.strerror
        except _UnfitError as error:
            why = str(error)
        self._report(f"the ledger of the last run in {self._path} is not used: {why}")
        return None

    def write(self, data: bytes) -> None:
        """Replace the file. A disk that is full or gone costs the next start its time, and no more."""
        if not self._writable:
            return
        if len(data) > MAX_SIZE:
            self._report(f"the ledger is not kept in {self._path}: it has more than {MAX_SIZE} bytes")
            return
        head = {"by": _program(), "sha256": hashlib.sha256(data).hexdigest()}
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            with contextlib.suppress(FileNotFoundError):
                new.unlink()  # of a process that was killed meanwhile
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | operating_system.own_flags()
            with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
                file.write(json.dumps(head).encode() + b"\n")
                file.write(data)
            new.replace(self._path)
        except OSError as error:
            self._report(f"the ledger cannot be kept in {self._path}: {error.strerror}")

    def _read(self) -> bytes:
        flags = os.O_RDONLY | operating_system.own_flags()  # a pipe would be waited for
        with os.fdopen(os.open(self._path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _UnfitError("it is no file")
            if not operating_system.is_ours(status) or operating_system.is_open_to_others(status):
                raise _UnfitError("others can write to it")
            head, data = file.readline(_MAX_HEAD), file.read(MAX_SIZE + 1)
        try:
            document = json.loads(head)
            program, checksum = document["by"], document["sha256"]
        except (ValueError, LookupError, TypeError) as error:
            raise _UnfitError("it is damaged") from error
        if program != _program():
            raise _UnfitError("another version has written it")
        if checksum != hashlib.sha256(data).hexdigest():
            raise _UnfitError("it is damaged")
        return data


class _UnfitError(Exception):
    """A file that is there, and is not read; its text says why."""


@cache
def _program() -> str:
    """Name this program by its version, that of Python, and its source, which may change without a new version."""
    source = hashlib.sha256()
    root = Path(reconciler.__file__).parent
    for path in sorted(root.rglob("*.py")):
        source.update(f"{path.relative_to(root)}\0".encode())
        source.update(path.read_bytes())
    return f"{FORMAT} {reconciler.__version__} {sys.implementation.cache_tag} {source.hexdigest()}"
