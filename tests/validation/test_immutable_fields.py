"""Fields that nobody can change are those of Kubernetes, and of the fleet's CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.core.validation.custom_resources import custom_kind
from reconciler.core.validation.immutable_fields import FIELDS, immutable_changes, is_immutable
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from tests.builders.immutable_objects import CHANGES, FREE_CHANGES


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_change_of_an_immutable_field_is_found(change: Any) -> None:
    found = immutable_changes(change.before, change.after)
    assert [".".join(path) for path in found] == [change.field]


@pytest.mark.parametrize("change", FREE_CHANGES, ids=lambda change: change.id)
def test_change_of_any_other_field_is_none(change: Any) -> None:
    assert immutable_changes(change.before, change.after) == ()


def test_every_rule_of_kubernetes_itself_has_a_change_that_an_api_server_judges() -> None:
    own = {(rule.kind, ".".join(rule.path)) for rule in FIELDS if "kubernetes/kubernetes" in rule.source}
    told = {(change.kind, change.field) for change in CHANGES}
    assert own - told == set()
    assert all(rule.source.startswith("https://github.com/") for rule in FIELDS)


def test_rule_of_a_definition_keeps_a_field_and_what_is_below_it() -> None:
    stays = {"x-kubernetes-validations": [{"rule": "self ==  oldSelf", "message": "immutable"}]}
    outline = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "model": {"type": "string", **stays},
                    "pool": {"type": "object", **stays, "additionalProperties": {"type": "string"}},
                    "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
                },
            }
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "acme.example",
            "names": {"kind": "Model"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": outline}}],
        },
    }
    kind, findings = custom_kind(definition)
    assert kind is not None
    assert not findings
    schemas = ObjectSchemas(custom={kind.name: kind})

    def model(**spec: Any) -> dict[str, Any]:
        return {"apiVersion": "acme.example/v1", "kind": "Model", "metadata": {"name": "m"}, "spec": spec}

    before = model(model="a", pool={"gpu": "h100"}, size=1)
    after = model(model="b", pool={"gpu": "a100"}, size=2)
    assert immutable_changes(before, after, schemas) == (("spec", "model"), ("spec", "pool"))
    assert immutable_changes(model(size=1), after, schemas) == (), "a field without an old value may be set"
    assert is_immutable(before, ("spec", "pool", "gpu"), schemas)
    assert not is_immutable(before, ("spec", "size"), schemas)
