"""A branch for each cluster: its directory alone, in the same push, and right again whatever was done to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository, refused_branches
from reconciler.core.commits.cluster_branches import catch_up_message
from reconciler.core.decide.decide import sweep
from reconciler.daemon.reconcile import reconcile_once
from reconciler.daemon.steer import carry_out, draft_from_git, draft_sweep
from reconciler.errors import Conflict, InvalidInput, LostBranch
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.tree import Advance, branch_of
from tests.builders.passes import BRANCHES, SOURCE_FILES, Passes
from tests.builders.remote import Remote

OFF = SOURCE_FILES["fleet.yaml"]
ON = BRANCHES["fleet.yaml"]
WORKERS = ("worker-1", "worker-2", "worker-3")
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def of(cluster: str) -> str:
    return branch_of("placements", cluster)


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Passes:
    """Be a daemon over a fleet that has the setting on."""
    remote.commit("main", {**SOURCE_FILES, "fleet.yaml": ON})
    return Passes(repository)


@pytest.fixture
def pushes(remote: Remote) -> Iterator[Callable[[], list[set[str]]]]:
    """Tell which branches each push since has moved, as the remote saw it."""
    log = remote.path / "pushes"
    _hook(remote, "post-receive", f"while read old new ref; do printf '%s ' $ref >> {log}; done; echo >> {log}")

    def seen() -> list[set[str]]:
        lines = log.read_text().splitlines() if log.exists() else []
        return [{ref.removeprefix("refs/heads/") for ref in line.split()} for line in lines]

    return seen


def _hook(remote: Remote, name: str, script: str) -> None:
    hook = remote.path / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def branches(remote: Remote) -> dict[str, str]:
    """List the branches of clusters with their trees."""
    listed = remote.git("for-each-ref", "--format=%(refname:lstrip=3) %(tree)", f"refs/heads/{of('')}")
    return dict(line.split() for line in listed.splitlines())


def assert_right(remote: Remote) -> None:
    """Each branch of a cluster holds that cluster's directory of the output branch, at the same path, and no more."""
    for cluster in branches(remote):
        assert remote.files(of(cluster)) == remote.files("placements", f"clusters/{cluster}"), cluster


def burst(passes: Passes, missing: int = 3) -> None:
    passes.missing = missing
    passes.run()
    assert passes.placements()


def test_existing_fleet_gets_a_branch_for_each_cluster_at_the_next_pass(
    remote: Remote, repository: GitRepository, pushes: Callable[[], list[set[str]]]
) -> None:
    remote.commit("main", SOURCE_FILES)
    passes = Passes(repository)
    burst(passes, 6)
    assert branches(remote) == {}
    before = remote.tip("placements")
    remote.commit("main", {"fleet.yaml": ON})
    outcome = passes.run()
    assert outcome.commits == ()
    assert branches(remote).keys() == {*WORKERS}
    assert branches(remote)["worker-1"] == EMPTY
    assert len(remote.files(of("worker-2"))) == len(remote.files(of("worker-3"))) > 2
    assert_right(remote)
    assert remote.tip("placements") == before
    assert pushes()[-1] == {of(cluster) for cluster in WORKERS}
    (subject,) = remote.subjects(of("worker-2"))
    assert subject == f"start(worker-2): the output branch at {before[:12] if before else ''}"


def test_a_burst_is_the_same_commit_on_the_branch_of_its_cluster_and_no_other_moves(
    remote: Remote, passes: Passes, pushes: Callable[[], list[set[str]]]
) -> None:
    passes.run()
    burst(passes)
    assert pushes()[-1] == {"placements", of("worker-2")}
    assert_right(remote)
    ours, theirs = (remote.git("log", "-1", "--format=%B", name) for name in ("placements", of("worker-2")))
    words, _, branch = ours.rstrip().rpartition("\n")
    assert branch == "Overspill-Branch: placements"
    assert theirs == f"{words}\nOverspill-Output: {remote.tip('placements')}\nOverspill-Branch: {of('worker-2')}\n"
    people = "--format=%an %ae %at %cn %ce %ct"
    assert remote.git("log", "-1", people, of("worker-2")) == remote.git("log", "-1", people, "placements")


