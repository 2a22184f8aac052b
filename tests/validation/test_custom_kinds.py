"""Objects of custom kinds are held to the CustomResourceDefinitions of the fleet repository."""

from __future__ import annotations

import json

import pytest

from reconciler.core.validation.custom_resources import custom_kind
from reconciler.core.validation.objects import check_object
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from reconciler.model.workload import Json
from reconciler.text.findings import dotted
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load, workspace

TEXT = {"type": "string"}
SPEC = {
    "type": "object",
    "required": ["size", "most"],
    "properties": {
        "most": {"type": "integer", "format": "int32", "default": 9},
        "size": {"type": "integer", "format": "int32"},
        "mode": {"type": "string", "enum": ["Fast", "Slow"]},
        "port": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT}}},
        "template": {"type": "object", "properties": {"metadata": {"type": "object"}}},
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tools.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Tool", "plural": "tools"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            },
            {"name": "v1alpha1", "served": False, "storage": False},
        ],
    },
}


def tool(version: str = "example.com/v1", **spec: Json) -> Json:
    return {"apiVersion": version, "kind": "Tool", "metadata": {"name": "a"}, "spec": {"size": 1, **spec}}


def object_problems(manifest: Json) -> list[str]:
    kind, findings = custom_kind(DEFINITION)
    assert kind is not None
    assert findings == ()
    schemas = ObjectSchemas(custom={kind.name: kind})
    found = check_object(manifest, (), schemas, NO_KINDS, rendered=True)
    return [f"{dotted(one.loc)}: {one.message} ({one.hint})" for one in found]


WRONG = {
    "a field": (tool(sise=1), "spec.sise: unknown field (try 'size')"),
    "a field that would be pruned": (
        tool(template={"metadata": {"labels": {}}}),
        "spec.template.metadata.labels: unknown field ()",
    ),
    "a field of an item": (tool(parts=[{"nam": "a"}]), "spec.parts[0].nam: unknown field (try 'name')"),
    "a field of the metadata": (
        {**tool(), "metadata": {"name": "a", "lables": {}}},
        "metadata.lables: unknown field (try 'labels')",
    ),
    "a type": (
        tool(size="1"),
        "spec.size: Kubernetes takes a whole number of 32 bits here, not '1' (leave the quotes out)",
    ),
    "a word": (tool(mode="Fsat"), "spec.mode: 'Fsat' is not one of Fast, Slow (try 'Fast')"),
    "a required field": ({**tool(), "spec": {}}, "spec: size is required ()"),
    "a version": (
        tool("example.com/v1alpha1"),
        "apiVersion: Tool has no version example.com/v1alpha1 (try 'example.com/v1')",
    ),
}


@pytest.mark.parametrize(("manifest", "what"), WRONG.values(), ids=WRONG)
def test_what_a_definition_does_not_have_is_told_at_its_field(manifest: Json, what: str) -> None:
    assert object_problems(manifest) == [what]


def test_what_a_definition_has_is_taken() -> None:
    made = tool(mode="Fast", port="http", labels={"a": "b"}, anything={"a": [1]}, parts=[{"name": "a"}])
    assert object_problems({**made, "status": {"phase": "Ready"}}) == []


def test_a_required_field_with_a_default_may_be_left_out() -> None:
    # As minReplicas and maxReplicas of KubeRay's groups of workers: API servers fill them in.
    assert object_problems(tool()) == []
    assert object_problems(tool(most=None)) == []
    assert object_problems(tool(most=7)) == []


FOREIGN = TEMPLATE.replace("apps/v1", "example.com/v1").replace("kind: Deployment", "kind: Tool")


def test_a_definition_in_the_fleet_repository_holds_for_templates() -> None:
    allowing = {"workspaces/llm.yaml": workspace(more="allowedKinds: [example.com/Tool]")}
    files = {**FLEET, **allowing, "templates/vllm.yaml": FOREIGN}
    assert errors(load(files)) == []
    (first, *_) = errors(load({**files, "kinds/tools.json": json.dumps(DEFINITION)}))
    assert first.startswith("templates/vllm.yaml:16: spec.manifestResources[0].manifest.spec.selector: unknown field")


def test_a_kind_of_kubernetes_cannot_be_defined_anew() -> None:
    taken = {**DEFINITION, "spec": {**DEFINITION["spec"], "group": "apps", "names": {"kind": "Deployment"}}}
    (told_,) = errors(load({**FLEET, "kinds/a.json": json.dumps(taken)}))
    assert told_ == "kinds/a.json:1: spec.names.kind: Deployment is Kubernetes' own in group 'apps'"


def test_of_two_definitions_of_one_kind_the_first_is_in_force() -> None:
    files = {**FLEET, "kinds/a.json": json.dumps(DEFINITION), "kinds/b.json": json.dumps(DEFINITION)}
    desired = load(files)
    assert errors(desired) == [
        (
            "kinds/b.json:1: metadata.name: CustomResourceDefinition of example.com/Tool is already in kinds/a.json:1 "
            "(try another name)"
        )
    ]
    assert [*desired.schemas.custom] == ["example.com/Tool"]


def test_a_definition_elsewhere_is_there_for_others() -> None:
    desired = load({**FLEET, "crds/tools.json": json.dumps(DEFINITION)})
    assert (desired.problems, desired.schemas.custom) == ((), {})
