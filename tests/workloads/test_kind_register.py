"""The register of kinds of workloads: no other module lists kinds, and an object of no known kind is unknown room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.capacity.pod_requirements import pods_of_request, request_requirements
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.workloads import builtin_kinds
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.action import Action
from reconciler.model.ids import CommitId
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.inputs import free, plan
from tests.builders.requests import gpus, manifests, request, wants
from tests.builders.workload_kinds import SAMPLES, template, workload

PACKAGE = Path(builtin_kinds.__file__).parents[2]
NAMES = frozenset(name for kind in BUILT_IN.values() for name in (kind.kind, kind.name))
UNKNOWN = workload("foo.example.com/v1", "Bar", {"size": 5})
IMMUTABLE = PACKAGE / "core" / "validation" / "immutable_rules.py"
"""A table of fields by kind, whatever makes their pods: most of its kinds make none, and are not of the register."""
ADMISSION = PACKAGE / "core" / "validation" / "admission"
"""Tables of what webhooks refuse, each rule for the kinds that its project asks it of, whatever makes their pods."""
ADVANCED = workload("apps.kruise.io/v1beta1", "StatefulSet", {"replicas": 5, "template": template(8)})


def listed_kinds(tree: ast.AST) -> Iterator[set[str]]:
    """Yield the names of kinds that stand together in a literal: a list, a set, a tuple, or the keys of a mapping."""
    for node in ast.walk(tree):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        below = [leaf for item in items if item is not None for leaf in ast.walk(item)]
        yield {leaf.value for leaf in below if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)} & NAMES


def test_no_other_module_lists_kinds() -> None:
    tables = {Path(builtin_kinds.__file__), IMMUTABLE, *ADMISSION.glob("*.py")}
    modules = {path: path.read_text() for path in PACKAGE.rglob("*.py") if path not in tables}
    named = {path: text for path, text in modules.items() if sum(f'"{name}"' in text for name in NAMES) > 1}
    assert named
    lists = {path: [kinds for kinds in listed_kinds(ast.parse(text)) if len(kinds) > 1] for path, text in named.items()}
    assert {path: kinds for path, kinds in lists.items() if kinds} == {}


def test_a_list_of_kinds_would_be_found() -> None:
    tree = ast.parse('A = (("apps", "Deployment"), ("apps", "StatefulSet"))')
    assert {"Deployment", "StatefulSet"} in list(listed_kinds(tree))


def waits(decided: Plan) -> tuple[Reason, str]:
    """Return why the only request waits; nothing of it may be placed."""
    assert not [change for change in decided.changes if change.action is Action.PLACE]
    (held,) = decided.suppressed
    return held.reason, held.message


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (UNKNOWN, " (foo.example.com/Bar is no known kind)"),
        (workload("keda.sh/v1alpha1", "ScaledJob", {}), " (keda.sh/ScaledJob is no known kind)"),
        (SAMPLES["LeaderWorkerSet"][0] | {"apiVersion": "leaderworkerset.x-k8s.io/v9"}, ""),
    ],
    ids=["no table has the kind", "a group of which other kinds make no pods", "an unknown version"],
)
def test_unknown_pods_are_unknown_room(made: Json, what: str) -> None:
    asked = request("worker-2", spec=manifests(made))
    assert waits(plan(free("worker-2", 8, 8), wanted=wants(asked))) == (
        Reason.NO_SHAPE,
        (
            f"the needs of manifest part-0{what} are unknown, so nothing of it is placed (declare it in gprDetails: "
            "numberOfGPUs, numberOfGPUNodes)"
        ),
    )


def test_gpr_details_say_what_unknown_pods_need() -> None:
    asked = request("worker-2", spec=manifests(UNKNOWN), ask=gpus(8, nodes=2))
    (_, place) = plan(free("worker-2", 8, 8), wanted=wants(asked)).changes
    assert place.action is Action.PLACE
    assert place.placement.replicas == 2


def test_a_workspace_may_let_unknown_pods_count_as_nothing() -> None:
    asked = request("worker-2", spec=manifests(UNKNOWN))
    wanted = wants(asked)
    lenient = {name: replace(workspace, allow_unknown_needs=True) for name, workspace in wanted.workspaces.items()}
    (_, place) = plan(free("worker-2", 8), wanted=replace(wanted, workspaces=lenient)).changes
    assert place.action is Action.PLACE


def test_the_stateful_set_of_openkruise_is_counted() -> None:
    asked = request("worker-2", spec=manifests(ADVANCED))
    reason, message = waits(plan(free("worker-2", 8, 8), wanted=wants(asked)))
    assert reason is Reason.NOTHING_FITS
    assert "for each of 5 pods" in message


@pytest.mark.parametrize(
    "made",
    [
        workload("v1", "Service", {}),
        workload("monitoring.coreos.com/v1", "ServiceMonitor", {}),
        workload("keda.sh/v1alpha1", "ScaledObject", {}),
        workload("serving.kserve.io/v1alpha1", "ServingRuntime", {}),
    ],
    ids=lambda made: made["kind"],
)
def test_what_makes_no_pods_is_known(made: Json) -> None:
    assert pods_of_request(request(spec=manifests(made))).strange == ()


def declared(spec: str) -> Desired:
    text = f"""\
apiVersion: overspill.dev/v1alpha1
kind: WorkloadKind
metadata: {{name: bars}}
spec: {{group: foo.example.com, kind: Bar, {spec}}}
"""
    return assemble(CommitId(""), {"kinds/bars.yaml": parse_file(text.encode())})


def test_a_workload_kind_may_say_that_objects_make_no_pods() -> None:
    desired = declared("makesPods: false")
    assert desired.problems == ()
    assert request_requirements(request(spec=manifests(UNKNOWN)), kinds=desired.kinds).unknown == ""


def test_a_kind_without_pods_has_no_place_of_pods() -> None:
    (problem,) = declared("makesPods: false, replicasPaths: [spec.size]").problems
    assert problem.message == "says that it makes no pods, and where its pods are"
