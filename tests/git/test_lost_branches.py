"""The remote is not believed against what is known: a lost or rewound branch of ours stops every push."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.branch_judge import KnownTip
from reconciler.adapters.git.history import FIRST_STEP
from reconciler.adapters.git.restore import Restoration, RestoreWay
from reconciler.adapters.git.run import Output, Runner
from reconciler.errors import InvalidInput, LostBranch, Transient
from reconciler.model.bounds import COMMITS_READ_BACK
from reconciler.model.branch_loss import BranchLossKind, ReportedCommit
from reconciler.model.ids import CommitId
from reconciler.model.tree import Commit, Identity, branch_of
from tests.builders.remote import MORNING, Remote

ADA = Identity(name="Ada", email="ada@example.com")
OURS = Identity(name="Overspill", email="overspill@overspill.dev")
BY_OURS = f"{OURS.name} <{OURS.email}>"
LAST = MORNING + timedelta(minutes=4)
"""When the last of the known commits was made."""
LATER = MORNING + timedelta(hours=2)
RECORD = "clusters/w2/p/placement.yaml"


def _write(repository: GitRepository, number: int) -> CommitId:
    old = repository.tips().output
    commit = Commit(
        message=f"burst {number}\n\nOverspill-Action: Place\n",
        author=OURS,
        at=MORNING + timedelta(minutes=number),
        writes={RECORD: f"n: {number}\n".encode()},
    )
    (made,) = repository.write(old, [commit])
    repository.begin_push(made, old=old)()
    return made


@pytest.fixture
def known(remote: Remote, repository: GitRepository) -> list[CommitId]:
    """Push five commits, as a daemon would."""
    remote.commit("main", {"fleet.yaml": "a"})
    repository.fetch()
    return [_write(repository, number) for number in range(5)]


def _lose(remote: Remote, known: list[CommitId], kind: BranchLossKind) -> None:
    match kind:
        case BranchLossKind.GONE:
            remote.move("placements", None)
        case BranchLossKind.REWOUND:
            remote.move("placements", known[1])
        case BranchLossKind.DIVERGED:
            remote.move("placements", known[1])
            remote.commit("placements", {"notes.md": "mine\n", RECORD: "n: theirs\n"})
        case BranchLossKind.REPLACED:
            remote.move("placements", None)
            remote.commit("placements", {"notes.md": "mine\n"})


def _settle(repository: GitRepository, *, accept: bool = False) -> Restoration:
    repository.fetch()
    drafted = repository.draft_restoration(accept=accept, now=LATER, person=ADA)
    repository.carry_out_restoration(drafted)
    (restoration,) = drafted
    return restoration


def _refuses_to_push(repository: GitRepository) -> bool:
    with pytest.raises(LostBranch, match="nothing is written until that is settled"):
        _write(repository, 9)
    with pytest.raises(LostBranch):
        repository.move_head("overspill/a", old=None, new=repository.tips().source)
    return True


KINDS = pytest.mark.parametrize("kind", list(BranchLossKind))


@KINDS
def test_branch_that_lacks_what_was_pushed_stays_as_known_and_stops_pushes(
    remote: Remote, repository: GitRepository, known: list[CommitId], kind: BranchLossKind
) -> None:
    _lose(remote, known, kind)
    there = remote.tip("placements")
    for _ in range(2):
        tips = repository.fetch()
        (loss,) = tips.losses
        assert (loss.kind, loss.known, loss.tip, loss.branch) == (kind, known[-1], there, "placements")
        assert tips.output == known[-1]
        assert _refuses_to_push(repository)
    assert remote.tip("placements") == there


@KINDS
@pytest.mark.parametrize("opened", ["again", "beside", "after damage"])
@pytest.mark.exhaustive(one_in=4)
def test_another_process_with_the_same_cache_knows_it_too(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, opened: str, tmp_path: Path
) -> None:
    cache = tmp_path / "shared"
    with GitRepository(remote.url, cache=cache) as first:
        first.fetch()
        _lose(remote, known, kind)
        if opened == "beside":
            with GitRepository(remote.url, cache=cache) as other:
                for _ in range(2):
                    tips = other.fetch()
                    assert [(loss.known, loss.known_at) for loss in tips.losses] == [(known[-1], LAST)]
                    assert (tips.output, tips.output_at) == (known[-1], LAST)
                    assert [entry.path for entry in other.entries(known[-1])] == [RECORD]
                assert _refuses_to_push(other)
            return
    if opened == "after damage":
        (objects,) = cache.glob("*/mirror.git/objects")
        shutil.rmtree(objects)
    with GitRepository(remote.url, cache=cache) as again:
        assert [loss.known for loss in again.fetch().losses] == [known[-1]]
        assert _refuses_to_push(again)


@KINDS
@pytest.mark.parametrize("cache", ["shared", "shared/proposals"])
@pytest.mark.exhaustive(one_in=3)
def test_mirror_that_stays_open_beside_that_of_the_passes_knows_what_those_have_pushed(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, cache: str, tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "shared") as passes:
        passes.fetch()
        with GitRepository(remote.url, cache=tmp_path / cache, main_cache=tmp_path / "shared") as beside:
            assert beside.fetch().losses == ()
            known.append(_write(passes, 7))
            _lose(remote, known, kind)
            stands = remote.tip("placements")
            for _ in range(2):
                assert [loss.known for loss in beside.fetch().losses] == [known[-1]]
                assert _refuses_to_push(beside)
            assert remote.tip("placements") == stands
            _settle(passes)
            assert beside.fetch().losses == ()
            assert _write(beside, 9) == remote.tip("placements")


def test_mirror_beside_that_has_pushed_is_not_talked_out_of_it_by_that_of_the_passes(
    remote: Remote, known: list[CommitId], tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "shared") as passes:
        passes.fetch()
        with GitRepository(remote.url, cache=tmp_path / "shared") as beside:
            beside.fetch()
            pushed = _write(beside, 7)
            earlier = remote.commit("placements", {"notes.md": "mine\n"})
            passes.fetch()
            last = _write(beside, 8) if beside.fetch().output == earlier else pushed
            remote.move("placements", earlier)
            assert [loss.known for loss in beside.fetch().losses] == [last]
            assert _refuses_to_push(beside)


@KINDS
@pytest.mark.parametrize("is_kept", [True, False])
def test_history_of_a_lost_branch_is_read_as_far_as_anybody_holds_it(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, is_kept: bool, tmp_path: Path
) -> None:
    """A mirror begins with the last commit alone; hosts keep commits that no branch leads to for a while, or do not."""
    with GitRepository(remote.url, cache=tmp_path / "late") as late:
        tip = late.fetch().output
        assert tip == known[-1]
        _lose(remote, known, kind)
        if not is_kept:
            remote.git("-c", "gc.reflogExpire=now", "gc", "--prune=now", "-q")
        late.fetch()
        held = known[::-1] if is_kept else [tip]
        assert [commit.id for commit in late.log(tip)] == held
        assert late.last_written(tip) == tip
        assert [commit.id for commit in late.commits_after(None, tip) or ()] == held[::-1]
        assert len(late.earlier(tip, RECORD)) == len(held) - 1
        section = late.section(tip, since=MORNING - timedelta(days=1))
        assert [each.commit.id for each in section.commits] == (held[::-1] if is_kept else [])
        assert (section.base and section.base.id) == (None if is_kept else tip)


def test_mirror_that_is_made_again_still_knows(remote: Remote, known: list[CommitId], tmp_path: Path) -> None:
    cache = tmp_path / "shared"
    with GitRepository(remote.url, cache=cache) as first:
        first.fetch()
        first._branches._renew()
        remote.move("placements", known[1])
        assert [loss.known for loss in first.fetch().losses] == [known[-1]]
    with GitRepository(remote.url, cache=cache) as again:
        assert [loss.known for loss in again.fetch().losses] == [known[-1]]
        remote.move("placements", known[-1])
        assert again.fetch().losses == ()
        remote.commit("placements", {"notes.md": "mine\n"})
        assert again.fetch().losses == ()
        assert not list(cache.glob("*/known"))


@KINDS
@pytest.mark.parametrize("opened", ["still", "again", "beside"])
@pytest.mark.exhaustive(one_in=3)
def test_mirror_that_is_made_again_while_a_branch_is_lost_restores_it_to_the_commit(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, opened: str, tmp_path: Path
) -> None:
    """A git that is killed, or has no room for a file, makes a mirror look broken that alone holds the commits."""
    cache = tmp_path / "shared"
    with GitRepository(remote.url, cache=cache) as first:
        first.fetch()
        first.log(known[-1])
        _lose(remote, known, kind)
        first.fetch()
        remote.git("reflog", "expire", "--expire=now", "--all")
        remote.git("gc", "-q", "--prune=now")
        for _ in range(2):
            first._branches._renew()
            assert [(loss.known, loss.known_at) for loss in first.fetch().losses] == [(known[-1], LAST)]
        if opened == "beside":
            with GitRepository(remote.url, cache=cache) as other:
                assert [loss.known_at for loss in other.fetch().losses] == [LAST]
        if opened != "again":
            _settle(first)
    with GitRepository(remote.url, cache=cache) as again:
        if opened == "again":
            _settle(again)
        tips = again.fetch()
        assert tips.losses == ()
        assert tips.output is not None
        assert set(known) <= {commit.id for commit in again.log(tips.output)}
    assert [*cache.glob("*/aside.git")] == []


@pytest.mark.parametrize("kind", [BranchLossKind.GONE, BranchLossKind.REWOUND])
def test_mirror_that_is_made_again_while_the_branch_of_a_cluster_is_lost_restores_its_files(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, tmp_path: Path
) -> None:
    """The fetch after that looks at the output branch alone, which is not lost."""
    branch = branch_of("placements", "w2")
    before, tip = (remote.commit(branch, {RECORD: f"n: {number}\n"}) for number in range(2))
    files = remote.git("rev-parse", f"{tip}^{{tree}}")
    with GitRepository(remote.url, cache=tmp_path / "shared") as repository:
        for _ in range(2):
            repository.fetch()
            repository.branches()
        remote.move(branch, before if kind is BranchLossKind.REWOUND else None)
        assert [loss.known for loss in repository.fetch().losses] == [tip]
        remote.git("gc", "-q", "--prune=now")
        for _ in range(2):
            repository._branches._renew()
            repository.fetch()
            repository.branches()
            assert [(loss.known, loss.known_at is None) for loss in repository.tips().losses] == [(tip, False)]
        _settle(repository)
        repository.fetch()
        repository.branches()
        assert repository.tips().losses == ()
        assert remote.git("rev-parse", f"refs/heads/{branch}^{{tree}}") == files
        repository.fetch()
    assert [*tmp_path.glob("shared/*/aside.git")] == []


@KINDS
@pytest.mark.exhaustive(one_in=2)
def test_mirror_that_is_found_broken_by_the_next_process_keeps_what_the_remote_has_lost(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, tmp_path: Path
) -> None:
    cache = tmp_path / "shared"
    with GitRepository(remote.url, cache=cache) as first:
        first.fetch()
        first.log(known[-1])
        refs = first.directory / "mirror.git" / "refs"
    _lose(remote, known, kind)
    remote.git("gc", "-q", "--prune=now")
    (refs / "overspill" / "source").write_text("5" * 40 + "\n")
    with GitRepository(remote.url, cache=cache) as again:
        assert [(loss.known, loss.known_at) for loss in again.fetch().losses] == [(known[-1], LAST)]
        _settle(again)
        tips = again.fetch()
        assert tips.losses == ()
        assert tips.output is not None
        assert set(known) <= {commit.id for commit in again.log(tips.output)}
    assert [*cache.glob("*/aside.git")] == []


def test_mirror_that_cannot_be_put_aside_stays(
    remote: Remote, known: list[CommitId], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "held by another program")

    with GitRepository(remote.url, cache=tmp_path / "shared") as repository:
        repository.fetch()
        with monkeypatch.context() as held:
            held.setattr("pathlib.Path.rename", refuse)
            with pytest.raises(Transient, match="held by another program"):
                repository._branches._renew()
        remote.move("placements", None)
        assert [loss.known_at for loss in repository.fetch().losses] == [LAST]


NOTES = ("", "x", "refs/overspill/known/output/placements", "a b", "\0", "refs/overspill/known/output/placements -x -")


@pytest.mark.parametrize("line", NOTES)
def test_note_of_known_tips_that_cannot_be_read_is_none(
    remote: Remote, known: list[CommitId], line: str, tmp_path: Path
) -> None:
    cache = tmp_path / "shared"
    with GitRepository(remote.url, cache=cache) as first:
        first.fetch()
        (first.directory / "known").write_text(f"{line}\n")
    with GitRepository(remote.url, cache=cache) as again:
        assert (again.fetch().output, again.tips().losses) == (known[-1], ())


@pytest.mark.parametrize("kind", [BranchLossKind.GONE, BranchLossKind.REWOUND])
def test_restored_branch_is_the_same_to_the_commit(
    remote: Remote, repository: GitRepository, known: list[CommitId], kind: BranchLossKind
) -> None:
    _lose(remote, known, kind)
    assert _settle(repository).way is RestoreWay.PUSH
    assert remote.tip("placements") == known[-1]
    assert repository.fetch().losses == ()
    _write(repository, 6)


@KINDS
@pytest.mark.parametrize("accept", [False, True])
@pytest.mark.exhaustive(one_in=2)
def test_commits_of_a_restoration_have_the_lines_of_the_organisation_and_a_name_that_git_takes(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, accept: bool, tmp_path: Path
) -> None:
    """They pass the host's rules as all others do; a push of known commits makes none."""
    line = "Signed-off-by: Bot <bot@example.com>"
    with GitRepository(remote.url, cache=tmp_path / "shared", trailers=[line]) as repository:
        repository.fetch()
        repository.log(known[-1])
        _lose(remote, known, kind)
        repository.fetch()
        person = Identity(name="Ada\n<Lovelace>", email="ada@example.com>")
        drafted = repository.draft_restoration(accept=accept, now=LATER, person=person)
        repository.carry_out_restoration(drafted)
        (settled,) = drafted
        assert repository.fetch().losses == ()
    assert bool(settled.written) == (settled.way is not RestoreWay.PUSH)
    for commit in settled.written:
        assert remote.git("log", "-1", "--format=%(trailers:key=Signed-off-by)", commit).strip() == line
        people = remote.git("log", "-1", "--format=%an|%ae|%cn|%ct", commit)
        assert people == f"AdaLovelace|ada@example.com|Overspill|{int(LATER.timestamp())}"
    remote.git("fsck", "--strict")


