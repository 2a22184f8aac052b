"""What is kept of a cluster is what a fresh list would tell, and counts as the scheduler counts."""

from __future__ import annotations

import copy
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import (
    CAPACITY,
    CONTROLLERS,
    SIGNALS,
    Resource,
    needed_resources,
)
from reconciler.core.observe.kubernetes.words.scheduler import NO_NODE
from reconciler.core.pods.pod_requests import pod_requests
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.model.capacity import GpuPod, NonGpuPods, ReplicaShape, SucceededPods, WorkloadObservation
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.units import ONE, Resources, format_quantity
from reconciler.model.workload import WorkloadRef
from tests.builders.kube_objects import (
    GPU,
    NO_GPU,
    OVER_QUOTA,
    SINCE,
    autoscaler,
    claim,
    claim_template,
    containers,
    device,
    device_class,
    exactly,
    many,
    node,
    pod,
    queued,
    resource_metric,
    resource_slice,
    workload,
)
from tests.builders.waits import lack_of_room

NAME = ClusterName("worker-1")
AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
VLLM = WorkloadRef(namespace="demo", name="vllm", kind="Deployment")
ANY = WorkloadRef(namespace="demo", name="vllm")
TENTH = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
DEMO = {
    Resource.DEPLOYMENTS: [workload("vllm", 3)],
    Resource.REPLICA_SETS: [workload("vllm-1", 3, owner=("Deployment", "vllm"))],
}


def state(*refs: WorkloadRef, **objects: list[dict]) -> ClusterState:
    made = ClusterState(frozenset(refs or (VLLM,)))
    for plural, raws in objects.items():
        resource = next(one for one in Resource if one.plural == plural)
        for raw in raws:
            made.apply(resource, raw)
    return made


def rollout(*pods: dict, replicas: int = 3, kind: str = "deployments", ref: WorkloadRef = VLLM) -> WorkloadObservation:
    """Observe a Deployment with one ReplicaSet and these pods."""
    made = state(
        ref,
        **{kind: [workload("vllm", replicas)]},
        replicasets=[workload("vllm-1", replicas, owner=("Deployment", "vllm"))],
        pods=list(pods),
    )
    (found,) = made.observation(NAME, AT).workloads
    return found


def free(made: ClusterState, name: str = "gpu-1") -> dict[str, str]:
    nodes = {one.name: one for pool in made.observation(NAME, AT).pools for one in pool.nodes}
    return {resource: format_quantity(amount) for resource, amount in nodes[name].free.amounts.items()}


# any order of events comes to the same as a fresh list

