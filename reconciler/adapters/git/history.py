"""History of a branch; the mirror at first holds only the last commit."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from reconciler.adapters.git.commits import StoredCommit, parse
from reconciler.adapters.git.objects import Missing, ObjectReader
from reconciler.core.fleet.path_history import PathChange, PathHistories, path_histories
from reconciler.errors import Conflict
from reconciler.model.bounds import SOURCE_HISTORY
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.tree import LoggedCommit

FIRST_STEP = 50
GROWTH = 4
"""Commits of the first deepening, and the factor of each further one."""

_OLD_SIDE = re.compile(r"^:100(?:644|755) [0-9]{6} ([0-9a-f]+) ", re.MULTILINE)

_FILES = ("100644", "100755")
_ABSENT = "000000"
_MOST_PATHSPECS = 100
"""Paths that git is given to look for; with more of them it lists all changes in less time."""

Local = Callable[[Sequence[str]], bytes]
Deepen = Callable[[int], None]


class History:
    """Reads the history of one branch, and deepens it only when the mirror holds too little.

    That of a lost branch ends where neither the mirror nor the remote holds more of it. What stood in files, and
    whether a commit is among them, is read as far as the remote has it: a shallow clone has no more, whoever asks.
    """

    def __init__(
        self,
        reader: ObjectReader,
        local: Local,
        shallow: Callable[[], frozenset[str]],
        deepen: Deepen,
        *,
        is_lost: bool = False,
    ) -> None:
        """Take the functions that read objects, run a local command, list the shallow commits and deepen."""
        self._reader = reader
        self._local = local
        self._shallow = shallow
        self._deepen = deepen
        self._is_lost = is_lost

    def first_parents(self, tip: CommitId, *, most: int | None = None) -> Iterator[StoredCommit]:
        """Yield the tip and its ancestors along first parents, newest first; missing ones are fetched.

        The caller reads no more than `most`.
        """
        steps = self._steps(tip, most=most)
        following: CommitId | None = tip
        while following is not None:
            try:
                (raw,) = self._reader.read([following])
            except Missing:
                if not next(steps):
                    return
                continue
            commit = parse(following, raw)
            yield commit
            following = commit.parents[0] if commit.parents else None

    def log(
        self, tip: CommitId, *, since: datetime | None, limit: int | None, base: CommitId | None = None
    ) -> list[LoggedCommit]:
        """Read commits back from the tip until `since` or `limit` ends it; merged side branches are read too.

        Those that `base` leads back to are left out. A side branch of which the mirror holds a part alone is deepened
        until it meets them.
        """
        bounds = [] if since is None else [f"--max-age={int(since.timestamp())}"]
        bounds += [] if limit is None else [f"--max-count={limit}"]
        bounds += [] if base is None else [f"^{base}"]
        steps = self._steps(tip)
        while True:
            ids = self._local(["rev-list", *bounds, tip]).decode().split()
            if (limit is not None and len(ids) >= limit) or not self._cut(ids) or not next(steps):
                break
        return [parse(CommitId(commit), raw).logged for commit, raw in zip(ids, self._reader.read(ids), strict=True)]

    def earlier(self, commit: CommitId, path: str, *, limit: int) -> list[BlobId]:
        """List the distinct versions of a file on the branch before this commit, newest first.

        Where the remote has no more history, these are all.
        """
        steps = self._steps(commit, to_end=True)
        # Along first parents: a version on a side branch was never in force before its merge.
        chain = ["--first-parent", commit]
        while True:
            raw = ["log", "-m", "--raw", "--no-abbrev", "--no-renames", "--format=", *chain, "--", path]
            versions = dict.fromkeys(_OLD_SIDE.findall(self._local(raw).decode(errors="replace")))
            if len(versions) > limit:
                break
            ends = self._local(["rev-list", "--max-parents=0", *chain]).decode().split()
            if not self._cut(ends) or not next(steps):
                break
        present = self._local(["ls-tree", "-z", "--", commit, path]).decode(errors="replace")
        current = present.partition("\t")[0].rpartition(" ")[2]
        return list(islice((BlobId(blob) for blob in versions if blob != current), limit))

    def states(self, commit: CommitId, paths: Sequence[str], *, limit: int) -> list[Mapping[str, BlobId]]:
        """List what stood at some paths before each commit on the branch that changed any, newest first.

        Where the remote has no more history, these are all.
        """
        steps = self._steps(commit, to_end=True)
        chain = ["--first-parent", commit]
        while True:
            raw = ["log", "-m", "-z", "--raw", "--no-abbrev", "--no-renames", "--format=%H", *chain, "--", *paths]
            ends = self._cut_ends(self._local(["rev-list", "--max-parents=0", *chain]).decode().split())
            changes = _changes(self._local(raw).decode(errors="replace").split("\0"), ends)
            if len(changes) >= limit or not ends or not next(steps):
                break
        present = self._local(["ls-tree", "-z", "--", commit, *paths]).decode(errors="replace")
        parts = (entry.partition("\t") for entry in present.split("\0"))
        state = {path: BlobId(entry.split(" ")[2]) for entry, _, path in parts if path}
        states: list[Mapping[str, BlobId]] = []
        for change in changes[:limit]:
            for path, old in change:
                if set(old) == {"0"}:
                    state.pop(path, None)
                else:
                    state[path] = BlobId(old)
            states.append(dict(state))
        return states

    def past_versions(
        self,
        commit: CommitId,
        paths: Collection[str],
        *,
        base: CommitId | None = None,
        uncommitted: Sequence[PathChange] = (),
    ) -> PathHistories:
        """List the versions that stood at some paths before those at `commit`, newest first, as far back as `base`.

        Without a base the history is deepened in one step, up to its bound, where the mirror holds too little: most
        paths have to be followed back to where they were added. Where the remote has no more, the answer is what the
        mirror knows. `uncommitted` are changes of a work tree, on top of the commit.
        """
        asked = sorted(paths) if len(paths) <= _MOST_PATHSPECS else []
        deepened = False
        while True:
            floor = base or self._beyond_bound(commit)
            chain = ["--first-parent", commit, *([] if floor is None else [f"^{floor}"])]
            # Of each commit that changed one of the paths, also what it changed elsewhere.
            form = ["-m", "-z", "--raw", "--full-diff", "--no-abbrev", "--no-renames", "--format=%H"]
            raw = ["log", *form, *chain, "--", *asked]
            fields = self._local(raw).decode(errors="surrogateescape").split("\0")
            histories = path_histories(paths, itertools.chain([uncommitted], _path_changes(fields, self._shallow())))
            if base is not None or all(history.ended for history in histories.values()):
                return PathHistories(paths=histories, based=base is not None)
            if deepened or not self._cut(self._local(["rev-list", "--max-parents=0", *chain]).decode().split()):
                return PathHistories(paths=histories)
            before = self._shallow()
            try:
                self._deepen(SOURCE_HISTORY.most)
            except Conflict:
                return PathHistories(paths=histories, complete=False)
            if self._shallow() == before:
                return PathHistories(paths=histories, complete=False)
            deepened = True

    def _beyond_bound(self, commit: CommitId) -> CommitId | None:
        """Return the newest commit that is too old to be read."""
        bounds = [f"--skip={SOURCE_HISTORY.most}", "--max-count=1"]
        ids = self._local(["rev-list", "--first-parent", *bounds, commit]).decode().split()
        return CommitId(ids[0]) if ids else None

    def leads_to(self, commit: CommitId, base: CommitId) -> bool:
        """Return whether first parents lead from a commit to another, as far as the mirror holds them."""
        if commit == base:
            return True
        try:
            self._reader_one(base)
        except Missing:
            return False
        between = self._local(["rev-list", "--first-parent", commit, f"^{base}"]).decode().split()
        return bool(between) and parse(CommitId(between[-1]), self._reader_one(between[-1])).parents[:1] == (base,)

    def _reader_one(self, object_id: str) -> bytes:
        (raw,) = self._reader.read([object_id])
        return raw

    def reaches(self, tip: CommitId, commit: CommitId) -> bool:
        """Return whether a commit is at or before the tip, side branches included.

        The history is deepened up to its bound; what lies further back, or further than the remote has it, counts as no
        part of it.
        """
        steps = self._steps(tip, most=SOURCE_HISTORY.most, to_end=True)
        while not self._leads_back(tip, commit):
            ids = self._local(["rev-list", tip]).decode().split()
            if commit in ids:
                return True
            if len(ids) >= SOURCE_HISTORY.most or not self._cut(ids) or not next(steps):
                return False
        return True

    def is_whole(self, tip: CommitId) -> bool:
        """Return whether the mirror holds all that is at or before a tip."""
        return not self._cut(self._local(["rev-list", tip]).decode().split())

    def _leads_back(self, tip: CommitId, commit: CommitId) -> bool:
        """Return whether a walk from a tip meets a commit in the mirror before those that are dated earlier than it.

        Where dates are out of order it may miss the commit.
        """
        try:
            self._reader_one(commit)
        except Missing:
            return False
        if self._local(["rev-list", "--no-walk", commit]).decode().split() != [commit]:
            return False  # a file, a directory or a tag
        return not self._local(["rev-list", "--max-count=1", commit, f"^{tip}"])

    def _cut(self, ids: Sequence[str]) -> bool:
        """Tell whether one of these commits is shallow: its parents are not in the mirror."""
        return bool(self._cut_ends(ids))

    def _cut_ends(self, ids: Sequence[str]) -> set[CommitId]:
        """Return those of some commits whose parents are not in the mirror."""
        shallow = self._shallow()
        ends = [CommitId(commit_text) for commit_text in ids if commit_text in shallow]
        raws = zip(ends, self._reader.read(ends), strict=True)
        return {commit for commit, raw in raws if parse(commit, raw).parents}

    def _steps(self, tip: CommitId, *, most: int | None = None, to_end: bool = False) -> Iterator[bool]:
        """Deepen by growing numbers of commits, once for each step taken, and yield whether that brought any.

        The depth counts from the tip: a relative one would deepen every branch of the remote in the mirror. No
        step passes over `most`; where the mirror holds that many, counted with those of side branches, there is no
        bound.

        Raises Conflict where a step brings nothing, since the branch was rewritten or removed since it was fetched, or
        the remote is a shallow clone. With `to_end`, and where the branch is lost, it yields False then.
        """
        count = FIRST_STEP
        to_end = to_end or self._is_lost
        while True:
            before = self._shallow()
            if not before:
                raise Missing("the mirror should hold the whole history, and does not")
            present = int(self._local(["rev-list", "--count", tip]))
            # Never less than is there: that would cut it off.
            depth = present + count if most is None or present >= most else min(present + count, most)
            with contextlib.suppress(Conflict) if to_end else contextlib.nullcontext():
                self._deepen(depth)
            if self._shallow() != before:
                yield True
            elif to_end:
                yield False
            else:
                raise Conflict(
                    "reading back: the remote has no more of the branch's history; it has been rewritten since it was"
                    " fetched, or the remote is a shallow clone"
                )
            count *= GROWTH


def _path_changes(fields: Iterable[str], shallow: Collection[str]) -> Iterator[list[PathChange]]:
    """Read ``git log -z --raw --format=%H``: the changes of each commit, newest first, down to a shallow one.

    That seems to add all that it has.
    """
    changes: list[PathChange] = []
    rest = iter(fields)
    for field in rest:
        if not field.lstrip("\n").startswith(":"):
            if changes:
                yield changes
            changes = []
            if field.strip("\n") in shallow:
                return
            continue
        before, after, old, new, _ = field.lstrip("\n")[1:].split(" ")
        changes.append(
            PathChange(
                path=next(rest),
                old=BlobId(old) if before in _FILES else None,
                stood=before != _ABSENT,
                stands=after != _ABSENT,
                new=BlobId(new) if after in _FILES else None,
            )
        )
    if changes:
        yield changes


def _changes(fields: Iterable[str], ends: Collection[str]) -> list[list[tuple[str, str]]]:
    """Read ``git log -z --raw --format=%H``: for each commit its changed paths, each with the blob before.

    It is read down to one of the `ends`, whose parents are not in the mirror: that seems to add all that it has.

    Fields are a commit, then two for each of its changes: ``:MODE MODE OLD NEW STATUS`` and the path.
    """
    changes: list[list[tuple[str, str]]] = []
    rest = iter(fields)
    for field in rest:
        if field.lstrip("\n").startswith(":"):
            changes[-1].append((next(rest), field.split(" ")[2]))
        elif field.strip("\n") in ends:
            break
        elif field:
            changes.append([])
    return changes
