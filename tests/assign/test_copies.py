"""A template that always deploys the same number goes out in whole copies, one to a cluster, or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.explain.workload import explain
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.demand import Sample
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import BurstPolicy, Desired, Distribution, StrategyName
from tests.builders.cluster_shares import spread_over
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    seconds,
    short,
)

HOUR = timedelta(hours=1)


def fleet(copy: int, policy: BurstPolicy | None = None, **fields: object) -> Desired:
    """Make a fleet whose template deploys copies of so many replicas."""
    made = desired(policy or ordering("worker-2", "worker-3"), **fields)
    return replace(made, templates={VLLM: replace(made.templates[VLLM], copy=copy, uses_replicas=False)})


def placed(made: Plan) -> list[tuple[str, int]]:
    return [
        (change.placement.cluster, change.placement.replicas)
        for change in made.changes
        if change.action is Action.PLACE
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


def test_a_copy_of_which_a_part_is_due_is_not_said_to_be_more_than_the_policy_allows() -> None:
    primary = short(4)
    (seen,) = primary.workloads
    waiting = tuple(replace(seen.waiting[0], replicas=1, since=NOW - seconds(ago)) for ago in (45, 1))
    primary = replace(primary, workloads=(replace(seen, waiting=waiting),))
    made = plan(primary, free("worker-2", 9), wanted=fleet(2, ordering("worker-2", max_replicas=9)))
    (held,) = (each for each in made.suppressed if each.reason is Reason.NOTHING_FITS)
    assert held.message.startswith("its template deploys copies of 2 replicas, and missing are 1 (")


def test_the_rest_of_what_runs_once_is_not_said_to_lack_room() -> None:
    wanted = fleet(2)
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], runs_once=True)})
    made = plan(short(3, running=0, held=True), free("worker-2", 9), wanted=wanted)
    assert (placed(made), made.suppressed) == ([("worker-2", 2)], ())


def test_a_cluster_without_room_for_a_whole_copy_is_passed_over() -> None:
    made = plan(short(4), free("worker-2", 1), free("worker-3", 9), wanted=fleet(2))
    assert placed(made) == [("worker-3", 2)]


def test_whatever_the_distribution_copies_are_not_divided() -> None:
    policy = ordering("worker-2", "worker-3")
    policy = replace(policy, distribution=replace(policy.distribution, strategy=StrategyName.WEIGHTED))
    made = plan(short(4), free("worker-2", 9), free("worker-3", 9), wanted=fleet(3, policy))
    assert placed(made) == [("worker-2", 3)]


def in_regions(distribution: Distribution, **regions: str) -> Desired:
    """Make a fleet of copies of two whose policy names clusters by their regions, in that order."""
    names = {name.replace("_", "-"): of for name, of in regions.items()}
    clusters = [cluster("worker-1"), *(cluster(name, labels={"region": of}) for name, of in names.items())]
    return fleet(2, ordering(*names, distribution=distribution), clusters=clusters)


TWO_REGIONS = Distribution(spread_constraints=spread_over("region", min_groups=2))


@pytest.mark.parametrize(
    ("distribution", "missing", "expected"),
    [
        (TWO_REGIONS, 4, ["worker-2", "worker-4"]),
        (TWO_REGIONS, 6, ["worker-2", "worker-3", "worker-4"]),
        (TWO_REGIONS, 2, ["worker-2"]),
        (Distribution(max_clusters=1), 4, ["worker-2"]),
        (Distribution(spread_constraints=spread_over("region", max_groups=1)), 6, ["worker-2", "worker-3"]),
        (Distribution(min_clusters=2), 4, ["worker-2", "worker-3"]),
    ],
)
def test_copies_keep_the_bounds_on_clusters_and_regions(
    distribution: Distribution, missing: int, expected: list[str]
) -> None:
    wanted = in_regions(distribution, worker_2="eu", worker_3="eu", worker_4="us")
    rooms = [free(name, 9) for name in ("worker-2", "worker-3", "worker-4")]
    assert placed(plan(short(missing), *rooms, wanted=wanted)) == [(name, 2) for name in expected]


def test_copies_that_wait_for_a_second_region_say_so() -> None:
    wanted = in_regions(TWO_REGIONS, worker_2="eu", worker_3="eu", worker_4="us")
    made = plan(short(4), free("worker-2", 9), free("worker-3", 9), wanted=wanted)
    assert placed(made) == [("worker-2", 2)]
    (told,) = (held.message for held in made.suppressed if held.reason is Reason.SPREAD_LIMIT)
    assert told.startswith("policy gpu spreads over 2 values of region at least, and only 1 can be used")
    assert "until then each has one copy (free or add such clusters" in told


def test_second_copy_goes_to_the_region_that_has_none() -> None:
    wanted = in_regions(TWO_REGIONS, worker_2="eu", worker_3="eu", worker_4="us")
    there = ledger(placement("worker-2", 2))
    made = plan(short(4), free("worker-3", 9), free("worker-4", 9), wanted=wanted, there=there)
    assert placed(made) == [("worker-4", 2)]


def test_copies_that_are_in_one_region_move_to_two_once_they_can() -> None:
    wanted = in_regions(TWO_REGIONS, worker_2="eu", worker_3="eu", worker_4="us")
    there = ledger(placement("worker-2", 2, lasting=HOUR), placement("worker-3", 2, lasting=HOUR))
    rooms = free("worker-2", 9), free("worker-3", 9), free("worker-4", 9)
    (move,) = plan(short(4), *rooms, wanted=wanted, there=there).changes
    assert move.action is Action.MOVE
    assert (move.before.cluster, move.after.cluster, move.after.replicas) == ("worker-3", "worker-4", 2)


def test_one_copy_lacks_no_second_region() -> None:
    wanted = in_regions(TWO_REGIONS, worker_2="eu", worker_4="us")
    made = plan(short(2), free("worker-4", 9), wanted=wanted, there=ledger(placement("worker-2", 2)))
    assert (made.changes, made.suppressed) == ((), ())


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
    assert [change.action for change in made.changes] == [Action.REVERT] * ends


def test_a_maximum_that_is_lowered_below_a_copy_ends_it() -> None:
    wanted = fleet(2, ordering("worker-2", "worker-3", max_replicas=3))
    there = ledger(placement("worker-2", 2), placement("worker-3", 2))
    made = plan(short(4), free("worker-2", 9), free("worker-3", 9), wanted=wanted, there=there)
    (change,) = made.changes
    assert change.action is Action.REVERT
    assert change.placement.cluster == "worker-3"


def test_copies_are_not_rebalanced() -> None:
    given = inputs(short(2), free("worker-2", 9), wanted=fleet(2), there=ledger(placement("worker-2", 2)))
    with pytest.raises(InvalidInput, match="copies of 2 replicas, which are not divided"):
        rebalance(given, VLLM, by="ada")


def test_what_fits_on_no_cluster_says_that_each_gets_one_copy() -> None:
    made = plan(short(3), free("worker-2", 9), free("worker-3", 9), wanted=fleet(1))
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.NOTHING_FITS, 1)
    assert held.message.startswith("1 replica of 3 fits on no cluster: each gets one copy of 1 replica at most (write")
