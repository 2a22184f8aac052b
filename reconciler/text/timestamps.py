"""Moments as the output branch writes them: RFC 3339 in UTC, to the second (``2026-11-20T10:15:00Z``)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

YEARS = (2000, 2200)
"""The years that a moment may lie in. One beyond comes of a broken clock, and adding a duration to it may overflow."""
NO_SUCH_YEAR = f"is not between the years {YEARS[0]} and {YEARS[1]}"

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def format_time(at: datetime) -> str:
    """Write a moment; part seconds are dropped."""
    return f"{at.astimezone(UTC).isoformat(timespec='seconds')[:19]}Z"


def is_plausible(at: datetime) -> bool:
    """Tell whether a moment, in UTC, lies in a year that durations can be added to and taken from."""
    return YEARS[0] <= at.year <= YEARS[1]


def parse_time(text: str) -> datetime:
    """Read what `format_time` wrote. Raises ValueError for every other way to write the same moment.

    One form only, so that a record that was read and written again has the same bytes.
    """
    if _MOMENT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a time")
    return datetime.fromisoformat(text)