@pytest.mark.parametrize("kind", [BranchLossKind.DIVERGED, BranchLossKind.REPLACED])
def test_restore_forces_nothing_over_commits_of_others(
    remote: Remote, repository: GitRepository, known: list[CommitId], kind: BranchLossKind
) -> None:
    _lose(remote, known, kind)
    theirs = remote.tip("placements")
    assert _settle(repository).way is RestoreWay.MERGE
    assert remote.git("merge-base", "--is-ancestor", str(theirs), "placements") == ""
    assert remote.git("merge-base", "--is-ancestor", known[-1], "placements") == ""
    assert remote.files("placements") == {RECORD: b"n: 4\n", "notes.md": b"mine\n"}
    assert repository.fetch().losses == ()
    _write(repository, 6)


@KINDS
@pytest.mark.exhaustive(one_in=4)
def test_accepted_loss_holds_for_other_daemons_and_the_next_one_does_not(
    remote: Remote, repository: GitRepository, known: list[CommitId], kind: BranchLossKind, tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "other") as other:
        other.fetch()
        _lose(remote, known, kind)
        there = remote.files("placements")
        assert other.fetch().losses
        restoration = _settle(repository, accept=True)
        assert remote.files("placements") == there
        assert f"Overspill-Supersedes: {known[-1]}" in remote.git("log", "-1", "--format=%B", "placements")
        assert repository.fetch().losses == other.fetch().losses == ()
        made = _write(other, 6)
        remote.move("placements", restoration.new)
        assert [loss.known for loss in other.fetch().losses] == [made]


