"""A branch that lacks a commit that an engine has applied is lost, also for a daemon on an empty disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.known_tips import UNTRIED_MEMORY
from reconciler.daemon.applied_commits import AppliedCommits, applied
from reconciler.errors import LostBranch, OverspillError
from reconciler.model.bounds import APPLIED_COMMITS
from reconciler.model.branch_loss import ReportedCommit
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, CommitId, PlacementName
from reconciler.model.policy import Fleet
from reconciler.model.rollout import EngineReport, EngineState, ReportedSource
from reconciler.model.tree import Identity
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.remote import Remote

PERSON = Identity(name="Ann", email="ann@example.com")
FLUX = ReportedSource(branch="placements")
OURS = "https://git.example.com/acme/fleet.git"
FLEET = f"apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: acme}}\nspec: {{repoURL: '{OURS}'}}\n"


def _report(commit: str, source: ReportedSource | None, name: str = "vllm-1") -> EngineReport:
    return EngineReport(
        cluster=ClusterName("worker-2"),
        placement=PlacementName(name),
        digest="sha256-1",
        revision=commit,
        state=EngineState.HEALTHY,
        source=source,
    )


class Reported(Passes):
    """Passes in which engines report what they have applied."""

    reports: Mapping[str, EngineReport] = MappingProxyType({})

    def observe(self) -> Observed:
        return replace(super().observe(), reports=self.reports)


@pytest.fixture
def tips(remote: Remote, tmp_path: Path) -> list[CommitId]:
    """Let a daemon of before write two bursts; return the tip after each."""
    remote.commit("main", {**SOURCE_FILES, "fleet.yaml": FLEET})
    tips = []
    with GitRepository(remote.url, cache=tmp_path / "before") as repository:
        passes = Passes(repository)
        for missing in (2, 4):
            passes.missing = missing
            passes.run()
            passes.advance(65)
            tip = remote.tip("placements")
            assert tip is not None
            tips.append(tip)
    return tips


def _lose(remote: Remote, tips: list[CommitId], how: str) -> None:
    remote.move("placements", tips[0] if how == "rewound" else None)
    if how == "replaced":
        remote.commit("placements", {"notes.md": "mine\n"})


ARGOCD = ReportedSource(branch="placements", repo_url=OURS.removesuffix(".git") + "/")


@pytest.mark.parametrize("source", [FLUX, ARGOCD], ids=["flux", "argocd"])
@pytest.mark.parametrize("how", ["rewound", "gone", "replaced", "rewound, and collected"])
@pytest.mark.exhaustive(one_in=4)
def test_daemon_on_an_empty_disk_writes_nothing_where_an_engine_has_applied_what_the_branch_lacks(
    remote: Remote, tips: list[CommitId], tmp_path: Path, how: str, source: ReportedSource
) -> None:
    _lose(remote, tips, how.partition(",")[0])
    if how.endswith("collected"):
        remote.git("prune", "--expire=now")
    stands = remote.tip("placements")
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        passes = Reported(repository)
        passes.missing = 4
        passes.reports = {"clusters/worker-2/vllm-1": _report(tips[1], source)}
        for _ in range(2):
            with pytest.raises(LostBranch, match=f"the engine of worker-2 has applied {tips[1][:12]}"):
                passes.run()
        assert remote.tip("placements") == stands
        (loss,) = repository.tips().losses
        assert loss.known == tips[1]
        (problem, *_) = passes.look().problems
        assert f"overspill restore --commit {tips[1]}" in str(problem)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(("5" * 40, None), id="a source that is not known"),
        pytest.param(("5" * 40, ReportedSource(branch="staging")), id="another branch"),
        pytest.param(
            ("5" * 40, ReportedSource(branch="placements", repo_url="https://git.example.com/b/fleet")),
            id="another repository",
        ),
        pytest.param(("", FLUX), id="no commit"),
        pytest.param(("first", FLUX), id="an earlier commit"),
        pytest.param(("last", ARGOCD), id="the tip"),
    ],
)
@pytest.mark.exhaustive(one_in=3)
def test_report_that_says_nothing_against_the_branch_stops_nothing(
    remote: Remote, tips: list[CommitId], tmp_path: Path, report: tuple[str, ReportedSource | None]
) -> None:
    names: Mapping[str, str] = {"first": tips[0], "last": tips[1]}
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        passes = Reported(repository)
        passes.missing = 6
        passes.reports = {"clusters/worker-2/vllm-1": _report(names.get(report[0], report[0]), report[1])}
        passes.run()
        assert repository.tips().losses == ()
        assert remote.tip("placements") != tips[1]


@pytest.mark.parametrize(
    "url",
    [
        "git@git.example.com:acme/fleet.git",
        "git.example.com:acme/fleet",
        "ssh://git@git.example.com:2222/acme/fleet.git",
        "https://ann@Git.Example.com/Acme/fleet/",
        "https://git.example.com:8443/acme/fleet",
    ],
)
def test_engine_that_reads_our_repository_by_another_address_is_heard(url: str) -> None:
    told = {"clusters/worker-2/vllm-1": _report("5" * 40, ReportedSource(branch="placements", repo_url=url))}
    heard = applied(Observed(reports=told), Fleet(repo_url=OURS), "placements")
    assert [each.commit for each in heard] == ["5" * 40]


@pytest.mark.parametrize("url", ["git@git.example.com:b/fleet", "git@example.com:acme/fleet.git", "/srv/acme/fleet"])
def test_engine_that_reads_another_repository_is_not(url: str) -> None:
    told = {"clusters/worker-2/vllm-1": _report("5" * 40, ReportedSource(branch="placements", repo_url=url))}
    assert [*applied(Observed(reports=told), Fleet(repo_url=OURS), "placements")] == []


@pytest.mark.parametrize("keeps", [True, False])
def test_branch_of_a_cluster_counts_where_the_fleet_keeps_one(keeps: bool) -> None:
    told = {"clusters/worker-2/vllm-1": _report("5" * 40, ReportedSource(branch="placements-by-cluster/worker-2"))}
    heard = applied(Observed(reports=told), Fleet(branch_per_cluster=keeps), "placements")
    assert len([*heard]) == keeps


def test_cluster_that_stopped_the_process_before_is_heard_no_more_once_its_commit_is_given_up(
    remote: Remote, tips: list[CommitId], tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        repository.fetch()
        repository.look_for(CommitId("5" * 40), branch="placements", reported_by="worker-2")
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        passes = Reported(repository)
        with pytest.raises(LostBranch, match="the engine of worker-2 has applied"):
            passes.run()
        repository.fetch()
        drafted = repository.draft_restoration(accept=True, now=passes.now(), person=PERSON)
        repository.carry_out_restoration(drafted)
        passes.reports = {"clusters/worker-2/vllm-1": MORE[0]}
        passes.run()
        assert repository.tips().losses == ()


def test_commit_that_another_daemon_has_pushed_meanwhile_is_fetched_and_no_loss(
    remote: Remote, tips: list[CommitId], tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        repository.fetch()
        later = remote.commit("placements", {"notes.md": "mine\n"})
        reports = {"clusters/worker-2/vllm-1": _report(later, FLUX)}
        assert AppliedCommits().compare(repository, Observed(reports=reports), Fleet(), "placements")
        assert (repository.tips().losses, repository.tips().output) == ((), later)


NEVER = [_report(digit * 40, FLUX) for digit in "5678"]
"""Reports of commits that no branch of ours ever had."""
MORE = [_report(digit * 40, FLUX) for digit in "9a"]


def test_cluster_stops_no_daemon_that_knows_the_branch(remote: Remote, tips: list[CommitId], tmp_path: Path) -> None:
    (began,) = (tmp_path / "before").rglob("began-*")
    an_hour_ago = (datetime.now(UTC) - UNTRIED_MEMORY).timestamp()
    os.utime(began, (an_hour_ago, an_hour_ago))
    with GitRepository(remote.url, cache=tmp_path / "before") as repository:
        passes = Reported(repository)
        passes.missing = 6
        passes.reports = {"clusters/worker-2/vllm-1": NEVER[0]}
        passes.run()
        assert (repository.tips().losses, remote.tip("placements") == tips[1]) == ((), False)


def test_daemon_that_is_killed_before_it_has_heard_an_engine_hears_it_after_its_restart(
    remote: Remote, tips: list[CommitId], tmp_path: Path
) -> None:
    _lose(remote, tips, "rewound")
    for reports in ({}, {"clusters/worker-2/vllm-1": _report(tips[1], FLUX)}):
        with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
            passes = Reported(repository)
            passes.reports = reports
            if not reports:
                passes.run()
                continue
            with pytest.raises(LostBranch, match=tips[1][:12]):
                passes.run()


def test_hour_on_an_empty_disk_begins_once_the_remote_answers(
    remote: Remote, tips: list[CommitId], tmp_path: Path
) -> None:
    """A host that is down for long may come back from an old backup."""
    _lose(remote, tips, "rewound")
    away = remote.path.rename(tmp_path / "away")
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        passes = Reported(repository)
        passes.reports = {"clusters/worker-2/vllm-1": _report(tips[1], FLUX)}
        with pytest.raises(OverspillError):
            passes.run()
        (began,) = (tmp_path / "empty").rglob("began-*")
        two_hours_ago = (datetime.now(UTC) - 2 * UNTRIED_MEMORY).timestamp()
        os.utime(began, (two_hours_ago, two_hours_ago))
        away.rename(remote.path)
        with pytest.raises(LostBranch, match=tips[1][:12]):
            passes.run()


def test_memory_of_one_output_branch_is_none_of_another(remote: Remote, tips: list[CommitId], tmp_path: Path) -> None:
    (began,) = (tmp_path / "before").rglob("began-*")
    an_hour_ago = (datetime.now(UTC) - UNTRIED_MEMORY).timestamp()
    os.utime(began, (an_hour_ago, an_hour_ago))
    for branch, remembers in (("placements-staging", False), ("placements", True)):
        with GitRepository(remote.url, cache=tmp_path / "before", output_branch=branch) as repository:
            repository.fetch()
            assert repository.has_memory is remembers


def test_memory_that_began_in_the_future_is_none(remote: Remote, tips: list[CommitId], tmp_path: Path) -> None:
    """A clock that was ahead when a mirror began says nothing of how long ago that was."""
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        repository.fetch()
        (began,) = (tmp_path / "empty").rglob("began-*")
        ahead = (datetime.now(UTC) + 2 * UNTRIED_MEMORY).timestamp()
        os.utime(began, (ahead, ahead))
        assert not repository.has_memory
        repository.fetch()
        assert began.stat().st_mtime <= datetime.now(UTC).timestamp()


@pytest.mark.parametrize("cache", ["before", "before/proposals"])
def test_mirror_beside_one_that_knows_the_branch_does_so_too(
    remote: Remote, tips: list[CommitId], cache: str, tmp_path: Path
) -> None:
    (began,) = (tmp_path / "before").rglob("began-*")
    an_hour_ago = (datetime.now(UTC) - UNTRIED_MEMORY).timestamp()
    os.utime(began, (an_hour_ago, an_hour_ago))
    with (
        GitRepository(remote.url, cache=tmp_path / "before"),
        GitRepository(remote.url, cache=tmp_path / cache, main_cache=tmp_path / "before") as beside,
    ):
        beside.fetch()
        assert beside.has_memory


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("changes", [False, True], ids=["the same", "another before it is settled"])
def test_cluster_stops_a_daemon_on_an_empty_disk_once_and_others_are_heard(
    remote: Remote, tips: list[CommitId], at_once: bool, changes: bool, tmp_path: Path
) -> None:
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        passes = Reported(repository)
        passes.missing = 6
        for cluster, reports in (("worker-2", NEVER[:3]), ("worker-3", NEVER[3:] + MORE)):
            said = [replace(report, cluster=ClusterName(cluster)) for report in reports]
            for number, report in enumerate(said):
                if not at_once:
                    passes.reports = {f"clusters/{cluster}/vllm-1": report}
                elif not number:
                    passes.reports = {f"clusters/{cluster}/{each.revision[0]}": each for each in said}
                if number:
                    passes.run()
                else:
                    with pytest.raises(LostBranch, match=f"the engine of {cluster} has applied"):
                        passes.run()
                    (loss,) = repository.tips().losses
                    assert at_once or loss.known == report.revision
                    if changes:
                        passes.reports = {f"clusters/{cluster}/vllm-1": said[-1]}
                    repository.fetch()
                    drafted = repository.draft_restoration(accept=True, now=passes.now(), person=PERSON)
                    repository.carry_out_restoration(drafted)
                assert passes.look().problems == ()
        assert remote.tip("placements") != tips[1]


def test_cluster_whose_commit_was_restored_is_heard_again(remote: Remote, tips: list[CommitId], tmp_path: Path) -> None:
    """While its objects are still being listed, an honest cluster may name an older commit first."""
    _lose(remote, tips, "gone")
    with GitRepository(remote.url, cache=tmp_path / "empty") as repository:
        passes = Reported(repository)
        for lost in tips:
            passes.reports = {"clusters/worker-2/vllm-1": _report(lost, FLUX)}
            with pytest.raises(LostBranch, match=f"the engine of worker-2 has applied {lost[:12]}"):
                passes.run()
            repository.fetch()
            drafted = repository.draft_restoration(accept=False, now=passes.now(), person=PERSON)
            repository.carry_out_restoration(drafted)
            assert remote.tip("placements") == lost
            assert passes.look().problems == ()


def test_one_pass_looks_for_a_bounded_number_of_commits(remote: Remote, tips: list[CommitId], tmp_path: Path) -> None:
    looked: list[CommitId] = []

    class Counting(GitRepository):
        def look_for(self, commit: CommitId, *, branch: str, reported_by: str) -> ReportedCommit:
            looked.append(commit)
            return ReportedCommit.HELD

    with Counting(remote.url, cache=tmp_path / "empty") as repository:
        repository.fetch()
        commits = [f"{number:040x}" for number in range(APPLIED_COMMITS.most + 7)]
        reports = {name: _report(name, FLUX, name) for name in commits}
        compared = AppliedCommits()
        for expected in (APPLIED_COMMITS.most, 7, 0):
            compared.compare(repository, Observed(reports=reports), Fleet(), "placements")
            assert len(looked) == expected
            looked.clear()
