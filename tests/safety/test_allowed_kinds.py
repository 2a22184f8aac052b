"""Kinds go by an allow-list: workloads, their companions, and what the Workspace names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.engines.service_export import export_kind
from reconciler.core.safety import rules
from reconciler.core.safety.allowed_kinds import COMPANIONS, allowed, refuse_kind
from reconciler.core.workloads.api_kinds import CLUSTER_SCOPED, PLATFORM_SCOPED, cluster_scoped
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.cluster import NetworkApi, SharedNetworking
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.text.findings import Finding
from tests.builders.deploy_specs import WORKSPACE, spec

REFUSED = """
    /Binding /Endpoints /Event /LimitRange /Namespace /Node /PersistentVolume /ResourceQuota
    acme.cert-manager.io/Challenge addons.cluster.x-k8s.io/ClusterResourceSet
    admissionregistration.k8s.io/MutatingWebhookConfiguration
    admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding apiextensions.crossplane.io/Composition
    apiextensions.k8s.io/CustomResourceDefinition apiregistration.k8s.io/APIService
    apps.kruise.io/ContainerRecreateRequest apps.kruise.io/EphemeralJob apps.kruise.io/NodeImage
    apps.kruise.io/ResourceDistribution apps.kruise.io/SidecarSet apps/ControllerRevision
    argoproj.io/AppProject argoproj.io/Application argoproj.io/ApplicationSet argoproj.io/ArgoCD
    argoproj.io/CronWorkflow argoproj.io/EventSource argoproj.io/Sensor argoproj.io/Workflow
    argoproj.io/WorkflowTemplate authorization.openshift.io/RoleBinding cert-manager.io/ClusterIssuer
    cert-manager.io/Issuer certificates.k8s.io/CertificateSigningRequest cilium.io/CiliumClusterwideNetworkPolicy
    cluster.x-k8s.io/Cluster config.gatekeeper.sh/Config coordination.k8s.io/Lease core.oam.dev/Application
    crd.projectcalico.org/GlobalNetworkPolicy discovery.k8s.io/EndpointSlice external-secrets.io/ClusterSecretStore
    external-secrets.io/PushSecret external-secrets.io/SecretStore flowcontrol.apiserver.k8s.io/FlowSchema
    fleet.cattle.io/Bundle fleet.cattle.io/GitRepo fluxcd.controlplane.io/FluxInstance
    gateway.networking.k8s.io/Gateway gateway.networking.k8s.io/GatewayClass
    gateway.networking.k8s.io/ReferenceGrant helm.cattle.io/HelmChart helm.cattle.io/HelmChartConfig
    helm.crossplane.io/Release helm.toolkit.fluxcd.io/HelmRelease image.toolkit.fluxcd.io/ImageUpdateAutomation
    infra.contrib.fluxcd.io/Terraform k3s.cattle.io/Addon k3s.cattle.io/ETCDSnapshotFile
    k8s.cni.cncf.io/NetworkAttachmentDefinition k8s.nginx.org/VirtualServer
    karpenter.k8s.aws/EC2NodeClass karpenter.sh/NodePool kubernetes.crossplane.io/Object kueue.x-k8s.io/ClusterQueue
    kueue.x-k8s.io/LocalQueue kustomize.toolkit.fluxcd.io/Kustomization kyverno.io/ClusterPolicy kyverno.io/Policy
    management.cattle.io/GlobalRoleBinding monitoring.coreos.com/Probe monitoring.coreos.com/Prometheus
    monitoring.coreos.com/PrometheusRule networking.istio.io/EnvoyFilter networking.istio.io/VirtualService
    networking.k8s.io/IngressClass nvidia.com/ClusterPolicy nvidia.com/NVIDIADriver oauth.openshift.io/OAuthClient
    operators.coreos.com/Subscription pkg.crossplane.io/Provider policies.kyverno.io/GeneratingPolicy
    policy.networking.k8s.io/AdminNetworkPolicy rbac.authorization.k8s.io/ClusterRole
    rbac.authorization.k8s.io/ClusterRoleBinding rbac.authorization.k8s.io/Role
    rbac.authorization.k8s.io/RoleBinding resource.k8s.io/DeviceClass scheduling.k8s.io/PriorityClass
    scheduling.volcano.sh/Queue secrets-store.csi.x-k8s.io/SecretProviderClass security.istio.io/AuthorizationPolicy
    security.openshift.io/SecurityContextConstraints snapshot.storage.k8s.io/VolumeSnapshotContent
    source.toolkit.fluxcd.io/GitRepository sparkoperator.k8s.io/SparkApplication storage.k8s.io/StorageClass
    tekton.dev/PipelineRun tekton.dev/TaskRun templates.gatekeeper.sh/ConstraintTemplate upgrade.cattle.io/Plan
    velero.io/Restore work.open-cluster-management.io/ManifestWork
