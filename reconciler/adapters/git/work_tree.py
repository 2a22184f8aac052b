"""What git holds of the files of a checkout, for `check`: index, attributes and history.

No configuration, hook, filter or file-system monitor of the checkout is used: git reads its objects and its index from
an empty repository beside it, and talks to no remote.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from reconciler.adapters.git import checkout
from reconciler.adapters.git.history import History
from reconciler.adapters.git.objects import Missing, ObjectReader, parse_entries, parse_other_entries
from reconciler.adapters.git.run import RemoteBounds, Runner
from reconciler.core.fleet.path_history import PathHistories, uncommitted_changes
from reconciler.errors import Conflict, InvalidInput
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.tree import EntryType, TreeEntry

_STAGED = re.compile(r"(?:^|(?<=\0))([0-9]{6}) ([0-9a-f]{40,64}) 0\t([^\0]+)\0")
_TYPES = {"100644": EntryType.FILE, "100755": EntryType.FILE, "120000": EntryType.LINK, "160000": EntryType.SUBMODULE}
_SECONDS = timedelta(seconds=30)
_UNSET = ("unspecified", "unset", "set")
"""Values of an attribute that name nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What git does to a file between the work tree and its object."""

    filter: str = ""
    encoding: str = ""
    """Of the file in the work tree, where that is not UTF-8."""


class WorkTree:
    """The index, the attributes and the history of a directory in a checkout; paths are from that directory."""

    def __init__(self, runner: Runner, directory: Path, *, prefix: str, head: str) -> None:
        """Read from a repository; `prefix` leads from its top to the directory, and `head` is empty before a commit.

        Raises InvalidInput where the index cannot be read.
        """
        self._runner = runner
        self._directory = directory
        self._prefix = prefix
        self._reader = ObjectReader(runner)
        self._history = History(self._reader, self._local, self._shallow, _refuse_to_deepen)
        self.head = CommitId(head)
        self.is_cut = False
        """Whether an answer lacks commits that a shallow clone does not have."""
        listing = self._local(["ls-files", "-s", "-z", *self._below()]).decode(errors="surrogateescape")
        self.index: Mapping[str, TreeEntry] = {
            path: TreeEntry(path=path, blob=BlobId(blob), type=_TYPES[mode])
            for mode, blob, name in _STAGED.findall(listing)
            if mode in _TYPES and (path := self._without_prefix(name))
        }

    def conversions(self, paths: Collection[str]) -> dict[str, Conversion]:
        """Return the conversions of files that have any, by the attributes that are staged."""
        if not paths:
            return {}
        asked = "".join(f"{self._prefix}{path}\0" for path in paths).encode(errors="surrogateescape")
        command = ["check-attr", "--cached", "--stdin", "-z", "filter", "working-tree-encoding"]
        fields = self._local(command, stdin=asked).decode(errors="surrogateescape").split("\0")
        found: dict[str, Conversion] = {}
        for name, attribute, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
            if value not in _UNSET:
                path = self._without_prefix(name)
                known = found.get(path, Conversion())
                change = replace(known, filter=value) if attribute == "filter" else replace(known, encoding=value)
                found[path] = change
        return found

    def past_versions(self, commit: CommitId, paths: Collection[str], *, base: CommitId | None = None) -> PathHistories:
        """List the versions that stood at some paths before those of the work tree, newest first."""
        listing = self._local(["ls-tree", "-r", "-z", commit, *self._below()])
        committed = [*parse_entries(listing, sizes=False), *parse_other_entries(listing)]
        directories = {f"{self._prefix}{path}" for path in paths if self._is_directory(path)}
        asked = [f"{self._prefix}{path}" for path in paths]
        uncommitted = uncommitted_changes(asked, directories, committed)
        answer = self._history.past_versions(commit, asked, base=base, uncommitted=uncommitted)
        self.is_cut = self.is_cut or not answer.complete
        histories = {
            self._without_prefix(path): replace(history, asked=self._without_prefix(history.asked))
            for path, history in answer.paths.items()
        }
        return replace(answer, paths=histories)

    def read(self, blobs: Iterable[BlobId]) -> dict[BlobId, bytes]:
        """Read blobs; those that a partial clone lacks are left out."""
        contents: dict[BlobId, bytes] = {}
        for blob in dict.fromkeys(blobs):
            try:
                (contents[blob],) = self._reader.read([blob])
            except Missing:
                self._reader.close()
        return contents

    def close(self) -> None:
        """End the reading process."""
        self._reader.close()

    def _is_directory(self, path: str) -> bool:
        """Return whether a path is a directory whose files git follows one by one."""
        place = self._directory / path
        if place.is_symlink() or not place.is_dir() or (place / ".git").exists():
            return False
        return path not in self.index or self.index[path].type is not EntryType.SUBMODULE

    def _below(self) -> list[str]:
        """Return the pathspec of the directory; none at the top."""
        return ["--", self._prefix] if self._prefix else []

    def _without_prefix(self, path: str) -> str:
        return path.removeprefix(self._prefix)

    def _shallow(self) -> frozenset[str]:
        """Return the commits whose parents a shallow clone does not have."""
        file = self._runner.git_dir / "shallow"
        return frozenset(file.read_text(encoding="ascii").split()) if file.exists() else frozenset()

    def _local(self, arguments: Sequence[str], stdin: bytes | None = None) -> bytes:
        output = self._runner.run(arguments, stdin=stdin)
        if output.status:
            reason = output.stderr.strip().removeprefix("fatal: ")
            raise InvalidInput(f"reading the git repository of {self._directory}: git {arguments[0]}: {reason}")
        return output.stdout


@contextmanager
def open_work_tree(directory: Path) -> Iterator[WorkTree | None]:
    """Open the checkout that a directory is in; None in no checkout, and where git is not installed.

    Raises InvalidInput where its index cannot be read.
    """
    place = checkout.locate(directory)
    if place is None:
        yield None
        return
    with TemporaryDirectory(prefix="overspill-check-") as empty:
        git_dir = Path(empty)
        (git_dir / "refs").mkdir()
        (git_dir / "info").mkdir()
        (git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
        sha256 = "[extensions]\n\tobjectFormat = sha256\n" if place.format == "sha256" else ""
        settings = f"[core]\n\trepositoryFormatVersion = {1 if sha256 else 0}\n\tbare = true\n{sha256}"
        (git_dir / "config").write_text(settings, encoding="ascii")
        own = [(place.shallow, "shallow"), (place.attributes, "info/attributes")]
        own += [(shared, shared.name) for shared in place.index.parent.glob("sharedindex.*")]
        for source, name in own:
            if source.is_file():
                shutil.copyfile(source, git_dir / name)
        variables = {
            "GIT_OBJECT_DIRECTORY": str(place.objects),
            "GIT_INDEX_FILE": str(place.index),
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        runner = Runner(git_dir=git_dir, settings=(), environment=variables, bounds=RemoteBounds(silence=_SECONDS))
        tree = WorkTree(runner, directory, prefix=place.prefix, head=place.head)
        try:
            yield tree
        finally:
            tree.close()


def _refuse_to_deepen(depth: int) -> None:
    """Leave a shallow clone as it is: `check` talks to no remote."""
    raise Conflict(f"the clone is shallow, and is not deepened to {depth} commits")
