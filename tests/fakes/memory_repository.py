"""The lab's repository in memory, with what tests ask of it and do to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.core.commits.branch_loss import refusal
from reconciler.core.commits.trailers import superseded
from reconciler.errors import Conflict, InvalidInput
from reconciler.lab import memory_repository
from reconciler.lab.memory_repository import EPOCH, OURS, PERSON
from reconciler.model.branch_loss import BranchLoss, BranchLossKind, ReportedCommit
from reconciler.model.branch_refusal import BranchRefusal
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.tree import Advance, Proposal, Tips, alone, branch_of

__all__ = ["EPOCH", "OURS", "PERSON", "MemoryRepository", "refuse_next_push"]


class MemoryRepository(memory_repository.MemoryRepository):
    """Counts reads and pushes, and refuses to follow an output branch that lacks its last known commit.

    `before_push` lets a test move the tip at the worst moment, `refuses` are clusters whose branches do not move.
    Branches of clusters are never lost here.
    """

    def __init__(self, source: Mapping[str, bytes | str] | None = None) -> None:
        self.reads: list[BlobId] = []
        self.pushes = 0
        self.before_push: Callable[[], None] = lambda: None
        self.refuses: set[ClusterName] = set()
        self._refused: dict[ClusterName, BranchRefusal] = {}
        self._known: CommitId | None = None
        self._losses: tuple[BranchLoss, ...] = ()
        super().__init__(source)

    def fetch(self) -> Tips:
        """Compare the output branch with what is known of it, and return the tips."""
        self._losses = tuple(filter(None, [self._judge(self._known)]))
        return self.tips()

    def tips(self) -> Tips:
        """Return the tips now, and the losses of the last fetch."""
        tips = replace(super().tips(), refused=tuple(self._refused[cluster] for cluster in sorted(self._refused)))
        if self._losses:
            known = self._losses[0].known if self._known is None else self._known
            at = self._losses[0].known_at
            return replace(tips, output=known if at else tips.output, output_at=at, losses=self._losses)
        self._known = tips.output or self._known
        return tips

    def give_up(self) -> None:
        """Take the output branch as it stands for what is known of it, as after `overspill restore --accept`."""
        self._known, self._losses = self.heads["output"], ()

    def look_for(self, commit: CommitId, *, branch: str, reported_by: str) -> ReportedCommit:
        """Search the output branch for a commit; if it lacks that, it is lost from here on."""
        found = super().look_for(commit, branch=branch, reported_by=reported_by)
        if found is ReportedCommit.HELD:
            return found
        self._losses = tuple(filter(None, [self._judge(commit, reported_by)]))
        return ReportedCommit.LOST if self._losses else ReportedCommit.GIVEN_UP

    def _judge(self, known: CommitId | None, reported_by: str = "") -> BranchLoss | None:
        head = self.heads["output"]
        chain = {commit.id: commit for commit in self._chain(head)}
        if known is None or known in chain:
            return None
        held = {commit.id for commit in self._chain(known)} if known in self.commits else set()
        at = self.commits[known].log.at if held else None
        unknown = [commit.log for name, commit in chain.items() if name not in held]
        given_up = [each for log in unknown for each in superseded(log)]
        for commit in given_up:
            before = [each.log for each in self._chain(commit)] if commit in self.commits else []
            if known in (commit, *(log.id for log in before)):
                return None
            given_up += [each for log in before for each in superseded(log)]
        if head is None:
            kind = BranchLossKind.GONE
        elif head in held:
            kind = BranchLossKind.REWOUND
        else:
            kind = BranchLossKind.DIVERGED if held & chain.keys() else BranchLossKind.REPLACED
        return BranchLoss(
            branch="placements",
            kind=kind,
            known=known,
            known_at=at,
            tip=head,
            tip_at=chain[head].log.at if head else None,
            unknown=len(unknown) if held else 0,
            reported_by=reported_by,
        )

    def propose(self, branch: str) -> Proposal:
        """Know no branch but those of passes."""
        raise InvalidInput(f"fetching branch {branch!r}: the fleet repository has no such branch")

    def close(self) -> None:
        """Keep everything: others have it open."""

    person = memory_repository.MemoryRepository.commit_as_person

    def subjects(self) -> list[str]:
        head = self.heads["output"]
        return [commit.subject for commit in self.log(head)] if head else []

    def right(self) -> bool:
        """Tell whether each cluster with files has a branch, and each branch what the output branch has for it."""
        head = self.heads["output"]
        (directories,) = self.directories([head]) if head else ({},)
        return directories.keys() <= self.clusters.keys() and all(
            branch.tree == alone(name, directories.get(name)) for name, branch in self.clusters.items()
        )

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        wanted = list(blobs)
        self.reads += wanted
        return super().read(wanted)

    def begin_push(
        self, new: CommitId, *, old: CommitId | None, branches: Sequence[Advance] = ()
    ) -> Callable[[], Sequence[Advance]]:
        self.before_push()
        if self._losses:
            raise refusal(self._losses)
        taken = [advance for advance in branches if advance.cluster not in self.refuses]
        end = super().begin_push(new, old=old, branches=taken)
        if self.heads["output"] == new:
            self.pushes += 1
            self._known = new
            for advance in branches:
                self._note(advance.cluster)
        return end

    def due_branches(self, lacking: Collection[ClusterName]) -> frozenset[ClusterName]:
        """Leave out the branches that are refused, for as long as they are."""
        self._refused = {cluster: told for cluster, told in self._refused.items() if cluster in lacking}
        return frozenset(lacking) - {cluster for cluster in self._refused if cluster in self.refuses}

    def _note(self, cluster: ClusterName) -> None:
        branch = branch_of("placements", cluster)
        if cluster in self.refuses:
            self._refused[cluster] = BranchRefusal(cluster=cluster, branch=branch, error=f"pushing {branch}: declined")
        else:
            self._refused.pop(cluster, None)


def refuse_next_push(repository: MemoryRepository) -> None:
    """Let the next push end in a Conflict, as if somebody else had pushed, and those after it succeed."""

    def refuse() -> None:
        repository.before_push = lambda: None
        raise Conflict("the branch has moved")

    repository.before_push = refuse
