"""Quotas of a cluster's own Kueue queues bound what its nodes hold: never more than Kueue admits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.queue_quota import with_quota
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.kubernetes.admission import PodAdmission
from reconciler.model.kubernetes.queues import KueueQueues, QueueClaim
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import Json
from tests.builders.inputs import NOW
from tests.builders.kueue_queues import GPU, cluster_queue, cohort, flavor, group, local_queue, namespace
from tests.observe.test_kueue_quotas import NAME, RESOURCES

QUEUE = local_queue("user-queue", "team")
H100, A100 = flavor("h100", {"gpu": "h100"}), flavor("a100", {"gpu": "a100"})
ANY = flavor("any")
SPOT = {"key": "spot", "effect": "NoSchedule"}
CYCLE = (cohort("a", parent="b"), cohort("b", parent="a"))


def queues(*objects: Json) -> KueueQueues | None:
    made = ClusterState()
    for raw in objects:
        made.apply(RESOURCES[raw["kind"]], raw)
    return made.observation(NAME, NOW).queues


def pods(gpus: int = 1, *, each: bool = False, size: int = 1, **fields: object) -> ReplicaShape:
    """Make pods of the queue with `gpus` GPUs each."""
    admission = (PodAdmission("ml", queue=QueueClaim("user-queue", each=each)),)
    requests = Resources(amounts={GPU: Quantity(gpus * ONE)} if gpus else {})
    return ReplicaShape(**{"requests": requests, "group_size": size, "admission": admission, **fields})


def unqueued(shape: ReplicaShape) -> ReplicaShape:
    """Make the same pods of an object that names no queue."""
    return replace(shape, admission=tuple(each._replace(queue=QueueClaim()) for each in shape.admission))


def seen(*objects: Json, nodes: Mapping[str, int] | None = None) -> ClusterObservation:
    """Observe a cluster whose nodes have these numbers of free GPUs, by their label `gpu`."""
    made = tuple(
        Pool(
            name=name,
            labels={"gpu": name},
            nodes=(Node(name=name, free=Resources(amounts={GPU: Quantity(free * ONE)}), pods=()),),
        )
        for name, free in (nodes or {"h100": 100}).items()
    )
    return ClusterObservation(cluster=NAME, observed_at=NOW, pools=made, queues=queues(*objects))


def room(*objects: Json, nodes: Mapping[str, int] | None = None) -> ClusterCapacity:
    return ClusterCapacity(seen(*objects, nodes=nodes))


def test_what_is_left_of_the_quota_bounds_what_nodes_hold() -> None:
    team = cluster_queue("team", {"any": {GPU: 8}}, used={"any": {GPU: 6}})
    made = room(QUEUE, team, ANY)
    assert made.count(pods(), 100) == 2
    assert made.count(pods(2), 100) == 1
    assert made.count(pods(3), 100) == 0
    assert made.shortfall(pods(3)) == "ClusterQueue team: 2 of 8 nvidia.com/gpu left in flavor any, 3 needed"
    assert made.remedy(pods(3)) == "free or raise the quota of ClusterQueue team there"
    refused = made.refused_pods(pods(), 3)
    assert refused is not None
    assert refused.message == "ClusterQueue team: 2 of 8 nvidia.com/gpu left in flavor any, 3 needed"
    assert made.count(pods(size=2), 100) == 1, "a group is admitted whole"


def test_without_kueue_nodes_alone_bound() -> None:
    assert room().count(pods(), 500) == 100


def test_nodes_bound_where_the_quota_is_larger() -> None:
    made = room(QUEUE, cluster_queue("team", {"any": {GPU: 800}}), ANY)
    assert made.count(pods(), 500) == 100


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ((cluster_queue("team", {"any": {GPU: 8}}), ANY), "has no LocalQueue user-queue in namespace ml"),
        (
            (local_queue("user-queue", "team", "other"), cluster_queue("team", {"any": {GPU: 8}}), ANY),
            "has no LocalQueue user-queue in namespace ml",
        ),
        ((QUEUE, ANY), "has no ClusterQueue team"),
        (
            (QUEUE, cluster_queue("team", {"any": {GPU: 8}}, stopPolicy="Hold"), ANY),
            "ClusterQueue team is stopped (stopPolicy Hold)",
        ),
        (
            (local_queue("user-queue", "team", stopPolicy="Hold"), cluster_queue("team", {"any": {GPU: 8}}), ANY),
            "LocalQueue user-queue of namespace ml is stopped (stopPolicy Hold)",
        ),
        (
            (QUEUE, cluster_queue("team", {"any": {GPU: 8}}, inactive=("FlavorNotFound", "no flavor")), ANY),
            "ClusterQueue team is not active: FlavorNotFound: no flavor",
        ),
        (
            (QUEUE, cluster_queue("team", {"any": {GPU: 8}}, queueingStrategy="StrictFIFO", pending=2), ANY),
            "ClusterQueue team: 2 Workloads wait before it (StrictFIFO)",
        ),
        ((QUEUE, cluster_queue("team", {"any": {"cpu": 8}}), ANY), "ClusterQueue team has no quota for nvidia.com/gpu"),
        (
            (QUEUE, cluster_queue("team", {"any": {GPU: 8}}), flavor("any", nodeTaints=[SPOT])),
            "ClusterQueue team has no flavor for its pods: flavor any is tainted spot:NoSchedule",
        ),
        (
            (QUEUE, cluster_queue("team", {"any": {GPU: 8}}, cohort="a"), ANY, *CYCLE),
            "ClusterQueue team is in Cohorts that lead back to each other",
        ),
    ],
)  # fmt: skip # a row a case
def test_a_queue_that_admits_nothing_leaves_no_room_and_says_why(objects: tuple[Json, ...], said: str) -> None:
    made = room(*objects)
    assert made.count(pods(), 100) == 0
    assert made.shortfall(pods()) == said
    assert made.remedy(pods())


@pytest.mark.parametrize(
    ("selector", "labels", "fits"),
    [
        (None, None, 0),
        ({}, None, 8),
        ({"matchLabels": {"team": "a"}}, {"team": "a"}, 8),
        ({"matchLabels": {"team": "a"}}, {"team": "b"}, 0),
        ({"matchLabels": {"team": "a"}}, None, 8),
        ({"matchLabels": {"kubernetes.io/metadata.name": "ml"}}, None, 8),
        ({"matchLabels": {"kubernetes.io/metadata.name": "other"}}, None, 0),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, {"team": "a"}, 0),
    ],
)
def test_a_cluster_queue_admits_the_namespaces_that_it_selects(
    selector: Json, labels: dict[str, str] | None, fits: int
) -> None:
    team = cluster_queue("team", {"any": {GPU: 8}}, namespaceSelector=selector)
    observed = seen(QUEUE, team, ANY, *(() if labels is None else (namespace("ml", **labels),)))
    if labels is None and observed.queues is not None:
        observed = replace(observed, queues=replace(observed.queues, namespaces=None))
    assert ClusterCapacity(observed).count(pods(), 100) == fits


def test_what_names_no_queue_is_admitted_by_the_default_one_of_its_namespace_or_by_none() -> None:
    team = cluster_queue("team", {"any": {GPU: 8}})
    assert room(local_queue("default", "team"), team, ANY).count(unqueued(pods()), 500) == 8
    assert room(local_queue("default", "team", "other"), team, ANY).count(unqueued(pods()), 500) == 100
    assert room(QUEUE, team, ANY).count(unqueued(pods()), 500) == 100


def test_pods_of_an_unknown_namespace_have_the_least_that_any_queue_of_the_name_gives() -> None:
    nowhere = replace(pods(), admission=(PodAdmission("", queue=QueueClaim("user-queue")),))
    both = (QUEUE, local_queue("user-queue", "small", "other"), cluster_queue("small", {"any": {GPU: 3}}))
    assert room(*both, cluster_queue("team", {"any": {GPU: 8}}), ANY).count(nowhere, 100) == 3


def test_a_local_queue_that_comes_with_the_object_is_there() -> None:
    brought = replace(pods(), admission=(PodAdmission("new", queue=QueueClaim("own", cluster_queue="team")),))
    assert room(cluster_queue("team", {"any": {GPU: 8}}), ANY).count(brought, 100) == 8


def test_what_one_placement_takes_is_gone_for_the_next_of_the_queue_and_for_trials_apart() -> None:
    made = room(QUEUE, local_queue("other", "team", "apps"), cluster_queue("team", {"any": {GPU: 8}}), ANY)
    trial = made.copy()
    made.take(pods(), 5)
    other = replace(pods(), admission=(PodAdmission("apps", queue=QueueClaim("other")),))
    assert (made.count(pods(), 100), made.count(other, 100), trial.count(pods(), 100)) == (3, 3, 8)
    made.take(with_quota(pods()), 2)
    assert made.count(pods(), 100) == 3, "what has its quota is counted by the queue"
    made.take(pods(), 9)
    assert made.count(pods(), 100) == 0, "what waits takes what comes"


def test_parts_of_a_gang_share_the_quota() -> None:
    made = room(QUEUE, cluster_queue("team", {"any": {GPU: 8}}), ANY)
    assert made.fitting_in_order([(pods(2), 1), (pods(2), 3)]) == 2
    assert made.fitting_in_order([(pods(2), 1), (pods(2), 4)]) == 1


@pytest.mark.parametrize(
    ("own", "other", "fits"),
    [
        # They borrow what others of the cohort do not use, and have lost what these borrowed.
        ({GPU: 4}, {GPU: 6}, 10),
        ({GPU: {"nominalQuota": 4, "borrowingLimit": 0}}, {GPU: 6}, 4),
        ({GPU: {"nominalQuota": 4, "borrowingLimit": 2}}, {GPU: 6}, 6),
        ({GPU: 4}, {GPU: {"nominalQuota": 6, "lendingLimit": 1}}, 5),
        ({GPU: 4}, {GPU: {"nominalQuota": 6, "lendingLimit": 0}}, 4),
    ],
)
def test_quota_is_borrowed_within_the_cohort_up_to_the_limits(own: Json, other: Json, fits: int) -> None:
    objects = (QUEUE, ANY, cluster_queue("team", {"any": own}, cohort="all"))
    made = room(*objects, cluster_queue("rest", {"any": other}, cohort="all"))
    assert made.count(pods(), 100) == fits
    refused = made.refused_pods(pods(), fits + 1)
    assert refused is not None
    assert refused.message.endswith(f"left in flavor any, with what cohort all lends, {fits + 1} needed")


def test_what_others_have_borrowed_is_not_free_before_preemption() -> None:
    rest = cluster_queue("rest", {"any": {GPU: 2}}, used={"any": {GPU: 5}}, cohort="all")
    made = room(QUEUE, ANY, cluster_queue("team", {"any": {GPU: 4}}, cohort="all"), rest)
    assert made.count(pods(), 100) == 1


def test_a_cohort_has_quota_of_its_own_and_a_parent() -> None:
    middle = cohort("all", {"any": {GPU: 3}}, parent="top")
    objects = (QUEUE, ANY, cluster_queue("team", {"any": {GPU: 1}}, cohort="all"), middle)
    far = cluster_queue("far", {"any": {GPU: 5}}, used={"any": {GPU: 1}}, cohort="top")
    assert room(*objects, far).count(pods(), 100) == 8
    limited = cohort("all", {"any": {GPU: {"nominalQuota": 3, "borrowingLimit": 2}}}, parent="top")
    assert room(*objects[:3], limited, far).count(pods(), 100) == 6


TWO = cluster_queue("team", {"h100": {GPU: 4}, "a100": {GPU: 6}})


@pytest.mark.parametrize(
    ("each", "nodes", "fits"),
    [
        # All by one flavor, or pod by pod.
        (False, {"h100": 50, "a100": 50}, 6),
        (True, {"h100": 50, "a100": 50}, 10),
        # The first flavor with quota is taken, whatever its nodes hold.
        (False, {"h100": 2, "a100": 50}, 2),
        (True, {"h100": 2, "a100": 50}, 2),
        (False, {"h100": 50, "a100": 5}, 5),
        (True, {"h100": 50, "a100": 5}, 9),
        (False, {"h100": 50}, 4),
        (True, {"a100": 50}, 0),
    ],
)
def test_flavors_are_taken_in_order_and_bind_pods_to_their_nodes(each: bool, nodes: dict[str, int], fits: int) -> None:
    assert room(QUEUE, TWO, H100, A100, nodes=nodes).count(pods(each=each), 100) == fits


def test_nodes_of_a_flavor_that_are_full_are_told_with_its_label() -> None:
    made = room(QUEUE, TWO, H100, A100, nodes={"a100": 50})
    assert made.shortfall(pods()) == "no node has gpu=h100"


def test_flavors_whose_nodes_are_the_same_hold_pods_once() -> None:
    both = cluster_queue("team", {"any": {GPU: 4}, "rest": {GPU: 6}})
    made = room(QUEUE, both, ANY, flavor("rest"), nodes={"h100": 7})
    assert made.count(pods(each=True), 100) == 7


def test_pods_go_to_the_flavor_that_they_select() -> None:
    nodes = {"h100": 50, "a100": 50}
    made = room(QUEUE, TWO, H100, A100, nodes=nodes)
    assert made.count(pods(node_selector={"gpu": "h100"}), 100) == 4
    assert made.count(pods(node_selector={"gpu": "t4"}), 100) == 0
    term = Requirements(labels=(Requirement(key="gpu", operator="NotIn", values=("h100",)),))
    assert made.count(pods(node_terms=(term,)), 100) == 6
    zone = Requirements(labels=(Requirement(key="zone", operator="In", values=("a",)),))
    refused = made.refused_pods(pods(node_terms=(zone,)), 7)
    assert refused is not None
    assert "6 of 6 nvidia.com/gpu left in flavor a100, 7 needed" in refused.message


def test_a_flavor_gives_tolerations() -> None:
    tolerant = flavor("any", nodeTaints=[SPOT], tolerations=[{**SPOT, "operator": "Exists"}])
    observed = seen(QUEUE, cluster_queue("team", {"any": {GPU: 8}}), tolerant)
    tainted = replace(observed, pools=(replace(observed.pools[0], taints=(Taint(key="spot"),)),))
    assert ClusterCapacity(tainted).count(pods(), 100) == 8
    without = seen(QUEUE, cluster_queue("team", {"any": {GPU: 8}}), flavor("any", nodeTaints=[SPOT]))
    mine = pods(tolerations=(Toleration(key="spot", operator="Exists"),))
    assert ClusterCapacity(without).count(mine, 100) == 8


def test_all_resources_of_a_group_come_from_one_flavor_and_each_group_bounds() -> None:
    team = cluster_queue("team", {})
    team["spec"]["resourceGroups"] = [group({"any": {"cpu": 3}}), group({"h100": {GPU: 8}, "a100": {GPU: 2}})]
    both = pods(requests=Resources(amounts={GPU: Quantity(ONE), "cpu": Quantity(ONE)}))
    made = room(QUEUE, team, ANY, H100, A100, nodes={"h100": 50, "a100": 50})
    assert made.refused_pods(both, 4) is not None
    assert made.refused_pods(both, 3) is None
    one = cluster_queue("team", {"h100": {GPU: 8, "cpu": 1}, "a100": {GPU: 2, "cpu": 8}})
    made = room(QUEUE, one, H100, A100, nodes={"h100": 50, "a100": 50})
    assert made.refused_pods(both, 2) is None
    assert made.refused_pods(both, 3) is not None


RACKS = flavor("racks", topologyName="racks")


@pytest.mark.parametrize(
    ("quotas", "asks", "fits", "said"),
    [
        ({"racks": 4, "any": 2}, False, 2, ""),
        ({"racks": 4}, False, 4, ""),  # a queue of such flavors alone gives all pods a topology
        ({"racks": 4, "any": 2}, True, 4, ""),
        ({"any": 2}, True, 0, "flavor any has no topology, which its pods ask for"),
        ({"racks": 4, "any": 0}, False, 0, "0 of 0 nvidia.com/gpu left in flavor any"),
    ],
)
def test_flavors_with_a_topology_are_for_pods_that_ask_for_one(
    quotas: dict[str, int], asks: bool, fits: int, said: str
) -> None:
    team = cluster_queue("team", {name: {GPU: number} for name, number in quotas.items()})
    made = room(QUEUE, team, ANY, RACKS)
    shape = replace(pods(), admission=(PodAdmission("ml", queue=QueueClaim("user-queue", topology=asks)),))
    assert made.count(shape, 100) == fits
    assert said in made.shortfall(shape)


def test_a_quota_of_pods_counts_them() -> None:
    assert room(QUEUE, cluster_queue("team", {"any": {GPU: 8, "pods": 3}}), ANY).count(pods(), 100) == 3


@pytest.mark.parametrize(
    ("fungibility", "each", "fits"),
    [
        ({}, False, 8),
        ({"whenCanBorrow": "TryNextFlavor"}, False, 8),
        # Kueue may stop at the first flavor and preempt there.
        ({"whenCanPreempt": "Preempt"}, False, 4),
        ({"whenCanPreempt": "MayStopSearch"}, True, 4),
    ],
)
def test_a_queue_that_preempts_first_stops_at_the_first_flavor(fungibility: Json, each: bool, fits: int) -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    quota = {"h100": {GPU: 4}, "a100": {GPU: 8}}
    team = cluster_queue("team", quota, flavorFungibility=fungibility, preemption=preemption)
    nodes = {"h100": 50, "a100": 50}
    assert room(QUEUE, team, H100, A100, nodes=nodes).count(pods(each=each), 100) == fits


def test_a_queue_that_borrows_last_fills_its_own_flavors_first() -> None:
    team = cluster_queue(
        "team",
        {"h100": {GPU: 2}, "a100": {GPU: 3}},
        cohort="all",
        flavorFungibility={"whenCanBorrow": "TryNextFlavor"},
    )
    rest = cluster_queue("rest", {"h100": {GPU: 4}, "a100": {GPU: 0}}, cohort="all")
    objects = (QUEUE, team, rest, H100, A100)
    # Two of its own, three of the next flavor, and then four that it borrows of the first.
    assert room(*objects, nodes={"h100": 50, "a100": 50}).count(pods(each=True), 100) == 9
    assert room(*objects, nodes={"h100": 50, "a100": 1}).count(pods(each=True), 100) == 3
    # Six of the first are not its own: three have their own in the second, whose nodes hold one.
    assert room(*objects, nodes={"h100": 50, "a100": 1}).count(pods(), 100) == 2