def test_a_pass_of_many_commits_is_one_push_and_each_branch_gets_its_own(
    remote: Remote, passes: Passes, pushes: Callable[[], list[set[str]]]
) -> None:
    passes.run()
    passes.missing = 6
    outcome = passes.run_once()
    assert len(outcome.commits) == 2
    assert pushes()[-1] == {"placements", of("worker-2"), of("worker-3")}
    assert [remote.subjects(of(name))[0] for name in WORKERS[1:]] == [
        "burst(llm/vllm): 4 replicas on worker-2 for 10m",
        "burst(llm/vllm): 2 replicas on worker-3 for 10m",
    ]
    assert [len(remote.subjects(of(name))) for name in WORKERS] == [1, 2, 2]
    assert_right(remote)


def test_the_first_pass_of_all_begins_every_branch_with_the_output_branch(
    remote: Remote, passes: Passes, pushes: Callable[[], list[set[str]]]
) -> None:
    burst(passes)
    assert pushes() == [{"placements", *map(of, WORKERS)}]
    assert remote.subjects(of("worker-2")) == remote.subjects("placements")
    assert remote.subjects(of("worker-1")) == ["start(demo): the output branch"]


def test_after_a_revert_the_branch_is_as_it_was(remote: Remote, passes: Passes) -> None:
    passes.run()
    before = branches(remote)
    burst(passes, 6)
    passes.missing = 0
    passes.advance(700)
    passes.run()
    assert branches(remote) == before
    assert remote.subjects(of("worker-3"))[0].startswith('Revert "burst(llm/vllm): 2 replicas on worker-3')


def test_a_commit_of_a_person_on_a_branch_is_put_right_by_the_next_pass(remote: Remote, passes: Passes) -> None:
    burst(passes)
    right, output = branches(remote), remote.tip("placements")
    name = of("worker-2")
    (path, *_) = remote.files(name)
    theirs = remote.commit(name, {path: None, "README.md": "mine"})
    passes.advance(1)
    outcome = passes.run_once()
    assert branches(remote) == right
    assert remote.tip("placements") == output
    (event,) = outcome.events
    assert event.line == "follow(worker-2): brought to where the output branch stands"
    assert remote.git("rev-parse", f"{name}~1") == theirs, "nothing is forced"
    assert output is not None
    message = catch_up_message(ClusterName("worker-2"), output, new=False)
    assert remote.git("log", "-1", "--format=%B", name) == f"{message}Overspill-Branch: {name}\n"
    passes.advance(1)
    assert passes.run_once().branches == ()


def _lose(remote: Remote, name: str, change: str) -> None:
    if change == "set back":
        remote.move(name, CommitId(remote.git("rev-parse", f"{name}~1")))
    elif change == "elsewhere":
        remote.move(name, remote.tip("main"))
    else:
        remote.move(name, None)


LOST = pytest.mark.parametrize("change", ["set back", "elsewhere", "delete"])


@LOST
@pytest.mark.parametrize("accept", [False, True])
@pytest.mark.exhaustive(one_in=6)
def test_a_branch_that_lacks_what_was_pushed_stops_all_writes_until_a_person_has_settled_it(
    remote: Remote, passes: Passes, repository: GitRepository, change: str, accept: bool
) -> None:
    burst(passes)
    right, name = branches(remote), of("worker-2")
    _lose(remote, name, change)
    before = remote.git("for-each-ref")
    passes.missing = 6
    for _ in range(2):
        passes.advance(1)
        with pytest.raises(LostBranch, match=f"branch {name}: it was last seen at"):
            passes.run_once()
    assert remote.git("for-each-ref") == before
    assert [loss.branch for loss in passes.look().tips.losses] == [name]
    drafted = repository.draft_restoration(accept=accept, now=passes.moment, person=repository._committer)
    repository.carry_out_restoration(drafted)
    passes.missing = 3
    passes.advance(1)
    passes.run_once()
    assert branches(remote) == right


@LOST
def test_a_pass_of_its_own_sees_that_the_branch_of_a_cluster_is_lost(
    remote: Remote, passes: Passes, repository: GitRepository, change: str, tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "shared") as once:
        first = Passes(once)
        first.missing = 3
        first.run()
    name = of("worker-2")
    _lose(remote, name, change)
    there = remote.tip(name)
    with GitRepository(remote.url, cache=tmp_path / "shared") as again:
        later = Passes(again)
        later.missing, later.moment = 3, first.moment
        with pytest.raises(LostBranch, match=name):
            later.run_once()
    assert remote.tip(name) == there


