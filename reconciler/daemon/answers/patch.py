"""Planned commits in the form of `git log -p`; `git apply` takes them in a checkout of the output branch."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.model.ids import CommitId
from reconciler.model.tree import Commit
from reconciler.ports import Repository
from reconciler.text.timestamps import format_time

_NO_NEWLINE = b"\\ No newline at end of file\n"
_ODD = re.compile(r'[^ -~]|["\\]')


def patch(commits: Sequence[Commit], files: Mapping[str, bytes]) -> bytes:
    """Write each commit's message and changes, one after the other, over the files as they are before the first."""
    before = dict(files)
    parts: list[bytes] = []
    for number, commit in enumerate(commits, start=1):
        after = apply(commit, before)
        parts.append(b"\n".join(_head(commit, number, len(commits))) + b"\n\n")
        for path in sorted(before.keys() | after.keys()):
            parts += _file(path, before.get(path), after.get(path))
        parts.append(b"\n" if number < len(commits) else b"")
        before = after
    return b"".join(parts)


def files_before(repository: Repository, tip: CommitId | None, commits: Sequence[Commit]) -> dict[str, bytes]:
    """Read the files that commits touch as they are at the output branch's tip."""
    touched = sorted({path for commit in commits for path in (*commit.removes, *commit.writes)})
    if tip is None or not touched:
        return {}
    entries = repository.entries(tip, under=touched)
    contents = repository.read({entry.blob for entry in entries})
    return {entry.path: contents[entry.blob] for entry in entries}


def apply(commit: Commit, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files after a commit: first its removals, whole directories included, then its writes."""
    kept = {
        path: data
        for path, data in files.items()
        if not any(path == removed or path.startswith(f"{removed}/") for removed in commit.removes)
    }
    return {**kept, **commit.writes}


def _head(commit: Commit, number: int, count: int) -> Iterator[bytes]:
    """Write author, date and message, indented so that no line of it can pass for a part of the patch."""
    yield f"commit {number} of {count}".encode()
    yield f"Author: {commit.author.name} <{commit.author.email}>".encode()
    yield f"Date:   {format_time(commit.at)}".encode()
    yield b""
    for line in commit.message.rstrip("\n").split("\n"):
        yield f"    {line}".rstrip().encode()


def _file(path: str, before: bytes | None, after: bytes | None) -> Iterator[bytes]:
    """Write the change of one file; nothing when there is none."""
    if before == after:
        return
    yield f"diff --git {_quote(f'a/{path}')} {_quote(f'b/{path}')}\n".encode()
    if before is None:
        yield b"new file mode 100644\n"
    if after is None:
        yield b"deleted file mode 100644\n"
    old = "/dev/null" if before is None else _quote(f"a/{path}")
    new = "/dev/null" if after is None else _quote(f"b/{path}")
    if b"\0" in (before or b"") + (after or b""):
        yield f"Binary files {old} and {new} differ\n".encode()
        return
    if not before and not after:
        return
    tab = "\t" if " " in path else ""
    yield f"--- {old}{tab}\n+++ {new}{tab}\n".encode()
    yield from _hunks(_lines(before or b""), _lines(after or b""))


def _hunks(before: list[bytes], after: list[bytes]) -> Iterator[bytes]:
    if not before or not after:
        yield b"@@ -%b +%b @@\n" % (_whole(before), _whole(after))
        yield from _mark(b"-", before)
        yield from _mark(b"+", after)
        return
    body = difflib.diff_bytes(difflib.unified_diff, before, after)
    for line in list(body)[2:]:
        yield line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE


def _whole(lines: list[bytes]) -> bytes:
    return b"1,%d" % len(lines) if lines else b"0,0"


def _mark(mark: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + line if line.endswith(b"\n") else mark + line + b"\n" + _NO_NEWLINE


def _lines(data: bytes) -> list[bytes]:
    """Split at line feeds only, as git does; bytes.splitlines also splits at carriage returns."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _quote(path: str) -> str:
    """Quote a path as git does where it holds more than plain characters."""
    if not _ODD.search(path):
        return path
    escaped = (
        f"\\{chr(byte)}" if chr(byte) in '"\\' else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"  # noqa: PLR2004 - ASCII's printable range
        for byte in path.encode("utf-8", "surrogateescape")
    )
    return f'"{"".join(escaped)}"'
