"""Policies' queries are asked beside the passes; what is not heard is told once and is never taken for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from reconciler.adapters.signals import AskedSignals, PrometheusServer, UnaskedSignals
from reconciler.core.observe.demand import measure
from reconciler.core.signals.prometheus import Query, questions
from reconciler.model.capacity import Observed
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import BurstPolicy, Desired
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ordering, seconds, short
from tests.fakes.prometheus import Metrics

QUEUE = Query(name="queue", text="queue", per_replica=10)
OTHER = WorkloadId(WorkspaceName("llm"), TemplateName("other"))


@dataclass
class HandClock:
    moment: datetime = NOW

    def now(self) -> datetime:
        return self.moment


def fleet(*queries: Query, workloads: tuple[WorkloadId, ...] = (VLLM,)) -> Desired:
    policy: BurstPolicy = ordering("worker-2", signals=queries or (QUEUE,))
    return desired(policy, workloads=workloads)


@contextmanager
def watching(
    metrics: Metrics,
    *,
    every: float = 0.02,
    patience: float = 5,
    answer: float = 5,
    wake: Callable[[str], None] | None = None,
) -> Iterator[tuple[AskedSignals[float], HandClock]]:
    """Ask the metrics every so many seconds, by a clock that stands still until it is moved."""
    clock = HandClock()
    server = PrometheusServer(metrics.url, patience=seconds(answer))
    view = AskedSignals(
        server,
        source="Prometheus",
        questions=questions,
        clock=clock,
        wake=wake,
        patience=seconds(patience),
        every=seconds(every),
    )
    try:
        yield view, clock
    finally:
        view.close()
        metrics.hangs.set()
        view.join(seconds(10))


def until(view: AskedSignals[float], holds: Callable[[Observed], bool]) -> Observed:
    """Wait until what is observed is so."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        seen = view.observe()
        if holds(seen):
            return seen
        time.sleep(0.005)
    raise AssertionError(view.observe())


def asked(seen: Observed, workload: WorkloadId = VLLM) -> list[tuple[int, datetime]]:
    return [(ask.replicas, ask.since) for ask in seen.asks.get(workload, ())]


def test_an_answer_becomes_an_ask_in_its_own_words(metrics: Metrics) -> None:
    metrics.values["queue"] = 47
    with watching(metrics) as (view, _):
        view.follow(fleet())
        ask = view.observe().asks[VLLM][0]
    assert (ask.signal, ask.replicas, ask.cause, ask.beyond) == (
        "prometheus queue",
        5,
        "is 47, and a replica takes 10",
        False,
    )


def test_an_answer_of_nothing_is_heard_and_asks_for_nothing(metrics: Metrics) -> None:
    metrics.values["queue"] = 0
    with watching(metrics) as (view, _):
        view.follow(fleet())
        seen = view.observe()
    assert seen.asks == {}
    assert [(answer.signal, answer.at) for answer in seen.freshness[VLLM]] == [("prometheus queue", NOW)]
    assert seen.problems == ()


def test_a_number_is_asked_for_since_it_was_reached_and_not_since_the_last_answer(metrics: Metrics) -> None:
    metrics.values["queue"] = 15
    with watching(metrics) as (view, clock):
        view.follow(fleet())
        clock.moment = NOW + seconds(10)
        metrics.values["queue"] = 25
        grown = until(view, lambda seen: len(asked(seen)) == 2)
        assert asked(grown) == [(2, NOW), (3, NOW + seconds(10))]
        metrics.values["queue"] = 5
        assert asked(until(view, lambda seen: len(asked(seen)) == 1)) == [(1, NOW)]


def test_what_prometheus_has_watched_already_need_not_be_watched_again(metrics: Metrics) -> None:
    metrics.values |= {"queue": 47, "min_over_time((\nqueue\n)[30s:7s])": 23}
    with watching(metrics) as (view, clock):
        view.follow(fleet())
        assert asked(view.observe()) == [(3, NOW - seconds(30)), (5, NOW)]
        clock.moment = NOW + seconds(15)
        until(view, lambda seen: seen.freshness[VLLM][0].at == clock.moment)
        assert asked(view.observe()) == [(3, NOW - seconds(30)), (5, NOW)]
    assert sum(query.startswith("min_over_time") for query in metrics.asked) == 1


