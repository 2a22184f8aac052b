"""The past demand in steps of five minutes: how it grows, what is dropped, and what commits carry of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.signals.past_demand import Levels, extended, followed_by, level_at, peak, read_levels, write_levels
from reconciler.model.signal import DemandLevel

BEGIN = datetime(2026, 11, 20, 10, tzinfo=UTC)
KEEP = timedelta(days=2)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def watched(*counts: tuple[float, int | None]) -> Levels:
    """Extend a past by what was missing so many minutes after its beginning."""
    levels: Levels = ()
    for minute, missing in counts:
        levels = extended(levels, missing, BEGIN + minutes(minute), KEEP)
    return levels


def counts(levels: Levels) -> list[tuple[int, int | None]]:
    return [((level.at - BEGIN) // minutes(1), level.missing) for level in levels]


def test_a_step_has_the_most_of_it_and_hands_on_its_end() -> None:
    assert counts(watched((0, 1), (1, 4), (3, 2))) == [(0, 4), (5, 2)]
    assert counts(watched((0, 1), (1, 4), (3, 2), (20, 2))) == [(0, 4), (5, 2)]
    assert counts(watched((0, 1), (1, 4), (3, 2), (21, 5))) == [(0, 4), (5, 2), (20, 5)]


def test_an_unchanged_demand_is_the_same_object() -> None:
    levels = watched((0, 2), (7, 3))
    assert extended(levels, 3, BEGIN + timedelta(hours=30), KEEP) is levels


def test_times_in_which_nobody_watched_are_unknown() -> None:
    levels = watched((0, 2), (10, None), (30, 3))
    assert counts(levels) == [(0, 2), (15, None), (30, 3)]
    assert peak(levels, BEGIN, BEGIN + minutes(15)) == 2
    assert peak(levels, BEGIN, BEGIN + minutes(16)) is None
    assert peak(levels, BEGIN - minutes(1), BEGIN + minutes(5)) is None
    assert level_at(levels, BEGIN - minutes(1)) is None


def test_a_past_begins_when_something_is_known() -> None:
    assert watched((0, None), (10, None)) == ()
    assert counts(watched((0, None), (10, 3))) == [(10, 3)]
    assert watched((60, 2), (0, None)) == (), "a clock that jumped back begins it anew"


def test_whole_days_are_dropped_and_their_last_level_stays() -> None:
    days = watched(*((day * 1440 + hour * 60, hour) for day in range(5) for hour in range(3)))
    assert counts(days)[0] == (1440 + 120, 2)
    assert peak(days, BEGIN + timedelta(days=3), BEGIN + timedelta(days=4)) == 2


def test_a_clock_that_jumped_back_begins_the_past_anew() -> None:
    assert counts(watched((60, 2), (0, 1))) == [(0, 1)]


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        (watched((0, 0), (25, 3), (40, 5)), "2026-11-20T10:00:00Z 0 +25m 3 +40m 5"),
        (watched((0, 2), (10, None), (30, 3)), "2026-11-20T10:00:00Z 2 +15m ? +30m 3"),
        ((), ""),
    ],
)
def test_commits_carry_the_levels_until_then(levels: Levels, text: str) -> None:
    assert write_levels(levels, BEGIN + minutes(40)) == text
    assert not text or read_levels(text) == levels


def test_commits_carry_a_day_and_few_enough_levels_for_one_line() -> None:
    busy = watched(*((5 * number, 100 + number % 7) for number in range(400)))
    text = write_levels(busy, BEGIN + minutes(2000))
    assert len(text) < 300
    assert read_levels(text) == busy[-20:]
    quiet = watched((0, 1), (10, 0), (3000, 2))
    assert read_levels(write_levels(quiet, BEGIN + minutes(3000))) == quiet[1:]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x 1",
        "2026-11-20T10:00:00Z",
        "2026-11-20T10:00:00Z 1 5m 2",
        "2026-11-20T10:00:00Z 1 +5m 2 +5m 3",
        "2026-11-20T10:00:00Z one",
        "2026-11-20T10:00:00Z -1",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_levels(text)


def test_what_no_commit_tells_is_unknown() -> None:
    first = followed_by((), watched((0, 1), (5, 2)), BEGIN + minutes(12))
    assert counts(first) == [(0, 1), (5, 2), (15, None)]
    again = (DemandLevel(at=BEGIN + minutes(5), missing=2), DemandLevel(at=BEGIN + minutes(20), missing=0))
    assert counts(followed_by(first, again, BEGIN + minutes(31))) == [(0, 1), (5, 2), (20, 0), (35, None)]
    later = (DemandLevel(at=BEGIN + minutes(60), missing=4),)
    assert counts(followed_by(first, later, BEGIN + minutes(60)))[2:] == [(15, None), (60, 4), (65, None)]
