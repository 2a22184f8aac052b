"""Branches of people beside those of clusters, whatever they are called, are no business of Overspill."""

from __future__ import annotations

import os
import subprocess
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.known_refs import KNOWN, cluster_refs, is_known_ref, known_refs, output_ref
from reconciler.adapters.git.restore import RestoreWay
from reconciler.errors import LostBranch
from reconciler.model.branch_loss import BranchLossKind
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.tree import BranchCommit, Commit, Identity, Projection
from tests.builders.remote import MORNING, Remote

OURS = Identity(name="Overspill", email="overspill@overspill.dev")
W2 = ClusterName("w2")
FOREIGN = pytest.mark.parametrize("name", ["\udcff", "a\u2028b", "a\x85b", "x/y", "Mine", "w3.lock.d"], ids=ascii)
"""Names that git takes, and that no cluster has."""


def _push(repository: GitRepository, number: int) -> CommitId:
    """Push a placement, as a pass does."""
    old = repository.tips().output
    message = f"burst {number}\n\nOverspill-Action: Place\n"
    at = MORNING + timedelta(minutes=number)
    commit = Commit(message=message, author=OURS, at=at, writes={"clusters/w2/p/placement.yaml": b"n: %d\n" % number})
    (made,) = repository.write(old, [commit])
    repository.begin_push(made, old=old)()
    return made


@pytest.fixture
def fleet(remote: Remote, repository: GitRepository) -> GitRepository:
    """Open a repository that has pushed an output branch and that of a cluster."""
    remote.commit("main", {"fleet.yaml": "a"})
    repository.fetch()
    output = _push(repository, 0)
    repository.branches()
    message = f"w2\n\nOverspill-Action: Place\nOverspill-Output: {output}\n"
    directory = repository.directories([output])[0][W2]
    snapshot = BranchCommit(message=message, author=OURS, at=MORNING + timedelta(minutes=1), directory=directory)
    advances = repository.project([Projection(cluster=W2, base=None, snapshots=[snapshot])])
    repository.begin_push(output, old=output, branches=advances)()
    return repository


def _look(repository: GitRepository) -> tuple[list[tuple[str, BranchLossKind]], list[str]]:
    """Fetch with the branches of clusters, and return what is lost and which clusters have a branch."""
    repository.fetch()
    clusters = sorted(repository.branches())
    return [(loss.branch, loss.kind) for loss in repository.tips().losses], clusters


def _set(remote: Remote, name: str, commit: str | None) -> None:
    """Make a branch beside those of clusters, or remove it (None)."""
    ref = os.fsencode(f"refs/heads/placements-by-cluster/{name}")
    change = [ref, commit.encode()] if commit else [b"-d", ref]
    subprocess.run([b"git", b"--git-dir", os.fsencode(remote.path), b"update-ref", *change], check=True)


@FOREIGN
def test_branch_of_a_person_beside_those_of_clusters_is_not_followed(
    remote: Remote, fleet: GitRepository, tmp_path: Path, name: str
) -> None:
    _set(remote, name, remote.git("rev-parse", "main"))
    for number in (2, 3):
        assert _look(fleet) == ([], ["w2"])
        _push(fleet, number)
    with GitRepository(remote.url, cache=tmp_path / "cache") as beside:
        assert _look(beside) == ([], ["w2"])
        remote.git("update-ref", "refs/heads/placements", "placements~1")
        lost = [("placements", BranchLossKind.REWOUND)]
        assert (_look(fleet), _look(beside)) == ((lost, ["w2"]), (lost, ["w2"]))
        _set(remote, name, None)
        assert (_look(fleet), _look(beside)) == ((lost, ["w2"]), (lost, ["w2"]))


@pytest.mark.parametrize("name", ["w2/mine", "w2/\udcff", "w2/a\u2028b", "w2/a\xa0b", "w2\u2028a"], ids=ascii)
def test_branch_below_that_of_a_cluster_or_named_like_it_hides_no_loss_of_that(
    remote: Remote, fleet: GitRepository, name: str
) -> None:
    _set(remote, "w2", None)
    _set(remote, name, remote.git("rev-parse", "main"))
    for _ in range(2):
        assert _look(fleet) == ([("placements-by-cluster/w2", BranchLossKind.GONE)], ["w2"])
    with pytest.raises(LostBranch):
        _push(fleet, 2)


def test_branch_of_a_cluster_is_followed_where_a_person_had_one_below_it(remote: Remote, fleet: GitRepository) -> None:
    _set(remote, "w3/mine", remote.git("rev-parse", "main"))
    assert _look(fleet) == ([], ["w2"])
    _set(remote, "w3/mine", None)
    _set(remote, "w3", remote.git("rev-parse", "placements-by-cluster/w2"))
    assert _look(fleet) == ([], ["w2", "w3"])


