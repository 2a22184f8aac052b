"""A budget that is used up holds back what is new, and ends nothing before its time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.model.action import Action
from reconciler.model.budget import BudgetKind, BudgetOwner, Budgets, BudgetState
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Renewal
from tests.builders.inputs import NOW, desired, free, inputs, ledger, ordering, placement, short

MINUTE = timedelta(minutes=1)
TOMORROW, DECEMBER = datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)

GPU, LLM = BudgetOwner(BudgetKind.POLICY, "gpu"), BudgetOwner(BudgetKind.WORKSPACE, "llm")
OTHERS = BudgetOwner(BudgetKind.WORKSPACE, "sim"), BudgetOwner(BudgetKind.POLICY, "other")


def state(spent: float, limit: float = 100, **fields: object) -> BudgetState:
    made = BudgetState(
        owner=GPU,
        field="budget.perDay",
        unit="day",
        period="2026-11-20",
        ends_at=TOMORROW,
        limit=limit,
        spent=spent,
        unpriced_gpu_hours=0,
    )
    return replace(made, **fields)


def decided(*placements: Placement, missing: int = 3, spent: float = 100, budgets: Budgets | None = None) -> Plan:
    policy = ordering("worker-2", "worker-3", renew=Renewal.WHILE_NEEDED)
    clusters = (short(missing), free("worker-2", 8), free("worker-3", 8))
    given = inputs(*clusters, there=ledger(*placements), wanted=desired(policy))
    return decide(replace(given, budgets=budgets or Budgets(by_owner={GPU: (state(spent),)})))


def test_nothing_is_placed_when_the_budget_is_used_up() -> None:
    made = decided()
    (held,) = made.suppressed
    assert made.changes == ()
    assert (held.reason, held.replicas, held.until, made.wake_at) == (Reason.OVER_BUDGET, 3, TOMORROW, TOMORROW)
    assert held.message == (
        "the budget of policy gpu for 2026-11-20, 100.00 $, is used up (raise spec.budget.perDay of BurstPolicy gpu;"
        " it begins again at 2026-11-21T00:00:00Z)"
    )


def test_a_budget_that_is_not_used_up_holds_nothing_back() -> None:
    made = decided(spent=99.99)
    assert [change.action for change in made.changes] == [Action.PLACE]
    assert made.suppressed == ()


def test_what_runs_stays_and_does_not_grow() -> None:
    made = decided(placement(replicas=2), missing=5)
    assert made.changes == ()
    assert [(held.reason, held.replicas) for held in made.suppressed] == [(Reason.OVER_BUDGET, 3)]


def test_what_runs_is_not_renewed_and_says_so() -> None:
    ending = placement(created=NOW - 9 * MINUTE)
    made = decided(ending)
    (held,) = made.suppressed
    assert made.changes == ()
    assert (held.reason, held.until) == (Reason.OVER_BUDGET, TOMORROW)
    assert held.message.startswith(f"{ending.name} on worker-2 ends at 2026-11-20T10:06:00Z and is not renewed: the")
    assert [change.action for change in decided(ending, spent=0).changes] == [Action.EXTEND]


def test_what_has_ended_is_not_placed_anew_and_its_revert_says_why() -> None:
    made = decided(placement(created=NOW - 10 * MINUTE))
    (ended,) = made.changes
    assert ended.action is Action.REVERT
    assert ended.why is EndReason.EXPIRED
    assert "not renewed, since the budget of policy gpu for 2026-11-20, 100.00 $, is used up" in ended.detail
    assert [held.reason for held in made.suppressed] == [Reason.OVER_BUDGET]


def test_what_is_not_needed_any_more_comes_home_as_ever() -> None:
    running = placement(created=NOW - 9 * MINUTE)
    kinds = [change.action for change in decided(running, missing=1).changes]
    assert kinds == [
        change.action for change in decided(running, missing=1, spent=0).changes if change.action is Action.RESIZE
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_budgets_the_one_that_lasts_longest_is_told(order: int) -> None:
    month = state(500, period="2026-11", ends_at=DECEMBER, field="budget.perMonth", owner=LLM)
    states = (state(100, owner=LLM), month)[::order]
    (held,) = decided(budgets=Budgets(by_owner={LLM: states})).suppressed
    assert held.until == DECEMBER
    assert "spec.budget.perMonth of Workspace llm" in held.message


def test_budgets_of_others_hold_nothing_back() -> None:
    used_up = (state(100),)
    made = decided(budgets=Budgets(by_owner=dict.fromkeys(OTHERS, used_up)))
    assert [change.action for change in made.changes] == [Action.PLACE]
