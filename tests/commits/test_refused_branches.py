"""A branch of a cluster that the remote refuses to move costs no other branch anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository, push, refused_branches
from reconciler.adapters.git.branches import RemoteBranches
from reconciler.adapters.git.push import RefUpdate, RefusedMove
from reconciler.errors import InvalidInput, LostBranch, Transient
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.tree import branch_of
from tests.builders.passes import BRANCHES, SOURCE_FILES, Passes
from tests.builders.remote import Remote
from tests.fakes.memory_repository import MemoryRepository
from tests.fakes.mortal_repository import Killed

FILES = {**SOURCE_FILES, **BRANCHES}
W1, W2, W3 = (branch_of("placements", ClusterName(f"worker-{number}")) for number in (1, 2, 3))
WAYS = ("update", "pre-receive")
"""Hooks of hosts: GitHub judges each branch, GitLab and Gitea the push as a whole."""


@dataclass
class Host:
    """A remote that refuses some branches, and keeps a list of all that it was asked for."""

    remote: Remote
    way: str = "update"

    def refuse(self, *branches: str) -> None:
        refused = "|".join(f"refs/heads/{branch}" for branch in branches) or "none"
        judge = f"case $ref in {refused}) echo hands off >&2; exit 1;; esac"
        each, whole = (judge if self.way == way else "" for way in WAYS)
        if self.way == "reference-transaction":
            self._hook(self.way, f"[ $1 = prepared ] || exit 0\nwhile read old new ref; do\n{judge}\ndone")
        self._hook("update", f"ref=$1\n{each}")
        received = self.remote.path / "received"
        self._hook(
            "pre-receive",
            f"cat > {received}\necho $(cut -d' ' -f3 {received}) >> {self._log}\n"
            f"while read old new ref; do\n:\n{whole}\ndone < {received}",
        )

    def pushes(self) -> list[set[str]]:
        """Return the branches of each push since the last look, whatever became of it."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [{ref.removeprefix("refs/heads/") for ref in line.split()} for line in lines]

    def tips(self, *branches: str) -> list[str | None]:
        return [self.remote.tip(branch) for branch in branches]

    def is_right(self, *clusters: str) -> bool:
        """Return whether the branches of clusters hold what the output branch has for them."""
        return all(
            self.remote.files(branch_of("placements", ClusterName(cluster)))
            == self.remote.files("placements", f"clusters/{cluster}")
            for cluster in clusters
        )

    @property
    def _log(self) -> Path:
        return self.remote.path / "asked"

    def _hook(self, name: str, script: str) -> None:
        hook = self.remote.path / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{script}\n")
        hook.chmod(0o755)


@dataclass
class Time:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """Set the clock of the pauses by hand."""
    clock = Time()
    monkeypatch.setattr(refused_branches, "monotonic", clock)
    return clock


@pytest.fixture(params=WAYS)
def host(request: pytest.FixtureRequest, remote: Remote) -> Host:
    remote.commit("main", FILES)
    return Host(remote, request.param)


@pytest.fixture
def passes(host: Host, repository: GitRepository) -> Passes:
    """Be a daemon over a fleet whose branches have begun."""
    passes = Passes(repository)
    passes.run()
    return passes


def next_pass(passes: Passes, missing: int, *, after: float = 1) -> list[str]:
    """Run a pass, and return the lines of its problems."""
    passes.missing = missing
    passes.advance(after)
    return [str(problem) for problem in passes.run_once().problems]