def test_branch_of_a_person_is_not_fetched(remote: Remote, fleet: GitRepository, tmp_path: Path) -> None:
    theirs = remote.commit("theirs", {"large.bin": "1"})
    _set(remote, "Mine", theirs)
    with GitRepository(remote.url, cache=tmp_path / "laptop") as laptop:
        assert _look(laptop) == ([], ["w2"])
        assert laptop.shelf.read([BlobId(theirs)]) == {}
    assert _look(fleet) == ([], ["w2"])
    later = remote.commit("theirs", {"large.bin": "2"})
    _set(remote, "Mine", later)
    assert _look(fleet) == ([], ["w2"])
    assert fleet.shelf.read([BlobId(later)]) == {}


def test_branch_of_a_person_within_the_output_branch_cuts_off_nothing_that_is_known(
    remote: Remote, repository: GitRepository
) -> None:
    remote.commit("main", {"fleet.yaml": "a"})
    repository.fetch()
    pushed = [_push(repository, number) for number in range(4)]
    _set(remote, "Backup", pushed[2])
    assert _look(repository) == ([], [])
    _set(remote, "Backup", None)
    remote.move("placements", None)
    remote.git("gc", "-q", "--prune=now")
    assert _look(repository) == ([("placements", BranchLossKind.GONE)], [])
    (restoration,) = repository.draft_restoration(accept=False, now=MORNING + timedelta(hours=1), person=OURS)
    assert (restoration.way, restoration.new, restoration.commits) == (RestoreWay.PUSH, pushed[-1], 4)


def test_ref_that_moves_in_the_mirror_of_the_passes_is_no_branch_of_its_own(
    remote: Remote, fleet: GitRepository, tmp_path: Path
) -> None:
    (ref,) = (tmp_path / "cache").glob(f"*/mirror.git/{cluster_refs('placements')}w2")
    lock = ref.with_name("w2.lock")
    lock.write_text(ref.read_text())
    with GitRepository(remote.url, cache=tmp_path / "cache") as beside:
        assert _look(beside) == ([], ["w2"])
        lock.unlink()
        assert _look(beside) == ([], ["w2"])


def test_known_ref_has_a_name_that_overspill_gives(tmp_path: Path) -> None:
    known = [output_ref("refs/heads/team/a"), f"{cluster_refs('team/a')}w2"]
    others = [f"{known[0]}.lock", f"{known[0]}/b", f"{known[1]}.lock", f"{known[1]}/b", f"{cluster_refs('a')}\udcff"]
    assert [ref for ref in (*known, *others, "refs/overspill/source") if is_known_ref(ref)] == known
    lines = "".join(f"{'1' * 40} {ref}\n" for ref in (*others, *known))
    (tmp_path / "packed-refs").write_bytes(os.fsencode(lines))
    assert known_refs(tmp_path) == [(ref, CommitId("1" * 40)) for ref in known]


def test_known_refs_are_read_while_git_removes_directories_beside_them(tmp_path: Path) -> None:
    ref, removed = tmp_path / KNOWN / "output" / "placements", tmp_path / KNOWN / "clusters" / "placements" / "x"
    removed.parent.mkdir(parents=True)
    ref.parent.mkdir()
    ref.write_text("1" * 40)
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            removed.mkdir()
            removed.rmdir()

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(2000):
            assert known_refs(tmp_path) == [(output_ref("placements"), CommitId("1" * 40))]
    finally:
        ended.set()
        other.join()


@pytest.mark.parametrize("begun", ["main", "placements", "placements-by-cluster/w2"])
def test_branch_of_a_person_by_a_name_that_a_cluster_may_have_is_its_owners(
    remote: Remote, fleet: GitRepository, begun: str
) -> None:
    _set(remote, "scratch", remote.git("rev-parse", begun))
    assert _look(fleet) == ([], ["scratch", "w2"])
    assert {cluster for cluster, branch in fleet.branches().items() if branch.is_foreign} == {"scratch"}
    _set(remote, "scratch", remote.commit("theirs", {"notes.md": "mine\n"}))  # forced
    assert _look(fleet) == ([], ["scratch", "w2"])
    _set(remote, "scratch", None)
    assert _look(fleet) == ([], ["w2"])
    _push(fleet, 2)


def test_branch_of_a_cluster_that_has_nothing_left_is_not_taken_back_to_what_it_had(
    remote: Remote, fleet: GitRepository
) -> None:
    base = fleet.branches()[W2]
    message = f"w2\n\nOverspill-Action: Revert\nOverspill-Output: {fleet.tips().output}\n"
    snapshot = BranchCommit(message=message, author=OURS, at=MORNING + timedelta(minutes=2), directory=None)
    advances = fleet.project([Projection(cluster=W2, base=base, snapshots=[snapshot])])
    output = fleet.tips().output
    fleet.begin_push(output, old=output, branches=advances)()
    _set(remote, "w2", base.commit)
    assert _look(fleet) == ([("placements-by-cluster/w2", BranchLossKind.REWOUND)], ["w2"])
    _set(remote, "w2", None)
    assert _look(fleet) == ([], [])
