"""What pods demand of the pods beside them is counted so that the scheduler finds a node for each of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.scalable_nodes import with_added_nodes
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.action import Action
from reconciler.model.capacity import ClosedNode, ClusterObservation, ReplicaShape
from reconciler.model.cluster import ScalableNodes
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    gpus,
    ledger,
    ordering,
    placement,
    plan,
    short,
)
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
from tests.fakes.kube_scheduler import REQUIRED, Raw, worst


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


DB, WEB = {"app": "db"}, {"app": "web"}


def about(key: str, labels: Raw | None, **fields: Any) -> Raw:
    """Write a term about the pods with these labels."""
    return {"topologyKey": key, "labelSelector": labels and {"matchLabels": labels}, **fields}


def beside(*terms: Raw) -> Raw:
    return pod(affinity={"podAffinity": {REQUIRED: list(terms)}})


def away(*terms: Raw) -> Raw:
    return pod(affinity={"podAntiAffinity": {REQUIRED: list(terms)}})


def spread(**fields: Any) -> Raw:
    return pod(
        topologySpreadConstraints=[{**about(ZONE, DB), **evenly(ZONE), "labelSelector": {"matchLabels": DB}} | fields]
    )


CORDONED = {**node("c", 4, zone="c", pods=[other(DB)]), "cordoned": True}
THERE = [
    node("a", 2, zone="a", pods=[other(DB), other({"app": "db", "tier": "x"}, "web")]),
    node("b", 3, zone="b", pods=[other(WEB), other(WEB)]),
    CORDONED,
    node("d", 4, zone="c"),
    node("e", 5),
]
"""Zones a and c with a database, b with web servers; the node e is in no zone."""
NONE_OF_FOUR = "leaves none of 4 nodes that has room"
LEAVES = [node("a", 2, zone="a", pods=[{**other(DB), "leaving": True}]), node("b", 3, zone="b")]


@pytest.mark.parametrize(
    ("wanted", "nodes", "fits"),
    [
        (beside(about(ZONE, DB)), THERE, 6),
        (beside(about(HOST, DB)), THERE, 2),
        (beside(about(ZONE, DB), about(ZONE, WEB)), THERE, 0),
        (beside(about(ZONE, DB, namespaces=["web"])), THERE, 2),
        (beside(about(ZONE, {"app": "none"})), THERE, 0),
        (beside(about(ZONE, DB, namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "web"}})), THERE, 2),
        (beside(about(ZONE, {"tier": "x"}, namespaceSelector={})), THERE, 2),
        (beside(about(ZONE, None)), THERE, 0),
        (beside(about(ZONE, LABELS, namespaces=["web"])), THERE, 0),
        (beside(about(ZONE, LABELS)), THERE, 2),
        (away(about(ZONE, DB)), THERE, 8),
        (away(about(HOST, DB)), THERE, 12),
        (away(about(ZONE, DB), about(HOST, WEB)), THERE, 5),
        (away(about(ZONE, None)), THERE, 14),
        (away(about(ZONE, {}, namespaceSelector={}, mismatchLabelKeys=["app"])), THERE, 5),
        (away(about(ZONE, DB, matchLabelKeys=["version"])), THERE, 8),
        (away(about(ZONE, DB, matchLabelKeys=["app"])), THERE, 14),
        (spread(), THERE, 9),
        (spread(labelSelector={"matchLabels": WEB}), THERE, 6),
        (spread(labelSelector={"matchLabels": WEB}, maxSkew=2), THERE, 9),
        (spread(labelSelector=None), THERE, 9),
        (spread(labelSelector={}), THERE, 9),
        (spread(labelSelector={"matchLabels": WEB}, minDomains=4), THERE, 6),
        (beside(about(ZONE, DB)), LEAVES, 0),
        (away(about(ZONE, DB)), LEAVES, 3),
        (spread(), LEAVES, 5),
        (pod(**apart(ZONE)), THERE, 8),
    ],
)
def test_rules_about_any_pods_fit_as_many_as_the_scheduler_places(wanted: Raw, nodes: list[Raw], fits: int) -> None:
    assert counted(nodes, wanted) == fits
    if nodes is THERE:
        assert worst(nodes, wanted) == fits


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (pod(nodeName="gpu-1"), "is pinned to the node gpu-1 past the scheduler: only the scheduler can count that"),
        (
            beside(about(ZONE, None)),
            f"requires pod affinity by {ZONE} to no pods at all, as a term without a labelSelector: no node meets that",
        ),
        (
            beside(about(ZONE, {"app": "none"})),
            f"wants a pod with app=none in its {ZONE}, which {NONE_OF_FOUR}",
        ),
        (
            pod(
                affinity={
                    "podAntiAffinity": {REQUIRED: [about(ZONE, WEB)]},
                    "podAffinity": {REQUIRED: [about(ZONE, WEB)]},
                }
            ),
            f"wants no pod with app=web in its {ZONE} and a pod with app=web in its {ZONE}, which {NONE_OF_FOUR}",
        ),
        (
            beside(about(ZONE, DB, namespaceSelector={"matchLabels": {"team": "x"}})),
            f"wants a pod with app=db in its {ZONE}, and pods are there that this may or may not be about",
        ),
    ],
)
def test_rules_that_leave_no_node_are_told(wanted: Raw, said: str) -> None:
    assert counted(THERE, wanted) == 0
    assert why_not(THERE, wanted) == said
    if said.startswith("wants"):
        assert ClusterCapacity(seen(THERE)).remedy(shape(wanted)).startswith("change the rules of its pods")


def test_pods_of_unknown_labels_on_their_way_are_those_that_a_rule_about_others_may_mean() -> None:
    room = ClusterCapacity(seen(THERE))
    wanted = shape(away(about(ZONE, DB)))
    room.take(shape(pod(labels=WEB)), 1)
    assert room.count(wanted, 99) == 8, "they are known to be others"
    room.take(replace(shape(pod(labels=WEB)), who=()), 1)
    assert room.count(wanted, 99) == 0
    assert room.shortfall(wanted).endswith("on their way, to or from unknown nodes")
    assert room.count(shape(pod(**apart(HOST))), 99) == 3, "rules about its own kind go on as before"


FAR = {"matchLabels": {"team": "far"}}
OURS, THEIRS = {"team": "near"}, {"team": "far"}


@pytest.mark.parametrize(
    ("wanted", "namespaces", "fits"),
    [
        (beside(about(ZONE, DB, namespaceSelector=FAR)), {"llm": OURS, "web": THEIRS}, 2),
        (beside(about(ZONE, DB, namespaceSelector=FAR)), {"llm": THEIRS, "web": OURS}, 6),
        (beside(about(ZONE, DB, namespaceSelector=FAR)), {"llm": OURS, "web": OURS}, 0),
        (beside(about(ZONE, DB, namespaceSelector=FAR)), {"llm": THEIRS}, 0),
        (beside(about(ZONE, DB, namespaceSelector=FAR)), None, 0),
        (away(about(ZONE, DB, namespaceSelector=FAR)), {"llm": OURS, "web": THEIRS}, 12),
        (away(about(ZONE, DB, namespaceSelector=FAR)), {"llm": THEIRS}, 8),
        (away(about(ZONE, DB, namespaceSelector=FAR, namespaces=["web"])), {"llm": OURS, "web": OURS}, 12),
        (away(about(HOST, LABELS, namespaceSelector=FAR)), {"llm": OURS, "web": OURS}, 14),
        (away(about(HOST, LABELS, namespaceSelector=FAR)), {"llm": THEIRS, "web": OURS}, 4),
    ],
)
def test_labels_of_namespaces_count_where_those_of_all_pods_are_known(
    wanted: Raw, namespaces: Raw | None, fits: int
) -> None:
    assert ClusterCapacity(replace(seen(THERE), namespaces=namespaces)).count(shape(wanted), 99) == fits


def test_an_observation_has_the_labels_of_namespaces_while_it_may_list_them() -> None:
    state = ClusterState()
    state.apply(Resource.NAMESPACES, {"metadata": {"name": "llm", "labels": OURS}})
    known, unknown = (
        state.observation(ClusterName("worker-2"), NOW, hidden)
        for hidden in (frozenset(), frozenset({Resource.NAMESPACES}))
    )
    assert (known.namespaces, unknown.namespaces) == ({"llm": OURS}, None)


def test_a_reservation_has_no_pods_that_a_rule_about_others_could_mean() -> None:
    room = ClusterCapacity(seen(THERE))
    room.reserve(one_gpu(1), 1)
    assert room.count(shape(away(about(ZONE, DB))), 99) == 8
    assert room.count(shape(away(about(ZONE, {"app": "none"}))), 99) == 13


@pytest.mark.parametrize(
    ("labels", "placed"),
    [(WEB, 3), (DB, 0), (None, 0)],
    ids=["not meant", "meant", "nobody knows"],
)
def test_the_demand_for_a_burst_in_flight_tells_whether_a_rule_means_it(labels: Raw | None, placed: int) -> None:
    server = WorkloadId(WorkspaceName("llm"), TemplateName("server"))
    plain = shape(pod(labels=labels)) if labels else one_gpu(1)
    home = short(3, replica=shape(away(about(ZONE, DB))))
    home = replace(home, workloads=(*home.workloads, *short(1, workload=server, replica=plain).workloads))
    made = plan(
        home,
        seen([node("a", 8), node("b", 8)]),
        wanted=desired(ordering("worker-2"), workloads=(VLLM, server)),
        there=ledger(placement("worker-2", 1, workload=server, shape=plain.recorded)),
    )
    placements = [change.placement for change in made.changes if change.action is Action.PLACE]
    assert sum(each.replicas for each in placements if each.workload == VLLM) == placed


def test_a_known_pod_on_its_way_counts_where_it_is_meant() -> None:
    room = ClusterCapacity(seen(THERE))
    room.take(shape(pod(labels=DB)), 1)
    assert room.count(shape(away(about(ZONE, DB))), 99) == 0
    assert room.count(shape(away(about(ZONE, {"app": "none"}))), 99) == 13


def test_where_the_pod_itself_may_be_meant_the_lower_number_holds() -> None:
    nodes = [node("a", 4, zone="a"), node("b", 4, zone="b", pods=[other({"ray.io/group": "x"})])]
    by_group = away(about(ZONE, {"ray.io/group": "x"}))
    certain = replica_shape(by_group["spec"], {"labels": LABELS, "namespace": "llm"})
    unsure = replica_shape(by_group["spec"], {"labels": LABELS, "namespace": "llm"}, whole=False)
    assert [ClusterCapacity(seen(nodes)).count(one, 9) for one in (certain, unsure)] == [4, 1]


@pytest.mark.parametrize(
    ("nodes", "wanted", "said"),
    [
        ([node("a")], pod(**together(ZONE)), f"all pods in one {ZONE}, and no node that has room has the label {ZONE}"),
        (
            [node("a", pods=[other(LABELS)])],
            pod(**apart(HOST)),
            f"one pod in each {HOST}, which leaves none of 1 node that has room",
        ),
        (
            [node("a", pods=[other(LABELS)])],
            pod(topologySpreadConstraints=[evenly(HOST, matchLabelKeys=["pod-template-hash"])]),
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
