"""Numbers of pods that cannot be read, or that no gang ever starts with, are told at their field with a way out."""

from __future__ import annotations

import pytest

from reconciler.core.workloads import pod_counts
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS
from reconciler.core.workloads.pods import read_pods, unknown_field
from reconciler.model.kubernetes.workload_kind import Count, Group, PodTemplate, WorkloadKind, path
from reconciler.model.workload import Json
from reconciler.text.findings import dotted
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load
from tests.builders.workload_kinds import SAMPLES, lws, pod, template, workload
from tests.workloads.test_kind_rules import findings


def volcano(least: Json = 3, replicas: Json = 4, **worker: Json) -> Json:
    """Make a job of Volcano's of one master and so many workers."""
    tasks = [
        {"name": "master", "replicas": 1, "template": template()},
        {"name": "worker", "replicas": replicas, "template": template(2), **worker},
    ]
    return workload("batch.volcano.sh/v1alpha1", "Job", {"minAvailable": least, "tasks": tasks})


def pytorch(workers: Json = 3, **spec: Json) -> Json:
    """Make a PyTorchJob of a master and so many workers."""
    roles = {
        "Master": {"replicas": 1, "template": template(8)},
        "Worker": {"replicas": workers, "template": template()},
    }
    return workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles, **spec})


def elastic(least: Json, most: Json) -> Json:
    return pytorch(elasticPolicy={"minReplicas": least, "maxReplicas": most})


