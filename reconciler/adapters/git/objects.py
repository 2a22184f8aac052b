"""Git objects: paths of a commit, differences of two commits, and contents of blobs.

`ObjectReader` belongs to the thread of passes; `MirrorFiles` reads for other threads by a process of its own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from subprocess import Popen
from threading import Lock

from reconciler.adapters.git.run import Runner, kill
from reconciler.model.ids import BlobId, ClusterName, CommitId, TreeId, is_name
from reconciler.model.tree import EntryType, FileChange, TreeEntry

_ENTRY = re.compile(r"(?<![^\0])100(?:644|755) blob ([0-9a-f]+)\t([^\0]+)\0")
_SIZED = re.compile(r"(?<![^\0])100(?:644|755) blob ([0-9a-f]+) +([0-9]+)\t([^\0]+)\0")
_OTHER = re.compile(r"(?:^|(?<=\0))(120000|160000)(?: [a-z]+)? ([0-9a-f]{40,64})(?: +[0-9-]+)?\t([^\0]+)\0")
_CHANGE = re.compile(r":([0-9]{6}) ([0-9]{6}) ([0-9a-f]+) ([0-9a-f]+) [A-Z][0-9]*\0([^\0]+)\0")
_CHANGED = re.compile(rb"([0-9a-f]{40,64})\0((?::[^\0]+\0[^\0]+\0)*)")
_FILE = frozenset({"100644", "100755"})
_DIRECTORY = re.compile(rb"40000 ([^\0]++)\0(.{20})|\d+ [^\0]++\0.{20}|.+", re.DOTALL)

_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def checked_id(text: str) -> CommitId:
    """Refuse an invalid object id: git reads an empty one as a deletion, and one with a dash as an option."""
    if _OBJECT_ID.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a full object id")
    return CommitId(text)


def parse_entries(listing: bytes, *, sizes: bool) -> list[TreeEntry]:
    """Parse the regular files of ``ls-tree -r -z``, with ``-l`` if `sizes`, in git's order: by the bytes of paths."""
    text = listing.decode(errors="surrogateescape")
    if sizes:
        return [TreeEntry(path=path, blob=BlobId(blob), size=int(size)) for blob, size, path in _SIZED.findall(text)]
    return [TreeEntry(path=path, blob=BlobId(blob)) for blob, path in _ENTRY.findall(text)]


def parse_other_entries(listing: bytes) -> list[TreeEntry]:
    """Parse the links and submodules of ``ls-tree -r -z``, with or without ``-l``, and of ``ls-files -s -z``."""
    text = listing.decode(errors="surrogateescape")
    return [
        TreeEntry(path=path, blob=BlobId(blob), type=EntryType.LINK if mode == "120000" else EntryType.SUBMODULE)
        for mode, blob, path in _OTHER.findall(text)
    ]


def parse_obstacles(listing: bytes) -> dict[str, str]:
    """Parse the output of ``ls-tree -z``: the kinds of what is no directory, by path."""
    entries = (entry.partition("\t") for entry in listing.decode(errors="surrogateescape").split("\0") if entry)
    kinds = {"120000": "link", "160000": "submodule", "040000": ""}
    found = {path: kinds.get(mode[:6], "file") for mode, _, path in entries}
    return {path: kind for path, kind in found.items() if kind}


def parse_changes(listing: bytes) -> list[FileChange]:
    """Parse the output of ``diff-tree -r --raw -z``. Anything but a regular file counts as absent on its side."""
    changes = []
    for old_mode, new_mode, old, new, path in _CHANGE.findall(listing.decode(errors="surrogateescape")):
        before = BlobId(old) if old_mode in _FILE else None
        after = BlobId(new) if new_mode in _FILE else None
        if before != after:
            changes.append(FileChange(path=path, old=before, new=after))
    return changes


def parse_changes_by_commit(listing: bytes) -> dict[CommitId, tuple[FileChange, ...]]:
    """Parse the output of ``diff-tree --stdin -r --raw -z``: the id of each commit that changed any, then its files."""
    return {CommitId(commit.decode()): tuple(parse_changes(changes)) for commit, changes in _CHANGED.findall(listing)}


def parse_remote_refs(listing: bytes) -> dict[str, CommitId]:
    """Read ``git ls-remote``: the commits of refs by their full names.

    Whoever may push chooses the names: git allows bytes that are no UTF-8, and line ends that only Unicode knows.
    """
    lines = (line.partition(b"\t") for line in listing.split(b"\n") if line)
    return {name.decode(errors="surrogateescape"): CommitId(commit.decode()) for commit, _, name in lines}


def parse_checks(answers: bytes) -> list[BlobId | None]:
    """Parse the output of ``cat-file --batch-check``, an id a line; None for a missing object."""
    return [
        None if line.endswith(b" missing") else BlobId(line.split(b" ")[0].decode()) for line in answers.splitlines()
    ]


