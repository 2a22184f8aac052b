"""A bare git repository as a host keeps it, edited with git's own plumbing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

from reconciler.model.ids import CommitId

ANN = "Ann <ann@example.com>"
MORNING = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


class Remote:
    """A bare repository as a host keeps it. Each commit made here is a minute after the one before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = str(path)
        self._at = MORNING
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environment = {**environment, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        if not (path / "HEAD").exists():
            self._begin()

    def _begin(self) -> None:
        """Write what `git init --bare` does, without its samples of hooks."""
        for folder in ("hooks", "objects", "refs"):
            (self.path / folder).mkdir(parents=True)
        (self.path / "HEAD").write_text("ref: refs/heads/main\n")
        (self.path / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n")

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run git in the bare repository and return what it printed, without the last line end."""
        return self.run(*arguments, stdin=stdin).decode().removesuffix("\n")

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git in the bare repository and return all that it printed."""
        done = subprocess.run(
            ["git", "--git-dir", self.url, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            env=self._environment,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def commit(
        self,
        branch: str,
        files: Mapping[str, bytes | str | None],
        *,
        message: str = "Edit by hand",
        author: str = ANN,
        at: datetime | None = None,
    ) -> CommitId:
        """Commit files on a branch, which is made if need be; None removes a file or a directory."""
        self._at = at or self._at + timedelta(minutes=1)
        when = f"{int(self._at.timestamp())} +0000"
        text = message.encode()
        parts = [
            b"commit refs/heads/%s\nmark :1\ncommitter %s %s\n" % (branch.encode(), author.encode(), when.encode())
        ]
        parts.append(b"data %d\n%b\n" % (len(text), text))
        tip = self.tip(branch)
        if tip:
            parts.append(f"from {tip}\n".encode())
        for path, content in files.items():
            if content is None:
                parts.append(f"D {path}\n".encode())
            else:
                data = content.encode() if isinstance(content, str) else content
                parts.append(b"M 100644 inline %s\ndata %d\n%b\n" % (path.encode(), len(data), data))
        return CommitId(self.git("fast-import", "--quiet", stdin=b"".join([*parts, b"get-mark :1\n"])))

    def tip(self, branch: str) -> CommitId | None:
        """Return the commit that a branch stands at."""
        return CommitId(self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")) or None

    def files(self, branch: str, under: str = "") -> dict[str, bytes]:
        """Return all files of a branch, or those below a directory, with their contents; none without the branch."""
        if self.tip(branch) is None:
            return {}
        listed = self.git("ls-tree", "-r", "-z", branch, *([under] if under else [])).split("\0")
        blobs = {path: entry.split()[2] for entry, _, path in (line.partition("\t") for line in listed) if path}
        answers = BytesIO(
            self.run("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs.values()).encode())
        )
        contents = {}
        for path in blobs:
            *_, size = answers.readline().split()
            contents[path] = answers.read(int(size))
            answers.read(1)
        return contents

    def subjects(self, branch: str) -> list[str]:
        """Return the subjects of a branch's commits, newest first; none for a branch that does not exist."""
        return self.git("log", "--format=%s", branch).splitlines() if self.tip(branch) else []

    def move(self, branch: str, to: CommitId | None) -> None:
        """Set a branch to any commit, as a forced push would, or remove it."""
        self.git("update-ref", *([f"refs/heads/{branch}", to] if to else ["-d", f"refs/heads/{branch}"]))