def test_shallow_mirror_writes_its_commits_again_where_the_remote_has_none_of_them(
    remote: Remote, repository: GitRepository, known: list[CommitId], tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "late") as late:
        late.fetch()
        newest = _write(late, 7)
        shutil.rmtree(remote.path)
        remote._begin()
        remote.commit("main", {"fleet.yaml": "b"})
        assert [loss.kind for loss in late.fetch().losses] == [BranchLossKind.GONE]
        restoration = _settle(late)
        assert restoration.way is RestoreWay.REWRITE
        assert remote.files("placements") == {RECORD: b"n: 7\n"}
        subjects = remote.git("log", "--format=%s", "placements").splitlines()
        assert subjects == [f"Restore placements to {newest[:12]}", "burst 7", "burst 4"]
        assert late.fetch().losses == ()
        _write(late, 8)
    assert [loss.known for loss in repository.fetch().losses] == []


PEOPLE = {
    "Ann <ann@example.com> 1763600000 -0730": "Ann|ann@example.com|1763600000 -0730",
    "Ann<ann@example.com>": "Ann|ann@example.com|1763600000 +0000",
    "Ann <ann@example.com> 1763600000 +051800": "Ann|ann@example.com|1763600000 +0000",
    "Ann <a> <ann@example.com> 17 +0000": "Ann|a|1763600000 +0000",
    "Ann <ann@example.com> 99999999999999999999 +0000": "Ann|ann@example.com|1763600000 +0000",
    "Ann": "Ann 1763600000 +0000||1763600000 +0000",
}
"""Authors as programs have written them into commits, and name, address, seconds and zone as they are written again."""


