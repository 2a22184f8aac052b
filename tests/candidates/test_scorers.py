"""Scorers put the clusters of a workload in order, and rank them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.scorers import SCORERS, Ranking, ranked
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.observe.track_record import ClusterRecord, PlacementStart, TrackRecord
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.cluster import PriceWindow, ScalableNodes, SpotPrice
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId
from reconciler.model.policy import Cluster, Desired, GroupTopology, Renewal, TopologyMode
from reconciler.model.score import ScorerName, ScorerWeight
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
    seconds,
    shape,
    short,
    template,
)

H100, A100 = {"nvidia.com/gpu.product": "H100"}, {"nvidia.com/gpu.product": "A100"}
ANY, PICKY = VLLM, WorkloadId(VLLM.workspace, TemplateName("picky"))
CLUSTERS = ("worker-2", "worker-3")
MINUTE = timedelta(minutes=1)


def fleet(*scorers: str | tuple[str, int], clusters: Iterable[Cluster] = (), **fields: object) -> Desired:
    named = {"worker-1": cluster("worker-1"), "worker-2": cluster("worker-2"), "worker-3": cluster("worker-3")}
    named |= {each.name: each for each in clusters}
    weights = ((scorer, 1) if isinstance(scorer, str) else scorer for scorer in scorers)
    scoring = tuple(ScorerWeight(name=ScorerName(name), weight=weight) for name, weight in weights)
    return desired(ordering(*CLUSTERS, scoring=scoring), clusters=named.values(), **fields)


def order(now: PassInput, workload: WorkloadId = VLLM) -> tuple[Candidate, ...]:
    return CandidateFinder(now, WorkingPlan(now)).order(workload)


def names(candidates: Iterable[Candidate]) -> list[str]:
    return [candidate.cluster for candidate in candidates]


def values(candidates: Iterable[Candidate]) -> dict[str, list[float]]:
    return {candidate.cluster: [score.value for score in candidate.scores] for candidate in candidates}


def situation(*scorers: str | tuple[str, int], clusters: Iterable[Cluster] = ()) -> PassInput:
    return inputs(short(1), free("worker-2", 8), free("worker-3", 8), wanted=fleet(*scorers, clusters=clusters))


def measured(now: PassInput, **took: int) -> PassInput:
    """Say how many seconds placements took on clusters, as worker_2=600."""
    records = {
        ClusterName(name.replace("_", "-")): ClusterRecord(
            starts=(PlacementStart(workload=VLLM, took=seconds(number), ready=True),)
        )
        for name, number in took.items()
    }
    return replace(now, track_record=TrackRecord(clusters=records, started=frozenset({VLLM})))


def test_clusters_keep_the_order_of_a_policy_that_weighs_nothing() -> None:
    now = situation()
    assert order(now) is now.reach.order(VLLM)
    assert ranked(now, WorkingPlan(now), VLLM) is now.reach.order(VLLM)


def test_every_name_of_a_scorer_has_a_scorer() -> None:
    assert set(SCORERS) == set(ScorerName)


def test_equals_keep_the_order_of_the_policy() -> None:
    assert names(order(situation("Price"))) == ["worker-2", "worker-3"]


def test_cheapest_cluster_is_first_and_one_without_a_price_last() -> None:
    prices = [cluster("worker-2", price_per_gpu_hour=3.0), cluster("worker-3", price_per_gpu_hour=1.5)]
    assert values(order(situation("Price", clusters=prices))) == {"worker-3": [100.0], "worker-2": [50.0]}
    assert values(order(situation("Price", clusters=prices[1:]))) == {"worker-3": [100.0], "worker-2": [0.0]}


def test_free_cluster_comes_before_a_cheap_one_and_that_before_a_dear_one() -> None:
    prices = [
        cluster("worker-1", price_per_gpu_hour=9.0),
        cluster("worker-2", price_per_gpu_hour=1.0),
        cluster("worker-3", price_per_gpu_hour=0.0),
    ]
    assert values(order(situation("Price", clusters=prices))) == {"worker-3": [100.0], "worker-2": [50.0]}


def test_given_ranks_are_those_of_the_scores() -> None:
    prices = [cluster("worker-2", price_per_gpu_hour=3.0), cluster("worker-3", price_per_gpu_hour=1.5)]
    now = situation("Price", clusters=prices)
    assert [candidate.rank for candidate in order(now)] == [1, 2]
    [place] = decide(now).changes
    assert place.action is Action.PLACE
    assert (place.choice.cluster, place.choice.rank) == ("worker-3", 1)
    assert [(score.scorer, score.value) for score in place.choice.scores] == [("Price", 100.0)]


def test_replicas_are_given_back_from_the_cluster_of_the_lowest_score() -> None:
    prices = [cluster("worker-2", price_per_gpu_hour=3.0), cluster("worker-3", price_per_gpu_hour=1.5)]
    there = ledger(placement("worker-2", 2), placement("worker-3", 2))
    wanted = fleet("Price", clusters=prices)
    now = inputs(short(2), free("worker-2", 8), free("worker-3", 8), wanted=wanted, there=there)
    assert names(ranked(now, WorkingPlan(now), VLLM)) == ["worker-3", "worker-2"]


def test_weights_decide_between_scorers_that_disagree() -> None:
    prices = [cluster("worker-3", price_per_gpu_hour=1.0), cluster("worker-2", price_per_gpu_hour=2.0)]
    assert names(order(situation("Price", "PolicyOrder", clusters=prices))) == ["worker-2", "worker-3"]
    assert names(order(situation(("Price", 3), "PolicyOrder", clusters=prices))) == ["worker-3", "worker-2"]


def test_cluster_where_pods_are_ready_soon_comes_before_one_where_they_load_for_the_whole_burst() -> None:
    now = measured(situation("TimeToReady"), worker_2=600, worker_3=45)
    assert values(order(now)) == {"worker-3": [92.5], "worker-2": [0.0]}


def test_measured_time_counts_before_the_declared_one() -> None:
    declared = [
        cluster("worker-2", time_to_ready=timedelta(minutes=8)),
        cluster("worker-3", time_to_ready=timedelta(minutes=1)),
    ]
    assert names(order(situation("TimeToReady", clusters=declared))) == ["worker-3", "worker-2"]
    now = measured(situation("TimeToReady", clusters=declared), worker_2=30)
    assert [candidate.scores[0].detail for candidate in order(now)] == ["30s measured", "1m declared"]


def test_cluster_whose_time_is_unknown_is_tried_first() -> None:
    assert names(order(measured(situation("TimeToReady"), worker_2=30))) == ["worker-3", "worker-2"]


def test_node_that_an_autoscaler_adds_is_part_of_the_time_to_ready() -> None:
    growing = [
        cluster(name, autoscaling=(ScalableNodes(labels={}, taints=(), allocatable=gpus(8), most=2, delay=delay),))
        for name, delay in (("worker-2", timedelta(minutes=5)), ("worker-3", timedelta(minutes=1)))
    ]
    now = inputs(short(1), free("worker-2", 0), free("worker-3", 0), wanted=fleet("TimeToReady", clusters=growing))
    finder = CandidateFinder(now, WorkingPlan(now))
    with finder.capacity.grown():
        assert values(finder.order(VLLM)) == {"worker-3": [90.0], "worker-2": [50.0]}
    assert names(finder.order(VLLM)) == ["worker-2", "worker-3"]


def growing(name: str, minutes: int) -> Cluster:
    nodes = ScalableNodes(labels={}, taints=(), allocatable=gpus(8), most=2, delay=timedelta(minutes=minutes))
    return cluster(name, autoscaling=(nodes,))


def test_cluster_where_all_replicas_start_at_once_has_the_shortest_wait() -> None:
    now = inputs(short(4), free("worker-2", 1), free("worker-3", 8), wanted=fleet("WaitTime"))
    assert values(order(now)) == {"worker-3": [100.0], "worker-2": [25.0]}
    assert [candidate.scores[0].detail for candidate in order(now)] == ["all at once", "1 at once, 3 at no known time"]


def test_time_to_ready_is_a_part_of_every_wait() -> None:
    now = measured(situation("WaitTime"), worker_2=60, worker_3=240)
    assert values(order(now)) == {"worker-2": [90.0], "worker-3": [60.0]}
    assert order(now)[0].scores[0].detail == "all at once, ready 1m later, measured"


def test_wait_counts_free_nodes_before_those_that_an_autoscaler_adds() -> None:
    wanted = fleet("WaitTime", clusters=[growing("worker-2", 5), growing("worker-3", 2)])
    now = inputs(short(4), free("worker-2", 3), free("worker-3", 0), wanted=wanted)
    assert values(order(now)) == {"worker-2": [87.5], "worker-3": [80.0]}
    told = [candidate.scores[0].detail for candidate in order(now)]
    assert told == ["3 at once, 1 in 5m on a new node", "all in 2m on a new node"]
    finder = CandidateFinder(now, WorkingPlan(now))
    with finder.capacity.grown():
        assert names(finder.order(VLLM)) == ["worker-2", "worker-3"]
    more = inputs(short(8), free("worker-2", 3), free("worker-3", 0), wanted=wanted)
    assert names(order(more)) == ["worker-3", "worker-2"]


@pytest.mark.parametrize(("renew", "points"), [(Renewal.NEVER, 75.0), (Renewal.WHILE_NEEDED, 50.0)])
def test_placements_that_end_give_their_nodes_to_those_that_wait(renew: Renewal, points: float) -> None:
    wanted = fleet("WaitTime", workloads=(ANY, PICKY))
    policies = {**wanted.policies, PICKY: replace(wanted.policies[PICKY], renew=renew)}
    other = placement("worker-2", 2, workload=PICKY, created=NOW - 5 * MINUTE, lasting=10 * MINUTE)
    seen = replace(sized("worker-2", 2), bound={other.name: 2}), free("worker-3", 0)
    now = inputs(short(4), *seen, wanted=replace(wanted, policies=policies), there=ledger(other))
    assert values(order(now))["worker-2"] == [points]
    known = renew is Renewal.NEVER
    told = "2 at once, 2 in 5m when others end" if known else "2 at once, 2 at no known time"
    assert order(now)[0].scores[0].detail == told


def test_what_is_placed_together_serves_once_its_last_replica_does() -> None:
    wanted = fleet("WaitTime", clusters=[growing("worker-2", 5), growing("worker-3", 2)])
    whole = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], runs_once=True)})
    now = inputs(short(4), free("worker-2", 3), free("worker-3", 0), wanted=whole)
    assert values(order(now)) == {"worker-3": [80.0], "worker-2": [50.0]}


def test_wait_follows_what_the_pass_has_handed_out() -> None:
    now = inputs(short(4), free("worker-2", 4), free("worker-3", 4), wanted=fleet("WaitTime"))
    finder = CandidateFinder(now, WorkingPlan(now))
    assert names(finder.order(VLLM)) == ["worker-2", "worker-3"]
    finder.capacity.take(ClusterName("worker-2"), shape(), 3)
    assert names(finder.order(VLLM)) == ["worker-3", "worker-2"]


def with_model(name: str, labels: dict[str, str], number: int = 8) -> ClusterObservation:
    node = Node(name="node-0", free=gpus(number), allocatable=gpus(number))
    return ClusterObservation(
        cluster=ClusterName(name), observed_at=NOW, pools=(Pool(name="gpu", nodes=(node,), labels=labels),)
    )


def contested(wanted: Desired, *, picky: ReplicaShape, **numbers: int) -> PassInput:
    primary, other = short(1), short(0, workload=PICKY, replica=picky)
    primary = replace(primary, workloads=(*primary.workloads, *other.workloads))
    seen = (with_model("worker-2", H100, **numbers), with_model("worker-3", A100))
    return inputs(primary, *seen, wanted=wanted)


def test_workload_that_can_use_any_gpu_leaves_those_that_another_needs() -> None:
    now = contested(fleet("ScarceGPU", workloads=(ANY, PICKY)), picky=shape(node_selector=H100))
    assert values(order(now, ANY)) == {"worker-3": [100.0], "worker-2": [0.0]}
    assert values(order(now, PICKY)) == {"worker-2": [100.0], "worker-3": [100.0]}


def test_gpus_that_others_use_as_freely_are_left_to_nobody() -> None:
    now = contested(fleet("ScarceGPU", workloads=(ANY, PICKY)), picky=shape())
    assert values(order(now, ANY)) == {"worker-2": [100.0], "worker-3": [100.0]}


def test_gpus_that_are_too_few_on_a_node_are_no_choice() -> None:
    now = contested(fleet("ScarceGPU", workloads=(ANY, PICKY)), picky=shape(8), number=4)
    assert values(order(now, ANY)) == {"worker-2": [100.0], "worker-3": [0.0]}


def sized(name: str, *free_of_eight: int) -> ClusterObservation:
    nodes = tuple(
        Node(name=f"node-{index}", free=gpus(number), allocatable=gpus(8)) for index, number in enumerate(free_of_eight)
    )
    return ClusterObservation(cluster=ClusterName(name), observed_at=NOW, pools=(Pool(name="gpu", nodes=nodes),))


def test_nodes_in_use_are_filled_before_whole_ones_are_begun() -> None:
    now = inputs(short(1), sized("worker-2", 8, 8), sized("worker-3", 8, 2), wanted=fleet("Packing"))
    assert values(order(now)) == {"worker-3": [87.5], "worker-2": [12.5]}
    full = inputs(short(1), sized("worker-2", 0), sized("worker-3", 8), wanted=fleet("Packing"))
    assert values(order(full)) == {"worker-3": [12.5], "worker-2": [0.0]}


def test_packing_counts_what_the_pass_has_handed_out() -> None:
    now = inputs(short(1), sized("worker-2", 8), sized("worker-3", 7), wanted=fleet("Packing"))
    finder = CandidateFinder(now, WorkingPlan(now))
    assert names(finder.order(VLLM)) == ["worker-3", "worker-2"]
    finder.capacity.take(ClusterName("worker-2"), shape(), 3)
    assert names(finder.order(VLLM)) == ["worker-2", "worker-3"]


def test_failures_of_the_last_hour_count_against_a_cluster() -> None:
    failed = TrackRecord(failures={ClusterName("worker-2"): (NOW - timedelta(minutes=50), NOW - timedelta(hours=2))})
    now = replace(situation("RecentFailures"), track_record=failed)
    assert values(order(now)) == {"worker-3": [100.0], "worker-2": [50.0]}


def test_replicas_go_on_where_the_workload_runs() -> None:
    now = inputs(
        short(4),
        free("worker-2", 8),
        free("worker-3", 8),
        wanted=fleet("CurrentCluster"),
        there=ledger(placement("worker-3", 2)),
    )
    assert values(order(now)) == {"worker-3": [100.0], "worker-2": [0.0]}


def together(scorer: ScorerName) -> PassInput:
    """Make a pass whose burst of four is placed together, in one rack if it can be, by two clusters of equal room."""
    wanted = fleet(scorer)
    topology = GroupTopology(key="rack", mode=TopologyMode.PREFERRED)
    policies = {VLLM: replace(wanted.policies[VLLM], topology=topology)}
    templates = {VLLM: replace(wanted.templates[VLLM], runs_once=True)}
    seen = [sized(name, 6) for name in CLUSTERS]
    racks = [replace(each, pools=(replace(each.pools[0], labels={"rack": "r0"}),)) for each in seen]
    wanted = replace(wanted, policies=policies, templates=templates)
    return inputs(short(4, running=0, held=True), *racks, wanted=wanted)


@pytest.mark.parametrize("scorer", list(ScorerName))
def test_order_follows_the_plan_where_the_scorer_says_so(scorer: ScorerName) -> None:
    now = together(scorer)
    working_plan = WorkingPlan(now)
    finder = CandidateFinder(now, working_plan)
    before = values(finder.order(VLLM))
    (place,) = decide(now).changes
    working_plan.burst(VLLM, [place])
    finder.capacity.take(place.placement.cluster, place.placement.shape, 6)
    after = values(finder.order(VLLM))
    assert after == values(Ranking(now, working_plan, finder.capacity).order(VLLM))
    assert (before != after) is SCORERS[scorer].follows_plan


@pytest.mark.parametrize("scorer", list(ScorerName))
def test_points_depend_on_the_delay_of_new_nodes_where_the_scorer_says_so(scorer: ScorerName) -> None:
    def grown(*minutes: int) -> dict[str, list[float]]:
        clusters = [growing(name, delay) for name, delay in zip(CLUSTERS, minutes, strict=True)]
        seen = (free(name, 0) for name in CLUSTERS)
        now = inputs(short(1), *seen, wanted=fleet(scorer, clusters=clusters))
        finder = CandidateFinder(now, WorkingPlan(now))
        with finder.capacity.grown():
            return values(finder.order(VLLM))

    assert (grown(5, 1) != grown(1, 5)) is SCORERS[scorer].weighs_delay


@pytest.mark.parametrize("scorer", list(ScorerName))
def test_scorers_score_where_nothing_is_known(scorer: str) -> None:
    wanted = fleet(scorer, clusters=[])
    assert sorted(names(order(inputs(short(1), wanted=wanted)))) == ["worker-2", "worker-3"]
    assert sorted(names(order(inputs(wanted=wanted)))) == ["worker-2", "worker-3"]


def test_burst_that_is_renewed_is_reckoned_to_last_ten_minutes_at_least() -> None:
    def points(renew: Renewal) -> dict[str, list[float]]:
        wanted = fleet("TimeToReady")
        policies = {VLLM: replace(wanted.policies[VLLM], renew=renew)}
        templates = {VLLM: template(burst=seconds(60))}
        now = inputs(short(1), wanted=replace(wanted, policies=policies, templates=templates))
        return values(order(measured(now, worker_2=60, worker_3=6)))

    assert points(Renewal.NEVER) == {"worker-3": [90.0], "worker-2": [0.0]}
    assert points(Renewal.WHILE_NEEDED) == {"worker-3": [99.0], "worker-2": [90.0]}


def test_price_is_the_one_that_holds_at_the_moment() -> None:
    night = PriceWindow(start="0 20 * * *", duration=timedelta(hours=10), zone="UTC", price_per_gpu_hour=1.0)
    prices = (
        cluster("worker-2", price_per_gpu_hour=3.0, prices=(night,)),
        cluster("worker-3", price_per_gpu_hour=2.0),
    )
    day = situation("Price", clusters=prices)
    assert names(order(day)) == ["worker-3", "worker-2"]
    assert names(order(replace(day, now=day.now + timedelta(hours=12)))) == ["worker-2", "worker-3"]


def test_pods_that_require_spot_nodes_go_by_their_price_and_the_choice_tells_it() -> None:
    spot = SpotPrice(labels={"capacity": "spot"}, price_per_gpu_hour=0.5)
    prices = (cluster("worker-2", price_per_gpu_hour=3.0, spot=spot), cluster("worker-3", price_per_gpu_hour=2.0))
    assert names(order(situation("Price", clusters=prices))) == ["worker-3", "worker-2"]
    nodes = Pool(name="spot", labels={"capacity": "spot"}, nodes=(Node(name="a", free=gpus(8)),))
    on_spot = short(1, replica=shape(node_selector={"capacity": "spot"}))
    seen = [ClusterObservation(cluster=ClusterName(name), observed_at=NOW, pools=(nodes,)) for name in CLUSTERS]
    (place,) = decide(inputs(on_spot, *seen, wanted=fleet("Price", clusters=prices))).changes
    assert place.action is Action.PLACE
    assert (place.placement.cluster, place.choice.price_per_gpu_hour) == ("worker-2", 0.5)
