"""A repository in git and the one in memory agree on what counts as a lost output branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.errors import LostBranch
from reconciler.model.branch_loss import BranchLossKind, ReportedCommit
from reconciler.model.ids import CommitId
from reconciler.model.tree import Commit
from reconciler.ports import Repository
from tests.builders.remote import MORNING, Remote
from tests.fakes.memory_repository import OURS, MemoryRepository

LATER = MORNING + timedelta(hours=2)
ABSENT = CommitId("5" * 40)


@dataclass
class Place:
    """A repository, and what somebody does to its output branch."""

    repository: Repository
    remote: Remote | None = None
    """None for the repository in memory."""

    def move(self, to: CommitId | None) -> None:
        if self.remote is not None:
            self.remote.move("placements", to)
        else:
            assert isinstance(self.repository, MemoryRepository)
            self.repository.heads["output"] = to

    def edit(self, message: str = "Edit by hand\n") -> CommitId:
        """Commit as a person, on top of what stands."""
        if self.remote is not None:
            return self.remote.commit("placements", {"notes.md": "mine"}, message=message, at=LATER)
        assert isinstance(self.repository, MemoryRepository)
        return self.repository.person("output", {"notes.md": "mine"}, message=message, at=LATER)

    def tip(self) -> CommitId | None:
        if self.remote is not None:
            return self.remote.tip("placements")
        assert isinstance(self.repository, MemoryRepository)
        return self.repository.heads["output"]

    def push(self, number: int) -> CommitId:
        """Push a commit of ours on top of what is known."""
        old = self.repository.tips().output
        message = f"burst {number}\n\nOverspill-Action: Place\n"
        at = MORNING + timedelta(minutes=number)
        commit = Commit(message=message, author=OURS, at=at, writes={"clusters/w2/p": b"%d" % number})
        (made,) = self.repository.write(old, [commit])
        self.repository.begin_push(made, old=old)()
        return made


@pytest.fixture(params=["git", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Open a repository with a fleet."""
    if request.param == "memory":
        yield Place(MemoryRepository({"fleet.yaml": "a"}))
        return
    remote = Remote(tmp_path / "contract.git")
    remote.commit("main", {"fleet.yaml": "a"})
    with GitRepository(remote.url, cache=tmp_path / "contract") as repository:
        yield Place(repository, remote)


@pytest.fixture
def known(place: Place) -> list[CommitId]:
    """Push three commits."""
    place.repository.fetch()
    return [place.push(number) for number in range(3)]


def lose(place: Place, known: list[CommitId], kind: BranchLossKind) -> int:
    """Lose the branch; return the number of commits that nobody knew."""
    match kind:
        case BranchLossKind.GONE:
            place.move(None)
        case BranchLossKind.REWOUND:
            place.move(known[0])
        case BranchLossKind.DIVERGED:
            place.move(known[0])
            place.edit()
            place.edit("Again\n")
            return 2
        case BranchLossKind.REPLACED:
            place.move(None)
            place.edit()
            return 1
    return 0


@pytest.mark.parametrize("kind", list(BranchLossKind))
def test_lost_branch_stays_as_known_and_refuses_writes_until_it_is_back(
    place: Place, known: list[CommitId], kind: BranchLossKind
) -> None:
    unknown = lose(place, known, kind)
    stands = place.tip()
    for _ in range(2):
        tips = place.repository.fetch()
        (loss,) = tips.losses
        assert (loss.kind, loss.known, loss.tip, loss.unknown) == (kind, known[-1], stands, unknown)
        assert loss.known_at == tips.output_at == MORNING + timedelta(minutes=2)
        assert (loss.branch, tips.output, place.repository.tips()) == ("placements", known[-1], tips)
        with pytest.raises(LostBranch, match="nothing is written until that is settled"):
            place.push(9)
    assert place.tip() == stands
    place.move(known[-1])
    assert place.repository.fetch().losses == ()
    assert place.push(9) == place.tip()


def test_commits_of_people_on_top_are_no_loss(place: Place, known: list[CommitId]) -> None:
    edited = place.edit()
    tips = place.repository.fetch()
    assert (tips.losses, tips.output) == ((), edited)


@pytest.mark.parametrize("kind", [BranchLossKind.REWOUND, BranchLossKind.REPLACED])
def test_commit_that_supersedes_the_known_one_settles_its_loss(
    place: Place, known: list[CommitId], kind: BranchLossKind
) -> None:
    lose(place, known, kind)
    assert place.repository.fetch().losses
    accepted = place.edit(f"Accept\n\nOverspill-Action: Start\nOverspill-Supersedes: {known[-1]}\n")
    tips = place.repository.fetch()
    assert (tips.losses, tips.output) == ((), accepted)


def test_commit_that_gives_up_what_followed_the_known_one_settles_its_loss(place: Place, known: list[CommitId]) -> None:
    """A person's word about what somebody pushed after the last look, and what that had given up before, counts."""
    followed = place.edit()
    place.move(known[0])
    first = place.edit(f"Accept\n\nOverspill-Action: Start\nOverspill-Supersedes: {followed}\n")
    place.move(known[1])
    accepted = place.edit(f"Accept again\n\nOverspill-Action: Start\nOverspill-Supersedes: {first}\n")
    tips = place.repository.fetch()
    assert (tips.losses, tips.output) == ((), accepted)


@pytest.mark.parametrize("given_up", ["another", "earlier", "absent", "none"])
def test_word_about_another_loss_settles_nothing(place: Place, known: list[CommitId], given_up: str) -> None:
    """A copy of the repository, in which something else was given up later, may stand behind the address."""
    place.move(known[0])
    another = place.edit("Another history\n")
    place.move(known[0])
    named = {"another": another, "earlier": known[1], "absent": ABSENT, "none": "-"}[given_up]
    place.edit(f"Accept\n\nOverspill-Action: Start\nOverspill-Supersedes: {named}\n")
    for _ in range(2):
        (loss,) = place.repository.fetch().losses
        assert (loss.kind, loss.known) == (BranchLossKind.DIVERGED, known[-1])
    with pytest.raises(LostBranch):
        place.push(9)


def test_commit_that_an_engine_reports_and_the_branch_lacks_is_a_loss(place: Place, known: list[CommitId]) -> None:
    looked = place.repository.look_for(known[0], branch="placements", reported_by="worker-2")
    assert looked is ReportedCommit.HELD
    assert place.repository.tips().losses == ()
    looked = place.repository.look_for(ABSENT, branch="placements", reported_by="worker-2")
    assert looked is ReportedCommit.LOST
    (loss,) = place.repository.tips().losses
    assert (loss.kind, loss.known, loss.known_at) == (BranchLossKind.REPLACED, ABSENT, None)
    assert (loss.tip, loss.reported_by) == (known[-1], "worker-2")
    with pytest.raises(LostBranch, match=r"restore --commit 5555"):
        place.push(9)
    place.edit(f"Accept\n\nOverspill-Action: Start\nOverspill-Supersedes: {ABSENT}\n")
    place.repository.fetch()
    looked = place.repository.look_for(ABSENT, branch="placements", reported_by="worker-2")
    assert looked is ReportedCommit.GIVEN_UP