def test_what_a_person_does_on_the_output_branch_reaches_the_clusters(remote: Remote, passes: Passes) -> None:
    burst(passes)
    (placed,) = passes.placements()
    remote.commit("placements", {placed.path: None, "clusters/worker-3/mine.yaml": "kind: Mine\n"}, at=passes.moment)
    passes.advance(1)
    passes.run_once()
    assert remote.subjects(of("worker-2"))[0].startswith("follow(worker-2): the output branch at ")
    assert remote.files(of("worker-3"))["clusters/worker-3/mine.yaml"] == b"kind: Mine\n"
    assert_right(remote)


def test_an_edit_that_is_put_right_in_the_same_pass_never_reaches_the_cluster(remote: Remote, passes: Passes) -> None:
    burst(passes)
    before = remote.tip(of("worker-2"))
    (placed,) = passes.placements()
    remote.commit("placements", {f"{placed.path}/placement.yaml": "kind: Broken\n"}, at=passes.moment)
    passes.advance(1)
    passes.run()
    assert remote.subjects("placements")[0].startswith("restore(llm/vllm)")
    assert remote.tip(of("worker-2")) == before


def test_a_cluster_that_leaves_keeps_its_branch_while_it_has_placements_and_an_empty_one_after(
    remote: Remote, passes: Passes
) -> None:
    burst(passes)
    fewer = "---\n".join(part for part in SOURCE_FILES["clusters.yaml"].split("---\n") if "worker-2" not in part)
    workspace = SOURCE_FILES["workspaces.yaml"].replace("worker-2, ", "")
    policy = SOURCE_FILES["policies.yaml"].replace("{name: worker-2}, ", "")
    remote.commit("main", {"clusters.yaml": fewer, "workspaces.yaml": workspace, "policies.yaml": policy})
    passes.missing = 0
    passes.advance(700)
    passes.run()
    assert passes.placements() == []
    assert branches(remote)["worker-2"] == EMPTY
    remote.move(of("worker-2"), None)
    passes.advance(1)
    passes.run()
    assert branches(remote).keys() == {"worker-1", "worker-3"}


def test_turned_off_it_leaves_the_branches_where_they_are(remote: Remote, passes: Passes) -> None:
    burst(passes)
    before = branches(remote)
    remote.commit("main", {"fleet.yaml": OFF})
    passes.missing = 0
    passes.advance(700)
    passes.run()
    assert passes.placements() == []
    assert branches(remote) == before
    remote.commit("main", {"fleet.yaml": ON})
    passes.advance(1)
    passes.run()
    assert branches(remote) == dict.fromkeys(WORKERS, EMPTY)


def test_a_daemon_on_an_empty_disk_goes_on_where_the_branches_are(
    remote: Remote, passes: Passes, tmp_path: Path
) -> None:
    burst(passes)
    before = {name: remote.tip(of(name)) for name in WORKERS}
    with GitRepository(remote.url, cache=tmp_path / "other") as repository:
        other = Passes(repository)
        other.missing = 3
        repository.fetch()
        other.advance(1)
        assert other.run_once().branches == ()
        other.missing = 4
        other.advance(40)
        other.run()
    assert {name: remote.tip(of(name)) for name in ("worker-1", "worker-3")} == {
        name: before[name] for name in ("worker-1", "worker-3")
    }
    assert remote.git("rev-parse", f"{of('worker-2')}~1") == before["worker-2"]
    assert_right(remote)


@pytest.mark.parametrize("loser", ["placements", of("worker-2"), of("worker-3")])
def test_if_one_branch_has_moved_none_is_pushed(remote: Remote, passes: Passes, loser: str) -> None:
    passes.run()
    before = {name: remote.tip(name) for name in ("placements", *map(of, WORKERS))}
    tip = remote.commit(loser, {"clusters/worker-3/note.txt": "mine"})
    remote.move(loser, before[loser])
    # Taken by the push itself, when everything has been decided and written.
    done = remote.path / "moved"
    update = f'env -i PATH="$PATH" git --git-dir={remote.path} update-ref refs/heads/{loser} {tip}'
    _hook(remote, "pre-receive", f"test -e {done} && exit 0\ntouch {done}\n{update}")
    passes.missing = 6
    with pytest.raises(Conflict):
        passes.run_once()
    assert {name: remote.tip(name) for name in before} == {**before, loser: tip}
    passes.run()
    assert sum(placement.replicas for placement in passes.placements()) == 6
    assert_right(remote)


