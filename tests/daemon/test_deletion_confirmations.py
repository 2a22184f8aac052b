"""A confirmation counts wherever it stands between the deletion and now, and for no other deletion."""

from __future__ import annotations

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.history import FIRST_STEP
from reconciler.core.decide.state.pass_input import MassDeletion
from reconciler.daemon.deletion_confirmations import DeletionConfirmations
from reconciler.model.bounds import SOURCE_HISTORY
from reconciler.model.ids import ClusterName, CommitId, WorkloadId
from reconciler.model.policy import Desired
from tests.builders.passes import SOURCE_FILES

NAMES = ("one", "two", "three")
TEMPLATES = {
    f"templates/{name}.yaml": SOURCE_FILES["template.yaml"].replace("name: vllm", f"name: {name}") for name in NAMES
}
GONE = dict.fromkeys(TEMPLATES)
LOST = MassDeletion(workloads=tuple(WorkloadId("llm", name) for name in NAMES), left=1)
TRAILER = "Overspill-Confirm: deletion"
SIGNED = f"Retire models\n\n{TRAILER}\n"
ANN = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")


def merge(remote, into: str, branch: str, message: str = "Merge pull request #12") -> None:
    """Merge a branch as a host does, where nothing but the branch has changed a file."""
    tip, other = remote.tip(into), remote.tip(branch)
    tree = remote.git("merge-tree", "--write-tree", tip, other).splitlines()[0]
    remote.move(into, CommitId(remote.git(*ANN, "commit-tree", "-p", tip, "-p", other, "-m", message, tree)))


def by_merge_commit(remote) -> None:
    remote.git("branch", "pr", "main")
    remote.commit("pr", GONE, message=SIGNED)
    remote.commit("main", {"README.md": "meanwhile"})
    merge(remote, "main", "pr")


def by_merge_of_a_merge(remote) -> None:
    remote.git("branch", "pr", "main")
    remote.git("branch", "train", "main")
    remote.commit("pr", {"notes.md": "x"}, message=SIGNED)
    remote.commit("pr", GONE)
    remote.commit("train", {"other.md": "x"})
    merge(remote, "train", "pr")
    merge(remote, "main", "train", "Merge train")


def by_squash(remote) -> None:
    body = f"* Retire models\n\n{TRAILER}\n\n* fix a typo\n\n---------\n\nCo-authored-by: Ann <ann@example.com>\n"
    remote.commit("main", GONE, message=f"Retire models (#12)\n\n{body}")


def by_squash_of_git(remote) -> None:
    remote.commit("main", GONE, message=f"Squashed commit\n\ncommit 1234\nAuthor: Ann\n\n    Retire\n\n    {TRAILER}\n")


def by_rebase(remote) -> None:
    remote.commit("main", {"templates/one.yaml": None})
    remote.commit("main", {"templates/two.yaml": None, "templates/three.yaml": None}, message=SIGNED)


def with_commits_behind(remote) -> None:
    remote.commit("main", GONE, message=SIGNED)
    for number in range(3):
        remote.commit("main", {"README.md": str(number)})


def after_the_deletion(remote) -> None:
    remote.commit("main", GONE)
    remote.commit("main", {"README.md": "x"})
    remote.commit("main", {"README.md": "y"}, message=f"Yes\n\n{TRAILER}\r\n\nSigned-off-by: Ann <ann@example.com>\n")


def long_ago(remote) -> None:
    remote.commit("main", GONE, message=SIGNED)
    for number in range(FIRST_STEP + 3):
        remote.commit("main", {"README.md": str(number)})


def from_a_branch_that_left_long_before(remote) -> None:
    remote.git("branch", "pr", "main")
    for number in range(FIRST_STEP + 3):
        remote.commit("main", {"README.md": str(number)})
    remote.commit("pr", GONE, message=SIGNED)
    merge(remote, "main", "pr")


def before_the_deletion(remote) -> None:
    remote.commit("main", {"README.md": "x"}, message=SIGNED)
    remote.commit("main", GONE)


def before_a_later_part_of_it(remote) -> None:
    remote.commit("main", {"templates/one.yaml": None}, message=SIGNED)
    remote.commit("main", {"templates/two.yaml": None, "templates/three.yaml": None})


def of_a_deletion_that_was_taken_back(remote) -> None:
    remote.commit("main", GONE, message=SIGNED)
    remote.commit("main", TEMPLATES, message='Revert "Retire models"\n')
    remote.commit("main", GONE)


