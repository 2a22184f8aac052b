"""Nodes that an autoscaler may add are room: what goes there pends, so that the autoscaler acts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.commits.messages import message
from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.observe.rollouts import RolloutFailure, Rollouts
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import CAPACITY_TYPE_LABEL, ScalableNodes
from reconciler.model.ids import CommitId
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Cluster, Desired, Distribution, StrategyName
from reconciler.model.rollout import EngineState
from reconciler.model.units import Resources
from tests.builders.group_bursts import SET, lacks
from tests.builders.group_bursts import fleet as gang_fleet
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
    plan,
    shape,
    short,
)
from tests.builders.node_pools import amounts, declared
from tests.builders.node_pools import pool as node_pool
from tests.builders.requests import request, wants

ADDS = "on nodes that its autoscaler adds in about"
FROM_POOL = "on nodes that NodePool gpu adds in about 5m"


def scaling(name: str, most: int = 10, *, delay: int = 5, each: int = 8, **fields: object) -> Cluster:
    """Make a cluster whose autoscaler adds nodes of so many GPUs each."""
    nodes = ScalableNodes(
        labels={"pool": "gpu"}, taints=(), allocatable=gpus(each), most=most, delay=timedelta(minutes=delay)
    )
    return cluster(name, autoscaling=(replace(nodes, **fields),))


def fleet(*clusters: Cluster, **fields: object) -> Desired:
    return desired(ordering(*(one.name for one in clusters), **fields), clusters=(cluster("worker-1"), *clusters))


def placed(decided: Plan) -> list[tuple[str, int, str]]:
    """List what goes where, and why."""
    return [
        (change.placement.cluster, change.placement.replicas, change.choice.because)
        for change in decided.changes
        if change.action is Action.PLACE
    ]


def test_a_cluster_without_nodes_takes_a_burst_when_its_autoscaler_may_add_some():
    decided = plan(short(2), free("worker-2"), wanted=fleet(scaling("worker-2")))
    assert placed(decided) == [("worker-2", 2, f"{ADDS} 5m")]


def test_the_commit_tells_gpus_of_nodes_that_are_to_come_from_free_ones():
    wanted = fleet(scaling("worker-2", most=2))
    decided = plan(short(9), free("worker-2", 1), wanted=wanted)
    there, coming = (change.choice for change in decided.changes)
    assert (there.free, there.addable) == (gpus(1), Resources())
    assert (coming.free, coming.addable) == (gpus(0), gpus(16))
    (written,) = plan(short(2), free("worker-2"), wanted=wanted).changes
    assert f"worker-2 chosen: 0 GPUs free, 16 GPUs on nodes to be added, 16 replicas fit, {ADDS} 5m." in message(
        written, source=CommitId("0" * 40)
    ).replace("\n", " ")


def test_without_a_declared_autoscaler_it_takes_none():
    decided = plan(short(2), free("worker-2"), wanted=fleet(cluster("worker-2")))
    assert [held.reason for held in decided.suppressed] == [Reason.NOTHING_FITS]


def test_a_request_goes_there_as_well():
    wanted = wants(request("worker-2"), clusters=(cluster("worker-1"), scaling("worker-2")))
    assert placed(plan(free("worker-2"), wanted=wanted)) == [("worker-2", 2, f"{ADDS} 5m")]


def test_a_set_in_groups_goes_there_as_a_whole_or_not_at_all():
    policy = ordering("worker-2")
    enough, too_few = (
        gang_fleet(SET, policy=policy, clusters=(cluster("worker-1"), scaling("worker-2", most))) for most in (4, 3)
    )
    assert placed(plan(lacks(4), free("worker-2"), wanted=enough)) == [("worker-2", 1, f"{ADDS} 5m")]
    assert placed(plan(lacks(4), free("worker-2"), wanted=too_few)) == []


def test_existing_room_comes_first_wherever_it_is():
    wanted = fleet(scaling("worker-2"), cluster("worker-3"))
    assert placed(plan(short(2), free("worker-2"), free("worker-3", 2), wanted=wanted)) == [("worker-3", 2, "")]


def test_what_existing_room_does_not_hold_goes_to_added_nodes_the_quickest_first():
    wanted = fleet(scaling("worker-2", delay=9), scaling("worker-3", delay=3))
    decided = plan(short(3), free("worker-2", 1), free("worker-3"), wanted=wanted)
    assert placed(decided) == [("worker-2", 1, ""), ("worker-3", 2, f"{ADDS} 3m")]


def test_no_more_nodes_count_than_may_be_added_beside_those_that_are_there():
    wanted = fleet(scaling("worker-2", most=2, each=1))
    full = replace(free("worker-2", 0), pools=(replace(free("worker-2", 0).pools[0], labels={"pool": "gpu"}),))
    assert placed(plan(short(3), full, wanted=wanted)) == [("worker-2", 1, f"{ADDS} 5m")]


def test_a_taint_of_the_declared_nodes_keeps_pods_away():
    taint = Taint(key="spot", value="", effect="NoSchedule")
    assert placed(plan(short(1), free("worker-2"), wanted=fleet(scaling("worker-2", taints=(taint,))))) == []


def test_pods_that_wait_for_added_nodes_take_their_room_once():
    wanted = fleet(scaling("worker-2", most=3, each=1))
    there = ledger(placement("worker-2", 2, created=NOW - timedelta(seconds=30)))
    decided = plan(short(5), free("worker-2"), wanted=wanted, there=there)
    (resize,) = [change for change in decided.changes if change.action is Action.RESIZE]
    assert (resize.before.replicas, resize.after.replicas) == (2, 3)


@pytest.mark.parametrize(("minutes", "room"), [(10, 2), (16, 3)], ids=["within the delay", "after it"])
def test_pods_in_flight_count_until_their_node_had_time_to_come(minutes: int, room: int):
    wanted = fleet(scaling("worker-2", delay=5, most=3, each=1), in_flight_timeout=timedelta(minutes=10))
    there = ledger(placement("worker-2", 1, created=NOW - timedelta(minutes=minutes), lasting=timedelta(hours=1)))
    decided = plan(short(9), free("worker-2"), wanted=wanted, there=there)
    (resize,) = [change for change in decided.changes if change.action is Action.RESIZE]
    assert resize.after.replicas - 1 == room


def test_a_distribution_shares_out_what_added_nodes_hold():
    wanted = fleet(scaling("worker-2"), scaling("worker-3"), distribution=Distribution(strategy=StrategyName.BALANCED))
    decided = plan(short(4), free("worker-2"), free("worker-3"), wanted=wanted)
    assert sorted((name, replicas) for name, replicas, _ in placed(decided)) == [("worker-2", 2), ("worker-3", 2)]


def test_explain_says_that_nodes_are_added():
    seen = inputs(short(2, since=NOW), free("worker-2"), wanted=fleet(scaling("worker-2")))
    told = explain(VLLM, seen, Plan())
    (assessment,) = told.assessments
    assert (assessment.refusal, assessment.start) == (None, f"{ADDS} 5m")


@pytest.mark.parametrize(("minutes", "ends"), [(12, False), (16, True)], ids=["within the delay", "after it"])
def test_what_waits_there_is_not_failed_before_its_node_had_time_to_come(minutes: int, ends: bool):
    wanted = fleet(scaling("worker-2", delay=5), rollout_timeout=timedelta(minutes=10))
    there = placement("worker-2", 1, created=NOW - timedelta(minutes=minutes), lasting=timedelta(hours=1))
    failure = RolloutFailure(digest="", state=EngineState.PROGRESSING, message="no node", since=there.created_at)
    seen = inputs(short(1), free("worker-2"), wanted=wanted, there=ledger(there))
    decided = decide(replace(seen, rollouts=Rollouts(ailing={there.path: failure})))
    assert any(change.action is Action.REVERT for change in decided.changes) is ends


def pooled(used: str, *, limit: str = "16", most: int = 10, **fields: object) -> tuple[ClusterObservation, Desired]:
    """Observe a cluster without nodes, and a NodePool whose nodes of 8 GPUs it declares."""
    node_pools = {"gpu": node_pool(amounts(gpu=limit), amounts(gpu=used), **fields)}
    nodes = declared(most=most, each=gpus(8))
    return free("worker-2", node_pools=node_pools), fleet(cluster("worker-2", autoscaling=(nodes,)))


def refusals(decided: Plan) -> list[tuple[str, str]]:
    return [(refusal.message, refusal.remedy) for held in decided.suppressed for refusal in held.refusals]


def test_a_burst_to_nodes_of_a_node_pool_names_it():
    seen, wanted = pooled("0")
    assert placed(plan(short(2), seen, wanted=wanted)) == [("worker-2", 2, FROM_POOL)]


def test_a_burst_is_no_larger_than_the_limits_of_a_node_pool_leave_room_for():
    seen, wanted = pooled("8")
    decided = plan(short(20), seen, wanted=wanted)
    assert placed(decided) == [("worker-2", 8, FROM_POOL)]
    (change,) = decided.changes
    assert change.choice.addable == gpus(8)


def test_a_node_pool_at_its_limit_is_the_reason_that_nothing_fits():
    seen, wanted = pooled("16")
    decided = plan(short(2), seen, wanted=wanted)
    assert placed(decided) == []
    ((message, remedy),) = refusals(decided)
    assert message.endswith("; NodePool gpu: limit nvidia.com/gpu 16 of 16 used")
    assert remedy == "raise limit nvidia.com/gpu of NodePool gpu"


def test_the_next_cluster_is_chosen_since_a_limit_lets_no_more_nodes_come():
    seen, wanted = pooled("8")
    wanted = fleet(wanted.clusters[seen.cluster], scaling("worker-3", delay=9))
    decided = plan(short(12), seen, free("worker-3"), wanted=wanted)
    assert placed(decided) == [("worker-2", 8, FROM_POOL), ("worker-3", 4, f"{ADDS} 9m")]
    (refusal,) = [refusal for refusal in decided.changes[1].refused if refusal.cluster == "worker-2"]
    assert refusal.message == (
        "took 8 replicas and has no room for more; NodePool gpu: limit nvidia.com/gpu 8 of 16 used, 1 node to come"
    )


def test_a_set_that_a_limit_is_too_low_for_is_told_of_it():
    policy, node_pools = ordering("worker-2"), {"gpu": node_pool(amounts(gpu="24"))}
    clusters = (cluster("worker-1"), cluster("worker-2", autoscaling=(declared(each=gpus(8)),)))
    seen = free("worker-2", node_pools=node_pools)
    ((message, _),) = refusals(plan(lacks(4), seen, wanted=gang_fleet(SET, policy=policy, clusters=clusters)))
    assert message.endswith("; NodePool gpu: limit nvidia.com/gpu 0 of 24 used, 3 nodes to come")
    enough = replace(seen, node_pools={"gpu": node_pool(amounts(gpu="32"))})
    decided = plan(lacks(4), enough, wanted=gang_fleet(SET, policy=policy, clusters=clusters))
    assert placed(decided) == [("worker-2", 1, FROM_POOL)]


def test_a_node_pool_that_is_not_ready_is_the_reason_that_nothing_fits():
    seen, wanted = pooled("0", obstacle="is not Ready: NodeClassNotReady")
    ((message, remedy),) = refusals(plan(short(2), seen, wanted=wanted))
    assert message.endswith("; NodePool gpu is not Ready: NodeClassNotReady")
    assert remedy == "mend NodePool gpu, or declare nodes of another"


def test_explain_says_which_limit_holds_nodes_back():
    seen, wanted = pooled("16")
    given = inputs(short(2, since=NOW), seen, wanted=wanted)
    (assessment,) = explain(VLLM, given, Plan()).assessments
    assert assessment.refusal is not None
    assert assessment.refusal.message.endswith("; NodePool gpu: limit nvidia.com/gpu 16 of 16 used")


def test_a_pod_that_no_node_of_a_pool_holds_is_not_told_of_its_limit():
    seen, wanted = pooled("16")
    ((message, _),) = refusals(plan(short(2, replica=shape(9)), seen, wanted=wanted))
    assert "NodePool" not in message


def test_a_limit_that_is_raised_between_passes_is_heeded():
    seen, wanted = pooled("16")
    before = inputs(short(2), seen, wanted=wanted)
    assert placed(decide(before)) == []
    raised = {"gpu": node_pool(amounts(gpu="24"), amounts(gpu="16"))}
    clusters = {**before.observed.clusters, seen.cluster: replace(seen, node_pools=raised)}
    after = replace(before, observed=replace(before.observed, clusters=clusters))
    assert placed(decide(after)) == [("worker-2", 2, FROM_POOL)]


def test_a_reason_that_has_changed_between_passes_is_told_anew():
    seen, wanted = pooled("16")
    before = inputs(short(2), seen, wanted=wanted)
    decide(before)
    unready = {"gpu": node_pool(obstacle="is being deleted")}
    clusters = {**before.observed.clusters, seen.cluster: replace(seen, node_pools=unready)}
    ((message, _),) = refusals(decide(replace(before, observed=replace(before.observed, clusters=clusters))))
    assert message.endswith("; NodePool gpu is being deleted")


def test_a_taint_that_a_node_pool_puts_on_its_nodes_counts_though_it_is_not_declared():
    seen, wanted = pooled("0", taints=(Taint(key="spot", value="", effect="NoSchedule"),))
    assert placed(plan(short(2), seen, wanted=wanted)) == []
    tolerating = shape(tolerations=(Toleration(key="spot", operator="Exists", value="", effect=""),))
    assert placed(plan(short(2, replica=tolerating), seen, wanted=wanted)) == [("worker-2", 2, FROM_POOL)]


def test_labels_of_a_node_pool_count_though_they_are_not_declared():
    seen, wanted = pooled("0", labels={"team": "llm"}, requirements={"zone": ("a",), "size": ("l", "xl")})
    for selector, fits in (({"team": "llm", "zone": "a"}, True), ({"zone": "b"}, False), ({"size": "l"}, False)):
        decided = plan(short(2, replica=shape(node_selector=selector)), seen, wanted=wanted)
        assert bool(placed(decided)) is fits, selector


def test_nodes_that_may_be_taken_back_are_told_as_spot_nodes():
    seen, wanted = pooled("0", requirements={CAPACITY_TYPE_LABEL: ("spot",)})
    spot = "on spot nodes that NodePool gpu adds in about 5m"
    assert placed(plan(short(2), seen, wanted=wanted)) == [("worker-2", 2, spot)]
    either, wanted = pooled("0", requirements={CAPACITY_TYPE_LABEL: ("on-demand", "spot")})
    assert placed(plan(short(2), either, wanted=wanted)) == [("worker-2", 2, FROM_POOL)]
