"""Surplus leaves by what serves least, for each kind of workload and in each step; guarantees come before that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.observe.rollouts import ClusterRollouts, RolloutFailure, Rollouts
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, NonGpuPods, Pool, ReplicaShape
from reconciler.model.demand import Sample
from reconciler.model.ids import ClusterName
from reconciler.model.ledger import Placements
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import BurstPolicy, Desired, Distribution, Renewal, StrategyName
from reconciler.model.rollout import EngineState
from reconciler.model.score import ScorerName, ScorerWeight
from tests.builders.cluster_shares import spread_over
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    gpus,
    inputs,
    ledger,
    ordering,
    placement,
    shape,
    short,
)
from tests.builders.subsets import fleet as subset_fleet
from tests.builders.subsets import kept, named, stands, subset

LONG_AGO = NOW - timedelta(hours=2)


def where(
    *placements: Placement, ready: Mapping[str, int], bound: Mapping[str, int] | None = None
) -> list[ClusterObservation]:
    """Observe the clusters of placements with so many ready replicas each; without `bound` no others have a node."""
    seen = []
    for name in sorted({each.cluster for each in placements if each.cluster in ready}):
        mine = [each for each in placements if each.cluster == name]
        pods = (bound or {}).get(name, ready[name])
        seen.append(
            free(
                name,
                9,
                bound={each.name: pods * each.shape.group_size for each in mine if pods},
                ready={each.name: ready[name] * each.shape.group_size for each in mine},
            )
        )
    return seen


def after_demand_fell(
    *placements: Placement,
    missing: int,
    seen: list[ClusterObservation],
    wanted: Desired | None = None,
    rollouts: Rollouts | None = None,
) -> Plan:
    """Decide once the missing replicas have been no more for hours."""
    history = {VLLM: (Sample(at=LONG_AGO, missing=missing, asked=False),)}
    given = inputs(short(missing), *seen, wanted=wanted, there=ledger(*placements), history=history)
    return decide(given if rollouts is None else replace(given, rollouts=rollouts))


def fleet(policy: BurstPolicy | None = None, **fields: object) -> Desired:
    return desired(policy, clusters=[cluster(f"worker-{number}") for number in (1, 2, 3, 4)], **fields)


def by(strategy: StrategyName, **fields: object) -> BurstPolicy:
    return ordering("worker-2", "worker-3", distribution=Distribution(strategy=strategy, **fields))


def in_copies(policy: BurstPolicy | None = None) -> Desired:
    made = fleet(policy)
    return replace(made, templates={VLLM: replace(made.templates[VLLM], copy=2, uses_replicas=False)})


KINDS: Mapping[str, tuple[Desired, int]] = {
    "in order": (fleet(), 1),
    "weighted": (fleet(by(StrategyName.WEIGHTED)), 1),
    "balanced": (fleet(by(StrategyName.BALANCED)), 1),
    "aggregated": (fleet(by(StrategyName.AGGREGATED)), 1),
    "groups": (fleet(), 4),
    "copies": (in_copies(), 1),
    "subsets": (subset_fleet(subset("own", named("worker-2")), subset("rented", named("worker-3"))), 1),
}
STATES: Mapping[str, tuple[dict[str, int], dict[str, int], str]] = {
    "unseen": ({"worker-3": 2}, {}, "2 of those that go are unseen"),
    "without a node": ({"worker-2": 0, "worker-3": 2}, {}, "2 of those that go have no node"),
    "not ready": ({"worker-2": 0, "worker-3": 2}, {"worker-2": 2}, "2 of those that go are not ready"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_serves_least_is_given_back_whatever_the_order_and_the_commit_says_so(kind: str, state: str) -> None:
    wanted, pods = KINDS[kind]
    ready, bound, why = STATES[state]
    subsets = ("own", "rented") if kind == "subsets" else ("", "")
    placements = [
        placement(name, 2, shape=shape(group_size=pods), created=LONG_AGO, lasting=timedelta(days=1), subset=part)
        for name, part in zip(("worker-2", "worker-3"), subsets, strict=True)
    ]
    made = after_demand_fell(*placements, missing=2, seen=where(*placements, ready=ready, bound=bound), wanted=wanted)
    (end,) = made.changes
    assert end.action is Action.REVERT
    assert end.placement.cluster == "worker-2"
    assert end.detail.endswith(f"; {why}")


@pytest.mark.parametrize("kind", KINDS)
def test_equal_replicas_go_by_the_order_and_nothing_is_said_of_how_they_serve(kind: str) -> None:
    wanted, pods = KINDS[kind]
    subsets = ("own", "rented") if kind == "subsets" else ("", "")
    placements = [
        placement(name, 2, shape=shape(group_size=pods), created=LONG_AGO, lasting=timedelta(days=1), subset=part)
        for name, part in zip(("worker-2", "worker-3"), subsets, strict=True)
    ]
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 0})
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=wanted)
    of_each = [(placements[1].where, 1), (placements[0].where, 1)]
    assert kept(made) == (of_each if kind in {"weighted", "balanced"} else [(placements[1].where, 0)])
    assert not any("those that go" in change.detail for change in made.changes)


def test_unseen_goes_before_no_node_before_not_ready_before_ready() -> None:
    names = ["worker-2", "worker-3", "worker-4", "worker-5"]
    wanted = desired(ordering(*names), clusters=[cluster(name) for name in ("worker-1", *names)])
    placements = [placement(name, 1) for name in names]
    seen = where(*placements, ready={"worker-3": 0, "worker-4": 0, "worker-5": 1}, bound={"worker-4": 1})
    made = [after_demand_fell(*placements, missing=left, seen=seen, wanted=wanted) for left in (3, 2, 1)]
    gone = [sorted(change.placement.cluster for change in each.changes) for each in made]
    assert gone == [names[:1], names[:2], names[:3]]


def test_a_placement_shrinks_by_its_replicas_without_a_node_before_others_that_serve() -> None:
    first, second = placement("worker-2", 3), placement("worker-3", 2)
    made = after_demand_fell(first, second, missing=3, seen=where(first, second, ready={"worker-2": 1, "worker-3": 2}))
    (change,) = made.changes
    assert change.action is Action.RESIZE
    assert kept(made) == [("worker-2", 1)]
    assert change.detail.endswith("; 2 of those that go have no node")


def test_on_one_cluster_the_placement_that_serves_goes_after_a_newer_and_an_older_one() -> None:
    placements = [placement("worker-2", 1, created=NOW - timedelta(minutes=age)) for age in (9, 8, 7)]
    oldest, middle, newest = placements
    seen = free("worker-2", 9, bound={middle.name: 1}, ready={middle.name: 1})
    made = after_demand_fell(*placements, missing=1, seen=[seen])
    assert {change.placement.name for change in made.changes} == {oldest.name, newest.name}


def test_a_version_that_its_engine_calls_healthy_has_its_nodes_though_no_pod_can_be_counted() -> None:
    healthy = placement("worker-3", 2, digest="d")
    waiting = placement("worker-2", 2)
    arrived = Rollouts.of({ClusterName("worker-3"): ClusterRollouts(arrived={healthy.path: "d"})})
    seen = [free("worker-2", 9), free("worker-3", 9)]
    made = after_demand_fell(waiting, healthy, missing=2, seen=seen, rollouts=arrived)
    assert kept(made) == [("worker-2", 0)]


def test_replicas_with_a_node_count_as_ready_until_their_engine_calls_them_unwell() -> None:
    ailing, other = placement("worker-2", 2, digest="d"), placement("worker-3", 2)
    seen = [free(each.cluster, 9, bound={each.name: 2}) for each in (ailing, other)]
    assert kept(after_demand_fell(ailing, other, missing=2, seen=seen)) == [("worker-3", 0)]
    failure = RolloutFailure(digest="d", state=EngineState.PENDING, message="0 of 2 ready", since=NOW)
    unwell = Rollouts.of({ClusterName("worker-2"): ClusterRollouts(ailing={ailing.path: failure})})
    made = after_demand_fell(ailing, other, missing=2, seen=seen, rollouts=unwell)
    assert kept(made) == [("worker-2", 0)]


def test_pods_on_cpus_are_no_ready_replicas() -> None:
    routers, serving = placement("worker-2", 2), placement("worker-3", 2)
    helped = free(
        "worker-2",
        9,
        bound={routers.name: 2},
        ready={routers.name: 2},
        non_gpu_pods={routers.name: NonGpuPods(bound=2, ready=2)},
    )
    made = after_demand_fell(routers, serving, missing=2, seen=[helped, *where(serving, ready={"worker-3": 2})])
    assert kept(made) == [("worker-2", 0)]


GUARANTEES: Mapping[str, tuple[BurstPolicy, list[tuple[str, int]]]] = {
    "minReplicas": (
        replace(
            ordering("worker-2", "worker-3"),
            candidates=tuple(
                replace(each, min_replicas=2 if each.name == "worker-2" else 0)
                for each in ordering("worker-2", "worker-3").candidates
            ),
        ),
        [("worker-3", 0)],
    ),
    "minClusters": (by(StrategyName.ORDERED, min_clusters=2), [("worker-3", 1), ("worker-2", 1)]),
    "minGroups": (
        by(StrategyName.ORDERED, spread_constraints=spread_over("region", min_groups=2)),
        [("worker-3", 1), ("worker-2", 1)],
    ),
}


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_guarantees_hold_before_what_serves_stays(guarantee: str) -> None:
    policy, expected = GUARANTEES[guarantee]
    regions = {"worker-2": "eu", "worker-3": "us"}
    wanted = desired(
        policy,
        clusters=[cluster("worker-1"), *(cluster(name, labels={"region": region}) for name, region in regions.items())],
    )
    placements = placement("worker-2", 2), placement("worker-3", 2)
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 2})
    assert kept(after_demand_fell(*placements, missing=2, seen=seen, wanted=wanted)) == expected


def test_the_cluster_that_has_to_stay_is_one_that_serves() -> None:
    names = ["worker-2", "worker-3", "worker-4"]
    policy = ordering(*names, distribution=Distribution(min_clusters=2))
    placements = [placement(name, 1) for name in names]
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 1, "worker-4": 1})
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=fleet(policy))
    assert kept(made) == [("worker-2", 0)]


def test_copies_keep_the_groups_that_there_have_to_be() -> None:
    names = ["worker-2", "worker-3", "worker-4"]
    policy = ordering(*names, distribution=Distribution(spread_constraints=spread_over("region", min_groups=2)))
    made = in_copies(policy)
    regions = {"worker-2": "eu", "worker-3": "us", "worker-4": "us"}
    clusters = {name: replace(made.clusters[name], labels={"region": region}) for name, region in regions.items()}
    wanted = replace(made, clusters={**made.clusters, **clusters})
    placements = [placement(name, 2) for name in names]
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 2, "worker-4": 2})
    assert kept(after_demand_fell(*placements, missing=4, seen=seen, wanted=wanted)) == [("worker-4", 0)]


def test_minimum_of_a_subset_holds_before_what_serves_stays() -> None:
    wanted = subset_fleet(subset("own", named("worker-2"), least=1), subset("rented", named("worker-3")))
    placements = stands("worker-2", 2, "own"), stands("worker-3", 2, "rented")
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 2})
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=wanted)
    assert kept(made) == [("worker-3/rented", 1), ("worker-2/own", 1)]


def test_what_may_not_stay_anyhow_goes_before_what_serves_least() -> None:
    wanted = fleet(ordering("worker-2"))
    placements = placement("worker-2", 2), placement("worker-4", 2)
    seen = where(*placements, ready={"worker-2": 0, "worker-4": 2})
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=wanted)
    assert kept(made) == [("worker-4", 0)]


def fall_off_the_policy(divided: str, strategy: StrategyName, ready: Mapping[str, int]) -> dict[str, int]:
    """Let two of four replicas go on two clusters, of which the policy names worker-2 alone; return those that change.

    `ready` are the clusters and their replicas that serve. A file cannot be read, so that nobody has to leave.
    """
    policy, part = ordering("worker-2", distribution=Distribution(strategy=strategy)), ""
    if divided == "over subsets":
        spread, part = subset_fleet(subset("own", named("worker-2"))).policies[VLLM].spread, "own"
        policy = replace(policy, spread=spread)
    placements = [placement(cluster, 2, subset=part) for cluster in ready]
    seen = where(*placements, ready=ready)
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=replace(fleet(policy), incomplete=True))
    return {place.partition("/")[0]: replicas for place, replicas in kept(made)}


@pytest.mark.parametrize("strategy", StrategyName)
@pytest.mark.parametrize("divided", ["over clusters", "over subsets"])
def test_what_is_not_named_goes_before_what_serves_least_while_a_file_cannot_be_read(
    divided: str, strategy: StrategyName
) -> None:
    assert fall_off_the_policy(divided, strategy, {"worker-2": 0, "worker-4": 2}) == {"worker-4": 0}


@pytest.mark.parametrize("strategy", StrategyName)
@pytest.mark.parametrize("divided", ["over clusters", "over subsets"])
def test_of_what_is_not_named_the_replicas_that_serve_least_go_first(divided: str, strategy: StrategyName) -> None:
    assert fall_off_the_policy(divided, strategy, {"worker-3": 0, "worker-4": 2}) == {"worker-3": 0}


@pytest.mark.parametrize("strategy", StrategyName)
def test_clusters_that_are_named_hold_the_lower_bound_that_they_can(strategy: StrategyName) -> None:
    policy = by(strategy, min_clusters=2)
    placements = placement("worker-2", 1), placement("worker-3", 1), placement("worker-4", 2)
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 0, "worker-4": 2})
    wanted = replace(fleet(policy), incomplete=True)
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=wanted)
    assert kept(made) == [("worker-4", 0)]


@pytest.mark.parametrize("divided", ["over clusters", "over subsets"])
def test_a_cluster_at_its_limit_counts_as_full_and_gives_back_first(divided: str) -> None:
    balanced = ordering("worker-2", "worker-3", distribution=Distribution(strategy=StrategyName.BALANCED))
    limited, other = balanced.candidates
    balanced = replace(balanced, candidates=(replace(limited, max_replicas=2), other))
    if divided == "over subsets":  # both clusters are in none of them
        spread = subset_fleet(subset("own", named("worker-4"))).policies[VLLM].spread
        balanced = replace(balanced, spread=spread)
    placements = placement("worker-2", 2), placement("worker-3", 2)
    seen = [
        free(each.cluster, gpus, bound={each.name: 2}, ready={each.name: 2})
        for each, gpus in zip(placements, (8, 2), strict=True)
    ]
    made = after_demand_fell(*placements, missing=3, seen=seen, wanted=fleet(balanced))
    assert kept(made) == [("worker-2", 1)]


def test_a_lowered_maximum_takes_what_serves_least() -> None:
    placements = placement("worker-2", 2), placement("worker-3", 2)
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 2})
    wanted = fleet(ordering("worker-2", "worker-3", max_replicas=2))
    made = decide(inputs(short(4), *seen, wanted=wanted, there=ledger(*placements)))
    assert kept(made) == [("worker-2", 0)]
    assert made.changes[0].detail == "policy gpu allows 2 replicas; 2 of those that go have no node"


def test_a_lowered_maximum_of_a_subset_takes_what_serves_least() -> None:
    wanted = subset_fleet(subset("own", named("worker-2", "worker-3"), most=2))
    placements = stands("worker-2", 2, "own"), stands("worker-3", 2, "own")
    roomy, full = placements
    seen = [
        free("worker-2", 9, bound={roomy.name: 2}, ready={roomy.name: 0}),
        free("worker-3", 0, bound={full.name: 2}, ready={full.name: 2}),
    ]
    made = decide(inputs(short(4), *seen, wanted=wanted, there=ledger(*placements)))
    assert kept(made) == [("worker-2/own", 0)]


def test_what_serves_is_renewed_and_what_serves_least_lapses() -> None:
    left = timedelta(minutes=2)
    placements = [
        placement(name, 2, created=NOW + left - timedelta(minutes=10), digest="d") for name in ("worker-2", "worker-3")
    ]
    policy = ordering("worker-2", "worker-3", renew=Renewal.WHILE_NEEDED, scale_down_window=timedelta(hours=5))
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 2})
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=fleet(policy))
    assert [change.before.cluster for change in made.changes if change.action is Action.EXTEND] == ["worker-3"]


def test_a_rebalance_takes_what_serves_least_on_a_cluster() -> None:
    placements = [placement("worker-2", 2, created=NOW - timedelta(minutes=age)) for age in (9, 8)]
    waiting, serves = placements
    seen = free("worker-2", 0, bound={serves.name: 2}, ready={serves.name: 2})
    policy = by(StrategyName.BALANCED)
    given = inputs(short(4), seen, free("worker-3", 9), wanted=fleet(policy), there=ledger(*placements))
    made = rebalance(given, VLLM, by="ada")
    assert [change.placement.name for change in made.changes if change.action is Action.REVERT] == [waiting.name]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_given_back_before_it_could_start_is_not_placed_again(kind: str) -> None:
    wanted, pods = KINDS[kind]
    subsets = ("own", "rented") if kind == "subsets" else ("", "")
    form: ReplicaShape = shape(group_size=pods)
    placements = [
        placement("worker-2", 2, shape=form, created=NOW - timedelta(seconds=5), subset=subsets[0]),
        placement("worker-3", 2, shape=form, created=LONG_AGO, lasting=timedelta(days=1), subset=subsets[1]),
    ]
    seen = where(*placements, ready={"worker-2": 0, "worker-3": 2})
    history = {VLLM: (Sample(at=LONG_AGO, missing=2, asked=False),)}
    given = inputs(short(2), *seen, wanted=wanted, there=ledger(*placements), history=history)
    first = decide(given)
    assert kept(first) == [(placements[0].where, 0)]
    left = Placements({each.path: each for each in placements[1:]})
    assert decide(replace(given, ledger=replace(given.ledger, placements=left))).changes == ()


@pytest.mark.parametrize("divided", ["over clusters", "over subsets"])
def test_replicas_on_a_cluster_of_no_weight_stay_where_they_alone_serve(divided: str) -> None:
    weighted = by(StrategyName.WEIGHTED)
    first, other = weighted.candidates
    policy, part = replace(weighted, candidates=(replace(first, weight=0), other)), ""
    if divided == "over subsets":
        spread, part = subset_fleet(subset("own", named("worker-2", "worker-3"))).policies[VLLM].spread, "own"
        policy = replace(policy, spread=spread)
    placements = placement("worker-2", 2, subset=part), placement("worker-3", 2, subset=part)
    seen = where(*placements, ready={"worker-2": 2, "worker-3": 0})
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=fleet(policy))
    assert kept(made) == [(placements[1].where, 0)]


@pytest.mark.parametrize("divided", ["over clusters", "over subsets"])
def test_a_cluster_that_its_replicas_fill_up_gives_back_by_the_scores_that_do_not_go_by_room(divided: str) -> None:
    scoring = tuple(ScorerWeight(name=name) for name in (ScorerName.PRICE, ScorerName.PACKING))
    policy, part = ordering("worker-2", "worker-3", scoring=scoring), ""
    if divided == "over subsets":
        spread, part = subset_fleet(subset("own", named("worker-2", "worker-3"))).policies[VLLM].spread, "own"
        policy = replace(policy, spread=spread)
    prices = {"worker-1": 9.0, "worker-2": 1.0, "worker-3": 1.5}
    wanted = desired(policy, clusters=[cluster(name, price_per_gpu_hour=price) for name, price in prices.items()])
    placements = [placement(name, 2, subset=part) for name in ("worker-2", "worker-3")]
    seen = []
    for each, left in zip(placements, (0, 1), strict=True):
        pool = Pool(name="gpu", nodes=(Node(name="node", free=gpus(left), allocatable=gpus(8)),))
        seen.append(replace(free(each.cluster, bound={each.name: 2}, ready={each.name: 2}), pools=(pool,)))
    made = after_demand_fell(*placements, missing=2, seen=seen, wanted=wanted)
    assert kept(made) == [(placements[1].where, 0)]