def test_a_remote_that_moves_no_branches_together_says_so(remote: Remote, passes: Passes) -> None:
    remote.git("config", "receive.advertiseAtomic", "false")
    with pytest.raises(InvalidInput, match=r"does not support --atomic.*try: set spec\.branchPerCluster: false"):
        passes.run_once()
    assert remote.tip("placements") is None


def test_a_branch_in_the_way_of_those_of_all_clusters_is_named(remote: Remote, passes: Passes) -> None:
    remote.commit("placements-by-cluster", {"a": "1"})
    lines = [str(problem) for problem in passes.run().problems]
    assert [line.partition(": ")[0] for line in lines] == [f"branch {of(name)}" for name in WORKERS]
    assert all("rename or remove branch 'placements-by-cluster'" in line for line in lines)
    assert remote.tip("placements") is not None


def test_a_branch_that_is_locked_on_the_remote_keeps_no_other_from_moving(
    remote: Remote, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_branches, "FAULT_PAUSE", timedelta(0))
    passes.run()
    before = remote.tip("placements")
    lock = remote.path / "refs" / "heads" / f"{of('worker-2')}.lock"
    lock.touch()
    passes.missing = 3
    passes.run_once()
    assert remote.tip("placements") != before
    lock.unlink()
    passes.run()
    assert_right(remote)


def test_only_what_was_made_to_follow_a_branch_is_pushed_to_it(
    remote: Remote, passes: Passes, repository: GitRepository
) -> None:
    burst(passes)
    tip, before = repository.tips().output, remote.tip(of("worker-2"))
    assert tip is not None
    advance = Advance(cluster=ClusterName("worker-2"), old=before, new=tip)
    with pytest.raises(Conflict, match="does not follow what was there"):
        repository.begin_push(tip, old=tip, branches=[advance])()
    assert remote.tip(of("worker-2")) == before


def test_history_of_a_branch_does_not_run_backwards_when_the_clock_does(remote: Remote, passes: Passes) -> None:
    burst(passes)
    remote.commit(of("worker-2"), {"README.md": "mine"}, at=passes.moment)
    passes.run()
    at = remote.git("log", "-1", "--format=%ct", of("worker-2"))
    remote.commit("placements", {"clusters/worker-2/mine.yaml": "a: 1\n"}, at=passes.moment)
    passes.moment -= timedelta(minutes=30)
    passes.run_once()
    assert remote.git("log", "-2", "--format=%ct", of("worker-2")).split() == [at, at]


def test_a_sweep_without_readable_files_ends_the_burst_in_the_cluster_too(
    remote: Remote, passes: Passes, tmp_path: Path
) -> None:
    burst(passes)
    remote.move("main", None)
    with GitRepository(remote.url, cache=tmp_path / "ci") as repository:
        ci = Passes(repository)
        ci.moment = passes.moment + timedelta(seconds=700)
        carry_out(ci.world(), ci.memory, draft_from_git(ci.world(), ci.memory, sweep))
    assert remote.files("placements", "clusters") == {}
    assert branches(remote) == dict.fromkeys(WORKERS, EMPTY)


def test_a_sweep_with_nothing_to_end_puts_the_branches_right(remote: Remote, passes: Passes) -> None:
    burst(passes)
    right = branches(remote)
    remote.commit(of("worker-2"), {"README.md": "mine"})
    carry_out(passes.world(), passes.memory, draft_from_git(passes.world(), passes.memory, sweep))
    assert branches(remote) == right


def test_a_sweep_of_a_daemon_that_fails_at_every_pass_ends_the_burst_in_the_cluster(
    remote: Remote, passes: Passes
) -> None:
    burst(passes)
    remote.move("main", None)
    passes.advance(700)
    with pytest.raises(InvalidInput, match="source branch"):
        reconcile_once(passes.world(), passes.memory)
    carry_out(passes.world(), passes.memory, draft_sweep(passes.world(), passes.memory))
    assert branches(remote) == dict.fromkeys(WORKERS, EMPTY)


