"""`--watch` shows what has changed, and nothing that changes by itself."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator

import click
import pytest

from reconciler.cli.actions.follow import changed_lines, follow
from reconciler.errors import Transient

BEFORE = """\
At 2026-11-20T09:06:13Z; the next look is due in 9m50s.

Placements
PLACEMENT      WORKLOAD  CLUSTER   PHASE    AGE  LEFT   NOTE
vllm-0a4ff000  llm/vllm  worker-2  Running  10s  9m50s  -
vllm-18d84286  llm/vllm  worker-3  Pending  10s  9m50s  -
"""
LATER = BEFORE.replace("09:06:13", "09:06:15").replace("9m50s", "9m48s").replace("10s", "12s")


def test_times_that_pass_are_no_change() -> None:
    assert list(changed_lines(BEFORE, LATER)) == []


def test_a_changed_row_is_shown_as_it_is_now() -> None:
    after = LATER.replace("Pending", "Running").replace("AGE ", "AGE   ")
    assert list(changed_lines(BEFORE, after)) == ["vllm-18d84286  llm/vllm  worker-3  Running  12s  9m48s  -"]


def test_a_row_that_has_gone_is_told() -> None:
    row = LATER.splitlines(keepends=True)[-1]
    gone = BEFORE.splitlines()[-1]
    assert list(changed_lines(BEFORE, LATER.replace(row, ""))) == [f"gone  {gone}"]


def test_a_planned_placement_has_other_digits_in_each_look() -> None:
    row = "Place   llm/vllm  vllm-7f50b34c  worker-2  4  2026-11-23T18:53:25Z  3 missing for 51s"
    later = row.replace("7f50b34c", "00ff00ff").replace("51s", "1m2s")
    assert list(changed_lines(row, later)) == []
    assert list(changed_lines(row, later.replace("  4  ", "  5  "))) == [
        later.replace("  4  ", "  5  "), f"gone  {row}"
    ][:1]  # fmt: skip # the row of the same workload has changed, and not gone


def looks(*answers: str | Exception) -> tuple[Callable[[], None], Callable[[float], None]]:
    """Return a command that prints one answer after the other, and a pause that ends the last one with Ctrl-C."""
    left: Iterator[str | Exception] = iter(answers)
    pauses = len(answers)

    def command() -> None:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        click.echo(answer)

    def pause(seconds: float) -> None:
        nonlocal pauses
        pauses -= 1
        if not pauses:
            raise KeyboardInterrupt

    return command, pause


def test_changes_are_lines_with_their_time_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    row = "vllm-1  llm/vllm  worker-2  Pending"
    command, pause = looks(row, row, Transient("the remote does not answer"), row.replace("Pending", "Running"))
    with pytest.raises(KeyboardInterrupt):
        follow(command, pause=pause)
    captured = capsys.readouterr()
    first, second = captured.out.splitlines()
    assert first == row
    assert second.endswith("Z  vllm-1  llm/vllm  worker-2  Running")
    assert captured.err == "error: the remote does not answer\n"


def test_an_error_of_the_first_look_ends_the_command() -> None:
    command, pause = looks(Transient("the remote does not answer"))
    with pytest.raises(Transient):
        follow(command, pause=pause)


class Screen(io.StringIO):
    """A terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_sigterm_gives_the_screen_back(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, handler = Screen(), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(SystemExit) as left:
        follow(looks("the first answer")[0], pause=lambda _: os.kill(os.getpid(), signal.SIGTERM))
    drawn = screen.getvalue()
    assert left.value.code == 143
    assert drawn.endswith("the first answer\n")
    assert drawn.index("\x1b[?1049h") < drawn.index("\x1b[?1049l")
    assert drawn.rindex("\x1b[?25l") < drawn.rindex("\x1b[?25h")
    assert signal.getsignal(signal.SIGTERM) is handler


def test_terminal_without_a_screen_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "dumb")
    command, pause = looks("the first answer")
    with pytest.raises(KeyboardInterrupt):
        follow(command, pause=pause)
    assert screen.getvalue() == "the first answer\n"