def parse_directories(tree: bytes) -> dict[str, TreeId]:
    """Parse the directories of a tree object: ids by name. An id has 20 bytes, since our repositories use SHA-1."""
    entries = _DIRECTORY.findall(tree)
    return {name.decode(errors="surrogateescape"): TreeId(digest.hex()) for name, digest in entries if name}


def parse_clusters(tree: bytes) -> dict[ClusterName, TreeId]:
    """Parse the directories of clusters; a directory whose name is no cluster's is not ours."""
    return {ClusterName(name): tree_id for name, tree_id in parse_directories(tree).items() if is_name(name)}


class Missing(Exception):  # noqa: N818 -- no error yet: the caller fetches what is missing
    """An object that the mirror does not hold."""


class ObjectReader:
    """Reads objects by id through a lasting `cat-file --batch`, which also finds objects written after its start."""

    def __init__(self, runner: Runner) -> None:
        """Start nothing yet."""
        self._runner = runner
        self._process: Popen[bytes] | None = None

    def read(self, ids: Sequence[str]) -> Iterator[bytes]:
        """Yield the contents of the objects in the order of their ids.

        Raises Missing for one that the mirror does not hold, and for one over which git dies twice.
        """
        done, tries = 0, 2
        while done < len(ids):
            try:
                for content in self._replies(ids[done:]):
                    yield content
                    done, tries = done + 1, 2
            except OSError as error:
                self.close()
                tries -= 1
                if not tries:
                    raise Missing(f"{ids[done]}: {error}") from error
            except BaseException:
                # Unread replies are left in the pipe: the next reader must not take them for its own.
                self.close()
                raise

    def holds(self, object_id: str) -> bool:
        """Tell whether the mirror holds an object."""
        try:
            return bool(list(self.read([object_id])))
        except Missing:
            return False

    def close(self) -> None:
        """End the process; the next `read` starts another."""
        if self._process is not None:
            kill(self._process)
            self._process = None

    def _replies(self, ids: Sequence[str]) -> Iterator[bytes]:
        """Send all ids and yield the contents; raises OSError if the process has died."""
        if self._process is None:
            self._process = self._runner.start(["cat-file", "--batch"], stdin=True)
        process = self._process
        asked = "".join(f"{object_id}\n" for object_id in ids).encode()
        if len(asked) <= _SAFE:
            _ask(process, asked)
            yield from _answers(process, ids)
        else:
            asking = threading.Thread(target=_ask_quietly, args=(process, asked), daemon=True)
            asking.start()
            yield from _answers(process, ids)
            asking.join()


_SAFE = 4096
"""Bytes that any pipe buffers. More are written by a thread: git stops reading while its output is not read."""


def _ask(process: Popen[bytes], asked: bytes) -> None:
    """Write ids to git."""
    if process.stdin is None:
        raise BrokenPipeError("git was started without an input")
    process.stdin.write(asked)
    process.stdin.flush()


def _ask_quietly(process: Popen[bytes], asked: bytes) -> None:
    """Write ids from a thread; the reading side notices a dead git by itself."""
    try:
        _ask(process, asked)
    except (OSError, ValueError):
        return


def _answers(process: Popen[bytes], ids: Sequence[str]) -> Iterator[bytes]:
    """Read ``<id> <type> <size>``, a line end, the contents and a line end, for each id."""
    if process.stdout is None:
        raise BrokenPipeError("git was started without an output")
    readline, read = process.stdout.readline, process.stdout.read
    for object_id in ids:
        head = readline()
        if not head:
            raise BrokenPipeError("git cat-file ended")
        size = head.rpartition(b" ")[2]
        if size == b"missing\n":
            raise Missing(object_id)
        content = read(int(size) + 1)
        if len(content) <= int(size):
            raise BrokenPipeError("git cat-file ended in the middle of an object")
        yield content[:-1]


class MirrorFiles:
    """Reads blobs of the mirror by id through a process of its own; from any thread, one at a time."""

    def __init__(self, runner: Runner) -> None:
        """Start nothing yet."""
        self._reader = ObjectReader(runner)
        self._lock = Lock()
        self._closed = False

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read blobs; missing ones are left out, and after `close` all."""
        wanted = list(dict.fromkeys(blobs))
        contents: dict[BlobId, bytes] = {}
        with self._lock:
            for blob in () if self._closed else wanted:
                try:
                    (contents[blob],) = self._reader.read([checked_id(blob)])
                except Missing:
                    # A mirror that was made anew has the same path, so the next process reads it.
                    self._reader.close()
        return contents

    def close(self) -> None:
        """End the reading process for good."""
        with self._lock:
            self._closed = True
            self._reader.close()
