"""*Lab*: the reports that `overspill lab run --html` has written into a directory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.html")
_TITLE = re.compile(rb"<title>([^<]{1,200})</title>")
_SCENARIO = re.compile(rb'<h2 id="[^"]*">([^<]{1,120})</h2>')
_MOST_FILES = 200
_MOST_BYTES = 32 << 20
_HEAD = 2 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LabReport:
    """A report."""

    name: str
    title: str
    scenarios: tuple[str, ...]
    written_at: datetime
    size: int
    """In bytes."""


class LabReports:
    """The reports of a directory. Its files are read when they are asked for, and no other file is."""

    def __init__(self, directory: Path | None) -> None:
        """Take a directory, which need not exist; None where none is set."""
        self.directory = directory

    def all(self) -> tuple[LabReport, ...]:
        """List the reports, the newest first; a file that cannot be read is left out."""
        if self.directory is None:
            return ()
        try:
            paths = [path for path in self.directory.iterdir() if _NAME.fullmatch(path.name)]
        except OSError:
            return ()
        reports = [report for path in paths if (report := _report(path)) is not None]
        return tuple(sorted(reports, key=lambda report: report.written_at, reverse=True)[:_MOST_FILES])

    def read(self, name: str) -> bytes | None:
        """Read a report; None where there is none of this name."""
        if self.directory is None or _NAME.fullmatch(name) is None:
            return None
        path = self.directory / name
        try:
            if path.is_symlink() or path.stat().st_size > _MOST_BYTES:
                return None
            return path.read_bytes()
        except OSError:
            return None


def _report(path: Path) -> LabReport | None:
    try:
        stat = path.stat()
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return None
    title = _TITLE.search(head)
    return LabReport(
        name=path.name,
        title=unescape(title[1].decode(errors="replace")) if title else path.stem,
        scenarios=tuple(unescape(match[1].decode(errors="replace")) for match in _SCENARIO.finditer(head)),
        written_at=datetime.fromtimestamp(stat.st_mtime, UTC),
        size=stat.st_size,
    )
