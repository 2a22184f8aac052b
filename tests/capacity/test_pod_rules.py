"""What pods demand of the pods beside them is counted so that the scheduler finds a node for each of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.scalable_nodes import with_added_nodes
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.action import Action
from reconciler.model.capacity import ClosedNode, ClusterObservation, ReplicaShape
from reconciler.model.cluster import ScalableNodes
from reconciler.model.ids import ClusterName
from tests.builders.inputs import NOW, cluster, free, gpus, plan, short
from tests.builders.inputs import shape as one_gpu
from tests.builders.pod_rules import (
    HOST,
    LABELS,
    ZONE,
    apart,
    counted,
    evenly,
    node,
    other,
    pod,
    seen,
    term,
    together,
    why_not,
)
from tests.fakes.kube_scheduler import REQUIRED, Raw


def test_pods_that_want_a_node_each_get_one_each() -> None:
    assert counted([node("a", 8), node("b", 8), node("c", 0)], pod(**apart(HOST))) == 2


def test_pods_that_want_a_zone_each_get_one_in_each_zone() -> None:
    nodes = [node("a", 8, zone="a"), node("b", 8, zone="a"), node("c", 8, zone="b")]
    assert counted(nodes, pod(**apart(ZONE))) == 2
    assert counted(nodes, pod(**apart(ZONE, HOST))) == 2


def test_where_one_of_them_is_there_is_no_second_one() -> None:
    nodes = [node("a", 8, zone="a", pods=[other(LABELS)]), node("b", 8, zone="a"), node("c", 8, zone="b")]
    assert counted(nodes, pod(**apart(HOST))) == 2
    assert counted(nodes, pod(**apart(ZONE))) == 1
    assert counted(nodes, pod("web", **apart(ZONE))) == 2, "pods of another namespace are not meant"


def test_pods_that_stay_together_fit_in_the_zone_that_the_scheduler_may_begin_with() -> None:
    nodes = [node("a", 8, zone="a"), node("b", 3, zone="b")]
    assert counted(nodes, pod(**together(ZONE))) == 3
    begun = [node("a", 8, zone="a", pods=[other(LABELS)]), node("b", 3, zone="b")]
    assert counted(begun, pod(**together(ZONE))) == 8


def test_an_even_spread_ends_where_the_smallest_zone_is_full() -> None:
    nodes = [node("a", 8, zone="a"), node("b", 8, zone="b"), node("c", 2, zone="c")]
    assert counted(nodes, pod(topologySpreadConstraints=[evenly(ZONE)])) == 8
    assert counted(nodes, pod(topologySpreadConstraints=[evenly(ZONE, skew=2)])) == 10
    assert counted(nodes, pod(topologySpreadConstraints=[evenly(ZONE, minDomains=4)])) == 3


def test_a_zone_whose_nodes_are_tainted_is_empty_and_holds_back_the_others() -> None:
    nodes = [node("a", 8, zone="a"), {**node("b", 8, zone="b"), "cordoned": True}]
    assert counted(nodes, pod(topologySpreadConstraints=[evenly(ZONE)])) == 1
    assert counted(nodes, pod(topologySpreadConstraints=[evenly(ZONE, nodeTaintsPolicy="Honor")])) == 1
    assert counted(nodes[:1], pod(topologySpreadConstraints=[evenly(ZONE)])) == 8


def test_what_is_only_preferred_keeps_nobody_out() -> None:
    soft = {**evenly(ZONE), "whenUnsatisfiable": "ScheduleAnyway"}
    liked = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term(HOST)}]}}
    assert counted([node("a", 8)], pod(topologySpreadConstraints=[soft], affinity=liked)) == 8


def test_a_host_port_is_there_once_on_a_node() -> None:
    wanted = pod(ports=[{"containerPort": 80, "hostPort": 8080}])
    taken = other(ports=[{"containerPort": 1, "hostPort": 8080}])
    assert counted([node("a", 8), node("b", 8), node("c", 8, pods=[taken])], wanted) == 2
    assert counted([node("a", 8)], pod(ports=[{"containerPort": 80}], hostNetwork=True)) == 1
    assert counted([node("a", 8)], pod(ports=[{"containerPort": 80}])) == 8


def test_the_number_of_pods_a_node_takes_counts_with_those_that_are_there() -> None:
    full = [other() for _ in range(109)]
    assert counted([node("a", 8, pods=full)], pod()) == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"nodeName": "gpu-1"}, "is pinned to the node gpu-1 past the scheduler"),
        (
            {
                "affinity": {
                    "podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}]}
                }
            },
            f"requires pod affinity by {ZONE} to other pods than its own kind",
        ),
        (
            {"affinity": {"podAntiAffinity": {REQUIRED: [term(HOST, namespaceSelector={})]}}},
            f"requires pod anti-affinity by {HOST} with a namespaceSelector",
        ),
        (
            {"affinity": {"podAntiAffinity": {REQUIRED: [term(HOST, mismatchLabelKeys=["app"])]}}},
            f"requires pod anti-affinity by {HOST} to pods that differ in a label",
        ),
        (
            {"topologySpreadConstraints": [{**evenly(ZONE), "labelSelector": None}]},
            f"requires an even spread by {ZONE} to no pods at all",
        ),
    ],
    ids=["node-name", "others", "namespaces", "mismatch", "nobody"],
)
def test_what_only_the_scheduler_can_judge_fits_nowhere(fields: Raw, said: str) -> None:
    assert counted([node("a", 8, zone="a")], pod(**fields)) == 0
    assert why_not([node("a", 8, zone="a")], pod(**fields)) == f"{said}: only the scheduler can count that"


@pytest.mark.parametrize(
    ("nodes", "wanted", "said"),
    [
        ([node("a")], pod(**apart(ZONE)), f"one pod in each {ZONE}, and no node that has room has the label {ZONE}"),
        (
            [node("a", pods=[other(LABELS)])],
            pod(**apart(HOST)),
            f"one pod in each {HOST}, which leaves none of 1 node that has room",
        ),
        (
            [node("a", pods=[other(LABELS)])],
            pod(topologySpreadConstraints=[evenly(HOST, matchLabelKeys=["version"])]),
            f"at most 1 more in one {HOST} than in another, and pods are there that this may or may not be about",
        ),
    ],
    ids=["label", "taken", "unsure"],
)
def test_a_shortfall_tells_which_rule_it_is(nodes: list[Raw], wanted: Raw, said: str) -> None:
    assert counted(nodes, wanted) == 0
    assert why_not(nodes, wanted) == f"wants {said}"


def shape(wanted: Raw, **fields: Any) -> ReplicaShape:
    read = replica_shape(wanted["spec"], {"labels": wanted["labels"], "namespace": wanted["namespace"]})
    return replace(read, **fields)


def test_a_group_whose_rules_leave_too_few_places_does_not_fit() -> None:
    room = ClusterCapacity(seen([node("a", 8), node("b", 8), node("c", 8)]))
    assert room.count(shape(pod(**apart(HOST)), group_size=3), 9) == 1
    assert room.count(shape(pod(**apart(HOST)), group_size=4), 9) == 0
    said = room.shortfall(shape(pod(**apart(HOST)), group_size=4))
    assert said == f"wants one pod in each {HOST}, which leaves a place for 3 of 4 pods of a group"


def test_while_pods_are_on_their_way_no_more_of_them_are_promised() -> None:
    room = ClusterCapacity(seen([node(name, 8) for name in "abcd"]))
    room.take(shape(pod(**apart(HOST))), 2)
    assert room.count(shape(pod(**apart(HOST))), 9) == 0
    assert room.shortfall(shape(pod(**apart(HOST)))).endswith("on their way, to or from unknown nodes")
    assert room.count(shape(pod("web", {"app": "web"}, ports=[{"hostPort": 1, "containerPort": 1}])), 9) == 4
    assert room.count(shape(pod("web", {"app": "web"})), 99) == 30, "each of the two has a node of its own"
    assert room.count(shape(pod()), 99) == 0, "and lets no pod like it come there"


def test_where_nobody_says_which_pods_are_there_rules_find_no_room_and_others_do() -> None:
    room = ClusterCapacity(free("worker-2", 8, 8))
    assert room.count(shape(pod(**apart(HOST))), 9) == 0
    assert room.shortfall(shape(pod(**apart(HOST)))).endswith("and the pods on its nodes are unknown")
    assert room.count(shape(pod()), 9) == 9


def test_nodes_that_an_autoscaler_would_add_are_a_node_each() -> None:
    bounds = ScalableNodes(labels={"pool": "gpu"}, taints=(), allocatable=gpus(8), most=3, delay=timedelta())
    empty = ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW)
    seen = with_added_nodes(cluster("worker-2", autoscaling=(bounds,)), empty, timedelta(hours=1))
    assert ClusterCapacity(seen).count(shape(pod(**apart(HOST))), 9) == 3


def test_who_gives_way_holds_its_place_until_it_is_gone() -> None:
    nodes = [node("a", 8, zone="a", pods=[other(LABELS)]), node("b", 8, zone="b")]
    room = ClusterCapacity(seen(nodes))
    room.release_evicted(one_gpu(8), 1, shape(pod(**apart(HOST))))
    assert room.count(shape(pod(**apart(HOST))), 9) == 1
    spread = shape(pod(topologySpreadConstraints=[evenly(ZONE)]))
    room.release_evicted(one_gpu(8), 1, spread)
    assert room.count(spread, 9) == 0


def test_an_answer_does_not_outlive_the_nodes_that_take_no_pods() -> None:
    before = seen([node("a", 8, zone="a")])
    spread = shape(pod(topologySpreadConstraints=[evenly(ZONE)]))
    shut = ClosedNode(name="b", allocatable=gpus(8), ready=True, labels={ZONE: "b"}, pods=())
    assert ClusterCapacity(before).count(spread, 9) == 8
    assert ClusterCapacity(replace(before, closed=(shut,))).count(spread, 9) == 1


def test_a_burst_goes_as_far_as_its_rules_let_it_and_says_so() -> None:
    wanted = shape(pod(**apart(HOST)))
    two = replace(seen([node("a", 8), node("b", 8)]), cluster=ClusterName("worker-2"))
    made = plan(short(5, replica=wanted), two, free("worker-3", 8, 8))
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert (change.placement.cluster, change.placement.replicas) == ("worker-2", 2)
    assert change.placement.shape.rules == wanted.rules
    said = {refusal.cluster: refusal.message for one in made.suppressed for refusal in one.refusals}
    assert said["worker-3"] == f"wants one pod in each {HOST}, and the pods on its nodes are unknown"
