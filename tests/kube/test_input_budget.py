"""Answers of API servers are bounded each by itself, and all together in memory and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from reconciler.adapters.kube.answers import EVENT, PAGE, TooLong, event_lines, parsed
from reconciler.adapters.kube.input_budget import InputBudget, PartialAnswer, WorkCredit
from reconciler.core.workloads.object_identity import why_unidentified
from reconciler.model.bounds import (
    CLUSTER_BYTES_IN_FLIGHT,
    CLUSTER_DEPTH,
    CLUSTER_EVENT_SIZE,
    CLUSTER_EVENT_VALUES,
    CLUSTER_LABELS,
    CLUSTER_NAME,
    CLUSTER_PAGE_VALUES,
    CLUSTER_WORK,
    InputBound,
    JsonBounds,
)
from reconciler.text.json_input import UnreadableJson

CHUNK = b"x" * (1 << 20)


@pytest.fixture
def budget() -> InputBudget:
    return InputBudget()


def received(budget: InputBudget, answer: PartialAnswer, chunks: Iterator[bytes]) -> list[bytes]:
    return [line for chunk in chunks for line in event_lines(budget, answer, chunk)]


@pytest.mark.parametrize(("bounds", "values"), [(PAGE, CLUSTER_PAGE_VALUES), (EVENT, CLUSTER_EVENT_VALUES)])
def test_answer_of_too_many_values_is_refused_before_it_is_built(bounds: JsonBounds, values: InputBound) -> None:
    with pytest.raises(TooLong, match=f"holds over {values}"):
        parsed(b"[" + b"[]," * values.most + b"[]]", bounds)


def test_answer_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(UnreadableJson, match="nested over"):
        parsed(b"[" * (CLUSTER_DEPTH.most + 1) + b"]" * (CLUSTER_DEPTH.most + 1), PAGE)


def test_lines_of_a_watch_are_put_together_from_any_chunks(budget: InputBudget) -> None:
    text = b'{"a":1}\n\n{"b":2}\n {"c":3}\n{"d"'
    with budget.answer() as answer:
        lines = received(budget, answer, (text[place : place + 1] for place in range(len(text))))
        assert bytes(answer.content) == b'{"d"'
    assert lines == [b'{"a":1}\n', b'{"b":2}\n', b' {"c":3}\n']


def test_line_that_never_ends_is_given_up(budget: InputBudget) -> None:
    with budget.answer() as answer, pytest.raises(TooLong, match=f"an event of over {CLUSTER_EVENT_SIZE}"):
        received(budget, answer, (CHUNK for _ in range(1 + (CLUSTER_EVENT_SIZE.most >> 20))))


def test_the_largest_answer_is_cut_where_all_together_are_too_much(budget: InputBudget) -> None:
    with budget.answer() as large, budget.answer() as small:
        for _ in range((CLUSTER_BYTES_IN_FLIGHT.most >> 20) - 1):
            budget.add(large, CHUNK)
        budget.add(small, CHUNK)
        assert not large.cut
        budget.add(small, b"x")
        assert (large.cut, len(large.content), small.cut, len(small.content)) == (True, 0, False, len(CHUNK) + 1)
    # What has ended takes nothing of the room of others.
    with budget.answer() as next_one:
        for _ in range(CLUSTER_BYTES_IN_FLIGHT.most >> 20):
            budget.add(next_one, CHUNK)
        assert not next_one.cut


def test_server_that_has_used_up_its_time_waits_while_others_go_on(budget: InputBudget) -> None:
    greedy, usual = budget.work_credit(), budget.work_credit()
    greedy.spend(CLUSTER_WORK.most + 100)

    async def usual_comes_first() -> bool:
        waiting = asyncio.create_task(greedy.wait())
        await usual.wait()
        await asyncio.sleep(0)
        overtaken = not waiting.done()
        waiting.cancel()
        return overtaken

    assert asyncio.run(usual_comes_first())


def test_debts_of_several_servers_share_one_rate(budget: InputBudget) -> None:
    debts = [budget.work_credit() for _ in range(4)]
    for each in debts:
        each.spend(CLUSTER_WORK.most + 1)
    pauses = [each.pause() for each in debts]
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(4 * pauses[0], rel=0.05)
    assert WorkCredit(set()).pause() == 0


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"name": "x" * CLUSTER_NAME.most}, ""),
        ({"name": "x" * (CLUSTER_NAME.most + 1)}, f"has a name of over {CLUSTER_NAME}"),
        ({"name": "a", "namespace": "x" * 1000}, f"has a name of over {CLUSTER_NAME}"),
        ({"name": "a", "namespace": ["b"]}, "has a metadata.namespace that is no text"),
        ({"name": "a", "labels": {"a": "x" * CLUSTER_LABELS.most}}, f"has labels of over {CLUSTER_LABELS}"),
        ({"name": "a", "labels": {"a": 1}}, "has labels that are no texts"),
        ({"name": ""}, "has no name"),
    ],
)
def test_object_is_left_out_for_a_reason(metadata: dict[str, object], why: str) -> None:
    assert why_unidentified({"metadata": metadata}) == why
