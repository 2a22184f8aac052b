"""Signals end the loop between passes, never within one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.daemon.loop import Loop, handle_signals


@dataclass
class Done:
    wake_at: datetime | None = None
    commits: tuple[str, ...] = ()
    pushes: int = 1


class Still:
    """A clock that stands, and an alarm that never rings."""

    def now(self) -> datetime:
        return datetime(2026, 11, 20, 12, tzinfo=UTC)

    def at(self, moment: datetime | None) -> None:
        pass


def kill(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def run(pass_: Callable[..., Done]) -> list[Done]:
    """Run a loop in this thread, as the daemon does, and return the passes that ended well."""
    told: list[Done] = []
    loop = Loop(
        pass_,
        clock=Still(),
        alarm=Still(),
        tell=told.append,
        maintain=lambda: None,
        keep=lambda: None,
        random=lambda: 0.5,
        poll=timedelta(hours=1),
    )
    rescue = threading.Timer(5, loop.stop)  # so that a signal that does nothing fails the test instead of hanging it
    rescue.start()
    try:
        with handle_signals(loop):
            loop.run()
    finally:
        assert rescue.is_alive(), "the signal did not end the loop"
        rescue.cancel()
        rescue.join()
    return told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_pass_under_way_is_finished_and_no_other_begins(number: signal.Signals) -> None:
    passes: list[bool] = []

    def pass_(*, fetch: bool) -> Done:
        passes.append(fetch)
        kill(number)
        passes.append(fetch)
        return Done()

    assert len(run(pass_)) == 1
    assert len(passes) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_a_loop_that_waits(number: signal.Signals) -> None:
    def pass_(**_: bool) -> Done:
        threading.Timer(0.05, kill, [number]).start()
        return Done()

    assert len(run(pass_)) == 1


def test_second_interrupt_does_not_wait_for_the_pass() -> None:
    reached: list[str] = []

    def pass_(**_: bool) -> Done:
        kill(signal.SIGINT)
        reached.append("first")
        kill(signal.SIGINT)
        reached.append("second")
        return Done()

    with pytest.raises(KeyboardInterrupt):
        run(pass_)
    assert reached == ["first"]


def test_hangup_runs_a_pass_with_a_fetch() -> None:
    fetches: list[bool] = []

    def pass_(*, fetch: bool) -> Done:
        fetches.append(fetch)
        threading.Timer(0.05, kill, [signal.SIGHUP if len(fetches) == 1 else signal.SIGTERM]).start()
        return Done()

    assert len(run(pass_)) == 2
    assert fetches == [True, True]


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    run(lambda **_: (kill(signal.SIGTERM), Done())[1])
    assert signal.getsignal(signal.SIGTERM) is before
