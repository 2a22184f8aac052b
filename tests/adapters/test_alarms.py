"""An alarm is never lost, whatever the clock does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue

import pytest

from reconciler.adapters.alarms import Alarms
from reconciler.adapters.clock import SystemClock


@pytest.fixture
def candidate() -> SimpleQueue[str]:
    return SimpleQueue()


@pytest.fixture
def alarms(candidate: SimpleQueue[str]) -> Iterator[Alarms]:
    alarms = Alarms(candidate.put)
    alarms.start()
    yield alarms
    alarms.stop()


def test_moment_a_month_ago_rings_at_once(alarms: Alarms, candidate: SimpleQueue[str]) -> None:
    alarms.at(SystemClock().now() - timedelta(days=31))
    assert candidate.get(timeout=60) == "alarm"


def test_moment_ahead_rings_then_and_not_before(alarms: Alarms, candidate: SimpleQueue[str]) -> None:
    due = datetime.now(UTC) + timedelta(milliseconds=80)
    alarms.at(due)
    assert candidate.get(timeout=60) == "alarm"
    assert datetime.now(UTC) >= due


def test_later_setting_replaces_the_earlier(alarms: Alarms, candidate: SimpleQueue[str]) -> None:
    alarms.at(datetime.now(UTC) + timedelta(milliseconds=60))
    alarms.at(datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(Empty):
        candidate.get(timeout=0.15)


def test_none_clears_the_alarm_and_may_be_said_twice(alarms: Alarms, candidate: SimpleQueue[str]) -> None:
    alarms.at(datetime.now(UTC) + timedelta(milliseconds=60))
    alarms.at(None)
    alarms.at(None)
    with pytest.raises(Empty):
        candidate.get(timeout=0.15)


def test_watch_wakes_only_when_something_changed(alarms: Alarms, candidate: SimpleQueue[str]) -> None:
    answers = [False, False, True]
    alarms.watch(lambda: bool(answers) and answers.pop(0), every=timedelta(milliseconds=20), reason="observation")
    assert candidate.get(timeout=60) == "observation"
    assert answers == []
    with pytest.raises(Empty):
        candidate.get(timeout=0.1)


def test_stopping_twice_is_fine(candidate: SimpleQueue[str]) -> None:
    alarms = Alarms(candidate.put)
    alarms.start()
    alarms.stop()
    alarms.stop()


def test_stopping_just_as_it_rings_kills_no_thread(candidate: SimpleQueue[str]) -> None:
    # A thread that dies of an exception fails the test that is running: warnings are errors.
    for _ in range(40):
        alarms = Alarms(candidate.put)
        alarms.start()
        alarms.at(SystemClock().now())
        assert candidate.get(timeout=60) == "alarm"
        alarms.stop()


def test_clock_is_utc_and_whole_seconds() -> None:
    before, now, after = time.time(), SystemClock().now(), time.time()
    assert now.tzinfo is UTC
    assert now.microsecond == 0
    assert int(before) <= now.timestamp() <= after
