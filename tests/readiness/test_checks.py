"""Checks make their results of answers alone, and what was not answered is unknown."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.engines import ENGINES
from reconciler.core.observe.kubernetes.resources import CustomResource, Resource
from reconciler.core.readiness.check import AskedServer, Check, CheckResult, Readiness, with_kubeconfig
from reconciler.core.readiness.fleet_checks import server_checks
from reconciler.core.readiness.needed_rights import NeededRights
from reconciler.core.readiness.node_pools import DeclaredNodePool
from reconciler.core.readiness.prerequisites import NeededObject, is_asked
from reconciler.core.readiness.question import GROUPS, VERSION, AnswerKind, ApiAnswer, ApiQuestion
from reconciler.core.readiness.read_rights import ReadRights
from reconciler.core.readiness.server import ClockCheck
from reconciler.core.schema import yaml
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Connection, Fleet
from tests.builders.inputs import cluster, desired
from tests.builders.node_pools import declared, node_pool
from tests.builders.platform_objects import bursting_fleet, deployment
from tests.builders.ready_fleet import bootstraps
from tests.builders.requests import manifests

SERVER = AskedServer(title="worker-2", cluster=ClusterName("worker-2"), connection=Connection(context="gke two"))
PRIMARY = AskedServer(title="worker-1", cluster=ClusterName("worker-1"), connection=Connection(in_cluster=True))
ABSENT = ApiAnswer(kind=AnswerKind.ABSENT)
FORBIDDEN = ApiAnswer(kind=AnswerKind.FORBIDDEN, why="forbids it: to you")
ALLOWED = ApiAnswer(kind=AnswerKind.GIVEN, body={"status": {"allowed": True}})
DENIED = ApiAnswer(kind=AnswerKind.GIVEN, body={"status": {"allowed": False}})


def result(check: Check, usual: ApiAnswer, answers: Mapping[ApiQuestion, ApiAnswer] | None = None) -> CheckResult:
    """Give one answer to every question but some."""
    return check.result({**dict.fromkeys(check.questions, usual), **(answers or {})})


@pytest.mark.parametrize(
    ("ahead", "readiness"),
    [
        (timedelta(seconds=9), Readiness.OK),
        (timedelta(seconds=-9), Readiness.OK),
        (timedelta(seconds=11), Readiness.MISSING),
        (timedelta(seconds=-11), Readiness.MISSING),
        (None, Readiness.UNKNOWN),
    ],
)
def test_clock_may_be_a_little_off(ahead: timedelta | None, readiness: Readiness) -> None:
    answer = ApiAnswer(kind=AnswerKind.GIVEN, body={}, skew=ahead)
    assert ClockCheck(server=SERVER).result({VERSION: answer}).readiness is readiness


def test_rights_that_nobody_tells_are_unknown() -> None:
    check = ReadRights(server=SERVER, needed=NeededRights(file="bootstrap/rbac.yaml", resources=(Resource.NODES,)))
    told = result(check, FORBIDDEN)
    assert (told.readiness, told.seen) == (Readiness.UNKNOWN, "forbids it: to you")
    assert told.remedy == "kubectl --context 'gke two' auth can-i list nodes --all-namespaces"


def test_rights_to_kinds_that_the_fleet_declares_are_granted_with_the_others() -> None:
    kind = CustomResource("example.com", ("v1",), "trainers", "Trainer")
    check = ReadRights(server=PRIMARY, needed=NeededRights(file="", resources=(kind,)))
    groups = {"groups": [{"name": "example.com", "versions": [{"groupVersion": "example.com/v1"}]}]}
    told = result(check, DENIED, {GROUPS: ApiAnswer(kind=AnswerKind.GIVEN, body=groups)})
    assert told.remedy == "overspill grant --context CONTEXT --cluster worker-1"
    other = {"groups": [{"name": "example.com", "versions": [{"groupVersion": "example.com/v2"}]}]}
    assert result(check, DENIED, {GROUPS: ApiAnswer(kind=AnswerKind.GIVEN, body=other)}).readiness is Readiness.OK


def test_right_is_lacking_where_nobody_tells_what_is_served() -> None:
    check = ReadRights(server=SERVER, needed=NeededRights(file="bootstrap/rbac.yaml", resources=(Resource.QUEUED,)))
    assert result(check, DENIED, {GROUPS: FORBIDDEN}).readiness is Readiness.MISSING


@pytest.mark.parametrize(
    ("category", "name", "remedy"),
    [
        (Category.SERVICE_ACCOUNTS, "demo/runner", "create serviceaccount runner --namespace=demo"),
        (Category.STORAGE_CLASSES, "fast", "| kubectl --context 'gke two' apply -f -"),
        (Category.KINDS, "ray.io/RayCluster", "kubectl api-resources --api-group=ray.io"),
    ],
)
def test_what_a_template_needs_is_made_or_taken_over_from_the_primary(
    category: Category, name: str, remedy: str
) -> None:
    check = NeededObject(
        server=SERVER, primary=PRIMARY, prerequisite=Prerequisite(category=category, name=name, by="Deployment vllm")
    )
    told = result(check, ABSENT)
    assert told.readiness is Readiness.MISSING
    assert told.remedy.endswith(remedy)
    assert result(check, FORBIDDEN).readiness is Readiness.UNKNOWN


ASSIGNED = {
    "creationTimestamp": "2026-11-20T12:00:00Z",
    "finalizers": ["kubernetes.io/pvc-protection"],
    "generateName": "hub-",
    "managedFields": [{"manager": "external-secrets"}],
    "ownerReferences": [{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "name": "hub", "uid": "7"}],
    "resourceVersion": "17",
    "uid": "8",
}


def copy_filter(category: Category) -> str:
    """Return the filter of jq in the command that copies an object."""
    needed = Prerequisite(category=category, name="demo/hub", by="Deployment vllm")
    words = shlex.split(result(NeededObject(server=SERVER, primary=PRIMARY, prerequisite=needed), ABSENT).remedy)
    return words[words.index("jq") + 1]


def copied(category: Category, manifest: Mapping[str, Any]) -> Any:
    """Return what an object is after the filter."""
    jq = shutil.which("jq")
    if jq is None:
        pytest.skip("jq is not installed, so only the text of the filter is tested")
    command = [jq, copy_filter(category)]
    return json.loads(
        subprocess.run(command, input=json.dumps(manifest).encode(), capture_output=True, check=True).stdout
    )


@pytest.mark.parametrize(
    "category", [Category.SECRETS, Category.CONFIG_MAPS, Category.VOLUMES, Category.STORAGE_CLASSES]
)
def test_filter_of_a_copy_names_each_field_that_a_server_or_a_controller_sets(category: Category) -> None:
    text = copy_filter(category)
    assert text.startswith("del(")
    assert [field for field in ASSIGNED if f'"{field}"' not in text] == []
    assert ".status" in text
    assert (".spec.volumeName" in text) is (category is Category.VOLUMES)


def test_copy_of_a_secret_has_no_owner_that_is_absent_from_the_target() -> None:
    own = {
        "name": "hub",
        "namespace": "demo",
        "labels": {"app": "vllm"},
        "annotations": {"volume.kubernetes.io/x": "y"},
    }
    secret = {"kind": "Secret", "metadata": {**own, **ASSIGNED}, "data": {"token": "eA=="}, "status": {}}
    assert copied(Category.SECRETS, secret) == {"kind": "Secret", "metadata": own, "data": {"token": "eA=="}}


def test_copy_of_a_claim_is_bound_to_no_volume() -> None:
    own = {"team": "llm", "volume.beta.kubernetes.io/storage-class": "fast"}
    bound = {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.kubernetes.io/selected-node": "gpu-1",
        "volume.kubernetes.io/storage-provisioner": "csi.example.com",
        "volume.beta.kubernetes.io/storage-provisioner": "csi.example.com",
    }
    metadata, spec = {"name": "hub", "namespace": "demo"}, {"accessModes": ["ReadWriteOnce"]}
    claim = {
        "metadata": {**metadata, **ASSIGNED, "annotations": {**own, **bound}},
        "spec": {**spec, "volumeName": "pvc-1"},
        "status": {"phase": "Bound"},
    }
    assert copied(Category.VOLUMES, claim) == {"metadata": {**metadata, "annotations": own}, "spec": spec}


def test_copy_of_a_claim_without_annotations_stays_as_it_is() -> None:
    claim = {"metadata": {"name": "hub"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    assert copied(Category.VOLUMES, claim) == claim


def test_priority_class_of_either_api_will_do() -> None:
    needed = Prerequisite(category=Category.PRIORITY_CLASSES, name="high", by="Job train")
    check = NeededObject(server=SERVER, primary=PRIMARY, prerequisite=needed)
    kueue = next(question for question in check.questions if "kueue" in question.path)
    assert result(check, ABSENT, {kueue: ALLOWED}).readiness is Readiness.OK
    assert result(check, FORBIDDEN, {kueue: ALLOWED}).readiness is Readiness.OK


def test_names_that_an_expression_makes_are_not_asked_for() -> None:
    assert not is_asked(Prerequisite(category=Category.SECRETS, name="demo/{{ model }}", by="Deployment vllm"))
    assert not is_asked(Prerequisite(category=Category.IMAGES, name="vllm:1", by="Deployment vllm"))


def test_clusters_without_an_engine_of_ours_are_only_watched() -> None:
    targets = cluster("worker-2"), cluster("worker-3")
    fleet = bursting_fleet(*targets, spec=manifests(deployment()))
    checks = server_checks(fleet, output_branch="placements", begun=True)
    kinds = {server.title: [type(check).__name__ for check in listed] for server, listed in checks.items()}
    listed = ["VersionCheck", "ClockCheck", "ReadRights", "TargetNamespace"]
    candidate = [*listed, "TemplateVersions"]
    assert kinds == {"worker-1": listed, "worker-2": candidate, "worker-3": candidate}


def test_every_kind_with_a_condition_or_a_secret_is_printed_by_its_bootstrap() -> None:
    printed = [document.value for text in bootstraps() for document in yaml.parse(text.encode(), "bootstrap")]
    kinds = {document["kind"] for document in printed}
    secrets = {document["spec"]["secretRef"]["name"] for document in printed if "secretRef" in document.get("spec", {})}
    described = [engine.bootstrap for engine in ENGINES.values() if engine.bootstrap is not None]
    assert {kind for bootstrap in described for kind in bootstrap.conditions} <= kinds
    assert {name for bootstrap in described for name in bootstrap.secrets} == secrets


def test_installation_is_for_the_context_of_the_cluster() -> None:
    for engine in ENGINES.values():
        if engine.bootstrap is not None:
            line = engine.bootstrap.install(Fleet(), context="gke two")
            assert "--context 'gke two'" in line
            assert "--context" not in engine.bootstrap.install(Fleet(), context="")


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ((), "kubectl get a -o json | jq . | kubectl --context b apply -f -"),
        (
            ("k s",),
            "kubectl --kubeconfig 'k s' get a -o json | jq . | kubectl --kubeconfig 'k s' --context b apply -f -",
        ),
        (("k", "l"), "KUBECONFIG=k:l kubectl get a -o json | jq . | KUBECONFIG=k:l kubectl --context b apply -f -"),
    ],
)
def test_commands_name_the_kubeconfig_of_the_login(files: tuple[str, ...], line: str) -> None:
    assert with_kubeconfig("kubectl get a -o json | jq . | kubectl --context b apply -f -", files) == line


POOL = DeclaredNodePool(server=SERVER, nodes=declared())
POOLS = POOL.questions[0]


def node_pools(*items: dict[str, Any]) -> CheckResult:
    return POOL.result({POOLS: ApiAnswer(kind=AnswerKind.GIVEN, body={"items": list(items)})})


def test_a_node_pool_is_ready_for_the_nodes_that_are_declared_of_it() -> None:
    told = node_pools(node_pool("other", conditions=()), node_pool())
    assert (told.readiness, told.subject, told.seen) == (Readiness.OK, "NodePool gpu", "there, and Ready")


def test_a_node_pool_that_launches_no_nodes_is_missing_with_its_reason() -> None:
    told = node_pools(node_pool(conditions=({"type": "Ready", "status": "False", "reason": "NodeClassNotFound"},)))
    assert (told.readiness, told.seen) == (Readiness.MISSING, "is not Ready: NodeClassNotFound")
    assert told.remedy == "kubectl --context 'gke two' describe nodepools.karpenter.sh gpu"


def test_a_taint_that_a_cluster_does_not_declare_of_a_node_pool_is_told() -> None:
    told = node_pools(node_pool(template={"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}))
    assert (told.readiness, told.seen) == (
        Readiness.MISSING, "its nodes have the taint gpu:NoSchedule, which is not declared",
    )  # fmt: skip # a result


@pytest.mark.parametrize(
    ("answer", "readiness", "seen"),
    [
        (ApiAnswer(kind=AnswerKind.GIVEN, body={"items": []}), Readiness.MISSING, "not there"),
        (ABSENT, Readiness.MISSING, "its API server serves no NodePools"),
        (FORBIDDEN, Readiness.UNKNOWN, "forbids it: to you"),
    ],
)
def test_a_node_pool_that_is_not_seen_is_missing_or_unknown(answer: ApiAnswer, readiness: Readiness, seen: str) -> None:
    told = POOL.result({POOLS: answer})
    assert (told.readiness, told.seen) == (readiness, seen)


def test_node_pools_are_looked_for_in_the_clusters_that_declare_nodes_of_them() -> None:
    fleet = desired(clusters=(cluster("worker-1"), cluster("worker-2", autoscaling=(declared(),))))
    asked = {
        str(server.cluster): [check for check in checks if isinstance(check, DeclaredNodePool)]
        for server, checks in server_checks(fleet, output_branch="placements", begun=True).items()
        if server.cluster is not None
    }
    assert [len(checks) for checks in asked.values()] == [0, 1]
