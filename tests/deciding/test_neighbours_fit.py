"""What pods demand of the pods beside them is counted so that the scheduler finds a node for each of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.core.autoscaling import grown
from reconciler.core.fit import Room
from reconciler.core.kubernetes.resources import Resource
from reconciler.core.kubernetes.shapes import replica_shape
from reconciler.core.kubernetes.state import ClusterState
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.policy import ScalableNodes
from tests.deciding.scheduler import GPU, REQUIRED, Raw, worst
from tests.situations import NOW, cluster, free, gpus

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
LABELS = {"app": "vllm"}
SELECTOR = {"matchLabels": LABELS}


def seen(nodes: list[Raw]) -> ClusterObservation:
    """Observe the nodes the way a cluster is watched."""
    state = ClusterState()
    for node in nodes:
        raw = {
            "metadata": {"name": node["name"], "labels": node["labels"]},
            "spec": {"taints": node["taints"], "unschedulable": node["cordoned"]},
            "status": {
                "allocatable": {GPU: str(node["gpus"]), "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        state.apply(Resource.NODES, raw)
        for number, pod in enumerate(node["pods"]):
            metadata = {"name": f"{node['name']}-{number}", "namespace": pod["namespace"], "labels": pod["labels"]}
            metadata |= {"deletionTimestamp": "2026-11-20T10:00:00Z"} if pod.get("leaving") else {}
            spec = {**pod["spec"], "nodeName": node["name"]}
            state.apply(Resource.PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
    return state.observation(ClusterName("worker-2"), NOW)


def counted(nodes: list[Raw], pod: Raw, limit: int = 50) -> int:
    metadata = {"labels": pod["labels"], "namespace": pod["namespace"]}
    return Room(seen(nodes)).count(replica_shape(pod["spec"], metadata), limit)


def why_not(nodes: list[Raw], pod: Raw) -> str:
    metadata = {"labels": pod["labels"], "namespace": pod["namespace"]}
    return Room(seen(nodes)).shortfall(replica_shape(pod["spec"], metadata))


def node(name: str, gpus: int = 2, *, pods: list[Raw] | None = None, **labels: str) -> Raw:
    known = {"zone": ZONE, "rack": RACK}
    named = {known[key]: value for key, value in labels.items()} | {HOST: name}
    return {"name": name, "labels": named, "gpus": gpus, "taints": [], "cordoned": False, "pods": pods or []}


def pod(namespace: str = "llm", labels: Raw | None = None, **spec: Any) -> Raw:
    containers = [{"resources": {"requests": {GPU: "1"}}, "ports": spec.pop("ports", [])}]
    return {"namespace": namespace, "labels": labels or LABELS, "spec": {"containers": containers, **spec}}


def other(labels: Raw | None = None, namespace: str = "llm", ports: list[Raw] | None = None) -> Raw:
    return {"namespace": namespace, "labels": labels or {}, "spec": {"containers": [{"ports": ports or []}]}}


def term(key: str, **fields: Any) -> Raw:
    return {"topologyKey": key, "labelSelector": SELECTOR, **fields}


def apart(*keys: str) -> Raw:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(key) for key in keys]}}}


def together(*keys: str) -> Raw:
    return {"affinity": {"podAffinity": {REQUIRED: [term(key) for key in keys]}}}


def evenly(key: str, skew: int = 1, **fields: Any) -> Raw:
    return term(key, maxSkew=skew, whenUnsatisfiable="DoNotSchedule", **fields)


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
    assert why_not([node("a", 8, zone="a")], pod(**fields)) == f"{said}: nobody but the scheduler can count that"


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
    room = Room(seen([node("a", 8), node("b", 8), node("c", 8)]))
    assert room.count(shape(pod(**apart(HOST)), group_size=3), 9) == 1
    assert room.count(shape(pod(**apart(HOST)), group_size=4), 9) == 0
    said = room.shortfall(shape(pod(**apart(HOST)), group_size=4))
    assert said == f"wants one pod in each {HOST}, which leaves a place for 3 of 4 pods of a group"


def test_while_pods_are_on_their_way_no_more_of_them_are_promised() -> None:
    room = Room(seen([node(name, 8) for name in "abcd"]))
    room.take(shape(pod(**apart(HOST))), 2)
    assert room.count(shape(pod(**apart(HOST))), 9) == 0
    assert room.shortfall(shape(pod(**apart(HOST)))).endswith("on their way, and nobody knows to or from which nodes")
    assert room.count(shape(pod("web", {"app": "web"}, ports=[{"hostPort": 1, "containerPort": 1}])), 9) == 4
    assert room.count(shape(pod()), 99) == 30, "each of the two has a node of its own"


def test_where_nobody_says_which_pods_are_there_rules_find_no_room_and_others_do() -> None:
    room = Room(free("worker-2", 8, 8))
    assert room.count(shape(pod(**apart(HOST))), 9) == 0
    assert room.shortfall(shape(pod(**apart(HOST)))).endswith("and nobody says which pods are on its nodes")
    assert room.count(shape(pod()), 9) == 9


def test_nodes_that_an_autoscaler_would_add_are_a_node_each() -> None:
    bounds = ScalableNodes(labels={"pool": "gpu"}, taints=(), allocatable=gpus(8), most=3, delay=timedelta())
    empty = ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW)
    seen = grown(cluster("worker-2", autoscaling=(bounds,)), empty, timedelta(hours=1))
    assert Room(seen).count(shape(pod(**apart(HOST))), 9) == 3


ports = st.sampled_from(
    [[], [], [{"containerPort": 8080, "hostPort": 8080}], [{"containerPort": 8080, "hostPort": 9090}]]
)
strangers = st.builds(
    other,
    labels=st.sampled_from([LABELS, LABELS, {"app": "web"}, {**LABELS, "role": "head"}]),
    namespace=st.sampled_from(["llm", "llm", "web"]),
    ports=ports,
)


@st.composite
def clusters(draw: st.DrawFn) -> list[Raw]:
    """A few nodes in zones and racks that cross them, some without labels, tainted, cordoned, or taken."""
    made = []
    for index in range(draw(st.integers(1, 5))):
        name, labels = f"n{index}", {}
        for key, values in (
            (HOST, [name] * 5 + [None]),
            (ZONE, ["a", "a", "b", "c", None]),
            (RACK, ["1", "2", "3", None]),
        ):
            if (value := draw(st.sampled_from(values))) is not None:
                labels[key] = value
        labels |= draw(st.sampled_from([{}, {}, {"model": "h100"}]))
        taints = draw(st.sampled_from([[], [], [], [{"key": "spot", "effect": "NoSchedule"}]]))
        there = draw(st.lists(strangers, max_size=draw(st.sampled_from([0, 0, 0, 2]))))
        one = {"name": name, "labels": labels, "gpus": draw(st.integers(0, 3)), "taints": taints, "pods": there}
        made.append({**one, "cordoned": draw(st.sampled_from([False] * 5 + [True]))})
    return made


keys = st.sampled_from([HOST, ZONE, ZONE, RACK])
fields = st.fixed_dictionaries(
    {}, optional={"namespaces": st.sampled_from([["web"], ["llm", "web"]]), "matchLabelKeys": st.just(["role"])}
)
terms = st.lists(st.builds(lambda key, more: term(key, **more), keys, fields), max_size=2)
spreads = st.builds(
    lambda key, skew, more: evenly(key, skew, **more),
    keys,
    st.integers(1, 3),
    st.fixed_dictionaries(
        {},
        optional={
            "minDomains": st.integers(1, 4),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        },
    ),
)
pods = st.builds(
    lambda anti, affine, spread, fixed: pod(
        topologySpreadConstraints=spread,
        affinity={"podAntiAffinity": {REQUIRED: anti}, "podAffinity": {REQUIRED: affine}},
        **fixed,
    ),
    st.one_of(st.just([]), terms),
    st.one_of(st.just([]), terms),
    st.lists(spreads, max_size=2),
    st.fixed_dictionaries(
        {"ports": ports},
        optional={
            "nodeSelector": st.just({"model": "h100"}),
            "tolerations": st.sampled_from([[{"key": "spot", "operator": "Exists"}], [{"operator": "Exists"}]]),
            "hostNetwork": st.just(True),
        },
    ),
)


@settings(max_examples=400, deadline=None)
@given(clusters(), pods)
def test_no_more_pods_are_promised_than_the_worst_choice_of_nodes_leaves_room_for(
    nodes: list[Raw], wanted: Raw
) -> None:
    assert counted(nodes, wanted) <= worst(nodes, wanted)


@st.composite
def labelled(draw: st.DrawFn) -> list[Raw]:
    """A few nodes that all have a zone."""
    size = draw(st.integers(1, 5))
    return [node(f"n{index}", draw(st.integers(0, 4)), zone=draw(st.sampled_from("abc"))) for index in range(size)]


simple = st.one_of(
    st.sampled_from([apart(HOST), apart(ZONE), apart(HOST, ZONE), together(ZONE), together(HOST), {}]),
    st.builds(
        lambda key, skew, least, also: {"topologySpreadConstraints": [evenly(key, skew, minDomains=least)], **also},
        st.sampled_from([HOST, ZONE]),
        st.integers(1, 3),
        st.integers(1, 4),
        st.sampled_from([{}, apart(HOST), {"ports": [{"containerPort": 80, "hostPort": 80}]}]),
    ),
)


@settings(max_examples=200, deadline=None)
@given(labelled(), simple)
def test_with_one_spread_the_count_is_what_the_worst_choice_leaves(nodes: list[Raw], fields: Raw) -> None:
    assert counted(nodes, pod(**fields)) == worst(nodes, pod(**fields))
