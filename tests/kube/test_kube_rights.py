"""The rights in repo-layout/bootstrap/rbac*.yaml are those that watching takes, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kube import stream
from reconciler.core.engines.argocd.applications import APPLICATIONS
from reconciler.core.engines.argocd.cluster_secrets import SECRETS
from reconciler.core.engines.flux.reports import HELM_RELEASES, KUSTOMIZATIONS
from reconciler.core.engines.reports import EngineResource
from reconciler.core.observe.kubernetes.resources import (
    CAPACITY,
    CONTROLLERS,
    SIGNALS,
    Resource,
    custom_resources_of_pods,
)
from reconciler.core.schema import yaml
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.policy import ArgoCD, Flux
from reconciler.model.workload import WorkloadRef

BOOTSTRAP = Path(__file__).parents[2] / "repo-layout" / "bootstrap"
PARTS = {
    "rbac.yaml": (
        "",
        CAPACITY
        | CONTROLLERS
        | SIGNALS
        | {Resource.TEMPLATES, Resource.EVENTS, Resource.NODE_POOLS, Resource.RUNTIMES, Resource.CLUSTER_RUNTIMES}
        | custom_resources_of_pods(
            WorkloadRef(namespace="demo", name="any", kind=kind.kind, group=kind.group) for kind in BUILT_IN.values()
        ),
    ),
    "rbac-flux.yaml": (Flux().namespace, {KUSTOMIZATIONS, HELM_RELEASES}),
    "rbac-argocd.yaml": (ArgoCD().namespace, {APPLICATIONS}),
    "rbac-argocd-logins.yaml": (ArgoCD().namespace, {SECRETS}),
}
"""The namespace that the rights of each part are for, none for all, and what may be read."""


def documents(name: str) -> list[dict[str, Any]]:
    return [document.value for document in yaml.parse((BOOTSTRAP / name).read_bytes(), name)]


@pytest.mark.parametrize("name", PARTS)
def test_role_allows_just_what_is_watched(name: str) -> None:
    namespace, resources = PARTS[name]
    (role,) = [one for one in documents(name) if one["kind"] in ("ClusterRole", "Role")]
    allowed = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
    assert (role["kind"], role["metadata"].get("namespace", "")) == ("Role" if namespace else "ClusterRole", namespace)
    assert allowed == {(resource.group, resource.plural) for resource in resources}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}


@pytest.mark.parametrize("name", PARTS)
def test_role_is_bound_to_the_account_that_comes_with_it(name: str) -> None:
    (account,) = [one["metadata"] for one in documents("rbac.yaml") if one["kind"] == "ServiceAccount"]
    (role,) = [one for one in documents(name) if one["kind"] in ("ClusterRole", "Role")]
    (binding,) = [one for one in documents(name) if one["kind"].endswith("Binding")]
    assert binding["metadata"] == role["metadata"]
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (role["kind"], role["metadata"]["name"])
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]


def test_account_of_argo_cds_cluster_is_made_as_that_of_any_other() -> None:
    made = [one for one in documents("rbac.yaml") if one["kind"] in ("Namespace", "ServiceAccount")]
    assert [one for one in documents("rbac-argocd.yaml") if one["kind"] in ("Namespace", "ServiceAccount")] == made


@pytest.mark.parametrize("resource", [*Resource, APPLICATIONS, SECRETS, KUSTOMIZATIONS, HELM_RELEASES])
def test_refusal_names_the_file_that_has_the_right(resource: Resource | EngineResource) -> None:
    (named,) = [name for name, (_, resources) in PARTS.items() if resource in resources]
    assert stream.rights(resource) == f"bootstrap/{named}"


def test_part_for_flux_makes_the_namespace_that_its_role_is_in() -> None:
    spaces = {one["metadata"]["name"] for one in documents("rbac-flux.yaml") if one["kind"] == "Namespace"}
    assert spaces == {Flux().namespace}
