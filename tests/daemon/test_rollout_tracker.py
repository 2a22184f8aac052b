"""What an engine says counts for the commit that it is about, and git is asked as little as can be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.model.capacity import Observed
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.placement import Placement
from reconciler.model.rollout import EngineReport, EngineState
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.remote import Remote
from tests.fakes.memory_repository import MemoryRepository

FLUX = SOURCE_FILES["clusters.yaml"].replace("spec: {}", "spec: {engine: flux}")


class Engine(Passes):
    """Passes in which engines report."""

    def __init__(self, repository: GitRepository | MemoryRepository) -> None:
        super().__init__(repository)
        self.reports: dict[str, EngineReport] = {}

    def observe(self) -> Observed:
        return replace(super().observe(), reports=self.reports)

    def say(self, placement: Placement, state: EngineState, message: str = "", **fields: str) -> None:
        told = {"digest": placement.digest, "revision": self.tip(), **fields}
        report = EngineReport(
            cluster=placement.cluster,
            placement=placement.name,
            digest=told["digest"],
            revision=told["revision"],
            state=state,
            message=message,
        )
        self.reports = {**self.reports, placement.path: report}

    def tip(self) -> str:
        return self.repository.tips().output or ""

    def arrived(self, placement: Placement) -> bool:
        return self.look().inputs.rollouts.has_arrived(placement)


class Counting(GitRepository):
    """A repository that notes what it is asked about commits."""

    asked: list[Collection[tuple[CommitId, str]]]

    def held(self, places: Collection[tuple[CommitId, str]]) -> Mapping[tuple[CommitId, str], BlobId | None]:
        if places:
            self.asked.append(places)
        return super().held(places)


@pytest.fixture
def engine(remote: Remote, tmp_path):
    remote.commit("main", {**SOURCE_FILES, "clusters.yaml": FLUX})
    with Counting(remote.url, cache=tmp_path / "cache") as repository:
        repository.asked = []
        passes = Engine(repository)
        passes.missing = 3
        passes.run()
        yield passes


def test_commit_that_wrote_a_placement_and_each_later_one_that_left_it_alone_are_as_good(engine, remote) -> None:
    (placed,) = engine.placements()
    wrote = engine.tip()
    remote.commit("placements", {"notes.txt": "somebody else's"})
    engine.run()
    assert engine.tip() != wrote
    for revision in (wrote, engine.tip()):
        engine.restart()
        engine.say(placed, EngineState.HEALTHY, revision=revision)
        assert engine.arrived(placed), revision


def test_commit_from_before_the_placement_was_changed_says_nothing_of_it(engine) -> None:
    (placed,) = engine.placements()
    before = engine.tip()
    engine.missing = 4
    engine.advance(30)
    engine.run()
    (grown,) = engine.placements()
    assert grown.digest != placed.digest
    engine.say(grown, EngineState.FAILED, "the old one failed", revision=before)
    outcome = engine.run_once()
    assert outcome.commits == ()
    assert outcome.decision.inputs.rollouts.ailing[grown.path].state is EngineState.PENDING


def test_commit_that_the_mirror_does_not_know_is_waited_for(engine, remote) -> None:
    (placed,) = engine.placements()
    engine.say(placed, EngineState.FAILED, "gave up", revision="ab" * 20)
    assert engine.run_once().commits == ()
    newer = remote.commit("placements", {"notes.txt": "on top"})
    engine.say(placed, EngineState.FAILED, "gave up", revision=newer)
    assert engine.run_once().commits != (), "the fetch of this pass brought it"


def test_git_is_asked_in_one_go_and_not_again_while_nothing_changes(engine) -> None:
    wrote = engine.tip()
    engine.missing = 8
    engine.advance(30)
    engine.run()
    first, second = engine.placements()
    assert {first.cluster, second.cluster} == {"worker-2", "worker-3"}
    assert engine.repository.asked == [], "nobody has said anything"
    engine.say(first, EngineState.PROGRESSING, revision=wrote)
    engine.say(second, EngineState.PROGRESSING, revision=wrote)
    engine.run()
    assert [len(places) for places in engine.repository.asked] == [2]
    engine.run()
    engine.reports = dict(engine.reports)
    engine.run()
    assert len(engine.repository.asked) == 1, "what a commit holds never changes"


def test_what_was_healthy_once_needs_no_question_at_later_commits(engine, remote) -> None:
    (placed,) = engine.placements()
    engine.say(placed, EngineState.HEALTHY)
    engine.run()
    old = engine.tip()
    remote.commit("placements", {"notes.txt": "on top"})
    engine.run()
    engine.say(placed, EngineState.HEALTHY, revision=old)
    assert engine.arrived(placed)
    assert engine.repository.asked == []


def test_failure_goes_to_the_next_cluster_and_is_told_with_its_words(engine, remote) -> None:
    (placed,) = engine.placements()
    engine.say(placed, EngineState.FAILED, "Helm install failed: timed out")
    engine.run()
    (moved,) = engine.placements()
    assert (placed.cluster, moved.cluster, moved.replicas) == ("worker-2", "worker-3", 3)
    log = remote.git("log", "-2", "--format=%B", "placements")
    assert "Failed: Helm install failed: timed out." in log
    assert "worker-2 refused" in log
    assert "Overspill-Why: failed" in log


def test_daemon_that_starts_anew_reverts_nothing_that_was_healthy_for_long(engine) -> None:
    (placed,) = engine.placements()
    engine.advance(300)
    engine.restart()
    engine.say(placed, EngineState.PROGRESSING, "1 of 3 ready")
    outcome = engine.run_once()
    assert outcome.commits == ()
    ailment = outcome.decision.inputs.rollouts.ailing[placed.path]
    assert ailment.since == engine.moment, "nobody has watched it before"


def test_files_at_commits_are_found_in_one_go(remote, repository) -> None:
    old = remote.commit("placements", {"clusters/a/x/placement.yaml": "1", "clusters/a/y/placement.yaml": "1"})
    repository.fetch()
    new = remote.commit("placements", {"clusters/a/x/placement.yaml": "2", "clusters/a/y/placement.yaml": None})
    repository.fetch()
    x, y, unknown = "clusters/a/x/placement.yaml", "clusters/a/y/placement.yaml", CommitId("ab" * 20)
    found = repository.held([(old, x), (new, x), (old, y), (new, y), (unknown, x)])
    assert found.keys() == {(old, x), (new, x), (old, y), (new, y)}
    assert found[old, x] == found[old, y] != found[new, x]
    assert found[new, y] is None
    assert repository.held([]) == {}
