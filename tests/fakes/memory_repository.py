"""The lab's repository in memory, with what tests ask of it and do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.errors import InvalidInput
from reconciler.lab import memory_repository
from reconciler.lab.memory_repository import EPOCH, OURS, PERSON
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.tree import Advance, Proposal, alone

__all__ = ["EPOCH", "OURS", "PERSON", "MemoryRepository"]


class MemoryRepository(memory_repository.MemoryRepository):
    """Counts reads and pushes; `before_push` lets a test move the tip at the worst moment."""

    def __init__(self, source: Mapping[str, bytes | str] | None = None) -> None:
        self.reads: list[BlobId] = []
        self.pushes = 0
        self.before_push: Callable[[], None] = lambda: None
        super().__init__(source)

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
    ) -> Callable[[], None]:
        self.before_push()
        end = super().begin_push(new, old=old, branches=branches)
        self.pushes += self.heads["output"] == new
        return end
