"""The one place that reads the time of day."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """This machine's clock (a `ports.Clock`)."""

    def now(self) -> datetime:
        """Return the present moment in UTC, cut to the second: git and our files know no smaller unit."""
        return datetime.now(UTC).replace(microsecond=0)
