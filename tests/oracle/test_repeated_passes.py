"""The same input gives the same plan, which leaves nothing to do, and `explain` says what it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from hypothesis import given

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.model.budget import Budgets, BudgetState
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Extend, Place, Reason, Refusal, Resize
from tests.oracle import faults
from tests.oracle.chains import MOST, chains
from tests.oracle.invariants import held
from tests.oracle.world import Pass, applied, cold


@MOST
@given(chains())
def test_same_input_gives_the_same_plan_whatever_earlier_passes_have_found(passes: list[Pass]) -> None:
    for made in passes:
        assert decide(made.inputs) == made.plan
        assert decide(cold(made.inputs)) == made.plan


def may_lower_a_percentage(made: Pass) -> bool:
    """Return whether a pass may leave a subset above a maximum in percent, as is known of what it reverts."""
    bounds = (
        subset.most
        for work in made.works.values()
        for subset in (work.policy.spread.subsets if work.policy.spread is not None else ())
    )
    in_percent = any(bound is not None and bound.percent for bound in bounds)
    return in_percent and not faults.is_mended(faults.maximum_in_percent_follows_a_drain)


@MOST
@given(chains())
def test_a_pass_leaves_nothing_to_do_at_its_moment(passes: list[Pass]) -> None:
    for made in passes:
        if not may_lower_a_percentage(made):
            assert decide(replace(made.inputs, ledger=made.after)).changes == ()


@MOST
@given(chains())
def test_used_up_budget_lets_nothing_grow_and_renews_nothing(passes: list[Pass]) -> None:
    for made in passes:
        spent = BudgetState(
            owner="workspace llm",
            field="budget.perDay",
            period="2026-11-20",
            ends_at=made.now + timedelta(hours=1),
            limit=1.0,
            spent=1.0,
            unpriced_gpu_hours=0.0,
        )
        budgets = Budgets(workspaces={workload.workspace: (spent,) for workload in made.works})
        plan = decide(replace(made.inputs, budgets=budgets))
        assert not [change for change in plan.changes if isinstance(change, Extend)]
        after = applied(made.before, plan, made.now)
        assert all(held(after, each).total() <= held(made.before, each).total() for each in made.works)


def placed(made: Pass) -> Iterator[tuple[WorkloadId, ClusterSubset]]:
    """Yield where each workload gets replicas that it misses."""
    for change in made.plan.changes:
        if isinstance(change, Place):
            yield change.placement.workload, (change.placement.cluster, change.placement.subset)
        elif isinstance(change, Resize) and change.choice is not None:
            yield change.after.workload, (change.after.cluster, change.after.subset)


def refused(made: Pass, workload: WorkloadId) -> Iterator[tuple[ClusterSubset, Refusal]]:
    """Yield the clusters that a pass refuses a workload for which there is no room."""
    for suppressed in made.plan.suppressed:
        if suppressed.workload == workload and suppressed.reason is Reason.NOTHING_FITS:
            yield from (((refusal.cluster, refusal.subset), refusal) for refusal in suppressed.refusals)


@MOST
@given(chains())
def test_explanation_refuses_what_the_pass_refuses_and_nothing_else(passes: list[Pass]) -> None:
    for made in passes:
        gets = list(placed(made))
        if len(gets) < len(made.plan.changes):
            continue  # what ends or moves in the same pass makes room that no single look can show
        if len({name for name, _ in gets}) > 1 and not faults.is_mended(
            faults.bounded_division_beside_others_is_explained
        ):
            continue
        for workload in made.works:
            told = {one.key: one.refusal for one in explain(workload, made.inputs, made.plan).assessments}
            assert [place for name, place in gets if name == workload and told[place] is not None] == []
            full = {place[0] for _, place in gets}
            for place, refusal in refused(made, workload):
                answer = told[place]
                assert place[0] in full or (answer is not None and answer.reason is refusal.reason)
