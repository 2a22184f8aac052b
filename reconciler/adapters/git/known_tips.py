"""The last known tips of the branches that Overspill writes; the remote is not believed against them.

Each tip is a ref of the mirror, which git moves forward only: no fetch of ours forces one or prunes it. A branch of the
remote that does not follow its known tip is judged here: it counts as lost, unless the mirror's history was too short
to see that it follows, or a commit of the branch says that a person has settled it (`Trailer.SUPERSEDES`).

A mirror that is made again, and one beside that of the passes (a second process, the sweep in a thread, the desk of
proposals), hold no such refs at first. For them the known tips are ids without objects, until the branches have been
fetched and found to follow them. Before each fetch the latter look up what the mirror of the passes knows by then.

What a cluster's engine or a person says a branch has had counts less than what a mirror knows. A branch is judged by it
once it has all that is known, it counts only if Overspill wrote that commit or one shortly before it, and it takes the
place of no commit that it does not follow.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote, unquote

from reconciler.adapters.git import remote as address
from reconciler.adapters.git.commits import parse
from reconciler.adapters.git.history import FIRST_STEP, GROWTH
from reconciler.adapters.git.known_refs import KNOWN, cluster_refs, known_refs, output_ref
from reconciler.adapters.git.mirror import Mirror, replace_file
from reconciler.adapters.git.objects import Missing, ObjectReader
from reconciler.adapters.git.run import Output, Runner
from reconciler.core.commits.commit_date import LONGEST_AHEAD, read_date
from reconciler.core.commits.trailers import Trailer, is_for_cluster, is_own
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.model.bounds import COMMITS_READ_BACK
from reconciler.model.branch_loss import BranchLoss, BranchLossKind
from reconciler.model.ids import CommitId, read_commit_id
from reconciler.model.tree import Identity, LoggedCommit

# A fetch moves only the refs that its command names: the refspecs of the configuration are for pushes.
FETCH = ("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--progress", "--refmap=")

_SEEN = "refs/overspill/seen/"
"""The branches as the remote has them, where they do not follow what is known."""
UNTRIED_MEMORY = timedelta(hours=1)
"""How long engines are heard on what the remote had when a mirror on an empty disk first reached it."""
_MOST_GIVEN_UP = 20
"""Commits that were given up and are looked at; a person gives up one at a time."""
_REFUSED = re.compile(r"not our ref|couldn't find remote ref")
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTip:
    """A commit that a branch of the remote is known to have had."""

    commit: CommitId
    at: datetime | None = None
    """Its committer time, None where the mirror does not hold the commit."""
    reported_by: str = ""
    """The cluster whose engine reported it, where nothing else knows it; empty also where a person names it."""


class KnownTips:
    """Keeps the known tips, and judges branches of the remote that do not follow them."""

    def __init__(
        self,
        runner: Runner,
        reader: ObjectReader,
        mirror: Mirror,
        committer: Identity,
        *,
        output: str,
        clusters: str,
        deepen: Callable[[str, int], None],
    ) -> None:
        """Take the full name of the output branch and the prefix of those of clusters; nothing is fetched."""
        self._runner = runner
        self._reader = reader
        self._mirror = mirror
        self._committer = committer
        self._output, self._clusters = output, clusters
        self._deepen = deepen
        self.output_ref = output_ref(output)
        self.cluster_refs = cluster_refs(output)
        self.losses: Mapping[str, BranchLoss] = {}
        """By the full names of the branches."""
        self.most = COMMITS_READ_BACK.most
        """Commits of a branch that are searched for a known one."""
        self.expected: dict[str, KnownTip] = {}
        """Known tips that no ref of this mirror holds, by ref."""
        self.told: dict[str, KnownTip] = {}
        """What engines and people say that branches have had, by ref of the known tip."""
        self._consulted: dict[str, KnownTip] = {}
        """What the mirror beside this one knew when it was last asked, by ref."""
        self._consulted_told: dict[str, KnownTip] = {}
        remembered, self.told = _read(self._file)
        self._expect((), remembered)
        self.consult()

    @property
    def has_memory(self) -> bool:
        """Whether this, or the mirror of the passes, began to know tips longer ago than that takes to be contradicted.

        What a mirror on an empty disk knows is what the remote had at the first fetch that reached it.
        """
        beside = self._mirror.beside
        for file in (self._began, *(() if beside is None else [beside / self._began.name])):
            with contextlib.suppress(OSError):
                if time.time() - file.stat().st_mtime < UNTRIED_MEMORY.total_seconds():
                    return False
        return True

    def doubtful(self, *, with_clusters: bool = True) -> bool:
        """Return whether the next fetch has to be judged even if no branch has moved."""
        named = (ref for ref in (*self.expected, *self.told) if with_clusters or ref == self.output_ref)
        return bool(self.losses) or any(map(self._is_followed, named))

    def branch(self, ref: str) -> str:
        """Return the full name of the branch of a known tip."""
        return self._output if ref == self.output_ref else f"{self._clusters}{ref.removeprefix(self.cluster_refs)}"

    def remember(self, overwritten: Mapping[str, CommitId | None]) -> None:
        """Keep the ids of all known tips before the mirror is thrown away, also for the next process.

        `overwritten` has the known tips of refs that hold no commit now. Raises Transient where those cannot be noted:
        the mirror stays.
        """
        refs = {**dict(known_refs(self._mirror.git_dir)), **overwritten}
        self._expect([(ref, commit) for ref, commit in refs.items() if commit], _read(self._file)[0])
        self._write()

    def consult(self) -> None:
        """Expect what the mirror of the passes, if that is another one, has come to know since this was last called.

        While no tip is known, the time is noted, and again where the note is from the future. It is called before each
        fetch, so that the remote has had by then what is expected of it. Raises Transient where the disk takes no note.
        """
        ours = dict(known_refs(self._mirror.git_dir))
        beside = self._mirror.beside
        if beside is not None:
            known = {ref: KnownTip(commit=commit) for ref, commit in known_refs(beside / "mirror.git")}
            remembered, told = _read(beside / "known")
            for ref, tip in (known | remembered).items():
                if self._is_followed(ref) and self._consulted.get(ref) != tip:
                    self._consulted[ref] = tip
                    if ours.get(ref) != tip.commit:
                        self.expected[ref] = tip
            for ref, tip in told.items():
                if self._is_followed(ref) and self._consulted_told.get(ref) != tip:
                    self._consulted_told[ref] = self.told[ref] = tip
        is_known = any(self._is_followed(ref) for ref in (*self.expected, *ours))
        with contextlib.suppress(OSError):
            is_known = is_known and self._began.stat().st_mtime <= time.time()
        if not is_known:
            replace_file(self._began, "No tip was known yet when this was written.\n")

    def ref(self, branch: str) -> str:
        """Return the ref of the known tip of a branch of ours, by its full name."""
        return self.output_ref if branch == self._output else self.cluster_refs + branch.removeprefix(self._clusters)

    def hear(self, tip: KnownTip, ref: str) -> None:
        """Hear that a branch, by the ref of its known tip, has had a commit; the next fetch judges the branch by it.

        The next process hears an engine's word again, and a person's only if the person repeats it.
        """
        self.told[ref] = tip
        if tip.reported_by:
            self._write()

    def forget_clusters(self) -> None:
        """Expect nothing more of the branches of clusters: the fleet keeps none."""
        stale = [ref for ref in (*self.expected, *self.told) if ref.startswith(self.cluster_refs)]
        for ref in stale:
            self.expected.pop(ref, None)
            self.told.pop(ref, None)
        if stale:
            self._write()

    def own_before(self, commit: CommitId) -> LoggedCommit | None:
        """Return the newest commit of ours at or shortly before one that the mirror holds; None where there is none.

        A person may have committed on top of it, as by `git revert`. Raises Conflict where neither the mirror nor the
        remote has what is before it, and Transient where the remote does not answer.
        """
        for step in (0, FIRST_STEP):
            if step:
                # A relative depth (`--deepen`) reaches along the branches of the remote alone, and none may lead to the
                # commit any more. This one is past all that the mirror holds, since git cuts off what is deeper.
                depth = step + int(self._local(["rev-list", "--count", "--all", commit]))
                done = self._runner.run([*FETCH, f"--depth={depth}", address.NAME, commit], remote=True)
                if done.status and not _REFUSED.search(done.stderr):
                    raise Transient(f"looking at what is before commit {commit[:12]}: {done.stderr.strip()}")
            listed = self._local(["rev-list", "--first-parent", f"--max-count={FIRST_STEP}", commit])
            commits = [CommitId(name) for name in listed.split()]
            read = [parse(name, raw) for name, raw in zip(commits, self._reader.read(commits), strict=True)]
            for each in read:
                if is_own(each.logged, self._committer):
                    return each.logged
            if len(read) == FIRST_STEP or not read[-1].parents or commits[-1] not in self._mirror.shallow():
                return None
        raise Conflict(f"looking at what is before commit {commit[:12]}: the remote has nothing of it")

    def judge(self, *, with_clusters: bool) -> None:
        """Compare the branches of the remote with what is known, and take over those that follow it.

        Raises Transient and InvalidInput as a fetch does.
        """
        refs = {ref: KnownTip(commit=commit) for ref, commit in known_refs(self._mirror.git_dir)}
        followed = (ref for ref in {*refs, *self.expected, *self.told} if self._is_followed(ref))
        known = sorted(ref for ref in followed if with_clusters or ref == self.output_ref)
        names = [self._output, *([f"{self._clusters}*"] if with_clusters else [])]
        listed = self._remote(["ls-remote", "--heads", address.NAME, *names])
        tips = {name: commit for commit, name in (line.split("\t") for line in listed.stdout.decode().splitlines())}
        losses: dict[str, BranchLoss] = {}
        for ref in known:
            branch = self.branch(ref)
            stands = CommitId(tips[branch]) if branch in tips else None
            own, expected = refs.get(ref), self.expected.get(ref)
            if own and expected and self._is_outdated(expected.commit, own.commit):
                expected = None
            told = self.told.get(ref)
            for tip in filter(None, (expected, own)):
                if (stands == tip.commit and ref in refs) or (told and tip.commit == told.commit):
                    continue
                loss = self._judge_branch(branch, ref, tip, stands)
                if loss is not None:
                    losses[branch] = loss
                    break
            if told and branch not in losses and (stands != told.commit or ref not in refs):
                is_told = told.commit not in {tip.commit for tip in (own, expected) if tip}
                # That it is known counts for more than who else names it; who does is told all the same.
                judged = told if is_told else replace(told, reported_by="")
                loss = self._judge_branch(branch, ref, judged, stands, is_told=is_told)
                if loss is not None:
                    losses[branch] = replace(loss, reported_by=told.reported_by)
        settled = {ref for ref in (*self.expected, *self.told) if ref in known and self.branch(ref) not in losses}
        for ref in settled:
            self.expected.pop(ref, None)
            self.told.pop(ref, None)
        self.losses = losses
        if settled:
            self._write()

    def contains(self, branch: str, tip: CommitId, known: KnownTip) -> bool | None:
        """Return whether a commit is at or before the tip, and fetch as much history as that takes.

        None where the bound on that was met first. Our own commits are not older than those before them, but for dates
        that are too far ahead to be followed, so that the search ends at one that is a little older than what is
        searched for.
        """
        step = FIRST_STEP
        while True:
            listed = self._local(["rev-list", "--timestamp", tip])
            commits = {CommitId(name): int(at) for at, name in (line.split() for line in listed.splitlines())}
            if known.commit in commits:
                return True
            shallow = self._mirror.shallow()
            cut = [commit for commit in commits if commit in shallow]
            ends = [parse(commit, raw) for commit, raw in zip(cut, self._reader.read(cut), strict=True)]
            ends = [end for end in ends if end.parents]
            if not ends or (known.at and all(self._is_before_all(end.logged, known.at) for end in ends)):
                return False
            if len(commits) >= self.most:
                return None
            with contextlib.suppress(Conflict):
                self._deepen(branch, min(len(commits) + step, self.most))
            if self._mirror.shallow() == shallow:
                return False  # the remote has no more of it
            step *= GROWTH

    def _is_followed(self, ref: str) -> bool:
        """Return whether a ref is for the output branch or that of a cluster: a mirror may serve other outputs too."""
        return ref == self.output_ref or ref.startswith(self.cluster_refs)

    def _is_before_all(self, commit: LoggedCommit, at: datetime) -> bool:
        """Return whether no commit before one can have been made at a moment."""
        return is_own(commit, self._committer) and commit.at < at <= commit.at + LONGEST_AHEAD

    def holds(self, commit: CommitId) -> bool:
        """Return whether the mirror holds a commit."""
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

    def seen_ref(self, branch: str) -> str:
        """Return the ref of a branch as the remote has it, while it does not follow what is known."""
        return f"{_SEEN}{quote(branch, safe='')}"

    def _judge_branch(
        self, branch: str, ref: str, known: KnownTip, tip: CommitId | None, *, is_told: bool = False
    ) -> BranchLoss | None:
        """Return the loss of a branch that has come from a known commit to another one, or to nothing.

        Where there is none, the ref of the known tip is moved to where the branch is.
        """
        if tip is not None:
            seen = self.seen_ref(branch)
            depth = [] if self.holds(known.commit) else ["--depth=1"]
            self._remote([*FETCH, *depth, address.NAME, f"+{branch}:{seen}"])
            kind = self._local(["cat-file", "-t", seen]).strip()
            if kind != "commit":
                raise InvalidInput(
                    f"reading the remote: its branch {branch.removeprefix('refs/heads/')} points to a {kind}, not to a"
                    " commit (delete it there, or choose another branch)"
                )
            tip = CommitId(self._local(["rev-parse", seen]).strip())
        held = self.obtain(known.commit)
        if is_told and held and not self._is_of(ref, known.commit):
            return None
        known = replace(known, at=self._time(known.commit) or known.at)
        if tip is None:
            if self._is_empty_cluster(ref, known.commit):
                self._local(["update-ref", "-d", ref])
                return None
            if not is_told or known.reported_by:
                self._keep(ref, known.commit)
            return self._lost(branch, BranchLossKind.GONE, known, None)
        contained = self.contains(branch, tip, known)
        if contained or (contained is None and known.reported_by) or self._is_settled(tip, known):
            self._local(["update-ref", ref, tip])
            return None
        loss = self._relate(branch, known, tip)
        if not is_told or (known.reported_by and loss.kind is BranchLossKind.REWOUND):
            self._keep(ref, known.commit)
        return loss

    def _is_of(self, ref: str, commit: CommitId) -> bool:
        """Return whether a commit that somebody names is of the output branch, or of that of a cluster, by its ref.

        Commits for branches of clusters say which one of the output branch they stand for.
        """
        try:
            own = self.own_before(commit)
        except Conflict:
            return True  # nobody can say otherwise
        return own is not None and is_for_cluster(own) == (ref != self.output_ref)

    def _keep(self, ref: str, commit: CommitId) -> None:
        """Let the ref hold a known commit, where the mirror holds it."""
        if self.holds(commit):
            self._local(["update-ref", ref, commit])

    def _relate(self, branch: str, known: KnownTip, tip: CommitId) -> BranchLoss:
        """Say how a branch relates to a known commit that it does not follow."""
        if not self.holds(known.commit):
            return self._lost(branch, BranchLossKind.REPLACED, known, tip)
        if self._is_before(tip, known.commit):
            return self._lost(branch, BranchLossKind.REWOUND, known, tip)
        shared = self._runner.run(["merge-base", known.commit, tip]).status == 0
        if not shared and self._is_cut(known.commit):
            # The history of the known commit may be too short in the mirror: the remote may still have more of it.
            self._runner.run([*FETCH, f"--depth={COMMITS_READ_BACK.most}", address.NAME, known.commit], remote=True)
            if self._is_before(tip, known.commit):
                return self._lost(branch, BranchLossKind.REWOUND, known, tip)
            shared = self._runner.run(["merge-base", known.commit, tip]).status == 0
        kind = BranchLossKind.DIVERGED if shared else BranchLossKind.REPLACED
        unknown = int(self._local(["rev-list", "--count", tip, f"^{known.commit}"]))
        return self._lost(branch, kind, known, tip, unknown=unknown)

    def _lost(
        self, branch: str, kind: BranchLossKind, known: KnownTip, tip: CommitId | None, *, unknown: int = 0
    ) -> BranchLoss:
        return BranchLoss(
            branch=branch.removeprefix("refs/heads/"),
            kind=kind,
            known=known.commit,
            known_at=known.at,
            tip=tip,
            tip_at=self._time(tip) if tip else None,
            unknown=unknown,
            reported_by=known.reported_by,
            is_output=branch == self._output,
        )

    def _is_settled(self, tip: CommitId, known: KnownTip) -> bool:
        """Return whether commits give the known one up by a person's word, itself or what came after it.

        What they give up may have given up earlier losses itself, and is obtained where the mirror lacks it: a person's
        word about another loss, as in a copy of the repository, settles nothing here.
        """
        asked, looked_at = [tip], set[CommitId]()
        while asked and len(looked_at) < _MOST_GIVEN_UP:
            given_up = [commit for commit in self._given_up(asked.pop(0), known) if commit not in looked_at]
            if known.commit in given_up:
                return True
            for commit in given_up:
                looked_at.add(commit)
                if self.obtain(commit):
                    if self.contains(commit, commit, known):
                        return True
                    asked.append(commit)
        return False

    def _given_up(self, tip: CommitId, known: KnownTip) -> list[CommitId]:
        """List what commits at or before a tip, and not before the known commit, give up, the newest first."""
        exclude = [f"^{known.commit}"] if self.holds(known.commit) else []
        grep = ["--fixed-strings", f"--grep={Trailer.SUPERSEDES}: "]
        commits = [CommitId(commit) for commit in self._local(["rev-list", *grep, tip, *exclude]).split()]
        logs = (parse(commit, raw).logged for commit, raw in zip(commits, self._reader.read(commits), strict=True))
        given_up: list[CommitId] = []
        for logged in logs:
            with contextlib.suppress(ValueError):
                given_up.append(read_commit_id(Trailer.SUPERSEDES.read(logged)))
        return given_up

    def _is_outdated(self, expected: CommitId, own: CommitId) -> bool:
        """Return whether what is expected is known already: the mirror has a later commit of the branch."""
        return expected != own and self.holds(expected) and self._is_before(expected, own)

    def _is_before(self, commit: CommitId, later: CommitId) -> bool:
        return self._runner.run(["merge-base", "--is-ancestor", commit, later]).status == 0

    def _is_cut(self, commit: CommitId) -> bool:
        """Return whether the mirror holds a part of a commit's history only."""
        shallow = self._mirror.shallow()
        return any(name in shallow for name in self._local(["rev-list", commit]).split())

    def _is_empty_cluster(self, ref: str, commit: CommitId) -> bool:
        """Return whether this is the branch of a cluster that held nothing any more: a person may remove that."""
        if ref == self.output_ref or not self.holds(commit):
            return False
        return self._local(["rev-parse", f"{commit}^{{tree}}"]).strip() == _EMPTY_TREE

    def _time(self, commit: CommitId) -> datetime | None:
        try:
            (raw,) = self._reader.read([commit])
        except Missing:
            return None
        return parse(commit, raw).logged.at

    def _expect(self, refs: Iterable[tuple[str, CommitId]], noted: Mapping[str, KnownTip]) -> None:
        """Expect known tips; what was expected before came from the remote long ago, and goes first."""
        for ref, commit in refs:
            self.expected.setdefault(ref, KnownTip(commit=commit))
        for ref, tip in noted.items():
            self.expected[ref] = tip

    @property
    def _began(self) -> Path:
        """A file that was written when no tip for this output was known, by the last fetch that began so."""
        return self._mirror.git_dir.parent / f"began-{quote(self._output.removeprefix('refs/heads/'), safe='')}"

    @property
    def _file(self) -> Path:
        return self._mirror.git_dir.parent / "known"

    def _write(self) -> None:
        """Note the expected tips, and what engines say, for the next process."""
        reported = [(ref, tip) for ref, tip in self.told.items() if tip.reported_by]
        lines = (
            f"{ref} {tip.commit} {int(tip.at.timestamp()) if tip.at else '-'} {quote(tip.reported_by)}\n"
            for ref, tip in (*sorted(self.expected.items()), *sorted(reported))
        )
        replace_file(self._file, "".join(lines))

    def _remote(self, arguments: list[str]) -> Output:
        done = self._runner.run(arguments, remote=True)
        if done.status:
            raise Transient(f"comparing the branches with what is known: {done.stderr.strip()}")
        return done

    def _local(self, arguments: list[str]) -> str:
        done = self._runner.run(arguments)
        if done.status:
            raise Transient(f"git {arguments[0]} in the mirror: {done.stderr.strip()}")
        return done.stdout.decode()


def _read(file: Path) -> tuple[dict[str, KnownTip], dict[str, KnownTip]]:
    """Read the tips that a process before knew, and what engines had told it; unreadable lines are none."""
    remembered: dict[str, KnownTip] = {}
    told: dict[str, KnownTip] = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in file.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                ref, commit, at, *by = line.split(" ")
                moment = None if at == "-" else read_date(at)
                tip = KnownTip(commit=read_commit_id(commit), at=moment, reported_by=unquote(" ".join(by)))
                (told if tip.reported_by else remembered)[ref] = tip
    return remembered, told
