"""The runtimes of TrainJobs, which a template refers to and the primary has."""

from __future__ import annotations

import json

import pytest

from reconciler.core.fleet.watched_workloads import live_sources
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.live_objects import observed_object
from reconciler.core.observe.kubernetes.resources import TRAINING_RUNTIMES, Resource, needed_resources
from reconciler.model.action import Action
from reconciler.model.ids import ClusterName
from reconciler.model.manifest_source import WorkloadSource
from reconciler.model.plan import Reason
from reconciler.model.workload import Json
from tests.builders.fleet_files import errors
from tests.builders.passes import SOURCE_FILES, START, Passes
from tests.builders.train_jobs import of_namespace, replicated, runtime, train_job
from tests.fakes.memory_repository import MemoryRepository

TORCH = WorkloadSource(
    kind="ClusterTrainingRuntime", group="trainer.kubeflow.org", namespace="", name="torch-distributed"
)
PRIMARY = ClusterName("worker-1")


def template(*manifests: Json) -> str:
    """Write the template of a TrainJob, which may run twice: nothing holds it at home."""
    resources = [{"name": f"part-{index}", "manifest": manifest} for index, manifest in enumerate(manifests)]
    return json.dumps(
        {
            "apiVersion": "gpr.kubeslice.io/v1alpha1",
            "kind": "WorkloadTemplate",
            "metadata": {
                "name": "mnist",
                "namespace": "kubeslice-demo",
                "annotations": {"overspill.dev/workload": "TrainJob/demo/mnist", "overspill.dev/runs-once": "false"},
            },
            "spec": {
                "workspaceName": "llm",
                "burstDuration": "10m",
                "manifestResources": resources,
                "steps": [{"name": each["name"], "type": "manifest"} for each in resources],
            },
        }
    )


def passes_of(*manifests: Json) -> Passes:
    made = Passes(MemoryRepository({**SOURCE_FILES, "template.yaml": template(*manifests)}))
    made.names, made.missing = ("mnist",), 1
    return made


def test_a_job_bursts_by_what_the_runtime_on_its_primary_says() -> None:
    passes = passes_of(train_job())
    passes.objects = (observed_object(runtime(replicated(gpus=4), nodes=2)),)
    decision = passes.look()
    assert errors(decision.inputs.desired) == []
    [place] = [change for change in decision.plan.changes if change.action is Action.PLACE]
    # Two pods of four GPUs have room on worker-3 alone.
    assert (place.placement.cluster, place.placement.shape.group_size) == ("worker-3", 2)


def test_a_job_whose_runtime_nobody_has_seen_is_held_back_with_its_name() -> None:
    [held] = passes_of(train_job()).look().plan.suppressed
    assert held.reason is Reason.NO_SHAPE
    assert "nobody has seen its ClusterTrainingRuntime torch-distributed" in held.message
    assert "state spec.trainer.numNodes and resourcesPerNode" in held.message


def test_a_change_of_the_runtime_counts_from_the_next_pass_on() -> None:
    passes = passes_of(train_job())
    passes.objects = (observed_object(runtime(replicated(gpus=4), nodes=100)),)
    assert not passes.look().plan.changes
    passes.objects = (observed_object(runtime(replicated(gpus=4), nodes=1)),)
    assert passes.look().plan.changes


def test_the_runtime_of_a_template_goes_before_that_of_the_primary() -> None:
    brought = of_namespace(runtime(replicated(gpus=4)))
    desired = passes_of(train_job(kind="TrainingRuntime"), brought).look().inputs.desired
    [own] = desired.templates.values()
    assert [each["kind"] for each in own.spec.referred] == ["TrainingRuntime"]
    assert live_sources(desired, PRIMARY) == frozenset()


@pytest.mark.parametrize(
    ("job", "source"),
    [
        (train_job(), TORCH),
        (train_job(kind="ClusterTrainingRuntime"), TORCH),
        (
            train_job(kind="TrainingRuntime"),
            WorkloadSource(
                kind="TrainingRuntime", group="trainer.kubeflow.org", namespace="demo", name="torch-distributed"
            ),
        ),
    ],
)
def test_the_runtime_is_followed_on_the_primary(job: Json, source: WorkloadSource) -> None:
    desired = passes_of(job).look().inputs.desired
    assert live_sources(desired, PRIMARY) == {source}
    assert live_sources(desired, ClusterName("worker-2")) == frozenset()
    [watched] = needed_resources((), sources=live_sources(desired, PRIMARY)) & TRAINING_RUNTIMES
    assert watched.kind == source.kind


def test_a_cluster_is_watched_for_no_runtimes_unless_a_job_refers_to_one() -> None:
    assert not needed_resources(()) & TRAINING_RUNTIMES


def test_a_watched_cluster_shows_the_runtimes_that_are_followed() -> None:
    state = ClusterState(sources=frozenset({TORCH}))
    made = runtime()
    raw = {"metadata": {**made["metadata"], "uid": "u", "resourceVersion": "7"}, "spec": made["spec"]}
    state.apply(Resource.CLUSTER_RUNTIMES, raw, made["apiVersion"])
    state.apply(Resource.CLUSTER_RUNTIMES, {**raw, "metadata": {"name": "other"}}, made["apiVersion"])
    assert [each.manifest for each in state.observation(PRIMARY, START).objects] == [made]
    state.retain(Resource.CLUSTER_RUNTIMES, set())
    assert state.observation(PRIMARY, START).objects == ()


def test_a_runtime_that_is_followed_from_now_on_is_listed_anew() -> None:
    state = ClusterState()
    assert state.follow(frozenset(), sources=frozenset({TORCH})) == {Resource.CLUSTER_RUNTIMES}
    assert state.follow(frozenset(), sources=frozenset({TORCH})) == set()
