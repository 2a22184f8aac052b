"""What is looked into, and what is written, wherever objects of a kind have their pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

from reconciler.core.capacity.pod_requirements import pods_of_spec
from reconciler.core.safety import rules
from reconciler.core.workloads import pod_template
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS
from reconciler.core.workloads.single_run import runs_once
from reconciler.model.kubernetes.workload_kind import Count, PodTemplate, WorkloadKind, path
from reconciler.model.policy import EngineName
from reconciler.model.workload import Json
from reconciler.text.findings import dotted
from tests.builders.deploy_specs import WORKSPACE, files, objects, spec
from tests.builders.requests import manifests
from tests.builders.workload_kinds import SAMPLES, lws, workload

LABEL = "overspill.dev/placement"
UNLABELLED = {"CronJob", "TrainJob", "RayJob on a cluster that is there", "Pod"}
"""Samples without pods of their own, without a place for labels, or that are the pod."""


def written(made: Json) -> Json:
    """Write an object as a placement has it."""
    found = objects(spec(("web", made)), EngineName.MANIFESTS).values()
    (one,) = (one for one in found if one["kind"] == made["kind"])
    return one


def findings(made: Json, **kinds: object) -> list[rules.Finding]:
    """Find what is wrong below the spec of an object, in a workspace that allows what makes other objects."""
    workspace = replace(WORKSPACE, allowed_kinds=("workload.codeflare.dev/AppWrapper",))
    found = rules.check_safety(spec(("web", made)), workspace, **kinds)
    return [finding for finding in found if "metadata" not in finding.loc]


def containers(value: Json) -> Iterator[Json]:
    """Find every container below a value."""
    if isinstance(value, dict):
        if "resources" in value and ("image" in value or "modelFormat" in value):
            yield value
        for item in value.values():
            yield from containers(item)
    elif isinstance(value, list):
        for item in value:
            yield from containers(item)


def labelled(value: Json) -> int:
    """Count the places below a value that have our label."""
    if isinstance(value, dict):
        return (LABEL in value) + sum(labelled(item) for item in value.values())
    return sum(map(labelled, value)) if isinstance(value, list) else 0


def changed(made: Json, **fields: Json) -> Json:
    """Copy a sample with these fields in the last of its containers."""
    copy = workload(made["apiVersion"], made["kind"], _copy(made.get("spec", {})))
    *_, last = containers(copy)
    last.update(fields)
    return copy


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


WITH_CONTAINERS = [name for name, (made, _) in SAMPLES.items() if [*containers(made)]]


@pytest.mark.parametrize("name", WITH_CONTAINERS)
def test_a_variable_that_is_no_text_is_found_in_every_template(name: str):
    made = changed(SAMPLES[name][0], env=[{"name": "PORT", "value": 80}])
    (finding,) = findings(made)
    assert finding.loc[-3:] == ("env", 0, "value")
    assert finding.message == "Kubernetes takes a text here, not 80"


@pytest.mark.parametrize("name", WITH_CONTAINERS)
def test_an_amount_that_is_none_is_found_in_every_template(name: str):
    made = changed(SAMPLES[name][0], resources={"limits": {"cpu": "a lot"}})
    (finding,) = pod_template.check_pod_template(made)
    assert dotted(finding.loc).endswith("resources.limits.cpu")


def test_an_amount_that_stands_apart_is_looked_at():
    made = _copy(SAMPLES["TrainJob"][0])
    made["spec"]["trainer"]["resourcesPerNode"]["limits"] = {"cpu": "many"}
    (finding,) = pod_template.check_pod_template(made)
    assert dotted(finding.loc) == "spec.trainer.resourcesPerNode.limits.cpu"
    named_gpus = {"requests": {"gpu": "1", "gpuType": "gpu.intel.com/xe", "custom": {"rdma/ib": "1"}}}
    graph = {"services": {"Decode": {"resources": named_gpus}}}
    assert [*pod_template.check_pod_template(workload("nvidia.com/v1alpha1", "DynamoGraphDeployment", graph))] == []


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in UNLABELLED])
def test_the_pods_of_every_template_are_labelled_so_that_they_can_be_counted(name: str):
    made = written(SAMPLES[name][0])
    templates = len([*containers(SAMPLES[name][0])])
    assert labelled(made) >= 2
    assert labelled(made["spec"]) <= max(templates, 2)


def test_the_pods_of_a_template_without_a_spec_are_labelled_too():
    made = written(workload("apps/v1", "Deployment", {"template": {"metadata": {"annotations": {"at": "noon"}}}}))
    assert made["spec"]["template"]["metadata"]["labels"] == {LABEL: "vllm-7f3a"}


def test_a_workspace_has_to_allow_what_makes_objects_of_any_kind():
    (finding,) = [
        finding
        for finding in rules.check_safety(spec(("web", SAMPLES["AppWrapper"][0])), WORKSPACE)
        if "makes objects of any kind" in finding.message
    ]
    assert finding.message == "AppWrapper makes objects of any kind, which templates may not"


@pytest.mark.parametrize(
    ("inner", "strange", "once"),
    [
        (SAMPLES["Job"][0], False, True),
        (SAMPLES["Deployment"][0], False, False),
        (workload("example.com/v1", "Widget", {}), True, False),
        (SAMPLES["AppWrapper"][0], True, False),
        ("nothing", True, False),
    ],
    ids=["a Job", "a Deployment", "a kind in no table", "another wrapper", "no object"],
)
def test_what_wraps_an_object_has_its_pods_and_runs_as_it_does(inner: Json, strange: bool, once: bool):
    made = workload("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": inner}]})
    assert bool(pods_of_spec(manifests(made)).strange) is strange
    assert runs_once(manifests(made), None, NO_KINDS) is once


def test_a_leader_without_a_template_of_its_own_gets_none():
    made = written(lws())
    assert [*made["spec"]["leaderWorkerTemplate"]] == ["size", "workerTemplate"]
    worker = made["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    assert worker["metadata"]["labels"] == {"app": "model", LABEL: "vllm-7f3a"}


def test_a_kind_that_is_declared_is_looked_into_and_labelled_as_well():
    kind = WorkloadKind(
        group="game.example.com",
        kind="GameServerSet",
        templates=(
            PodTemplate(
                spec=path("spec.roles.*.template.spec"),
                labels=path("spec.roles.*.template.metadata.labels"),
                counts=(Count(path=path("spec.size")),),
            ),
        ),
    )
    kinds = {kind.name: kind}
    container = {"name": "main", "env": [{"name": "PORT", "value": 80}], "resources": {"limits": {"cpu": "many"}}}
    made = workload(
        "game.example.com/v1", "GameServerSet", {"roles": [{"template": {"spec": {"containers": [container]}}}]}
    )
    variable, told = findings(made, kinds=kinds)
    assert dotted(variable.loc) == (
        "spec.manifestResources[0].manifest.spec.roles[0].template.spec.containers[0].env[0].value"
    )
    (amount,) = pod_template.check_pod_template(made, (), kinds)
    assert dotted(amount.loc) == "spec.roles[0].template.spec.containers[0].resources.limits.cpu"
    assert told.loc[-len(amount.loc) :] == amount.loc
    assert [*pod_template.check_pod_template(made)] == []


def test_flux_leaves_the_replicas_of_what_is_autoscaled_alone_wherever_they_are():
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "model"}}
    named = {name: SAMPLES[name][0] for name in ("PyTorchJob", "LLMInferenceService")}
    parts = [("web", lws()), *named.items(), ("scaler", scaler)]
    made = {path: yaml.safe_load(data) for path, data in files(spec(*parts), EngineName.FLUX).items()}
    (stage,) = (one for one in made.values() if "ignore" in one.get("spec", {}))
    assert stage["spec"]["ignore"] == [
        {
            "paths": ["/spec/pytorchReplicaSpecs/Worker/replicas"],
            "target": {"group": r"kubeflow\.org", "kind": "PyTorchJob"},
        },
        {
            "paths": ["/spec/replicas"],
            "target": {"group": r"leaderworkerset\.x-k8s\.io", "kind": "LeaderWorkerSet"},
        },
    ]


def test_every_way_to_a_template_ends_where_a_pod_is_described():
    for kind in BUILT_IN.values():
        for one in kind.templates:
            assert one.spec or one.resources, kind.name
