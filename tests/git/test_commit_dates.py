"""Dates that anybody can write into commits of the output branch: each reads, and ours do not follow a broken clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.commits.commit_date import LONGEST_AHEAD, date_after, read_date
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.tree import BranchCommit, Commit, Identity, Projection
from tests.builders.remote import MORNING, Remote

OURS = Identity(name="Overspill", email="overspill@overspill.dev")
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(2200, 12, 31, 23, 59, 59, tzinfo=UTC)
DATES = {
    "0 +0000": FIRST,
    "-1 +0000": FIRST,
    "-62135596801 +0000": None,
    "": FIRST,
    "x +0000": FIRST,
    "٣ +0000": FIRST,
    "999999999999 +0000": LAST,
    "10413792000 +0000": LAST,
    "9223372036854775808 +0000": LAST,
    f"{'9' * 30} +0000": None,
    f"{'9' * 5000} +0000": None,
}
"""Dates as they stand in a commit, and how each reads; None where git itself prints something else."""
COMMIT = Commit(message="burst\n\nOverspill-Action: Place\n", author=OURS, at=MORNING, writes={"clusters/w2/p": b"1"})


def _dated(remote: Remote, branch: str, date: str, *, by: str = "A <a@example.com>", message: str = "note") -> CommitId:
    """Push a commit with a date, on top of a branch or as its first one, as nothing but git sees to it."""
    tip = remote.tip(branch)
    tree = remote.git("rev-parse", f"{tip}^{{tree}}") if tip else remote.git("mktree")
    parents = f"parent {tip}\n" if tip else ""
    raw = f"tree {tree}\n{parents}author {by} {date}\ncommitter {by} {date}\n\n{message}\n"
    made = CommitId(remote.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw.encode()))
    remote.move(branch, made)
    return made


@pytest.mark.parametrize("date", DATES)
def test_any_date_of_a_commit_reads_and_ours_on_top_bears_our_own(remote: Remote, tmp_path: Path, date: str) -> None:
    remote.commit("main", {"fleet.yaml": "a"})
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
        (first,) = repository.write(None, [COMMIT])
        repository.begin_push(first, old=None)()
        far = _dated(remote, "placements", date)
        cluster = ClusterName("w2")
        far_branch = _dated(remote, f"placements-by-cluster/{cluster}", date)
        tips = repository.fetch()
        assert (tips.output, tips.losses) == (far, ())
        assert DATES[date] in (None, tips.output_at)
        branch = repository.branches()[cluster]
        assert branch.commit == far_branch
        assert DATES[date] in (None, branch.at)
        assert [commit.id for commit in repository.log(far)] == [far, first]
        (ours,) = repository.write(far, [COMMIT])
        (logged,) = repository.log(ours, limit=1)
        assert logged.at == MORNING
        snapshot = BranchCommit(message="follow", author=OURS, at=MORNING, directory=None)
        (advance,) = repository.project([Projection(cluster=cluster, base=branch, snapshots=(snapshot,))])
        repository.begin_push(ours, old=far, branches=(advance,))()
        assert repository.branches()[cluster].at == MORNING
        assert repository.fetch().losses == ()
    with GitRepository(remote.url, cache=tmp_path / "other") as other:
        assert other.fetch().output_at == MORNING
        remote.move("placements", far)
        (loss,) = other.fetch().losses
        assert loss.known == ours
        remote.move("placements", ours)
        assert other.fetch().losses == ()


@pytest.mark.parametrize("date", ["999999999999 +0000", "0 +0000"])
def test_known_commit_of_another_date_is_found_below_ours(remote: Remote, tmp_path: Path, date: str) -> None:
    """Ours on top of it is older, and the mirror at first holds that one alone."""
    remote.commit("main", {"fleet.yaml": "a"})
    far = _dated(remote, "placements", date, by=f"{OURS.name} <{OURS.email}>", message=COMMIT.message)
    with (
        GitRepository(remote.url, cache=tmp_path / "known") as known,
        GitRepository(remote.url, cache=tmp_path / "cache") as repository,
    ):
        assert known.fetch().output == far
        old = repository.fetch().output
        for _ in range(3):
            (made,) = repository.write(old, [COMMIT])
            repository.begin_push(made, old=old)()
            old = made
        with GitRepository(remote.url, cache=tmp_path / "new") as new:
            new.fetch()
            new.expect_known(far)
            assert new.fetch().losses == ()
        assert known.fetch().losses == ()


@pytest.mark.parametrize(
    ("ahead", "follows"),
    [(timedelta(), False), (timedelta(seconds=1), True), (LONGEST_AHEAD, True), (timedelta(hours=1, seconds=1), False)],
)
def test_date_of_the_commit_before_is_followed_within_what_clocks_differ_by(ahead: timedelta, follows: bool) -> None:
    assert date_after(MORNING, MORNING + ahead) == (MORNING + ahead if follows else MORNING)
    assert date_after(MORNING, None) == date_after(MORNING, MORNING - ahead) == MORNING


def test_date_that_git_prints_reads_to_the_second() -> None:
    assert read_date("1763629200") == datetime.fromtimestamp(1763629200, UTC)
