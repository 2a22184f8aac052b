"""The JobSet of a TrainJob and its runtime, by the rules of Trainer 2.0.0."""

from __future__ import annotations

import pytest

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.pod_requirements import pods_of_spec
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.train_job import job_set, runtime_ref
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.workload import DeploySpec, Json, ManifestResource, Step, StepType
from tests.builders.inputs import GPU
from tests.builders.train_jobs import mpi, of_namespace, replicated, runtime, train_job

EIGHT = {"limits": {GPU: "8"}}


def patch(manager: str, job: str, pool: str) -> Json:
    """Make a patch of one manager that has the pods of a replicated job choose a pool of nodes."""
    pod = {"spec": {"nodeSelector": {"pool": pool}}}
    replicated = [{"name": job, "template": {"spec": {"template": pod}}}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": replicated}}}}


def pods(job: Json, *referred: Json, kinds: dict[str, WorkloadKind] | None = None) -> dict[int, int]:
    """Count the pods of a TrainJob by their GPUs; none where they are unknown."""
    return {gpus_of_pod(part.shape): part.replicas for part in read(job, *referred, kinds=kinds).parts}


def read(job: Json, *referred: Json, kinds: dict[str, WorkloadKind] | None = None):
    spec = DeploySpec(
        manifests=(ManifestResource(name="train", manifest=job),),
        steps=(Step(name="train", type=StepType.MANIFEST),),
        referred=referred,
    )
    return pods_of_spec(spec, kinds or NO_KINDS)


@pytest.mark.parametrize(
    ("nodes", "stated", "number"),
    [(1, None, 1), (4, None, 4), (None, None, 1), (4, 2, 2), (None, 3, 3), (4, "{{ replicas }}", 1)],
)
def test_the_nodes_of_the_job_go_before_those_of_its_runtime(nodes: int | None, stated: Json, number: int) -> None:
    job = train_job(trainer=None if stated is None else {"numNodes": stated})
    assert pods(job, runtime(replicated(gpus=2), nodes=nodes)) == {2: number}
    assert pods(job, runtime(replicated(gpus=2), nodes=nodes, coscheduling={})) == {2: number}


def test_a_runtime_without_a_policy_has_the_parallelism_of_its_job() -> None:
    made = runtime(replicated(gpus=1, parallelism=3))
    del made["spec"]["mlPolicy"]
    assert pods(train_job(), made) == {1: 3}
    assert pods(train_job(trainer={"numNodes": 5}), made) == {1: 5}


@pytest.mark.parametrize(
    ("stated", "gpus"),
    [(None, 4), ({}, 4), ({"requests": {}}, 4), (EIGHT, 8), ({"requests": {"cpu": "1"}}, 0)],
    ids=["none", "empty", "an empty part", "limits", "requests without the GPUs"],
)
def test_resources_of_the_job_replace_those_of_its_runtime(stated: Json, gpus: int) -> None:
    job = train_job(trainer=None if stated is None else {"resourcesPerNode": stated})
    assert pods(job, runtime(replicated(gpus=4))) == {gpus: 1}


def test_a_job_without_any_resources_makes_pods_that_ask_for_nothing() -> None:
    """Trainer's own example: they still count, as pods."""
    made = read(train_job(), runtime())
    assert [(part.replicas, part.shape.requests.amounts) for part in made.parts] == [(1, {})]
    [gang] = made.gangs
    assert (gang.name, gang.called, gang.size) == ("TrainJob mnist", "job", 1)


@pytest.mark.parametrize(
    ("as_node", "stated", "workers"), [(True, 4, 3), (True, 1, 1), (False, 4, 4), (True, None, 1), (False, None, 1)]
)
def test_with_mpi_the_launcher_may_be_one_of_the_nodes(as_node: bool, stated: int | None, workers: int) -> None:
    job = train_job("mpi-distributed", trainer=None if stated is None else {"numNodes": stated})
    assert pods(job, mpi(as_node=as_node)) == {1: 1, 8: workers}


def test_with_mpi_only_the_launcher_has_the_resources_of_the_job() -> None:
    """Trainer 2.0.0 writes them into the jobs with the label of the trainer, and the workers have none."""
    job = train_job("mpi-distributed", trainer={"numNodes": 3, "resourcesPerNode": {"limits": {GPU: "2"}}})
    assert pods(job, mpi()) == {2: 1, 8: 2}


def test_initializers_are_counted_once_each() -> None:
    first = {**replicated("dataset-initializer", "dataset-initializer"), "replicas": 4}
    job = train_job(trainer={"numNodes": 2, "resourcesPerNode": EIGHT})
    assert pods(job, runtime(first, replicated())) == {0: 1, 8: 2}


@pytest.mark.parametrize(
    "overrides",
    [
        {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"pool": "h100"}}]},
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"pool": "h100"}}}]},
        {"runtimePatches": [patch("kueue.x-k8s.io/manager", "node", "h100")]},
        {"runtimePatches": [patch("a", "node", "a100"), {"manager": "b"}, patch("c", "node", "h100")]},
    ],
    ids=["Trainer 2.0", "Trainer 2.1", "Trainer 2.2", "several managers"],
)
def test_overrides_of_the_job_change_the_pods_that_they_name(overrides: Json) -> None:
    first = replicated("dataset-initializer", "dataset-initializer")
    made = job_set(train_job(**overrides), runtime(first, replicated()))
    chosen = [
        each["template"]["spec"]["template"]["spec"].get("nodeSelector") for each in made["spec"]["replicatedJobs"]
    ]
    assert chosen == [None, {"pool": "h100"}]