def test_a_past_that_nobody_can_tell_only_delays(metrics: Metrics) -> None:
    metrics.values |= {"queue": 12, "min_over_time((\nqueue\n)[30s:7s])": (400, metrics.error("bad_data", "scalar"))}
    with watching(metrics) as (view, _):
        view.follow(fleet(replace(QUEUE, per_replica=None, above=-5.0, replicas=2)))
        assert asked(view.observe()) == [(2, NOW)]
        assert view.observe().problems == ()


def test_a_past_that_was_higher_than_the_present_is_past(metrics: Metrics) -> None:
    metrics.values |= {"queue": 12, "min_over_time((\nqueue\n)[30s:7s])": 90}
    with watching(metrics) as (view, _):
        view.follow(fleet())
        assert asked(view.observe()) == [(2, NOW - seconds(30))]


def test_a_change_of_the_number_wakes_the_daemon_and_a_change_of_the_value_does_not(metrics: Metrics) -> None:
    reasons: list[str] = []
    metrics.values["queue"] = 41
    with watching(metrics, patience=0, wake=reasons.append) as (view, _):
        view.follow(fleet())
        until(view, lambda seen: asked(seen) == [(5, NOW)])
        metrics.values["queue"] = 49
        until(view, lambda seen: "49" in seen.asks[VLLM][0].cause)
        assert reasons == ["observation"]
        metrics.values["queue"] = 51
        until(view, lambda seen: len(asked(seen)) == 2)
        metrics.wait_for(len(metrics.asked) + 2)
        assert reasons == ["observation"] * 2


def test_a_daemon_never_waits_for_an_answer(metrics: Metrics) -> None:
    metrics.hangs.clear()
    with watching(metrics, patience=0, answer=120) as (view, _):
        view.follow(fleet())
        seen = view.observe()
        assert metrics.answered == 0
    assert [answer.at for answer in seen.freshness[VLLM]] == [None]


def test_a_command_waits_for_first_answers_only_so_long(metrics: Metrics) -> None:
    metrics.hangs.clear()
    with watching(metrics, patience=0.05) as (view, _):
        view.follow(fleet())
        assert [answer.at for answer in view.observe().freshness[VLLM]] == [None]


def test_who_does_not_answer_is_told_once_and_the_last_answer_grows_old(metrics: Metrics) -> None:
    metrics.values |= {"queue": 47, "other": 12}
    with watching(metrics) as (view, clock):
        view.follow(fleet(QUEUE, Query(name="other", text="other", per_replica=10)))
        metrics.says = (500, b"")
        until(view, lambda seen: bool(seen.problems))  # an answer that was on its way would be heard at the later time
        clock.moment = NOW + seconds(60)
        seen = until(view, lambda seen: bool(seen.problems))
        assert [str(problem) for problem in seen.problems] == [
            "prometheus: cannot be asked: it answers 500 Internal Server Error"
        ]
        assert {answer.at for answer in seen.freshness[VLLM]} == {NOW}
        assert asked(seen) == [(5, NOW), (2, NOW)]
        metrics.says = None
        assert until(view, lambda seen: not seen.problems).freshness[VLLM][0].at == NOW + seconds(60)


def test_after_it_was_away_for_long_a_number_is_asked_for_since_it_is_heard_again(metrics: Metrics) -> None:
    metrics.values["queue"] = 47
    with watching(metrics) as (view, clock):
        view.follow(fleet())
        clock.moment = NOW + timedelta(minutes=10)
        seen = until(view, lambda seen: seen.freshness[VLLM][0].at == clock.moment)
    assert asked(seen) == [(5, NOW + timedelta(minutes=10))]


def test_a_query_that_is_wrong_is_told_and_does_not_stop_the_others(metrics: Metrics) -> None:
    metrics.values |= {
        "queue": 47,
        "broken}": (400, metrics.error("bad_data", "parse error")),
        "many": (200, metrics.vector(1, 2)),
    }
    queries = [Query(name=text[:4], text=text, per_replica=10) for text in ("broken}", "many", "none")]
    with watching(metrics) as (view, _):
        view.follow(fleet(*queries, QUEUE))
        seen = view.observe()
    assert [str(problem) for problem in seen.problems] == [
        "policy gpu: prometheus brok tells nothing: bad_data: parse error",
        "policy gpu: prometheus many tells nothing: the answer is 2 series, not one (try sum(...))",
        (
            "policy gpu: prometheus none tells nothing: the answer is empty: is the metric there?"
            " (try '... or vector(0)' if nothing means 0)"
        ),
    ]
    assert [answer.at for answer in seen.freshness[VLLM]] == [None, None, None, NOW]
    assert asked(seen) == [(5, NOW)]


