"""Signals of a policy: what they say, and how a wrong one is told at its line."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.core.signals.forecast import Forecast, Method
from reconciler.core.signals.prometheus import Query
from reconciler.core.signals.schedule import Schedule
from reconciler.model.ids import WorkloadId
from tests.builders.fleet_files import FLEET, errors, load, text

HEAD = "apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nmetadata:\n  name: gpu\nspec:\n  signals:\n"


def with_signals(signals: str) -> dict[str, str]:
    """Put these signals, the first on line 7, into the policy of the fleet."""
    body = "".join(f"  {line}\n" for line in text(signals).splitlines())
    return {**FLEET, "policies/gpu.yaml": HEAD + body}


def wrong(signals: str) -> list[str]:
    return [line.removeprefix("policies/gpu.yaml:") for line in errors(load(with_signals(signals)))]


def schedule(**fields: str) -> str:
    """Write a schedule that is right but for these fields; the first of them is on line 9."""
    given = fields | {
        name: value
        for name, value in {"start": "0 8 * * 1-5", "duration": "10h", "replicas": "3"}.items()
        if name not in fields
    }
    return "- name: office\n  schedule:\n" + "".join(f"    {name}: {value}\n" for name, value in given.items() if value)


def prometheus(**fields: str) -> str:
    given = fields if "query" in fields else {**fields, "query": "sum(up)"}
    return "- name: queue\n  prometheus:\n" + "".join(f"    {name}: {value}\n" for name, value in given.items())


def test_signals_are_read_in_their_order() -> None:
    policy = load(
        with_signals(
            schedule(timeZone="Europe/Berlin")
            + prometheus(perReplica="10")
            + "- {name: slow, prometheus: {query: latency, above: 0.5, replicas: 2}}"
        )
    ).policies[WorkloadId("llm", "vllm")]
    assert policy.signals == (
        Schedule(name="office", start="0 8 * * 1-5", duration=timedelta(hours=10), zone="Europe/Berlin", replicas=3),
        Query(name="queue", text="sum(up)", per_replica=10.0),
        Query(name="slow", text="latency", above=0.5, replicas=2),
    )


def test_a_forecast_looks_ten_minutes_ahead_by_half_an_hour() -> None:
    (signal,) = (
        load(with_signals("- {name: soon, forecast: {method: Trend}}")).policies[WorkloadId("llm", "vllm")].signals
    )
    assert signal == Forecast(
        name="soon", method=Method.TREND, ahead=timedelta(minutes=10), window=timedelta(minutes=30)
    )


def test_a_schedule_without_a_time_zone_is_in_utc() -> None:
    assert load(with_signals(schedule())).policies[WorkloadId("llm", "vllm")].signals[0].zone == "UTC"


@pytest.mark.parametrize("start", ["0 8 * * 7", "*/15 8-18 1,15 * mon-fri", "0 0 29 2 *", "0 8 * jan 0"])
def test_a_start_may_be_all_that_a_crontab_knows(start: str) -> None:
    assert wrong(schedule(start=f"'{start}'")) == []


START = "spec.signals[0].schedule.start"
QUERY = "spec.signals[0].prometheus.query"


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        (
            schedule(start="'@daily'"),
            f"9: {START}: '@daily' is not five fields: minute, hour, day, month, weekday (try '0 8 * * 1-5')",
        ),
        (
            schedule(start="0 0 8 * * 1"),
            f"9: {START}: '0 0 8 * * 1' is not five fields: minute, hour, day, month, weekday (try '0 8 * * 1-5')",
        ),
        (schedule(start="0 8 * * 8"), f"9: {START}: '0 8 * * 8' has no such day-of-week (try '0 8 * * 1-5')"),
        (schedule(start="0 24 * * *"), f"9: {START}: '0 24 * * *' has no such hour (try '0 8 * * 1-5')"),
        (schedule(start="0 8 31 4 *"), f"9: {START}: '0 8 31 4 *' has no such day-of-month (try '0 8 * * 1-5')"),
        (schedule(start="0 8 30 2 *"), f"9: {START}: '0 8 30 2 *' has no such day-of-month (try '0 8 * * 1-5')"),
        (
            schedule(timeZone="Europe/Berln"),
            "9: spec.signals[0].schedule.timeZone: 'Europe/Berln' is not a time zone (try 'Europe/Berlin')",
        ),
        (
            schedule(timeZone="Europe"),
            "9: spec.signals[0].schedule.timeZone: 'Europe' is not a time zone (try '",
        ),
        (
            schedule(timeZone="../../etc/passwd"),
            "9: spec.signals[0].schedule.timeZone: '../../etc/passwd' is not a time zone (try 'Europe/Berlin')",
        ),
        (schedule(replicas="0"), "9: spec.signals[0].schedule.replicas: 0 is less than 1"),
        (schedule(duration="40d"), "9: spec.signals[0].schedule.duration: is longer than 31 days (try '12h')"),
        (schedule(duration=""), "8: spec.signals[0].schedule.duration: is required"),
        (
            "- name: office",
            "7: spec.signals[0]: has neither schedule nor prometheus nor slurm nor forecast (add one of them)",
        ),
        (
            schedule() + "  prometheus: {query: up, perReplica: 1}",
            "7: spec.signals[0]: has both schedule and prometheus (try two signals)",
        ),
        (
            prometheus(),
            "8: spec.signals[0].prometheus: has neither perReplica nor above (try perReplica: 10)",
        ),
        (
            prometheus(perReplica="1", above="2"),
            "8: spec.signals[0].prometheus: has both perReplica and above (try two signals)",
        ),
        (prometheus(above="2"), "8: spec.signals[0].prometheus: has above without replicas (try replicas: 1)"),
        (
            prometheus(perReplica="1", replicas="2"),
            "8: spec.signals[0].prometheus: has replicas beside perReplica (try without replicas, or above)",
        ),
        (prometheus(perReplica="0"), "9: spec.signals[0].prometheus.perReplica: 0 is not more than 0"),
        (
            prometheus(query='up{pod="{{ nam }}"}', perReplica="1"),
            f"9: {QUERY}: no query knows the name 'nam' (try 'name')",
        ),
        (
            prometheus(query='up{pod="{{ name.labels }}"}', perReplica="1"),
            f"9: {QUERY}: name is a text and has no 'labels'",
        ),
        (
            prometheus(query='up{pod="{{ name"}', perReplica="1"),
            f"9: {QUERY}: the expression is broken",
        ),
        (prometheus(query="x" * 5000, perReplica="1"), f"9: {QUERY}: is longer than 4096 characters"),
        (
            2 * "- {name: a, schedule: {start: 0 8 * * *, duration: 1h, replicas: 1}}\n",
            "6: spec.signals: two signals are named a (try another name)",
        ),
        (
            "- {name: a, cron: {}}",
            "7: spec.signals[0].cron: unknown field (known here: forecast, name, prometheus, schedule, slurm)",
        ),
        (
            "- {name: a, forecast: {method: Guess}}",
            "7: spec.signals[0].forecast.method: 'Guess' is not one of Trend, SameTimeYesterday, SameTimeLastWeek",
        ),
        (
            "- {name: a, forecast: {method: SameTimeYesterday, window: 1h}}",
            "7: spec.signals[0].forecast: has a window, which SameTimeYesterday does not use (try without window, or",
        ),
        (
            "- {name: a, forecast: {method: Trend, ahead: 7h}}",
            "7: spec.signals[0].forecast.ahead: is longer than 6 hours (try '10m')",
        ),
        (
            "- {name: a, forecast: {method: Trend, window: 5m}}",
            "7: spec.signals[0].forecast.window: is not between 10 minutes and 6 hours (try '30m')",
        ),
    ],
)
def test_a_wrong_signal_is_told_with_its_line_and_the_way_out(signals: str, message: str) -> None:
    assert any(line.startswith(message) for line in wrong(signals)), wrong(signals)
