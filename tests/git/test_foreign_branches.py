"""Branches of people beside those of clusters, whatever they are called, are no business of Overspill."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.known_refs import cluster_refs, is_known_ref, known_refs, output_ref
from reconciler.errors import LostBranch
from reconciler.model.branch_loss import BranchLossKind
from reconciler.model.ids import ClusterName, CommitId
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


def test_branch_below_that_of_a_cluster_hides_no_loss_of_that(remote: Remote, fleet: GitRepository) -> None:
    _set(remote, "w2", None)
    _set(remote, "w2/mine", remote.git("rev-parse", "main"))
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