@pytest.mark.parametrize("author", PEOPLE)
def test_commit_whose_author_git_would_not_write_keeps_no_branch_from_being_written_again(
    remote: Remote, known: list[CommitId], author: str, tmp_path: Path
) -> None:
    tree = remote.git("rev-parse", f"{known[-1]}^{{tree}}")
    line = author if author[-1].isdigit() else f"{author} 1763600000 +0000"
    raw = f"tree {tree}\nparent {known[-1]}\nauthor {line}\ncommitter {BY_OURS} 1763600000 +0000\n\nby hand\n"
    theirs = remote.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw.encode())
    remote.move("placements", CommitId(theirs))
    with GitRepository(remote.url, cache=tmp_path / "late") as late:
        late.fetch()
        _write(late, 7)
        shutil.rmtree(remote.path)
        remote._begin()
        remote.commit("main", {"fleet.yaml": "b"})
        late.fetch()
        assert _settle(late).way is RestoreWay.REWRITE
        people = remote.git("log", "--format=%an|%ae|%ad", "--date=raw", "--grep=^by hand", "placements")
        assert people == PEOPLE[author]
        assert late.fetch().losses == ()


@pytest.mark.parametrize("commits", [1, 2])
@pytest.mark.parametrize("kind", [BranchLossKind.GONE, BranchLossKind.REPLACED])
def test_branch_whose_first_commit_was_fetched_alone_is_restored_to_the_commit(
    remote: Remote, repository: GitRepository, tmp_path: Path, kind: BranchLossKind, commits: int
) -> None:
    """The second process has fetched the first commit with a depth of one, which git notes as a cut history."""
    remote.commit("main", {"fleet.yaml": "a"})
    repository.fetch()
    root = _write(repository, 0)
    with GitRepository(remote.url, cache=tmp_path / "late") as daemon:
        daemon.fetch()
        known = [root, *(_write(daemon, number) for number in range(1, commits))]
        with GitRepository(remote.url, cache=tmp_path / "late") as beside:
            beside.fetch()
            _lose(remote, known, kind)
            restoration = _settle(beside)
        assert restoration.way is (RestoreWay.PUSH if kind is BranchLossKind.GONE else RestoreWay.MERGE)
        history = remote.git("rev-list", "placements").split()
        assert set(known) <= set(history)
        assert daemon.fetch().losses == ()
        _write(daemon, 8)


