"""What OpenKruise's tests say of a subset's patch, and of the ordinals of a StatefulSet: their cases, run here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.core.spread.inject import inject_subset
from reconciler.core.spread.subset_pods import injection, ordinals_start, patch_template
from reconciler.core.spread.subset_selection import preference_weight
from reconciler.errors import InvalidInput
from reconciler.model.capacity import Node, Pool
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.kubernetes.workload_spread import Bound, Subset, WorkloadSpread
from reconciler.model.policy import Cluster, Workspace
from reconciler.model.workload import WorkloadRef
from tests.builders.fleet_files import FLEET, load
from tests.builders.inputs import free, gpus, plan, short
from tests.builders.spread_files import governing
from tests.builders.spread_files import spread as of_a_file
from tests.builders.subsets import fleet, with_pods
from tests.conformance.cases import Case, applying, ids, not_applicable, there
from tests.conformance.given import plain

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
    made = patch_template(given["pod"], injection(one, one.subsets[0], CLUSTER))
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
            inject_subset(manifest, injection(one, subset, CLUSTER), WORKSPACE, {})
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


@pytest.mark.parametrize("case", of("match_score"))
def test_a_node_is_of_a_subset_where_kruise_takes_it_for_one(case: Case) -> None:
    """Let a cluster have one node, with the labels and the taints of the case, for pods as the case has them.

    Each 10,000 of a score are a preferred term of weight 100. What the rest of it says, which of several subsets a pod
    that is there already was made for, is known here from the commit that placed it.
    """
    given, expected = plain(case["input"]), case["expected"]
    written = yaml.safe_dump({"subsets": [given["subset"]]})
    (one,) = governing(load({**FLEET, "s.yaml": of_a_file(written)})).subsets
    node = Node(name="node-0", free=gpus(8), labels=given["node"]["labels"])
    taints = tuple(Taint(**taint) for taint in given["node"]["taints"])
    seen = replace(free("worker-2"), pools=(Pool(name="gpu", nodes=(node,), taints=taints),))
    terms = {"nodeSelectorTerms": given["pod"]["affinity"]["requiredTerms"]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    pods = {"metadata": {"labels": given["pod"]["labels"]}, "spec": {"containers": [container], "affinity": affinity}}
    made = plan(short(1), seen, wanted=with_pods(fleet(one), pods))
    assert bool(made.changes) is expected["matches"]
    if expected["matches"]:
        assert preference_weight(one, CLUSTER, seen) * 100 == expected["score"] - expected["score"] % 10_000


def test_each_case_that_does_not_apply_is_there_and_says_why() -> None:
    known = ids("workloadspread_patch")
    assert LISTED.keys() <= known
    assert all(why.strip() for why in LISTED.values())
    run = {param.id for param in of("patch", "validation_patch", "match_score", "statefulset_subset")}
    assert run | LISTED.keys() == known
