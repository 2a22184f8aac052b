"""Pods that a quota at home keeps from existing are missing, whatever the kind, and others are not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.quota_refusals import read_failed_creation
from reconciler.core.observe.kubernetes.resources import Resource, custom_resources, needed_resources
from reconciler.core.observe.kubernetes.words.refusals import CREATION_EVENTS
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import MissingReplicas, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import WorkloadRef
from tests.builders.kube_objects import CREATED, GPU, SINCE, Raw, containers, pod
from tests.builders.workload_kinds import SAMPLES
from tests.observe.test_wanted_pods import KINDS, Home, belonging, grove

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
QUOTA_CHANGED = "2026-11-20T10:01:00Z"
REFUSED = f'pods "x" is forbidden: exceeded quota: gpus, requested: requests.{GPU}=1, used: requests.{GPU}=2'
RESOURCES = {"StatefulSet": Resource.STATEFUL_SETS, "Job": Resource.JOBS}


def quota(used: str = "2", hard: str = "2", name: str = f"requests.{GPU}", **spec: Any) -> Raw:
    changed = {"manager": "kube-apiserver", "subresource": "status", "time": QUOTA_CHANGED}
    return {
        "metadata": {
            "name": "gpus",
            "namespace": "demo",
            "creationTimestamp": CREATED,
            "managedFields": [{"manager": "kubectl", "time": "2026-11-20T10:04:00Z"}, changed],
        },
        "spec": {"hard": {name: hard}, **spec},
        "status": {"hard": {name: hard}, "used": {name: used}},
    }


def event(kind: str, message: str = REFUSED, reason: str = "FailedCreate", name: str = "vllm") -> Raw:
    return {
        "metadata": {"name": f"{name}.1", "namespace": "demo"},
        "reason": reason,
        "message": f"create Pod vllm-2 in {kind} vllm failed error: {message}",
        "firstTimestamp": SINCE,
        "lastTimestamp": "2026-11-20T10:04:50Z",
        "involvedObject": {"kind": kind, "namespace": "demo", "name": name},
    }


def maker(kind: str, wanted: int = 4, **spec: Any) -> Raw:
    number = {"parallelism": wanted} if kind == "Job" else {"replicas": wanted}
    template = {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": containers()}}
    return {"metadata": {"name": "vllm", "namespace": "demo"}, "spec": {**number, "template": template, **spec}}


def seen(kind: str, *others: tuple[Resource, Raw], exist: int = 2, **fields: Any) -> WorkloadObservation:
    """Observe an object of four pods, of which some exist, with other objects."""
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm", kind=kind)}))
    state.apply(RESOURCES[kind], maker(kind, **fields))
    for index in range(exist):
        state.apply(Resource.PODS, pod(f"vllm-{index}", "gpu-1", owner=(kind, "vllm")))
    for resource, raw in others:
        state.apply(resource, raw)
    (workload,) = state.observation(ClusterName("worker-1"), AT).workloads
    return workload


def missing(number: int, since: str = SINCE) -> tuple[MissingReplicas, ...]:
    cause = "pods refused: quota exceeded"
    return (MissingReplicas(replicas=number, since=datetime.fromisoformat(since), cause=cause),)


PARALLEL = {"StatefulSet": {"podManagementPolicy": "Parallel"}, "Job": {}}


@pytest.mark.parametrize("kind", RESOURCES)
def test_pods_that_an_event_and_a_full_quota_explain_are_missing(kind: str) -> None:
    told = seen(kind, (Resource.QUOTAS, quota()), (Resource.EVENTS, event(kind)), **PARALLEL[kind])
    assert told.waiting == missing(2)


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_full_quota_explains_missing_pods_by_itself_since_its_use_has_changed(kind: str) -> None:
    assert seen(kind, (Resource.QUOTAS, quota()), **PARALLEL[kind]).waiting == missing(2, QUOTA_CHANGED)


OTHERS: dict[str, Raw | None] = {
    "a quota with room": quota(used="1"),
    "a quota for another resource": quota(name="requests.example.com/gpu"),
    "a quota for other pods": quota(scopes=["Terminating"]),
    "no quota": None,
}


@pytest.mark.parametrize("kind", RESOURCES)
@pytest.mark.parametrize("other", OTHERS)
def test_a_quota_with_enough_left_explains_no_missing_pod(kind: str, other: str) -> None:
    raw = OTHERS[other]
    quotas = [(Resource.QUOTAS, raw)] if raw is not None else []
    assert seen(kind, *quotas, (Resource.EVENTS, event(kind)), **PARALLEL[kind]).waiting == ()


@pytest.mark.parametrize("kind", RESOURCES)
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": a != b', WaitReason.POLICY),
        ('failed calling webhook "policy.example.com": no endpoints', WaitReason.WEBHOOK),
        (f'admission webhook "policy.example.com" denied the request: {REFUSED}', WaitReason.WEBHOOK),
    ],
)
def test_a_refusal_that_is_no_quota_s_is_told_and_no_demand(kind: str, message: str, reason: WaitReason) -> None:
    workload = seen(kind, (Resource.EVENTS, event(kind, message)), **PARALLEL[kind])
    assert (workload.waiting, [(each.replicas, each.reason) for each in workload.blocked]) == ((), [(2, reason)])
    assert seen(kind, (Resource.EVENTS, event(kind, message)), exist=4).blocked == ()
    full = ((Resource.QUOTAS, quota()), (Resource.EVENTS, event(kind, message)))
    assert seen(kind, *full, **PARALLEL[kind]).waiting == missing(2, QUOTA_CHANGED)


def test_an_event_of_another_reason_says_nothing() -> None:
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm", kind="StatefulSet")}))
    assert state.apply(Resource.EVENTS, event("StatefulSet", reason="FailedScheduling")) is ChangeEffect.NOTHING


def test_an_event_that_is_written_again_changes_nothing() -> None:
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm", kind="Job")}))
    assert state.apply(Resource.EVENTS, event("Job")) is ChangeEffect.DEMAND
    assert state.apply(Resource.EVENTS, {**event("Job"), "count": 15, "lastTimestamp": "2026-11-20T10:05:00Z"}) is (
        ChangeEffect.NOTHING
    )


def test_where_quotas_are_unknown_events_alone_tell() -> None:
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm", kind="Job")}))
    state.apply(Resource.JOBS, maker("Job"))
    state.apply(Resource.PODS, pod("vllm-0", "gpu-1", owner=("Job", "vllm")))
    state.apply(Resource.EVENTS, event("Job"))
    unknown = frozenset({Resource.QUOTAS})
    (workload,) = state.observation(ClusterName("worker-1"), AT, unknown).workloads
    assert workload.waiting == missing(3)
    (workload,) = state.observation(ClusterName("worker-1"), AT, unknown | {Resource.EVENTS}).workloads
    assert workload.waiting == ()


def test_an_ordered_set_tries_no_pod_before_those_before_it_are_ready() -> None:
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm", kind="StatefulSet")}))
    state.apply(Resource.STATEFUL_SETS, maker("StatefulSet"))
    state.apply(Resource.QUOTAS, quota())
    state.apply(Resource.PODS, pod("vllm-0", "gpu-1", owner=("StatefulSet", "vllm"), ready=False))
    assert state.observation(ClusterName("worker-1"), AT).workloads[0].waiting == ()
    state.apply(Resource.PODS, pod("vllm-0", "gpu-1", owner=("StatefulSet", "vllm")))
    assert state.observation(ClusterName("worker-1"), AT).workloads[0].waiting == missing(3, QUOTA_CHANGED)


def test_pods_that_leave_their_quota_to_successors_are_not_missing() -> None:
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="vllm", kind="Job")}))
    state.apply(Resource.JOBS, maker("Job", 2))
    state.apply(Resource.QUOTAS, quota())
    for index in range(2):
        raw = pod(f"vllm-{index}", "gpu-1", owner=("Job", "vllm"))
        raw["metadata"] |= {"deletionTimestamp": SINCE} if index else {}
        state.apply(Resource.PODS, raw)
    assert state.observation(ClusterName("worker-1"), AT).workloads[0].waiting == ()


def test_a_suspended_job_misses_nothing() -> None:
    assert seen("Job", (Resource.QUOTAS, quota()), exist=0, suspend=True).waiting == ()


def custom(kind: str, group: str, spec: Raw, exist: int, *, used: str, hard: str) -> tuple[MissingReplicas, ...]:
    """Observe an object with a controller of its own, of whose pods some exist."""
    ref = WorkloadRef(namespace="demo", name="vllm", kind=kind, group=group)
    state = ClusterState(frozenset({ref}))
    (resource,) = custom_resources({ref})
    state.apply(resource, {"metadata": {"name": "vllm", "namespace": "demo"}, "spec": spec})
    for index in range(exist):
        version = f"{group}/{resource.versions[0]}"
        state.apply(Resource.PODS, pod(f"vllm-{index}", "gpu-1", owner=(kind, "vllm"), version=version))
    state.apply(Resource.QUOTAS, quota(used=used, hard=hard))
    workloads = state.observation(ClusterName("worker-1"), AT).workloads
    return workloads[0].waiting if workloads else ()


POD = {"spec": {"containers": containers()}}
CUSTOM: tuple[tuple[str, str, Raw, int], ...] = (
    # kind, group, spec, the pods that it wants
    ("CloneSet", "apps.kruise.io", {"replicas": 4, "template": POD}, 4),
    (
        "RayCluster",
        "ray.io",
        {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [{"groupName": "a", "replicas": 3, "template": POD}]},
        4,
    ),
    ("StatefulSet", "apps.kruise.io", {"replicas": 4, "template": POD}, 4),
)


@pytest.mark.parametrize(("kind", "group", "spec", "wanted"), CUSTOM)
def test_pods_of_kinds_whose_controllers_create_them_are_missing(kind: str, group: str, spec: Raw, wanted: int) -> None:
    assert custom(kind, group, spec, 2, used="2", hard="2") == missing(wanted - 2, QUOTA_CHANGED)
    assert custom(kind, group, spec, 0, used="2", hard="2") == missing(wanted, QUOTA_CHANGED)
    assert custom(kind, group, spec, 2, used="2", hard="3") == ()
    assert custom(kind, group, spec, wanted, used="4", hard="4") == ()


ONCE = [name for name in KINDS if BUILT_IN[group_kind(SAMPLES[name][0])].once and sum(SAMPLES[name][1].values()) > 1]
FULL = quota(name="pods")


@pytest.mark.parametrize("name", ONCE)
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_runs_once_misses_the_pods_that_neither_exist_nor_have_ended(name: str, phase: str) -> None:
    raw, pods = SAMPLES[name]
    kind, number = BUILT_IN[group_kind(raw)], sum(pods.values())
    raw = {**raw, "status": {"succeeded": 1}} if name == "Job" else raw
    home = Home(raw)
    home.state.apply(Resource.QUOTAS, FULL)
    assert sum(wait.replicas for wait in home.seen.waiting) == home.seen.wanted
    home.pods(belonging(kind, raw, "ended", "gpu-1"))
    assert sum(wait.replicas for wait in home.seen.waiting) == home.seen.wanted - 1
    ended = belonging(kind, raw, "ended", "gpu-1", phase=phase)
    home.pods(ended, *(belonging(kind, raw, f"goes-on-{index}", "gpu-1") for index in range(number - 2)))
    done = 0 if name == "Job" else 1  # its own status says how many have succeeded
    assert sum(wait.replicas for wait in home.seen.waiting) == home.seen.wanted - done - (number - 2)
    home.pods(belonging(kind, raw, "last", "gpu-1"))
    assert home.seen.waiting == ()
    home.state.remove(Resource.PODS, "demo/ended")
    home.state.remove(Resource.PODS, "demo/last")
    assert sum(wait.replicas for wait in home.seen.waiting) == home.seen.wanted - (number - 2)


@pytest.mark.parametrize("name", ONCE)
def test_a_list_without_an_ended_pod_forgets_it(name: str) -> None:
    raw, _ = SAMPLES[name]
    home = Home(raw)
    home.state.apply(Resource.QUOTAS, FULL)
    home.pods(belonging(BUILT_IN[group_kind(raw)], raw, "ended", "gpu-1", phase="Succeeded"))
    home.state.retain(Resource.PODS, set())
    assert sum(wait.replicas for wait in home.seen.waiting) == home.seen.wanted


def test_events_are_watched_where_workloads_are_followed_by_their_reason() -> None:
    ref = WorkloadRef(namespace="demo", name="vllm", kind="Job")
    assert Resource.EVENTS in needed_resources({ref})
    assert Resource.EVENTS not in needed_resources(())
    assert Resource.EVENTS.fields.startswith("type=Warning,involvedObject.kind!=Pod,")


WRITERS = [
    ("FailedCreate", "Job of Volcano", "Error creating pods: {}"),
    ("FailedToCreateHeadPod", "RayCluster", "Failed to create head Pod demo/x, {}"),
    ("FailedToCreateWorkerPod", "RayCluster", "Failed to create worker Pod for the cluster demo/x, {}"),
    ("FailedCreatePod", "PyTorchJob", "Error creating: {}"),
    ("MPIJobFailed", "MPIJob", "worker pod created failed: {}"),
]
DENIED = 'admission webhook "a.example.com" denied the request: no team'


@pytest.mark.parametrize(("reason", "name", "message"), WRITERS)
def test_refusals_are_told_by_the_events_of_each_controller(reason: str, name: str, message: str) -> None:
    home = Home(SAMPLES[name][0])
    raw, about = SAMPLES[name][0], SAMPLES[name][0]["metadata"]["name"]
    told = {**event(raw["kind"], reason=reason, name=about), "message": message.format(DENIED)}
    told["involvedObject"]["apiVersion"] = raw["apiVersion"]
    home.state.apply(Resource.EVENTS, told)
    ((blocked,), wanted) = home.seen.blocked, home.seen.wanted
    assert (blocked.replicas, blocked.reason) == (wanted, WaitReason.WEBHOOK)
    assert "webhook a.example.com denied them: no team" in blocked.cause
    home.state.apply(Resource.EVENTS, {**told, "reason": "Unhealthy"})
    assert not any(seen.blocked for seen in home.state.observation(ClusterName("worker-1"), AT).workloads)


def test_a_failed_job_of_mpi_is_no_refused_pod() -> None:
    assert read_failed_creation(event("MPIJob", reason="MPIJobFailed")) is None


def test_a_clique_of_grove_tells_of_its_refused_pods() -> None:
    home = Home(SAMPLES["PodCliqueSet"][0])
    home.put(grove("PodClique", "model-0-router", ("PodCliqueSet", "model"), 3))
    told = event("PodClique", reason="PodCreateFailed", name="model-0-router")
    told["involvedObject"]["apiVersion"] = "grove.io/v1alpha1"
    home.state.apply(Resource.EVENTS, {**told, "message": f"Error creating pod model-0-router-abc: {DENIED}"})
    (blocked,) = home.seen.blocked
    assert (blocked.replicas, blocked.reason) == (3, WaitReason.WEBHOOK)


def test_writers_of_events_are_all_tried() -> None:
    assert {event.reason for event in CREATION_EVENTS} == {reason for reason, *_ in WRITERS} | {"PodCreateFailed"}
