"""Dates of commits: those that anybody wrote, read within bounds, and those of ours after them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.text.digits import is_digits, whole_number
from reconciler.text.timestamps import YEARS

LONGEST_AHEAD = timedelta(hours=1)
"""How far the commit before ours may be dated ahead for ours to follow it: clocks that are right differ by less."""
_EARLIEST = datetime.fromtimestamp(0, UTC)
_LATEST = datetime(YEARS[1], 12, 31, 23, 59, 59, tzinfo=UTC)
_MOST_DIGITS = 12


def read_date(seconds: str) -> datetime:
    """Read the seconds since 1970 that git prints, or that stand in a commit.

    People write any number there: one before 1970, and none, reads as 1970, and one after the years of
    `text.timestamps` as the last moment of these.
    """
    digits = seconds.strip()
    if not is_digits(digits):
        return _EARLIEST
    read = whole_number(digits, _MOST_DIGITS)
    return _LATEST if read is None else datetime.fromtimestamp(min(read, int(_LATEST.timestamp())), UTC)


def date_after(at: datetime, parent: datetime | None) -> datetime:
    """Return the date of a commit of ours that is made at a moment, on top of a commit of another date.

    The later of both, since git log and engines expect ordered dates, unless the parent's is further ahead than a clock
    may be wrong: all later commits would bear it.
    """
    return parent if parent is not None and at < parent <= at + LONGEST_AHEAD else at
