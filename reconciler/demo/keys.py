"""The keys of the live picture: single characters from a terminal, without a line break and without an echo."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum


class Key(Enum):
    """What a person may ask of the demo."""

    MORE = "more demand"
    LESS = "less"
    REVERT = "revert a burst"
    KILL = "kill the daemon"
    QUIT = "end"


_KEYS: Mapping[str, Key] = {
    "+": Key.MORE,
    "=": Key.MORE,  # + without shift on many keyboards
    "-": Key.LESS,
    "r": Key.REVERT,
    "k": Key.KILL,
    "q": Key.QUIT,
}
LEGEND: tuple[tuple[str, Key], ...] = tuple((char, key) for char, key in _KEYS.items() if char != "=")
"""Each key with its character, in the order in which a screen explains them."""

_MOST = 64
"""Bytes that are read at once: nobody types more in a turn."""


def read_keys(text: str) -> tuple[Key, ...]:
    """Return the keys in typed characters; others mean nothing."""
    return tuple(_KEYS[char] for char in text.lower() if char in _KEYS)


class Keyboard:
    """A terminal that gives its characters one by one."""

    def __init__(self, descriptor: int) -> None:
        """Read from an open file."""
        self._descriptor = descriptor

    def wait(self, seconds: float) -> tuple[Key, ...]:
        """Return the keys that were pressed, as soon as there is input, or none after so many seconds.

        A terminal that is gone ends the demo.
        """
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, seconds))
        if not ready:
            return ()
        try:
            data = os.read(self._descriptor, _MOST)
        except OSError:
            data = b""
        return read_keys(data.decode(errors="replace")) if data else (Key.QUIT,)


@contextmanager
def keyboard(descriptor: int) -> Iterator[Keyboard | None]:
    """Take the keys of a terminal, and give them back with the block; None where it is none, or on Windows.

    Ctrl-C stays an interrupt. Ctrl-Z does nothing: a stopped demo would leave its screen behind.
    """
    if sys.platform == "win32" or not os.isatty(descriptor):
        yield None
        return
    import termios  # noqa: PLC0415 - not on Windows
    import tty  # noqa: PLC0415 - not on Windows

    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        now = termios.tcgetattr(descriptor)
        now[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(descriptor, termios.TCSANOW, now)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