def test_patches_of_the_job_change_the_labels_and_annotations_of_what_is_made_of_it() -> None:
    topology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    changed = {"metadata": {"labels": {"team": "b"}, "annotations": {topology: "rack"}}}
    written = runtime()
    written["spec"]["template"]["metadata"] = {"labels": {"team": "a", "part": "x"}}
    job = train_job(runtimePatches=[{"manager": "a", "trainingRuntimeSpec": {"template": changed}}])
    metadata = job_set(job, written)["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"team": "b", "part": "x"}, {topology: "rack"})
    assert written["spec"]["template"]["metadata"] == {"labels": {"team": "a", "part": "x"}}


def test_a_suspended_job_makes_no_pods_unless_kueue_resumes_it() -> None:
    job = train_job(suspend=True)
    assert pods(job, runtime(nodes=2)) == {}
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    assert pods(job, runtime(nodes=2)) == {0: 2}


def test_a_runtime_is_the_one_that_the_job_names() -> None:
    own = of_namespace(runtime(replicated(gpus=2)))
    assert pods(train_job(), own) == {}
    assert pods(train_job(kind="TrainingRuntime"), runtime(), own) == {2: 1}
    assert pods(train_job(kind="TrainingRuntime"), of_namespace(runtime(), "other")) == {}
    assert pods(train_job("other"), runtime()) == {}


def test_a_runtime_of_another_project_is_none_that_is_known() -> None:
    job = train_job()
    job["spec"]["runtimeRef"] |= {"apiGroup": "example.com"}
    assert runtime_ref(job) is None
    assert pods(job, runtime()) == {}


def test_what_nobody_has_seen_is_named_with_the_ways_out() -> None:
    [strange] = read(train_job()).strange
    assert strange.startswith("train (nobody has seen its ClusterTrainingRuntime torch-distributed: let the daemon")
    assert "state spec.trainer.numNodes and resourcesPerNode" in strange
    [strange] = read(train_job(kind="TrainingRuntime")).strange
    assert "its TrainingRuntime demo/torch-distributed" in strange


@pytest.mark.parametrize("spec", [{}, {"template": {}}, {"template": {"spec": {"replicatedJobs": [{}]}}}, None])
def test_a_runtime_that_cannot_be_read_is_named(spec: Json) -> None:
    [strange] = read(train_job(), {**runtime(), "spec": spec}).strange
    assert strange.startswith("train (ClusterTrainingRuntime torch-distributed cannot be read")


def test_a_job_that_states_all_of_its_pods_needs_no_runtime_to_be_seen() -> None:
    assert pods(train_job(trainer={"numNodes": 2, "resourcesPerNode": EIGHT})) == {8: 2}


def test_a_kind_of_the_fleet_says_itself_what_such_jobs_make() -> None:
    own = WorkloadKind(group="trainer.kubeflow.org", kind="TrainJob", counted=False)
    assert read(train_job(), runtime(replicated(gpus=2)), kinds={own.name: own}).parts == ()
