"""What cannot become what its template says is told when files are read."""

from __future__ import annotations

import pytest

from tests.builders.fleet_files import (
    FLEET,
    TEMPLATE,
    WRAPPED_DEPLOYMENT,
    WRAPPING,
    load,
    warnings,
    workspace,
    wrapping,
)

STEP = "  steps:\n"


def with_objects(*manifests: str, template: str = TEMPLATE, name: str = "vllm") -> str:
    """Add objects to a template, each in a step of its own."""
    head, steps = template.replace("name: vllm", f"name: {name}").split(STEP)
    for number, manifest in enumerate(manifests):
        head += f"  - name: part-{number}\n    manifest: {manifest}\n"
        steps += f"  - name: part-{number}\n    type: manifest\n"
    return head + STEP + steps


def told(*manifests: str) -> list[str]:
    return warnings(load({**FLEET, "templates/vllm.yaml": with_objects(*manifests)}))


JOB = (
    "{apiVersion: batch/v1, kind: Job, metadata: {name: prep, namespace: llm-demo}, spec: {template: {spec:"
    " {restartPolicy: Never, containers: [{name: prep, image: busybox:1.36, args: ['--of', '%s']}]}}}}"
)
CONFIG = (
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: llm-demo}, immutable: %s,"
    " data: {replicas: '{{ replicas | string }}'}}"
)


def test_replicas_in_the_pods_of_a_job_beside_the_workload_are_told() -> None:
    (warning,) = told(JOB % "{{ replicas }}")
    assert "nobody can change spec.template.spec.containers[0].args[1] of the Job once it is there" in warning
    assert "keeps the replicas of its beginning" in warning


def test_replicas_of_a_job_set_beside_the_workload_are_told() -> None:
    pod = "{spec: {restartPolicy: Never, containers: [{name: prep, image: busybox:1.36}]}}"
    worker = f"{{name: worker, replicas: '{{{{ replicas }}}}', template: {{spec: {{template: {pod}}}}}}}"
    job_set = "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: prep, namespace: llm-demo},"
    told_of = [line for line in told(f"{job_set} spec: {{replicatedJobs: [{worker}]}}}}") if "nobody can" in line]
    assert len(told_of) == 1
    assert "nobody can change spec.replicatedJobs[0].replicas of the JobSet once it is there" in told_of[0]


def test_replicas_of_what_an_app_wrapper_wraps_are_told() -> None:
    files = {
        **FLEET,
        "templates/vllm.yaml": wrapping(WRAPPED_DEPLOYMENT),
        "workspaces/llm.yaml": workspace(more=WRAPPING),
    }
    told_of = [line for line in warnings(load(files)) if "nobody can" in line]
    assert len(told_of) == 1
    assert (
        "nobody can change spec.components[0].template.spec.replicas of the AppWrapper once it is there" in told_of[0]
    )


@pytest.mark.parametrize(("labels", "number"), [("{kueue.x-k8s.io/queue-name: team}", 1), ("{}", 0)])
def test_replicas_of_a_stateful_set_are_told_where_a_queue_of_kueue_keeps_them(labels: str, number: int) -> None:
    pods = "{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: busybox:1.36}]}}"
    spec = f"{{replicas: 2, serviceName: a, selector: {{matchLabels: {{app: a}}}}, template: {pods}}}"
    metadata = f"{{name: a, namespace: llm-demo, labels: {labels}}}"
    lines = told(f"{{apiVersion: apps/v1, kind: StatefulSet, metadata: {metadata}, spec: {spec}}}")
    message = "nobody can change spec.replicas of the StatefulSet once it is there: its placements are not resized"
    assert [message in line for line in lines if "nobody can" in line] == [True] * number


def test_end_of_a_placement_in_an_immutable_field_is_told() -> None:
    (warning,) = told(JOB % "{{ placement.expiresAt }}")
    assert "keeps the end of the placement of its beginning" in warning


