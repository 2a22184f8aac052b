"""What engines and people name as commits of a branch counts as the commits of the branch that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.branch_judge import MOST_GIVEN_UP
from reconciler.adapters.git.restore import Restoration
from reconciler.adapters.git.run import Output, Runner
from reconciler.errors import InvalidInput
from reconciler.model.branch_loss import BranchLossKind, ReportedCommit
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.tree import BranchCommit, Commit, Identity, Projection, branch_of
from tests.builders.remote import MORNING, Remote

ADA = Identity(name="Ada", email="ada@example.com")
OURS = Identity(name="Overspill", email="overspill@overspill.dev")
BY_OURS = f"{OURS.name} <{OURS.email}>"
LATER = MORNING + timedelta(hours=2)
RECORD = "clusters/w2/p/placement.yaml"
OTHER = "clusters/w3/q/placement.yaml"
APPROVAL = "ledger/llm/approvals/vllm-3f0a90c17d2b.yaml"
ASKED = "approve(llm/vllm): 2 replicas on w2\n\nOverspill-Proposal: llm/vllm-3f0a90c17d2b\n"
WHO = pytest.mark.parametrize("who", ["an engine", "a person"])


def _push(repository: GitRepository, number: int, path: str = RECORD) -> CommitId:
    """Push a placement, as a pass does."""
    old = repository.tips().output
    message = f"burst {number}\n\nOverspill-Action: Place\n"
    at = MORNING + timedelta(minutes=number)
    commit = Commit(message=message, author=OURS, at=at, writes={path: f"n: {number}\n".encode()})
    (made,) = repository.write(old, [commit])
    repository.begin_push(made, old=old)()
    return made


@pytest.fixture
def pushed(remote: Remote, repository: GitRepository) -> list[CommitId]:
    """Push three commits, as a daemon would."""
    remote.commit("main", {"fleet.yaml": "a"})
    repository.fetch()
    return [_push(repository, number) for number in range(3)]


@pytest.fixture
def staging(remote: Remote, pushed: list[CommitId], tmp_path: Path) -> CommitId:
    """Push a commit to another output branch of the same repository."""
    with GitRepository(remote.url, cache=tmp_path / "staging", output_branch="staging") as other:
        other.fetch()
        return _push(other, 7, OTHER)


def _name(repository: GitRepository, who: str, commit: CommitId) -> None:
    """Let an engine or a person name a commit of the output branch, and compare the branch with it."""
    if who == "an engine":
        repository.look_for(commit, branch="placements", reported_by="w2")
    else:
        repository.expect_known(commit)
        repository.fetch()


def _restore(repository: GitRepository, *, accept: bool = False) -> list[Restoration]:
    drafted = repository.draft_restoration(accept=accept, now=LATER, person=ADA)
    repository.carry_out_restoration(drafted)
    return drafted


def _unnamed(remote: Remote, branch: str, path: str = RECORD) -> CommitId:
    """Commit as an earlier version did, whose commits name no branch."""
    return remote.commit(branch, {path: "n: 9\n"}, message="burst\n\nOverspill-Action: Place\n", author=BY_OURS)


def test_commits_of_ours_name_their_branch(remote: Remote, repository: GitRepository, pushed: list[CommitId]) -> None:
    snapshot = BranchCommit(message="burst\n\nOverspill-Action: Place\n", author=OURS, at=LATER, directory=None)
    advances = repository.project([Projection(cluster=ClusterName("w2"), base=None, snapshots=(snapshot,))])
    repository.begin_push(pushed[-1], old=pushed[-1], branches=advances)()
    for branch in ("placements", branch_of("placements", "w2")):
        assert remote.git("log", "-1", "--format=%(trailers:key=Overspill-Branch,valueonly)", branch).strip() == branch
    remote.move("placements", pushed[0])
    repository.fetch()
    (settled,) = _restore(repository, accept=True)
    assert "Overspill-Branch: placements\n" in remote.git("log", "-1", "--format=%B", settled.new)


def test_commit_without_an_action_names_no_branch(repository: GitRepository, pushed: list[CommitId]) -> None:
    """As that of a proposal, which is on a branch of its own."""
    (made,) = repository.write(pushed[-1], [Commit(message=ASKED, author=OURS, at=LATER)])
    (logged, *_) = repository.log(made, limit=1)
    assert "Overspill-Branch" not in logged.trailers


def _proposal(remote: Remote, on: CommitId) -> CommitId:
    """Commit as the branch of a proposal has it."""
    remote.move("review", on)
    return remote.commit("review", {APPROVAL: "a: 1\n"}, message=ASKED, author=BY_OURS)


def _without_trailer(remote: Remote, on: CommitId) -> CommitId:
    """Commit as a host squashes it, under a message of a person's."""
    remote.move("review", on)
    return remote.commit("review", {APPROVAL: "a: 1\n"}, message="Place it")


