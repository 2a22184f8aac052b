"""Work that is counted by the lines that Python runs, not by the clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class TooMuchWork(AssertionError):  # noqa: N818 - it names what was met
    """The call has run more lines than it may."""


def within(lines: int, call: Callable[[], T]) -> T:
    """Call a function, and raise TooMuchWork as soon as it has run more than so many lines."""
    left = lines

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                raise TooMuchWork(f"over {lines:,} lines")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = call()
    finally:
        sys.settrace(before)
    if left < 0:  # a bulkhead on the way has taken it for a bug, and Python no longer traced what came then
        raise TooMuchWork(f"over {lines:,} lines")
    return result
