"""A bare git repository as a host keeps it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Union

from reconciler.model.ids import CommitId

ANN = "Ann <ann@example.com>"
MORNING = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
FILE, DIRECTORY = b"100644", b"40000"

Entry = tuple[bytes, str]
"""Mode and id of what a directory holds."""
Tree = dict[bytes, Union[Entry, "Tree"]]
"""A directory; those in it are entries until something in them changes."""


class Remote:
    """A bare repository as a host keeps it. Each commit made here is a minute after the one before.

    Tests make and read thousands of commits, for each of which git would start two or three processes. So commits are
    written and read as git's loose objects; git is asked for those that it has packed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = str(path)
        self._at = MORNING
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environment = {**environment, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        if not (path / "HEAD").exists():
            self._begin()

    def _begin(self) -> None:
        """Write what `git init --bare` does, without its samples of hooks; hosts collect garbage apart from pushes."""
        for folder in ("hooks", "objects", "refs"):
            (self.path / folder).mkdir(parents=True)
        (self.path / "HEAD").write_text("ref: refs/heads/main\n")
        core = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
        (self.path / "config").write_text(f"{core}[receive]\n\tautogc = false\n")

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
        tip = self.tip(branch)
        root = self._tree(self._top(tip)) if tip else {}
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            self._edit(root, path.encode().split(b"/"), None if data is None else (FILE, self._store(b"blob", data)))
        lines = [f"tree {self._write(root)}", *([f"parent {tip}"] if tip else [])]
        lines += [f"author {author} {when}", f"committer {author} {when}", "", message]
        made = CommitId(self._store(b"commit", "\n".join(lines).encode()))
        self._advance(branch, tip, made)
        return made

    def tip(self, branch: str) -> CommitId | None:
        """Return the commit that a branch stands at."""
        try:
            return CommitId((self.path / "refs" / "heads" / branch).read_text().strip())
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            if not (self.path / "packed-refs").exists():
                return None
        return CommitId(self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")) or None

    def files(self, branch: str, under: str = "") -> dict[str, bytes]:
        """Return all files of a branch, or those below a directory, with their contents; none without the branch."""
        tip = self.tip(branch)
        if tip is None:
            return {}
        wanted = f"{under.rstrip('/')}/" if under else ""
        return {path: self._content(blob) for path, blob in self._blobs(self._top(tip), "", wanted)}

    def _blobs(self, tree: str, place: str, wanted: str) -> Iterator[tuple[str, str]]:
        """Yield paths and ids of the files below a directory that are what is wanted, or are below it."""
        for name, (mode, object_id) in self._entries(tree):
            path = f"{place}{name.decode()}"
            if mode == DIRECTORY:
                if f"{path}/".startswith(wanted) or wanted.startswith(f"{path}/"):
                    yield from self._blobs(object_id, f"{path}/", wanted)
            elif f"{path}/".startswith(wanted):
                yield path, object_id

    def _edit(self, tree: Tree, path: list[bytes], entry: Entry | None) -> None:
        """Put a file into a directory, or remove what is there; a directory that holds nothing more goes too."""
        name, *below = path
        if not below:
            if entry is None:
                tree.pop(name, None)
            else:
                tree[name] = entry
            return
        held = tree.get(name, {})
        if not isinstance(held, dict):
            mode, object_id = held
            if mode != DIRECTORY and entry is None:
                return  # a file is there, and nothing below it
            held = self._tree(object_id) if mode == DIRECTORY else {}
        self._edit(held, below, entry)
        if held:
            tree[name] = held
        else:
            tree.pop(name, None)

    def _top(self, commit: CommitId) -> str:
        """Return the id of a commit's topmost directory."""
        return self._content(commit)[5:45].decode()

    def _tree(self, object_id: str) -> Tree:
        """Read a directory."""
        return dict(self._entries(object_id))

    def _entries(self, tree: str) -> Iterator[tuple[bytes, Entry]]:
        """Yield the names in a directory with their modes and ids."""
        rest = self._content(tree)
        while rest:
            head, _, rest = rest.partition(b"\0")
            mode, _, name = head.partition(b" ")
            yield name, (mode, rest[:20].hex())
            rest = rest[20:]

    def _write(self, tree: Tree) -> str:
        """Write a directory and those in it that have changed; return its id."""
        entries = {
            name: (DIRECTORY, self._write(held)) if isinstance(held, dict) else held for name, held in tree.items()
        }
        # git sorts a directory as if its name ended with a slash.
        ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" * (item[1][0] == DIRECTORY))
        return self._store(b"tree", b"".join(b"%b %b\0%b" % (m, n, bytes.fromhex(o)) for n, (m, o) in ordered))

    def _content(self, object_id: str) -> bytes:
        """Read an object."""
        try:
            data = (self.path / "objects" / object_id[:2] / object_id[2:]).read_bytes()
        except FileNotFoundError:
            return self.run("cat-file", self.git("cat-file", "-t", object_id), object_id)
        return zlib.decompress(data).partition(b"\0")[2]

    def _store(self, kind: bytes, content: bytes) -> str:
        """Write an object and return its id."""
        data = b"%b %d\0%b" % (kind, len(content), content)
        object_id = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        path = self.path / "objects" / object_id[:2] / object_id[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            new = path.with_name(f"tmp_obj_{object_id}")  # no reader sees half of it
            new.write_bytes(zlib.compress(data, 1))
            new.rename(path)
        return object_id

    def _advance(self, branch: str, old: CommitId | None, new: CommitId) -> None:
        """Move a branch on, under git's lock of it, unless somebody else has moved it."""
        ref = self.path / "refs" / "heads" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        lock = ref.with_name(f"{ref.name}.lock")
        with lock.open("x") as writing:
            writing.write(f"{new}\n")
        try:
            assert self.tip(branch) == old, f"{branch} has moved meanwhile"
            lock.rename(ref)
        finally:
            lock.unlink(missing_ok=True)

    def subjects(self, branch: str) -> list[str]:
        """Return the subjects of a branch's commits, newest first; none for a branch that does not exist."""
        return self.git("log", "--format=%s", branch).splitlines() if self.tip(branch) else []

    def move(self, branch: str, to: CommitId | None) -> None:
        """Set a branch to any commit, as a forced push would, or remove it."""
        self.git("update-ref", *([f"refs/heads/{branch}", to] if to else ["-d", f"refs/heads/{branch}"]))

    def swap(self, branch: str, old: CommitId, new: CommitId | None) -> bool:
        """Set a branch to any commit, or remove it, unless it has left `old`; return whether it had not."""
        ref = f"refs/heads/{branch}"
        done = subprocess.run(
            ["git", "--git-dir", self.url, "update-ref", *([ref, new, old] if new else ["-d", ref, old])],
            capture_output=True,
            check=False,
            env=self._environment,
        )
        return done.returncode == 0
