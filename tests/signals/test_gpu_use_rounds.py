"""Prometheus is asked for the use of GPUs once a minute, and not whenever a placement comes or goes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from reconciler.adapters.signals import PrometheusGpuUse
from reconciler.core.observe.gpu_use import GpuQuestion, round_interval
from reconciler.errors import Transient
from reconciler.model.workload import Json
from tests.builders.inputs import NOW
from tests.fakes.ticks import Ticks

AGE, LEAST, LONG = timedelta(minutes=2), timedelta(seconds=15), timedelta(days=1)


def question(text: str, idle: timedelta = timedelta(hours=1)) -> GpuQuestion:
    return GpuQuestion(idle=idle, text=text, label="cluster")


ONE, OTHER = question("one"), question("other")


class Server:
    """Notes which queries are put; answers that nothing is measured, or not at all."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = False
        self.is_away = False

    def ask_series(self, query: str) -> Json:
        self.asked.append(query)
        if self.is_away:
            raise Transient("no connection")
        return {"status": "success", "data": {"resultType": "vector", "result": []}}

    def close(self) -> None:
        self.closed = True

    def now(self) -> datetime:
        return NOW


class Asking:
    """A view, the server that it asks, and the clock of its rounds."""

    def __init__(self, *, patience: timedelta = timedelta()) -> None:
        self.server, self.ticks = Server(), Ticks()
        self.view = PrometheusGpuUse(
            self.server, label="cluster", clock=self.server, patience=patience, every=LEAST, ticks=self.ticks
        )
        self.changed = self.view._rounds.changed

    def follow(self, *questions: GpuQuestion) -> None:
        self.view.follow(questions, AGE)

    def rest_at(self, seconds: float) -> None:
        self.ticks.move(seconds, self.changed)
        self.ticks.until_rest(self.changed)

    def until_asked(self, *queries: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.server.asked == [*queries], 60), self.server.asked

    def close(self) -> None:
        self.view.close()
        self.view._rounds.join(timedelta(minutes=1))


@pytest.fixture
def daemon() -> Iterator[Asking]:
    asking = Asking()
    yield asking
    asking.close()
    assert asking.server.closed


@pytest.fixture
def command() -> Iterator[Asking]:
    asking = Asking(patience=timedelta(minutes=1))
    yield asking
    asking.close()


def test_a_daemon_asks_what_is_new_in_the_round_that_is_due(daemon: Asking) -> None:
    daemon.follow(ONE)
    daemon.until_asked("one")
    daemon.rest_at(20)
    daemon.follow(ONE, OTHER)
    daemon.rest_at(59)
    assert daemon.server.asked == ["one"]
    assert set(daemon.view.observe().answers) == {ONE}
    daemon.ticks.move(60, daemon.changed)
    daemon.until_asked("one", "one", "other")


def test_a_command_waits_for_the_answer_to_what_is_new(command: Asking) -> None:
    command.follow(ONE)
    command.follow(OTHER)
    assert set(command.view.observe().answers) == {OTHER}
    assert command.server.asked == ["one", "other"]


def test_a_server_that_is_away_is_asked_one_query_a_round(command: Asking) -> None:
    command.server.is_away = True
    command.follow(ONE, OTHER)
    assert command.server.asked == ["one"]
    assert command.view.observe().trouble == "no connection"


def test_a_fleet_without_idle_times_asks_nothing(daemon: Asking) -> None:
    daemon.follow()
    assert not daemon.view._rounds.running
    daemon.follow(ONE)
    daemon.until_asked("one")


@pytest.mark.parametrize(
    ("idle", "max_age", "expected"),
    [
        (timedelta(hours=1), AGE, timedelta(minutes=1)),
        (timedelta(minutes=3), AGE, timedelta(seconds=30)),
        (timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=30)),
        (timedelta(seconds=30), AGE, LEAST),
        (None, AGE, timedelta(minutes=1)),
    ],
    ids=["a minute", "a short idle time", "answers that count for a minute", "not too often", "no question"],
)
def test_a_round_is_due(idle: timedelta | None, max_age: timedelta, expected: timedelta) -> None:
    asked = () if idle is None else (question("one", idle), question("other", LONG))
    assert round_interval(asked, least=LEAST, max_age=max_age) == expected
