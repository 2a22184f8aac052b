"""What passes keep of bursts that wait changes no later plan, whatever happens between them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.budget import NO_BUDGETS, Budgets, BudgetState
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.plan import Place, Plan, Reason, Resize, Revert
from tests.builders.examples import examples
from tests.builders.inputs import VLLM, desired, free, inputs, ledger, ordering, placement, seconds, short
from tests.candidates.test_burst_kinds import WORKERS, WORKLOADS, enrolled, later, restraints, situations
from tests.decide.test_unchanged import after, measured_again

SPENT = BudgetState(
    owner="workspace llm",
    period="the day",
    field="budget.perDay",
    limit=10.0,
    spent=10.0,
    unpriced_gpu_hours=0.0,
    ends_at=inputs().now + timedelta(hours=1),
)
LLM_SPENT = Budgets(workspaces={WorkspaceName("llm"): (SPENT,)})


def landed(before: PassInput, plan: Plan) -> Ledger:
    """Have the placements of a plan stand on the output branch."""
    put: dict[str, Placement] = {}
    gone: set[str] = set()
    for change in plan.changes:
        match change:
            case Place(placement=made) | Resize(after=made):
                put[made.path] = made
            case Revert(placement=made):
                gone.add(made.path)
            case _:
                pass
    return replace(before.ledger, placements=before.ledger.placements.changed(put, gone))


@st.composite
def next_pass(draw: st.DrawFn, before: PassInput) -> PassInput:
    """Draw the input of the next pass, in which demands of unchanged workloads are the very same objects."""
    seen = draw(later(before))
    there = before.ledger
    if draw(st.booleans()):
        there = landed(before, decide(before))
    if draw(st.integers(0, 2)) == 0:
        held = {workload: own for workload in WORKLOADS if (own := draw(restraints(workload)))}
        there = replace(
            there, restraints=held, blocked=frozenset(draw(st.sets(st.sampled_from(WORKLOADS), max_size=1)))
        )
    if draw(st.integers(0, 3)) == 0:
        more = placement(draw(st.sampled_from(WORKERS)), 1, workload=draw(st.sampled_from(WORKLOADS)))
        there = replace(there, placements=there.placements.changed({more.path: more}))
    return replace(
        seen,
        ledger=there,
        demands=measured_again(before, seen.observed, seen.now),
        budgets=draw(st.sampled_from([NO_BUDGETS, NO_BUDGETS, LLM_SPENT])),
    )


@given(situations(), st.data())
@examples(3)
@pytest.mark.exhaustive(one_in=None)
def test_a_pass_that_knows_the_bursts_of_passes_before_decides_as_one_that_does_not(
    situation: PassInput, data: st.DataObject
) -> None:
    kept = enrolled(situation)
    decide(kept)
    for _ in range(3):
        kept = data.draw(next_pass(kept))
        assert decide(kept) == decide(enrolled(kept))


def full() -> PassInput:
    """Three replicas wait, and no cluster has room."""
    return enrolled(inputs(short(3), free("worker-2", 0), free("worker-3", 0)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"budgets": LLM_SPENT}, Reason.OVER_BUDGET),
        ({"ledger": ledger(blocked=frozenset({VLLM}))}, Reason.LEDGER_UNREADABLE),
    ],
)
def test_what_holds_a_burst_back_comes_before_what_is_known_of_it(change: dict[str, object], reason: Reason) -> None:
    first = full()
    decide(first)
    (held,) = decide(replace(after(first, seconds(1)), **change)).suppressed
    assert held.reason is reason


def test_a_burst_that_waits_is_placed_once_there_is_room() -> None:
    first = full()
    decide(first)
    then = after(first, seconds(1))
    roomy = {**then.observed.clusters, ClusterName("worker-3"): free("worker-3", 4, at=then.now)}
    (place,) = decide(replace(then, observed=Observed(clusters=roomy))).changes
    assert isinstance(place, Place)
    assert (place.placement.cluster, place.placement.replicas) == ("worker-3", 3)


def test_supposed_files_find_nothing_of_the_fleet_in_force() -> None:
    first = full()
    decide(first)
    supposed = replace(after(first, seconds(1)), desired=desired(ordering("worker-2", max_replicas=1)))
    messages = [held.message for held in decide(supposed).suppressed]
    assert any("allows 1 replica" in message for message in messages)
