"""Kueue's queues of a cluster, as `apis/kueue/v1beta1` and `v1beta2` of Kueue have them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from reconciler.core.observe import observation_file
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import QUEUES, Resource
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.queues import FlavorQuota, FlavorResource, KueueQueues, QuotaGroup
from reconciler.model.units import ONE, Quantity
from reconciler.model.workload import Json
from tests.builders.kueue_queues import GPU, cluster_queue, cohort, flavor, local_queue, namespace

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
NAME = ClusterName("worker-1")
ALL = (
    namespace("ml", team="a"),
    local_queue("user-queue", "team"),
    cluster_queue("team", {"h100": {GPU: 8}}, used={"h100": {GPU: 2}}, cohort="all"),
    cohort("all", {"h100": {GPU: 4}}),
    flavor("h100", {"gpu": "h100"}),
)
RESOURCES = {
    "LocalQueue": Resource.LOCAL_QUEUES,
    "ClusterQueue": Resource.CLUSTER_QUEUES,
    "Cohort": Resource.COHORTS,
    "ResourceFlavor": Resource.FLAVORS,
    "Namespace": Resource.NAMESPACES,
}


def state(*objects: Json) -> ClusterState:
    made = ClusterState()
    for raw in objects:
        made.apply(RESOURCES[raw["kind"]], raw)
    return made


def read(*objects: Json) -> KueueQueues:
    queues = state(*objects).observation(NAME, AT).queues
    assert queues is not None
    return queues


def from_file(**fields: Json) -> ClusterObservation:
    head = {"apiVersion": "overspill.dev/v1alpha1", "kind": "Observation", "cluster": NAME}
    written = {**head, "observedAt": "2026-11-20T10:05:00Z", **fields}
    (observation,) = observation_file.read(json.dumps(written).encode(), "worker-1.json")
    return observation


def test_queues_are_read_with_their_quotas_and_what_is_reserved_of_them() -> None:
    queues = read(*ALL)
    wanted = FlavorResource("h100", GPU)
    team = queues.clusters["team"]
    assert queues.local["ml", "user-queue"].cluster_queue == "team"
    assert team.cohort == "all"
    assert team.groups == (QuotaGroup(resources=frozenset({GPU}), flavors=("h100",)),)
    assert team.quotas == {wanted: FlavorQuota(Quantity(8 * ONE))}
    assert team.used == {wanted: 2 * ONE}
    assert team.namespaces == ()
    assert queues.cohorts["all"].quotas == {wanted: FlavorQuota(Quantity(4 * ONE))}
    assert queues.flavors["h100"].labels == {"gpu": "h100"}
    assert queues.namespaces is not None
    assert queues.namespaces["ml"]["team"] == "a"


def test_a_file_says_the_same_by_the_same_objects() -> None:
    assert from_file(queues=list(ALL)).queues == read(*ALL)


def test_both_versions_of_a_cluster_queue_say_the_same() -> None:
    new = cluster_queue("team", {"h100": {GPU: 8}}, cohort="all", flavorFungibility={"whenCanBorrow": "TryNextFlavor"})
    old = cluster_queue("team", {"h100": {GPU: 8}}, flavorFungibility={"whenCanBorrow": "TryNextFlavor"})
    old["spec"] |= {"cohort": "all"}
    assert read(old).clusters == read(new).clusters
    assert read(new).clusters["team"].borrows_last


@pytest.mark.parametrize("word", ["Preempt", "MayStopSearch"])
def test_no_later_flavor_is_tried_where_preemption_may_help_if_any_is_allowed(word: str) -> None:
    made = cluster_queue("team", {"h100": {GPU: 8}}, flavorFungibility={"whenCanPreempt": word})
    assert not read(made).clusters["team"].preempts_first
    made["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
    assert read(made).clusters["team"].preempts_first


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (cluster_queue("team", {}, stopPolicy="None"), ""),
        (cluster_queue("team", {}, stopPolicy="Hold"), "is stopped (stopPolicy Hold)"),
        (cluster_queue("team", {}, stopPolicy="HoldAndDrain"), "is stopped (stopPolicy HoldAndDrain)"),
        (
            cluster_queue("team", {}, inactive=("FlavorNotFound", "Can't admit new workloads: references missing")),
            "is not active: FlavorNotFound: Can't admit new workloads: references missing",
        ),
    ],
)
def test_a_cluster_queue_says_why_it_admits_nothing(made: Json, said: str) -> None:
    assert read(made).clusters["team"].closed == said


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (local_queue("q", "team"), ""),
        (local_queue("q", "team", stopPolicy="Hold"), "is stopped (stopPolicy Hold)"),
        (local_queue("q", "team", inactive=("Stopped", "It is stopped")), "is not active: Stopped: It is stopped"),
        (local_queue("q", "team", inactive=("ClusterQueueIsInactive", "Can't submit new workloads")), ""),
    ],
)
def test_a_local_queue_says_why_it_admits_nothing_unless_its_cluster_queue_does(made: Json, said: str) -> None:
    assert read(made).local["ml", "q"].closed == said


def test_how_many_wait_matters_only_where_nothing_goes_before_them() -> None:
    made = cluster_queue("team", {}, pending=3)
    assert read(made).clusters["team"].pending == 0
    made["spec"]["queueingStrategy"] = "StrictFIFO"
    assert (read(made).clusters["team"].is_strict, read(made).clusters["team"].pending) == (True, 3)


def test_a_cluster_without_kueue_has_no_queues() -> None:
    assert state(namespace("ml")).observation(NAME, AT).queues is None
    assert from_file(queues=[]).queues is None
    assert from_file().queues is None


@pytest.mark.parametrize("unread", sorted(QUEUES, key=str))
def test_queues_are_unknown_while_some_of_them_cannot_be_read(unread: Resource) -> None:
    assert state(*ALL).observation(NAME, AT, frozenset({unread})).queues is None


def test_without_the_right_to_namespaces_their_labels_are_unknown() -> None:
    queues = state(*ALL).observation(NAME, AT, frozenset({Resource.NAMESPACES})).queues
    assert queues is not None
    assert queues.namespaces is None


def test_queues_are_the_same_object_until_one_of_them_changes() -> None:
    made = state(*ALL)
    before = made.observation(NAME, AT).queues
    assert made.apply(Resource.CLUSTER_QUEUES, ALL[2]) is ChangeEffect.NOTHING
    assert made.observation(NAME, AT).queues is before
    changed = cluster_queue("team", {"h100": {GPU: 8}}, used={"h100": {GPU: 3}}, cohort="all")
    assert made.apply(Resource.CLUSTER_QUEUES, changed) is ChangeEffect.CAPACITY
    assert made.observation(NAME, AT).queues is not before


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, "Pod is no queue of Kueue"),
        (
            {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "a"}, "spec": 1},
            "kueue.x-k8s.io/ClusterQueue a is not as Kueue writes it",
        ),
    ],
)
def test_what_is_no_queue_is_told_at_its_place(raw: Json, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        from_file(queues=[raw])
    assert [problem.message for problem in refused.value.problems] == [message]


def test_a_file_says_what_a_queue_has_ended_and_which_pods_have_quota() -> None:
    placed = [
        {"name": "a-1", "bound": 0, "evicted": "Preempted: to accommodate a workload", "reserved": 0},
        {"name": "b-1", "bound": 2},
        {"name": "c-1", "bound": 1, "reserved": 4},
    ]
    observation, words = from_file(placements=placed), {"a-1": "evicted: Preempted: to accommodate a workload"}
    assert (observation.evicted, observation.unadmitted, observation.waiting_reasons) == (words, words, words)
    assert observation.reserved == {"a-1": 0, "b-1": 2, "c-1": 4}