def test_refused_branch_of_a_cluster_keeps_no_burst_from_beginning_or_ending(
    host: Host, passes: Passes, time: Time
) -> None:
    stood = host.tips("placements", W2, W3)
    host.refuse(W2)
    passes.missing = 6
    outcome = passes.run_once()
    (told,) = outcome.problems
    assert told.path == f"branch {W2}"
    assert f"pushing {W2} to " in told.message
    assert "hands off" in told.message
    assert "(try: " in told.message
    assert [advance.cluster for advance in outcome.branches] == ["worker-3"]
    assert [tip == before for tip, before in zip(host.tips("placements", W2, W3), stood, strict=True)] == [
        False,
        True,
        False,
    ]
    host.pushes()
    host.remote.commit("placements", {"clusters/worker-2/mine.yaml": "kind: Mine\n"}, at=passes.moment)
    assert next_pass(passes, 0, after=700) == [str(told)], "a lasting refusal is one line in the log"
    assert passes.placements() == []
    assert host.pushes() == [{"placements", W3}], "the refused branch waits for the end of its pause"
    assert host.is_right("worker-1", "worker-3")


def test_refusal_of_a_branch_that_lacks_nothing_any_more_is_forgotten(host: Host, passes: Passes) -> None:
    stood = host.tips(W1, W2, W3)
    host.refuse(W2)
    assert len(next_pass(passes, 3)) == 1
    assert next_pass(passes, 0, after=700) == []
    assert host.tips(W1, W2, W3) == stood


def test_refused_branch_is_tried_apart_after_its_pause_and_brought_to_the_output_branch(
    host: Host, passes: Passes, time: Time
) -> None:
    host.refuse(W2)
    (told,) = next_pass(passes, 3)
    host.pushes()
    for _ in range(2):
        time.now += refused_branches.REFUSAL_PAUSE.total_seconds() - 1
        assert next_pass(passes, 3) == [told]
        assert host.pushes() == []
        time.now += 1
        assert next_pass(passes, 6) == [told]
        assert host.pushes()[-1] == {W2}
        host.pushes()
    assert host.is_right("worker-1", "worker-3")
    host.refuse()
    time.now += refused_branches.REFUSAL_PAUSE.total_seconds()
    passes.advance(1)
    outcome = passes.run_once()
    assert outcome.problems == ()
    assert [advance.cluster for advance in outcome.branches] == ["worker-2"]
    assert [event.line for event in outcome.events] == ["follow(worker-2): brought to where the output branch stands"]
    assert host.is_right("worker-1", "worker-2", "worker-3")


def test_two_of_three_branches_are_refused_and_the_third_moves(host: Host, passes: Passes) -> None:
    host.refuse(W1, W3)
    host.remote.commit(
        "placements", {f"clusters/{name}/note.yaml": "kind: Note\n" for name in ("worker-1", "worker-2", "worker-3")}
    )
    passes.advance(1)
    outcome = passes.run_once()
    assert sorted(problem.path for problem in outcome.problems) == [f"branch {W1}", f"branch {W3}"]
    assert [event.clusters for event in outcome.events] == [("worker-2",)]
    assert host.is_right("worker-2")
    assert not host.is_right("worker-1")
    assert not host.is_right("worker-3")


def test_all_branches_of_clusters_are_refused_and_the_output_branch_moves(host: Host, passes: Passes) -> None:
    host.refuse(W1, W2, W3)
    assert len(next_pass(passes, 6)) == 2
    assert len(passes.placements()) == 2
    host.pushes()
    assert next_pass(passes, 0, after=700) == [], "no branch has news of a burst that has ended"
    assert passes.placements() == []
    assert host.pushes() == [{"placements"}]


def test_refused_output_branch_is_an_error_and_no_branch_moves(host: Host, passes: Passes) -> None:
    stood = host.tips("placements", W1, W2, W3)
    for refused in (("placements",), ("placements", W2)):
        host.refuse(*refused)
        with pytest.raises(InvalidInput, match=r"pushing placements to .*hands off"):
            next_pass(passes, 6)
        assert host.tips("placements", W1, W2, W3) == stood
    host.refuse(W2)
    assert len(next_pass(passes, 6)) == 1


