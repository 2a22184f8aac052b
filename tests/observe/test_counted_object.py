"""A template counts the object that it names, or the one with GPUs of the Helm release that it names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.observe import observation_file
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.releases import release_of
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, MissingReplicas, ReplicaShape, WorkloadObservation
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId
from reconciler.model.plan import Reason
from reconciler.model.policy import Desired
from reconciler.model.units import Resources
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, plan, seconds, shape, short

RELEASE = WorkloadRef(namespace="demo", name="vllm", release=True)
HELM = {"meta.helm.sh/release-name": "vllm", "meta.helm.sh/release-namespace": "demo"}
CPU = ReplicaShape(requests=Resources())


def fleet(ref: WorkloadRef = RELEASE) -> Desired:
    made = desired()
    return replace(made, templates={VLLM: replace(made.templates[VLLM], ref=ref)})


def seen(name: str, *, gpus: int = 1, missing: int = 0, release: str = "demo/vllm") -> WorkloadObservation:
    waits = (MissingReplicas(replicas=missing, since=NOW - seconds(45)),) if missing else ()
    return WorkloadObservation(
        ref=WorkloadRef(namespace="demo", name=name, kind="Deployment"),
        wanted=2 + missing,
        running=2,
        waiting=waits,
        shape=shape(gpus) if gpus else CPU,
        release=release,
    )


def primary(*workloads: WorkloadObservation) -> ClusterObservation:
    return replace(short(0), workloads=workloads)


def placed(*workloads: WorkloadObservation, wanted: Desired | None = None) -> list[int]:
    made = plan(primary(*workloads), free("worker-2", 9), wanted=wanted or fleet())
    return [change.placement.replicas for change in made.changes if change.action is Action.PLACE]


def note(*workloads: WorkloadObservation, wanted: Desired | None = None) -> str:
    return inputs(primary(*workloads), wanted=wanted or fleet()).demands[VLLM].note


def test_the_object_of_a_release_bursts_whatever_its_name() -> None:
    assert placed(seen("vllm-llama3-deployment-vllm", missing=3)) == [3]


def test_of_a_release_the_object_with_gpus_is_counted() -> None:
    assert placed(seen("vllm-deployment-router", gpus=0, missing=5), seen("vllm-llama3", missing=3)) == [3]
    assert placed(seen("vllm", gpus=0, missing=5), seen("vllm-llama3", missing=3)) == [3]


def test_of_several_with_gpus_the_same_one_is_counted_each_time_and_named() -> None:
    workloads = seen("vllm-b", missing=4), seen("vllm-a", missing=3)
    assert placed(*workloads) == placed(*reversed(workloads)) == [3]
    assert note(*workloads).startswith(
        "release demo/vllm has 2 workloads with GPUs (Deployment vllm-a and Deployment vllm-b),"
        " and Deployment vllm-a is counted."
    )


def test_an_object_that_another_template_names_outright_is_not_counted_twice() -> None:
    made = fleet()
    other = WorkloadId(VLLM.workspace, TemplateName("other"))
    own = WorkloadRef(namespace="demo", name="vllm-a", kind="Deployment")
    templates = {**made.templates, other: replace(made.templates[VLLM], name=other.name, ref=own)}
    both = replace(made, templates=templates, policies={**made.policies, other: made.policies[VLLM]})
    demands = inputs(primary(seen("vllm-a", missing=3), seen("vllm-b", missing=1)), wanted=both).demands
    assert {str(workload): demand.missing for workload, demand in demands.items()} == {"llm/vllm": 1, "llm/other": 3}


def test_a_name_that_is_no_release_means_no_release() -> None:
    assert placed(seen("vllm-a", missing=3), wanted=fleet(replace(RELEASE, release=False))) == []


def test_what_is_not_found_is_held_back_with_what_is_there_instead() -> None:
    given = inputs(primary(seen("another", missing=3, release="")), free("worker-2", 9), wanted=fleet())
    made = decide(given)
    (held,) = made.suppressed
    assert held.reason is Reason.NOT_FOUND
    assert held.message == (
        "worker-1 reports no object or release demo/vllm; it reports demo/another."
        " Set the annotation overspill.dev/workload to the one that is meant."
    )
    assert explain(VLLM, given, made).conclusion[0] == held.message


def test_a_file_says_which_release_an_object_is_of() -> None:
    text = {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": "Observation",
        "cluster": "worker-1",
        "observedAt": "2026-11-20T10:00:00Z",
        "workloads": [
            {"namespace": "demo", "name": "a", "wanted": 1, "running": 1, "release": "vllm"},
            {"namespace": "demo", "name": "b", "wanted": 1, "running": 1, "release": "other/vllm"},
            {"namespace": "demo", "name": "c", "wanted": 1, "running": 1},
        ],
    }
    (observation,) = observation_file.read(json.dumps(text).encode(), "seen.yaml")
    assert [workload.release for workload in observation.workloads] == ["demo/vllm", "other/vllm", ""]


@pytest.mark.parametrize(
    ("metadata", "release"),
    [
        ({"annotations": HELM}, "demo/vllm"),
        ({"annotations": {**HELM, "meta.helm.sh/release-namespace": "other"}}, "other/vllm"),
        ({"labels": {"app.kubernetes.io/instance": "vllm"}}, "demo/vllm"),
        ({"labels": {"helm-release-name": "vllm", "app.kubernetes.io/managed-by": "Helm"}}, "demo/vllm"),
        ({"labels": {"helm-release-name": "vllm"}}, ""),
        ({"annotations": HELM, "labels": {"app.kubernetes.io/instance": "parent"}}, "demo/vllm"),
        ({"annotations": None, "labels": None}, ""),
        ({}, ""),
    ],
)
def test_a_release_is_known_by_helms_annotations_and_labels(metadata: Json, release: str) -> None:
    assert release_of({"name": "x", "namespace": "demo", **metadata}) == release


def deployment(name: str, *, gpus: int = 1, **metadata: Json) -> Json:
    limits = {"nvidia.com/gpu": gpus} if gpus else {"cpu": 1}
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    return {
        "metadata": {"name": name, "namespace": "demo", "uid": name, **metadata},
        "spec": {"replicas": 3, "template": template},
    }


def watched(*objects: Json) -> ClusterObservation:
    """Watch a cluster with these Deployments for the release."""
    state = ClusterState({RELEASE})
    for raw in objects:
        state.apply(Resource.DEPLOYMENTS, raw)
    return state.observation(ClusterName("worker-1"), NOW)


def test_the_objects_of_a_release_are_watched() -> None:
    owner = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm-llama3", "uid": "1", "controller": True}]
    state = watched(
        deployment("vllm-llama3", annotations=HELM),
        deployment("vllm-router", gpus=0, annotations=HELM),
        deployment("made-by-it", annotations=HELM, ownerReferences=owner),
        deployment("another"),
    )
    assert {workload.ref.name: workload.release for workload in state.workloads} == {
        "vllm-llama3": "demo/vllm",
        "vllm-router": "demo/vllm",
    }
    assert state.others == ()


def test_a_watched_cluster_without_the_release_tells_what_is_there_instead() -> None:
    state = watched(deployment("another"), deployment("third"))
    assert state.workloads == ()
    demand = inputs(state, wanted=fleet()).demands[VLLM]
    assert "it reports demo/another and demo/third" in demand.note


def test_a_daemon_set_is_not_counted_whoever_means_it() -> None:
    each_node = replace(seen("vllm", missing=3), ref=WorkloadRef(namespace="demo", name="vllm", kind="DaemonSet"))
    for ref in (RELEASE, WorkloadRef(namespace="demo", name="vllm")):
        assert placed(each_node, wanted=fleet(ref)) == []
    told = note(each_node, wanted=fleet(WorkloadRef(namespace="demo", name="vllm", kind="Deployment")))
    assert "it reports DaemonSet demo/vllm, which has no replicas that a burst could bring" in told
