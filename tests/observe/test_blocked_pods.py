"""What a cluster says of pods that no room would help is counted apart from the demand of their workload."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.model.capacity import WorkloadObservation
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import WorkloadRef
from tests.builders.kube_objects import NO_GPU, NO_QUOTA, SINCE, Raw, pod, queued, workload

AT = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
TENTH = datetime(2026, 11, 20, 10, tzinfo=UTC)
VLLM = WorkloadRef(namespace="demo", name="vllm", kind="Deployment")
TRAIN = WorkloadRef(namespace="demo", name="train", kind="Job")
NO_VOLUME = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
UNBOUND = "node(s) didn't find available persistent volumes to bind"
SUSPENDED = workload("train", 0) | {"spec": {"suspend": True, "parallelism": 4, "template": {"spec": {}}}}
GATE = {"waits": "gated", "reason": "SchedulingGated", "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


def state(*objects: tuple[Resource, Raw], ref: WorkloadRef = VLLM) -> ClusterState:
    made = ClusterState(frozenset({ref}))
    for resource, raw in objects:
        made.apply(resource, raw)
    return made


def seen(made: ClusterState) -> WorkloadObservation:
    (found,) = made.observation(ClusterName("worker-1"), AT).workloads
    return found


def deployment(*pods: Raw, replicas: int = 4, **status: object) -> ClusterState:
    made = workload("vllm", replicas)
    made["status"] = dict(status)
    objects = [
        (Resource.DEPLOYMENTS, made),
        (Resource.REPLICA_SETS, workload("vllm-1", replicas, owner=("Deployment", "vllm"))),
    ]
    return state(*objects, *((Resource.PODS, raw) for raw in pods))


def counts(found: WorkloadObservation) -> tuple[int, list[tuple[int, WaitReason]]]:
    """Return the replicas that lack room, and those that wait for something else."""
    return sum(each.replicas for each in found.waiting), [(each.replicas, each.reason) for each in found.blocked]


def test_pods_that_wait_for_a_volume_are_blocked_beside_those_that_lack_room() -> None:
    found = seen(deployment(pod("a", waits=NO_VOLUME), pod("b", waits=NO_VOLUME), pod("c", waits=NO_GPU)))
    assert counts(found) == (1, [(2, WaitReason.VOLUME)])
    assert found.blocked[0].since == TENTH
    assert "PersistentVolumeClaims" in found.blocked[0].way_out


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('pods "vllm-1-x" is forbidden: violates PodSecurity "restricted:latest": a != b', WaitReason.POLICY),
        ('Internal error occurred: failed calling webhook "a.example.com": refused', WaitReason.WEBHOOK),
    ],
)
def test_pods_that_anything_but_a_quota_refuses_are_no_demand(message: str, reason: WaitReason) -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": SINCE, "message": message}
    found = seen(deployment(pod("a", on="gpu-1"), conditions=[failure]))
    assert counts(found) == (0, [(3, reason)])


@pytest.mark.parametrize(("message", "waiting", "blocked"), [(NO_GPU, 4, []), (NO_VOLUME, 0, [(4, WaitReason.VOLUME)])])
def test_the_rest_of_a_stateful_set_waits_for_what_its_first_pod_waits_for(
    message: str, waiting: int, blocked: list[tuple[int, WaitReason]]
) -> None:
    first = pod("vllm-0", waits=message, owner=("StatefulSet", "vllm"))
    ref = WorkloadRef(namespace="demo", name="vllm", kind="StatefulSet")
    found = seen(state((Resource.STATEFUL_SETS, workload("vllm", 4)), (Resource.PODS, first), ref=ref))
    assert counts(found) == (waiting, blocked)


@pytest.mark.parametrize(
    ("message", "waiting", "blocked"),
    [
        ("0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu.", 4, []),
        (f"0/2 nodes are unavailable: 2 {UNBOUND}.", 0, [(3, WaitReason.GANG), (1, WaitReason.VOLUME)]),
        ("", 4, []),
    ],
    ids=["GPUs", "volume", "unknown"],
)
def test_a_gang_waits_for_what_its_pod_without_a_node_waits_for(
    message: str, waiting: int, blocked: list[tuple[int, WaitReason]]
) -> None:
    assigned = "Pod demo/b can possibly be assigned to n1, once minAvailable is satisfied"
    others = [
        pod(name, waits=assigned, reason=reason)
        for name, reason in (("b", "Schedulable"), ("c", "Schedulable"), ("d", "Undetermined"))
    ]
    found = seen(deployment(pod("a", waits=message or "pod group is not ready, 4 Pending, 4 minAvailable"), *others))
    assert counts(found) == (waiting, blocked)


def of_pod(name: str, reason: str = "Inadmissible", message: str = "LocalQueue team doesn't exist") -> Raw:
    return queued(f"pod-{name}-1a2b3", 1, owner=("Pod", name), reason=reason, message=message)


@pytest.mark.parametrize(
    ("workloads", "waiting", "blocked"),
    [
        ([], 2, []),
        ([of_pod("a", "Pending", NO_QUOTA), of_pod("b", "Pending", NO_QUOTA)], 2, []),
        ([of_pod("a"), of_pod("b", "Pending", NO_QUOTA)], 1, [(1, WaitReason.QUEUE)]),
        ([of_pod("a"), of_pod("b")], 0, [(2, WaitReason.QUEUE)]),
    ],
    ids=["unknown", "no quota", "one queue is missing", "its queue is missing"],
)
def test_a_gated_pod_waits_for_what_kueue_says_of_its_workload(
    workloads: list[Raw], waiting: int, blocked: list[tuple[int, WaitReason]]
) -> None:
    made = deployment(pod("a", **GATE), pod("b", **GATE))
    for raw in workloads:
        made.apply(Resource.QUEUED, raw)
    assert counts(seen(made)) == (waiting, blocked)
    for raw in workloads:
        made.remove(Resource.QUEUED, f"demo/{raw['metadata']['name']}")
    assert counts(seen(made)) == (2, [])


def test_a_pod_behind_the_gate_of_another_controller_is_no_demand() -> None:
    gate = {**GATE, "schedulingGates": [{"name": "example.com/data-is-loaded"}]}
    found = seen(deployment(pod("a", **gate)))
    assert counts(found) == (0, [(1, WaitReason.GATE)])
    assert found.blocked[0].cause == "held by scheduling gate example.com/data-is-loaded"


@pytest.mark.parametrize(
    ("reason", "message", "is_"),
    [
        ("Pending", "Workload namespace doesn't match ClusterQueue selector", WaitReason.QUEUE),
        ("Pending", "Exceeded the PodsReady timeout demo/job-train-1a2b3", WaitReason.BACKOFF),
        ("Pending", "resources didn't satisfy LimitRange constraints: main", WaitReason.POLICY),
    ],
)
def test_a_job_that_kueue_does_not_start_for_another_reason_than_quota_asks_for_nothing(
    reason: str, message: str, is_: WaitReason
) -> None:
    made = state((Resource.JOBS, SUSPENDED), (Resource.QUEUED, queued(reason=reason, message=message)), ref=TRAIN)
    found = seen(made)
    assert (found.asks, found.held, counts(found)) == ((), True, (0, [(4, is_)]))
    assert found.blocked[0].cause.endswith(message) or message in found.blocked[0].cause


def test_a_deactivated_workload_says_so() -> None:
    made = state((Resource.JOBS, SUSPENDED), (Resource.QUEUED, queued(active=False)), ref=TRAIN)
    assert counts(seen(made)) == (0, [(4, WaitReason.DEACTIVATED)])


def rewritten(raw: Raw, minute: int) -> Raw:
    """Return a pod or a Workload whose status was written in that minute, which its managedFields say."""
    (condition,) = raw["status"]["conditions"]
    fields = {"f:status": {"f:conditions": {f'k:{{"type":"{condition["type"]}"}}': {"f:message": {}}}}}
    entry = {"manager": "m", "subresource": "status", "time": f"2026-11-20T10:{minute:02}:00Z", "fieldsV1": fields}
    return {**raw, "metadata": {**raw["metadata"], "managedFields": [entry]}}


def minutes(found: WorkloadObservation) -> list[int]:
    moments = [*(each.since for each in found.waiting), *(each.since for each in found.asks)]
    return [int((moment - TENTH) / timedelta(minutes=1)) for moment in moments]


def test_a_pod_lacks_room_since_it_lacked_it_and_not_since_it_waited_for_a_volume() -> None:
    """PodScheduled keeps its time while its reason and message change."""
    made = deployment(rewritten(pod("a", waits=NO_VOLUME), 1))
    made.apply(Resource.PODS, rewritten(pod("a", waits=NO_GPU), 20))
    assert minutes(seen(made)) == [20]
    more = NO_GPU.replace("0/", "0/1")
    made.apply(Resource.PODS, rewritten(pod("a", waits=more), 25))  # another node joined: it lacks room as before
    assert minutes(seen(made)) == [20]
    made.apply(Resource.PODS, rewritten(pod("a", waits=NO_GPU, since="2026-11-20T10:26:00Z"), 26))
    assert minutes(seen(made)) == [26]


def test_a_pod_that_lacked_room_all_the_time_keeps_its_time() -> None:
    made = deployment(rewritten(pod("a", waits=NO_GPU), 20))
    assert minutes(seen(made)) == [0]


def test_a_workload_of_kueue_lacks_quota_since_it_lacked_it() -> None:
    backs_off = queued(message="Exceeded the PodsReady timeout demo/a")
    made = state((Resource.JOBS, SUSPENDED), (Resource.QUEUED, rewritten(backs_off, 1)), ref=TRAIN)
    made.apply(Resource.QUEUED, rewritten(queued(), 20))
    assert minutes(seen(made)) == [20]


def test_pods_of_a_placement_tell_what_they_wait_for_and_the_way_out() -> None:
    labels = {PLACEMENT_LABEL: "vllm-1a2b3"}
    made = state(*[(Resource.PODS, pod(name, waits=NO_VOLUME, labels=labels)) for name in ("a", "b")])
    told = made.observation(ClusterName("worker-2"), AT)
    assert told.waiting_reasons[PlacementName("vllm-1a2b3")] == (
        "2 of 2 pods Unschedulable: waits for a volume: a PersistentVolumeClaim is not bound yet;"
        " look at its PersistentVolumeClaims (`kubectl describe pvc`) and their StorageClass"
    )
    assert told.pending_pods[PlacementName("vllm-1a2b3")].since is None  # so that they do not move
