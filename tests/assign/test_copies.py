"""A template that always deploys the same number goes out in whole copies, one to a cluster, or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.explain.workload import explain
from reconciler.errors import InvalidInput
from reconciler.model.demand import Sample
from reconciler.model.plan import Place, Plan, Reason, Revert
from reconciler.model.policy import BurstPolicy, Desired, StrategyName
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, placement, plan, short


def fleet(copy: int, policy: BurstPolicy | None = None) -> Desired:
    """Make a fleet whose template deploys copies of so many replicas."""
    made = desired(policy or ordering("worker-2", "worker-3"))
    return replace(made, templates={VLLM: replace(made.templates[VLLM], copy=copy, uses_replicas=False)})


def placed(made: Plan) -> list[tuple[str, int]]:
    return [
        (change.placement.cluster, change.placement.replicas) for change in made.changes if isinstance(change, Place)
    ]


@pytest.mark.parametrize(
    ("missing", "expected"),
    [(1, []), (2, [("worker-2", 2)]), (3, [("worker-2", 2)]), (5, [("worker-2", 2), ("worker-3", 2)])],
)
def test_copies_go_one_to_a_cluster_as_far_as_whole_ones_are_missing(
    missing: int, expected: list[tuple[str, int]]
) -> None:
    made = plan(short(missing), free("worker-2", 9), free("worker-3", 9), wanted=fleet(2))
    assert placed(made) == expected


def test_a_copy_that_is_more_than_what_is_missing_says_how_it_stops_being_one() -> None:
    made = plan(short(1), free("worker-2", 9), wanted=fleet(2))
    (held,) = made.suppressed
    assert held.message.startswith("its template deploys copies of 2 replicas, and missing are 1")
    assert "overspill.dev/replicas" in held.message


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (ordering("worker-2", "worker-3", max_replicas=1), "allows 1"),
        (ordering(("worker-2", 1), ("worker-3", 1)), "fit on no cluster"),
    ],
    ids=["of the policy", "of the clusters"],
)
def test_a_maximum_below_a_copy_lets_none_through(policy: BurstPolicy, reason: str) -> None:
    made = plan(short(4), free("worker-2", 9), free("worker-3", 9), wanted=fleet(2, policy))
    assert placed(made) == []
    assert any(reason in held.message for held in made.suppressed)


def test_a_cluster_without_room_for_a_whole_copy_is_passed_over() -> None:
    made = plan(short(4), free("worker-2", 1), free("worker-3", 9), wanted=fleet(2))
    assert placed(made) == [("worker-3", 2)]


def test_whatever_the_distribution_copies_are_not_divided() -> None:
    policy = ordering("worker-2", "worker-3")
    policy = replace(policy, distribution=replace(policy.distribution, strategy=StrategyName.WEIGHTED))
    made = plan(short(4), free("worker-2", 9), free("worker-3", 9), wanted=fleet(3, policy))
    assert placed(made) == [("worker-2", 3)]


def test_a_cluster_gets_no_second_copy() -> None:
    there = ledger(placement("worker-2", 2))
    made = plan(short(4), free("worker-2", 9), wanted=fleet(2), there=there)
    assert made.changes == ()
    given = inputs(short(4), free("worker-2", 9), wanted=fleet(2), there=there)
    told = explain(VLLM, given, decide(given)).assessments[0].refusal
    assert told is not None
    assert "has its copy of 2 replicas" in told.message


@pytest.mark.parametrize(("missing", "ends"), [(1, 0), (0, 1)])
def test_a_copy_comes_home_when_none_of_it_is_missing(missing: int, ends: int) -> None:
    history = {VLLM: (Sample(at=NOW - timedelta(hours=2), missing=missing, asked=False),)}
    seen = short(missing)
    made = plan(seen, free("worker-2", 9), wanted=fleet(2), there=ledger(placement("worker-2", 2)), history=history)
    assert [type(change) for change in made.changes] == [Revert] * ends


def test_a_maximum_that_is_lowered_below_a_copy_ends_it() -> None:
    wanted = fleet(2, ordering("worker-2", "worker-3", max_replicas=3))
    there = ledger(placement("worker-2", 2), placement("worker-3", 2))
    made = plan(short(4), free("worker-2", 9), free("worker-3", 9), wanted=wanted, there=there)
    (change,) = made.changes
    assert isinstance(change, Revert)
    assert change.placement.cluster == "worker-3"


def test_copies_are_not_rebalanced() -> None:
    given = inputs(short(2), free("worker-2", 9), wanted=fleet(2), there=ledger(placement("worker-2", 2)))
    with pytest.raises(InvalidInput, match="copies of 2 replicas, which are not divided"):
        rebalance(given, VLLM, by="ada")


def test_what_fits_on_no_cluster_says_that_each_gets_one_copy() -> None:
    made = plan(short(3), free("worker-2", 9), free("worker-3", 9), wanted=fleet(1))
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.NOTHING_FITS, 1)
    assert held.message.startswith("1 replica of 3 fit on no cluster: each gets one copy of 1 replica at most (write")
