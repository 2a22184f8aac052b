"""The loop runs a pass when there is a reason to, and only then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from reconciler.daemon import loop as loops
from reconciler.daemon.loop import Loop, PassResult
from reconciler.daemon.steer import retry_conflicts
from reconciler.errors import Bug, Conflict, HostKeyChanged, InvalidInput, Transient

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LONG = timedelta(hours=1)


@dataclass
class Done:
    wake_at: datetime | None = None
    commits: tuple[str, ...] = ()
    pushes: int = 1
    bugs: tuple[Bug, ...] = ()


@dataclass
class FixedClock:
    at: datetime = NOON

    def now(self) -> datetime:
        return self.at


@dataclass
class Rings:
    moments: list[datetime | None] = field(default_factory=list)

    def at(self, moment: datetime | None) -> None:
        self.moments.append(moment)


class Script:
    """Passes that end as told, one after the other, then well for ever; keeps what each was asked."""

    def __init__(self, *endings: Exception | Done) -> None:
        self.endings = list(endings)
        self.fetches: list[bool] = []
        self.hold = threading.Event()
        self.hold.set()

    def __call__(self, *, fetch: bool) -> Done:
        self.fetches.append(fetch)
        ending = self.endings.pop(0) if self.endings else Done()
        assert self.hold.wait(60)
        if isinstance(ending, Exception):
            raise ending
        return ending


@dataclass
class Running:
    loop: Loop[Done]
    rings: Rings
    told: list[Done]
    maintained: list[int]
    kept: list[int]
    results: list[PassResult]


@contextmanager
def running(
    script: Script, *, poll: timedelta = LONG, backoff: timedelta = timedelta(milliseconds=10), luck: float = 0.01
) -> Iterator[Running]:
    rings, told, maintained, kept = Rings(), list[Done](), list[int](), list[int]()
    results: list[PassResult] = []
    loop = Loop(
        script,
        clock=FixedClock(),
        alarm=rings,
        tell=told.append,
        maintain=lambda: maintained.append(len(told)),
        keep=lambda: kept.append(len(told)),
        random=lambda: luck,
        count=lambda result, _seconds: results.append(result),
        poll=poll,
        longest_backoff=backoff,
    )
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield Running(loop, rings, told, maintained, kept, results)
    finally:
        loop.stop()
        thread.join(60)
        assert not thread.is_alive()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.002)


def stays(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 0.06
    while time.monotonic() < deadline:
        assert condition()
        time.sleep(0.005)


def test_start_runs_a_pass_at_once_and_fetches() -> None:
    script = Script()
    with running(script):
        until(lambda: script.fetches)
        stays(lambda: script.fetches == [True])


def test_poll_fetches_again_and_again() -> None:
    script = Script()
    with running(script, poll=timedelta(milliseconds=10)):
        until(lambda: len(script.fetches) >= 4)
    assert all(script.fetches)


@pytest.mark.parametrize(
    ("reason", "fetches"),
    [("hint", True), ("reload", True), ("alarm", False), ("observation", False), ("order", False)],
)
def test_only_what_comes_from_the_remote_makes_a_pass_fetch(reason: str, *, fetches: bool) -> None:
    script = Script()
    with running(script) as it:
        until(lambda: it.told)
        it.loop.wake(reason)
        until(lambda: len(script.fetches) == 2)
    assert script.fetches == [True, fetches]


def test_observations_that_never_stop_do_not_put_off_the_poll() -> None:
    script = Script()
    with running(script, poll=timedelta(milliseconds=40)) as it:
        deadline = time.monotonic() + 60
        while script.fetches.count(True) < 3:
            assert time.monotonic() < deadline
            it.loop.wake("observation")
            time.sleep(0.002)
    assert script.fetches.count(False) > 3


def test_reasons_that_come_during_a_pass_make_one_more() -> None:
    script = Script()
    script.hold.clear()
    with running(script) as it:
        until(lambda: script.fetches)
        for _ in range(1000):
            it.loop.wake("observation")
            it.loop.wake("alarm")
        script.hold.set()
        until(lambda: len(it.told) == 2)
        stays(lambda: len(script.fetches) == 2)


def test_conflict_runs_the_pass_again_at_once_with_a_fetch() -> None:
    script = Script(Done(), Conflict("moved"), Conflict("moved"))
    with running(script) as it, structlog.testing.capture_logs() as logs:
        until(lambda: it.told)
        it.loop.wake("observation")
        until(lambda: len(it.told) == 2)
    assert script.fetches == [True, False, True, True]
    assert logs == []


def test_each_pass_is_counted_by_its_result() -> None:
    endings = (Conflict("moved"), Transient("away"), InvalidInput("no"), KeyError("bug"), Done())
    with structlog.testing.capture_logs(), running(Script(*endings), poll=timedelta(milliseconds=10)) as it:
        until(lambda: it.told)
    assert it.results[:5] == ["conflict", "outage", "refused", "bug", "ok"]


def test_conflicts_are_bounded_and_end_as_an_outage() -> None:
    script = Script(*[Conflict("moved")] * 9, Conflict("cannot lock ref: File exists"))
    with structlog.testing.capture_logs() as logs, running(script) as it:
        until(lambda: it.told)
    assert len(script.fetches) == 11
    assert [entry["event"] for entry in logs] == ["backing off", "working again"]
    assert logs[0]["why"] == "cannot lock ref: File exists; this was the last of 10 tries in a row"


def test_a_command_tells_what_the_remote_said_of_its_last_conflict() -> None:
    said = iter([*["moved"] * 9, "cannot lock ref: File exists"])

    def attempt() -> None:
        raise Conflict(next(said))

    with pytest.raises(Transient, match=r"^cannot lock ref: File exists; this was the last of 10 tries"):
        retry_conflicts(attempt, random=lambda: 0)


def test_outage_is_logged_when_it_begins_and_when_it_ends() -> None:
    script = Script(*[Transient(f"no route to host, try {number}") for number in range(7)])
    with structlog.testing.capture_logs() as logs, running(script) as it:
        until(lambda: it.told)
    assert [(entry["log_level"], entry["event"]) for entry in logs] == [
        ("warning", "backing off"),
        ("info", "working again"),
    ]
    assert logs[1]["failed_tries"] == 7
    assert all(script.fetches)


def test_rate_limit_is_waited_out_beyond_the_back_off_of_an_outage() -> None:
    script = Script(Transient("too many requests", pause=LONG))
    with running(script) as it:
        until(lambda: it.loop.vitals().trouble)
        stays(lambda: len(script.fetches) == 1)
        assert not it.loop.vitals().alarm


def test_changed_host_key_is_an_alarm_until_it_is_mended() -> None:
    script = Script(HostKeyChanged("another key"), Done())
    with structlog.testing.capture_logs() as logs, running(script) as it:
        until(lambda: it.loop.vitals().alarm)
        it.loop.wake("hint")
        until(lambda: it.told)
        assert not it.loop.vitals().alarm
    assert [(entry["log_level"], entry["event"][:5]) for entry in logs] == [("error", "alarm"), ("info", "worki")]


def test_back_off_is_cut_short_by_reload_only() -> None:
    script = Script(Transient("away"))
    with running(script, backoff=LONG, luck=0.5) as it:
        until(lambda: it.loop.vitals().trouble)
        for reason in ("observation", "alarm", "hint"):
            it.loop.wake(reason)
        # The back-off begins with three quarters of a second here.
        stays(lambda: len(script.fetches) == 1)
        it.loop.wake("reload")
        until(lambda: it.told)


def test_refused_input_waits_for_a_poll_or_a_push_by_a_person() -> None:
    script = Script(InvalidInput("branch is protected"), InvalidInput("branch is protected"))
    with structlog.testing.capture_logs() as logs, running(script) as it:
        until(lambda: it.loop.vitals().trouble)
        it.loop.wake("alarm")
        it.loop.wake("observation")
        stays(lambda: len(script.fetches) == 1)
        it.loop.wake("hint")
        until(lambda: len(script.fetches) == 2)
        it.loop.wake("hint")
        until(lambda: it.told)
    assert [entry["event"] for entry in logs] == ["refused; trying again at each poll", "working again"]
    assert logs[0]["why"] == "branch is protected"


def test_refused_input_is_tried_again_at_each_poll() -> None:
    script = Script(*[InvalidInput("branch is protected")] * 3)
    with running(script, poll=timedelta(milliseconds=10)) as it:
        until(lambda: it.told)
    assert script.fetches[:4] == [True] * 4


def test_bug_is_logged_with_its_traceback_counted_and_survived() -> None:
    script = Script(KeyError("spec"), KeyError("spec"))
    with structlog.testing.capture_logs() as logs, running(script) as it:
        until(lambda: it.told)
        assert it.loop.vitals().bugs == 2
    assert [entry["event"] for entry in logs] == ["bug; backing off", "working again"]
    assert isinstance(logs[0]["exc_info"], KeyError)


def test_stop_lets_the_pass_under_way_finish_and_begins_no_other() -> None:
    script = Script()
    script.hold.clear()
    with running(script) as it:
        until(lambda: script.fetches)
        it.loop.wake("hint")
        it.loop.stop()
        script.hold.set()
        until(lambda: it.told)
        stays(lambda: len(script.fetches) == 1)


def test_stop_between_conflicts_begins_no_other_try() -> None:
    script = Script(*[Conflict("moved")] * 9)
    script.hold.clear()
    with running(script) as it:
        until(lambda: script.fetches)
        it.loop.stop()
        script.hold.set()
    assert len(script.fetches) == 1


def test_alarm_is_set_to_what_the_pass_asked_for() -> None:
    script = Script(Done(wake_at=NOON + timedelta(minutes=5)), Done())
    with running(script) as it:
        until(lambda: it.told)
        it.loop.wake("hint")
        until(lambda: len(it.told) == 2)
    assert it.rings.moments == [NOON + timedelta(minutes=5), None]


def test_moment_that_has_passed_does_not_make_the_loop_spin() -> None:
    script = Script(Done(wake_at=NOON - timedelta(days=30)))
    with running(script) as it:
        until(lambda: it.told)
    assert it.rings.moments == [NOON + timedelta(seconds=1)]


def test_house_is_kept_after_so_many_passes_that_changed_something() -> None:
    script = Script(*[Done(commits=("burst",))] * loops.MAINTAIN_EVERY, Done())
    with running(script, poll=timedelta(microseconds=1)) as it:
        until(lambda: it.maintained)
    assert it.maintained == [loops.MAINTAIN_EVERY]


def test_house_is_kept_after_as_many_pushes_of_one_pass() -> None:
    script = Script(Done(commits=("burst",), pushes=loops.MAINTAIN_EVERY), Done())
    with running(script, poll=timedelta(microseconds=1)) as it:
        until(lambda: it.maintained)
    assert it.maintained == [1]


def test_what_was_read_is_kept_after_passes_that_ended_well() -> None:
    script = Script(Done(), Transient("away"), Done())
    with running(script, poll=timedelta(microseconds=1)) as it:
        until(lambda: len(it.kept) >= 2)
    assert it.kept[:2] == [1, 2]


def test_what_was_read_is_kept_now_and_then_where_there_is_always_a_reason() -> None:
    class Busy(Script):
        wake: Callable[[str], None]

        def __call__(self, *, fetch: bool) -> Done:
            self.wake(loops.OBSERVATION)
            return super().__call__(fetch=fetch)

    script = Busy(*[Done()] * (loops.KEEP_EVERY + 1))
    script.wake = lambda _: None
    with running(script) as it:
        until(lambda: it.kept)
        script.wake = it.loop.wake
        it.loop.wake(loops.OBSERVATION)
        until(lambda: len(it.kept) > 1)
    assert it.kept[:2] == [1, loops.KEEP_EVERY]


def test_vitals_tell_a_loop_that_is_stuck_from_one_that_waits() -> None:
    script = Script()
    with running(script, poll=timedelta(milliseconds=1), backoff=timedelta(milliseconds=1)) as it:
        until(lambda: it.loop.vitals().passes > 3)
        assert it.loop.vitals().trouble == ""
        script.hold.clear()
        until(lambda: it.loop.vitals().idle > it.loop.vitals().stuck_after)
        script.hold.set()
        until(lambda: it.loop.vitals().idle < it.loop.vitals().stuck_after)


def test_back_off_begins_anew_after_a_pass_that_ended_well(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []

    def noted(failures: int, **_: float) -> float:
        waits.append(failures)
        return 0

    monkeypatch.setattr("reconciler.daemon.loop.backoff", noted)
    away = Transient("away")
    with structlog.testing.capture_logs(), running(Script(away, away, Done(), away)) as it:
        until(lambda: it.told)
        it.loop.wake("reload")
        until(lambda: len(waits) == 3)
    assert waits == [1, 2, 1]
