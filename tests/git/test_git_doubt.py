"""A push that outlived its daemon moves the mirror's ref behind everybody's back."""

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.errors import Conflict, InvalidInput
from reconciler.model.tree import Commit
from tests.builders.remote import MORNING, Remote
from tests.fakes.memory_repository import OURS


def test_a_ref_that_an_orphaned_push_moved_is_noticed_after_one_conflict(
    remote: Remote, repository: GitRepository
) -> None:
    remote.commit("main", {"fleet.yaml": "a"})
    remote.commit("placements", {"README.md": "a"})
    before = repository.fetch()
    newer = remote.commit("placements", {"README.md": "b"})
    # What git push of a killed daemon does last: the mirror's own ref follows the remote's.
    repository._branches.local(
        ["fetch", "-q", remote.url, "+refs/heads/placements:refs/overspill/known/output/placements"]
    )
    assert repository.fetch() == before
    mine = Commit(message="mine\n", author=OURS, at=MORNING, writes={"mine": b"1"})
    (made,) = repository.write(before.output, [mine])
    with pytest.raises(Conflict):
        repository.begin_push(made, old=before.output)()
    assert repository.fetch().output == newer


@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
@pytest.mark.parametrize("branch", ["placements", "main"])
def test_a_branch_that_points_to_no_commit_is_one_clear_error_until_it_is_mended(
    remote: Remote, repository: GitRepository, kind: str, branch: str
) -> None:
    for name in ("main", "placements"):
        remote.commit(name, {"README.md": "a"})
    before = repository.fetch()
    objects = {
        "blob": remote.git("hash-object", "-w", "--stdin", stdin=b"x"),
        "tree": remote.git("rev-parse", "main^{tree}"),
        "tag": remote.git("mktag", stdin=_TAG % remote.git("rev-parse", "main").encode()),
    }
    ref = remote.path / "refs" / "heads" / branch
    commit = ref.read_text()
    ref.write_text(objects[kind] + "\n")
    message = f"its branch {branch} points to a {kind}, not to a commit"
    for _ in range(2):
        with pytest.raises(InvalidInput, match=message):
            repository.fetch()
    ref.write_text(commit)
    assert repository.fetch() == before


_TAG = b"object %s\ntype commit\ntag v1\ntagger A <a@example.com> 1700000000 +0000\n\nx\n"
