r"""Whole numbers in texts that people, clusters and servers wrote: ASCII digits alone, and a bounded number of them.

Python takes more for a number than what the text is written for does: ``int("٣")`` is 3, ``int("1_000")`` is 1000,
``int(" 7 ")`` is 7, ``str.isdecimal`` and ``\d`` take the digits of each script, and ``int`` refuses more than 4,300
digits by an exception. API servers and other readers refuse them.
"""

from __future__ import annotations

MAX_DIGITS = 18
"""Digits of a number that fits in 64 bits, whatever they are."""


def is_digits(text: str) -> bool:
    """Return whether a text is nothing but ASCII digits, one at least."""
    return text.isascii() and text.isdecimal()


def whole_number(text: str, digits: int = MAX_DIGITS) -> int | None:
    """Read a whole number of at most `digits` ASCII digits, without a sign; None for any other text."""
    return int(text) if len(text) <= digits and is_digits(text) else None
