"""A slow service is asked at most once an interval, however often there is something new to ask."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.adapters.rounds import Rounds
from tests.fakes.ticks import Ticks

MINUTE = timedelta(minutes=1)


class Service:
    """A service that notes when it is asked."""

    def __init__(self) -> None:
        self.ticks = Ticks()
        self.rounds = Rounds("service", self._ask, every=MINUTE, end=self._end, clock=self.ticks)
        self.asked: list[float] = []
        self.ended = False
        self.moment = 0.0

    def move(self, seconds: float) -> None:
        self.moment = seconds
        self.ticks.move(seconds, self.rounds.changed)

    def rest_at(self, seconds: float) -> None:
        """Move the clock, and wait until the thread rests by it."""
        self.move(seconds)
        self.ticks.until_rest(self.rounds.changed)

    def until_asked(self, times: int) -> None:
        with self.rounds.changed:
            assert self.rounds.changed.wait_for(lambda: len(self.asked) >= times, 60)

    def close(self) -> None:
        self.rounds.close()
        self.rounds.join(MINUTE)
        assert not self.rounds.running

    def _ask(self) -> None:
        with self.rounds.changed:
            self.asked.append(self.moment)
            self.rounds.changed.notify_all()

    def _end(self) -> None:
        self.ended = True


@pytest.fixture
def service() -> Service:
    service = Service()
    service.rounds.start()
    service.until_asked(1)
    return service


def test_a_round_begins_once_an_interval_and_not_before(service: Service) -> None:
    service.rest_at(20)
    service.rest_at(59.9)
    service.move(60)
    service.until_asked(2)
    service.close()
    assert service.asked == [0, 60]
    assert service.ended


def test_a_hurried_round_does_not_wait_for_the_interval(service: Service) -> None:
    service.rest_at(5)
    service.rounds.hurry()
    service.until_asked(2)
    service.close()
    assert service.asked == [0, 5]


def test_a_shorter_interval_holds_for_the_rest_under_way(service: Service) -> None:
    service.rest_at(10)
    service.rounds.set_interval(timedelta(seconds=10))
    service.until_asked(2)
    service.close()
    assert service.asked == [0, 10]


def test_rounds_that_are_closed_begin_no_more(service: Service) -> None:
    service.close()
    service.rounds.start()
    service.rounds.hurry()
    assert not service.rounds.running
    assert service.asked == [0]


def test_waiting_ends_when_all_is_settled_or_closed(service: Service) -> None:
    service.rounds.wait(lambda: bool(service.asked), timedelta(days=1))
    service.rounds.close()
    service.rounds.wait(lambda: False, timedelta(days=1))
    service.close()
