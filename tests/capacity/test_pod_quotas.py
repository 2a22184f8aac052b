"""What a quota or a LimitRange of its namespace refuses is no room, whoever asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.workloads.resource_quotas import read_resource_quota
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import ClusterObservation, DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired, SetDivision
from reconciler.model.units import Resources
from reconciler.model.workload import Json
from tests.builders.group_bursts import SET, lacks, roomy
from tests.builders.group_bursts import fleet as grouped_fleet
from tests.builders.inputs import NOW, free, ledger, ordering, placement, plan, short, tenants
from tests.builders.inputs import desired as fleet
from tests.builders.requests import deployment, holds, manifests, record, request, wants
from tests.capacity.test_admission_defaults import amounts, there

GPU = "nvidia.com/gpu"


def quota(name: str = "some", hard: Json = None, used: Json = None, namespace: str = "llm", **spec: Any) -> Json:
    """Make a ResourceQuota of which nothing is used but what is given."""
    hard = hard or {}
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-11-20T09:00:00Z"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})},
    }


def limit_range(*items: Json, namespace: str = "llm") -> Json:
    return {"metadata": {"name": "bounds", "namespace": namespace}, "spec": {"limits": list(items)}}


def seen(*objects: Json, cpu: int = 1000, **fields: Any) -> ClusterObservation:
    """Observe a large cluster with these ResourceQuotas and LimitRanges, as a watch does."""
    state = ClusterState()
    for raw in objects:
        state.apply(Resource.LIMIT_RANGES if "limits" in raw["spec"] else Resource.QUOTAS, raw)
    made = state.observation(ClusterName("worker-2"), NOW)
    bounds = {
        "limit_ranges": made.limit_ranges,
        "limit_range_items": made.limit_range_items,
        "quotas": made.quotas,
    }
    observation = there(cpu, **{**bounds, **fields})
    (pool,) = observation.pools
    (node,) = pool.nodes
    room = amounts(cpu=str(cpu), memory="4Ti", **{GPU: "500", "ephemeral-storage": "4Ti"})
    return replace(observation, pools=(replace(pool, nodes=(replace(node, free=room, allocatable=room),)),))


def pod(requests: Json = None, limits: Json = None, namespace: str = "llm", **spec: Any) -> ReplicaShape:
    container = {"name": "server", "resources": {"requests": requests or {}, "limits": limits or {}}}
    return replica_shape({"containers": [container], **spec}, {"namespace": namespace, "labels": {"app": "web"}})


def fitting(shape: ReplicaShape, where: ClusterObservation) -> int:
    return ClusterCapacity(where).count(shape, 50)


def message(shape: ReplicaShape, where: ClusterObservation) -> str:
    return ClusterCapacity(where).shortfall(shape)


COUNTS: tuple[tuple[Json, Json, Json, int], ...] = (
    # hard, used, resources of the container, pods let in
    ({f"requests.{GPU}": "4"}, {f"requests.{GPU}": "2"}, {"limits": {GPU: "1"}}, 2),
    ({f"requests.{GPU}": "4"}, {f"requests.{GPU}": "2"}, {"limits": {GPU: "2"}}, 1),
    ({f"requests.{GPU}": "4"}, {f"requests.{GPU}": "5"}, {"limits": {GPU: "1"}}, 0),
    ({"cpu": "4"}, {"cpu": "1"}, {"requests": {"cpu": "1"}}, 3),
    ({"requests.cpu": "4"}, {}, {"requests": {"cpu": "1500m"}}, 2),
    ({"limits.cpu": "4"}, {}, {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, 2),
    ({"memory": "8Gi"}, {}, {"limits": {"memory": "3Gi"}}, 2),
    ({"limits.memory": "8Gi"}, {}, {"limits": {"memory": "2Gi"}}, 4),
    ({"requests.ephemeral-storage": "8Gi"}, {}, {"requests": {"ephemeral-storage": "2Gi"}}, 4),
    ({"limits.ephemeral-storage": "8Gi"}, {}, {"limits": {"ephemeral-storage": "4Gi"}}, 2),
    ({"limits.ephemeral-storage": "8Gi"}, {}, {}, 50),  # the only limits that need not be stated
    ({"pods": "10"}, {"pods": "7"}, {}, 3),
    ({"count/pods": "10"}, {"count/pods": "10"}, {}, 0),
    ({"count/deployments.apps": "0", "services": "0"}, {}, {}, 50),  # which no pod uses
    ({"pods": "10", f"requests.{GPU}": "2"}, {}, {"limits": {GPU: "1"}}, 2),
)


@pytest.mark.parametrize(("hard", "used", "resources", "pods"), COUNTS)
def test_as_many_pods_fit_as_each_resource_of_a_quota_leaves(
    hard: Json, used: Json, resources: Json, pods: int
) -> None:
    where = seen(quota(hard=hard, used=used))
    assert fitting(pod(**resources), where) == pods
    assert fitting(pod(**resources, namespace="other"), where) == 50


SCOPES: tuple[tuple[Json, Json, bool], ...] = (
    # the scopes of the quota, the pod spec, whether it means the pod
    ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 60}, True),
    ({"scopes": ["Terminating"]}, {}, False),
    ({"scopes": ["NotTerminating"]}, {}, True),
    ({"scopes": ["NotTerminating"]}, {"activeDeadlineSeconds": 60}, False),
    ({"scopes": ["BestEffort"]}, {}, True),
    ({"scopes": ["BestEffort"]}, {"resources": {"requests": {"cpu": "1"}}}, False),
    ({"scopes": ["NotBestEffort"]}, {}, False),
    ({"scopes": ["NotBestEffort", "NotTerminating"]}, {"resources": {"limits": {"memory": "1Gi"}}}, True),
    ({"scopes": ["PriorityClass"]}, {}, False),
    ({"scopes": ["PriorityClass"]}, {"priorityClassName": "high"}, True),
    (("In", "high"), {"priorityClassName": "high"}, True),
    (("In", "high"), {"priorityClassName": "low"}, False),
    (("In", "high"), {}, False),
    (("NotIn", "high"), {}, True),
    (("DoesNotExist",), {}, True),
    ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
    ({"scopes": ["VolumeAttributesClass"]}, {}, False),
)


@pytest.mark.parametrize(("scopes", "spec", "means"), SCOPES)
def test_a_quota_bounds_the_pods_that_its_scopes_mean(scopes: Json, spec: Json, means: bool) -> None:
    if isinstance(scopes, tuple):
        operator, *values = scopes
        expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
        scopes = {"scopeSelector": {"matchExpressions": [expression]}}
    assert fitting(pod(**spec), seen(quota(hard={"pods": "1"}, **scopes))) == (1 if means else 50)


def test_affinity_to_pods_of_other_namespaces_has_a_quota_of_its_own() -> None:
    term = {"topologyKey": "zone", "namespaces": ["web"], "labelSelector": {"matchLabels": {"app": "web"}}}
    rules = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    where = seen(quota(hard={"pods": "0"}, scopes=["CrossNamespacePodAffinity"]))
    assert fitting(pod(affinity={"podAffinity": rules}), where) == 0
    assert fitting(pod(), where) == 50


def test_a_pod_without_a_priority_class_has_the_default_one_of_its_cluster() -> None:
    expression = {"scopeName": "PriorityClass", "operator": "In", "values": ["normal"]}
    limited = quota(hard={"pods": "0"}, scopeSelector={"matchExpressions": [expression]})
    assert fitting(pod(), seen(limited)) == 50
    assert fitting(pod(), seen(limited, priority_class="normal")) == 0
    assert fitting(pod(), seen(limited, priority_class=None)) == 0  # it may be that one
    state = ClusterState()
    assert state.apply(Resource.PRIORITY_CLASSES, {"metadata": {"name": "high"}}) is ChangeEffect.NOTHING
    state.apply(Resource.PRIORITY_CLASSES, {"metadata": {"name": "normal"}, "globalDefault": True})
    assert state.observation(ClusterName("worker-2"), NOW).priority_class == "normal"


@pytest.mark.parametrize("name", ["cpu", "requests.memory", "limits.cpu"])
def test_a_quota_demands_what_a_pod_does_not_state_unless_a_limit_range_gives_it(name: str) -> None:
    limited, resource = quota(hard={name: "100Gi"}), name.rpartition(".")[2]
    assert f"quota some of llm demands {name} of every container, and container server states none" in message(
        pod(), seen(limited)
    )
    given = {"type": "Container", "default": {resource: "1"}, "defaultRequest": {resource: "1"}}
    assert fitting(pod(), seen(limited, limit_range(given))) == 50
    early = {"initContainers": [{"name": "fetch"}]}
    assert fitting(pod(**early), seen(limited, limit_range(given))) == 50
    assert "fetch" in message(pod(limits={resource: "1"}, **early), seen(limited))
    whole = {"resources": {"limits": {resource: "1"}, "requests": {resource: "1"}}}
    assert fitting(pod(**whole), seen(limited)) == 50  # no container states it then


BOUNDS: tuple[tuple[str, Json, Json, str], ...] = (
    # what the LimitRange bounds, how, the container's resources, the words where it is refused
    ("Container", {"max": {"cpu": "2"}}, {"limits": {"cpu": "2"}}, ""),
    ("Container", {"max": {"cpu": "2"}}, {"limits": {"cpu": "3"}}, "at most 2 cpu, and container server states 3"),
    ("Container", {"max": {"cpu": "2"}}, {}, "at most 2 cpu, and container server has no limit"),
    ("Container", {"max": {"cpu": "2"}, "default": {"cpu": "2"}}, {}, ""),
    ("Container", {"max": {GPU: "1"}}, {"limits": {GPU: "2"}}, f"at most 1 {GPU}, and container server states 2"),
    ("Container", {"min": {"cpu": "1"}}, {"requests": {"cpu": "1"}}, ""),
    ("Container", {"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}, "wants at least 1 cpu"),
    ("Container", {"min": {"memory": "1"}}, {"requests": {"cpu": "500m"}}, "has no request"),
    ("Pod", {"max": {"cpu": "2"}}, {"limits": {"cpu": "3"}}, "at most 2 cpu, and its pod states 3"),
    ("Pod", {"min": {"memory": "2Gi"}}, {"requests": {"memory": "1Gi"}}, "wants at least 2Gi memory"),
    ("Container", {"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, ""),
    (
        "Container",
        {"maxLimitRequestRatio": {"cpu": "2"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
        "2 times",
    ),
    ("Pod", {"maxLimitRequestRatio": {"cpu": "1500m"}}, {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}, ""),
    ("Pod", {"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, "states none"),
)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"max": {"storage": "10Gi"}, "min": {"storage": "10Gi"}}, ""),
        ({"max": {"storage": "5Gi"}}, "at most 5Gi storage, and a volume claim of its pods states 10Gi"),
        ({"min": {"storage": "20Gi"}}, "at least 20Gi storage, and a volume claim of its pods states 10Gi"),
    ],
)
def test_no_pod_fits_whose_volume_claims_break_a_bound_of_a_limit_range(bounds: Json, words: str) -> None:
    where = seen(limit_range({"type": "PersistentVolumeClaim", **bounds}))
    claim = {"spec": {"resources": {"requests": {"storage": "10Gi"}}}}
    claiming = pod(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}])
    assert fitting(claiming, where) == (0 if words else 50)
    assert fitting(pod(), where) == 50
    assert words in message(claiming, where)


@pytest.mark.parametrize(("type_", "bounds", "resources", "words"), BOUNDS)
def test_no_pod_fits_that_breaks_a_bound_of_a_limit_range(
    type_: str, bounds: Json, resources: Json, words: str
) -> None:
    where = seen(limit_range({"type": type_, **bounds}))
    assert bool(fitting(pod(**resources), where)) is not bool(words)
    assert not words or words in message(pod(**resources), where)


def test_a_refusal_names_the_quota_and_the_way_out() -> None:
    where = seen(quota("gpus", {f"requests.{GPU}": "4"}, {f"requests.{GPU}": "3"}))
    room = ClusterCapacity(where)
    assert room.shortfall(pod(limits={GPU: "2"})) == f"quota gpus of llm: 3 of 4 requests.{GPU} used; one pod takes 2"
    assert room.remedy(pod(limits={GPU: "2"})) == "raise quota gpus of namespace llm there, or free what it counts"
    refused = room.refused_pods(pod(limits={GPU: "1"}), 3)
    assert refused is not None
    assert refused.message == f"quota gpus of llm: 3 of 4 requests.{GPU} used; 1 fits"


def test_pods_that_are_taken_are_used_and_a_trial_takes_nothing() -> None:
    room = ClusterCapacity(seen(quota(hard={"pods": "5"})))
    room.copy().take(pod(), 3)
    assert room.count(pod(), 9) == 5
    room.take(replace(pod(), group_size=2), 1)
    assert (room.count(pod(), 9), room.count(replace(pod(), group_size=2), 9)) == (3, 1)
    assert room.fitting_in_order([(pod(), 2), (pod(limits={GPU: "1"}), 2)]) == 1
    room.release(pod(), 1)
    assert room.count(pod(), 9) == 4


def test_where_quotas_are_unknown_or_uncounted_nothing_fits() -> None:
    assert fitting(pod(), seen(quotas=None)) == 0
    assert message(pod(), seen(quotas=None)) == "ResourceQuotas are unknown there"
    fresh = quota(hard={"pods": "5"})
    del fresh["status"]
    assert fitting(pod(), seen(fresh)) == 0
    assert "what is used of it is unknown" in message(pod(), seen(fresh))


def test_the_lower_one_of_what_is_wanted_and_enforced_counts() -> None:
    raw = quota(hard={"pods": "5"})
    raw["spec"]["hard"] = {"pods": "3"}
    assert fitting(pod(), seen(raw)) == 3
    raw["spec"]["hard"] = {"pods": "9"}
    assert fitting(pod(), seen(raw)) == 5


def test_devices_that_pods_claim_are_bounded_by_their_class() -> None:
    option = DeviceOption(device_class="gpu.example.com", count=2)
    by_class = "gpu.example.com.deviceclass.resource.k8s.io/devices"
    claiming = replace(pod(), devices=(DeviceRequest(options=(option,)),))
    for name in (by_class, "requests.deviceclass.resource.kubernetes.io/gpu.example.com"):
        refused = ClusterCapacity(seen(quota(hard={name: "5"}))).refused_pods(claiming, 9)
        assert refused is not None
        assert "2 fit" in refused.message
    every = replace(claiming, devices=(DeviceRequest(options=(replace(option, every=True),)),))
    assert ClusterCapacity(seen(quota(hard={by_class: "31"}))).refused_pods(every, 1)


def test_the_volumes_of_a_pod_are_bounded_by_their_storage() -> None:
    claim = {"storageClassName": "fast", "resources": {"requests": {"storage": "10Gi"}}}
    volumes = [{"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
    for hard, most in (
        ({"requests.storage": "35Gi"}, 3),
        ({"persistentvolumeclaims": "2"}, 2),
        ({"fast.storageclass.storage.k8s.io/requests.storage": "10Gi"}, 1),
        ({"slow.storageclass.storage.k8s.io/requests.storage": "0"}, 50),
    ):
        assert fitting(pod(volumes=volumes), seen(quota(hard=hard))) == most


# --- decisions


def bounded(hard: Json, used: Json = None, gpus: int = 8) -> ClusterObservation:
    raw = quota("gpus", hard, used, namespace="demo")
    return free("worker-2", gpus, quotas={"demo": (read_resource_quota(raw),)})


def placed(made: Plan) -> int:
    return sum(change.placement.replicas for change in made.changes)


GPUS = f"requests.{GPU}"


def test_workloads_of_one_pass_share_a_quota() -> None:
    workloads = [workload for workload in tenants(2) if workload.workspace == "llm"]
    missing = tuple(short(2, workload=workload).workloads[0] for workload in workloads)
    primary, wanted = replace(short(0), workloads=missing), fleet(ordering("worker-2"), workloads=workloads)
    assert placed(plan(primary, bounded({GPUS: "8"}), wanted=wanted)) == 4
    part = plan(primary, bounded({GPUS: "3"}), wanted=wanted)
    assert placed(part) == 3
    assert "; worker-2 takes 1: quota" in part.suppressed[0].message


def test_replicas_on_their_way_are_counted_once() -> None:
    there_already = ledger(placement("worker-2", 2))
    wanted = fleet(ordering("worker-2"))
    coming = bounded({GPUS: "3"})
    made = plan(short(5), coming, wanted=wanted, there=there_already)
    assert [change.placement.replicas for change in made.changes] == [3]
    counted = replace(bounded({GPUS: "3"}, {GPUS: "2"}), bound={placement("worker-2", 2).name: 2})
    made = plan(short(5), counted, wanted=wanted, there=there_already)
    assert [change.placement.replicas for change in made.changes] == [3]


def test_a_workload_without_room_is_told_of_the_quota() -> None:
    made = plan(short(2), bounded({GPUS: "4"}, {GPUS: "4"}), wanted=fleet(ordering("worker-2")))
    (suppressed,) = made.suppressed
    (refusal,) = suppressed.refusals
    assert refusal.message.startswith(f"quota gpus of demo: 4 of 4 requests.{GPU} used")
    assert refusal.remedy == "raise quota gpus of namespace demo there, or free what it counts"


def test_a_request_goes_where_the_quota_lets_all_of_its_pods_in() -> None:
    asked = request("worker-2", "worker-3", spec=manifests(deployment(4)))
    wanted = wants(asked)
    clusters = [free("worker-1"), bounded({GPUS: "3"}), free("worker-3", 8)]
    (change,) = plan(*clusters, wanted=wanted, there=holds(record(asked))).changes
    assert change.placement.cluster == "worker-3"
    clusters[2] = free("worker-3", 0)
    made = plan(*clusters, wanted=wanted, there=holds(record(asked)))
    assert not [change for change in made.changes if change.placement]
    (suppressed,) = made.suppressed
    assert f"quota gpus of demo: 0 of 3 requests.{GPU} used; 3 fit" in suppressed.refusals[0].message


def without_namespace(made: Json) -> Json:
    return {**made, "metadata": {key: value for key, value in made["metadata"].items() if key != "namespace"}}


def in_workspace(wanted: Desired, *namespaces: str) -> Desired:
    workspaces = {name: replace(each, namespaces=namespaces) for name, each in wanted.workspaces.items()}
    return replace(wanted, workspaces=workspaces)


@pytest.mark.parametrize(("namespaces", "groups"), [(("demo",), 1), (("other",), 2), (("default", "demo"), 2)])
def test_groups_that_name_no_namespace_count_where_their_workspace_deploys_them(
    namespaces: tuple[str, ...], groups: int
) -> None:
    raw = quota("gpus", {GPUS: "40"}, namespace="demo")
    where = roomy("worker-2", *[8] * 8, quotas={"demo": (read_resource_quota(raw),)})
    policy = replace(ordering("worker-2"), sets=SetDivision.BY_GROUP)
    wanted = in_workspace(grouped_fleet(without_namespace(SET), policy=policy), *namespaces)
    assert placed(plan(lacks(8), where, wanted=wanted)) == groups


@pytest.mark.parametrize(("namespaces", "pods"), [(("demo",), 0), (("other",), 4)])
def test_a_request_that_names_no_namespace_counts_where_its_workspace_deploys_it(
    namespaces: tuple[str, ...], pods: int
) -> None:
    asked = request("worker-2", spec=manifests(without_namespace(deployment(4))))
    wanted = in_workspace(wants(asked), *namespaces)
    made = plan(free("worker-1"), bounded({GPUS: "3"}), wanted=wanted, there=holds(record(asked)))
    assert sum(change.placement.replicas for change in made.changes if change.placement) == pods


def test_unknown_resources_use_no_quota() -> None:
    unnamed = ReplicaShape(requests=Resources())
    assert fitting(unnamed, seen(quota(hard={"pods": "0"}))) == 50