def test_push_on_commits_that_the_remote_lacks_names_the_way_out(remote: Remote, repository: GitRepository) -> None:
    for text in "ab":
        remote.commit("main", {"fleet.yaml": text})
    source = repository.fetch().source
    shutil.rmtree(remote.path)
    remote._begin()
    with pytest.raises(InvalidInput, match=r"lacks commits before these \(look with `overspill restore --dry-run`\)"):
        repository.move_head("overspill/a", old=None, new=source)


def test_shallow_mirror_that_sees_a_rewind_knows_it_for_one(
    remote: Remote, known: list[CommitId], tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "late") as late:
        late.fetch()
        remote.move("placements", known[0])
        (loss,) = late.fetch().losses
        assert loss.kind is BranchLossKind.REWOUND
        assert _settle(late).way is RestoreWay.PUSH
    assert remote.tip("placements") == known[-1]


def test_two_daemons_on_one_branch_never_trip_it(
    remote: Remote, repository: GitRepository, known: list[CommitId], tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "other") as other:
        for number in range(10, 20):
            writer, reader = (repository, other) if number % 2 else (other, repository)
            assert writer.fetch().losses == ()
            _write(writer, number)
            assert reader.fetch().losses == ()
        for number in range(60):
            remote.commit("placements", {"notes.md": str(number)})
        assert repository.fetch().losses == other.fetch().losses == ()


def test_merge_made_by_hand_on_another_first_parent_is_no_loss(
    remote: Remote, repository: GitRepository, known: list[CommitId]
) -> None:
    tree = remote.git("rev-parse", "placements^{tree}")
    person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    side = remote.git(*person, "commit-tree", tree, "-p", known[2], "-m", "side")
    merged = remote.git(*person, "commit-tree", tree, "-p", side, "-p", known[-1], "-m", "merge")
    remote.move("placements", CommitId(merged))
    assert repository.fetch().losses == ()


def test_another_output_branch_of_the_same_remote_is_no_loss(
    remote: Remote, known: list[CommitId], tmp_path: Path
) -> None:
    cache = tmp_path / "shared"
    for branch in ("placements", "bursts", "placements", "placements-staging", "placements"):
        with GitRepository(remote.url, cache=cache, output_branch=branch) as repository:
            assert repository.fetch().losses == ()
            _write(repository, 7)
            repository._branches._renew()
            assert repository.fetch().losses == ()


def test_commit_that_a_person_names_is_known(
    remote: Remote, repository: GitRepository, known: list[CommitId], tmp_path: Path
) -> None:
    remote.move("placements", known[1])
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        assert new.fetch().losses == ()
        new.expect_known(known[-1])
        (loss,) = new.fetch().losses
        assert (loss.kind, loss.known) == (BranchLossKind.REWOUND, known[-1])
        _settle(new)
    assert remote.tip("placements") == known[-1]


def test_branch_of_a_cluster_that_never_was_can_be_given_up(
    remote: Remote, repository: GitRepository, known: list[CommitId]
) -> None:
    """A hostile cluster may name a commit on its own branch, before anything has been placed there."""
    branch = branch_of("placements", "w2")
    repository.branches()
    assert repository.look_for(CommitId("5" * 40), branch=branch, reported_by="w2") is ReportedCommit.LOST
    drafted = repository.draft_restoration(accept=True, now=LATER, person=ADA)
    repository.carry_out_restoration(drafted)
    repository.fetch()
    repository.branches()
    assert (repository.tips().losses, remote.tip(branch)) == ((), drafted[0].new)


