"""What a template brings along bounds its pods as if their cluster had it before."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import combinations

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.included_admission import _with_api_defaults
from reconciler.core.capacity.pod_requirements import largest_shape
from reconciler.core.decide.decide import decide
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.runtime_defaults import read_runtime_class
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.scheduling import PodRule, PodRules
from reconciler.model.workload import Json
from tests.builders.inputs import NOW, cluster, inputs, short
from tests.builders.kueue_queues import GPU, cluster_queue, flavor, local_queue, namespace
from tests.builders.platform_objects import bursting_fleet, obj
from tests.builders.platform_objects import deployment as deployed
from tests.builders.requests import manifests
from tests.capacity.test_admission_defaults import amounts

NAME = ClusterName("worker-2")
ROOM = amounts(cpu="64", memory="256Gi", pods="100", **{GPU: "32"})


def quota(name: str = "some", scopes: Json = None, **hard: str) -> Json:
    spec = {"hard": {key.replace("_", "."): value for key, value in hard.items()}}
    return obj("v1", "ResourceQuota", name, {**spec, **({"scopes": scopes} if scopes else {})})


def limits(name: str, **item: Json) -> Json:
    return obj("v1", "LimitRange", name, {"limits": [{"type": "Container", **item}]})


def runtime_class(cpu: str) -> Json:
    made = obj("node.k8s.io/v1", "RuntimeClass", "kata")
    return {**made, "handler": "kata", "overhead": {"podFixed": {"cpu": cpu, "memory": "1Gi"}}}


DEFAULT_CLASS = {**obj("scheduling.k8s.io/v1", "PriorityClass", "usual"), "value": 1, "globalDefault": True}
OBJECTS: tuple[Json, ...] = (
    runtime_class("2"),
    quota(limits_cpu="9"),
    quota("small", requests_cpu="7", pods="6"),
    quota("classed", ["PriorityClass"], pods="2"),
    limits("usual", default={"cpu": "3"}, defaultRequest={"cpu": "2"}),
    limits("large", max={"cpu": "5"}, min={"cpu": "1"}),
    limits("memory", max={"memory": "1Gi"}),
    DEFAULT_CLASS,
)
PODS: tuple[Json, ...] = (
    deployed(resources={"limits": {GPU: "1"}}),
    deployed(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2", GPU: "1"}}),
    deployed({"runtimeClassName": "kata"}, resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
    deployed({"priorityClassName": "high"}, resources={"limits": {"cpu": "6", "memory": "2Gi"}}),
)
RESOURCES = {resource.kind: resource for resource in Resource}


def as_served(raw: Json) -> Json:
    """Return an object as the API server has it, a quota of which nothing is used."""
    made = copy.deepcopy(raw)
    if made["kind"] == "LimitRange":
        made = _with_api_defaults(made)
    if made["kind"] == "ResourceQuota":
        made["status"] = {"hard": made["spec"]["hard"], "used": dict.fromkeys(made["spec"]["hard"], "0")}
    return made


def seen(*objects: Json) -> ClusterObservation:
    """Observe an idle cluster with these objects."""
    state = ClusterState()
    for raw in objects:
        state.apply(RESOURCES[raw["kind"]], raw)
    made = state.observation(NAME, NOW)
    pool = Pool(name="all", nodes=(Node(name="a", free=ROOM, allocatable=ROOM, pods=()),))
    classes = {raw["metadata"]["name"]: read_runtime_class(raw) for raw in objects if raw["kind"] == "RuntimeClass"}
    return replace(made, pools=(pool,), runtime_classes=classes, limit_ranges=made.limit_ranges or {})


def shape(pods: Json, *included: Json) -> ReplicaShape:
    made = largest_shape(manifests(pods, *included), NO_KINDS)
    assert made is not None
    return made


def fitting(made: ReplicaShape, where: ClusterObservation) -> int:
    return ClusterCapacity(where).count(made, 50)


@pytest.mark.parametrize("pods", PODS)
def test_what_comes_with_pods_counts_as_if_it_was_there(pods: Json) -> None:
    for number in (1, 2):
        for objects in combinations(OBJECTS, number):
            there = [as_served(each) for each in objects]
            expected = fitting(shape(pods), seen(*there))
            # In a part of a cluster that has some of them already.
            for some in range(number):
                came = fitting(shape(pods, *objects[some:]), seen(*there[:some]))
                is_uncertain = DEFAULT_CLASS in objects[some:]  # pods may have that class, or none
                assert came == expected or (is_uncertain and came < expected), objects


def test_a_quota_that_comes_along_has_counted_nothing_where_no_pod_is() -> None:
    made, own = shape(PODS[0], quota(pods="4")), seen()
    assert fitting(made, own) == 4
    (pool,) = own.pools
    occupied = replace(pool.nodes[0], pods=None)
    unknown = replace(own, pools=(replace(pool, nodes=(occupied,)),), namespaces=None)
    room = ClusterCapacity(unknown)
    assert (room.count(made, 50), room.shortfall(made)) == (0, "quota some of ml: what is used of it is unknown")
    assert fitting(made, replace(unknown, namespaces={"default": {}})) == 4
    lower = as_served(quota(pods="3", services="1"))
    assert fitting(made, seen(lower)) == 3


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (quota(pods="{{ replicas }}"), "an expression gives values of the ResourceQuota that comes with it"),
        (obj("v1", "LimitRange", "bounds", {"limits": "none"}), "the LimitRange that comes with it cannot be read"),
    ],
)
def test_what_cannot_be_read_leaves_no_room_and_says_so(made: Json, said: str) -> None:
    room = ClusterCapacity(seen())
    assert (room.count(shape(PODS[0], made), 50), room.shortfall(shape(PODS[0], made))) == (0, said)


@pytest.mark.parametrize(("label", "fits"), [("open", 2), ("shut", 0)])
def test_labels_of_a_namespace_that_come_along_count_for_the_queues_of_kueue(label: str, fits: int) -> None:
    selector = {"matchExpressions": [{"key": "shut", "operator": "DoesNotExist"}]}
    team = cluster_queue("team", {"any": {GPU: 2}}, namespaceSelector=selector)
    where = seen(local_queue("default", "team"), team, flavor("any"), namespace("ml"))
    around = {**obj("v1", "Namespace", "ml"), "metadata": {"name": "ml", "labels": {label: "yes"}}}
    assert fitting(shape(PODS[0], around), where) == fits


def test_a_default_queue_that_comes_along_queues_what_names_none() -> None:
    where = seen(cluster_queue("team", {"any": {GPU: 2}}), flavor("any"), namespace("ml"))
    assert fitting(shape(PODS[0]), where) == 32
    assert fitting(shape(PODS[0], local_queue("default", "team")), where) == 2
    assert fitting(shape(PODS[0], local_queue("default", "team", "other")), where) == 32


def test_labels_of_a_namespace_that_come_along_count_for_rules_between_pods() -> None:
    own = (Requirement(key="app", operator="Exists"),)
    apart = PodRule(key="zone", selector=own, namespace_selector=(Requirement(key="lone", operator="Exists"),))
    around = {**obj("v1", "Namespace", "ml"), "metadata": {"name": "ml", "labels": {"lone": "yes"}}}
    where = replace(seen(), namespaces={"ml": {}})
    (pool,) = where.pools
    where = replace(where, pools=(replace(pool, labels={"zone": "a"}),))
    rules = PodRules(labels=(("app", "server"),), namespace="ml", apart=(apart,))
    assert fitting(replace(shape(PODS[0]), rules=rules), where) == 32
    assert fitting(replace(shape(PODS[0], around), rules=rules), where) == 1


def test_shapes_that_differ_in_what_comes_with_them_alone_are_counted_apart() -> None:
    pods, where = PODS[0], ClusterCapacity(seen())
    where.take(shape(pods), 1)
    assert where.count(shape(pods), 50) == 31
    assert where.count(shape(pods, limits("usual", defaultRequest={"cpu": "16"})), 50) == 4


def test_a_burst_places_no_more_than_the_quota_that_it_brings() -> None:
    spec = manifests(deployed(resources={"limits": {GPU: "1"}}), quota(pods="3"))
    primary = replace(short(5), runtime_classes={})
    (change,) = decide(inputs(primary, seen(), wanted=bursting_fleet(cluster("worker-2"), spec=spec))).changes
    assert change.placement.replicas == 3
