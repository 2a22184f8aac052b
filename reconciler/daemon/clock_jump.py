"""Jumps of the clock between two passes: somebody set it, or the machine slept.

What a process has watched over a time is worth nothing after one: a window has not been watched because the clock says
that it is over (docs/decisions/0033-the-time-of-a-pass.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.units import format_duration

LEAST_JUMP = timedelta(seconds=2)
"""The least difference that is a jump: times are cut to the second, and both clocks are not read at one moment."""

LONGEST_READING = timedelta(seconds=0.5)
"""A reading of both clocks that took longer, on a machine that stalled, tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """Both clocks at one moment."""

    at: datetime
    """The time of day, to the second."""
    uptime: timedelta
    """Time by a clock that nobody sets, from any beginning."""


def jump_between(before: ClockReading, now: ClockReading) -> timedelta:
    """Return how far the clock was put ahead between two readings, negative if back; zero where nobody set it."""
    jump = (now.at - before.at) - (now.uptime - before.uptime)
    return jump if abs(jump) >= LEAST_JUMP else timedelta()


def describe_jump(jump: timedelta) -> str:
    """Tell the way and the size of a jump in whole seconds."""
    size = format_duration(timedelta(seconds=round(abs(jump).total_seconds())))
    return f"{size} ahead" if jump > timedelta() else f"{size} back"
