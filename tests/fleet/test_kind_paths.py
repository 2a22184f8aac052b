"""A path of a WorkloadKind that leads nowhere in what templates deploy is told at its field, with what is there."""

from __future__ import annotations

import json

import pytest
import yaml

from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load, warnings
from tests.builders.workload_kinds import template

KIND = "kinds/arena.yaml"


def declared(**spec: Json) -> str:
    made = {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": "WorkloadKind",
        "metadata": {"name": "arena"},
        "spec": {"group": "game.example.com", "kind": "Arena", **spec},
    }
    return yaml.safe_dump(made, sort_keys=False)


def deploying(*specs: Json) -> dict[str, str]:
    """Write a fleet whose template deploys Arenas with these specs."""
    made = yaml.safe_load(TEMPLATE)
    first, *_ = made["spec"]["manifestResources"]
    for index, spec in enumerate(specs):
        metadata = {"name": f"arena-{index}", "namespace": first["manifest"]["metadata"]["namespace"]}
        manifest = {"apiVersion": "game.example.com/v1", "kind": "Arena", "metadata": metadata, "spec": spec}
        made["spec"]["manifestResources"].append({"name": f"arena-{index}", "manifest": manifest})
    made["spec"]["steps"] += [{"name": f"arena-{index}", "type": "manifest"} for index, _ in enumerate(specs)]
    return {**FLEET, "templates/vllm.yaml": json.dumps(made)}


def kind_warnings(files: dict[str, str], kind: str) -> list[str]:
    desired = load({**files, KIND: kind})
    assert errors(desired) == []
    return [line.removeprefix(f"{KIND}:") for line in warnings(desired) if line.startswith(KIND)]


ROLES = {"number": 3, "roles": [{"size": 2, "template": template(4)}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"replicasPaths": ["spec.numbr"]},
            "9: spec.replicasPaths[0]: leads nowhere in the Arena that templates deploy (try 'spec.number')",
        ),
        (
            {"podTemplates": [{"path": "spec.rolls.*.template"}]},
            (
                "9: spec.podTemplates[0].path: leads nowhere in the Arena that templates deploy"
                " (try 'spec.roles.*.template')"
            ),
        ),
        (
            {"podTemplates": [{"path": "spec.roles.*.template", "counts": [{"path": "spec.roles.*.sizes"}]}]},
            (
                "11: spec.podTemplates[0].counts[0].path: leads nowhere in the Arena that templates deploy"
                " (try 'spec.roles.*.size')"
            ),
        ),
        (
            {"podTemplates": [{"path": "spec.arena"}]},
            "9: spec.podTemplates[0].path: leads nowhere in the Arena that templates deploy (there are number, roles)",
        ),
    ],
)
def test_a_path_that_leads_nowhere_is_told_with_what_was_probably_meant(spec: Json, expected: str) -> None:
    assert kind_warnings(deploying(ROLES), declared(**spec)) == [expected]


@pytest.mark.parametrize(
    "spec",
    [
        {"replicasPaths": ["spec.number"]},
        {"replicasPaths": ["spec.parallel"]},  # what is left out is what it is by default
        {"podTemplates": [{"path": "spec.roles.*.template", "counts": [{"path": "spec.roles.*.size"}]}]},
        {"podTemplates": [{"path": "spec.roles.*.template"}, {"path": "spec.arena", "optional": True}]},
    ],
)
def test_a_path_that_leads_somewhere_or_may_be_left_out_is_not(spec: Json) -> None:
    assert kind_warnings(deploying(ROLES), declared(**spec)) == []


def test_one_object_that_has_something_there_is_enough() -> None:
    other = {"numbr": 3}
    assert kind_warnings(deploying(ROLES, other), declared(replicasPaths=["spec.numbr"])) == []
    (found,) = kind_warnings(deploying(ROLES, ROLES), declared(replicasPaths=["spec.numbr"]))
    assert "leads nowhere in any Arena that templates deploy" in found


def test_what_an_expression_gives_and_a_kind_that_nothing_deploys_are_passed_over() -> None:
    kind = declared(podTemplates=[{"path": "spec.roles.*.template"}])
    assert kind_warnings(deploying({"roles": "{{ [] }}"}), kind) == []
    assert kind_warnings({**FLEET}, declared(replicasPaths=["spec.numbr"])) == []


def test_a_path_to_what_is_no_number_is_for_the_kind_to_correct() -> None:
    found = errors(load({**deploying(ROLES), KIND: declared(replicasPaths=["spec.roles"])}))
    assert [line.partition(": ")[2] for line in found] == [
        (
            "spec.manifestResources[1].manifest.spec.roles: takes a whole number, not a list"
            " (correct the path in what declares its kind)"
        )
    ]


def test_the_fields_of_kruises_whitelist_may_be_in_any_case() -> None:
    listed = {"workloads": [{"group": "game.example.com", "version": "v1", "kind": "Arena", "ReplicasPath": "spec.a"}]}
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kruise-configuration", "namespace": "kruise-system"},
        "data": {"WorkloadSpread_Watch_Custom_Workload_WhiteList": json.dumps(listed)},
    }
    (kind,) = load({**FLEET, "kinds/kruise.yaml": yaml.safe_dump(configuration)}).kinds.values()
    assert (kind.name, kind.replicas) == ("game.example.com/Arena", (("spec", "a"),))
