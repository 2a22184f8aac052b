"""What OpenKruise's tests say of a subset's patch, and of the ordinals of a StatefulSet: their cases, run here."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.core.injecting import injected
from reconciler.core.subsets import injection, ordinals_start, pod_of_subset
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Cluster, Workspace
from reconciler.model.workload import WorkloadRef
from reconciler.model.workloadspread import Bound, Subset, WorkloadSpread
from tests.conformance.cases import Case, applying, ids, not_applicable, there

LISTED = not_applicable("workloadspread_patch")
CLUSTER = Cluster(name=ClusterName("worker-2"))
WORKSPACE = Workspace(name=WorkspaceName("llm"), primary=ClusterName("worker-1"), clusters=(ClusterName("worker-2"),))

pytestmark = there("workloadspread")


def of(*groups: str) -> list[Any]:
    """Return the cases of some groups that apply."""
    return applying("workloadspread", "workloadspread_patch", *groups)


def spread(group: str, kind: str, *subsets: Case) -> WorkloadSpread:
    """Make the spread of a workload."""
    return WorkloadSpread(
        name="spread",
        namespace="default",
        group=group,
        target=WorkloadRef(namespace="default", name="workload", kind=kind),
        subsets=tuple(
            Subset(
                name=one["name"],
                most=None if one["maxReplicas"] is None else Bound(number=one["maxReplicas"]),
                patch=one.get("patch", {}),
            )
            for one in subsets
        ),
    )


@pytest.mark.parametrize("case", of("patch"))
def test_a_pod_is_patched_as_kruise_has_it(case: Case) -> None:
    given = case["input"]
    one = spread("apps", "Deployment", {"name": "subset-a", "maxReplicas": None, "patch": given["patch"]})
    made = pod_of_subset(given["pod"], injection(one, one.subsets[0], CLUSTER))
    assert made["spec"]["containers"] == case["expected"]["containers"]


@pytest.mark.parametrize("case", of("validation_patch"))
def test_a_patched_pod_is_refused_where_kruise_refuses_it(case: Case) -> None:
    given = case["input"]
    workload = given["workload"]
    group, version = {"CloneSet": ("apps.kruise.io", "v1alpha1"), "StatefulSet": ("apps", "v1")}[workload["kind"]]
    manifest = {
        "apiVersion": f"{group}/{version}",
        "kind": workload["kind"],
        "metadata": {"name": "workload"},
        "spec": {
            "template": {"metadata": {}, "spec": {"containers": workload["containers"]}},
            "volumeClaimTemplates": [{"metadata": {"name": name}} for name in workload["volumeClaimTemplates"]],
        },
    }
    one = spread(group, workload["kind"], *given["subsets"])
    found = 0
    for subset in one.subsets:
        try:
            injected(manifest, injection(one, subset, CLUSTER), WORKSPACE, {})
        except InvalidInput as error:
            found += len(error.problems)
    assert found == case["expected"]["error_count"]


@pytest.mark.parametrize("case", of("statefulset_subset"))
def test_an_ordinal_is_of_the_subset_that_kruise_chooses(case: Case) -> None:
    given = case["input"]
    assert given["unschedulable_subsets"] == []
    one = spread("apps", given["targetRef_kind"], *given["subsets"])
    begun = [subset.name for subset in one.subsets if ordinals_start(one, subset) <= given["ordinal"]]
    assert begun[-1] == case["expected"]["chosen_subset"]


def test_each_case_that_does_not_apply_is_there_and_says_why() -> None:
    known = ids("workloadspread_patch")
    assert LISTED.keys() <= known
    assert all(why.strip() for why in LISTED.values())
    run = {param.id for param in of("patch", "validation_patch", "statefulset_subset")}
    assert run | LISTED.keys() == known