NODES = st.builds(
    lambda name, gpus, ready, labels, cordoned: node(
        name, gpus, ready=ready, labels=labels, **({"unschedulable": True} if cordoned else {})
    ),
    st.sampled_from(["n1", "n2", "n3"]),
    st.integers(0, 8),
    st.booleans(),
    st.sampled_from([{}, {"zone": "a"}]),
    st.booleans(),
)
PODS = st.builds(
    lambda name, on, owner, gpus, phase, label, leaving: _leaving(
        pod(
            name,
            on,
            owner=owner,
            gpus=gpus,
            phase=phase,
            waits="" if on else NO_GPU,
            labels={"overspill.dev/placement": label} if label else {},
        ),
        leaving=leaving,
    ),
    st.sampled_from(["p1", "p2", "p3", "p4"]),
    st.sampled_from(["", "n1", "n2"]),
    st.sampled_from([None, ("ReplicaSet", "vllm-1"), ("ReplicaSet", "vllm-2"), ("Custom", "vllm")]),
    st.integers(0, 3),
    st.sampled_from(["", "", "Succeeded", "Failed"]),
    st.sampled_from(["", "", "burst-1"]),
    st.booleans(),
)
OWNERS = st.builds(
    lambda name, replicas, owner, namespace: workload(name, replicas, owner=owner, namespace=namespace),
    st.sampled_from(["vllm", "vllm-1", "vllm-2"]),
    st.integers(0, 4),
    st.sampled_from([None, ("Deployment", "vllm")]),
    st.sampled_from(["demo", "other"]),
)
AUTOSCALERS = st.builds(
    lambda kind, percent, limited: autoscaler(
        "vllm",
        2,
        resource_metric(averageUtilization=percent),
        kind=kind,
        conditions={"ScalingLimited": (limited, "TooManyReplicas")},
    ),
    st.sampled_from(["Deployment", "Custom"]),
    st.integers(60, 400),
    st.sampled_from(["True", "False"]),
)
QUEUED = st.builds(
    lambda name, count, reserved, namespace: queued(
        name, count, owner=("Custom", "vllm"), reserved=reserved, namespace=namespace
    ),
    st.sampled_from(["w1", "w2"]),
    st.integers(1, 4),
    st.sampled_from(["True", "False"]),
    st.sampled_from(["demo", "other"]),
)
SLICES = st.builds(
    lambda name, on, names, generation: resource_slice(
        name, [device(one) for one in names], on, pool="p", generation=generation
    ),
    st.sampled_from(["s1", "s2"]),
    st.sampled_from(["n1", "n2"]),
    st.lists(st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), unique=True),
    st.integers(1, 2),
)
CLAIMS = st.builds(
    lambda name, held: claim(name, *held, pool="p"),
    st.sampled_from(["c1", "c2"]),
    st.lists(st.sampled_from(["gpu-0", "gpu-1"]), unique=True),
)
TEMPLATES = st.builds(
    lambda count, namespace: claim_template(exactly(count), namespace=namespace),
    st.integers(1, 2),
    st.sampled_from(["demo", "other"]),
)
EVENTS = st.one_of(
    st.tuples(st.just(Resource.SLICES), st.booleans(), SLICES),
    st.tuples(st.just(Resource.CLAIMS), st.booleans(), CLAIMS),
    st.tuples(st.just(Resource.CLASSES), st.booleans(), st.sampled_from(["a", "b"]).map(device_class)),
    st.tuples(st.just(Resource.TEMPLATES), st.booleans(), TEMPLATES),
    st.tuples(st.just(Resource.NODES), st.booleans(), NODES),
    st.tuples(st.just(Resource.PODS), st.booleans(), PODS),
    st.tuples(st.sampled_from([Resource.DEPLOYMENTS, Resource.REPLICA_SETS]), st.booleans(), OWNERS),
    st.tuples(st.just(Resource.AUTOSCALERS), st.booleans(), AUTOSCALERS),
    st.tuples(st.just(Resource.QUEUED), st.booleans(), QUEUED),
)


