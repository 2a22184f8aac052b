"""Forecasts of made-up demands: what is foreseen, for how long before, and how often it was right."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.signals.forecast import Forecast, Method
from reconciler.core.signals.past_demand import STEP, Levels, extended

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
DAY = timedelta(days=1)
Wanted = Callable[[datetime], int | None]


def forecast(method: Method = Method.YESTERDAY, *, ahead: int = 10, window: int = 30) -> Forecast:
    return Forecast(name="usual", method=method, ahead=timedelta(minutes=ahead), window=timedelta(minutes=window))


def past(wanted: Wanted, until: datetime, *, begin: datetime = MONDAY) -> Levels:
    """Watch a demand in each step until a moment, the one that this is in included."""
    levels: Levels = ()
    moment = begin
    while moment <= until:
        levels = extended(levels, wanted(moment), moment, timedelta(days=30))
        moment += STEP
    return levels


def office(at: datetime) -> int:
    """Miss six from ten to twelve o'clock, and two until four."""
    return 6 if 10 <= at.hour < 12 else 2 if 12 <= at.hour < 16 else 0


def foreseen(made: Forecast, wanted: Wanted, at: datetime, *, begin: datetime = MONDAY) -> str:
    return made.foresees(past(wanted, at, begin=begin), wanted(at) or 0, at).statement


def at(days: int, hour: int, minute: int = 0) -> datetime:
    return MONDAY + timedelta(days=days, hours=hour, minutes=minute)


@pytest.mark.parametrize(("moment", "replicas"), [(at(1, 9, 45), None), (at(1, 9, 50), 6), (at(1, 9, 54), 6)])
def test_replicas_are_asked_for_as_long_before_as_the_policy_says(moment: datetime, replicas: int | None) -> None:
    request = forecast().foresees(past(office, moment), office(moment), moment).request
    assert (request.replicas if request else None) == replicas
    if request:
        assert (request.since, request.planned, request.beyond) == (at(1, 9, 50), True, False)


def test_cause_says_what_is_foreseen_and_how_often_that_was_right() -> None:
    assert foreseen(forecast(), office, at(3, 9, 50)) == (
        "forecast usual foresees 6 missing until 2026-11-19T10:05:00Z, as at this time yesterday;"
        " of the last 20 forecasts 20 came true within one replica"
    )


def test_what_is_missing_now_is_told_beside_it() -> None:
    def halved(moment: datetime) -> int | None:
        return office(moment) if moment < at(1, 0) else office(moment) // 2

    assert " foresees 6 missing until 2026-11-17T11:15:00Z (3 more than now)," in foreseen(
        forecast(), halved, at(1, 11)
    )


def test_forecasts_that_were_wrong_count_against_it() -> None:
    def once(moment: datetime) -> int | None:
        return office(moment) if moment < at(1, 0) else 0

    assert foreseen(forecast(), once, at(1, 11, 0)).endswith("of the last 4 forecasts 0 came true within one replica")
    assert foreseen(forecast(), once, at(2, 11, 0)) == (
        "forecast usual foresees 0 missing until 2026-11-18T11:15:00Z, no more than now"
    )


def test_one_replica_more_or_less_is_true_enough() -> None:
    def rising(moment: datetime) -> int | None:
        return office(moment) + (moment - MONDAY).days

    assert "20 came true" in foreseen(forecast(), rising, at(3, 9, 55))

    def leaping(moment: datetime) -> int | None:
        return office(moment) + 2 * (moment - MONDAY).days

    assert " 0 came true" in foreseen(forecast(), leaping, at(3, 9, 55))


def test_last_week_goes_by_the_same_weekday() -> None:
    def weekdays(moment: datetime) -> int | None:
        return office(moment) if moment.weekday() < 5 else 0

    weekly = forecast(Method.LAST_WEEK)
    assert weekly.foresees(past(weekdays, at(7, 9, 50)), 0, at(7, 9, 50)).request is not None
    assert weekly.foresees(past(weekdays, at(12, 9, 50)), 0, at(12, 9, 50)).request is None
    assert forecast().foresees(past(weekdays, at(7, 9, 50)), 0, at(7, 9, 50)).request is None


def test_nothing_is_foreseen_of_what_nobody_watched() -> None:
    def dark(moment: datetime) -> int | None:
        return None if at(0, 9) <= moment < at(0, 9, 55) else office(moment)

    unknown = "forecast usual foresees nothing: nobody watched the demand at this time yesterday"
    assert foreseen(forecast(), office, at(0, 9, 50)) == unknown
    assert foreseen(forecast(), dark, at(1, 9, 50)) == unknown
    assert "foresees 6 missing" in foreseen(forecast(), dark, at(1, 10))


def test_trend_goes_on_with_the_line_of_its_window() -> None:
    def rising(moment: datetime) -> int | None:
        return (moment - MONDAY) // timedelta(minutes=10)

    moment = at(0, 1)
    request = forecast(Method.TREND).foresees(past(rising, moment), rising(moment) or 0, moment).request
    assert request is not None
    # Six are missing now; the steps before were 3, 3, 4, 4, 5 and 5, and the line rises by one in ten minutes.
    assert request.replicas == 7
    assert ", by the trend of the last 30m; of the last 20 forecasts " not in request.cause
    assert ", by the trend of the last 30m; of the last " in request.cause


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (lambda moment: 10 - moment.minute // 10, "the demand of the last 30m does not rise steadily"),
        (lambda moment: 6 * (moment.minute >= 45), "the demand of the last 30m does not rise steadily"),
        (lambda moment: 3, "the demand of the last 30m does not rise steadily"),
        (lambda moment: None if 30 <= moment.minute < 45 else 3, "nobody has watched the demand for 30m"),
    ],
)
def test_trend_that_does_not_rise_asks_for_nothing(wanted: Wanted, why: str) -> None:
    assert foreseen(forecast(Method.TREND), wanted, at(0, 0, 59)) == f"forecast usual foresees nothing: {why}"


def test_same_past_gives_the_same_words() -> None:
    moments = [at(2, 9, 50), at(2, 9, 52), at(2, 9, 54)]
    assert len({foreseen(forecast(), office, moment) for moment in moments}) == 1
    assert forecast().next_change(moments[1]) == at(2, 9, 55)


@pytest.mark.parametrize("method", Method)
def test_past_that_is_kept_judges_twenty_forecasts(method: Method) -> None:
    made = forecast(method)

    def busy(moment: datetime) -> int | None:
        return 3 + (moment - MONDAY) // timedelta(hours=6)

    levels: Levels = ()
    moment = MONDAY
    while moment < at(20, 6):
        levels = extended(levels, busy(moment), moment, made.looks_back)
        moment += STEP
    request = made.foresees(levels, 0, at(20, 6)).request
    assert request is None or "of the last 20 forecasts" in request.cause
    assert levels[0].at > at(1, 0)