NEVER = CommitId("5" * 40)
"""A commit that nobody holds."""


def _of_cluster(remote: Remote, commit: CommitId) -> CommitId:
    """Push a commit for the branch of a cluster that stands for one of the output branch."""
    message = f"burst\n\nOverspill-Action: Place\nOverspill-Output: {commit}\n"
    return remote.commit(branch_of("placements", "w2"), {RECORD: "n: 1\n"}, message=message, author=BY_OURS)


def _names(repository: GitRepository, who: str, commit: CommitId) -> None:
    """Let an engine or a person name a commit of the output branch."""
    if who == "an engine":
        repository.look_for(commit, branch="placements", reported_by="w2")
    else:
        repository.expect_known(commit)
        repository.fetch()


@pytest.mark.parametrize("who", ["an engine", "a person"])
@pytest.mark.parametrize(
    "named",
    [
        "of the source branch",
        "that the source branch had before a forced push",
        "of a branch for review",
        "of a branch that was deleted",
        "of a cluster's branch",
    ],
)
def test_commit_of_another_branch_takes_nothing_from_the_output(
    remote: Remote, known: list[CommitId], named: str, who: str, tmp_path: Path
) -> None:
    tip = remote.tip("main")
    if named == "that the source branch had before a forced push":
        tip, stands = remote.commit("main", {"fleet.yaml": "b"}), tip
        remote.move("main", stands)
    elif named == "of a branch that was deleted":
        tip = remote.commit("scratch", {"notes.md": "mine\n"})
        remote.move("scratch", None)
    elif named == "of a branch for review":
        tip = remote.commit("overspill/mine", {RECORD: "n: mine\n"})
    elif named == "of a cluster's branch":
        tip = _of_cluster(remote, known[2])
    assert tip is not None
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        if who == "a person" and named != "of a cluster's branch":
            with pytest.raises(InvalidInput, match="Overspill has written neither it nor one shortly before it"):
                new.expect_known(tip)
        else:
            _names(new, who, tip)
        assert new.tips().losses == ()
        assert (new.fetch().losses, new.tips().output) == ((), known[-1])


@pytest.mark.parametrize("kind", [BranchLossKind.DIVERGED, BranchLossKind.REPLACED])
def test_restore_deletes_no_placements_for_a_commit_that_holds_none(
    remote: Remote, known: list[CommitId], kind: BranchLossKind, tmp_path: Path
) -> None:
    """The known commit may belong to another branch, and to this one by an engine's word alone."""
    record = remote.files("placements")[RECORD]
    remote.move("placements", None)
    first, tip = [remote.commit("placements", {"notes.md": str(number)}) for number in range(2)]
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        remote.move("placements", first if kind is BranchLossKind.DIVERGED else None)
        remote.commit("placements", {RECORD: record})
        assert [(loss.known, loss.kind) for loss in new.fetch().losses] == [(tip, kind)]
        with pytest.raises(InvalidInput, match="every placement would be deleted"):
            _settle(new)
        _settle(new, accept=True)
    assert remote.files("placements")[RECORD] == record


def test_look_at_what_is_before_a_commit_cuts_no_history_off(
    remote: Remote, repository: GitRepository, known: list[CommitId], tmp_path: Path
) -> None:
    """The first parent of a merge may be held with one commit alone, the second with a long history."""
    tree = remote.git("rev-parse", "placements^{tree}")
    tip = known[-1]
    person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    for number in range(FIRST_STEP + 10):
        tip = remote.commit("placements", {"notes.md": str(number)})
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        assert len(new.log(tip)) == len(known) + FIRST_STEP + 10
        side = [remote.commit("side", {"notes.md": str(number)}) for number in range(2)][-1]
        assert new._branches.commits.obtain(side)
        merged = CommitId(remote.git(*person, "commit-tree", tree, "-p", side, "-p", tip, "-m", "merge"))
        remote.move("placements", merged)
        new.fetch()
        cut = new._branches.shallow()
        assert side in cut
        assert new._branches.commits.recent(merged).own is None
        assert new._branches.shallow() == cut - {side}


