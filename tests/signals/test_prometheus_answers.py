"""What Prometheus answers, what it comes to in replicas, and what is asked in whose name."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.signals.prometheus import Query, answer_value, questions, quoted
from reconciler.core.signals.question import MOST, SignalLevel, update_levels
from reconciler.errors import InvalidInput
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.workload import WorkloadRef
from tests.builders.inputs import NOW, VLLM, desired, ordering, seconds

QUEUE = Query(name="queue", text="x", per_replica=10)
LATENCY = Query(name="latency", text="x", above=0.5, replicas=2)


def vector(*numbers: str) -> dict:
    result = [{"metric": {"pod": str(index)}, "value": [1.5, number]} for index, number in enumerate(numbers)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(vector("47"), 47.0), ({"status": "success", "data": {"resultType": "scalar", "result": [1.5, "3e2"]}}, 300.0)],
)
def test_one_value_is_read_from_a_vector_or_a_scalar(answer, expected) -> None:
    assert answer_value(answer) == expected


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (vector("1", "2", "3"), "3 series, not one (try sum(...))"),
        (vector(), "the answer is empty: is the metric there? (try '... or vector(0)' if nothing means 0)"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "a matrix, not one value"),
        (
            {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "histogram": [1, {}]}]}},
            "histogram_quantile",
        ),
        ({"status": "success"}, "not Prometheus's"),
        ([], "not Prometheus's"),
        (vector("nonsense"), "not Prometheus's"),
    ],
)
def test_any_other_answer_is_none_and_says_what_to_change(answer, told) -> None:
    with pytest.raises(InvalidInput, match=re.escape(told)):
        answer_value(answer)


@pytest.mark.parametrize(
    ("number", "expected"), [(0, 0), (-5, 0), (0.1, 1), (10, 1), (10.5, 2), (47, 5), (1e300, MOST), (1e-300, 1)]
)
def test_a_queue_is_shared_out_among_replicas_and_rounded_up(number: float, expected: int) -> None:
    assert QUEUE.replicas_for(number) == expected


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf"])
def test_what_cannot_be_shared_out_is_no_answer(number: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be divided"):
        QUEUE.replicas_for(answer_value(vector(number)))


@pytest.mark.parametrize(("number", "expected"), [("0.5", 0), ("0.51", 2), ("+Inf", 2), ("NaN", 0), ("-1", 0)])
def test_a_limit_asks_for_its_replicas_only_while_it_is_passed(number: str, expected: int) -> None:
    assert LATENCY.replicas_for(answer_value(vector(number))) == expected


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(1, 40))
def test_each_number_is_asked_for_since_it_was_last_reached(numbers: list[int], window: int) -> None:
    levels: tuple[SignalLevel, ...] = ()
    for tick, number in enumerate(numbers):
        levels = update_levels(levels, number, NOW + seconds(tick), NOW + seconds(tick - window))
    end = len(numbers) - 1
    for wanted in range(1, 7):
        since = next((tick for tick in range(end, -1, -1) if numbers[tick] < wanted), -1) + 1  # by definition
        reached = [level.since for level in levels if level.replicas >= wanted]
        assert bool(reached) == (since <= end)
        if reached:
            # What has lasted for the window counts as lasting, and what has not has its exact moment.
            long = NOW + seconds(end - window)
            assert min(reached) == NOW + seconds(since) or (min(reached) <= long and NOW + seconds(since) <= long)


def ask_about(text: str, ref: WorkloadRef, workload: WorkloadId = VLLM):
    wanted = desired(ordering("worker-2", signals=(Query(name="q", text=text, per_replica=1),)), workloads=(workload,))
    template = replace(wanted.templates[workload], ref=ref)
    return questions(replace(wanted, templates={workload: template}))


def test_a_query_names_the_workload_it_is_asked_about() -> None:
    text = 'sum(up{namespace="{{ namespace }}",pod=~"{{ name }}-.+",team="{{ workspace }}",t="{{ template }}"})'
    asked, problems = ask_about(text, WorkloadRef(namespace="demo", name="vllm-7.b"))
    assert [question.text for question in asked] == ['sum(up{namespace="demo",pod=~"vllm-7.b-.+",team="llm",t="vllm"})']
    assert problems == ()


def test_a_template_that_counts_no_object_is_not_asked_about() -> None:
    wanted = desired(ordering("worker-2", signals=(QUEUE,)))
    template = replace(wanted.templates[VLLM], ref=None)
    assert questions(replace(wanted, templates={VLLM: template})) == ((), ())


@given(st.text())
def test_no_name_can_end_the_quotes_it_stands_in(name: str) -> None:
    written = quoted(name)
    assert not set(written) & set("\"'`\n{}()")
    # Go's escapes below \U are JSON's too, beyond them JSON has none.
    if max(map(ord, name), default=0) <= 0xFFFF:
        assert json.loads(f'"{written}"') == name


def test_a_name_that_means_harm_stays_a_name() -> None:
    asked, _ = ask_about('up{a="{{ name }}"}', WorkloadRef(namespace="demo", name='x"} or vector(9) #'))
    assert [question.text for question in asked] == [
        'up{a="x\\u0022\\u007d\\u0020or\\u0020vector\\u00289\\u0029\\u0020\\u0023"}'
    ]


def test_an_expression_that_fails_for_one_workload_is_told_and_the_others_are_asked() -> None:
    other = WorkloadId(WorkspaceName("llm"), TemplateName("other"))
    query = Query(name="q", text="up{a='{{ name[100] }}'}", per_replica=1)
    plain = Query(name="p", text="up", per_replica=1)
    asked, problems = questions(desired(ordering("worker-2", signals=(query, plain)), workloads=(VLLM, other)))
    assert [question.signal.label for question in asked] == ["prometheus p", "prometheus p"]
    assert len(problems) == 2


def test_all_queries_about_a_workload_share_one_budget() -> None:
    text = "up{% for i in range(3000) %}{% endfor %}"
    queries = tuple(Query(name=f"q{number}", text=text, per_replica=1) for number in range(9))
    asked, problems = questions(desired(ordering("worker-2", signals=queries), workloads=(VLLM,)))
    assert (len(asked), len(problems)) == (3, 6)
    assert "too much work" in str(problems[0])
