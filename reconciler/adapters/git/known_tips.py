"""The last known tips of the branches that Overspill writes; the remote is not believed against them.

Each tip is a ref of the mirror, which git moves forward only: no fetch of ours forces one or prunes it. A branch of the
remote that does not follow its known tip is judged: it counts as lost, unless the mirror's history was too short to see
that it follows, or a commit of the branch says that a person has settled it (`Trailer.SUPERSEDES`).

A mirror that is made again, and one beside that of the passes (a second process, the sweep in a thread, the desk of
proposals), hold no such refs at first. For them the known tips are ids without objects, until the branches have been
fetched and found to follow them. Before each fetch the latter look up what the mirror of the passes knows by then.

What a cluster's engine or a person says a branch has had counts less than what a mirror knows: see `branch_judge`. Each
such commit is judged, and settled, by itself. What is known comes before it, unless it follows that.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote

from reconciler.adapters.git import remote as address
from reconciler.adapters.git.branch_judge import BranchJudge, KnownTip
from reconciler.adapters.git.known_refs import cluster_refs, is_known_ref, known_refs, output_ref
from reconciler.adapters.git.mirror import Mirror, replace_file
from reconciler.adapters.git.mirror_commits import MirrorCommits
from reconciler.adapters.git.objects import parse_remote_refs
from reconciler.core.commits.commit_date import read_date
from reconciler.errors import InvalidInput
from reconciler.model.branch_loss import BranchLoss, BranchLossKind
from reconciler.model.ids import CommitId, read_commit_id

UNTRIED_MEMORY = timedelta(hours=1)
"""How long engines are heard on what the remote had when a mirror on an empty disk first reached it."""


class KnownTips:
    """Keeps the known tips, and judges branches of the remote that do not follow them."""

    def __init__(self, commits: MirrorCommits, mirror: Mirror, *, output: str, clusters: str) -> None:
        """Take the full name of the output branch and the prefix of those of clusters; nothing is fetched."""
        self._commits = commits
        self._mirror = mirror
        self._output, self._clusters = output, clusters
        self._judge = BranchJudge(commits, output=output)
        self.output_ref = output_ref(output)
        self.cluster_refs = cluster_refs(output)
        self.losses: Mapping[str, BranchLoss] = {}
        """By the full names of the branches."""
        self.expected: dict[str, KnownTip] = {}
        """Known tips that no ref of this mirror holds, by ref."""
        self.named: dict[str, tuple[KnownTip, ...]] = {}
        """What engines and people say that branches have had, by ref of the known tip; none is empty."""
        self._consulted: dict[str, KnownTip] = {}
        """What the mirror beside this one knew when it was last asked, by ref."""
        self._consulted_named: set[tuple[str, KnownTip]] = set()
        remembered, named = _read(self._file)
        self._expect(mirror.known_before, remembered)
        for ref, tip in named:
            self._add(ref, tip)
        if mirror.known_before:
            self._write()
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
        refs = (ref for ref in (*self.expected, *self.named) if with_clusters or ref == self.output_ref)
        return bool(self.losses) or any(map(self._is_followed, refs))

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
            remembered, named = _read(beside / "known")
            for ref, tip in (known | remembered).items():
                if self._is_followed(ref) and self._consulted.get(ref) != tip:
                    self._consulted[ref] = tip
                    if ours.get(ref) != tip.commit:
                        self.expected[ref] = tip
            for ref, tip in named:
                if self._is_followed(ref) and (ref, tip) not in self._consulted_named:
                    self._consulted_named.add((ref, tip))
                    self._add(ref, tip)
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
        self._add(ref, tip)
        if tip.reported_by:
            self._write()

    def forget_clusters(self) -> None:
        """Expect nothing more of the branches of clusters: the fleet keeps none."""
        stale = [ref for ref in (*self.expected, *self.named) if ref.startswith(self.cluster_refs)]
        for ref in stale:
            self.expected.pop(ref, None)
            self.named.pop(ref, None)
        if stale:
            self._write()

    def judge(self, *, with_clusters: bool) -> None:
        """Compare the branches of the remote with what is known, and take over those that follow it.

        Raises Transient and InvalidInput as a fetch does.
        """
        refs = dict(known_refs(self._mirror.git_dir))
        followed = (ref for ref in {*refs, *self.expected, *self.named} if self._is_followed(ref))
        names = [self._output, *([f"{self._clusters}*"] if with_clusters else [])]
        listed = self._commits.remote(["ls-remote", "--heads", address.NAME, *names])
        tips = parse_remote_refs(listed.stdout)
        losses: dict[str, BranchLoss] = {}
        for ref in sorted(ref for ref in followed if with_clusters or ref == self.output_ref):
            branch = self.branch(ref)
            loss = self._judge_branch(ref, refs.get(ref), tips.get(branch))
            if loss is not None:
                losses[branch] = loss
        self.losses = losses

    def claims(self, commit: CommitId) -> bool:
        """Return whether a branch is expected, or said, to have had a commit."""
        named = (tip.commit for tips in self.named.values() for tip in tips)
        return commit in {*(tip.commit for tip in self.expected.values()), *named}

    def stand_in(self, commit: CommitId) -> CommitId:
        """Return the commit of the output branch that a named one stands for; see `BranchJudge.stand_in`."""
        return self._judge.stand_in(commit, self._output)

    def _judge_branch(self, ref: str, own: CommitId | None, tip: CommitId | None) -> BranchLoss | None:
        """Judge one branch by all that is known and said of it, and return its loss.

        What it has, or goes on without, is settled, each for itself.
        """
        branch = self.branch(ref)
        lost: list[BranchLoss] = []
        settled: set[CommitId] = set()
        expected = self.expected.get(ref)
        if expected is not None and own is not None and self._is_outdated(expected.commit, own):
            expected = None
            settled.add(self.expected[ref].commit)
        stands = tip if own == tip else None
        for known, is_known in self._claims(ref, expected, own):
            if known.commit == own == tip:
                settled.add(known.commit)
                continue
            if tip is not None and stands is None:
                stands = self._commits.fetch_tip(branch, shallow=not self._commits.holds(known.commit))
            loss = self._loss(ref, known, stands, is_known=is_known)
            if loss is None:
                settled.add(known.commit)
            else:
                lost.append(loss)
        self._move_ref(ref, own, stands, lost)
        self._settle(ref, settled)
        if not lost:
            return None
        latest = self._latest(lost)
        earlier = {loss.known for loss in lost if loss.known != latest.known and self._follows(latest, loss)}
        return replace(latest, earlier=tuple(sorted(earlier)))

    def _claims(self, ref: str, expected: KnownTip | None, own: CommitId | None) -> Iterator[tuple[KnownTip, bool]]:
        """Yield the commits that a branch is known or said to have had, and whether they are known.

        What is known comes first, then what a person names. That it is known counts for more than who else names it.
        """
        held = [] if own is None or (expected and expected.commit == own) else [KnownTip(commit=own)]
        known = [*filter(None, [expected]), *held]
        named = {tip.commit: tip for tip in sorted(self.named.get(ref, ()), key=lambda tip: bool(tip.reported_by))}
        for tip in known:
            engine = named.pop(tip.commit, tip).reported_by
            yield replace(tip, reported_by=engine), True
        for tip in named.values():
            yield tip, False

    def _loss(self, ref: str, known: KnownTip, tip: CommitId | None, *, is_known: bool) -> BranchLoss | None:
        """Return the loss of a branch by one commit; what is said counts as the commit that it stands for."""
        branch = self.branch(ref)
        if not is_known:
            try:
                known = replace(known, commit=self._judge.stand_in(known.commit, branch))
            except InvalidInput:
                return None
        return self._judge.loss(branch, known, tip, is_known=is_known, is_output=ref == self.output_ref)

    def _latest(self, lost: Sequence[BranchLoss]) -> BranchLoss:
        """Return the first of some losses, or that of a commit that follows it: who restores that restores both."""
        latest = lost[0]
        for loss in lost[1:]:
            if self._follows(loss, latest):
                latest = loss
        return latest

    def _follows(self, loss: BranchLoss, other: BranchLoss) -> bool:
        """Return whether the commit of one loss follows that of another; False where nobody holds both."""
        if not (self._commits.holds(loss.known) and self._commits.holds(other.known)):
            return False
        return self._commits.contains(loss.known, loss.known, other.known, at=other.known_at) is True

    def _move_ref(self, ref: str, own: CommitId | None, tip: CommitId | None, lost: Sequence[BranchLoss]) -> None:
        """Let the ref hold what is known of a lost branch, else where the branch is.

        What is only said to be lost is held where an engine says it and the branch ends before it, so that what it
        placed is shown.
        """
        known = [loss for loss in lost if loss.is_known]
        ends = (BranchLossKind.GONE, BranchLossKind.REWOUND)
        said = [loss for loss in lost if not loss.is_known and loss.reported_by and loss.kind in ends]
        if held := [loss for loss in known if loss.known == own]:
            known = [loss for loss in known if loss in held or self._follows(loss, held[0])]
        new = self._latest(known or said).known if known or said else tip
        if new is None:
            if own is not None:
                self._commits.local(["update-ref", "-d", ref])
        elif new != own and self._commits.holds(new):
            self._commits.local(["update-ref", ref, new])

    def _settle(self, ref: str, settled: Collection[CommitId]) -> None:
        """Expect what a branch has, or goes on without, no more."""
        named = self.named.pop(ref, ())
        left = tuple(tip for tip in named if tip.commit not in settled)
        if left:
            self.named[ref] = left
        expected = self.expected.get(ref)
        is_settled = expected is not None and expected.commit in settled
        if is_settled:
            del self.expected[ref]
        if is_settled or left != named:
            self._write()

    def _add(self, ref: str, tip: KnownTip) -> None:
        """Add what somebody says a branch has had; an engine's word counts where a person says the same."""
        others = [each for each in self.named.get(ref, ()) if each.commit != tip.commit]
        same = [each for each in self.named.get(ref, ()) if each.commit == tip.commit]
        self.named[ref] = (*others, same[0] if same and not tip.reported_by else tip)

    def _is_followed(self, ref: str) -> bool:
        """Return whether a ref is for the output branch or that of a cluster: a mirror may serve other outputs too."""
        return ref == self.output_ref or (ref.startswith(self.cluster_refs) and is_known_ref(ref))

    def _is_outdated(self, expected: CommitId, own: CommitId) -> bool:
        """Return whether what is expected is known already: the mirror has a later commit of the branch."""
        return expected != own and self._commits.holds(expected) and self._commits.is_before(expected, own)

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
        reported = ((ref, tip) for ref, tips in sorted(self.named.items()) for tip in tips if tip.reported_by)
        lines = (
            f"{ref} {tip.commit} {int(tip.at.timestamp()) if tip.at else '-'} {quote(tip.reported_by)}\n"
            for ref, tip in (*sorted(self.expected.items()), *reported)
        )
        replace_file(self._file, "".join(lines))


def _read(file: Path) -> tuple[dict[str, KnownTip], list[tuple[str, KnownTip]]]:
    """Read the tips that a process before knew, and those that engines had named; unreadable lines are none."""
    remembered: dict[str, KnownTip] = {}
    named: list[tuple[str, KnownTip]] = []
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in file.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                ref, commit, at, *by = line.split(" ")
                moment = None if at == "-" else read_date(at)
                tip = KnownTip(commit=read_commit_id(commit), at=moment, reported_by=unquote(" ".join(by)))
                if tip.reported_by:
                    named.append((ref, tip))
                else:
                    remembered[ref] = tip
    return remembered, named
