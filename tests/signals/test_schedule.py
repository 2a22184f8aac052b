"""Planned bursts: begin and end to the minute, in their own time zone, through both changes of the clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.observe.demand import next_signal_change
from reconciler.core.signals.schedule import Schedule, first_after
from reconciler.model.action import Action
from reconciler.model.plan import Reason
from reconciler.model.policy import BurstPolicy
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, placement, plan, seconds, short

OFFICE = Schedule(name="office", start="0 8 * * 1-5", duration=timedelta(hours=10), zone="Europe/Berlin", replicas=3)
NIGHTLY = Schedule(name="nightly", start="30 2 * * *", duration=timedelta(hours=2), zone="Europe/Berlin", replicas=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def policy(*schedules: Schedule) -> BurstPolicy:
    return ordering("worker-2", "worker-3", signals=schedules)


def turns(schedule: Schedule, begin: str, count: int) -> list[str]:
    """List the next moments at which something begins or ends, as UTC."""
    moment, found = at(begin), []
    for _ in range(count):
        moment = next_signal_change([policy(schedule)], moment)
        found.append(f"{moment:%m-%dT%H:%M}")
    return found


def test_a_window_begins_and_ends_to_the_second() -> None:
    assert OFFICE.asks(at("2026-11-20T07:59:59+01:00")) == ()
    assert [ask.replicas for ask in OFFICE.asks(at("2026-11-20T08:00:00+01:00"))] == [3]
    assert [ask.replicas for ask in OFFICE.asks(at("2026-11-20T17:59:59+01:00"))] == [3]
    assert OFFICE.asks(at("2026-11-20T18:00:00+01:00")) == ()


def test_weekdays_count_from_sunday_and_seven_is_sunday_too() -> None:
    for day in ("0", "7", "sun"):
        assert first_after(f"0 8 * * {day}", "UTC", at("2026-11-20T00:00:00Z")) == at("2026-11-22T08:00:00Z")
    assert first_after("0 8 * * 1", "UTC", at("2026-11-20T00:00:00Z")) == at("2026-11-23T08:00:00Z")


def test_a_day_of_the_month_or_a_weekday_will_do_where_both_are_given() -> None:
    assert first_after("0 8 25 * 1", "UTC", at("2026-11-20T00:00:00Z")) == at("2026-11-23T08:00:00Z")
    assert first_after("0 8 25 * 1", "UTC", at("2026-11-23T09:00:00Z")) == at("2026-11-25T08:00:00Z")


def test_it_is_looked_at_again_exactly_when_it_begins_and_ends() -> None:
    friday = "2026-11-20T12:00:00+01:00"
    assert turns(OFFICE, friday, 3) == ["11-20T17:00", "11-23T07:00", "11-23T17:00"]


def test_a_start_that_the_clocks_skip_comes_as_soon_as_they_have() -> None:
    assert turns(NIGHTLY, "2026-03-28T12:00:00+01:00", 2) == ["03-29T01:00", "03-29T03:00"]


def test_a_start_that_comes_twice_counts_the_first_time_only() -> None:
    assert turns(NIGHTLY, "2026-10-24T12:00:00+02:00", 4) == [
        "10-25T00:30",
        "10-25T02:30",
        "10-26T01:30",
        "10-26T03:30",
    ]
    # within the hour that comes again, the start of its first coming is no start any more
    assert first_after("30 2 * * *", "Europe/Berlin", at("2026-10-25T02:15:00+01:00")) == at(
        "2026-10-26T02:30:00+01:00"
    )


def test_a_window_over_the_change_lasts_as_long_as_it_says() -> None:
    over = replace(OFFICE, start="0 22 * * 6", duration=timedelta(hours=8))
    assert turns(over, "2026-03-28T12:00:00+01:00", 2) == ["03-28T21:00", "03-29T05:00"]
    assert turns(over, "2026-10-24T12:00:00+02:00", 2) == ["10-24T20:00", "10-25T04:00"]


def test_windows_that_overlap_count_once_and_do_not_part() -> None:
    always = Schedule(name="a", start="*/5 * * * *", duration=timedelta(minutes=12), zone="UTC", replicas=2)
    moment = NOW
    for _ in range(30):
        assert [ask.replicas for ask in always.asks(moment)] == [2]
        moment = always.next_change(moment)


@given(
    st.sampled_from(["0 8 * * 1-5", "30 2 * * *", "*/20 * * * *", "0 0 1 * *", "15 1,2,3 * * *"]),
    st.integers(1, 3000),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"]),
    st.integers(0, 525_600),
)
def test_nothing_changes_between_now_and_the_next_signal_change(start, minutes, zone, offset) -> None:
    schedule = Schedule(name="a", start=start, duration=timedelta(minutes=minutes), zone=zone, replicas=1)
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=offset)
    turn = schedule.next_change(now)
    assert turn > now
    for moment in (now + (turn - now) / 2, turn - seconds(1)):
        assert bool(schedule.asks(moment)) == bool(schedule.asks(now))


def test_a_planned_burst_is_placed_when_it_begins_whatever_the_window() -> None:
    now = at("2026-11-20T08:00:00+01:00")
    one = replace(policy(OFFICE), scale_up_window=timedelta(hours=1))
    made = plan(short(0, at=now), free("worker-2", 4, at=now), wanted=desired(one), now=now)
    place = made.changes[0]
    assert place.action is Action.PLACE
    assert place.placement.replicas == 3
    assert place.shortage.asks == ("schedule office plans 3 from 2026-11-20T07:00:00Z on",)


def test_the_pass_is_woken_at_the_next_begin_of_a_window() -> None:
    now = at("2026-11-20T07:00:00+01:00")
    assert plan(short(0, at=now), wanted=desired(policy(OFFICE)), now=now).wake_at == at("2026-11-20T08:00:00+01:00")


def test_a_schedule_of_a_policy_that_governs_nothing_wakes_nobody() -> None:
    assert plan(short(0), wanted=desired(policy(OFFICE), policies={})).wake_at is None


def test_pods_that_wait_are_part_of_what_is_planned() -> None:
    now = at("2026-11-20T09:00:00+01:00")
    made = plan(
        short(2, at=now, since=now - seconds(60)), free("worker-2", 8, at=now), wanted=desired(policy(OFFICE)), now=now
    )
    assert [change.placement.replicas for change in made.changes] == [3]


def test_when_it_is_over_the_replicas_come_home_after_the_scale_down_window() -> None:
    end = at("2026-11-20T18:00:00+01:00")
    one = replace(policy(OFFICE), scale_down_window=seconds(60))
    burst = ledger(placement(replicas=3, created=end - timedelta(hours=1), lasting=timedelta(hours=20)))
    early = end - timedelta(minutes=5)
    during = inputs(short(0, at=early), wanted=desired(one), there=burst, now=early)
    history = {VLLM: during.demands[VLLM].history}
    over = inputs(short(0, at=end), wanted=desired(one), there=burst, now=end, history=history)
    held = decide(over).suppressed
    assert [(one.reason, one.until) for one in held] == [(Reason.SCALE_DOWN_WINDOW, end + seconds(60))]
    later = end + seconds(61)
    after = inputs(
        short(0, at=later), wanted=desired(one), there=burst, now=later, history={VLLM: over.demands[VLLM].history}
    )
    assert [change.action for change in decide(after).changes] == [Action.REVERT]


def test_a_planned_burst_of_a_workload_that_its_primary_does_not_report_says_what_is_missing() -> None:
    now = at("2026-11-20T09:00:00+01:00")
    seen = short(0, at=now)
    bare = type(seen)(cluster=seen.cluster, observed_at=now)
    there = inputs(bare, free("worker-2", 8, at=now), wanted=desired(policy(OFFICE)), now=now)
    made = decide(there)
    assert made.changes == ()
    assert made.suppressed[0].reason is Reason.NOT_FOUND
    assert [(one.reason, one.replicas, one.message) for one in made.suppressed[1:]] == [
        (Reason.NO_SHAPE, 3, "worker-1 reports no such object, so the requests of one replica are unknown")
    ]
    assert any("the requests of one replica are unknown" in line for line in explain(VLLM, there, made).conclusion)