def test_branch_that_only_lacks_a_correction_is_refused_alone(host: Host, passes: Passes) -> None:
    next_pass(passes, 3)
    host.remote.commit(W2, {"README.md": "mine"})
    host.refuse(W2)
    stood = host.tips("placements", W1, W2, W3)
    passes.advance(1)
    outcome = passes.run_once()
    assert (len(outcome.problems), outcome.branches, outcome.events) == (1, (), ())
    assert host.tips("placements", W1, W2, W3) == stood


def test_daemon_that_dies_between_the_two_pushes_leaves_what_the_next_one_goes_on_with(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> Mapping[str, RefusedMove]:
        raise Killed

    with GitRepository(host.remote.url, cache=tmp_path / "own") as repository:
        passes = Passes(repository)
        passes.run()
        host.refuse(W2)
        stood = host.tips(W2, W3)
        with monkeypatch.context() as patch:
            patch.setattr(push, "carry_out_each", die)
            with pytest.raises(Killed):
                next_pass(passes, 6)
        assert host.tips(W2, W3) == stood
    assert host.remote.files("placements", "clusters/worker-3")
    for refused in ((W2,), ()):
        host.refuse(*refused)
        with GitRepository(host.remote.url, cache=tmp_path / "own") as repository:
            later = Passes(repository)
            later.moment = passes.moment
            repository.fetch()
            assert len(next_pass(later, 6)) == len(refused)
            assert sum(placement.replicas for placement in later.placements()) == 6
        assert host.is_right("worker-1", "worker-3")
    assert host.is_right("worker-2")


def test_lost_branch_stops_all_writes_while_another_one_is_refused(host: Host, passes: Passes) -> None:
    host.refuse(W2)
    next_pass(passes, 6)
    host.remote.move(W3, None)
    stood = host.tips("placements", W1, W2, W3)
    with pytest.raises(LostBranch, match=W3):
        next_pass(passes, 0, after=700)
    assert host.tips("placements", W1, W2, W3) == stood


def test_refusal_is_forgotten_with_the_branches_of_clusters(host: Host, passes: Passes) -> None:
    host.refuse(W2)
    assert len(next_pass(passes, 3)) == 1
    host.remote.commit("main", {"fleet.yaml": SOURCE_FILES["fleet.yaml"]})
    next_pass(passes, 3)
    assert next_pass(passes, 3) == []


def test_branch_in_the_way_of_a_new_one_is_named_and_keeps_no_other_from_moving(
    remote: Remote, repository: GitRepository, time: Time
) -> None:
    remote.commit("main", FILES)
    remote.commit(f"{W3}/mine", {"a": "1"})
    passes = Passes(repository)
    lines = next_pass(passes, 6)
    assert [line.partition(": ")[0] for line in lines] == [f"branch {W3}"]
    assert f"rename or remove branch '{W3}/mine'" in lines[0]
    assert sum(placement.replicas for placement in passes.placements()) == 6
    assert Host(remote).is_right("worker-1", "worker-2")
    remote.move(f"{W3}/mine", None)
    time.now += refused_branches.REFUSAL_PAUSE.total_seconds()
    assert next_pass(passes, 6) == []
    assert Host(remote).is_right("worker-1", "worker-2", "worker-3")


def test_branch_that_moves_between_the_two_pushes_is_left_to_the_next_pass(
    remote: Remote, repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(remote)
    remote.commit("main", FILES)
    passes = Passes(repository)
    passes.run()
    host.refuse(W2)
    each = push.carry_out_each

    def edit(branches: RemoteBranches, moves: Sequence[RefUpdate]) -> Mapping[str, RefusedMove]:
        monkeypatch.undo()
        remote.commit(W3, {"README.md": "mine"})
        return each(branches, moves)

    monkeypatch.setattr(push, "carry_out_each", edit)
    before = remote.tip("placements")
    assert len(next_pass(passes, 6)) == 1
    assert remote.tip("placements") != before
    assert len(next_pass(passes, 6)) == 1
    assert host.is_right("worker-1", "worker-3")


def test_refused_branch_that_a_person_has_moved_fails_no_pass_and_is_brought_to_the_output_branch_by_the_next(
    remote: Remote, repository: GitRepository, time: Time
) -> None:
    host = Host(remote)
    remote.commit("main", FILES)
    passes = Passes(repository)
    passes.run()
    host.refuse(W2)
    (told,) = next_pass(passes, 3)
    host.refuse()
    time.now += refused_branches.REFUSAL_PAUSE.total_seconds()
    tip, theirs = remote.tip(W2), remote.commit(W2, {"README.md": "mine"})
    remote.move(W2, tip)
    done = remote.path / "moved"
    update = f'env -i PATH="$PATH" git --git-dir={remote.path} update-ref refs/heads/{W2} {theirs}'
    script = f"grep -q {W2}$ || exit 0\ntest -e {done} && exit 0\ntouch {done}\n{update}"
    (remote.path / "hooks" / "pre-receive").write_text(f"#!/bin/sh\n{script}\n")
    assert next_pass(passes, 6) == [told]
    assert sum(placement.replicas for placement in passes.placements()) == 6
    assert remote.tip(W2) == theirs
    assert next_pass(passes, 6) == []
    assert host.is_right("worker-1", "worker-2", "worker-3")


@pytest.mark.parametrize(
    ("words", "kind"),
    [("a rate limit: try again later", Transient), ("the database is currently unavailable", None)],
)
def test_fault_that_passes_by_itself_pauses_one_branch_for_less_time_and_a_rate_limit_the_pass(
    remote: Remote, repository: GitRepository, time: Time, words: str, kind: type[Exception] | None
) -> None:
    host = Host(remote)
    remote.commit("main", FILES)
    passes = Passes(repository)
    passes.run()
    host.refuse(W2)
    hook = remote.path / "hooks" / "update"
    hook.write_text(hook.read_text().replace("hands off", f"'{words}'"))
    if kind is not None:
        with pytest.raises(kind, match=words):
            next_pass(passes, 3)
        return
    assert len(next_pass(passes, 3)) == 1
    host.refuse()
    time.now += refused_branches.FAULT_PAUSE.total_seconds()
    assert next_pass(passes, 3) == []
    assert host.is_right("worker-2")


def test_refused_branches_among_many_are_found_by_few_pushes(remote: Remote, repository: GitRepository) -> None:
    tip = remote.commit("main", {"fleet.yaml": "a"})
    repository.fetch()
    host = Host(remote, "pre-receive")
    names = [branch_of("refs/heads/placements", ClusterName(f"w{number}")) for number in range(100)]
    host.refuse(names[17].removeprefix("refs/heads/"))
    moves = [RefUpdate(branch=name, old=None, new=tip) for name in names]
    assert push.carry_out_each(repository._branches, moves).keys() == {names[17]}
    assert len(host.pushes()) <= 2 * 7 + 1
    assert sum(remote.tip(name.removeprefix("refs/heads/")) == tip for name in names) == 99

    names = [branch_of("refs/heads/placements", ClusterName(f"x{number}")) for number in range(100)]
    moves = [RefUpdate(branch=name, old=None, new=tip) for name in names]
    host.refuse(*(name.removeprefix("refs/heads/") for name in names))
    assert push.carry_out_each(repository._branches, moves).keys() == {*names}
    assert len(host.pushes()) <= push._MOST_PUSHES


def test_branches_that_are_refused_as_a_whole_wait_for_a_shorter_time(
    remote: Remote, repository: GitRepository, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(remote, "pre-receive")
    remote.commit("main", FILES)
    passes = Passes(repository)
    passes.run()
    host.refuse(W2)
    with monkeypatch.context() as patch:
        patch.setattr(push, "_MOST_PUSHES", 1)
        assert len(next_pass(passes, 6)) == 2
    assert not host.is_right("worker-3")
    time.now += refused_branches.FAULT_PAUSE.total_seconds()
    assert [line.partition(": ")[0] for line in next_pass(passes, 6)] == [f"branch {W2}"]
    assert host.is_right("worker-3")
    host.pushes()
    time.now += refused_branches.FAULT_PAUSE.total_seconds()
    assert len(next_pass(passes, 6)) == 1
    assert host.pushes() == []


@pytest.fixture
def aborting(remote: Remote) -> Host:
    """Return a host whose hook ends the server, so that it names no branch."""
    remote.commit("main", FILES)
    return Host(remote, "reference-transaction")


def test_branch_whose_push_a_hook_aborts_without_naming_it_costs_the_others_nothing(
    aborting: Host, repository: GitRepository, time: Time
) -> None:
    passes = Passes(repository)
    passes.run()
    stood = aborting.tips("placements", W1, W2, W3)
    aborting.refuse(W2)
    (line,) = next_pass(passes, 6)
    assert line.startswith(f"branch {W2}: the remote refuses it")
    assert "hands off" in line
    assert "the reference-transaction hook of the host asks for" in line
    assert sum(placement.replicas for placement in passes.placements()) == 6
    assert [tip == before for tip, before in zip(aborting.tips("placements", W1, W2, W3), stood, strict=True)] == [
        False,
        True,  # worker-1 is the cluster that bursts
        True,
        False,
    ]
    assert next_pass(passes, 0, after=700) == []
    assert passes.placements() == []
    aborting.refuse("placements")
    with pytest.raises(Transient, match=r"pushing placements to .*hands off"):
        next_pass(passes, 6)
    aborting.refuse()
    time.now += refused_branches.FAULT_PAUSE.total_seconds()
    assert next_pass(passes, 6) == []
    assert aborting.is_right("worker-1", "worker-2", "worker-3")


def test_branch_whose_push_a_hook_aborts_is_found_though_its_neighbours_have_moved(
    aborting: Host, repository: GitRepository
) -> None:
    repository.fetch()
    tip = aborting.remote.tip("main")
    assert tip is not None
    names = [branch_of("refs/heads/placements", ClusterName(f"w{number}")) for number in range(20)]
    aborting.refuse(names[17].removeprefix("refs/heads/"))
    moves = [RefUpdate(branch=name, old=None, new=CommitId(tip)) for name in names]
    refused = push.carry_out_each(repository._branches, moves)
    assert {name: move.is_of_all for name, move in refused.items()} == {names[17]: False}
    assert sum(aborting.remote.tip(name.removeprefix("refs/heads/")) == tip for name in names) == 19


@pytest.fixture(params=["git", "memory"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Passes, Host | MemoryRepository]]:
    """Open a daemon on a repository in git and on the one in memory, which have to agree."""
    if request.param == "memory":
        memory = MemoryRepository(FILES)
        yield Passes(memory), memory
        return
    remote = Remote(tmp_path / "contract.git")
    remote.commit("main", FILES)
    with GitRepository(remote.url, cache=tmp_path / "contract") as repository:
        yield Passes(repository), Host(remote)


def test_repository_in_memory_refuses_branches_as_git_does(
    either: tuple[Passes, Host | MemoryRepository], time: Time
) -> None:
    passes, host = either

    def refuse(*clusters: str) -> None:
        if isinstance(host, MemoryRepository):
            host.refuses = {*map(ClusterName, clusters)}
        else:
            host.refuse(*(branch_of("placements", ClusterName(cluster)) for cluster in clusters))

    passes.run()
    refuse("worker-2")
    passes.missing = 6
    passes.advance(1)
    outcome = passes.run_once()
    assert [advance.cluster for advance in outcome.branches] == ["worker-3"]
    assert [refusal.branch for refusal in passes.repository.tips().refused] == [W2]
    assert [problem.path for problem in outcome.problems] == [f"branch {W2}"]
    refuse()
    time.now += refused_branches.REFUSAL_PAUSE.total_seconds()
    passes.advance(1)
    outcome = passes.run_once()
    assert [advance.cluster for advance in outcome.branches] == ["worker-2"]
    assert (outcome.problems, passes.repository.tips().refused) == ((), ())