def _edited(remote: Remote, on: CommitId) -> CommitId:
    """Commit on top of the branch of a proposal."""
    _proposal(remote, on)
    return remote.commit("review", {"notes.md": "mine\n"})


def _merged(remote: Remote, on: CommitId) -> CommitId:
    """Merge a proposal, as a host does."""
    review = _proposal(remote, on)
    person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    tree = remote.git("rev-parse", f"{review}^{{tree}}")
    return CommitId(remote.git(*person, "commit-tree", tree, "-p", on, "-p", review, "-m", "merge"))


Proposed = Callable[[Remote, CommitId], CommitId]
PROPOSED = pytest.mark.parametrize("proposed", [_proposal, _without_trailer, _edited, _merged])


@WHO
@PROPOSED
def test_proposal_that_nobody_has_merged_takes_nothing_from_the_output(
    remote: Remote, pushed: list[CommitId], *, who: str, proposed: Proposed, tmp_path: Path
) -> None:
    """It was refused: its branch is gone, and the remote still gives the commit by its id."""
    commit = proposed(remote, pushed[1])
    remote.git("update-ref", "refs/keep/review", commit)
    remote.move("review", None)
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        _name(new, who, commit)
        assert (new.fetch().losses, new.named_commits(), new.tips().output) == ((), frozenset(), pushed[-1])


@WHO
@PROPOSED
@pytest.mark.parametrize("lost", [BranchLossKind.GONE, BranchLossKind.REWOUND])
@pytest.mark.exhaustive(one_in=4)
def test_proposal_stands_for_the_commit_of_ours_that_it_began_at(
    remote: Remote, pushed: list[CommitId], *, who: str, proposed: Proposed, lost: BranchLossKind, tmp_path: Path
) -> None:
    """Whoever restores that says yes to nothing."""
    commit = proposed(remote, pushed[-1])
    remote.move("placements", None if lost is BranchLossKind.GONE else pushed[0])
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        _name(new, who, commit)
        assert [(loss.kind, loss.known) for loss in new.tips().losses] == [(lost, pushed[-1])]
        _restore(new)
        assert new.fetch().losses == ()
    assert remote.tip("placements") == pushed[-1]
    assert APPROVAL not in remote.files("placements")


@WHO
def test_proposal_of_which_nobody_shows_what_is_before_it_is_of_no_branch_of_ours(
    remote: Remote, pushed: list[CommitId], who: str, tmp_path: Path
) -> None:
    commit = _proposal(remote, pushed[-1])
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        assert new._branches.commits.obtain(commit)
        remote.move("review", None)
        remote.move("placements", pushed[0])
        remote.git("gc", "-q", "--prune=now")
        if who == "a person":
            with pytest.raises(InvalidInput, match="it is of a branch for review"):
                new.expect_known(commit)
        else:
            _name(new, who, commit)
        assert pushed[-1] in [loss.known for loss in new.fetch().losses]


def test_restore_brings_no_approval_back(remote: Remote, repository: GitRepository, pushed: list[CommitId]) -> None:
    """What was said yes to may have been refused on the branch that stands instead."""
    remote.commit("placements", {APPROVAL: "a: 1\n", "ledger/llm/vllm.yaml": "b: 1\n"}, message="Merge")
    known = repository.fetch().output
    remote.move("placements", pushed[0])
    remote.commit("placements", {"notes.md": "mine\n"})
    assert [(loss.known, loss.kind) for loss in repository.fetch().losses] == [(known, BranchLossKind.DIVERGED)]
    _restore(repository)
    assert sorted(remote.files("placements")) == [RECORD, "ledger/llm/vllm.yaml", "notes.md"]


