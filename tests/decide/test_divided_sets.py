"""A policy that divides sets: groups go to several clusters, each whole, by the ordinary division with groups."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.explain.workload import explain
from reconciler.model.action import Action
from reconciler.model.approval import ApprovalRule
from reconciler.model.capacity import ClusterObservation, PendingPods
from reconciler.model.demand import Sample
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import BurstPolicy, Distribution, GroupTopology, SetDivision, StrategyName
from reconciler.model.workload import WorkloadRef
from tests.builders.examples import examples
from tests.builders.group_bursts import SET, burst, fleet, grouped, lacks, roomy
from tests.builders.inputs import NOW, VLLM, cluster, free, inputs, ledger, ordering, plan, shape, short
from tests.builders.workload_kinds import SAMPLES, lws
from tests.capacity.test_chart_gangs import charted, shows
from tests.capacity.test_exclusive_topology import EXCLUSIVE, named, racks
from tests.decide.test_approval import awaited, proposed

GROUP = (8, 8, 8, 8)


def dividing(*clusters: str | tuple[str, int], **fields: object) -> BurstPolicy:
    return ordering(*(clusters or ("worker-2", "worker-3")), sets=SetDivision.BY_GROUP, **fields)


def counts(decided: Plan) -> dict[ClusterName, int]:
    """Return the groups of each changed placement as they will be."""
    made = dict[ClusterName, int]()
    for change in decided.changes:
        if change.action is Action.PLACE:
            made[change.placement.cluster] = change.placement.replicas
        elif change.action is Action.RESIZE:
            made[change.after.cluster] = change.after.replicas
        elif change.action is Action.REVERT:
            made[change.placement.cluster] = 0
        elif change.action is Action.MOVE:
            made |= {change.before.cluster: 0, change.after.cluster: change.after.replicas}
    return made


def test_groups_go_where_each_has_room_whole_and_one_cluster_is_the_default() -> None:
    seen = [lacks(12), free("worker-2", *GROUP * 2, 8, 8), free("worker-3", *GROUP)]
    assert counts(plan(*seen, wanted=fleet(SET, policy=dividing()))) == {"worker-2": 2, "worker-3": 1}
    assert counts(plan(*seen, wanted=fleet(SET))) == {}


def test_no_group_is_divided() -> None:
    decided = plan(lacks(8), free("worker-2", 8, 8, 8), free("worker-3", *GROUP), wanted=fleet(SET, policy=dividing()))
    assert counts(decided) == {"worker-3": 1}
    (held,) = decided.suppressed
    assert (held.reason, held.replicas) == (Reason.NOTHING_FITS, 1)
    assert held.refusals[0].message == "needs 8 GPUs for each of 4 pods, has room for 3"


@pytest.mark.parametrize(
    ("distribution", "fields", "expected"),
    [
        (Distribution(strategy=StrategyName.BALANCED), {}, {"worker-2": 2, "worker-3": 2}),
        (Distribution(min_clusters=2), {}, {"worker-2": 3, "worker-3": 1}),
        (Distribution(strategy=StrategyName.AGGREGATED), {}, {"worker-2": 4}),
        (Distribution(), {}, {"worker-2": 4}),
        (Distribution(), {"max_replicas": 3}, {"worker-2": 3}),
    ],
    ids=["Balanced", "minClusters", "Aggregated", "Ordered", "maxReplicas"],
)
def test_strategies_and_bounds_count_groups(
    distribution: Distribution, fields: dict[str, object], expected: dict[str, int]
) -> None:
    wanted = fleet(SET, policy=dividing(distribution=distribution, **fields))
    seen = [lacks(16, running=0), free("worker-2", *GROUP * 4), free("worker-3", *GROUP * 4)]
    assert counts(plan(*seen, wanted=wanted)) == expected


def test_a_limit_of_a_cluster_counts_groups() -> None:
    seen = [lacks(12, running=0), free("worker-2", *GROUP * 3), free("worker-3", *GROUP * 3)]
    wanted = fleet(SET, policy=dividing(("worker-2", 1), "worker-3"))
    assert counts(plan(*seen, wanted=wanted)) == {"worker-2": 1, "worker-3": 2}


def test_pods_of_a_group_are_counted_by_their_own_requests() -> None:
    wanted = fleet(lws("{{ replicas }}", 4, leader=1), policy=dividing("worker-2"))
    decided = plan(lacks(8, running=0), roomy("worker-2", 8, 8, 8, 2, 8, 8, 8), wanted=wanted)
    assert counts(decided) == {"worker-2": 2}


def test_groups_that_share_a_domain_are_counted_by_domain() -> None:
    policy = dividing(topology=GroupTopology(key="rack"))
    seen = [lacks(12, running=0), racks((8,) * 6, (8,) * 4), racks((8,) * 7, name="worker-3")]
    assert counts(plan(*seen, wanted=fleet(SET, policy=policy))) == {"worker-2": 2, "worker-3": 1}


def test_groups_with_domains_of_their_own_are_counted_by_domain() -> None:
    made = lws("{{ replicas }}", 4)
    made["metadata"]["annotations"] = {EXCLUSIVE: "rack"}
    seen = [lacks(12, running=0), racks((8,) * 8), racks((8,) * 4, (8,) * 4, name="worker-3")]
    assert counts(plan(*seen, wanted=fleet(made, policy=dividing()))) == {"worker-2": 1, "worker-3": 2}


def test_more_groups_go_beside_those_that_run_and_elsewhere() -> None:
    there = burst("worker-2", 1)
    seen = [lacks(12), free("worker-2", *GROUP, bound={there.name: 4}), free("worker-3", *GROUP * 3)]
    decided = plan(*seen, wanted=fleet(SET, policy=dividing()), there=ledger(there))
    assert counts(decided) == {"worker-2": 2, "worker-3": 1}


def test_a_service_on_a_ray_cluster_has_a_head_wherever_its_workers_go() -> None:
    made = SAMPLES["RayService"][0]
    (workers,) = made["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    workers = {**workers, "replicas": "{{ replicas }}"}
    config = {**made["spec"]["rayClusterConfig"], "workerGroupSpecs": [workers]}
    wanted = fleet({**made, "spec": {"rayClusterConfig": config}}, policy=dividing())
    seen = short(5, running=0, replica=shape(4))
    assert counts(plan(seen, roomy("worker-2", 4, 4), roomy("worker-3", 8), wanted=wanted)) == {
        "worker-2": 2,
        "worker-3": 2,
    }
    # The head needs a CPU, and nodes without one take no part of the service.
    assert counts(plan(seen, free("worker-2", 4, 4), roomy("worker-3", 8), wanted=wanted)) == {"worker-3": 2}


SECOND = WorkloadId(VLLM.workspace, TemplateName("second"))


def test_two_sets_of_one_pass_do_not_share_room() -> None:
    wanted = fleet(SET, policy=dividing())
    ref = WorkloadRef(namespace="demo", name="second")
    second = replace(grouped(named(SET, "second")), name=SECOND.name, ref=ref)
    wanted = replace(
        wanted, templates={**wanted.templates, SECOND: second}, policies={VLLM: dividing(), SECOND: dividing()}
    )
    home, more = lacks(8, running=0), short(8, running=0, replica=shape(8), workload=SECOND)
    home = replace(home, workloads=(*home.workloads, *more.workloads))
    decided = plan(home, free("worker-2", *GROUP * 2), free("worker-3", *GROUP), wanted=wanted)
    placed = [change.placement for change in decided.changes if change.action is Action.PLACE]
    by_cluster = {
        name: sum(each.replicas for each in placed if each.cluster == name) for name in ("worker-2", "worker-3")
    }
    assert by_cluster == {"worker-2": 2, "worker-3": 1}


def both() -> tuple[Placement, Placement]:
    return burst("worker-2", 2), burst("worker-3", 1)


def standing(*placements: Placement) -> list[ClusterObservation]:
    return [
        free(each.cluster, *GROUP, bound={each.name: 4 * each.replicas}, ready={each.name: 4 * each.replicas})
        for each in placements
    ]


@pytest.mark.parametrize(("missing", "expected"), [(12, {}), (8, {"worker-3": 0}), (4, {"worker-3": 0, "worker-2": 1})])
def test_groups_come_back_in_the_reverse_of_the_order(missing: int, expected: dict[str, int]) -> None:
    history = {VLLM: (Sample(at=NOW - timedelta(hours=2), missing=missing // 4, asked=False),)}
    there = both()
    wanted = fleet(SET, policy=dividing())
    decided = plan(lacks(missing), *standing(*there), wanted=wanted, there=ledger(*there), history=history)
    assert counts(decided) == expected


def test_a_set_that_is_divided_can_be_rebalanced() -> None:
    there = burst("worker-2", 4)
    wanted = fleet(SET, policy=dividing(distribution=Distribution(strategy=StrategyName.BALANCED)))
    seen = [lacks(16), *standing(there), free("worker-3", *GROUP * 5)]
    given = inputs(*seen, wanted=wanted, there=ledger(there))
    assert counts(rebalance(given, VLLM, by="ada")) == {"worker-2": 2, "worker-3": 2}


def test_explain_says_how_many_groups_each_cluster_takes() -> None:
    wanted = fleet(SET, policy=dividing())
    given = inputs(lacks(12, running=0), free("worker-2", *GROUP * 2), free("worker-3", 8, 8, 8), wanted=wanted)
    two, three, *_ = explain(VLLM, given, decide(given)).assessments
    assert (two.cluster, two.fits, two.refusal) == ("worker-2", 2, None)
    assert three.refusal is not None
    assert three.refusal.message == "needs 8 GPUs for each of 4 pods, has room for 3"


def test_an_approved_burst_goes_to_the_clusters_that_were_shown_with_the_groups_that_were_shown() -> None:
    wanted = fleet(SET, policy=dividing(approval=ApprovalRule()))
    seen = [lacks(12, running=0), free("worker-2", *GROUP * 2), free("worker-3", *GROUP)]
    shown = proposed(plan(*seen, wanted=wanted))
    assert {each.cluster: each.replicas for each in shown.placements} == {"worker-2": 2, "worker-3": 1}
    there = awaited(shown, approved=True)
    assert counts(plan(*seen, wanted=wanted, there=there)) == {"worker-2": 2, "worker-3": 1}
    assert counts(plan(seen[0], seen[1], free("worker-3", 8, 8, 8), wanted=wanted, there=there)) == {}


WORKERS = ("worker-2", "worker-3", "worker-4")


def after_loss(third: int, fourth: int, **fields: object) -> dict[ClusterName, int]:
    """Lose worker-2 with two groups, where the others have room for a number, and worker-3 has one group already."""
    clusters = [cluster(f"worker-{number}") for number in range(1, 5)]
    there, wanted = both(), fleet(SET, policy=dividing(*WORKERS, **fields), clusters=clusters)
    seen = [
        lacks(12),
        free("worker-3", *GROUP * third, bound={there[1].name: 4}, ready={there[1].name: 4}),
        free("worker-4", *GROUP * fourth),
    ]
    given = inputs(*seen, wanted=wanted, there=ledger(*there))
    return counts(decide(replace(given, lost={there[0].cluster: NOW - timedelta(hours=1)})))


@pytest.mark.parametrize(
    ("third", "fourth", "expected"),
    [
        (2, 2, {"worker-2": 0, "worker-3": 3}),
        (1, 2, {"worker-2": 0, "worker-4": 2}),
        (1, 1, {"worker-2": 0, "worker-3": 2, "worker-4": 1}),
        (0, 1, {"worker-2": 1, "worker-4": 1}),
        (0, 0, {}),
    ],
)
def test_groups_leave_a_lost_cluster_as_far_as_others_have_room(
    third: int, fourth: int, expected: dict[str, int]
) -> None:
    assert after_loss(third, fourth) == expected


def test_the_bounds_of_a_set_outlive_the_loss_of_a_cluster() -> None:
    assert after_loss(2, 2, distribution=Distribution(min_clusters=2)) == {
        "worker-2": 0,
        "worker-3": 2,
        "worker-4": 1,
    }


def test_groups_leave_a_cluster_that_the_policy_no_longer_names() -> None:
    there, wanted = both(), fleet(SET, policy=dividing("worker-3"))
    seen = [lacks(12), standing(there[0])[0], free("worker-3", *GROUP * 2, bound={there[1].name: 4})]
    assert counts(plan(*seen, wanted=wanted, there=ledger(*there))) == {"worker-2": 0, "worker-3": 3}


def test_a_group_whose_pods_wait_for_a_node_stays() -> None:
    there, wanted = burst("worker-2", 2), fleet(SET, policy=dividing())
    waiting = PendingPods(replicas=1, shape=shape(8), since=NOW - timedelta(minutes=20))
    stuck = free("worker-2", bound={there.name: 7}, ready={there.name: 7}, pending_pods={there.name: waiting})
    decided = plan(lacks(8), stuck, free("worker-3", *GROUP * 2), wanted=wanted, there=ledger(there))
    assert counts(decided) == {}


def test_groups_of_a_chart_are_divided_as_the_primary_shows_them() -> None:
    seen = [shows(8, (shape(8), 4), number=4), free("worker-2", *GROUP), free("worker-3", *GROUP)]
    assert counts(plan(*seen, wanted=charted(policy=dividing()))) == {"worker-2": 1, "worker-3": 1}
    assert counts(plan(*seen, wanted=charted())) == {}


def test_copies_of_a_chart_are_not_divided() -> None:
    seen = [shows(8, (shape(8), 4), number=2, running=0), free("worker-2", *GROUP), free("worker-3", *GROUP)]
    assert counts(plan(*seen, wanted=charted(shared=False, policy=dividing()))) == {}


nodes = st.lists(st.integers(0, 9), min_size=1, max_size=5)


@given(second=nodes, third=nodes, each=st.integers(1, 4), size=st.integers(1, 3), missing=st.integers(1, 5))
@examples(10)
def test_each_cluster_in_order_takes_the_groups_whose_pods_its_nodes_hold(
    second: list[int], third: list[int], each: int, size: int, missing: int
) -> None:
    wanted = fleet(lws("{{ replicas }}", size, worker=each), policy=dividing())
    home = short(missing * size, running=0, replica=shape(each))
    decided = plan(home, free("worker-2", *second), free("worker-3", *third), wanted=wanted)
    expected, left = dict[ClusterName, int](), missing
    for name, free_gpus in (("worker-2", second), ("worker-3", third)):
        groups = min(left, sum(gpus // each for gpus in free_gpus) // size)
        expected |= {ClusterName(name): groups} if groups else {}
        left -= groups
    assert counts(decided) == expected
