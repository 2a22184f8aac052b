"""Lost clusters and budgets that run out are told to those whom they concern, when that begins and when it ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from reconciler.core.notification.conditions import changes, conditions
from reconciler.core.notification.notices import wanted
from reconciler.model.budget import Budgets, BudgetState
from reconciler.model.events.notification import Importance
from reconciler.model.ids import ClusterName, WorkspaceName
from tests.builders.inputs import free, inputs
from tests.builders.notifications import chat

AT = datetime(2026, 11, 20, tzinfo=UTC)
LLM = WorkspaceName("llm")
INPUTS = inputs(free("worker-1", 0), free("worker-2", 4))
LOST = replace(INPUTS, lost={ClusterName("worker-2"): AT})


def spent(dollars: float) -> Budgets:
    state = BudgetState(
        owner="workspace llm",
        field="budget.perDay",
        period="2026-11-20",
        ends_at=AT + timedelta(days=1),
        limit=100,
        spent=dollars,
        unpriced_gpu_hours=0,
    )
    return Budgets(workspaces={LLM: (state,)})


def test_cluster_is_told_when_it_is_lost_and_when_it_is_back() -> None:
    (lost,) = changes(conditions(INPUTS), conditions(LOST), AT)
    (back,) = changes(conditions(LOST), conditions(INPUTS), AT)
    assert lost.event.line == "cluster worker-2 is not seen, or not well: it gets nothing new"
    assert (lost.event.kind, back.event.kind) == ("cluster lost", "cluster back")
    assert (lost.importance, back.importance) == (Importance.WARNING, Importance.INFO)
    assert [*changes(conditions(LOST), conditions(LOST), AT)] == []


def test_budget_is_told_at_eighty_percent_and_when_it_is_used_up() -> None:
    steps = [conditions(replace(INPUTS, budgets=spent(dollars))) for dollars in (10, 79, 80, 95, 100, 120)]
    told = [
        (notice.event.kind, notice.importance) for before, now in pairwise(steps) for notice in changes(before, now, AT)
    ]
    assert told == [("budget nearly spent", Importance.WARNING), ("budget spent", Importance.WARNING)]


def test_those_whom_it_does_not_concern_hear_nothing() -> None:
    notices = [*changes(conditions(INPUTS), conditions(replace(LOST, budgets=spent(99))), AT)]
    assert len([*wanted(chat(workspaces=(LLM,)), notices)]) == 2
    assert [*wanted(chat(workspaces=(WorkspaceName("vision"),)), notices)] == []
    assert len([*wanted(chat(), notices)]) == 2
