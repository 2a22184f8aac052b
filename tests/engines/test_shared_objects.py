"""What others live in stays when a placement goes, with every engine and whatever makes it; nothing else does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.core.engines.deployment import shares_objects
from reconciler.core.engines.flux.charts import keep_patches
from reconciler.core.safety.allowed_kinds import COMPANIONS
from reconciler.core.safety.lifetime import others_live_in
from reconciler.core.safety.scope import outlives_placements
from reconciler.core.validation.custom_resources import custom_kind
from reconciler.core.workloads.api_kinds import CLUSTER_SCOPED, cluster_scoped
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas
from reconciler.model.policy import EngineName
from reconciler.model.workload import Json
from tests.builders.deploy_specs import WORKSPACE, chart, files, spec
from tests.builders.platform_objects import obj

KINDS = (
    ("v1", "Namespace"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
    ("kueue.x-k8s.io/v1beta1", "ResourceFlavor"),
)
MARKS = {
    EngineName.ARGOCD: {"argocd.argoproj.io/sync-options": "Prune=false,Delete=false"},
    EngineName.FLUX: {"kustomize.toolkit.fluxcd.io/prune": "disabled"},
    EngineName.MANIFESTS: {"overspill.dev/deletion-policy": "Retain"},
}
ENGINES = pytest.mark.parametrize("engine", [*MARKS])


def made(version: str, kind: str) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "shared", "labels": {"team": "x"}}}


def annotations(manifest: Json, engine: EngineName, **more: Any) -> dict[str, str]:
    """Return the annotations that an engine writes on the only object of its kind."""
    name, kind = manifest["metadata"]["name"], manifest["kind"]
    written = (yaml.safe_load(data) for data in files(spec(("it", manifest)), engine, **more).values())
    (found,) = (each for each in written if each.get("kind") == kind and each["metadata"]["name"] == name)
    assert "overspill.dev/placement" not in found["metadata"].get("labels", {}), "it is nobody's"
    noted: dict[str, str] = found["metadata"].get("annotations", {})
    return noted


@ENGINES
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_what_others_live_in_is_never_pruned(version: str, kind: str, engine: EngineName) -> None:
    noted = annotations(made(version, kind), engine)
    assert MARKS[engine].items() <= noted.items()


@pytest.mark.parametrize("engine", [EngineName.ARGOCD, EngineName.MANIFESTS])
def test_what_others_live_in_is_kept_from_a_chart_that_is_rendered_here_too(engine: EngineName) -> None:
    workspace = replace(WORKSPACE, allowed_kinds=frozenset({"/Namespace"}))
    charts = {name: (made("v1", "Namespace") | {"metadata": {"name": name}},) for name in ("tools", "vllm-demo")}
    deployed = spec(*(chart(name, release_name=name) for name in charts))
    written = files(deployed, engine, workspace=workspace, charts=charts)
    found = [yaml.safe_load(data) for path, data in written.items() if "00-namespace" in path]
    assert len(found) == 2
    assert all(MARKS[engine].items() <= each["metadata"]["annotations"].items() for each in found)


def test_flux_has_helm_keep_it_where_the_workspace_allows_it() -> None:
    kinds = frozenset({"/Namespace", "scheduling.k8s.io/PriorityClass", "batch/Job"})
    targets = [patch["target"] for patch in keep_patches(replace(WORKSPACE, allowed_kinds=kinds), {}, NO_SCHEMAS)]
    assert targets == [
        {"group": "", "kind": "Namespace"},
        {"group": "scheduling.k8s.io", "kind": "PriorityClass"},
    ]
    assert keep_patches(WORKSPACE, {}, NO_SCHEMAS) == []
    written = files(spec(chart()), EngineName.FLUX, workspace=replace(WORKSPACE, allowed_kinds=kinds))
    assert b"helm.sh/resource-policy: keep" in b"".join(written.values())


TENANT: Json = {"apiVersion": "capsule.clastix.io/v1beta2", "kind": "Tenant", "metadata": {"name": "shared"}}
"""A custom kind without a namespace, in which namespaces live; its name does not say so."""
ALLOWING = replace(WORKSPACE, allowed_kinds=("capsule.clastix.io/Tenant",))


def defined(scope: str) -> ObjectSchemas:
    """Read the definition of the kind, as of a file of the fleet repository."""
    spec = {"group": "capsule.clastix.io", "names": {"kind": "Tenant"}, "versions": [{"name": "v1beta2"}]}
    value = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    custom, findings = custom_kind({**value, "spec": {**spec, "scope": scope}})
    assert custom is not None, findings
    return ObjectSchemas(custom={custom.name: custom})


@ENGINES
@pytest.mark.parametrize(
    ("schemas", "namespace", "kept"),
    [
        (defined("Cluster"), "", True),
        (defined("Cluster"), "demo", True),
        (defined("Namespaced"), "", False),
        (NO_SCHEMAS, "", True),
        (NO_SCHEMAS, "demo", False),
    ],
    ids=["Cluster", "Cluster with a namespace", "Namespaced", "unknown", "unknown in a namespace"],
)
def test_custom_kind_is_kept_where_it_is_or_may_be_what_others_live_in(
    schemas: ObjectSchemas, namespace: str, engine: EngineName, *, kept: bool
) -> None:
    manifest = {**TENANT, "metadata": {"name": "shared", **({"namespace": namespace} if namespace else {})}}
    written = files(spec(("it", manifest)), engine, workspace=ALLOWING, schemas=schemas)
    (found,) = (each for data in written.values() if (each := yaml.safe_load(data))["kind"] == "Tenant")
    assert (MARKS[engine].items() <= found["metadata"].get("annotations", {}).items()) == kept
    assert ("overspill.dev/placement" in found["metadata"].get("labels", {})) != kept
    assert shares_objects(spec(("it", manifest)), {}, schemas) == kept


@pytest.mark.parametrize("kind", sorted({*BUILT_IN, *COMPANIONS}))
def test_workloads_and_their_companions_are_never_kept(kind: str) -> None:
    group, _, name = kind.rpartition("/")
    manifest = {"apiVersion": f"{group}/v1".removeprefix("/"), "kind": name, "metadata": {"name": "it"}}
    assert outlives_placements(manifest, {}, NO_SCHEMAS) == cluster_scoped(kind)


def test_flux_has_helm_keep_what_a_definition_says_is_nobodys() -> None:
    (patch,) = keep_patches(ALLOWING, {}, defined("Cluster"))
    assert patch["target"] == {"group": "capsule.clastix.io", "kind": "Tenant"}
    assert keep_patches(ALLOWING, {}, defined("Namespaced")) == []


def test_what_acts_by_itself_is_pruned_with_what_it_is_for() -> None:
    pruned = {kind for kind in CLUSTER_SCOPED if not others_live_in(kind)}
    assert pruned == {"apiregistration.k8s.io/APIService", "rbac.authorization.k8s.io/ClusterRoleBinding"}
    assert not others_live_in("admissionregistration.k8s.io/ValidatingWebhookConfiguration")
    assert not others_live_in("/ConfigMap")


def test_namespace_with_labels_is_merged_and_one_with_a_name_alone_is_left_to_who_made_it() -> None:
    key = "kustomize.toolkit.fluxcd.io/ssa"
    assert annotations(made("v1", "Namespace"), EngineName.FLUX)[key] == "Merge"
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}}
    assert annotations(bare, EngineName.FLUX)[key] == "IfNotPresent"


def test_record_says_that_argo_cd_may_meet_it_in_another_application() -> None:
    config = obj("v1", "ConfigMap", "settings")
    assert shares_objects(spec(("it", made("v1", "Namespace"))), {}, NO_SCHEMAS)
    assert not shares_objects(spec(("it", config)), {}, NO_SCHEMAS)
