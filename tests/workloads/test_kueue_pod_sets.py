"""Which pods of each kind of workload are one pod set of Kueue, as its reconcilers make them."""

from __future__ import annotations

import pytest

from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.kueue_pod_sets import kueue_pod_sets
from reconciler.core.workloads.pods import read_pods
from reconciler.model.workload import Json
from tests.builders.workload_kinds import SAMPLES, lws, template

SINGLE = frozenset(
    {
        "Pod",
        "ReplicationController",
        "Deployment",
        "ReplicaSet",
        "CloneSet",
        "StatefulSet of OpenKruise",
        "Rollout",
        "PodCliqueSet",
        "Job of Volcano",
        "InferenceService",
    }
)
"""Kueue has no integration of these kinds, or admits their pods one by one."""

SIZES = {
    "StatefulSet": [3],
    "DaemonSet": [],
    "Job": [3],
    "CronJob": [],
    "DaemonSet of OpenKruise": [],
    "UnitedDeployment": [3],
    "BroadcastJob": [],
    "AdvancedCronJob": [],
    "LeaderWorkerSet": [4],
    "LeaderWorkerSet with a leader of its own": [1, 3],
    "LeaderWorkerSet of leaders alone": [1],
    "DisaggregatedSet": [4, 1, 3],
    "JobSet": [1, 8],
    "TFJob": [2, 4, 1],
    "PyTorchJob": [1, 3],
    "PaddleJob": [1, 3],
    "XGBoostJob": [1, 2],
    "JAXJob": [2],
    "MPIJob": [1, 2],
    "MPIJob v2beta1": [1, 2],
    "TrainJob": [4],
    "RayCluster": [1, 6],
    "RayCluster with too few workers": [1, 2],
    "RayJob": [1, 3, 1],
    "RayJob on a cluster that is there": [],
    "RayService": [1, 3],
    "LLMInferenceService": [2, 6, 3, 1],
    "LLMInferenceService in a pipeline": [1, 2],
    "AppWrapper": [2],
    "AppWrapper of several objects": [1, 3, 3],
    "DynamoGraphDeployment v1alpha1": [1, 4],
    "DynamoGraphDeployment v1beta1": [1, 4],
}
"""The pods of each pod set of one group, in the order of the templates."""


def sizes(made: Json) -> list[int]:
    return [pod_set.size for pod_set in kueue_pod_sets(made, NO_KINDS, list(read_pods(made, NO_KINDS)))]


def test_every_kind_has_its_pod_sets_stated() -> None:
    assert SINGLE.isdisjoint(SIZES)
    assert SINGLE | SIZES.keys() == SAMPLES.keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_pods_of_one_template_and_group_are_one_pod_set(name: str) -> None:
    made, _ = SAMPLES[name]
    assert sizes(made) == SIZES.get(name, [])


def test_a_leader_without_a_template_of_its_own_is_in_the_pod_set_of_its_workers() -> None:
    made = lws(3, 5)
    (pod_set,) = kueue_pod_sets(made, NO_KINDS, list(read_pods(made, NO_KINDS)))
    assert pod_set.parts == ((0, 1), (1, 4))


def test_the_annotations_of_a_pod_set_are_those_of_its_template() -> None:
    made = lws(1, 3, leader=1)
    leader = {**template(1), "metadata": {"annotations": {"of": "leader"}}}
    made["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = leader
    read = kueue_pod_sets(made, NO_KINDS, list(read_pods(made, NO_KINDS)))
    assert [dict(pod_set.annotations) for pod_set in read] == [{"of": "leader"}, {}]