""".split()  # noqa: SIM905 -- a list of words, filled line by line
"""Kinds that give rights, run as somebody else, or reach beyond a namespace: each has been tried by somebody."""


def refusals(findings: tuple[Finding, ...]) -> list[Finding]:
    """Leave out what else is wrong with an object that says nothing but its kind."""
    return [finding for finding in findings if "allowedKinds" in finding.hint]


@pytest.mark.parametrize("kind", REFUSED)
def test_a_kind_that_may_reach_beyond_its_tenant_is_refused_with_the_way_out(kind: str) -> None:
    group, _, name = kind.partition("/")
    manifest = {"apiVersion": f"{group}/v1" if group else "v1", "kind": name, "metadata": {"name": "tools"}}
    (finding,) = refusals(rules.check_safety(spec(("it", manifest)), WORKSPACE))
    assert finding.loc == ("spec", "manifestResources", 0, "manifest", "kind")
    assert finding.hint == f"the workspace's allowedKinds would have to hold {kind}"
    (rendered,) = refusals(rules.check_chart_objects((manifest,), ("spec", "helmConfig", 0), WORKSPACE))
    assert finding.message in rendered.message
    assert not refusals(rules.check_safety(spec(("it", manifest)), replace(WORKSPACE, allowed_kinds=(kind,))))


def test_companions_and_workloads_live_in_namespaces_and_are_refused_nowhere() -> None:
    usual = {name for name, kind in BUILT_IN.items() if not kind.wraps}  # which makes objects of any kind
    for kind in (*COMPANIONS, *usual):
        assert not cluster_scoped(kind)
        assert refuse_kind(kind, WORKSPACE) == ""
    assert allowed() == COMPANIONS | usual
    assert allowed().isdisjoint(REFUSED)
    assert allowed().isdisjoint(CLUSTER_SCOPED | PLATFORM_SCOPED)


def test_the_page_lists_every_companion() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "review.md").read_text()
    table = page.partition("| allowed to all |")[2].partition("\n\n")[0].partition("| of Kubernetes |")[2]
    listed = {*re.findall(r"\b[A-Z]\w+", table)} - {"Volcano", "KAI"}
    assert listed == {kind.partition("/")[2] for kind in COMPANIONS}


def test_the_exports_that_overspill_makes_are_among_them() -> None:
    assert {export_kind(SharedNetworking(api=api)) for api in NetworkApi} <= COMPANIONS


def test_a_workload_kind_of_the_fleet_is_allowed_and_gives_no_rights() -> None:
    declared = {
        kind: WorkloadKind(group=kind.partition("/")[0], kind=kind.partition("/")[2], checked="a file")
        for kind in ("game.example.com/GameServerSet", "rbac.authorization.k8s.io/Role", "argoproj.io/Application")
    }
    verdicts = {kind: bool(refuse_kind(kind, WORKSPACE, declared)) for kind in declared}
    assert [*verdicts.values()] == [False, True, True]
    assert allowed(declared) - allowed() == {"game.example.com/GameServerSet"}


def test_what_a_workspace_names_is_allowed_to_it_alone() -> None:
    named = replace(WORKSPACE, allowed_kinds=("kyverno.io/Policy",))
    assert refuse_kind("kyverno.io/Policy", named) == ""
    assert refuse_kind("kyverno.io/Policy", WORKSPACE) != ""
    assert allowed((), (named, WORKSPACE)) - allowed() == {"kyverno.io/Policy"}
