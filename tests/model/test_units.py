"""Quantities and durations are exact, and read as Kubernetes and EGS write them."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.units import (
    ONE,
    Quantity,
    Resources,
    bounded_seconds,
    format_duration,
    format_quantity,
    parse_duration,
    parse_quantity,
    quantity_hint,
    total,
)

SCALES = {"n": Fraction(1, 10**9), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000), "Gi": Fraction(2**30)}


@given(st.integers(0, 10**40 - 1))
def test_every_quantity_is_read_back_exactly(nano: int) -> None:
    assert parse_quantity(format_quantity(Quantity(nano))) == nano


@given(st.integers(0, 10**20), st.integers(0, 10**12), st.sampled_from(sorted(SCALES)))
def test_a_decimal_is_rounded_up_to_a_whole_nano_unit(whole: int, part: int, suffix: str) -> None:
    text = f"{whole}.{part}{suffix}"
    exact = Fraction(f"{whole}.{part}") * SCALES[suffix] * 10**9
    assert parse_quantity(text) == -(-exact.numerator // exact.denominator)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("4", 4 * ONE),
        ("500m", ONE // 2),
        ("8Gi", 8 * 2**30 * ONE),
        ("1e3", 1000 * ONE),
        ("1E", 10**27),
        (".5", ONE // 2),
    ],
)
def test_quantities_are_read_as_kubernetes_does(text: str, nano: int) -> None:
    assert parse_quantity(text) == nano


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("16GB", "try 16G"),
        ("16 GiB", "try 16Gi"),
        ("512mb", "try 512M"),
        ("500 m", "try 500m"),
        ("8gib", "try 8Gi"),
        ("4K", "try 4k"),
        ("1.5tb", "try 1.5T"),
        ("one", "try 1"),
        ("100 bytes", "try 100"),
        ("8i", "try 1, 500m or 8Gi"),
        ("lots", "try 1, 500m or 8Gi"),
    ],
)
def test_a_wrong_quantity_comes_with_what_was_meant(text: str, hint: str) -> None:
    assert quantity_hint(text) == hint
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["", "1 Gi", "5K", "1.5.5", "--1", "0x10", "1e", "Gi", "1e99"])
def test_what_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|range"):
        parse_quantity(text)


def test_a_negative_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        parse_quantity("-1m")


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400), ("45s", 45)]
)
def test_durations_are_read_as_egs_writes_them(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("4 hours", "try '4h'"),
        ("90", "try '90s'"),
        ("10 min", "try '10m'"),
        ("1 h and 30 min", "try '1h30m'"),
        ("1 hour, 30 minutes", "try '1h30m'"),
        ("2 weeks", "try '14d'"),
        ("PT4H", "try '4h'"),
        ("P1DT12H", "try '1d12h'"),
        ("P1M", "try '10m' or"),  # a month
        ("5ms", "try '10m' or"),
        ("soon", "try '10m' or"),
    ],
)
def test_a_wrong_duration_is_refused_with_what_was_meant(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0s", "0h0m", "4000d", "-5m", "5ms", "1w"])
def test_nothing_below_a_second_above_ten_years_or_negative_is_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|nothing|years"):
        parse_duration(text)


@given(st.integers(1, 10**8))
def test_every_duration_is_read_back(seconds: int) -> None:
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("number", "seconds"),
    [(-5, 0), (0, 0), (600, 600), (90 * 10**12, 3650 * 86400), (2**63 - 1, 3650 * 86400), (10**400, 3650 * 86400)],
)
def test_seconds_of_others_lie_between_nothing_and_ten_years(number: int, seconds: int) -> None:
    assert bounded_seconds(number) == timedelta(seconds=seconds)
    assert datetime(2200, 12, 31, tzinfo=UTC) + bounded_seconds(number)


def test_nothing_less_than_nothing_is_free() -> None:
    left = Resources(amounts={"cpu": ONE}).minus(Resources(amounts={"cpu": Quantity(2 * ONE), "gpu": ONE}))
    assert left.amounts == {"cpu": 0, "gpu": 0}


def test_a_request_for_nothing_fits_without_end() -> None:
    assert Resources().holds(Resources(amounts={"cpu": Quantity(0)})) >= 2**31


def test_total_adds_resource_by_resource() -> None:
    one = Resources(amounts={"cpu": ONE})
    assert total([one, one.times(2), Resources(amounts={"gpu": ONE})]).amounts == {"cpu": 3 * ONE, "gpu": ONE}
