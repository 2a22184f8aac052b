"""Commits that the mirror holds, or can obtain by their ids, and how they relate.

Unlike `branches`, this takes no failed command for a broken mirror: ids that others name may be of anything. Every
failure of git is Transient.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

from reconciler.adapters.git import remote as address
from reconciler.adapters.git.commits import parse
from reconciler.adapters.git.history import FIRST_STEP, GROWTH
from reconciler.adapters.git.known_refs import KNOWN
from reconciler.adapters.git.mirror import Mirror
from reconciler.adapters.git.objects import Missing, ObjectReader
from reconciler.adapters.git.run import Output, Runner
from reconciler.core.commits.commit_date import LONGEST_AHEAD
from reconciler.core.commits.trailers import Trailer, is_own, superseded
from reconciler.core.ledger.read import ROOTS, approved_workload, is_record
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.model.bounds import COMMITS_READ_BACK
from reconciler.model.ids import CommitId
from reconciler.model.tree import Identity, LoggedCommit

# A fetch moves only the refs that its command names: the refspecs of the configuration are for pushes.
FETCH = ("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--progress", "--refmap=")

_SEEN = "refs/overspill/seen/"
"""The branches as the remote has them, where they do not follow what is known."""
_REFUSED = re.compile(r"not our ref|couldn't find remote ref")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitsAboveOurs:
    """The commits at and before one along first parents, down to the newest one of ours."""

    above: tuple[LoggedCommit, ...]
    """Commits that Overspill has not written, the newest first."""
    own: LoggedCommit | None
    """The newest commit of ours; None where there is none nearby."""
    is_cut: bool = False
    """Whether none was found because neither the mirror nor the remote has what is before `above`."""


class MirrorCommits:
    """Obtains, reads and compares commits."""

    def __init__(
        self,
        runner: Runner,
        reader: ObjectReader,
        mirror: Mirror,
        committer: Identity,
        *,
        deepen: Callable[[str, int], None],
    ) -> None:
        """Take the committer of our commits, and what fetches more commits of a branch."""
        self._runner = runner
        self._reader = reader
        self._mirror = mirror
        self._committer = committer
        self._deepen = deepen
        self.most = COMMITS_READ_BACK.most
        """Commits of a branch that are searched for a known one."""

    def holds(self, commit: CommitId) -> bool:
        """Return whether the mirror holds an object."""
        return self._reader.holds(commit)

    def obtain(self, commit: CommitId) -> bool:
        """Fetch a commit from another mirror on this disk or, by its id, from the remote, if either has it."""
        if self.holds(commit):
            return True
        self.fetch_beside(f"+{KNOWN}*:{_SEEN}*")
        if not self.holds(commit):
            self._runner.run([*FETCH, "--depth=1", address.NAME, commit], remote=True)
        return self.holds(commit)

    def fetch_beside(self, refspec: str) -> None:
        """Fetch refs from mirrors that were put aside and from that of the passes, if that is another one and has them.

        What was put aside comes first, since it knows the least: a ref of the mirror of the passes replaces its own.
        """
        beside = self._mirror.beside
        mirrors = [] if beside is None else [beside / self._mirror.aside.name, beside / "mirror.git"]
        local = replace(self._runner, environment={**self._runner.environment, "GIT_ALLOW_PROTOCOL": "file"})
        for mirror in (self._mirror.aside, *mirrors):
            if mirror.is_dir():
                local.run([*FETCH, "--update-shallow", str(mirror), refspec])

    def fetch_tip(self, branch: str, *, shallow: bool) -> CommitId:
        """Fetch a branch of the remote without moving the ref of its known tip, and return where it stands.

        Raises InvalidInput for a branch that points to no commit.
        """
        seen = f"{_SEEN}{quote(branch, safe='')}"
        self.remote([*FETCH, *(["--depth=1"] if shallow else []), address.NAME, f"+{branch}:{seen}"])
        if (kind := self.kind(seen)) != "commit":
            raise InvalidInput(
                f"reading the remote: its branch {branch.removeprefix('refs/heads/')} points to a {kind}, not to a"
                " commit (delete it there, or choose another branch)"
            )
        return CommitId(self.local(["rev-parse", seen]).strip())

    def kind(self, name: str) -> str:
        """Return the type of an object that the mirror holds: ``commit``, ``tag``, ``tree`` or ``blob``."""
        return self.local(["cat-file", "-t", name]).strip()

    def time(self, commit: CommitId) -> datetime | None:
        """Return the committer time of a commit; None where the mirror does not hold it."""
        try:
            (raw,) = self._reader.read([commit])
        except Missing:
            return None
        return parse(commit, raw).logged.at

    def has_files(self, commit: CommitId, directory: str) -> bool:
        """Return whether a commit that the mirror holds has anything in a directory."""
        return bool(self.local(["ls-tree", "-z", "--name-only", commit, "--", directory]))

    def is_before(self, commit: CommitId, later: CommitId) -> bool:
        """Return whether a commit is, as far as the mirror holds the history, at or before another one."""
        return self._runner.run(["merge-base", "--is-ancestor", commit, later]).status == 0

    def share_history(self, one: CommitId, other: CommitId) -> bool:
        """Return whether two commits have one in common at or before them, as far as the mirror holds the history."""
        return self._runner.run(["merge-base", one, other]).status == 0

    def is_cut(self, commit: CommitId) -> bool:
        """Return whether the mirror holds a part of a commit's history only."""
        shallow = self._mirror.shallow()
        return any(name in shallow for name in self.local(["rev-list", commit]).split())

    def fetch_history(self, commit: CommitId) -> None:
        """Fetch what is before a commit, as far as the remote still has it."""
        self._runner.run([*FETCH, f"--depth={COMMITS_READ_BACK.most}", address.NAME, commit], remote=True)

    def missing_from(self, commit: CommitId, tip: CommitId) -> int:
        """Count the commits at or before a tip that another commit does not follow."""
        return int(self.local(["rev-list", "--count", tip, f"^{commit}"]))

    def contains(self, branch: str, tip: CommitId, commit: CommitId, *, at: datetime | None = None) -> bool | None:
        """Return whether a commit is at or before the tip, and fetch as much history as that takes.

        None where the bound on that was met first. `at` is the committer time of the commit, if that is known. Our own
        commits are not older than those before them, but for dates that are too far ahead to be followed, so that the
        search ends at one that is a little older than what is searched for.
        """
        step = FIRST_STEP
        while True:
            listed = self.local(["rev-list", "--timestamp", tip])
            commits = {CommitId(name): int(at) for at, name in (line.split() for line in listed.splitlines())}
            if commit in commits:
                return True
            shallow = self._mirror.shallow()
            cut = [name for name in commits if name in shallow]
            ends = [parse(name, raw) for name, raw in zip(cut, self._reader.read(cut), strict=True)]
            ends = [end for end in ends if end.parents]
            if not ends or (at and all(self._is_before_all(end.logged, at) for end in ends)):
                return False
            if len(commits) >= self.most:
                return None
            with contextlib.suppress(Conflict):
                self._deepen(branch, min(len(commits) + step, self.most))
            if self._mirror.shallow() == shallow:
                return False  # the remote has no more of it
            step *= GROWTH

    def recent(self, commit: CommitId) -> CommitsAboveOurs:
        """Return the commits from one that the mirror holds down to the newest one of ours, if that is nearby.

        A person may have committed on top of it, as by `git revert`. Raises Transient where the remote does not answer.
        """
        for step in (0, FIRST_STEP):
            if step:
                # A relative depth (`--deepen`) reaches along the branches of the remote alone, and none may lead to the
                # commit any more. This one is past all that the mirror holds, since git cuts off what is deeper.
                depth = step + int(self.local(["rev-list", "--count", "--all", commit]))
                done = self._runner.run([*FETCH, f"--depth={depth}", address.NAME, commit], remote=True)
                if done.status and not _REFUSED.search(done.stderr):
                    raise Transient(f"looking at what is before commit {commit[:12]}: {done.stderr.strip()}")
            listed = self.local(["rev-list", "--first-parent", f"--max-count={FIRST_STEP}", commit])
            commits = [CommitId(name) for name in listed.split()]
            read = [parse(name, raw) for name, raw in zip(commits, self._reader.read(commits), strict=True)]
            logged = tuple(each.logged for each in read)
            for number, each in enumerate(logged):
                if is_own(each, self._committer):
                    return CommitsAboveOurs(above=logged[:number], own=each)
            if len(read) == FIRST_STEP or not read[-1].parents or commits[-1] not in self._mirror.shallow():
                return CommitsAboveOurs(above=logged, own=None)
        return CommitsAboveOurs(above=logged, own=None, is_cut=True)

    def has_own_of(self, commit: CommitId, branch: str, tip: CommitId) -> bool:
        """Return whether a branch at its tip has the newest commit of ours at or before another commit."""
        own = self.recent(commit).own
        return own is not None and self.contains(branch, tip, own.id, at=own.at) is True

    def is_foreign(self, commit: CommitId) -> bool:
        """Return whether a commit has no record, and neither it nor any before it states an action of Overspill's.

        Who committed does not count: the name and address of the committer are settings, and may have been others.
        False where the whole history cannot be seen.
        """
        if not self.holds(commit) or self.records(commit) or self.is_cut(commit):
            return False
        return not self.local(["rev-list", "--max-count=1", "-F", f"--grep={Trailer.ACTION}: ", commit]).strip()

    def records(self, commit: CommitId) -> frozenset[str]:
        """Return the paths of a commit that hold records."""
        paths = self.local(["ls-tree", "-r", "-z", "--name-only", commit, "--", *ROOTS]).split("\0")
        return frozenset(path for path in paths if path and is_record(path))

    def adds_approvals(self, old: CommitId, new: CommitId) -> bool:
        """Return whether a commit holds approvals of proposals that an earlier one lacks, or other versions of them."""
        flags = ["-r", "-z", "--name-only", "--diff-filter=d", "--no-renames"]
        paths = self.local(["diff-tree", *flags, old, new]).split("\0")
        return any(approved_workload(path) is not None for path in paths if path)

    def superseded(self, tip: CommitId, known: CommitId) -> list[CommitId]:
        """List what commits at or before a tip, and not before a known one, give up, the newest first."""
        exclude = [f"^{known}"] if self.holds(known) else []
        grep = ["--fixed-strings", f"--grep={Trailer.SUPERSEDES}: "]
        commits = [CommitId(commit) for commit in self.local(["rev-list", *grep, tip, *exclude]).split()]
        logs = (parse(commit, raw).logged for commit, raw in zip(commits, self._reader.read(commits), strict=True))
        return list(dict.fromkeys(each for logged in logs for each in superseded(logged)))

    def local(self, arguments: list[str]) -> str:
        """Run a command on the mirror alone and return what it printed."""
        done = self._runner.run(arguments)
        if done.status:
            raise Transient(f"git {arguments[0]} in the mirror: {done.stderr.strip()}")
        return done.stdout.decode(errors="surrogateescape")

    def remote(self, arguments: list[str]) -> Output:
        """Run a command that asks the remote."""
        done = self._runner.run(arguments, remote=True)
        if done.status:
            raise Transient(f"comparing the branches with what is known: {done.stderr.strip()}")
        return done

    def _is_before_all(self, commit: LoggedCommit, at: datetime) -> bool:
        """Return whether no commit before one can have been made at a moment."""
        return is_own(commit, self._committer) and commit.at < at <= commit.at + LONGEST_AHEAD
