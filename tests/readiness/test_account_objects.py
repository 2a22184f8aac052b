"""What `grant` applies is what the daemon watches, and no more than the files of bootstrap/ grant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.readiness.account_objects import account_objects
from reconciler.core.readiness.check import AskedServer
from reconciler.core.readiness.needed_rights import fleet_servers, watch_rights
from reconciler.core.schema import yaml
from reconciler.model.ids import CommitId
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.node_pools import declared
from tests.builders.ready_fleet import FILES

LAYOUT = Path(__file__).parents[2] / "repo-layout" / "bootstrap"
FLEET = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in FILES.items()})
SERVERS = fleet_servers(FLEET)
PRINTED = [
    document.value for path in LAYOUT.glob("rbac*.yaml") for document in yaml.parse(path.read_bytes(), path.name)
]


def rights(objects: list[Json]) -> set[tuple[str, str, str, str]]:
    """Return the kind of each role with each namespace, group and resource that it grants."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), group, resource)
        for each in objects
        for rule in each.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if rule["verbs"] == ["list", "watch"]
    }


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.title)
def test_each_right_that_is_looked_for_is_granted_and_none_beyond_the_files(server: AskedServer) -> None:
    objects = list(account_objects(FLEET, [server]))
    granted = rights(objects)
    needed = {
        ("Role" if each.namespace else "ClusterRole", each.namespace, resource.group, resource.plural)
        for each in watch_rights(FLEET, server)
        for resource in each.resources
    }
    assert needed <= granted <= rights(PRINTED)
    known = {(each["kind"], each["metadata"]["name"]) for each in PRINTED}
    assert {(each["kind"], each["metadata"]["name"]) for each in objects} <= known


def test_where_a_chart_leaves_its_kind_open_each_kind_that_is_known_may_be_read() -> None:
    ((workload, template),) = FLEET.templates.items()
    ref = WorkloadRef(namespace="demo", name="vllm", release=True)
    fleet = replace(FLEET, templates={workload: replace(template, ref=ref)})
    primary = SERVERS[0]
    granted = rights(list(account_objects(fleet, [primary])))
    assert ("ClusterRole", "", "leaderworkerset.x-k8s.io", "leaderworkersets") in granted
    assert ("ClusterRole", "", "leaderworkerset.x-k8s.io", "leaderworkersets") not in rights(
        list(account_objects(FLEET, [primary]))
    )
    assert granted <= rights(PRINTED)


def test_companions_are_granted_by_their_names_and_secrets_never() -> None:
    head, _ = FILES["template.yaml"].split("  manifestResources:")
    source = "  from: {workload: {kind: Deployment, namespace: demo, name: vllm}, companions: [%s]}\n"
    template = head + source % "service/vllm, configmap/settings, configmap/chat"
    texts = {**FILES, "template.yaml": template}
    fleet = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in texts.items()})
    primary, other = fleet_servers(fleet)[:2]
    named = [each for each in account_objects(fleet, [primary]) if each["metadata"]["name"] == "overspill-companions"]
    role, binding = named
    assert (role["kind"], role["metadata"]["namespace"], binding["kind"]) == ("Role", "demo", "RoleBinding")
    verbs = ["list", "watch"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["chat", "settings"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["services"], "resourceNames": ["vllm"], "verbs": verbs},
    ]
    assert not [each for each in account_objects(fleet, [other]) if each["metadata"]["name"] == "overspill-companions"]
    needed = [each for each in watch_rights(fleet, primary) if each.names]
    assert [(each.namespace, each.names) for each in needed] == [("demo", ("chat", "settings")), ("demo", ("vllm",))]


def test_only_a_primary_is_watched_for_workloads() -> None:
    counts = {server.title: len(rights(list(account_objects(FLEET, [server])))) for server in SERVERS}
    assert counts["worker-1"] > counts["worker-3"]
    assert counts["Argo CD"] == 1


@pytest.mark.parametrize("live", [True, False], ids=["made from the live object", "of its own manifest"])
def test_a_cluster_that_train_jobs_go_to_is_watched_for_them(live: bool) -> None:
    head, _ = FILES["template.yaml"].split("  manifestResources:")
    kind = "apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob"
    source = f"  from: {{workload: {{{kind}, namespace: demo, name: vllm}}}}\n"
    own = f"  manifestResources: [{{name: job, manifest: {{{kind}, metadata: {{name: vllm}}, spec: {{}}}}}}]\n"
    own += "  steps: [{name: job, type: manifest}]\n"
    texts = {**FILES, "template.yaml": head + (source if live else own)}
    fleet = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in texts.items()})
    train_jobs = ("ClusterRole", "", "trainer.kubeflow.org", "trainjobs")
    _, *others = [server for server in fleet_servers(fleet) if server.cluster is not None]
    assert all(train_jobs in rights(list(account_objects(fleet, [server]))) for server in others)
    assert not any(train_jobs in rights(list(account_objects(FLEET, [server]))) for server in others)


@pytest.mark.parametrize("title", ["worker-1", "worker-3"], ids=["a primary", "no primary"])
def test_node_pools_may_be_read_where_nodes_of_them_are_declared_only(title: str) -> None:
    pools = ("ClusterRole", "", "karpenter.sh", "nodepools")
    (server,) = [server for server in SERVERS if server.title == title]
    assert server.cluster is not None
    assert pools not in rights(list(account_objects(FLEET, [server])))
    growing = replace(FLEET.clusters[server.cluster], autoscaling=(declared(),))
    fleet = replace(FLEET, clusters={**FLEET.clusters, server.cluster: growing})
    assert pools in rights(list(account_objects(fleet, [server])))
    (needed,) = [each for each in watch_rights(fleet, server) if Resource.NODE_POOLS in each.resources]
    assert needed.file == "bootstrap/rbac.yaml"
