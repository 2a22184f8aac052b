"""A workload is held while none of its pods can get a node, for it is suspended, queued or gated."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.core.observe import observation_file
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.paths import at
from reconciler.model.ids import ClusterName
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.kube_objects import NO_GPU, pod, queued, workload
from tests.builders.workload_kinds import SAMPLES

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
TRAIN = ("Job", "train")
BY_KUEUE = "kueue.x-k8s.io/admission"
TOPOLOGY = "kueue.x-k8s.io/topology"
GONE = "2026-11-20T10:04:00Z"
SUSPENDING = sorted(name for name, kind in BUILT_IN.items() if kind.once and kind.suspended and kind.group != "batch")


def job(*, suspend: bool) -> Json:
    made = workload("train")
    return {**made, "spec": {**made["spec"], "suspend": suspend, "parallelism": 2}}


def gated(name: str, *gates: str) -> Json:
    spec = {"schedulingGates": [{"name": gate} for gate in gates]}
    return pod(name, owner=TRAIN, waits="gated", reason="SchedulingGated", **spec)


def leaving(made: Json) -> Json:
    return {**made, "metadata": {**made["metadata"], "deletionTimestamp": GONE}}


def held(*pods: Json, suspend: bool = False, workloads: tuple[Json, ...] = ()) -> bool:
    """Observe a Job with these pods and these Workloads of Kueue."""
    state = ClusterState(frozenset({WorkloadRef(namespace="demo", name="train", kind="Job")}))
    state.apply(Resource.JOBS, job(suspend=suspend))
    for raw in pods:
        state.apply(Resource.PODS, raw)
    for raw in workloads:
        state.apply(Resource.QUEUED, raw)
    (seen,) = state.observation(ClusterName("worker-1"), AT).workloads
    return seen.held


LOOSE = pod("b", owner=TRAIN, waits=NO_GPU)
RUNS = pod("b", on="gpu-1", owner=TRAIN)


def test_a_job_is_held_while_it_is_suspended_queued_or_gated() -> None:
    assert held(suspend=True)
    assert held(workloads=(queued(),))
    assert held(gated("a", BY_KUEUE), gated("b", "example.com/budget"))
    assert held(gated("a", BY_KUEUE, TOPOLOGY))
    assert not held()
    assert not held(workloads=(queued(reserved="True", reason="QuotaReserved"),))


@pytest.mark.parametrize(
    "other",
    [LOOSE, RUNS, leaving(RUNS), pod("b", owner=TRAIN), gated("b", TOPOLOGY)],
    ids=["finds no node", "runs", "terminates", "not tried yet", "admitted"],
)
def test_one_pod_that_runs_or_may_be_scheduled_is_enough_for_it_not_to_be_held(other: Json) -> None:
    assert not held(other)
    assert not held(gated("a", BY_KUEUE), other)
    assert not held(other, suspend=True, workloads=(queued(),))


def test_pods_that_terminate_without_a_node_or_have_finished_hold_nothing_up() -> None:
    assert held(leaving(LOOSE), suspend=True)
    assert held(pod("b", on="gpu-1", owner=TRAIN, phase="Succeeded"), suspend=True)


@pytest.mark.parametrize("name", SUSPENDING)
def test_each_kind_that_runs_once_is_held_where_its_own_field_suspends_it(name: str) -> None:
    kind = BUILT_IN[name]
    raw = SAMPLES[kind.kind][0]
    ref = WorkloadRef(namespace="demo", name="model", kind=kind.kind, group=kind.group)
    for suspended in (True, False):
        state = ClusterState(frozenset({ref}))
        (custom,) = (each for each in state.customs if each.kind == kind.kind)
        made = {**raw, "metadata": {**raw["metadata"], "name": "model", "namespace": "demo"}}
        for field_path in kind.suspended:
            made = written(made, field_path, suspended)
            assert at(made, field_path) is suspended
        state.apply(custom, made)
        # A pod that goes has the object observed.
        state.apply(Resource.PODS, leaving(pod("a", owner=(kind.kind, "model"), version=raw["apiVersion"])))
        (seen,) = state.observation(ClusterName("worker-1"), AT).workloads
        assert seen.held is suspended


def written(made: Json, field_path: tuple[str, ...], value: bool) -> Json:
    first, *rest = field_path
    return {**made, first: written(made.get(first) or {}, tuple(rest), value) if rest else value}


@pytest.mark.parametrize(("line", "expected"), [("", False), (", held: true", True), (", held: false", False)])
def test_an_observation_file_says_whether_a_workload_is_held(line: str, expected: bool) -> None:
    head = (
        "apiVersion: overspill.dev/v1alpha1\nkind: Observation\ncluster: worker-1\nobservedAt: 2026-11-20T10:00:00Z\n"
    )
    text = f"{head}workloads:\n- {{kind: Job, namespace: demo, name: train, wanted: 1, running: 0{line}}}\n"
    (seen,) = observation_file.read(text.encode(), "worker-1.yaml")
    assert seen.workloads[0].held is expected