@pytest.mark.parametrize("shares", [False, True], ids=["begun by itself", "made from ours"])
@WHO
def test_commit_of_another_output_branch_is_none_of_ours(
    remote: Remote, pushed: list[CommitId], staging: CommitId, *, who: str, shares: bool, tmp_path: Path
) -> None:
    if shares:
        remote.move("staging", pushed[0])
        with GitRepository(remote.url, cache=tmp_path / "again", output_branch="staging") as other:
            other.fetch()
            staging = _push(other, 8, OTHER)
    files = remote.files("placements")
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        if who == "a person":
            with pytest.raises(InvalidInput, match="it is of branch staging"):
                new.expect_known(staging)
        else:
            _name(new, who, staging)
        assert (new.fetch().losses, new.named_commits()) == ((), frozenset())
    assert remote.files("placements") == files


@pytest.mark.parametrize("of", ["another output", "another cluster", "the output"])
def test_commit_of_another_branch_is_none_of_a_cluster(
    remote: Remote, repository: GitRepository, pushed: list[CommitId], of: str
) -> None:
    branch = branch_of("placements", "w2")
    written = {"another output": branch_of("staging", "w2"), "another cluster": branch_of("placements", "w3")}
    message = f"burst\n\nOverspill-Action: Place\nOverspill-Output: {pushed[-1]}\nOverspill-Branch: "
    first = remote.commit(branch, {RECORD: "n: 1\n"}, message=message + branch, author=BY_OURS)
    commit = pushed[-1]
    if of in written:
        commit = remote.commit("side", {RECORD: "n: 1\n"}, message=message + written[of], author=BY_OURS)
    repository.fetch()
    repository.branches()
    assert repository.look_for(commit, branch=branch, reported_by="w2") is ReportedCommit.GIVEN_UP
    assert (repository.tips().losses, remote.tip(branch)) == ((), first)


def test_commit_of_a_cluster_of_another_output_stands_for_none_of_ours(
    remote: Remote, repository: GitRepository, pushed: list[CommitId], staging: CommitId
) -> None:
    branch = branch_of("staging", "w2")
    for trailer in (f"Overspill-Branch: {branch}\n", ""):
        message = f"burst {trailer}\n\nOverspill-Action: Place\nOverspill-Output: {staging}\n{trailer}"
        commit = remote.commit(branch, {RECORD: "n: 1\n"}, message=message, author=BY_OURS)
        with pytest.raises(InvalidInput, match="it is of branch staging"):
            repository.expect_known(commit)


def test_commit_of_a_cluster_that_names_one_of_a_cluster_stands_for_none_of_ours(
    remote: Remote, repository: GitRepository, pushed: list[CommitId]
) -> None:
    """A chain of them has no end that anybody waits for."""
    branch, named = branch_of("placements", "w2"), pushed[-1]
    for number in range(3):
        message = f"burst\n\nOverspill-Action: Place\nOverspill-Output: {named}\nOverspill-Branch: {branch}\n"
        named = remote.commit(branch, {RECORD: f"n: {number}\n"}, message=message, author=BY_OURS)
    with pytest.raises(InvalidInput, match=f"it is of branch {branch}"):
        repository.expect_known(named)


@WHO
@pytest.mark.parametrize("kind", ["tag", "tree", "blob"])
def test_what_is_no_commit_is_of_no_branch(
    remote: Remote, pushed: list[CommitId], who: str, kind: str, tmp_path: Path
) -> None:
    """An engine may name any id: that of a file of ours is in each mirror."""
    person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    remote.git(*person, "tag", "-a", "-m", "release", "v1", pushed[-1])
    named = {"tag": "refs/tags/v1", "tree": "placements^{tree}", "blob": f"placements:{RECORD}"}[kind]
    object_id = CommitId(remote.git("rev-parse", named))
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        if who == "a person":
            with pytest.raises(InvalidInput, match=f"it is a {kind}"):
                new.expect_known(object_id)
        else:
            _name(new, who, object_id)
        assert (new.fetch().losses, new.named_commits()) == ((), frozenset())


@WHO
@pytest.mark.parametrize("stands", ["an earlier version", "this version"])
def test_state_that_names_no_branch_deletes_no_placements(
    remote: Remote, pushed: list[CommitId], who: str, stands: str, tmp_path: Path
) -> None:
    """Commits of earlier versions may be of another output branch."""
    unnamed = _unnamed(remote, "other", OTHER)
    if stands == "an earlier version":
        remote.move("placements", None)
        _unnamed(remote, "placements")
    files = remote.files("placements")
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        _name(new, who, unnamed)
        assert [(loss.known, loss.kind) for loss in new.tips().losses] == [(unnamed, BranchLossKind.REPLACED)]
        with pytest.raises(InvalidInput, match=r"nothing says that .* is of this branch"):
            _restore(new)
        _restore(new, accept=True)
        assert new.fetch().losses == ()
    assert remote.files("placements") == files


