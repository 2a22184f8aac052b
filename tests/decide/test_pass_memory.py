"""What passes keep changes no later plan, whatever happens between them, and lies in their memory alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.model.action import Action
from reconciler.model.budget import NO_BUDGETS, BudgetKind, BudgetOwner, Budgets, BudgetState
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason
from tests.builders.examples import examples
from tests.builders.input_entries import changed, entries
from tests.builders.inputs import VLLM, cluster, desired, free, inputs, ledger, ordering, placement, seconds, short
from tests.builders.requests import record, request
from tests.candidates.test_burst_kinds import WORKERS, WORKLOADS, enrolled, later, restraints, situations
from tests.decide.test_unchanged import after, measured_again

SPENT = BudgetState(
    owner=BudgetOwner(BudgetKind.WORKSPACE, "llm"),
    unit="day",
    period="the day",
    field="budget.perDay",
    limit=10.0,
    spent=10.0,
    unpriced_gpu_hours=0.0,
    ends_at=inputs().now + timedelta(hours=1),
)
LLM_SPENT = Budgets(by_owner={SPENT.owner: (SPENT,)})


def landed(before: PassInput, plan: Plan) -> Ledger:
    """Have the placements of a plan stand on the output branch."""
    put: dict[str, Placement] = {}
    gone: set[str] = set()
    for change in plan.changes:
        if change.action in (Action.PLACE, Action.RESIZE):
            put[change.placement.path] = change.placement
        elif change.action is Action.REVERT:
            gone.add(change.placement.path)
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
def test_a_pass_with_the_memory_of_passes_before_decides_as_one_without(
    situation: PassInput, data: st.DataObject
) -> None:
    kept, memory = enrolled(situation), PassMemory()
    decide(kept, memory)
    for _ in range(3):
        kept = data.draw(next_pass(kept))
        assert decide(kept, memory) == decide(enrolled(kept))


@given(situations(), st.data())
@examples(3)
@pytest.mark.exhaustive(one_in=None)
def test_passes_leave_everything_in_their_input_as_it_is(situation: PassInput, data: st.DataObject) -> None:
    kept, memory = enrolled(situation), PassMemory()
    for _ in range(3):
        before = entries(kept)
        decide(kept, memory)
        assert changed(before, entries(kept)) == []
        kept = data.draw(next_pass(kept))


def test_a_pass_with_requests_leaves_everything_in_its_input_as_it_is() -> None:
    waiting = record(request("train", placements=1))
    seen = short(3), free("worker-2", 1), free("worker-3", 0)
    kept = enrolled(inputs(*seen, there=ledger(placement("worker-2", 1), requests={waiting.workload: waiting})))
    before = entries(kept)
    assert decide(kept, PassMemory()).changes
    assert changed(before, entries(kept)) == []


@given(situations())
@examples(3)
def test_what_a_memory_knows_of_orders_follows_from_the_fleet_alone(situation: PassInput) -> None:
    one = enrolled(situation)
    other = enrolled(replace(inputs(wanted=situation.desired), now=situation.now + timedelta(days=400)))
    memories = PassMemory(), PassMemory()
    for each, memory in zip((one, other), memories, strict=True):
        decide(each, memory)
    mine, theirs = (vars(memory.own(each).reach) for each, memory in zip((one, other), memories, strict=True))
    assert mine.keys() == theirs.keys()
    for name in mine.keys() - {"_desired", "makers", "patched"}:
        if isinstance(mine[name], dict):
            shared = mine[name].keys() & theirs[name].keys()
            assert {key: mine[name][key] for key in shared} == {key: theirs[name][key] for key in shared}
        else:
            assert None in (mine[name], theirs[name]) or mine[name] == theirs[name]


def test_a_memory_of_one_fleet_is_none_of_another() -> None:
    first, memory = full(), PassMemory()
    decide(first, memory)
    wider = desired(
        ordering("worker-2"), clusters=[cluster("worker-1"), cluster("worker-2", taints=(Taint(key="team"),))]
    )
    then = enrolled(replace(after(first, seconds(1)), desired=wider))
    assert decide(then, memory) == decide(then)


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
    first, memory = full(), PassMemory()
    decide(first, memory)
    (held,) = decide(replace(after(first, seconds(1)), **change), memory).suppressed
    assert held.reason is reason


def test_a_burst_that_waits_is_placed_once_there_is_room() -> None:
    first, memory = full(), PassMemory()
    decide(first, memory)
    then = after(first, seconds(1))
    roomy = {**then.observed.clusters, ClusterName("worker-3"): free("worker-3", 4, at=then.now)}
    (place,) = decide(replace(then, observed=Observed(clusters=roomy)), memory).changes
    assert place.action is Action.PLACE
    assert (place.placement.cluster, place.placement.replicas) == ("worker-3", 3)
