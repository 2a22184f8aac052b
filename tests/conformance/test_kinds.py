"""Where Kruise reads replicas, and what a group of LeaderWorkerSet's asks for: the cases of their own tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.workloads.builtin_kinds import kind_of
from reconciler.core.workloads.paths import replicas_at
from reconciler.model.ids import CommitId
from reconciler.model.kubernetes.workload_kind import path
from reconciler.model.units import parse_quantity
from tests.builders.requests import manifests, request
from tests.conformance.cases import SUITES, Case, applying, ids, not_applicable, there

LISTED = not_applicable("kinds")
pytestmark = [there(file) for file in SUITES["kinds"]]


def outcome(value: Any, *ways: str) -> int | None:
    """Read the replicas at some paths; None for an error."""
    try:
        return replicas_at(value, tuple(path(way) for way in ways))
    except ValueError:
        return None


def nested(fields: dict[str, int]) -> Case:
    """Make an object of the fields of one, each written as a path."""
    made: Case = {}
    for way, value in fields.items():
        *parents, last = way.split(".")
        inner = made
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return made


@pytest.mark.parametrize("case", applying("workloadspread", "kinds", "nested_field"))
def test_a_path_leads_where_kruise_has_it(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    assert outcome(given["object"], ".".join(given["path"])) == (None if expected["is_error"] else expected["value"])


@pytest.mark.parametrize("case", applying("workloadspread", "kinds", "replicas_path"))
def test_what_is_no_number_is_no_number_of_replicas(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    found = outcome(given["object"], given["replicasPath"])
    assert found == (None if "error" in expected else expected["replicas"])


@pytest.mark.parametrize("case", applying("workloadspread", "kinds", "workload_replicas"))
def test_replicas_are_read_where_a_spread_the_whitelist_or_the_kind_says(case: Case) -> None:
    given = case["input"]
    target, listed = given["targetRef"], json.dumps(given["whitelist"])
    name = f"{target['apiVersion']} {target['kind']} {target['name']}"
    objects = {key: nested(fields) for key, fields in given["objects"].items()}
    found = objects.get(name) or objects[name.replace("/v1alpha1", "")]
    made = {"apiVersion": target["apiVersion"], "kind": target["kind"], **found}
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kruise-configuration", "namespace": "kruise-system"},
        "data": {"WorkloadSpread_Watch_Custom_Workload_WhiteList": listed},
    }
    desired = assemble(CommitId(""), {"kinds/kruise.yaml": parse_file(json.dumps(configuration).encode())})
    assert desired.problems == ()
    kind = kind_of(made, desired.kinds)
    own = (given["targetFilter"] or {}).get("replicasPathList")
    ways = [path(way) for way in own] if own else [*(kind.replicas if kind else ())]
    assert replicas_at(made, ways) == case["expected"]["replicas"]


@pytest.mark.parametrize("case", applying("lws", "kinds", "lws_group_resources"))
def test_a_group_asks_for_what_leaderworkerset_asks_for(case: Case) -> None:
    """Count a group; where a case has a PodGroup already, it says nothing of what that was made from but its size."""
    given, expected = case["input"], case["expected"]
    container = {"name": "main", "resources": {"requests": given.get("workerTemplate_requests", {"cpu": "1"})}}
    made = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": given.get("lws", "test-lws")},
        "spec": {
            "replicas": 3,
            **({"startupPolicy": given["startupPolicy"]} if given.get("startupPolicy") else {}),
            "leaderWorkerTemplate": {
                "size": given["size"],
                "workerTemplate": {"spec": {"containers": [container]}},
            },
        },
    }
    (gang,) = pods_of_request(request(spec=manifests(made))).gangs
    assert (gang.groups, gang.size, gang.least) == (3, given["size"], expected["minMember"])
    if "minResources" in expected:
        wanted = {name: parse_quantity(amount) for name, amount in expected["minResources"].items()}
        assert dict(gang.requests.amounts) == wanted


def test_each_case_that_does_not_apply_is_there_and_says_why() -> None:
    assert LISTED.keys() <= ids("kinds")
    assert all(why.strip() for why in LISTED.values())