@WHO
def test_state_that_names_no_branch_is_restored_where_no_placements_go(
    remote: Remote, pushed: list[CommitId], who: str, tmp_path: Path
) -> None:
    unnamed = _unnamed(remote, "other", OTHER)
    remote.move("placements", None)
    remote.commit("placements", {"notes.md": "mine\n"})
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        _name(new, who, unnamed)
        _restore(new)
    assert sorted(remote.files("placements")) == [OTHER, "notes.md"]


def test_branch_that_was_begun_again_gives_way_to_what_a_person_names(
    remote: Remote, pushed: list[CommitId], tmp_path: Path
) -> None:
    """As after a daemon on an empty disk, which began a deleted branch again."""
    files = remote.files("placements")
    remote.git("update-ref", "refs/keep/last", pushed[-1])
    remote.move("placements", None)
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        _push(new, 8, OTHER)
        _name(new, "a person", pushed[-1])
        _restore(new)
        assert new.fetch().losses == ()
    assert remote.files("placements") == files


@WHO
def test_commit_of_a_person_beside_the_branch_deletes_no_placements(
    remote: Remote, repository: GitRepository, pushed: list[CommitId], who: str, tmp_path: Path
) -> None:
    """The branch has all of ours that it follows, and went on."""
    remote.move("side", pushed[0])
    beside = remote.commit("side", {"notes.md": "mine\n"})
    _push(repository, 6, OTHER)
    files = remote.files("placements")
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        _name(new, who, beside)
        if who == "a person":
            with pytest.raises(InvalidInput, match="later placements would be deleted"):
                _restore(new)
        else:
            assert (new.fetch().losses, new.named_commits()) == ((), frozenset())
    assert remote.files("placements") == files


@pytest.mark.parametrize("shares", [False, True], ids=["by itself", "on the source branch"])
def test_branch_that_held_nothing_of_ours_at_the_first_look_is_followed_once_it_does(
    remote: Remote, repository: GitRepository, shares: bool, tmp_path: Path
) -> None:
    """Somebody pushes the source branch onto it, and then the true commit back."""
    remote.commit("main", {"clusters/w2.yaml": "a"})
    if shares:
        remote.move("placements", remote.tip("main"))
    repository.fetch()
    tip = _push(repository, 0)
    source = remote.commit("main", {"clusters/w2.yaml": "b"})
    remote.move("placements", source)
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        assert new.fetch().output == source
        remote.move("placements", tip)
        assert (new.fetch().losses, new.tips().output) == ((), tip)
        later = _push(new, 1)
        remote.move("placements", tip)
        assert [loss.known for loss in new.fetch().losses] == [later]


@pytest.mark.parametrize("held", ["a record", "a commit of another committer"])
def test_tip_with_anything_of_ours_is_known(
    remote: Remote, repository: GitRepository, pushed: list[CommitId], held: str, tmp_path: Path
) -> None:
    """As a squash by hand, or what was written before the committer was set."""
    remote.move("placements", None)
    if held == "a record":
        known = remote.commit("placements", {RECORD: "n: 1\n"})
    else:
        known = remote.commit("placements", {"README.md": "a"}, message="start\n\nOverspill-Action: Start\n")
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        remote.move("placements", pushed[-1])
        assert [loss.known for loss in new.fetch().losses] == [known]


def test_tip_without_a_commit_of_ours_is_not_forgotten_for_another_one(remote: Remote, tmp_path: Path) -> None:
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        known = remote.commit("placements", {"notes.md": "a"})
        new.fetch()
        remote.move("placements", None)
        remote.commit("placements", {"notes.md": "b"})
        assert [loss.known for loss in new.fetch().losses] == [known]


