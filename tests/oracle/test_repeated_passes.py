"""The same input gives the same plan, which leaves nothing to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given

from reconciler.core.decide.decide import decide
from reconciler.model.action import Action
from reconciler.model.budget import BudgetKind, BudgetOwner, Budgets, BudgetState
from tests.builders.input_entries import changed, entries
from tests.oracle.chains import MOST, chains
from tests.oracle.invariants import held
from tests.oracle.world import Pass, applied, cold


@MOST
@given(chains())
def test_same_input_gives_the_same_plan_whatever_earlier_passes_have_found(passes: list[Pass]) -> None:
    for made in passes:
        assert decide(made.inputs) == made.plan
        assert decide(cold(made.inputs)) == made.plan


@MOST
@given(chains())
def test_decision_leaves_its_input_as_it_is(passes: list[Pass]) -> None:
    for made in passes:
        before = entries(made.inputs)
        decide(made.inputs)
        assert changed(before, entries(made.inputs)) == []


@MOST
@given(chains())
def test_a_pass_leaves_nothing_to_do_at_its_moment(passes: list[Pass]) -> None:
    for made in passes:
        assert decide(replace(made.inputs, ledger=made.after)).changes == ()


@MOST
@given(chains())
def test_used_up_budget_lets_nothing_grow_and_renews_nothing(passes: list[Pass]) -> None:
    for made in passes:
        spent = BudgetState(
            owner=BudgetOwner(BudgetKind.WORKSPACE, "llm"),
            field="budget.perDay",
            unit="day",
            period="2026-11-20",
            ends_at=made.now + timedelta(hours=1),
            limit=1.0,
            spent=1.0,
            unpriced_gpu_hours=0.0,
        )
        budgets = Budgets(
            by_owner={BudgetOwner(BudgetKind.WORKSPACE, workload.workspace): (spent,) for workload in made.works}
        )
        plan = decide(replace(made.inputs, budgets=budgets))
        assert not [change for change in plan.changes if change.action is Action.EXTEND]
        after = applied(made.before, plan, made.now)
        assert all(held(after, each).total() <= held(made.before, each).total() for each in made.works)
