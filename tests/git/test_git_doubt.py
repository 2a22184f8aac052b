"""A push that outlived its daemon moves the mirror's ref behind everybody's back."""

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.errors import Conflict
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
    repository._branches.local(["fetch", "-q", remote.url, "+refs/heads/placements:refs/overspill/output"])
    assert repository.fetch() == before
    mine = Commit(message="mine\n", author=OURS, at=MORNING, writes={"mine": b"1"})
    (made,) = repository.write(before.output, [mine])
    with pytest.raises(Conflict):
        repository.begin_push(made, old=before.output)()
    assert repository.fetch().output == newer
