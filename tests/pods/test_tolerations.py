"""Tolerations are checked as Kubernetes checks them, wherever they stand."""

from __future__ import annotations

import json

import pytest

from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.pods.taints import toleration_faults
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, errors, load, policy
from tests.builders.spread_files import subsets
from tests.builders.workload_kinds import workload
from tests.workloads.test_kind_rules import findings

WRONG: list[tuple[dict[str, Json], str, str]] = [
    ({"key": "region", "operator": "Exists", "value": "eu"}, "value", "Exists takes no value"),
    ({"operator": "Equal"}, "operator", "an empty key needs the operator Exists"),
    ({"key": "a b", "operator": "Exists"}, "key", "'a b' cannot be the name of a label"),
    ({"key": "region", "value": "e u"}, "value", "'e u' cannot be the value of a taint"),
    (
        {"key": "region", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
        "effect",
        "tolerationSeconds needs the effect NoExecute",
    ),
]
GOOD: list[dict[str, Json]] = [
    {"operator": "Exists"},
    {"key": "region", "operator": "Exists"},
    {"key": "example.com/region", "value": "eu", "effect": "NoSchedule"},
    {"key": "region", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    {"key": "region"},
]


def faults(toleration: dict[str, Json]) -> list[tuple[str, str]]:
    texts = {name: toleration.get(name, "") for name in ("key", "operator", "value", "effect")}
    seconds = toleration.get("tolerationSeconds")
    return [(field, message) for field, message, _ in toleration_faults(**texts, seconds=seconds)]


@pytest.mark.parametrize(("toleration", "field", "message"), WRONG)
def test_what_kubernetes_refuses_is_refused_at_its_field(toleration: dict[str, Json], field: str, message: str) -> None:
    written = json.dumps(toleration)
    assert faults(toleration) == [(field, message)]
    (told,) = errors(load({**FLEET, "policies/gpu.yaml": policy("gpu", f"{{tolerations: [{written}]}}")}))
    assert f"spec.tolerations[0]: {field}: {message}" in told
    (told,) = errors(load({**FLEET, "s.yaml": subsets(f"tolerations: [{written}]")}))
    assert f"spec.subsets[0].tolerations[0].{field}: {message}" in told
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [], "tolerations": [toleration]}}
    made = workload("apps/v1", "Deployment", {"selector": {"matchLabels": {"app": "web"}}, "template": pod})
    (finding,) = (one for one in findings(made) if "tolerations" in one.loc)
    assert (finding.loc[-1], finding.message) == (field, message)


@pytest.mark.parametrize("toleration", GOOD)
def test_what_kubernetes_takes_is_taken(toleration: dict[str, Json]) -> None:
    assert faults(toleration) == []
    written = json.dumps(toleration)
    assert errors(load({**FLEET, "policies/gpu.yaml": policy("gpu", f"{{tolerations: [{written}]}}")})) == []


def timed(key: str, effect: str = "NoExecute") -> dict[str, Json]:
    return {"key": key, "operator": "Exists", "effect": effect, "tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("raw", "heeded"),
    [
        (timed("spot"), True),
        (timed("example.com/node.kubernetes.io"), True),
        ({**timed("spot"), "operator": "Equal", "value": "yes"}, True),
        (timed(""), True),
        (timed("node.kubernetes.io/not-ready"), False),
        (timed("node.kubernetes.io/unreachable"), False),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}, True),
    ],
)
def test_a_toleration_for_a_time_counts_but_for_nodes_that_take_no_pods(raw: dict[str, Json], heeded: bool) -> None:
    found = replica_shape({"tolerations": [raw]}).tolerations
    assert [(each.key, each.seconds) for each in found] == [(raw["key"], None)] * heeded


@pytest.mark.parametrize(("operator", "value", "wrong"), [("Gt", "5", 0), ("Lt", "five", 1), ("In", "5", 1)])
def test_operators_are_those_of_kubernetes(operator: str, value: str, wrong: int) -> None:
    assert len(faults({"key": "region", "operator": operator, "value": value})) == wrong