@pytest.mark.parametrize("where", ["on an empty disk", "beside a daemon", "after damage"])
def test_commit_of_a_cluster_stands_for_the_one_of_the_output_that_it_names(
    remote: Remote, repository: GitRepository, known: list[CommitId], where: str, tmp_path: Path
) -> None:
    """A mirror that knows the branch of the cluster as well takes the commit for that of the output branch too."""
    of_cluster = _of_cluster(remote, known[-1])
    files = remote.git("rev-parse", f"{known[-1]}^{{tree}}")
    remote.move("placements", known[1])
    with ExitStack() as stack:
        if where == "beside a daemon":
            daemon = stack.enter_context(GitRepository(remote.url, cache=tmp_path / "new"))
            daemon.fetch()
            daemon.branches()
        new = stack.enter_context(GitRepository(remote.url, cache=tmp_path / "new"))
        if where == "after damage":
            new.fetch()
            new.branches()
            new._branches._renew()
        assert new.expect_known(of_cluster) == known[-1]
        _settle(new)
    assert remote.git("rev-parse", "refs/heads/placements^{tree}") == files


@pytest.mark.parametrize("who", ["an engine", "a person"])
@pytest.mark.parametrize("accept", [True, False])
def test_what_somebody_names_hides_no_loss_of_what_is_known(
    remote: Remote, repository: GitRepository, known: list[CommitId], who: str, accept: bool
) -> None:
    remote.move("placements", known[1])
    _names(repository, who, NEVER)
    assert [loss.known for loss in repository.fetch().losses] == [known[-1]]
    _settle(repository, accept=accept)
    assert [(loss.known, loss.tip) for loss in repository.fetch().losses] == [(NEVER, remote.tip("placements"))]
    stands = remote.git("rev-parse", "refs/heads/placements^{tree}")
    _settle(repository, accept=True)
    assert repository.fetch().losses == ()
    assert remote.git("rev-parse", "refs/heads/placements^{tree}") == stands
    assert (remote.git("show", f"placements:{RECORD}") == "n: 4") is not accept


@pytest.mark.parametrize("who", ["an engine", "a person"])
def test_known_tip_gives_way_to_no_commit_beside_it(
    remote: Remote, repository: GitRepository, known: list[CommitId], who: str
) -> None:
    remote.git("update-ref", "refs/heads/side", known[1])
    aside = remote.commit("side", {RECORD: "n: side\n"}, message="burst\n\nOverspill-Action: Place", author=BY_OURS)
    _names(repository, who, aside)
    for _ in range(2):
        (loss,) = repository.fetch().losses
        assert (loss.kind, loss.known, loss.tip) == (BranchLossKind.DIVERGED, aside, known[-1])
        assert repository.tips().output == known[-1]
        assert len(repository.log(known[-1])) == len(known)
    _settle(repository, accept=True)
    assert repository.fetch().losses == ()
    assert remote.git("show", f"placements:{RECORD}") == "n: 4"


@pytest.mark.parametrize("reported_by", ["w2", ""])
def test_known_tip_that_is_none_of_ours_is_not_forgotten_because_somebody_names_it(
    remote: Remote, tmp_path: Path, reported_by: str
) -> None:
    tip = [remote.commit("placements", {"notes.md": str(number)}) for number in range(2)][-1]
    with GitRepository(remote.url, cache=tmp_path / "new") as repository:
        repository.fetch()
        remote.move("placements", None)
        known = repository._branches.known
        known.hear(KnownTip(commit=tip, reported_by=reported_by), known.output_ref)
        assert [loss.known for loss in repository.fetch().losses] == [tip]


