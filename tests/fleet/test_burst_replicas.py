"""The number of replicas that a template deploys stands in one place, which its kind, its annotation or it tells."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.commits.templates import render_templates
from reconciler.core.fleet.burst_replicas import copy_above_maximum
from reconciler.core.fleet.replica_paths import REPLICAS
from reconciler.model.action import Action
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Change, Plan
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.workload import Json, WorkloadTemplate
from tests.builders.fleet_files import FLEET, errors, load, warnings
from tests.builders.inputs import placement

VLLM = WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))
SHARE = "{{ replicas }}"


def obj(kind: str = "Deployment", name: str = "vllm", gpus: int = 1, **spec: Json) -> Json:
    """Make an object with one container."""
    version = {"Deployment": "apps/v1", "Job": "batch/v1", "InferenceService": "serving.kserve.io/v1beta1"}
    container = {"name": "main", "image": "registry.example.com/vllm:1", "resources": {"limits": {}}}
    container["resources"] = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {"limits": {"cpu": 1}}
    pods: Json = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "restartPolicy": "Always"}}
    if kind == "Job":
        pods["spec"]["restartPolicy"] = "Never"
    body = (
        {"predictor": {"containers": [container], **spec}} if kind == "InferenceService" else {**spec, "template": pods}
    )
    if kind == "Deployment":
        body["selector"] = {"matchLabels": {"app": name}}
    metadata = {"name": name, "namespace": "llm-demo"}
    return {"apiVersion": version[kind], "kind": kind, "metadata": metadata, "spec": body}


def fleet(*objects: Json, **annotations: str) -> Desired:
    """Load a template of these objects; annotations by their names after the group."""
    names = [f"part-{index}" for index, _ in enumerate(objects)]
    template = {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadTemplate",
        "metadata": {
            "name": "vllm",
            "annotations": {f"overspill.dev/{key.replace('_', '-')}": value for key, value in annotations.items()},
        },
        "spec": {
            "workspaceName": "llm",
            "burstDuration": "10m",
            "manifestResources": [{"name": name, "manifest": one} for name, one in zip(names, objects, strict=True)],
            "steps": [{"name": name, "type": "manifest"} for name in names],
        },
    }
    desired = load({**FLEET, "templates/vllm.yaml": json.dumps(template)})
    assert errors(desired) == []
    return desired


def template(desired: Desired) -> WorkloadTemplate:
    return desired.templates[VLLM]


def written(desired: Desired, replicas: int = 3) -> list[Any]:
    """Return the specs of the objects of a placement."""
    made = placement(replicas=replicas, workload=VLLM)
    rendered = render_templates(
        Plan(changes=(Change(action=Action.RESIZE, before=made, after=made, detail=""),)), desired
    )[0]
    assert rendered.spec is not None, rendered.problem
    return [resource.manifest["spec"] for resource in rendered.spec.manifests]


def refusal(desired: Desired, replicas: int) -> str:
    made = placement(replicas=replicas, workload=VLLM)
    return render_templates(Plan(changes=(Change(action=Action.RESIZE, before=made, after=made, detail=""),)), desired)[
        0
    ].problem


def counts(desired: Desired, replicas: int = 3) -> list[Json]:
    return [spec.get("replicas") for spec in written(desired, replicas)]


# Which object


def test_of_two_objects_the_one_that_is_counted_on_the_primary_has_the_replicas() -> None:
    router = obj(name="router", gpus=0, replicas=2)
    assert counts(fleet(router, obj(replicas=1), workload="Deployment/llm-demo/vllm")) == [2, 3]
    assert counts(fleet(router, obj(replicas=1), workload="Deployment/llm-demo/router")) == [3, 1]


def test_of_objects_that_nothing_names_the_one_with_gpus_has_the_replicas() -> None:
    made = fleet(obj(name="router", gpus=0, replicas=2), obj(replicas=1), workload="Deployment/llm-demo/another")
    assert counts(made) == [2, 3]


def test_an_expression_says_more_than_a_name() -> None:
    assert counts(fleet(obj(name="engine", replicas=SHARE), obj(replicas=1), workload="Deployment/llm-demo/vllm")) == [
        3,
        1,
    ]


# What is written


def test_an_expression_elsewhere_does_not_keep_the_number_from_being_written() -> None:
    assert counts(fleet(obj(replicas=1, minReadySeconds=SHARE))) == [3]


def test_the_upper_bound_of_an_inference_service_is_written_with_its_replicas() -> None:
    made = fleet(obj("InferenceService", minReplicas=1, maxReplicas=5), workload="InferenceService/llm-demo/vllm")
    (spec,) = written(made)
    assert (spec["predictor"]["minReplicas"], spec["predictor"]["maxReplicas"]) == (3, 3)


def test_an_object_that_an_autoscaler_beside_it_owns_is_left_to_it() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "vllm", "namespace": "llm-demo"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4},
    }
    made = fleet(obj(replicas=2), scaler)
    assert template(made).copy is None
    assert "owns the replicas" in "".join(warnings(made))


# What does not agree


def test_an_expression_that_gives_another_number_is_told_by_check_and_never_committed() -> None:
    made = fleet(obj(replicas="{{ [replicas, 4] | min }}"))
    assert "deploys 4 for 10 replicas, so that no placement of 10 is committed" in warnings(made)[0]
    assert counts(made, 4) == [4]
    assert "6 replicas would be 4 in part-0 at spec.replicas" in refusal(made, 6)


def test_a_job_never_makes_more_pods_than_its_completions() -> None:
    made = fleet(obj("Job", parallelism=1, completions=2), workload="Job/llm-demo/vllm")
    assert written(made, 2)[0]["parallelism"] == 2
    assert "3 replicas would be 2" in refusal(made, 3)


# What is fixed


@pytest.mark.parametrize(("number", "copy"), [(2, 2), (None, 1), (1, 1)])
def test_a_fixed_object_is_a_copy_of_its_own_number(number: int | None, copy: int) -> None:
    made = fleet(obj(**({} if number is None else {"replicas": number})), replicas="fixed")
    assert warnings(made) == []
    assert template(made).copy == copy
    assert written(made, copy)[0].get("replicas") == number


def test_copies_that_are_more_than_their_policy_allows_are_told_by_check() -> None:
    made = template(fleet(obj(replicas=20), replicas="fixed"))
    policy = BurstPolicy(name="gpu", max_replicas=3)
    (finding,) = copy_above_maximum(made, policy)
    assert (
        finding.message
        == "its copies of 20 replicas are more than the 3 that policy gpu allows, so that it never bursts"
    )
    assert [*copy_above_maximum(made, replace(policy, max_replicas=20))] == []
    assert [*copy_above_maximum(made, None)] == []


def test_a_copy_of_another_size_than_its_placement_is_not_committed() -> None:
    made = fleet(obj(replicas=2), replicas="fixed")
    assert "copies of 2 replicas, and this placement has 3" in refusal(made, 3)


def test_a_number_that_names_a_part_is_that_part() -> None:
    assert "is no chart or manifest" in "".join(
        str(problem) for problem in load({**FLEET, "templates/vllm.yaml": _with("12345678")}).problems
    )


def _with(annotation: str) -> str:
    return FLEET["templates/vllm.yaml"].replace(
        "  namespace: kubeslice-acme", f'  namespace: kubeslice-acme\n  annotations: {{{REPLICAS}: "{annotation}"}}', 1
    )


def test_what_people_ask_for_by_name_keeps_the_number_of_the_template() -> None:
    own = template(fleet(obj(replicas=7))).own_spec
    assert own is not None
    assert own.manifests[0].manifest["spec"]["replicas"] == 7


def test_an_unchanged_template_has_the_same_spec_in_the_next_fleet() -> None:
    files = {**FLEET, "templates/vllm.yaml": FLEET["templates/vllm.yaml"].replace('"{{ replicas }}"', "1")}
    first, second = load(files), load(files)
    assert first.templates[VLLM].spec == second.templates[VLLM].spec


def test_all_tries_of_the_expressions_of_a_template_share_one_budget() -> None:
    wrong_for_ten = "replicas + (1 if replicas == 10 else 0)"
    assert len(warnings(fleet(obj(replicas=f"{{{{ {wrong_for_ten} }}}}")))) == 1
    # The third of the tries, with three replicas, has nothing left to spend, and none comes as far as ten.
    assert warnings(fleet(obj(replicas=f"{{{{ (range(20000) | sum) * 0 + {wrong_for_ten} }}}}"))) == []