def test_other_peoples_branches_and_directories_are_left_alone(remote: Remote, passes: Passes) -> None:
    mine = remote.commit("placements-by-cluster/Mine", {"a": "1"})
    remote.commit("placements", {"clusters/README.md": "mine", "clusters/Not_A_Cluster/x": "1"})
    burst(passes)
    assert remote.tip("placements-by-cluster/Mine") == mine
    assert branches(remote).keys() == {*WORKERS, "Mine"}


@pytest.mark.parametrize("name", ["scratch", "worker-3"])
def test_a_branch_that_a_person_has_made_beside_them_is_written_to_for_a_cluster_of_the_fleet_alone(
    remote: Remote, passes: Passes, name: str
) -> None:
    mine = remote.commit(of(name), {"notes.md": "mine\n"})
    burst(passes)
    assert remote.files(of(name)) == ({"notes.md": b"mine\n"} if name == "scratch" else {})
    assert (remote.tip(of(name)) == mine) is (name == "scratch")
    remote.move(of("scratch"), None)
    passes.missing = 0
    passes.advance(600)
    passes.run()
    assert not passes.placements(), "its removal stops nothing"


def test_a_source_branch_among_those_of_the_clusters_is_refused(remote: Remote, tmp_path: Path) -> None:
    for name in ("placements-by-cluster", "placements-by-cluster/worker-2"):
        with pytest.raises(InvalidInput, match="is where clusters have theirs"):
            GitRepository(remote.url, cache=tmp_path / "cache", source_branch=name)


def test_strict_fsck_finds_nothing_in_the_branches(remote: Remote, passes: Passes) -> None:
    burst(passes, 6)
    remote.git("fsck", "--strict", "--full")


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Tell which git commands were started since last asked."""
    log, directory, real = tmp_path / "commands", tmp_path / "bin", shutil.which("git")
    directory.mkdir()
    (directory / "git").write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {real} "$@"\n')
    (directory / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")

    def started() -> list[str]:
        lines = log.read_text().splitlines() if log.exists() else []
        log.write_text("")
        return lines

    return started


@pytest.mark.parametrize("fleet", [ON, OFF], ids=["on", "off"])
def test_an_idle_pass_is_one_fetch(
    remote: Remote, repository: GitRepository, processes: Callable[[], list[str]], fleet: str
) -> None:
    remote.commit("main", {**SOURCE_FILES, "fleet.yaml": fleet})
    passes = Passes(repository)
    burst(passes)
    passes.advance(1)
    passes.run_once()
    processes()
    passes.advance(1)
    passes.run_once()
    assert [one for one in processes() if one != "ls-tree"] == ["fetch"]  # that one is how `Passes` looks


def test_a_pass_that_writes_costs_one_process_more(
    remote: Remote, repository: GitRepository, processes: Callable[[], list[str]]
) -> None:
    started = []
    passes = Passes(repository)
    for missing, fleet in ((1, OFF), (2, ON)):
        remote.commit("main", {**SOURCE_FILES, "fleet.yaml": fleet})
        for _ in range(2):
            passes.advance(1)
            passes.run_once()
        passes.missing = missing
        passes.advance(40)
        processes()
        assert passes.run_once().commits
        started.append([one for one in processes() if one != "ls-tree"])
    off, on = started
    assert sorted(on) == sorted([*off, "fast-import"])


def test_the_cost_of_a_branch_does_not_follow_the_size_of_the_cluster(
    remote: Remote, passes: Passes, tmp_path: Path
) -> None:
    passes.run()
    remote.commit("placements", {f"clusters/worker-2/n{n // 100}/{n % 100}.txt": f"{n}\n" for n in range(1_500)})
    passes.advance(1)
    outcome = passes.run_once()
    assert [advance.cluster for advance in outcome.branches] == ["worker-2"]
    packs = sorted((tmp_path / "cache").glob("*/mirror.git/objects/pack/*.pack"), key=lambda path: path.stat().st_mtime)
    assert packs[-1].stat().st_size < 1_000  # a commit and two trees
    assert len(remote.files(of("worker-2"))) == 1_500
