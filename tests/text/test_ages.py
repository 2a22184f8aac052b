"""Ages are as short as kubectl's: two units at most, the finer one only where it says much."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.text.ages import format_age


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=0.9), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=2, seconds=30), "2m30s"),
        (timedelta(minutes=10, seconds=59), "10m"),
        (timedelta(minutes=179, seconds=59), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=3, minutes=12), "3h12m"),
        (timedelta(hours=8, minutes=12), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2, hours=1), "2d1h"),
        (timedelta(days=8, hours=1), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=731), "2y1d"),
        (timedelta(days=9 * 365), "9y"),
    ],
)
def test_age(age: timedelta, text: str) -> None:
    assert format_age(age) == text
