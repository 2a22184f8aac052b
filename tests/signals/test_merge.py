"""Signals are put together so that no replica counts twice and no signal is overheard."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.signals.merge import due, merge
from reconciler.model.capacity import MissingReplicas
from reconciler.model.signal import ReplicaRequest
from tests.builders.inputs import NOW, seconds

WINDOW = seconds(30)
MOMENTS = st.integers(-120, 0).map(lambda ago: NOW + seconds(ago))
PODS = st.lists(
    st.builds(MissingReplicas, replicas=st.integers(0, 5), since=MOMENTS, cause=st.sampled_from("ab")), max_size=4
)
ASKS = st.lists(
    st.builds(
        ReplicaRequest,
        signal=st.sampled_from(["hpa a", "prometheus b", "kueue c"]),
        replicas=st.integers(0, 8),
        since=MOMENTS,
        cause=st.just("asks"),
        beyond=st.booleans(),
    ),
    max_size=4,
)
PLANS = st.lists(
    st.builds(
        ReplicaRequest,
        signal=st.just("schedule d"),
        replicas=st.integers(0, 8),
        since=MOMENTS,
        cause=st.just("plans"),
        beyond=st.just(False),
        planned=st.just(True),
    ),
    max_size=2,
)


def ask(signal: str, replicas: int, ago: float = 45, *, beyond: bool = False, planned: bool = False) -> ReplicaRequest:
    return ReplicaRequest(
        signal=signal, replicas=replicas, since=NOW - seconds(ago), cause="asks", beyond=beyond, planned=planned
    )


def pods(replicas: int, ago: float = 45, cause: str = "insufficient nvidia.com/gpu") -> MissingReplicas:
    return MissingReplicas(replicas=replicas, since=NOW - seconds(ago), cause=cause)


def replicas_and_signals(steps: tuple) -> list[tuple[int, str]]:
    return [(step.replicas, step.signal) for step in steps]


def level(steps: tuple, at: datetime, window: timedelta = WINDOW) -> int:
    return sum(step.replicas for step in steps if due(step, window) <= at)


def test_what_may_be_the_same_replicas_counts_once() -> None:
    steps = merge(3, [pods(3)], [ask("prometheus queue", 3), ask("schedule office", 3, planned=True)], WINDOW)
    assert sum(step.replicas for step in steps) == 3


def test_the_signal_that_asks_for_most_is_heard_in_full() -> None:
    steps = merge(2, [pods(2, 60)], [ask("prometheus queue", 5)], WINDOW)
    assert replicas_and_signals(steps) == [(2, ""), (3, "prometheus queue")]


def test_what_is_beyond_the_workloads_own_replicas_comes_on_top_of_its_pods() -> None:
    steps = merge(2, [pods(2)], [ask("hpa llm/vllm", 1, beyond=True), ask("prometheus queue", 2)], WINDOW)
    assert replicas_and_signals(steps) == [(2, ""), (1, "hpa llm/vllm")]


def test_two_signals_of_what_is_beyond_are_not_added_up() -> None:
    steps = merge(0, [], [ask("hpa a", 2, beyond=True), ask("kueue q", 3, 40, beyond=True)], WINDOW)
    assert replicas_and_signals(steps) == [(2, "hpa a"), (1, "kueue q")]


def test_pods_count_no_further_than_the_workload_is_short_of_running_ones() -> None:
    assert replicas_and_signals(merge(2, [pods(1, 60), pods(4)], [], WINDOW)) == [(1, ""), (1, "")]


def test_what_is_planned_is_due_at_once() -> None:
    steps = merge(2, [pods(2, 10)], [ask("schedule office", 1, 0, planned=True)], WINDOW)
    assert replicas_and_signals(steps) == [(1, "schedule office"), (1, "")]
    assert level(steps, NOW) == 1


@given(st.integers(0, 10), PODS, ASKS, PLANS)
def test_it_is_never_less_than_any_signal_and_never_more_than_the_rule_says(pending, waiting, asks, plans) -> None:
    total = sum(step.replicas for step in merge(pending, waiting, asks + plans, WINDOW))
    missing = min(pending, sum(wait.replicas for wait in waiting))
    beyond = max((one.replicas for one in asks if one.beyond), default=0)
    others = [one.replicas for one in (*asks, *plans) if not one.beyond]
    assert total == max(missing + beyond, *others, 0)
    assert all(total >= one.replicas for one in (*asks, *plans))


@given(st.integers(0, 10), PODS, ASKS, PLANS, st.integers(-130, 40))
def test_at_every_moment_it_is_what_is_due_of_each_signal_by_itself(pending, waiting, asks, plans, offset) -> None:
    at = NOW + seconds(offset)
    steps = merge(pending, waiting, asks + plans, WINDOW)
    alone = merge(
        pending,
        [wait for wait in waiting if wait.since + WINDOW <= at],
        [one for one in asks if one.since + WINDOW <= at] + [one for one in plans if one.since <= at],
        WINDOW,
    )
    assert level(steps, at) == sum(step.replicas for step in alone)


@given(st.integers(0, 10), PODS, ASKS, PLANS, ASKS)
def test_another_signal_never_makes_it_less(pending, waiting, asks, plans, more) -> None:
    before = merge(pending, waiting, asks + plans, WINDOW)
    after = merge(pending, waiting, asks + more + plans, WINDOW)
    for moment in {due(step, WINDOW) for step in (*before, *after)}:
        assert level(after, moment) >= level(before, moment)


@given(st.integers(0, 10), PODS, ASKS, PLANS, st.randoms(use_true_random=False))
def test_the_order_of_the_signals_makes_no_difference(pending, waiting, asks, plans, chance: random.Random) -> None:
    shuffled = [chance.sample(signals, len(signals)) for signals in (waiting, asks + plans)]
    assert merge(pending, waiting, asks + plans, WINDOW) == merge(pending, *shuffled, WINDOW)


@given(st.integers(0, 10), PODS, ASKS, PLANS)
def test_its_steps_are_in_the_order_in_which_they_fall_due_and_none_is_empty(pending, waiting, asks, plans) -> None:
    steps = merge(pending, waiting, asks + plans, WINDOW)
    assert [due(step, WINDOW) for step in steps] == sorted(due(step, WINDOW) for step in steps)
    assert all(step.replicas > 0 for step in steps)
