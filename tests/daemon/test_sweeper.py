"""Whatever keeps passes from ending what has lapsed, it is ended: in time, once, and without a pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.adapters.git import GitRepository
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.source import SourceReader
from reconciler.daemon.sweeper import GRACE, LONGEST_GRACE, Sweeper, SweepWorld
from reconciler.errors import Conflict, InvalidInput, LostBranch, Transient
from reconciler.model.action import Action
from reconciler.model.capacity import Observed
from reconciler.model.end_reason import EndReason
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.remote import Remote
from tests.fakes.memory_repository import MemoryRepository


class Fainting(Passes):
    """A daemon whose sight of the clusters ends in an exception that nobody expected."""

    faints = False

    def observe(self) -> Observed:
        if self.faints:
            raise ZeroDivisionError
        return super().observe()


class Watched:
    """A daemon with a sweeper beside its passes; a burst of ten minutes stands."""

    def __init__(self) -> None:
        self.passes = Fainting(MemoryRepository(SOURCE_FILES))
        self.latest = LatestSnapshot(self.passes.memory.branch)
        self.opened = 0
        self.sweeper = Sweeper(self.latest, self.open_world, clock=self.passes, random=lambda: 0.5)
        self.passes.missing = 3
        self.run()

    @contextmanager
    def open_world(self) -> Iterator[SweepWorld]:
        self.opened += 1
        repository = self.passes.repository
        memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
        yield SweepWorld(world=self.passes.world(), memory=memory)

    def run(self) -> Outcome:
        outcome = self.passes.run()
        self.latest.post(outcome)
        return outcome

    def restart(self) -> None:
        """Start again at this moment, with passes that never end well."""
        self.passes.restart()
        self.passes.faints = True
        self.latest = LatestSnapshot(self.passes.memory.branch)
        self.sweeper = Sweeper(self.latest, self.open_world, clock=self.passes, random=lambda: 0.5)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.mark.parametrize("errors", [[LostBranch("lost")] * 2, [Transient("no answer"), Transient("still none")]])
def test_failure_that_stays_is_logged_once(watched: Watched, errors: list[Exception]) -> None:
    waiting = [*errors]

    def failing() -> AbstractContextManager[SweepWorld]:
        raise waiting.pop(0)

    sweeper = Sweeper(watched.latest, failing, clock=watched.passes, random=lambda: 0.5)
    watched.passes.advance(GRACE.total_seconds() + 700)
    with capture_logs() as logged:
        while waiting:
            sweeper.step()
            time.sleep(0.05)
    assert [entry["event"] for entry in logged] == ["cannot sweep"]


@pytest.mark.parametrize("rewound", [1, 0])
def test_sweep_writes_nothing_on_a_branch_that_was_rewound_and_says_so(
    remote: Remote, tmp_path: Path, caplog: pytest.LogCaptureFixture, rewound: int
) -> None:
    remote.commit("main", SOURCE_FILES)
    cache = tmp_path / "cache"
    with GitRepository(remote.url, cache=cache) as repository:
        passes = Passes(repository)
        latest = LatestSnapshot(passes.memory.branch)

        @contextmanager
        def open_world() -> Iterator[SweepWorld]:
            with GitRepository(remote.url, cache=cache) as own:
                memory = Memory(source=SourceReader(own), branch=BranchReader(own))
                yield SweepWorld(world=replace(passes.world(), repository=own), memory=memory)

        sweeper = Sweeper(latest, open_world, clock=passes, random=lambda: 0.5)
        passes.missing = 3
        tips = []
        for _ in range(2):
            latest.post(passes.run())
            tips.append(remote.tip("placements"))
            passes.missing += 1
            passes.advance(65)
        remote.move("placements", tips[0] if rewound else None)
        stands = remote.tip("placements")
        passes.advance(900)
        assert sweeper.is_due()
        with pytest.raises(LostBranch, match="nothing is written until that is settled"):
            sweeper.sweep()
        sweeper.step()
        assert remote.tip("placements") == stands
        remote.move("placements", tips[1])
        assert sweeper.sweep().commits


def test_passes_have_the_first_word_on_what_has_lapsed(watched: Watched) -> None:
    watched.passes.advance(599)
    assert not watched.sweeper.is_due()
    watched.passes.advance(2)
    assert not watched.sweeper.is_due(), "a pass may be under way"
    watched.run()
    watched.passes.advance(60)
    assert not watched.sweeper.is_due()
    assert watched.opened == 0


def test_a_pass_that_does_not_end_keeps_no_burst_beyond_its_end(watched: Watched) -> None:
    watched.passes.advance(600 + GRACE.total_seconds())
    assert watched.sweeper.is_due()
    outcome = watched.sweeper.sweep()
    (ended,) = outcome.plan.changes
    assert ended.action is Action.REVERT
    assert ended.why is EndReason.EXPIRED
    assert watched.passes.placements() == []
    # No pass has ended since, and the placement is not ended twice.
    assert not watched.sweeper.is_due()


def test_a_pass_that_went_on_meanwhile_finds_the_branch_moved_and_runs_again(watched: Watched) -> None:
    watched.passes.advance(650)
    decision = watched.passes.look()
    watched.sweeper.sweep()
    assert decision.plan.changes
    watched.passes.missing = 0
    assert watched.run().commits == ()
    assert watched.passes.placements() == []


def test_grace_follows_the_time_of_passes_up_to_a_bound(watched: Watched) -> None:
    watched.sweeper.note_pass(4)
    watched.passes.advance(600 + GRACE.total_seconds() + 7)
    assert not watched.sweeper.is_due()
    watched.sweeper.note_pass(3600)
    watched.passes.moment += LONGEST_GRACE
    assert watched.sweeper.is_due()


@pytest.mark.parametrize("late", [0, 3600])
def test_start_whose_first_pass_does_not_end_sweeps_by_the_branch_alone(watched: Watched, late: int) -> None:
    watched.passes.advance(300 + late)
    watched.restart()
    assert not watched.sweeper.is_due()
    watched.passes.advance(GRACE.total_seconds())
    assert watched.sweeper.is_due()
    watched.sweeper.sweep()
    assert len(watched.passes.placements()) == (0 if late else 1)
    # The branch is read once: its next end is known by then.
    assert not watched.sweeper.is_due()
    watched.passes.advance(300)
    assert watched.sweeper.is_due() is not bool(late)
    watched.sweeper.sweep()
    assert watched.passes.placements() == []


def test_a_source_branch_that_is_gone_keeps_no_burst(watched: Watched) -> None:
    watched.passes.repository.heads["source"] = None
    watched.passes.advance(610)
    with pytest.raises(InvalidInput, match="source branch"):
        watched.passes.run_once()
    assert watched.sweeper.is_due()
    watched.sweeper.sweep()
    assert watched.passes.placements() == []


def test_what_a_renewal_is_due_for_is_no_matter_of_the_sweeper(watched: Watched) -> None:
    (before,) = watched.passes.placements()
    watched.passes.moment = before.expires_at - timedelta(seconds=1)
    assert watched.sweeper.sweep().commits == ()
    assert watched.passes.placements() == [before]


def test_thread_goes_on_after_a_remote_that_failed(watched: Watched) -> None:
    fails = [Transient("the remote is gone"), Conflict("moved"), ZeroDivisionError()]
    honest = watched.open_world

    @contextmanager
    def failing() -> Iterator[SweepWorld]:
        if fails:
            raise fails.pop(0)
        with honest() as opened:
            yield opened

    watched.passes.advance(650)
    sweeper = Sweeper(watched.latest, failing, clock=watched.passes, random=lambda: 0.5)
    for _ in range(3):
        sweeper.step()
    assert fails
    assert not sweeper.is_due(), "it waits before the next try"