@pytest.mark.parametrize("is_named", [True, False])
def test_known_tip_that_an_engine_names_is_not_forgotten_where_the_search_for_it_ends(
    remote: Remote, known: list[CommitId], is_named: bool, tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        new._branches._renew()
        remote.move("placements", None)
        for number in range(80):
            remote.commit("placements", {"notes.md": str(number)}, at=LATER + timedelta(minutes=number))
        new._branches.commits.most = 60
        if is_named:
            new._branches.known.hear(KnownTip(commit=known[-1], reported_by="w2"), new._branches.known.output_ref)
        assert [loss.known for loss in new.fetch().losses] == [known[-1]]


@pytest.mark.parametrize("kind", ["never was", BranchLossKind.REWOUND, BranchLossKind.GONE])
def test_word_of_a_person_lasts_as_long_as_the_command(
    remote: Remote, known: list[CommitId], kind: str, tmp_path: Path
) -> None:
    named = NEVER if kind == "never was" else known[-1]
    if kind != "never was":
        _lose(remote, known, BranchLossKind(kind))
    for number in range(2):
        with GitRepository(remote.url, cache=tmp_path / "new") as new:
            assert new.fetch().losses == ()
            if not number:
                new.expect_known(named)
                assert [loss.known for loss in new.fetch().losses] == [named]
                if named != NEVER:
                    new.draft_restoration(accept=False, now=LATER, person=ADA)


def test_commit_that_settles_a_cluster_is_none_of_the_output(
    remote: Remote, repository: GitRepository, known: list[CommitId], tmp_path: Path
) -> None:
    """It has the files of that cluster alone."""
    branch = branch_of("placements", "w2")
    first = remote.commit(branch, {RECORD: "n: 1\n"})
    _of_cluster(remote, known[-1])
    repository.fetch()
    repository.branches()
    remote.move(branch, first)
    remote.commit(branch, {RECORD: "n: theirs\n"})
    settled = _settle(repository).new
    with pytest.raises(InvalidInput, match="names no commit of the output branch"):
        repository.expect_known(settled)
    looked = repository.look_for(settled, branch="placements", reported_by="w2")
    assert (looked, repository.fetch().losses) == (ReportedCommit.GIVEN_UP, ())
    remote.move(branch, first)
    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        new.branches()
        new.look_for(settled, branch=branch, reported_by="w2")
        assert [loss.known for loss in new.tips().losses] == [settled]


@pytest.mark.parametrize("answer", ["an outage", "a refusal"])
def test_commit_of_a_person_counts_while_nobody_shows_what_is_before_it(
    remote: Remote, known: list[CommitId], answer: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    revert = remote.commit("placements", {"notes.md": "mine\n"})
    remote.git("update-ref", "refs/heads/rescue", revert)
    remote.move("placements", known[1])
    said = "fatal: unable to access" if answer == "an outage" else "fatal: remote error: upload-pack: not our ref"
    run = Runner.run

    def failing(runner: Runner, arguments: Sequence[str], **rest: Any) -> Output:
        if "fetch" in arguments and revert in arguments and "--depth=1" not in arguments:
            return Output(status=128, stdout=b"", stderr=said)
        return run(runner, arguments, **rest)

    with GitRepository(remote.url, cache=tmp_path / "new") as new:
        new.fetch()
        monkeypatch.setattr(Runner, "run", failing)
        if answer == "an outage":
            with pytest.raises(Transient, match="looking at what is before commit"):
                _names(new, "an engine", revert)
        else:
            _names(new, "an engine", revert)
            assert [loss.known for loss in new.fetch().losses] == [revert]
        monkeypatch.undo()
        assert [loss.known for loss in new.fetch().losses] == [revert]


def test_commit_that_never_was_keeps_no_other_branch_from_being_restored(
    remote: Remote, repository: GitRepository, known: list[CommitId]
) -> None:
    repository.branches()
    repository.look_for(NEVER, branch=branch_of("placements", "w2"), reported_by="w2")
    remote.move("placements", known[1])
    repository.fetch()
    repository.branches()
    drafted = repository.draft_restoration(accept=False, now=LATER, person=ADA)
    repository.carry_out_restoration(drafted)
    assert remote.tip("placements") == known[-1]
    repository.fetch()
    repository.branches()
    assert [loss.known for loss in repository.tips().losses] == [NEVER]
    with pytest.raises(InvalidInput, match="neither this machine nor the remote holds"):
        repository.draft_restoration(accept=False, now=LATER, person=ADA)


def test_loss_of_a_cluster_names_no_commit_for_the_output(
    remote: Remote, repository: GitRepository, known: list[CommitId]
) -> None:
    repository.branches()
    repository.look_for(NEVER, branch=branch_of("placements", "w2"), reported_by="w2")
    with pytest.raises(LostBranch, match="restore --accept`") as refused:
        _write(repository, 9)
    assert "--commit" not in str(refused.value)
    assert repository.expect_known(NEVER) == NEVER
    assert [loss.is_output for loss in repository.fetch().losses if loss.is_output] == []


def test_fleet_that_keeps_no_branches_of_clusters_any_more_is_in_no_doubt(
    remote: Remote, repository: GitRepository, known: list[CommitId], tmp_path: Path
) -> None:
    remote.commit(branch_of("placements", "w2"), {RECORD: "n: 1\n"})
    repository.fetch()
    repository.branches()
    repository._branches._renew()
    repository.fetch()
    assert repository._branches.known.doubtful()
    repository.forget_branches()
    repository.fetch()
    assert not repository._branches.known.doubtful()
    assert [*repository.directory.glob("aside.git")] == []


def test_search_for_a_known_commit_is_bounded(remote: Remote, tmp_path: Path) -> None:
    (first,) = [remote.commit("placements", {"a": "0"})]
    for number in range(80):
        remote.commit("placements", {"a": str(number)})
    with GitRepository(remote.url, cache=tmp_path / "new") as repository:
        tip = repository.fetch().output
        commits = repository._branches.commits
        assert tip is not None
        assert commits.most == COMMITS_READ_BACK.most
        commits.most = 60
        assert commits.contains("refs/heads/placements", tip, first) is None
        commits.most = 81
        assert commits.contains("refs/heads/placements", tip, first) is True
