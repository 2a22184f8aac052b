"""The keys of the demo come one by one, and the terminal is given back as it was."""

from __future__ import annotations

import os
import pty
import termios

from reconciler.demo.keys import LEGEND, Key, Keyboard, keyboard, read_keys


def test_characters_are_keys_and_others_mean_nothing() -> None:
    assert read_keys("+=-rRkq") == (
        Key.MORE, Key.MORE, Key.LESS, Key.REVERT, Key.REVERT, Key.KILL, Key.QUIT,
    )  # fmt: skip # one line of keys
    assert read_keys("\x1b[A x\n") == ()
    assert {key for _, key in LEGEND} == set(Key)


def test_keys_are_read_without_a_line_break_and_the_terminal_is_given_back() -> None:
    outer, inner = pty.openpty()
    try:
        before = termios.tcgetattr(inner)
        with keyboard(inner) as keys:
            assert keys is not None
            assert keys.wait(0) == ()
            os.write(outer, b"+r")
            assert keys.wait(10) == (Key.MORE, Key.REVERT)
            assert not termios.tcgetattr(inner)[3] & (termios.ICANON | termios.ECHO)
        assert termios.tcgetattr(inner) == before
    finally:
        os.close(inner)
        os.close(outer)


def test_input_that_has_ended_ends_the_demo() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    try:
        assert Keyboard(reader).wait(0) == (Key.QUIT,)
        with keyboard(reader) as keys:
            assert keys is None
    finally:
        os.close(reader)