@pytest.mark.parametrize("lost", [BranchLossKind.GONE, BranchLossKind.REWOUND, BranchLossKind.REPLACED])
@pytest.mark.parametrize("accept", [False, True])
@WHO
@pytest.mark.exhaustive(one_in=3)
def test_named_commit_that_follows_what_is_known_settles_both(
    remote: Remote,
    repository: GitRepository,
    pushed: list[CommitId],
    *,
    lost: BranchLossKind,
    accept: bool,
    who: str,
    tmp_path: Path,
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "laptop") as laptop:
        laptop.fetch()
        last = [_push(repository, number) for number in (5, 6)][-1]
        remote.git("update-ref", "refs/keep/last", last)
        remote.move("placements", pushed[0] if lost is BranchLossKind.REWOUND else None)
        if lost is BranchLossKind.REPLACED:
            remote.commit("placements", {"notes.md": "mine\n"})
        laptop.fetch()
        _name(laptop, who, last)
        assert [(loss.known, loss.kind) for loss in laptop.fetch().losses] == [(last, lost)]
        assert laptop.tips().output == pushed[-1]
        _restore(laptop, accept=accept)
        assert (laptop.fetch().losses, laptop.named_commits()) == ((), frozenset())
        assert repository.fetch().losses == ()
    assert (last in remote.git("rev-list", "placements").split()) is not accept


def test_other_machine_that_knows_an_earlier_commit_alone_sees_both_given_up(
    remote: Remote, repository: GitRepository, pushed: list[CommitId], tmp_path: Path
) -> None:
    with (
        GitRepository(remote.url, cache=tmp_path / "laptop") as laptop,
        GitRepository(remote.url, cache=tmp_path / "other") as other,
    ):
        laptop.fetch()
        other.fetch()
        last = _push(repository, 5)
        laptop.fetch_commit(last)
        remote.move("placements", pushed[0])
        laptop.expect_known(last)
        (loss,) = laptop.fetch().losses
        assert (loss.known, loss.earlier) == (last, (pushed[-1],))
        _restore(laptop, accept=True)
        remote.git("gc", "-q", "--prune=now")  # nobody can see any more that the last commit follows the known one
        assert (laptop.fetch().losses, other.fetch().losses) == ((), ())


def test_branch_that_was_written_again_is_judged_with_a_bounded_number_of_fetches(
    remote: Remote, repository: GitRepository, pushed: list[CommitId], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = "".join(f"\nOverspill-Supersedes: {number:040x}" for number in range(1, 4 * MOST_GIVEN_UP))
    remote.move("placements", None)
    remote.commit(
        "placements", {RECORD: "n: 1\n"}, message=f"burst\n\nOverspill-Action: Place{again}\n", author=BY_OURS
    )
    fetched: list[str] = []
    begin = Runner.begin

    def counted(runner: Runner, arguments: Sequence[str], **options: Any) -> Callable[[], Output]:
        fetched.extend(arguments[:1] if options.get("remote") else [])
        return begin(runner, arguments, **options)

    monkeypatch.setattr(Runner, "begin", counted)
    assert [loss.kind for loss in repository.fetch().losses] == [BranchLossKind.REPLACED]
    assert MOST_GIVEN_UP <= fetched.count("fetch") < MOST_GIVEN_UP + 10


def test_several_named_commits_are_settled_each_by_itself(
    remote: Remote, repository: GitRepository, pushed: list[CommitId], tmp_path: Path
) -> None:
    remote.move("placements", pushed[1])
    remote.commit("placements", {"notes.md": "mine\n"})
    never = CommitId("5" * 40)
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        assert new.look_for(pushed[-1], branch="placements", reported_by="w2") is ReportedCommit.LOST
        new.look_for(never, branch="placements", reported_by="w3")
        new.expect_known(pushed[0])  # the branch has it
        assert [loss.known for loss in new.fetch().losses] == [pushed[-1]]
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        assert [(loss.known, loss.reported_by) for loss in new.fetch().losses] == [(pushed[-1], "w2")]
        _restore(new)
        assert [(loss.known, loss.reported_by) for loss in new.fetch().losses] == [(never, "w3")]
        _restore(new, accept=True)
        assert (new.fetch().losses, new.named_commits()) == ((), frozenset())
    assert pushed[-1] in remote.git("rev-list", "placements").split()


def test_word_of_an_engine_outlasts_a_person_who_says_the_same(
    remote: Remote, pushed: list[CommitId], tmp_path: Path
) -> None:
    remote.move("placements", pushed[0])
    for number in range(2):
        with GitRepository(remote.url, cache=tmp_path / "new") as new:
            new.fetch()
            if not number:
                _name(new, "an engine", pushed[-1])
                _name(new, "a person", pushed[-1])
            assert [(loss.known, loss.reported_by) for loss in new.fetch().losses] == [(pushed[-1], "w2")]