def _leaving(raw: dict, *, leaving: bool) -> dict:
    return {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": SINCE}} if leaving else raw


@given(st.lists(EVENTS, max_size=40), st.randoms(use_true_random=False))
def test_state_after_any_events_is_that_of_a_fresh_list(events, random) -> None:
    lived, there = ClusterState(frozenset({ANY})), {}
    for resource, gone, raw in events:
        lived.observation(NAME, AT)  # what has been made of earlier states must not show
        if gone:
            lived.remove(resource, key_of(raw))
            there.pop((resource, key_of(raw)), None)
        else:
            lived.apply(resource, copy.deepcopy(raw))
            there[resource, key_of(raw)] = raw
    listed = list(there.items())
    random.shuffle(listed)
    fresh = ClusterState(frozenset({ANY}))
    for (resource, _), raw in listed:
        fresh.apply(resource, raw)
    assert lived.observation(NAME, AT) == fresh.observation(NAME, AT)


@given(st.lists(EVENTS, max_size=15), st.lists(EVENTS, max_size=15))
def test_list_over_an_old_state_leaves_nothing_of_it(before, after) -> None:
    lived, fresh = ClusterState(frozenset({ANY})), ClusterState(frozenset({ANY}))
    for resource, _, raw in before:
        lived.apply(resource, raw)
    for resource in needed_resources((ANY,)):
        listed = {key_of(raw): raw for of, _, raw in after if of is resource}
        for raw in listed.values():
            lived.apply(resource, raw)
            fresh.apply(resource, raw)
        lived.retain(resource, set(listed))
        fresh.retain(resource, set(listed))
    assert lived.observation(NAME, AT) == fresh.observation(NAME, AT)


@given(EVENTS)
def test_event_told_twice_means_nothing_the_second_time(event) -> None:
    resource, _, raw = event
    made = ClusterState(frozenset({ANY}))
    made.apply(resource, raw)
    assert made.apply(resource, copy.deepcopy(raw)) is ChangeEffect.NOTHING


# what is free


def test_free_is_allocatable_less_what_bound_pods_request() -> None:
    pods = [pod("a", on="gpu-1", gpus=2), pod("done", on="gpu-1", gpus=4, phase="Succeeded"), pod("b", waits=NO_GPU)]
    made = state(nodes=[node("gpu-1")], pods=pods)
    assert free(made) == {"cpu": "63500m", "memory": "256Gi", "pods": "109", GPU: "6"}


def test_pod_that_is_leaving_takes_its_room_until_it_is_gone() -> None:
    leaving = _leaving(pod("a", on="gpu-1", labels={"overspill.dev/placement": "burst-1"}), leaving=True)
    made = state(nodes=[node("gpu-1")], pods=[leaving])
    assert free(made)[GPU] == "7"
    assert made.observation(NAME, AT).bound == {}


def test_pods_seen_before_their_node_count_on_it() -> None:
    made = state(pods=[pod("a", on="gpu-1")], nodes=[node("gpu-1")])
    assert free(made)[GPU] == "7"


@pytest.mark.parametrize(
    "closed",
    [
        node("gpu-1", ready=False),
        node("gpu-1", unschedulable=True),
        _leaving(node("gpu-1"), leaving=True),
    ],
)
def test_node_that_takes_no_pods_is_left_out(closed) -> None:
    assert state(nodes=[closed]).observation(NAME, AT).pools == ()


def test_nodes_of_one_kind_are_one_pool_that_selectors_and_taints_work_on() -> None:
    h100 = {"nvidia.com/gpu.product": "H100"}
    taint = {"key": GPU, "effect": "NoSchedule"}
    made = state(nodes=[node("a", labels=h100, taints=[taint]), node("b", labels=h100, taints=[taint]), node("c", 0)])
    seen = made.observation(NAME, AT)
    assert [len(pool.nodes) for pool in seen.pools] == [2, 1]
    asked = replica_shape(
        {
            "containers": containers(8),
            "nodeSelector": h100,
            "tolerations": [{"key": GPU, "operator": "Exists"}],
        }
    )
    assert ClusterCapacity(seen).count(asked, 10) == 2
    bare = ReplicaShape(requests=asked.requests, node_selector=h100)
    assert ClusterCapacity(seen).count(bare, 10) == 0
    hostname = ReplicaShape(requests=Resources(), node_selector={"kubernetes.io/hostname": "c"})
    assert ClusterCapacity(seen).count(hostname, 1) == 1


def test_slices_of_a_gpu_and_rdma_are_resources_as_any() -> None:
    sliced = node("gpu-1", 0)
    sliced["status"]["allocatable"] |= {"nvidia.com/mig-1g.10gb": "7", "rdma/hca": "1k"}
    taken = {"requests": {"nvidia.com/mig-1g.10gb": "3", "rdma/hca": "1"}}
    made = state(nodes=[sliced], pods=[pod("a", on="gpu-1", gpus=0, containers=[{"resources": taken}])])
    assert free(made)["nvidia.com/mig-1g.10gb"] == "4"
    assert free(made)["rdma/hca"] == "999"


@pytest.mark.parametrize(
    "name",
    [
        GPU,
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-1g.10gb.shared",
        "amd.com/gpu",
        "amd.com/cpx_nps4",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "rdma/hca_shared_devices_a",
        "vpc.amazonaws.com/efa",
        "hugepages-2Mi",
        "hugepages-1Gi",
    ],
)
def test_resource_of_any_vendor_is_free_as_far_as_it_is_not_requested(name) -> None:
    there = node("gpu-1", 0)
    there["status"]["allocatable"] |= {name: "8Gi"}
    taken = [{"resources": {"limits": {name: "3Gi"}}}]
    made = state(nodes=[there], pods=[pod("a", on="gpu-1", containers=taken)])
    assert free(made)[name] == "5Gi"
    seen = ClusterCapacity(made.observation(NAME, AT))
    wanted = replica_shape({"containers": [{"resources": {"limits": {name: "2Gi"}}}]})
    assert seen.count(wanted, 9) == 2
    assert "on one node" in seen.shortfall(replica_shape({"containers": [{"resources": {"limits": {name: "6Gi"}}}]}))


def test_time_slices_of_a_gpu_are_as_many_as_the_node_offers() -> None:
    """The device plugin multiplies what it registers, and says so in labels; the product's name gets a suffix."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"}
    made = state(nodes=[node("gpu-1", 4, labels=labels)], pods=[pod("a", on="gpu-1")])
    wanted = replica_shape(
        {"containers": containers(1), "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}}
    )
    assert ClusterCapacity(made.observation(NAME, AT)).count(wanted, 9) == 3


def test_gpu_models_make_pools_of_their_own_and_are_named_when_no_node_has_one() -> None:
    product = "nvidia.com/gpu.product"
    models = {"n1": "H100", "n2": "H100", "n3": "A100", "n4": "A100"}
    made = state(nodes=[node(name, labels={product: model}) for name, model in models.items()])
    seen = made.observation(NAME, AT)
    assert sorted(pool.labels[product] for pool in seen.pools) == ["A100", "H100"]
    b200 = replica_shape({"containers": containers(1), "nodeSelector": {product: "B200"}})
    assert ClusterCapacity(seen).shortfall(b200) == f"no node has {product}=B200"


@pytest.mark.parametrize("how", ["not ready", "cordoned", "deleted", "gone"])
def test_pods_of_a_node_that_drops_out_free_nothing_elsewhere(how) -> None:
    pods = [pod("a", on="gpu-1", gpus=3), pod("b", on="gpu-2", gpus=2)]
    made = state(nodes=[node("gpu-1"), node("gpu-2")], pods=pods)
    if how == "gone":
        made.remove(Resource.NODES, "gpu-1")
    else:
        dropped = node("gpu-1", ready=how != "not ready", unschedulable=how == "cordoned")
        made.apply(Resource.NODES, _leaving(dropped, leaving=how == "deleted"))
    assert [one.name for pool in made.observation(NAME, AT).pools for one in pool.nodes] == ["gpu-2"]
    assert free(made, "gpu-2")[GPU] == "6"
    made.apply(Resource.NODES, node("gpu-1"))
    assert free(made, "gpu-1")[GPU] == "5"


def _asks(gpus: int, **fields: object) -> dict:
    return {"resources": {"requests": {GPU: str(gpus)}}, **fields}


@pytest.mark.parametrize(
    ("spec", "gpus"),
    [
        ({"containers": [_asks(1), _asks(2)]}, "3"),
        ({"containers": [_asks(1)], "initContainers": [_asks(4), _asks(2)]}, "4"),
        ({"containers": [_asks(3)], "initContainers": [_asks(2)]}, "3"),
        ({"containers": [_asks(1)], "initContainers": [_asks(2, restartPolicy="Always")]}, "3"),
        ({"containers": [_asks(1)], "initContainers": [_asks(2, restartPolicy="Always"), _asks(4)]}, "6"),
        ({"containers": [_asks(1)], "initContainers": [_asks(4), _asks(2, restartPolicy="Always")]}, "4"),
        ({"containers": [_asks(1)], "overhead": {GPU: "1"}}, "2"),
        ({"containers": [{"resources": {"limits": {GPU: "2"}}}]}, "2"),
        ({"containers": [{"resources": {"limits": {GPU: "2"}, "requests": {GPU: "1"}}}]}, "1"),
        ({"containers": [_asks(1), _asks(1)], "resources": {"requests": {GPU: "5"}}}, "5"),
    ],
)
def test_requests_are_counted_as_the_scheduler_counts_them(spec, gpus) -> None:
    assert format_quantity(pod_requests(spec).amounts[GPU]) == gpus


# what is missing


def test_pods_are_found_from_deployment_to_replica_set_to_pod() -> None:
    found = rollout(pod("a", on="gpu-1"), pod("b", waits=NO_GPU), pod("stray", owner=("ReplicaSet", "vllm-x")))
    assert (found.wanted, found.running) == (3, 1)
    (wait,) = found.waiting
    assert (wait.replicas, wait.since, wait.cause) == (1, TENTH, f"insufficient {GPU}")


@pytest.mark.parametrize(
    ("resource", "kind"),
    [(Resource.STATEFUL_SETS, "StatefulSet"), (Resource.REPLICA_SETS, "ReplicaSet"), (Resource.JOBS, "Job")],
)
def test_other_kinds_own_their_pods(resource, kind) -> None:
    raw = workload("vllm", 2)
    raw["spec"]["parallelism"] = 2
    made = state(ANY, pods=[pod("a", on="gpu-1", owner=(kind, "vllm")), pod("b", waits=NO_GPU, owner=(kind, "vllm"))])
    made.apply(resource, raw)
    (found,) = made.observation(NAME, AT).workloads
    assert (found.ref.kind, found.wanted, found.running, found.waiting[0].replicas) == (kind, 2, 1, 1)


def test_kind_that_is_not_watched_is_known_by_its_pods() -> None:
    owner = ("InferenceService", "vllm")
    made = state(ANY, pods=[pod("a", on="gpu-1", owner=owner), pod("b", waits=NO_GPU, owner=owner)])
    (found,) = made.observation(NAME, AT).workloads
    assert (found.ref.kind, found.wanted, found.running) == ("InferenceService", 2, 1)
    assert found.shape is not None


def test_owner_of_a_stateful_set_owns_its_pods() -> None:
    made = state(
        WorkloadRef(namespace="demo", name="vllm", kind="LeaderWorkerSet"),
        statefulsets=[workload("vllm-0", 2, owner=("LeaderWorkerSet", "vllm"))],
        pods=[pod("a", on="gpu-1", owner=("StatefulSet", "vllm-0"))],
    )
    assert [one.running for one in made.observation(NAME, AT).workloads] == [1]


def test_workload_that_does_not_exist_is_not_reported() -> None:
    assert state(VLLM, pods=[pod("a", owner=None)]).observation(NAME, AT).workloads == ()


def test_object_in_another_namespace_is_another_object() -> None:
    assert state(VLLM, deployments=[workload("vllm", namespace="prod")]).observation(NAME, AT).workloads == ()


def test_workloads_that_are_asked_for_later_have_to_be_listed_anew() -> None:
    made = state(VLLM, deployments=[workload("vllm"), workload("vllm", namespace="prod")])
    prod = WorkloadRef(namespace="prod", name="vllm", kind="Deployment")
    assert not made.follow(frozenset({VLLM, WorkloadRef(namespace="demo", name="other")}))
    assert made.follow(frozenset({VLLM, prod}))
    made.apply(Resource.DEPLOYMENTS, workload("vllm", namespace="prod"))
    assert len(made.observation(NAME, AT).workloads) == 2


def test_leaving_pod_is_no_replica() -> None:
    assert rollout(_leaving(pod("a", on="gpu-1"), leaving=True)).running == 0


def test_pod_that_the_scheduler_has_not_looked_at_is_not_waiting() -> None:
    assert rollout(pod("a")).waiting == ()


def test_pod_that_waits_for_its_volume_is_no_demand() -> None:
    assert rollout(pod("a", waits="pod has unbound immediate PersistentVolumeClaims")).waiting == ()


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu.",
            "insufficient nvidia.com/gpu, cpu",
        ),
        ("0/3 nodes are available: 3 Insufficient nvidia.com/mig-1g.5gb.", "insufficient nvidia.com/mig-1g.5gb"),
        ("0/2 nodes are available: 2 Insufficient memory. preemption: 0/2 nodes are available", "insufficient memory"),
        ("0/1 nodes are available: 1 Too many pods.", "too many pods"),
        ("0/4 nodes are available: 4 node(s) didn't match Pod's node affinity/selector.", NO_NODE),
        ("0/4 nodes are available: 4 node(s) had untolerated taint {x: y}.", NO_NODE),
        (
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had volume node affinity conflict.",
            "insufficient cpu",
        ),
        ("0/2 nodes are available: 2 node(s) had volume node affinity conflict.", None),
        ('persistentvolumeclaim "models" not found', None),
        ("", NO_NODE),
    ],
)
def test_lack_of_a_gpu_is_told_from_other_reasons(message, cause) -> None:
    assert lack_of_room(message) == cause


def test_pod_behind_a_scheduling_gate_waits_and_names_the_gate() -> None:
    gate = "kueue.x-k8s.io/admission"
    held = pod("a", waits="gated", reason="SchedulingGated", schedulingGates=[{"name": gate}])
    assert [one.cause for one in rollout(held).waiting] == [f"held by scheduling gate {gate}"]


@pytest.mark.parametrize("replicas", [4, 2**31 - 1])
def test_replicas_whose_pods_are_refused_wait_since_the_refusal(replicas: int) -> None:
    raw = workload("vllm", replicas)
    told = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": SINCE, "message": OVER_QUOTA}
    raw["status"]["conditions"] = [told]
    made = state(VLLM, deployments=[raw], replicasets=DEMO[Resource.REPLICA_SETS], pods=[pod("a", on="gpu-1")])
    (found,) = made.observation(NAME, AT).workloads
    assert [(one.replicas, one.since, one.cause) for one in found.waiting] == [
        (replicas - 1, TENTH, "pods refused: quota exceeded")
    ]


@pytest.mark.parametrize(
    ("policy", "replicas", "waiting"),
    [("OrderedReady", 5, 4), ("Parallel", 5, 1), ("OrderedReady", 2**31 - 1, 2**31 - 2)],
)
def test_pods_that_a_stateful_set_makes_one_by_one_wait_behind_the_first(policy, replicas, waiting) -> None:
    raw = workload("vllm", replicas)
    raw["spec"]["podManagementPolicy"] = policy
    owner = ("StatefulSet", "vllm")
    pods = [pod("vllm-0", on="gpu-1", owner=owner), pod("vllm-1", waits=NO_GPU, owner=owner)]
    (found,) = state(ANY, statefulsets=[raw], pods=pods).observation(NAME, AT).workloads
    assert sum(one.replicas for one in found.waiting) == waiting


@pytest.mark.parametrize(
    ("spec", "status", "wanted"),
    [
        ({"parallelism": 4, "completions": 10}, {"succeeded": 8}, 2),
        ({"parallelism": 4}, {}, 4),
        ({}, {}, 1),
        ({"parallelism": 4, "suspend": True}, {}, 0),
        ({"parallelism": 4}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
    ],
)
def test_job_wants_what_it_may_run_at_once(spec, status, wanted) -> None:
    raw = workload("vllm")
    raw |= {"spec": {**raw["spec"], **spec}, "status": status}
    (found,) = state(ANY, jobs=[raw]).observation(NAME, AT).workloads
    assert found.wanted == wanted


def test_shape_is_that_of_a_waiting_pod_before_that_of_the_template() -> None:
    tolerations = [
        {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    ]
    product = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["H100"]}
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [product]}]}
    }
    waiting = pod("b", waits=NO_GPU, gpus=2, tolerations=tolerations, affinity={"nodeAffinity": required})
    template, seen = rollout().shape, rollout(waiting).shape
    assert template is not None
    assert seen is not None
    assert format_quantity(template.requests.amounts[GPU]) == "1"
    assert format_quantity(seen.requests.amounts[GPU]) == "2"
    assert [one.key for one in seen.tolerations] == [GPU]
    assert seen.node_selector == {"nvidia.com/gpu.product": "H100"}


def test_our_pods_are_counted_once_they_have_a_node() -> None:
    ours = {"overspill.dev/placement": "burst-1"}
    made = state(pods=[pod("a", waits=NO_GPU, labels=ours)])
    assert made.observation(NAME, AT).bound == {}
    assert made.apply(Resource.PODS, pod("a", on="gpu-1", labels=ours)) is ChangeEffect.DEMAND
    assert made.observation(NAME, AT).bound == {"burst-1": 1}
    made.apply(Resource.PODS, pod("a", on="gpu-1", labels=ours, phase="Succeeded"))
    assert made.observation(NAME, AT).bound == {}


def test_our_pods_that_have_succeeded_are_counted_once_none_is_left_that_has_not_finished() -> None:
    ours = {"labels": {"overspill.dev/placement": "burst-1"}, "on": "gpu-1"}
    made = state(pods=[pod("a", **ours), pod("b", **ours)])
    done = pod("a", **ours, phase="Succeeded")
    done["status"]["containerStatuses"] = [{"state": {"terminated": {"finishedAt": "2026-11-20T10:04:00Z"}}}]
    assert made.apply(Resource.PODS, done) is ChangeEffect.DEMAND
    assert made.observation(NAME, AT).succeeded == {}
    made.apply(Resource.PODS, pod("b", **ours, phase="Failed"))
    end = datetime(2026, 11, 20, 10, 4, tzinfo=UTC)
    assert made.observation(NAME, AT).succeeded == {"burst-1": SucceededPods(pods=1, at=end)}
    assert made.apply(Resource.PODS, done) is ChangeEffect.NOTHING
    made.apply(Resource.PODS, pod("c", **ours))
    assert made.observation(NAME, AT).succeeded == {}
    assert made.retain(Resource.PODS, {"demo/c"}) is ChangeEffect.DEMAND
    made.remove(Resource.PODS, "demo/c")
    assert made.observation(NAME, AT).succeeded == {}


def test_demand_is_told_from_room() -> None:
    made = state(VLLM)
    assert made.apply(Resource.NODES, node("gpu-1")) is ChangeEffect.CAPACITY
    elsewhere = {"namespace": "batch", "owner": None}
    assert made.apply(Resource.PODS, pod("x", **elsewhere)) is ChangeEffect.NOTHING
    assert made.apply(Resource.PODS, pod("x", on="gpu-1", **elsewhere)) is ChangeEffect.CAPACITY
    assert made.apply(Resource.PODS, pod("y", waits=NO_GPU, **elsewhere)) is ChangeEffect.DEMAND
    assert made.apply(Resource.DEPLOYMENTS, workload("vllm", 5)) is ChangeEffect.DEMAND
    assert made.apply(Resource.DEPLOYMENTS, workload("vllm", 5, namespace="batch")) is ChangeEffect.NOTHING


def test_only_what_the_workloads_call_for_is_watched() -> None:
    assert needed_resources(()) == {Resource.QUEUED, *CAPACITY}
    assert needed_resources({VLLM}) - needed_resources(()) == {
        Resource.DEPLOYMENTS,
        Resource.REPLICA_SETS,
        Resource.TEMPLATES,
        Resource.EVENTS,
        *SIGNALS - {Resource.QUEUED},
    }
    assert needed_resources({ANY}) == {*CAPACITY, *CONTROLLERS, *SIGNALS, Resource.TEMPLATES, Resource.EVENTS}


# size


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer's own memory would be counted")
def test_tenth_of_a_large_cluster_takes_a_tenth_of_25_mb() -> None:
    """The bench measures all of it: 1,000 nodes and 20,000 pods."""
    made = ClusterState(frozenset({VLLM}))
    tracemalloc.start()
    try:
        for resource, raw in many(nodes=100, pods=2000):
            made.apply(resource, raw)
        seen = made.observation(NAME, AT)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(pool.nodes) for pool in seen.pools) == 100
    assert taken <= 2.5e6, f"{taken / 1e6:.1f} MB"


def test_waiting_replicas_are_put_together_by_when_and_why() -> None:
    later = "2026-11-20T10:01:00Z"
    found = rollout(pod("a", waits=NO_GPU), pod("b", waits=NO_GPU), pod("c", waits=NO_GPU, since=later), replicas=3)
    assert [(one.replicas, one.since - TENTH) for one in found.waiting] == [
        (2, timedelta()),
        (1, timedelta(minutes=1)),
    ]


def ours(name: str, on: str = "", *, ready: bool = False, **fields: Any) -> Any:
    return pod(name, on, owner=None, labels={"overspill.dev/placement": "vllm-7f3a90c1"}, ready=ready, **fields)


def test_pods_of_a_placement_are_counted_by_how_far_they_have_come() -> None:
    made = [ours("a", "gpu-1", ready=True), ours("b", "gpu-1"), ours("c", waits=NO_GPU), ours("d", waits=NO_GPU)]
    known = state(nodes=[node("gpu-1")], pods=made)
    seen = known.observation(NAME, AT)
    assert (seen.bound, seen.ready) == ({"vllm-7f3a90c1": 2}, {"vllm-7f3a90c1": 1})
    pending_pods = seen.pending_pods[PlacementName("vllm-7f3a90c1")]
    assert (pending_pods.replicas, pending_pods.shape.requests.amounts[GPU]) == (2, ONE)
    assert seen.waiting_reasons == {"vllm-7f3a90c1": "2 of 4 pods Unschedulable: insufficient nvidia.com/gpu"}


def test_pods_of_a_placement_that_ask_for_no_device_are_told_apart() -> None:
    router = ours("router", "gpu-1", ready=True, gpus=0)
    claiming = ours("claiming", "gpu-1", gpus=0, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one"}])
    known = state(nodes=[node("gpu-1")], pods=[router, claiming, ours("a", "gpu-1", ready=True)])
    seen = known.observation(NAME, AT)
    assert seen.non_gpu_pods == {"vllm-7f3a90c1": NonGpuPods(bound=1, ready=1)}
    assert seen.ready == {"vllm-7f3a90c1": 2}


HAMI_DEVICES = [
    ("GPU-a,10,81559,100,NVIDIA-H100,0,true,0,hami-core:GPU-b,10,81559,100,NVIDIA-H100,0,true,1,hami-core:", 1),
    ('[{"id": "GPU-a", "count": 10, "devmem": 81559}, {"id": "GPU-b", "count": 10, "devmem": 81559}]', 1),
    ("none", 0),
    ("[{", 0),
    ("", 0),
]


@pytest.mark.parametrize(("devices", "free"), HAMI_DEVICES)
def test_a_node_of_hami_has_as_many_gpus_as_it_registers(devices: str, free: int) -> None:
    """Its plugin gives each of two GPUs out ten times; the pod there may have any part of one of them."""
    made = node("gpu-1", gpus=20)
    made["metadata"]["annotations"] = {"hami.io/node-nvidia-register": devices}
    seen = state(nodes=[made], pods=[pod("a", "gpu-1")]).observation(NAME, AT)
    (found,) = [each for pool in seen.pools for each in pool.nodes]
    assert found.free.amounts.get(GPU, 0) == free * ONE
    assert ClusterCapacity(seen).count(replica_shape({"containers": containers(1)}), 9) == free


def test_pods_of_a_placement_with_a_part_of_a_gpu_help_nobody_and_use_a_gpu() -> None:
    made = [ours("a", "gpu-1", ready=True, gpus=0), ours("b", waits=NO_GPU, gpus=0)]
    for each in made:
        each["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
    seen = state(nodes=[node("gpu-1")], pods=made).observation(NAME, AT)
    assert (seen.non_gpu_pods, seen.gpu_pods) == ({}, {"vllm-7f3a90c1": (GpuPod(namespace="demo", name="a", gpus=0),)})
    (waiting,) = seen.pending_pods.values()
    assert (waiting.replicas, waiting.helping) == (1, False)
    assert waiting.shape.obstacle.startswith("asks for a part of a GPU (gpu-fraction)")


def test_pods_without_a_node_are_told_by_those_that_ask_for_devices() -> None:
    router, server = ours("a-router", waits=NO_GPU, gpus=0), ours("server", waits=NO_GPU)
    (both,) = state(pods=[router, server]).observation(NAME, AT).pending_pods.values()
    assert (both.replicas, both.helping, both.shape.requests.amounts[GPU]) == (1, False, ONE)
    (alone,) = state(pods=[router]).observation(NAME, AT).pending_pods.values()
    assert (alone.replicas, alone.helping) == (1, True)


def test_it_is_known_since_when_the_first_of_them_has_fitted_nowhere() -> None:
    later = "2026-11-20T10:01:00Z"
    waiting = [ours("a", waits=NO_GPU, since=later), ours("b", waits=NO_GPU), ours("c", waits=NO_GPU, gpus=0)]
    (seen,) = state(pods=waiting).observation(NAME, AT).pending_pods.values()
    assert seen.since == TENTH
    (unseen,) = state(pods=[ours("new")]).observation(NAME, AT).pending_pods.values()
    assert unseen.since is None


def test_sums_of_placements_stay_the_same_object_until_one_of_their_pods_changes() -> None:
    known = state(nodes=[node("gpu-1")], pods=[ours("a", "gpu-1"), pod("other", "gpu-1")])
    before = known.observation(NAME, AT).ready
    known.apply(Resource.PODS, pod("another", "gpu-1"))
    assert known.observation(NAME, AT).ready is before
    known.apply(Resource.PODS, ours("a", "gpu-1", ready=True))
    assert known.observation(NAME, AT).ready == {"vllm-7f3a90c1": 1}
    known.remove(Resource.PODS, "demo/a")
    assert known.observation(NAME, AT).ready == {}


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ImagePullBackOff", {"vllm-7f3a90c1": "1 of 1 pods ImagePullBackOff: image registry.example.com/vllm:2"}),
        ("CrashLoopBackOff", {"vllm-7f3a90c1": "1 of 1 pods CrashLoopBackOff: container main"}),
        ("ContainerCreating", {}),
    ],
)
def test_what_containers_wait_for_is_told(reason: str, told: dict[str, str]) -> None:
    raw = ours("a", "gpu-1")
    waiting = {"name": "main", "image": "registry.example.com/vllm:2", "state": {"waiting": {"reason": reason}}}
    raw["status"]["containerStatuses"] = [waiting]
    assert state(nodes=[node("gpu-1")], pods=[raw]).observation(NAME, AT).waiting_reasons == told


def test_pods_that_are_leaving_are_no_replicas_but_hold_their_room() -> None:
    raw = ours("a", "gpu-1", ready=True)
    raw["metadata"]["deletionTimestamp"] = SINCE
    seen = state(nodes=[node("gpu-1")], pods=[raw]).observation(NAME, AT)
    assert (seen.bound, seen.ready, seen.pending_pods) == ({}, {}, {})
    assert seen.pools[0].nodes[0].free.amounts[GPU] == 7 * ONE