def on_a_branch_that_was_merged_before(remote) -> None:
    remote.git("branch", "pr", "main")
    remote.commit("pr", {"notes.md": "x"}, message=SIGNED)
    merge(remote, "main", "pr")
    remote.commit("main", GONE)


def in_a_quotation(remote) -> None:
    remote.commit("main", GONE, message=f"Retire\n\n> {TRAILER}\n\nOverspill-Confirm: deletions\n")


def as_the_subject(remote) -> None:
    remote.commit("main", GONE, message=f"{TRAILER}\n")


def answer(remote, tmp_path, deletion: MassDeletion = LOST) -> bool:
    """Ask from an empty disk, with the newest commit alone."""
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        tip = repository.fetch().source
        assert tip is not None
        confirmations = DeletionConfirmations(repository)
        first = confirmations.confirmed(Desired(commit=tip), deletion)
        assert confirmations.confirmed(Desired(commit=tip), deletion) is first
        return first


@pytest.mark.parametrize(
    "arrives",
    [
        by_merge_commit,
        by_merge_of_a_merge,
        by_squash,
        by_squash_of_git,
        by_rebase,
        with_commits_behind,
        after_the_deletion,
        long_ago,
        from_a_branch_that_left_long_before,
    ],
    ids=lambda arrives: arrives.__name__,
)
def test_a_confirmation_counts_however_it_reached_the_branch(remote, tmp_path, arrives):
    remote.commit("main", SOURCE_FILES | TEMPLATES)
    arrives(remote)
    assert answer(remote, tmp_path)


@pytest.mark.parametrize(
    "arrives",
    [
        before_the_deletion,
        before_a_later_part_of_it,
        of_a_deletion_that_was_taken_back,
        on_a_branch_that_was_merged_before,
        in_a_quotation,
        as_the_subject,
    ],
    ids=lambda arrives: arrives.__name__,
)
def test_what_confirms_another_deletion_or_none_does_not_count(remote, tmp_path, arrives):
    remote.commit("main", SOURCE_FILES | TEMPLATES)
    arrives(remote)
    assert not answer(remote, tmp_path)


def test_the_deletion_of_a_policy_and_of_clusters_is_confirmed_as_well(remote, tmp_path):
    remote.commit("main", SOURCE_FILES)
    remote.commit("main", {"clusters.yaml": None}, message=SIGNED)
    remote.commit("main", {"README.md": "x"})
    lost = MassDeletion(workloads=(), left=0, clusters=tuple(map(ClusterName, ("worker-1", "worker-2"))))
    assert answer(remote, tmp_path, lost)
    remote.commit("main", {"policies.yaml": None})
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        tip = repository.fetch().source
        desired = Desired(commit=tip, templates={WorkloadId("llm", "vllm"): None})
        lost = MassDeletion(workloads=(WorkloadId("llm", "vllm"),), left=0)
        assert not DeletionConfirmations(repository).confirmed(desired, lost)
        remote.commit("main", {"README.md": "y"}, message=SIGNED)
        desired = Desired(commit=repository.fetch().source, templates=desired.templates)
        assert DeletionConfirmations(repository).confirmed(desired, lost)


def test_a_branch_that_was_replaced_is_confirmed_by_its_tip_alone(remote, tmp_path):
    remote.commit("main", {"README.md": "another repository"}, message=SIGNED)
    assert answer(remote, tmp_path)
    remote.commit("main", {"README.md": "x"})
    assert not answer(remote, tmp_path)


def test_a_shallow_remote_answers_by_what_it_has(remote, tmp_path):
    remote.commit("main", SOURCE_FILES | TEMPLATES)
    with_commits_behind(remote)
    (tmp_path / "shallow").mkdir()
    remote.git("clone", "-q", "--bare", "--depth=2", f"file://{remote.url}", str(tmp_path / "shallow" / "fleet.git"))
    with GitRepository(str(tmp_path / "shallow" / "fleet.git"), cache=tmp_path / "cache") as repository:
        desired = Desired(commit=repository.fetch().source)
        assert not DeletionConfirmations(repository).confirmed(desired, LOST)


def test_the_search_for_a_deletion_ends_at_its_bound(remote, tmp_path):
    remote.commit("main", {"a.md": "1"})
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        asked: list[int | None] = []
        section = repository.section

        class Counted:
            def section(self, tip, *, since, limit):
                asked.append(limit)
                return section(tip, since=since, limit=limit)

            log = staticmethod(repository.log)
            read = staticmethod(repository.read)

        tip = repository.fetch().source
        assert not DeletionConfirmations(Counted()).confirmed(Desired(commit=tip), LOST)
        assert max(limit or 0 for limit in asked) <= SOURCE_HISTORY.most