def test_replicas_in_an_immutable_config_map_are_told_and_in_another_not() -> None:
    (warning,) = told(CONFIG % ("a", "true"))
    assert "nobody can change data.replicas of the ConfigMap" in warning
    assert told(CONFIG % ("a", "false")) == []


@pytest.mark.parametrize("text", ["{{ cluster.name }}", "{{ placement.name }}", "fixed"])
def test_what_no_resize_changes_is_not_told(text: str) -> None:
    assert told(JOB % text) == []


@pytest.mark.parametrize("wrapped", [(True, False), (False, True), (True, True)])
def test_object_of_two_templates_is_told_where_it_is_wrapped(wrapped: tuple[bool, bool]) -> None:
    config = CONFIG % ("common", "false")
    texts = [
        wrapping(config, name=name) if each else with_objects(config, name=name)
        for name, each in zip(("a", "vllm"), wrapped, strict=True)
    ]
    files = {
        **FLEET,
        "templates/a.yaml": texts[0],
        "templates/vllm.yaml": texts[1],
        "workspaces/llm.yaml": workspace(more=WRAPPING),
    }
    (warning,) = (line for line in warnings(load(files)) if "also made" in line)
    assert warning.startswith("templates/vllm.yaml:")
    assert "ConfigMap llm-demo/common is also made by template llm/a" in warning


def test_object_of_two_templates_is_told_of_the_later_one() -> None:
    config = CONFIG % ("common", "false")
    files = {
        **FLEET,
        "templates/a.yaml": with_objects(config, name="a"),
        "templates/vllm.yaml": with_objects(config),
    }
    (warning,) = warnings(load(files))
    assert warning.startswith("templates/vllm.yaml:")
    assert "ConfigMap llm-demo/common is also made by template llm/a: the end of one would take it" in warning


def neighbours(**names: str) -> list[str]:
    """Two workspaces whose primaries are each other's clusters, with a template each of a Deployment of that name."""
    other = workspace("other").replace("primaryCluster: worker-1", "primaryCluster: worker-2")
    files = {**FLEET, "workspaces/other.yaml": other.replace("other-demo", "llm-demo")}
    for name, deployment in names.items():
        text = TEMPLATE.replace("name: vllm\n", f"name: {name}\n").replace("{name: vllm,", f"{{name: {deployment},")
        files[f"templates/{name}.yaml"] = text.replace("workspaceName: llm", f"workspaceName: {name}")
    del files["templates/vllm.yaml"]
    return warnings(load(files))


def test_object_that_runs_on_the_primary_of_another_workspace_is_told_of_both() -> None:
    told = neighbours(llm="vllm", other="vllm")
    assert [line.partition(":")[0] for line in told] == ["templates/llm.yaml", "templates/other.yaml"]
    assert "Deployment llm-demo/vllm also runs on worker-2 for a template of another workspace" in told[0]
    assert "so that bursts do not go there" in told[0]
    assert neighbours(llm="vllm", other="other") == []


def test_object_that_is_named_after_its_template_is_nobody_elses() -> None:
    config = CONFIG % ("'{{ template.name }}'", "false")
    files = {**FLEET, "templates/a.yaml": with_objects(config, name="a"), "templates/vllm.yaml": with_objects(config)}
    assert warnings(load(files)) == []
    config = CONFIG % ("'{{ cluster.name }}'", "false")
    files = {**FLEET, "templates/a.yaml": with_objects(config, name="a"), "templates/vllm.yaml": with_objects(config)}
    assert len(warnings(load(files))) == 1, "on one cluster they have one name"


def test_command_and_manifest_that_make_one_object_are_told() -> None:
    command = TEMPLATE.replace("name: vllm", "name: a").replace(
        STEP,
        "  cmdExec:\n  - name: make\n    cmd: kubectl create configmap common -n llm-demo --from-literal=a=b\n" + STEP,
    )
    command += "  - name: make\n    type: command\n"
    files = {**FLEET, "templates/a.yaml": command, "templates/vllm.yaml": with_objects(CONFIG % ("common", "false"))}
    assert ["ConfigMap llm-demo/common" in each for each in warnings(load(files))] == [True]
