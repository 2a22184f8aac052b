"""Timestamps of the output branch: RFC 3339 in UTC, to the second (``2026-11-20T10:15:00Z``)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

YEARS = (2000, 2200)
"""The valid years. A later one comes from a broken clock, and adding a duration to it may overflow."""
_FIRST, _LAST = datetime(YEARS[0], 1, 1, tzinfo=UTC), datetime(YEARS[1], 12, 31, tzinfo=UTC)
NO_SUCH_YEAR = f"is not between the years {YEARS[0]} and {YEARS[1]}"

UTC_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"
"""A moment as `format_time` writes it, for the schemas of bodies and queries."""
_MOMENT = re.compile(UTC_PATTERN, re.ASCII)


@lru_cache(maxsize=4096)
def format_time(at: datetime) -> str:
    """Write a timestamp; fractions of a second are dropped."""
    return f"{at.astimezone(UTC).isoformat(timespec='seconds')[:19]}Z"


def is_plausible(at: datetime) -> bool:
    """Return whether a moment, in UTC, lies in a year that durations can be added to and subtracted from."""
    return YEARS[0] <= at.year <= YEARS[1]


def read_moment(text: str) -> datetime:
    """Return the moment that an object of a cluster states, in UTC; one beyond `YEARS` as the nearest in them.

    A moment without a time zone is taken for UTC. Raises ValueError for what is no moment.
    """
    moment = datetime.fromisoformat(text)
    return min(max(moment if moment.tzinfo else moment.replace(tzinfo=UTC), _FIRST), _LAST).astimezone(UTC)


def parse_time(text: str) -> datetime:
    """Read the output of `format_time`. Raises ValueError for every other form of the same moment.

    A single form is valid, so that a record that is read and written again has the same bytes.
    """
    if _MOMENT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a time")
    return datetime.fromisoformat(text)
