"""An object that cannot be read costs itself alone: others that refer to it, or that it refers to, are read on."""

from __future__ import annotations

import pytest

from reconciler.adapters.kube.unreadable_objects import UnreadableObjects
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import CustomResource, Resource, custom_resources
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import ClusterObservation, WorkloadObservation
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.gangs import torch
from tests.builders.kube_objects import NO_GPU, pod, queued
from tests.builders.kube_objects import workload as workload_object
from tests.observe.test_placed_objects import END, RESOURCE, TRAIN_JOBS, seen, train_job, worker

REF = WorkloadRef(namespace="demo", name="llm", kind="TrainJob")
NODES = {"numNodes": 3, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}}}
BROKEN = "2026-11-20T10:99:00Z"


class Cluster:
    """A cluster that is watched, and what cannot be read of it."""

    def __init__(self, *refs: WorkloadRef) -> None:
        self.state = ClusterState(frozenset(refs), placed={TRAIN_JOBS})
        self.unreadable = UnreadableObjects()

    def apply(self, resource: Resource | CustomResource, raw: Json) -> ChangeEffect:
        return self.unreadable.apply(resource, raw, self.state.steps(resource, raw))

    def seen(self) -> ClusterObservation:
        return seen(self.state)

    def told(self) -> list[str]:
        return [problem.path for problem in self.unreadable.problems("worker-2")]


def waiting(name: str = "broken", since: str = BROKEN) -> Json:
    """Make a pod of a TrainJob without a node since a moment."""
    return worker(name, "", waits=NO_GPU, since=since)


@pytest.mark.parametrize("pods_first", [True, False])
def test_train_job_counts_by_its_other_pods_where_one_cannot_be_read(pods_first: bool) -> None:
    cluster = Cluster()
    pods = [(Resource.PODS, worker("a")), (Resource.PODS, waiting()), (Resource.PODS, worker("c"))]
    job = [(RESOURCE, train_job())]
    for resource, raw in pods + job if pods_first else job + pods:
        cluster.apply(resource, raw)
    assert cluster.seen().bound == {"llm-1": 2}
    assert cluster.told() == ["worker-2: pods demo/broken"]
    assert cluster.apply(RESOURCE, train_job("llm-2")) is ChangeEffect.DEMAND
    assert cluster.seen().bound == {"llm-2": 2}
    assert cluster.told() == ["worker-2: pods demo/broken"]
    cluster.apply(Resource.PODS, worker("broken"))
    assert (cluster.seen().bound, cluster.told()) == ({"llm-2": 3}, [])


def test_pod_that_cannot_be_read_any_more_goes_with_its_train_job_as_it_was_read_last() -> None:
    cluster = Cluster()
    for resource, raw in ((RESOURCE, train_job()), (Resource.PODS, worker("broken")), (Resource.PODS, waiting())):
        cluster.apply(resource, raw)
    assert cluster.seen().bound == {"llm-1": 1}
    cluster.apply(RESOURCE, train_job("llm-2"))
    assert cluster.seen().bound == {"llm-2": 1}
    assert cluster.told() == ["worker-2: pods demo/broken"]
    cluster.state.remove(Resource.PODS, "demo/broken")
    assert cluster.seen().bound == {}


def test_pod_whose_end_cannot_be_read_stays_a_pod_that_has_not_finished() -> None:
    cluster = Cluster()
    cluster.apply(RESOURCE, train_job())
    cluster.apply(Resource.PODS, worker())
    done = worker(phase="Succeeded")
    done["status"]["containerStatuses"] = [{"state": {"terminated": {"finishedAt": BROKEN}}}]
    assert cluster.apply(Resource.PODS, done) is ChangeEffect.NOTHING
    assert (cluster.seen().bound, cluster.seen().succeeded) == ({"llm-1": 1}, {})
    assert cluster.told() == ["worker-2: pods demo/a"]


def test_train_job_that_cannot_be_read_keeps_its_pods_where_they_were() -> None:
    cluster = Cluster()
    for resource, raw in ((RESOURCE, train_job()), (Resource.PODS, worker())):
        cluster.apply(resource, raw)
    broken = train_job("llm-2", complete="True")
    broken["status"]["conditions"][-1]["lastTransitionTime"] = BROKEN
    cluster.apply(RESOURCE, broken)
    assert (cluster.seen().bound, cluster.seen().succeeded) == ({"llm-1": 1}, {})
    assert cluster.told() == ["worker-2: trainjobs.trainer.kubeflow.org demo/llm"]


def test_object_whose_end_cannot_be_read_says_its_replicas_all_the_same() -> None:
    cluster = Cluster(REF)
    cluster.apply(Resource.PODS, worker())
    broken = {**train_job(complete="True"), "spec": {"runtimeRef": {"name": "torch"}, "trainer": NODES}}
    broken["status"]["conditions"][-1]["lastTransitionTime"] = BROKEN
    (as_workload,) = custom_resources({REF})
    assert cluster.apply(as_workload, broken) is ChangeEffect.DEMAND
    cluster.apply(RESOURCE, broken)
    assert workload(cluster).wanted == 0  # it has ended, though nobody can say when
    assert cluster.told() == ["worker-2: trainjobs.trainer.kubeflow.org demo/llm"]


def workload(cluster: Cluster) -> WorkloadObservation:
    (found,) = cluster.seen().workloads
    return found


def test_workload_of_kueue_that_cannot_be_read_says_what_it_said_as_a_whole() -> None:
    cluster = Cluster(WorkloadRef(namespace="demo", name="train", kind="Job"))
    made = queued()
    cluster.apply(Resource.JOBS, {**workload_object("train"), "spec": {"suspend": True}})
    cluster.apply(Resource.QUEUED, made)
    before = workload(cluster)
    assert before.asks
    broken = queued()
    broken["status"] = {
        "conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": END}],
        "admissionChecks": [3],
    }
    assert cluster.apply(Resource.QUEUED, broken) is ChangeEffect.NOTHING
    assert workload(cluster) == before
    assert cluster.told() == ["worker-2: workloads.kueue.x-k8s.io demo/job-train-1a2b3"]


def test_pods_of_other_kinds_are_read_beside_one_that_cannot_be() -> None:
    ref = WorkloadRef(namespace="demo", name="model", kind="PyTorchJob")
    cluster = Cluster(ref)
    (resource,) = (each for each in cluster.state.customs if each.kind == "PyTorchJob")
    cluster.apply(resource, torch(3))
    labels = {"training.kubeflow.org/job-name": "model", "training.kubeflow.org/operator-name": "pytorchjob-controller"}
    for name, since in (("a", END), ("b", BROKEN), ("c", END)):
        owner = ("PyTorchJob", "model")
        cluster.apply(Resource.PODS, pod(name, owner=owner, labels=labels, waits=NO_GPU, since=since))
    found = workload(cluster)
    assert (found.wanted, sum(each.replicas for each in found.waiting)) == (4, 2)
    assert cluster.told() == ["worker-2: pods demo/b"]
