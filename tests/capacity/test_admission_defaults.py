"""What a cluster adds to pods when it makes them counts before it is said that they fit."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.admission_defaults import with_admission_defaults
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.explain.workload import explain
from reconciler.core.pods.pod_requests import pod_requests
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import RuntimeClass, Taint, Toleration
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Availability
from reconciler.model.request import Request
from reconciler.model.units import Resources, parse_quantity
from reconciler.model.workload import Json
from tests.builders.inputs import (
    NOW,
    VLLM,
    cluster,
    desired,
    free,
    inputs,
    ledger,
    ordering,
    placement,
    plan,
    short,
)
from tests.builders.plans import begun
from tests.builders.platform_objects import bursting_fleet, obj
from tests.builders.requests import deployment, holds, manifests, record, request, wants

GPU = "nvidia.com/gpu"
KATA = RuntimeClass(overhead=Resources(amounts={"cpu": parse_quantity("2"), GPU: parse_quantity("0")}))


def amounts(**named: str) -> Resources:
    return Resources(amounts={name: parse_quantity(amount) for name, amount in named.items()})


def container(name: str = "server", **requests: str) -> Json:
    return {"name": name, "resources": {"requests": {name_.replace("gpu", GPU): it for name_, it in requests.items()}}}


def shaped(*containers: Json, namespace: str = "llm", annotations: Json = None, **spec: Any) -> ReplicaShape:
    metadata = {"namespace": namespace, "labels": {"app": "web"}, "annotations": annotations or {}}
    return replica_shape({"containers": list(containers), **spec}, metadata)


def there(cpu: int = 8, **fields: Any) -> ClusterObservation:
    """Observe one node with these CPUs and 8 GPUs."""
    room = amounts(**{"cpu": str(cpu), "memory": "64Gi", GPU: "8"})
    pool = Pool(name="all", nodes=(Node(name="a", free=room, allocatable=room, pods=()),))
    return ClusterObservation(
        cluster=ClusterName("worker-2"), observed_at=NOW, pools=(pool,), **{"runtime_classes": {}, **fields}
    )


def fitting(shape: ReplicaShape, where: ClusterObservation) -> int:
    return ClusterCapacity(where).count(shape, 50)


def why_not(shape: ReplicaShape, where: ClusterObservation) -> tuple[str, str]:
    room = ClusterCapacity(where)
    assert room.count(shape, 1) == 0
    return room.shortfall(shape), room.remedy(shape)


def test_the_overhead_of_the_cluster_s_own_runtime_class_counts() -> None:
    pod = shaped(container(cpu="2", gpu="1"), runtimeClassName="kata")
    assert fitting(pod, there(runtime_classes={"kata": RuntimeClass()})) == 4
    assert fitting(pod, there(runtime_classes={"kata": KATA})) == 2


def test_overhead_that_the_primary_s_pods_show_is_not_counted_twice() -> None:
    pod = shaped(container(cpu="2", gpu="1"), runtimeClassName="kata", overhead={"cpu": "1"})
    assert fitting(pod, there(runtime_classes={"kata": KATA})) == 2
    assert fitting(pod, there(12, runtime_classes={"kata": RuntimeClass()})) == 4  # what they show stays counted


def test_its_node_selector_holds_and_its_tolerations_help() -> None:
    pod = shaped(container(gpu="1"), runtimeClassName="kata")
    labelled = RuntimeClass(node_selector={"kata": "yes"})
    assert why_not(pod, there(runtime_classes={"kata": labelled}))[0] == "no node has kata=yes"
    bare = there(runtime_classes={"kata": RuntimeClass(tolerations=(Toleration(operator="Exists"),))})
    (pool,) = bare.pools
    tainted = replace(bare, pools=(replace(pool, taints=(Taint(key="kata"),)),))
    assert fitting(pod, tainted) == 8
    assert fitting(shaped(container(gpu="1")), tainted) == 0


def test_what_nobody_knows_of_a_runtime_class_fits_nowhere_and_says_so() -> None:
    pod = shaped(container(gpu="1"), runtimeClassName="kata")
    assert why_not(pod, replace(there(), runtime_classes=None)) == (
        "RuntimeClass kata is unknown there",
        "let its RuntimeClasses be seen: by the rights of bootstrap/rbac.yaml, or in its observation",
    )
    assert why_not(pod, there()) == ("has no RuntimeClass kata", "create RuntimeClass kata there")


def test_pods_that_the_api_server_would_refuse_for_two_selectors_fit_nowhere() -> None:
    pod = shaped(container(gpu="1"), runtimeClassName="kata", nodeSelector={"pool": "a"})
    assert why_not(pod, there(runtime_classes={"kata": RuntimeClass(node_selector={"pool": "b"})})) == (
        "its RuntimeClass kata wants nodes with pool=b, and its pods want pool=a",
        "let its pods, or the RuntimeClass, ask for other nodes",
    )


def test_what_a_limit_range_gives_to_containers_that_request_nothing_counts() -> None:
    ranges = {"llm": amounts(cpu="2"), "other": amounts(cpu="8")}
    assert fitting(shaped(container(gpu="1")), there()) == 8
    assert fitting(shaped(container(gpu="1")), there(limit_ranges=ranges)) == 4
    assert fitting(shaped(container(gpu="1"), container("proxy")), there(limit_ranges=ranges)) == 2
    assert fitting(shaped(container(gpu="1", cpu="1")), there(limit_ranges=ranges)) == 8
    whole = {"requests": {"cpu": "2"}}
    assert fitting(shaped(container(gpu="1"), resources=whole), there(limit_ranges=ranges)) == 4
    assert fitting(shaped(container(gpu="1"), namespace=""), there(limit_ranges=ranges)) == 1  # may be any namespace's


def test_pods_of_two_namespaces_have_the_defaults_of_each_while_capacity_is_taken() -> None:
    ranges = {"other": amounts(cpu="4")}
    ours, others = shaped(container(gpu="1")), shaped(container(gpu="1"), namespace="other")
    assert ours.likeness == others.likeness
    room = ClusterCapacity(there(16, limit_ranges=ranges))
    room.take(ours, 1)
    assert [room.count(wanted, 50) for wanted in (ours, others, ours)] == [7, 4, 7]
    room.take(others, 1)
    assert [room.count(wanted, 50) for wanted in (others, ours, others)] == [3, 6, 3]


def test_pods_that_request_less_as_a_whole_than_their_containers_are_given_are_refused() -> None:
    ranges = {"llm": amounts(cpu="2")}
    told = (
        "LimitRanges there give its containers more cpu than its pods request as a whole",
        "state requests in every container, or more for the pod as a whole",
    )
    two = container(gpu="1", cpu="1"), container("proxy")
    assert why_not(shaped(*two, resources={"requests": {"cpu": "2"}}), there(limit_ranges=ranges)) == told
    assert fitting(shaped(*two, resources={"requests": {"cpu": "3"}}), there(limit_ranges=ranges)) == 2


def test_what_the_primary_s_limit_range_has_given_counts_once() -> None:
    told = "LimitRanger plugin set: cpu, memory request for container server; cpu limit for container server"
    pod = shaped(container(gpu="1", cpu="1"), annotations={"kubernetes.io/limit-ranger": told})
    assert fitting(pod, there()) == 8
    assert fitting(pod, there(limit_ranges={"llm": amounts(cpu="2")})) == 4
    assert fitting(pod, there(limit_ranges={"llm": amounts(cpu="500m")})) == 8


def test_where_limit_ranges_cannot_be_seen_pods_that_request_too_little_fit_nowhere() -> None:
    blind = replace(there(), limit_ranges=None)
    assert fitting(shaped(container(gpu="1", cpu="1", memory="1Gi")), blind) == 8
    assert why_not(shaped(container(gpu="1", cpu="1")), blind) == (
        "LimitRanges are unknown there, and a container requests no cpu or memory",
        "give Overspill the rights of bootstrap/rbac.yaml there, or state requests in every container",
    )


@pytest.mark.parametrize(("cpu", "moves"), [("1", True), ("4", False)])
def test_what_moves_is_counted_with_what_its_next_cluster_adds(cpu: str, moves: bool) -> None:
    pod, here = shaped(container(gpu="1"), runtimeClassName="kata"), replace(KATA, node_selector={"pool": "2"})
    before = there(runtime_classes={"kata": here})
    made = placement("worker-2", 3, shape=with_admission_defaults(pod, before).recorded)
    after = replace(free("worker-3", 8), runtime_classes={"kata": RuntimeClass(overhead=amounts(cpu=cpu))})
    after = replace(after, pools=before.pools)  # 8 CPUs, and no label
    draining = cluster("worker-2", availability=Availability.DRAINING)
    wanted = desired(clusters=(cluster("worker-1"), draining, cluster("worker-3")))
    changes = plan(short(3, replica=pod), before, after, there=ledger(made), wanted=wanted).changes
    moved = [change.after for change in changes if change.action is Action.MOVE]
    assert [one.shape.requests.amounts["cpu"] for one in moved] == [parse_quantity(cpu)] * moves


@pytest.mark.parametrize("unknown", [{"limit_ranges": None}, {"runtime_classes": None}])
def test_what_is_on_its_way_takes_what_it_states_where_nobody_knows_what_is_added(unknown: dict[str, Any]) -> None:
    room = ClusterCapacity(replace(there(), **unknown))
    room.take(shaped(container(gpu="1"), runtimeClassName="kata"), 6)
    assert room.count(shaped(container(gpu="1", cpu="1", memory="1Gi")), 50) == 2


AMOUNTS = st.sampled_from(["250m", "1", "3"])
REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), AMOUNTS, max_size=2)
CONTAINERS = st.builds(lambda requests: {"resources": {"requests": requests}}, REQUESTS)


NINE = parse_quantity("9")


@given(
    st.lists(CONTAINERS, min_size=1, max_size=3),
    st.lists(st.tuples(CONTAINERS, st.booleans()), max_size=3),
    st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage"]), AMOUNTS, min_size=1),
    st.none() | REQUESTS,
)
def test_never_less_than_what_the_api_server_makes_of_the_pod(
    running: list[Json], early: list[tuple[Json, bool]], given_: dict[str, str], whole: dict[str, str] | None
) -> None:
    spec: Json = {
        "containers": [{**one, "name": f"c{at}"} for at, one in enumerate(running)],
        "initContainers": [
            {**one, "name": f"i{at}", **({"restartPolicy": "Always"} if stays else {})}
            for at, (one, stays) in enumerate(early)
        ],
    }
    if whole:
        spec["resources"] = {"requests": dict.fromkeys(whole, "9")}
    made = copy.deepcopy(spec)
    for one in (*made["containers"], *made["initContainers"]):
        one["resources"]["requests"] = {**given_, **one["resources"]["requests"]}
    exactly, summed = pod_requests(made), pod_requests({**made, "resources": None})
    metadata = {"namespace": "llm", "labels": {"app": "web"}}
    pod = with_admission_defaults(replica_shape(spec, metadata), there(limit_ranges={"llm": amounts(**given_)}))
    if pod.obstacle:
        assert not all(stays for _, stays in early) or any(summed.amounts.get(name, 0) > NINE for name in whole or ())
        return
    assert all(summed.amounts.get(name, 0) <= NINE for name in whole or ())
    counted = pod.requests
    assert exactly.minus(counted).amounts == dict.fromkeys(exactly.amounts, 0)
    if all(stays for _, stays in early):
        assert counted.minus(exactly).amounts == dict.fromkeys(counted.amounts, 0)


def test_the_same_replica_made_twice_is_the_same() -> None:
    pod = shaped(container(gpu="1"), runtimeClassName="kata")
    where = there(runtime_classes={"kata": KATA}, limit_ranges={"llm": amounts(cpu="2")})
    assert with_admission_defaults(with_admission_defaults(pod, where), where) == with_admission_defaults(pod, where)


# In a pass


def pods(**spec: Json) -> Json:
    return deployment(2, 1, **spec)


def pods_in(name: str, namespace: str, replicas: int, gpus: int) -> Json:
    made = deployment(replicas, gpus)
    made["metadata"] = {"name": name, "namespace": namespace}
    made["spec"]["template"]["metadata"] = {"labels": {"app": name}}
    return made


def test_a_burst_is_recorded_as_it_is_made_there_and_what_is_on_its_way_counts_so() -> None:
    roomy = replace(free("worker-2", 8), limit_ranges={"llm": amounts(cpu="2")})
    (pool,) = roomy.pools
    (bare,) = pool.nodes
    bare = replace(bare, free=Resources(amounts={**bare.free.amounts, "cpu": parse_quantity("8")}))
    roomy = replace(roomy, pools=(replace(pool, nodes=(bare,)),))
    pod = shaped(container(gpu="1"))
    (change,) = plan(short(8, replica=pod), roomy).changes
    assert change.action is Action.PLACE
    assert change.placement.replicas == 4
    assert change.placement.shape.requests.amounts["cpu"] == parse_quantity("2")
    again = plan(short(8, replica=pod), roomy, there=ledger(change.placement))
    assert again.changes == ()


@pytest.mark.parametrize(
    ("pod", "where", "fits"),
    [
        ({"runtimeClassName": "kata"}, {"runtime_classes": None}, 0),
        ({"runtimeClassName": "kata"}, {"runtime_classes": {"kata": KATA}}, 4),
        ({}, {"limit_ranges": {"llm": amounts(cpu="4")}}, 2),
        ({}, {}, 5),
    ],
)
def test_what_an_observation_file_does_not_say_of_a_replica_its_template_does(
    pod: Json, where: dict[str, Any], fits: int
) -> None:
    fleet = bursting_fleet(cluster("worker-2"), spec=manifests(deployment(1, 1, **pod)), policy=ordering("worker-2"))
    made = plan(short(5), there(**where), wanted=fleet)
    assert sum(change.placement.replicas for change in made.changes if change.action is Action.PLACE) == fits


SANDBOX = Toleration(key="sandbox", operator="Exists")


@pytest.mark.parametrize(
    ("pod", "pool_there", "here", "fits"),
    [
        ({}, "b", RuntimeClass(node_selector={"pool": "b"}, tolerations=(SANDBOX,)), 5),
        ({}, "a", RuntimeClass(), 0),
        ({"tolerations": [{"key": "sandbox", "operator": "Exists"}]}, "b", RuntimeClass(), 5),
        ({"nodeSelector": {"pool": "a"}}, "b", RuntimeClass(tolerations=(SANDBOX,)), 0),
    ],
)
def test_what_the_primary_s_runtime_class_has_added_is_no_other_s(
    pod: dict[str, Any], pool_there: str, here: RuntimeClass, fits: int
) -> None:
    primary = {"kata": RuntimeClass(node_selector={"pool": "a"}, tolerations=(SANDBOX,))}
    seen = shaped(
        container(gpu="1"),
        runtimeClassName="kata",
        nodeSelector={"pool": "a"},
        tolerations=[{"key": "sandbox", "operator": "Exists"}],
    )
    where = there(runtime_classes={"kata": here})
    (pool,) = where.pools
    where = replace(where, pools=(replace(pool, labels={"pool": pool_there}, taints=(Taint(key="sandbox"),)),))
    asked = deployment(1, 1, runtimeClassName="kata", **pod)
    fleet = bursting_fleet(cluster("worker-2"), spec=manifests(asked), policy=ordering("worker-2"))
    made = plan(replace(short(5, replica=seen), runtime_classes=primary), where, wanted=fleet)
    assert sum(change.placement.replicas for change in made.changes if change.action is Action.PLACE) == fits


def test_a_request_is_counted_with_what_its_clusters_add() -> None:
    asked = request("worker-2", spec=manifests(pods(runtimeClassName="kata")))
    made = plan(replace(free("worker-2", 8), runtime_classes=None), wanted=wants(asked), there=holds(record(asked)))
    (held,) = made.suppressed
    assert held.reason is Reason.NOTHING_FITS
    assert "RuntimeClass kata is unknown there" in str(held.refusals)
    for free_, placed in ((there(3), 0), (there(6), 1)):
        seen = replace(free_, runtime_classes={"kata": KATA})
        made = plan(seen, wanted=wants(asked), there=holds(record(asked)))
        assert sum(change.action is Action.PLACE for change in made.changes) == placed


def test_requests_whose_parts_have_swapped_namespaces_are_not_told_the_same() -> None:
    def asks(name: str, small: str, large: str) -> Request:
        parts = [pods_in("small", small, 2, 1), pods_in("large", large, 1, 4)]
        return request("worker-2", name=name, spec=manifests(*parts))

    first, second = asks("first", "costly", "plain"), asks("second", "plain", "costly")
    where = there(limit_ranges={"costly": amounts(cpu="6")})
    made = plan(where, wanted=wants(first, second), there=holds(record(first), record(second)))
    assert [placement.workload.name for placement in begun(made)] == ["second"]


@pytest.mark.parametrize(("cpu", "fits"), [("0", True), ("2", False)])
def test_a_runtime_class_that_comes_with_its_pods_is_read_from_the_template(cpu: str, fits: bool) -> None:
    kata = {**obj("node.k8s.io/v1", "RuntimeClass", "kata"), "overhead": {"podFixed": {"cpu": cpu}}}
    asked = request("worker-2", spec=manifests(pods(runtimeClassName="kata"), kata))
    made = plan(replace(free("worker-2", 8), runtime_classes={}), wanted=wants(asked), there=holds(record(asked)))
    assert any(change.action is Action.PLACE for change in made.changes) is fits


@pytest.mark.parametrize(
    "told",
    [
        {"scheduling": {"nodeSelector": {"pool": {"not": "text"}}}},
        {"scheduling": {"nodeSelector": {"pool": 1}}},
        {"scheduling": {"tolerations": [{"key": ["a"]}]}},
        {"overhead": {"podFixed": {1: "2"}}},
        {"overhead": "much"},
    ],
)
def test_a_runtime_class_in_a_template_that_nobody_can_read_ends_no_pass(told: Json) -> None:
    kata = {**obj("node.k8s.io/v1", "RuntimeClass", "kata"), **told}
    fleet = bursting_fleet(cluster("worker-2"), spec=manifests(deployment(1, 1), kata), policy=ordering("worker-2"))
    missing = short(5, replica=shaped(container(gpu="1"), runtimeClassName="kata"))
    made = plan(missing, replace(free("worker-2", 8), runtime_classes={}), wanted=fleet)
    (held,) = made.suppressed
    assert "its RuntimeClass kata is unreadable" in str(held.refusals)


def test_explain_tells_what_each_cluster_adds() -> None:
    pod = shaped(container(gpu="1"), runtimeClassName="kata")
    kata = replace(KATA, node_selector={"kata": "yes"})
    where = replace(free("worker-2", 8), runtime_classes={"kata": kata}, limit_ranges={"llm": amounts(memory="1Gi")})
    told = inputs(short(1, replica=pod), where)
    conclusion = explain(VLLM, told, Plan(changes=(), suppressed=())).conclusion
    assert "On worker-2 LimitRanges give a pod 1Gi memory beyond what it requests, which counts." in conclusion
    assert (
        "On worker-2 RuntimeClass kata adds 2 cpu to a pod, which counts, and sends it to nodes with kata=yes."
        in conclusion
    )
