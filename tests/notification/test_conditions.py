"""Lost clusters and budgets that run out are told to those whom they concern, when that begins and when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NoReturn

from reconciler.adapters.notification.couriers import Couriers
from reconciler.adapters.notification.sender import SingleTarget
from reconciler.core.notification.conditions import FleetConditions, changes, conditions
from reconciler.core.notification.message import Uncertain
from reconciler.core.notification.notices import wanted
from reconciler.model.budget import BudgetKind, BudgetOwner, Budgets, BudgetState
from reconciler.model.events.event import Notice
from reconciler.model.events.notification import DeliveryMarks, Importance
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import BurstPolicy, Desired
from tests.builders.inputs import free, inputs
from tests.builders.notifications import OURS, QUICK, VLLM, Branch, Marks, chat, message, until, webhook

AT = datetime(2026, 11, 20, tzinfo=UTC)
LLM = WorkspaceName("llm")
SAM = WorkloadId(WorkspaceName("vision"), TemplateName("sam"))
INPUTS = inputs(free("worker-1", 0), free("worker-2", 4))
LOST = replace(INPUTS, lost={ClusterName("worker-2"): AT})


def spent(dollars: float) -> Budgets:
    state = BudgetState(
        owner=BudgetOwner(BudgetKind.WORKSPACE, "llm"),
        field="budget.perDay",
        unit="day",
        period="2026-11-20",
        ends_at=AT + timedelta(days=1),
        limit=100,
        spent=dollars,
        unpriced_gpu_hours=0,
    )
    return Budgets(by_owner={state.owner: (state,)})


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


class Pager(SingleTarget):
    def __init__(self) -> None:
        self.taken: list[str] = []

    def ready(self) -> None:
        pass

    def send(self, _target: str, notices: Sequence[Notice], _uncertain: Uncertain | None = None) -> None:
        self.taken += [notice.event.kind for notice in notices]


class Unread(dict[WorkloadId, BurstPolicy]):
    def items(self) -> NoReturn:
        raise AssertionError("the policies of all workloads were looked at")


def test_workloads_of_a_policy_are_looked_up_only_where_its_budget_is_near_its_end() -> None:
    def standing(dollars: float, policies: Mapping[WorkloadId, BurstPolicy]) -> FleetConditions:
        budgets = Budgets(by_owner={BudgetOwner(BudgetKind.POLICY, "serving"): spent(dollars).states})
        return conditions(replace(INPUTS, budgets=budgets, desired=replace(INPUTS.desired, policies=policies)))

    assert standing(10, Unread()) == {}
    (condition,) = standing(90, {VLLM: BurstPolicy(name="serving"), SAM: BurstPolicy(name="other")}).values()
    assert condition.workspaces == (LLM,)


def test_new_receiver_is_not_told_of_what_stands_already() -> None:
    branch, pager = Branch(message(1)), Pager()
    couriers = Couriers(
        branch,
        Marks(DeliveryMarks(told=branch.tip, sending=branch.tip)),
        OURS,
        lambda *_: pager,
        timing=replace(QUICK, settling=0),
    )
    nobody = Desired(commit=CommitId(""))
    somebody = replace(nobody, notifications={"pager": webhook("https://x.example.com")})
    try:
        for desired, seen in ((nobody, INPUTS), (nobody, LOST), (somebody, LOST), (somebody, INPUTS)):
            couriers.follow(desired, branch.tip)
            couriers.compare(seen)
        until(lambda: couriers.follow(somebody, branch.tip) or pager.taken)
    finally:
        couriers.close(timedelta(seconds=20))
    assert pager.taken == ["cluster back"]


def test_those_whom_it_does_not_concern_hear_nothing() -> None:
    notices = [*changes(conditions(INPUTS), conditions(replace(LOST, budgets=spent(99))), AT)]
    assert len([*wanted(chat(workspaces=(LLM,)), notices)]) == 2
    assert [*wanted(chat(workspaces=(WorkspaceName("vision"),)), notices)] == []
    assert len([*wanted(chat(), notices)]) == 2
