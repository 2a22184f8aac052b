"""Progress is one line of a terminal's error stream, and gone before the first word of the answer."""

from __future__ import annotations

import io
import re
import sys
import threading

import pytest

from reconciler.cli import main, progress
from reconciler.cli.progress import DOING, ProgressLine


class FakeTerminal(io.StringIO):
    """A terminal that tells when something has been written to it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        length = super().write(text)
        self.written.set()
        return length


def test_a_long_wait_is_a_line_that_is_cleared_in_the_end() -> None:
    terminal = FakeTerminal()
    line = ProgressLine("planning", terminal, after=0, every=0.001)
    line.start()
    assert terminal.written.wait(30)
    line.end()
    text = terminal.getvalue()
    assert re.match(r"\r\x1b\[K. planning … \d+ s", text)
    assert text.endswith("\r\x1b[K")
    line.end()
    assert terminal.getvalue() == text


def test_the_first_word_of_an_answer_ends_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = FakeTerminal(), FakeTerminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with progress.shown("plan"):
        assert sys.stdout.isatty()
        print("Nothing to change.")  # noqa: T201 - the answer
        assert [thread.name for thread in threading.enumerate() if thread.name == "progress"] == []
    assert (out.getvalue(), err.getvalue()) == ("Nothing to change.\n", "")
    assert sys.stdout is out


def test_there_is_none_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with progress.shown("plan"):
        assert sys.stderr is err


def test_only_commands_have_progress() -> None:
    assert set(DOING) <= set(main.commands)
