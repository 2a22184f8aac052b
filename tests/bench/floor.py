"""The floor: the same commits by one ``git fast-import`` and one ``git push`` from a shell script."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from reconciler.model.tree import Commit

SCRIPT = """\
set -e
git fast-import --quiet --force <"$1"
git push --quiet origin refs/heads/placements
"""


def stream(commits: Sequence[Commit], base: str | None) -> bytes:
    """Write commits as fast-import reads them."""
    parts: list[bytes] = []
    for commit in commits:
        message = commit.message.encode()
        parts.append(
            b"commit refs/heads/placements\ncommitter Overspill <overspill@overspill.dev> %d +0000\ndata %d\n%s\n"
            % (int(commit.at.timestamp()), len(message), message)
        )
        if base:
            parts.append(f"from {base}\n".encode())
            base = None
        parts += [f"D {path}\n".encode() for path in commit.removes]
        parts += [
            b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data)
            for path, data in commit.writes.items()
        ]
    return b"".join(parts)


class Floor:
    """A mirror of its own, of a remote of its own, that a shell script writes to."""

    def __init__(self, remote: Path, mirror: Path) -> None:
        self._mirror = mirror
        subprocess.run(
            ["git", "clone", "--quiet", "--bare", "--depth=1", "--no-single-branch", f"file://{remote}", str(mirror)],
            check=True,
        )
        self._script = mirror.parent / f"{mirror.name}.sh"
        self._script.write_text(SCRIPT)

    def seconds(self, commits: Sequence[Commit]) -> float:
        """Time the script on these commits, on top of what is there."""
        tip = subprocess.run(
            ["git", "-C", str(self._mirror), "rev-parse", "--quiet", "--verify", "refs/heads/placements"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        file = self._mirror.parent / "stream"
        file.write_bytes(stream(commits, tip or None))
        os.sync()  # what was written before is no part of it
        begin = perf_counter()
        subprocess.run(["sh", str(self._script), str(file)], cwd=self._mirror, check=True)
        return perf_counter() - begin