def ray(**group: Json) -> Json:
    groups = [{"groupName": "gpu", "replicas": 3, "template": template(4), **group}]
    return workload("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups})


def cliques(**clique: Json) -> Json:
    one = {"name": "worker", "spec": {"replicas": 3, "podSpec": pod(8), **clique}}
    return workload("grove.io/v1alpha1", "PodCliqueSet", {"replicas": 1, "template": {"cliques": [one]}})


SIZE = "spec.leaderWorkerTemplate.size"
WRONG = {
    "a text with digits": (lws(2, "4"), SIZE, "takes a whole number, not '4' (try 4)"),
    "a word": (lws(2, "four"), SIZE, "takes a whole number, not 'four' (try 1)"),
    "a fraction": (lws(2, 4.0), SIZE, "takes a whole number, not '4.0' (try 4)"),
    "a truth": (lws(True), "spec.replicas", "takes a whole number, not 'True' (try 1)"),
    "a list": (lws([2]), "spec.replicas", "takes a whole number, not a list (try 1)"),
    "a minimum that is a word": (volcano("three"), "spec.minAvailable", "takes a whole number, not 'three' (try 1)"),
    "a minimum above all pods": (
        volcano(9),
        "spec.minAvailable",
        "is 9, and there are 5 pods, so that none of them ever starts (try 5)",
    ),
    "fewer than no replicas": (
        volcano(1, -4),
        "spec.tasks.1.replicas",
        "is -4, and no number of pods is below 0 (try 4)",
    ),
    "a minimum above the replicas of a task": (
        volcano(minAvailable=6),
        "spec.tasks.1.minAvailable",
        "is 6, and replicas is 4 (try 4)",
    ),
    "a minimum above the maximum": (
        elastic(7, 4),
        "spec.elasticPolicy.minReplicas",
        "is 7, and maxReplicas is 4 (try 4)",
    ),
    "a maximum that is a text": (
        elastic(1, "8"),
        "spec.elasticPolicy.maxReplicas",
        "takes a whole number, not '8' (try 8)",
    ),
    "a gang of more pods than a job has": (
        pytorch(runPolicy={"schedulingPolicy": {"minAvailable": 5}}),
        "spec.runPolicy.schedulingPolicy.minAvailable",
        "is 5, and there are 4 pods, so that none of them ever starts (try 4)",
    ),
    "a minimum of workers above their maximum": (
        ray(minReplicas=5, maxReplicas=2),
        "spec.workerGroupSpecs.0.minReplicas",
        "is 5, and maxReplicas is 2 (try 2)",
    ),
    "a minimum above a clique": (
        cliques(minAvailable=4),
        "spec.template.cliques.0.spec.minAvailable",
        "is 4, and replicas is 3 (try 3)",
    ),
    "replicas of a Deployment": (
        workload("apps/v1", "Deployment", {"replicas": "3", "template": template(1)}),
        "spec.replicas",
        "takes a whole number, not '3' (try 3)",
    ),
}


@pytest.mark.parametrize(("made", "where", "told"), WRONG.values(), ids=WRONG)
def test_it_is_told_once_and_at_its_field(made: Json, where: str, told: str) -> None:
    (finding,) = findings(made)
    assert ".".join(map(str, finding.loc[4:])) == where
    assert f"{finding.message} ({finding.hint})" == told


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_is_wrong_with_the_samples_of_any_kind(name: str) -> None:
    assert [*pod_counts.check_counts(SAMPLES[name][0])] == []


RIGHT = {
    "expressions": lws("{{ replicas }}", "{{ replicas }}"),
    "a minimum of what an expression gives": volcano(9, "{{ replicas }}"),
    "a minimum of all pods": volcano(5, minAvailable=4),
    "a minimum of elastic workers above their master": elastic(2, 4),
    "a gang of more pods than an elastic job begins with": pytorch(
        elasticPolicy={"minReplicas": 3, "maxReplicas": 8}, runPolicy={"schedulingPolicy": {"minAvailable": 6}}
    ),
    "no replicas at all": volcano(1, 0),
    "a version that nobody knows": workload("batch.volcano.sh/v9", "Job", {"minAvailable": "50%"}),
}


@pytest.mark.parametrize("made", RIGHT.values(), ids=RIGHT)
def test_what_may_be_meant_is_passed_over(made: Json) -> None:
    assert findings(made) == []


def test_the_numbers_of_a_kind_that_is_declared_are_looked_at_as_well() -> None:
    count = Count(path=path("spec.roles.*.size"), enough=path("spec.roles.*.least"))
    one = PodTemplate(spec=path("spec.roles.*.template.spec"), counts=(count,))
    kind = WorkloadKind(group="game.example.com", kind="GameServerSet", templates=(one,))
    roles = [{"size": 2, "least": 3}, {"size": "2"}]
    made = workload("game.example.com/v1", "GameServerSet", {"roles": roles})
    found = [*pod_counts.check_counts(made, (), {kind.name: kind})]
    assert [dotted(finding.loc) for finding in found] == ["spec.roles[1].size", "spec.roles[0].least"]
    assert [*pod_counts.check_counts(made)] == []


def test_pods_of_a_template_that_may_be_missing_and_is_are_not_there_for_a_minimum() -> None:
    leader = PodTemplate(spec=path("spec.leader.spec"), optional=True)
    workers = PodTemplate(spec=path("spec.worker.spec"), counts=(Count(path=path("spec.size")),))
    room = Group(called="room", gang=path("spec.atLeast"))
    kind = WorkloadKind(group="game.example.com", kind="GameServerSet", templates=(leader, workers), together=room)

    def count_findings(**roles: Json) -> list[str]:
        made = workload("game.example.com/v1", "GameServerSet", {"size": 2, "atLeast": 3, **roles})
        return [finding.message for finding in pod_counts.check_counts(made, (), {kind.name: kind})]

    assert count_findings(worker=template()) == ["is 3, and there are 2 pods, so that none of them ever starts"]
    assert count_findings(worker=template(), leader=template()) == []


def test_a_template_of_the_fleet_is_refused_for_it() -> None:
    template = TEMPLATE.replace('replicas: "{{ replicas }}"', 'replicas: "3"')
    (error,) = errors(load({**FLEET, "templates/vllm.yaml": template}))
    assert error.endswith("manifest.spec.replicas: takes a whole number, not '3' (try 3)")


def test_a_request_is_refused_for_it_too() -> None:
    source = TEMPLATE.replace("kind: WorkloadTemplate", "kind: WorkloadPlacement").replace(
        "  name: vllm", "  name: now", 1
    )
    source = source.replace("  workspaceName: llm\n", "  workspaceName: llm\n  clusterNames: [worker-2]\n")
    source = source.replace('replicas: "{{ replicas }}"', "replicas: -2")
    (error,) = errors(load({**FLEET, "requests/now.yaml": source}))
    assert error.startswith("requests/now.yaml:")
    assert error.endswith("manifest.spec.replicas: is -2, and no number of pods is below 0 (try 2)")


TOPOLOGY = {"type": "ExclusiveSlice", "topology": "cloud.example.com/rack"}
APART = {"annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "cloud.example.com/rack"}}


@pytest.mark.parametrize(
    ("policy", "metadata"), [(TOPOLOGY, {}), (None, APART)], ids=["its placement policy", "the topology of a role"]
)
def test_a_set_of_slices_whose_pods_get_affinities_from_its_controller_is_not_counted(policy: Json, metadata: Json):
    made = SAMPLES["DisaggregatedSet"][0]
    first, *others = made["spec"]["roles"]
    spec = {**made["spec"], "roles": [{**first, "metadata": metadata}, *others]}
    assert unknown_field(made, BUILT_IN["disaggregatedset.x-k8s.io/DisaggregatedSet"]) is None
    changed = {**made, "spec": {**spec, **({"placementPolicy": policy} if policy else {})}}
    assert unknown_field(changed, BUILT_IN["disaggregatedset.x-k8s.io/DisaggregatedSet"]) is not None
    assert {pods.replicas for pods in read_pods(changed, NO_KINDS)} == {None}
