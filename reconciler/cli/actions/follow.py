"""`--watch`: a command that looks again and again, and shows what has changed.

A terminal gets the answer drawn anew in its place. Elsewhere the first answer is printed whole, and then a line for
each line of it that is new or gone. Times that pass by themselves are no change.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from types import FrameType
from typing import TextIO

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from reconciler.adapters.clock import SystemClock
from reconciler.app.commands import kept_open
from reconciler.cli import printing
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

EVERY = 2.0
"""Seconds between two looks."""

_MOVING = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b(?:\d+[ydhms])+\b", re.ASCII)
"""Times and durations, which change from one look to the next."""
_DRAFT = re.compile(r"^(Place|Move) .*")
_DIGITS = re.compile(r"-[0-9a-f]{8}\b")
"""The end of a placement's name; a plan has other digits in each look."""
_CELLS = re.compile(r"\s{2,}")
_ROW = 3
"""Cells of the shortest row of a table."""


def follow(command: Callable[[], None], *, pause: Callable[[float], None] = time.sleep) -> None:
    """Run a command until Ctrl-C, with everything that it opens kept open, and show each answer.

    An error of the first look is raised; a later one is shown, and the next look may do better.
    """
    with ExitStack() as stack:
        stack.enter_context(kept_open())
        answer = _first_look(command)
        show = stack.enter_context(_drawn() if sys.stdout.isatty() and not _is_dumb() else _printed())
        while True:
            show(*answer)
            pause(EVERY)
            answer = _look(command)


class _Capture(io.StringIO):
    """Takes the place of a stream, and is a terminal if that is one."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._terminal = stream.isatty()

    def isatty(self) -> bool:
        """Return whether the answer is laid out for a terminal."""
        return self._terminal


def _first_look(command: Callable[[], None]) -> tuple[str, str]:
    out = _Capture(sys.stdout)
    with redirect_stdout(out), suppress(click.exceptions.Exit):  # what it has to say is printed all the same
        command()
    return out.getvalue(), ""


def _look(command: Callable[[], None]) -> tuple[str, str]:
    """Return what a command prints on both streams; an error that may pass is printed on the second."""
    out, err = _Capture(sys.stdout), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), suppress(click.exceptions.Exit):
        try:
            command()
        except InvalidInput as error:
            if not printing.problems(error.problems):
                printing.complain(str(error))
        except (Transient, Conflict) as error:
            printing.complain(str(error))
    return out.getvalue(), err.getvalue()


@contextmanager
def _drawn() -> Iterator[Callable[[str, str], None]]:
    """Draw answers in the place of each other, and leave the last one on the screen."""
    console, last = Console(), [""]
    try:
        with _left_by_sigterm(), Live(console=console, screen=True, auto_refresh=False) as live:

            def show(out: str, err: str) -> None:
                text = out + err
                if text == last[0]:
                    return
                last[0] = text
                lines = text.splitlines()
                room = console.height - 1
                if len(lines) > room:
                    lines = [*lines[: room - 1], f"… {count(len(lines) - room + 1, 'line')} more: a pipe shows all"]
                live.update(Text.from_ansi("\n".join(lines)), refresh=True)

            yield show
    finally:
        printing.write(last[0], nl=False)


def _is_dumb() -> bool:
    """Return whether the terminal, as that of an editor, has no screen to draw on."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


@contextmanager
def _left_by_sigterm() -> Iterator[None]:
    """Have SIGTERM leave the block, with the exit code of a shell: the screen is given back, and the cursor shown."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _printed() -> Iterator[Callable[[str, str], None]]:
    """Print the first answer, and then what has changed with the time."""
    answers: list[str] = []
    errors = [""]

    def show(out: str, err: str) -> None:
        if not answers:
            printing.write(out, nl=False)
        else:
            now = format_time(SystemClock().now())
            for line in changed_lines(answers.pop(), out) if out else ():
                printing.write(f"{now}  {line}")
        if out or not answers:
            answers[:] = [out]
        if _still(err) != _still(errors[0]):
            printing.write(err, nl=False, err=True)
        errors[0] = err
        sys.stdout.flush()

    yield show


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines of an answer that the one before did not have, then ``gone`` with each row that has gone."""
    old, new = Counter(map(_still, before.splitlines())), Counter(map(_still, after.splitlines()))
    for line in after.splitlines():
        if not line.strip():
            continue
        if old[_still(line)] > 0:
            old[_still(line)] -= 1
        else:
            yield line
    rows = {_row(line) for line in after.splitlines()}
    for line in before.splitlines():
        row = _row(line)
        if row is not None and not new[_still(line)] and row not in rows:
            yield f"gone  {line}"


def _still(text: str) -> str:
    """Return a text without what changes by itself: times, the widths of columns, digits of drafted placements."""
    text = _DRAFT.sub(lambda match: _DIGITS.sub("", match[0]), text)
    return " ".join(_MOVING.sub("*", text).split())


def _row(line: str) -> tuple[str, ...] | None:
    """Return the cells by which a row is known; None for a line that is no row."""
    cells = _CELLS.split(line.strip())
    if len(cells) < _ROW or line.startswith(" ") or line == line.upper():
        return None
    return tuple(map(_still, cells[:2]))