def test_a_query_that_is_wrong_is_not_mended_because_nobody_answers_any_more(metrics: Metrics) -> None:
    metrics.values["queue"] = (200, metrics.vector(1, 2))
    with watching(metrics) as (view, _):
        view.follow(fleet())
        (wrong,) = view.observe().problems
        metrics.says = (500, b"")
        away = until(view, lambda seen: seen.problems[0].path == "prometheus")
        assert away.problems[1:] == (wrong,)
        metrics.values["queue"], metrics.says = 3, None
        until(view, lambda seen: not seen.problems)


def test_a_query_that_nobody_answers_does_not_keep_the_others_from_being_asked(metrics: Metrics) -> None:
    metrics.values |= {"slow": (500, b""), "queue": 47}
    with watching(metrics) as (view, _):
        view.follow(fleet(Query(name="slow", text="slow", per_replica=1), QUEUE))
        until(view, lambda seen: asked(seen) == [(5, NOW)])


def test_many_queries_that_nobody_answers_leave_each_round_and_the_past_to_the_others(metrics: Metrics) -> None:
    slow = [Query(name=f"slow{number}", text=f"slow{number}", per_replica=1) for number in range(6)]
    good = [QUEUE, Query(name="other", text="other", per_replica=1)]
    metrics.values |= {query.text: (500, b"") for query in slow} | {"queue": 47, "other": 1}
    with watching(metrics) as (view, _):
        view.follow(fleet(*slow[:3], good[0], *slow[3:], good[1]))
        told = until(view, lambda seen: {problem.path for problem in seen.problems} == {"policy gpu"})
        told = until(view, lambda seen: len(seen.problems) == len(slow))
        begun = len(metrics.asked)
        metrics.wait_for(begun + 30)
    assert all("tells nothing: it answers 500" in str(problem) for problem in told.problems)
    assert asked(told) == [(5, NOW), (1, NOW)]
    assert any("min_over_time" in text and "other" in text for text in metrics.asked)
    rounds = " ".join(metrics.asked[begun:]).split("slow")
    assert all({"queue", "other"} <= {*between.split()} for between in rounds[1:-1])


def test_a_query_that_names_no_workload_is_asked_once_for_all(metrics: Metrics) -> None:
    metrics.values["queue"] = 47
    with watching(metrics, every=60) as (view, _):
        view.follow(fleet(workloads=(VLLM, OTHER)))
        seen = view.observe()
    assert asked(seen) == asked(seen, OTHER) == [(5, NOW)]
    assert metrics.asked == ["queue", "min_over_time((\nqueue\n)[30s:7s])"]


def test_a_query_that_has_changed_is_asked_at_once_and_the_old_answer_is_forgotten(metrics: Metrics) -> None:
    metrics.values |= {"queue": 47, "waiting": 10}
    with watching(metrics, every=60) as (view, _):
        view.follow(fleet())
        view.follow(fleet(replace(QUEUE, text="waiting")))
        assert asked(view.observe()) == [(1, NOW)]
        view.follow(desired())
        assert view.observe() == Observed()


def test_while_it_is_away_nothing_is_lent_and_nothing_is_given_back(metrics: Metrics) -> None:
    metrics.says = (500, b"")
    with watching(metrics) as (view, _):
        wanted = fleet()
        view.follow(wanted)
        heard = view.observe()
    seen = replace(inputs(short(0), free("worker-2", 4)).observed, asks=heard.asks, freshness=heard.freshness)
    demand = measure(wanted, seen, {}, NOW)[VLLM]
    assert (demand.missing, demand.stale) == (
        0,
        ("prometheus queue has not answered (it answers 500 Internal Server Error)",),
    )


def test_without_any_prometheus_it_is_told_once_that_policies_ask_one() -> None:
    view = UnaskedSignals(Query, source="Prometheus", hint="try --prometheus http://prometheus.monitoring:9090")
    view.follow(fleet(workloads=(VLLM, OTHER)))
    assert [str(problem) for problem in view.observe().problems] == [
        (
            "policy gpu: asks Prometheus, and none is configured: bursts stay until they expire"
            " (try --prometheus http://prometheus.monitoring:9090)"
        )
    ]
    view.follow(desired())
    assert view.observe() == Observed()


@pytest.mark.parametrize("closings", [1, 2])
def test_closing_ends_the_thread(metrics: Metrics, closings: int) -> None:
    metrics.values["queue"] = 1
    with watching(metrics, every=60) as (view, _):
        view.follow(fleet())
        for _ in range(closings):
            view.close()
        view.join(seconds(10))
        assert not view.is_asking
