"""Moments that clusters state lie in years that durations can be added to and subtracted from."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.model.units import MAX_DURATION
from reconciler.text.timestamps import read_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00.123456Z", datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC)),
        ("2026-11-20T12:00:00+02:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("9999-12-31T23:59:59-23:59", datetime(2200, 12, 31, tzinfo=UTC)),
        ("0001-01-01T00:00:00+23:59", datetime(2000, 1, 1, tzinfo=UTC)),
    ],
)
def test_moment_of_a_cluster_is_in_utc_and_in_a_plausible_year(text: str, moment: datetime) -> None:
    read = read_moment(text)
    assert (read, read.tzinfo) == (moment, UTC)
    assert read - MAX_DURATION < read + MAX_DURATION


def test_text_that_is_no_moment_is_refused() -> None:
    with pytest.raises(ValueError, match="isoformat"):
        read_moment("yesterday")
