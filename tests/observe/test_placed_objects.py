"""Pods without the label of their placement count for it, where their object has the label: those of a TrainJob."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.ownership import BUILT_IN_MARKS
from reconciler.core.observe.kubernetes.resources import CustomResource, Resource, custom_resources, placed_resources
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import ClusterObservation, FailedObject, GpuPod, SucceededPods
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import Mark, PodTemplate, WorkloadKind, path
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.kube_objects import NO_GPU, pod

AT = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
LABEL = "overspill.dev/placement"
TRAIN_JOBS = WorkloadRef(namespace="", name="", kind="TrainJob", group="trainer.kubeflow.org")
(RESOURCE,) = placed_resources({TRAIN_JOBS})
PODS = {"jobset.sigs.k8s.io/jobset-name": "llm"}
END = "2026-11-20T10:04:00Z"
UNLABELLED = {"TrainJob"}
"""Kinds whose controllers hand on no label that an object of theirs can have."""


def train_job(
    placement: str = "llm-1", *, complete: str = "", name: str = "llm", namespace: str = "demo", uid: str = ""
) -> Json:
    labels = {LABEL: placement} if placement else {}
    condition = {"type": "Complete", "status": complete, "lastTransitionTime": END}
    status = {"conditions": [{"type": "Suspended", "status": "False"}, *([condition] if complete else [])]}
    metadata = {"name": name, "namespace": namespace, "labels": labels, "uid": uid}
    return {"metadata": metadata, "spec": {}, "status": status}


def worker(name: str = "a", on: str = "gpu-1", **fields: object) -> Json:
    return pod(name, on, owner=("Job", "llm-node-0"), **{"labels": PODS, **fields})


def watching(*raws: tuple[Resource | CustomResource, Json]) -> ClusterState:
    made = ClusterState(placed={TRAIN_JOBS})
    for resource, raw in raws:
        made.apply(resource, raw)
    return made


def seen(made: ClusterState) -> ClusterObservation:
    return made.observation(ClusterName("worker-2"), AT)


def test_these_kinds_leave_their_pods_unlabelled() -> None:
    assert {kind.kind for kind in BUILT_IN.values() if kind.leaves_pods_unlabelled} == UNLABELLED


def test_a_declared_kind_without_templates_leaves_its_pods_unlabelled_where_they_name_their_object() -> None:
    by_name = WorkloadKind(group="example.com", kind="GameServerSet", marks=(Mark(label="example.com/set"),))
    assert by_name.leaves_pods_unlabelled
    assert not replace(by_name, marks=()).leaves_pods_unlabelled
    assert not replace(by_name, templates=(PodTemplate(labels=path("spec.labels")),)).leaves_pods_unlabelled


@pytest.mark.parametrize("pods_first", [True, False])
def test_pods_of_a_labelled_object_count_for_its_placement_whichever_comes_first(pods_first: bool) -> None:
    pods = [(Resource.PODS, worker("a")), (Resource.PODS, worker("b", "", waits=NO_GPU))]
    job = [(RESOURCE, train_job())]
    found = seen(watching(*(pods + job if pods_first else job + pods)))
    assert (found.bound, found.ready) == ({"llm-1": 1}, {"llm-1": 1})
    assert found.pending_pods["llm-1"].replicas == 1
    assert found.waiting_reasons == {"llm-1": "1 of 2 pods Unschedulable: insufficient nvidia.com/gpu"}
    assert found.gpu_pods == {"llm-1": (GpuPod(namespace="demo", name="a", gpus=1),)}


@pytest.mark.parametrize(
    "job",
    [train_job(""), train_job(name="other"), train_job(namespace="elsewhere")],
    ids=["of no placement", "another", "in another namespace"],
)
def test_pods_of_other_objects_count_for_no_placement(job: Json) -> None:
    found = seen(watching((Resource.PODS, worker()), (RESOURCE, job)))
    assert (found.bound, found.succeeded) == ({}, {})


def test_a_label_of_a_pod_goes_before_that_of_its_object() -> None:
    made = watching((RESOURCE, train_job()), (Resource.PODS, worker(labels={**PODS, LABEL: "llm-2"})))
    assert seen(made).bound == {"llm-2": 1}


def test_pods_follow_their_object_to_another_placement_and_out_of_it() -> None:
    made = watching((RESOURCE, train_job()), (Resource.PODS, worker()))
    assert made.apply(RESOURCE, train_job("llm-2")) is ChangeEffect.DEMAND
    assert seen(made).bound == {"llm-2": 1}
    assert made.apply(RESOURCE, train_job("llm-2")) is ChangeEffect.NOTHING
    assert made.retain(RESOURCE, set()) is ChangeEffect.DEMAND
    assert seen(made).bound == {}
    made.apply(RESOURCE, train_job())
    made.remove(Resource.PODS, "demo/a")
    assert made.apply(RESOURCE, train_job("llm-2")) is ChangeEffect.DEMAND
    assert seen(made).bound == {}


def test_pods_that_have_succeeded_are_told_also_where_the_object_is_seen_later() -> None:
    done = worker(phase="Succeeded")
    done["status"]["containerStatuses"] = [{"state": {"terminated": {"finishedAt": END}}}]
    made = watching((Resource.PODS, done), (RESOURCE, train_job()))
    end = datetime(2026, 11, 20, 10, 4, tzinfo=UTC)
    assert seen(made).succeeded == {"llm-1": SucceededPods(pods=1, at=end)}
    made.retain(Resource.PODS, set())
    assert seen(made).succeeded == {}


def test_an_object_says_itself_that_it_is_complete() -> None:
    made = watching((RESOURCE, train_job(complete="False")), (Resource.PODS, worker()))
    assert seen(made).succeeded == {}
    assert made.apply(RESOURCE, train_job(complete="True")) is ChangeEffect.DEMAND
    end = datetime(2026, 11, 20, 10, 4, tzinfo=UTC)
    assert seen(made).succeeded == {"llm-1": SucceededPods(pods=0, at=end, objects=1)}
    assert seen(made).unfinished == set()


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again by its engine"])
def test_an_end_that_was_said_stays_known_without_its_object_for_a_day(again: bool) -> None:
    made = watching((RESOURCE, train_job(complete="True", uid="1")))
    made.remove(RESOURCE, "demo/llm")
    if again:
        made.apply(RESOURCE, train_job(uid="2"))
    end = datetime(2026, 11, 20, 10, 4, tzinfo=UTC)
    assert seen(made).succeeded == {"llm-1": SucceededPods(pods=0, at=end, objects=1)}
    assert seen(made).failed == {}
    assert made.observation(ClusterName("worker-2"), AT + timedelta(days=2)).succeeded == {}


def test_an_object_that_goes_on_has_not_ended() -> None:
    made = watching((RESOURCE, train_job(complete="True", uid="1")))
    made.apply(RESOURCE, train_job(uid="1"))
    assert (seen(made).succeeded, seen(made).unfinished) == ({}, {"llm-1"})


def test_an_object_says_itself_that_it_has_failed_in_one_line() -> None:
    failed = train_job()
    said = {"type": "Failed", "status": "True", "lastTransitionTime": END, "message": "jobset failed\ndue to a Job"}
    failed["status"]["conditions"].append(said)
    made = watching((RESOURCE, failed))
    message = "TrainJob llm has failed: jobset failed due to a Job"
    since = datetime(2026, 11, 20, 10, 4, tzinfo=UTC)
    assert seen(made).failed == {"llm-1": FailedObject(message=message, since=since)}
    assert seen(made).failed is seen(made).failed
    made.apply(RESOURCE, train_job())
    assert seen(made).failed == {}


def test_the_words_of_a_failure_are_redacted_and_bounded() -> None:
    failed = train_job()
    words = f"pull of https://bot:{'s3cret' * 3}@registry.example/a failed{' again' * 5000}"
    said = {"type": "Failed", "status": "True", "lastTransitionTime": END, "message": words}
    failed["status"]["conditions"].append(said)
    message = seen(watching((RESOURCE, failed))).failed["llm-1"].message
    assert "s3cret" not in message
    assert len(message) < 2000


def test_objects_that_are_watched_for_placements_are_listed_again_once_they_are_workloads() -> None:
    made = watching((RESOURCE, train_job()))
    ours = WorkloadRef(namespace="demo", name="llm", kind="TrainJob", group="trainer.kubeflow.org")
    (as_workloads,) = custom_resources({ours})
    assert as_workloads in made.follow(frozenset({ours}), BUILT_IN_MARKS, placed={TRAIN_JOBS})
    assert as_workloads not in made.follow(frozenset({ours}), BUILT_IN_MARKS, placed={TRAIN_JOBS})
    assert made.customs == {as_workloads, RESOURCE}


def test_nothing_but_a_fleet_with_such_a_kind_has_it_watched() -> None:
    made = ClusterState()
    assert made.customs == frozenset()
    made.apply(Resource.PODS, worker())
    relisted = {Resource.PODS, Resource.QUEUED, Resource.EVENTS, RESOURCE}
    assert made.follow(frozenset(), BUILT_IN_MARKS, placed={TRAIN_JOBS}) == relisted
    assert made.customs == {RESOURCE}
    made.apply(RESOURCE, train_job())
    made.apply(Resource.PODS, worker())
    assert seen(made).bound == {"llm-1": 1}
    assert made.follow(frozenset()) == {Resource.PODS, Resource.QUEUED, Resource.EVENTS}
    made.apply(Resource.PODS, worker())
    assert (made.customs, seen(made).bound) == (frozenset(), {})


def test_how_a_run_ended_is_unknown_while_its_kind_cannot_be_read() -> None:
    failed = train_job("llm-2", name="other")
    failed["status"]["conditions"].append({"type": "Failed", "status": "True", "lastTransitionTime": END})
    made = watching((RESOURCE, train_job(complete="True")), (RESOURCE, failed), (Resource.PODS, worker()))
    assert (seen(made).succeeded.keys(), seen(made).failed.keys()) == ({"llm-1"}, {"llm-2"})
    unread = made.observation(ClusterName("worker-2"), AT, frozenset({RESOURCE}))
    assert (unread.succeeded, unread.failed, unread.bound) == ({}, {}, {"llm-1": 1})
    assert seen(made).failed.keys() == {"llm-2"}


PODS_OF_TEMPLATES = WorkloadRef(namespace="", name="", kind="Pod")


def bare(phase: str, uid: str = "1", **metadata: Json) -> Json:
    """Return a pod that is an object of a placement itself."""
    raw = pod("smoke", "gpu-1", owner=None, labels={LABEL: "smoke-1"}, phase=phase)
    raw["metadata"] |= {"uid": uid, **metadata}
    return raw


def watching_pods(*raws: Json, placed: WorkloadRef = PODS_OF_TEMPLATES) -> ClusterObservation:
    made = ClusterState(placed={placed})
    for raw in raws:
        made.apply(Resource.PODS, raw)
    return seen(made)


def test_a_pod_that_is_an_object_of_a_placement_says_how_its_run_has_ended() -> None:
    assert watching_pods(bare("Running")).unfinished == {"smoke-1"}
    assert watching_pods(bare("Running"), bare("Succeeded")).succeeded["smoke-1"].objects == 1
    failed = watching_pods(bare("Running"), bare("Failed"))
    assert failed.failed["smoke-1"].message == "Pod smoke has failed"
    assert failed.unfinished == set()


@pytest.mark.parametrize(
    "metadata",
    [
        {"deletionTimestamp": END},
        {"annotations": {"helm.sh/hook": "test"}},
        {"ownerReferences": [{"kind": "Job", "name": "smoke", "controller": True}]},
        {"labels": {}},
    ],
    ids=["is being deleted", "a hook of a chart", "its Job makes another", "no placement's"],
)
def test_the_failure_of_any_other_pod_is_none_of_a_placement(metadata: Json) -> None:
    assert watching_pods(bare("Failed", **metadata)).failed == {}
    assert watching_pods(bare("Failed"), placed=TRAIN_JOBS).failed == {}


def test_a_pod_that_failed_is_not_kept_once_it_is_gone_from_a_list_but_its_end_is() -> None:
    made = ClusterState(placed={PODS_OF_TEMPLATES})
    assert made.apply(Resource.PODS, bare("Failed")) is ChangeEffect.DEMAND
    assert made.apply(Resource.PODS, bare("Failed")) is ChangeEffect.NOTHING
    assert made.keys(Resource.PODS) == {"demo/smoke"}
    made.retain(Resource.PODS, set())
    assert made.keys(Resource.PODS) == set()
    made.apply(Resource.PODS, bare("Running", uid="2"))
    assert "smoke-1" in seen(made).failed
