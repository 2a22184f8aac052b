"""A clock that was ahead and came back ends no window early, and what it left on the branch is over by so much later.

The windows are those of `SOURCE_FILES`: up after 30 s, down after 1 min, cool-down 1 min, burst 10 min.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from itertools import chain, repeat

import pytest

from reconciler.daemon.clock_jump import ClockReading, describe_jump, jump_between
from reconciler.model.placement import RestraintKind
from tests.builders.passes import RENEWING, SOURCE_FILES, START, Passes, seconds
from tests.fakes.memory_repository import MemoryRepository

LEAD = seconds(75)


def bursting(replicas: int = 4) -> Passes:
    """Return passes that have placed replicas, with all of them seen on their nodes."""
    passes = Passes(MemoryRepository(SOURCE_FILES | RENEWING))
    passes.missing = replicas
    passes.run()
    passes.advance(10)
    passes.run()
    assert placed(passes) == replicas
    return passes


def placed(passes: Passes) -> int:
    return sum(placement.replicas for placement in passes.placements())


def lead(passes: Passes, lasting: int = 6) -> None:
    """Let the clock be ahead for some seconds, with a pass in each, and put it back."""
    passes.ahead = LEAD
    for _ in range(lasting):
        passes.run()
        passes.advance(1)
    passes.ahead = seconds(0)


def test_clock_that_jumps_ahead_ends_no_scale_down_window() -> None:
    passes = bursting()
    passes.missing = 1
    passes.run()
    passes.advance(10)
    passes.ahead = LEAD
    passes.run()
    assert placed(passes) == 4
    passes.advance(59)
    passes.run()
    assert placed(passes) == 4
    passes.advance(1)
    passes.run()
    assert placed(passes) == 1


def test_observation_from_before_a_jump_ahead_begins_no_window() -> None:
    passes = bursting()
    passes.missing = 1
    passes.run()
    passes.advance(10)
    passes.ahead = LEAD
    passes.run(observed_at=passes.moment)
    passes.advance(1)
    for _ in range(60):
        passes.run()
        assert placed(passes) == 4
        passes.advance(1)
    passes.run()
    assert placed(passes) == 1


def test_clocks_that_are_read_with_a_stall_between_them_tell_of_no_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = bursting()
    passes.missing = 1
    passes.run()
    uptime = passes.uptime
    for stall in (0, 3, 0, 3):
        passes.advance(15)
        # The time of day is read between the two, late.
        passes.ahead = seconds(stall)
        readings = chain([uptime()], repeat(uptime() + seconds(stall)))
        monkeypatch.setattr(passes, "uptime", partial(next, readings))
        passes.run()
    assert placed(passes) == 1


def test_scale_down_window_begins_anew_when_the_clock_is_put_back() -> None:
    passes = bursting()
    passes.missing = 1
    passes.run()
    lead(passes)
    passes.run()
    for _ in range(59):
        passes.advance(1)
        passes.run()
        assert placed(passes) == 4
    passes.advance(1)
    passes.run()
    assert placed(passes) == 1


def test_scale_up_window_holds_as_long_as_ever_once_the_clock_is_back() -> None:
    passes = bursting(1)
    lead(passes)
    passes.missing, passes.since = 3, passes.moment
    for _ in range(30):
        passes.run()
        assert placed(passes) == 1
        passes.advance(1)
    passes.run()
    assert placed(passes) == 3


def test_hold_that_begins_once_the_clock_is_back_lasts_as_long_as_ever() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    ahead_burst(passes)
    gone = passes.placements()[0]
    passes.repository.person("output", removes=(gone.path,), at=passes.moment)
    passes.run()
    (restraints,) = passes.look().inputs.ledger.restraints.values()
    (held,) = (each for each in restraints if each.kind is RestraintKind.HOLD)
    assert (held.since, held.until) == (passes.moment, passes.moment + seconds(3600))


def test_commits_of_a_clock_put_back_bear_the_newest_time_and_their_files_the_true_one() -> None:
    passes = bursting(1)
    newest = ahead_burst(passes)
    passes.missing = 6
    passes.run()
    (commit,) = passes.repository.log(passes.repository.tips().output, limit=1)
    assert commit.at == newest
    assert passes.moment in {placement.changed_at for placement in passes.placements()}


def ahead_burst(passes: Passes) -> datetime:
    """Place while the clock is ahead, put it back, and return the time of the newest commit."""
    passes.missing, passes.ahead = 5, LEAD
    passes.run()
    newest = passes.now()
    passes.advance(6)
    passes.ahead = seconds(0)
    return newest


def test_burst_that_was_placed_by_a_clock_ahead_ends_by_so_much_later() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    began = passes.moment
    ahead_burst(passes)
    assert {placement.expires_at for placement in passes.placements()} == {began + LEAD + seconds(600)}


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_expiry_follows_the_clock_and_not_the_branch(restarted: bool) -> None:
    passes = bursting(1)
    ahead_burst(passes)
    if restarted:
        passes.restart()
    assert passes.look().inputs.now == passes.moment


@pytest.mark.parametrize(
    ("by", "told"),
    [(75, "1m15s ahead"), (2, "2s ahead"), (1, ""), (0, ""), (-1, ""), (-2, "2s back"), (-3600, "1h back")],
)
def test_jump_is_what_the_clock_moved_beyond_the_time_that_passed(by: int, told: str) -> None:
    before = ClockReading(at=START, uptime=seconds(1000))
    jump = jump_between(before, ClockReading(at=START + seconds(30 + by), uptime=seconds(1030)))
    assert (describe_jump(jump) if jump else "") == told
