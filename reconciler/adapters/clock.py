"""The system clock; no other module reads the time of day."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The clock of this machine (a `ports.Clock`)."""

    def now(self) -> datetime:
        """Return the time in UTC, cut to the second, the smallest unit of git and of our files."""
        return datetime.now(UTC).replace(microsecond=0)
