"""How often somebody may call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.access.rate_limit import Buckets, Rate, parse_rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50/s", Rate(per_second=50, burst=200)),
        ("1/s", Rate(per_second=1, burst=4)),
        ("600/m", Rate(per_second=10, burst=600)),
        ("6/m", Rate(per_second=0.1, burst=6)),
        ("3600/h", Rate(per_second=1, burst=3600)),
    ],
)
def test_rate_is_a_number_and_a_time(text: str, rate: Rate) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "50", "0/s", "-1/s", "50/d", "1.5/s", " 50/s", "50/s\n", "9999999/s"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of calls a time"):
        parse_rate(text)


@given(st.lists(st.floats(0, 10), max_size=200), st.integers(1, 20), st.integers(1, 20))
def test_nobody_gets_more_than_the_burst_and_the_rate(pauses: list[float], per_second: int, burst: int) -> None:
    buckets = Buckets(Rate(per_second=per_second, burst=burst))
    now, entered = 0.0, 0
    for pause in pauses:
        now += pause
        entered += buckets.take("ada", now) == 0
        assert entered <= burst + now * per_second + 1e-6


@given(st.integers(1, 1000), st.integers(1, 20), st.integers(0, 40))
def test_whoever_waits_as_long_as_told_enters(per_second: int, burst: int, calls: int) -> None:
    buckets = Buckets(Rate(per_second=per_second, burst=burst))
    waits = [buckets.take("ada", 5.0) for _ in range(burst + calls)]
    assert waits.count(0) == burst
    last = buckets.take("ada", 5.0)
    assert buckets.take("ada", 5.0 + last + 1e-6) == 0


def test_one_caller_takes_nothing_from_another() -> None:
    buckets = Buckets(Rate(per_second=1, burst=1))
    assert [buckets.take(name, 0.0) > 0 for name in ("ada", "ada", "ci")] == [False, True, False]


def test_callers_beyond_the_most_push_out_the_one_heard_of_longest_ago() -> None:
    buckets = Buckets(Rate(per_second=1, burst=1), most=2)
    for name in ("ada", "ci", "ada", "grace"):  # ci goes
        buckets.take(name, 0.0)
    assert buckets.take("ada", 0.0) > 0
    assert buckets.take("ci", 0.0) == 0
