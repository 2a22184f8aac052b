"""What OpenKruise's webhook refuses of a WorkloadSpread, and what it takes: the cases of its own tests.

Each spread is a file of a fleet. Kruise names fields as its v1beta1 does, whatever version was asked; here a field has
the name under which it stands in the file.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.core.spread.subset_selection import selects_pods
from reconciler.core.workloads.paths import replicas_at
from reconciler.errors import Problem, Severity
from reconciler.model.kubernetes.workload_kind import path
from reconciler.model.policy import Desired
from tests.builders.fleet_files import FLEET, load
from tests.builders.spread_files import governing
from tests.conformance.cases import Case, applying, cases, ids, not_applicable, there

SUITE = "workloadspread"
NAMES = {
    "requiredNodeSelectorTerm": "requiredNodeSelector",
    "preferredNodeSelectorTerms": "preferredNodeSelector",
}
RUN = ("validation_error", "validation_ok", "validation_conflict", "target_filter", "replicas_path")
LISTED = not_applicable("workloadspread_validation")
VLLM = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}
pytestmark = there(SUITE)


def written(spec: Case, name: str = "demo", version: str = "v1alpha1") -> str:
    """Write a spread of the namespace that the fleet's template is in."""
    made = {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "WorkloadSpread",
        "metadata": {"name": name, "namespace": "llm-demo"},
        "spec": spec,
    }
    return json.dumps(made)


def of_v1beta1(spec: Case) -> Case:
    """Give the fields of subsets the names of v1beta1."""
    subsets = [{NAMES.get(name, name): value for name, value in one.items()} for one in spec["subsets"]]
    return {**spec, "subsets": subsets}


def errors(desired: Desired) -> list[Problem]:
    return [problem for problem in desired.problems if problem.severity is Severity.ERROR]


def refusals(spec: Case, version: str) -> list[tuple[str, str]]:
    """Return the fields and messages of what is wrong in a spread, in the names of v1beta1."""
    found = []
    for problem in errors(load({**FLEET, "s.json": written(spec, version=version)})):
        field = problem.field
        for old, new in NAMES.items():
            field = field.replace(old, new)
        found.append((field, str(problem.message)))
    return found


@pytest.mark.parametrize("case", applying(SUITE, "workloadspread_validation", "validation_error"))
def test_what_kruise_refuses_is_refused_at_its_field_in_its_words(case: Case) -> None:
    spec, expected = case["input"]["spec"], case["expected"]
    found = refusals(of_v1beta1(spec), "v1beta1")
    assert found == refusals(spec, "v1alpha1")
    assert expected["error_field"] in [field for field, _ in found]
    if expected["error_message"] is not None:
        assert found == [(expected["error_field"], expected["error_message"])]


@pytest.mark.parametrize("case", applying(SUITE, "workloadspread_validation", "validation_ok"))
def test_what_kruise_takes_is_taken(case: Case) -> None:
    spec = case["input"]["spec"]
    assert refusals(spec, "v1alpha1") == refusals(of_v1beta1(spec), "v1beta1") == case["expected"]["errors"]
    found = governing(load({**FLEET, "s.json": written({**spec, "targetRef": VLLM})}))
    assert [one.name for one in found.subsets] == [one["name"] for one in spec["subsets"]]


@pytest.mark.parametrize("case", applying(SUITE, "workloadspread_validation", "validation_conflict"))
def test_two_spreads_meet_where_kruise_has_them_meet(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    all_of_them = [*given["others"], given["workloadspread"]]
    files = {
        f"{place}.json": written({"targetRef": one["targetRef"], "subsets": [{"name": "all"}]}, one["name"].lower())
        for place, one in enumerate(all_of_them)
    }
    found = errors(load({**FLEET, **files}))
    met = [problem.message for problem in found if problem.path == f"{len(given['others'])}.json"]
    met = [message for message in met if "conflict" in message]
    assert met == [error["message"] for error in expected["errors"]]


@pytest.mark.parametrize("case", applying(SUITE, "workloadspread_validation", "target_filter"))
def test_the_pods_that_kruise_counts_are_counted(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    spec = {"targetRef": VLLM, "targetFilter": given["targetFilter"], "subsets": [{"name": "all"}]}
    desired = load({**FLEET, "s.json": written(spec)})
    assert bool(errors(desired)) is expected["is_error"]
    assert selects_pods(governing(desired), given["pod_labels"]) is expected["selected"]


@pytest.mark.parametrize("case", applying(SUITE, "workloadspread_validation", "replicas_path"))
def test_a_path_of_a_spread_leads_where_kruise_has_it(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    target: dict[str, Any] = {"replicasPathList": [given["replicasPath"]]}
    spec = {"targetRef": VLLM, "targetFilter": target, "subsets": [{"name": "all"}]}
    ways = [path(way) for way in governing(load({**FLEET, "s.json": written(spec)})).replicas_paths]
    try:
        found = {"replicas": replicas_at(given["object"], ways)}
    except ValueError:
        found = {"replicas": 0, "error": expected.get("error")}
    assert found == expected


def test_every_case_is_either_run_or_listed_with_its_reason() -> None:
    known = ids("workloadspread_validation")
    groups = {case["id"]: case["group"] for case in cases(SUITE) if case["id"] in known}
    assert LISTED.keys() <= known
    assert {group for case, group in groups.items() if case not in LISTED} <= {*RUN}
    assert all(reason.strip() for reason in LISTED.values())
