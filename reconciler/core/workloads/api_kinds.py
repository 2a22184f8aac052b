"""Scopes of Kubernetes kinds, and the kinds that templates may not contain.

Kubernetes reports scopes by API discovery, which is not available here: rendering is pure. The lists are those of
Kubernetes 1.37, and of the schedulers of GPU platforms, whose queues bound all tenants; other kinds named
``Cluster...`` are taken to be cluster-scoped, as is the custom.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.workload import Json

CLUSTER_SCOPED = frozenset({
    "/ComponentStatus", "/Namespace", "/Node", "/PersistentVolume", "apiextensions.k8s.io/CustomResourceDefinition",
    "apiregistration.k8s.io/APIService", "authentication.k8s.io/SelfSubjectReview", "authentication.k8s.io/TokenReview",
    "authorization.k8s.io/SelfSubjectAccessReview", "authorization.k8s.io/SelfSubjectRulesReview",
    "authorization.k8s.io/SubjectAccessReview", "networking.k8s.io/IPAddress", "networking.k8s.io/IngressClass",
    "networking.k8s.io/ServiceCIDR", "node.k8s.io/RuntimeClass", "policy/PodSecurityPolicy",
    "rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding",
    "resource.k8s.io/DeviceClass", "resource.k8s.io/DeviceTaintRule", "resource.k8s.io/ResourceSlice",
    "scheduling.k8s.io/PriorityClass", "storage.k8s.io/CSIDriver", "storage.k8s.io/CSINode",
    "storage.k8s.io/StorageClass", "storage.k8s.io/VolumeAttachment", "storage.k8s.io/VolumeAttributesClass",
})  # fmt: skip # a list of words, filled line by line

PLATFORM_SCOPED = frozenset({
    "kai.scheduler/Topology", "kueue.x-k8s.io/AdmissionCheck", "kueue.x-k8s.io/Cohort",
    "kueue.x-k8s.io/MultiKueueCluster", "kueue.x-k8s.io/MultiKueueConfig", "kueue.x-k8s.io/ProvisioningRequestConfig",
    "kueue.x-k8s.io/ResourceFlavor", "kueue.x-k8s.io/Topology", "kueue.x-k8s.io/WorkloadPriorityClass",
    "scheduling.run.ai/Queue", "scheduling.volcano.sh/Queue", "topology.volcano.sh/HyperNode",
})  # fmt: skip # a list of words, filled line by line
"""Kinds of Kueue, KAI and Volcano that have no namespace and are not called so."""

_CLUSTER_SCOPED_GROUPS = frozenset({
    "admissionregistration.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "storagemigration.k8s.io",
})  # fmt: skip # a list of words, filled line by line

_ARGO_WORKLOADS = frozenset({
    "AnalysisRun", "AnalysisTemplate", "CronWorkflow", "Experiment", "Rollout", "Workflow", "WorkflowTemplate",
})  # fmt: skip # a list of words, filled line by line
"""The kinds of ``argoproj.io`` that only run things in their namespace; the others steer Argo itself."""

RIGHTS: Mapping[str, tuple[str, ...]] = {
    "authorization.openshift.io": ("Role", "RoleBinding", "RoleBindingRestriction"),
    "rbac.authorization.k8s.io": ("Role", "RoleBinding"),
}
"""The groups that grant rights, and their kinds that live in namespaces."""


def is_list(manifest: Mapping[str, Json]) -> bool:
    """Tell whether engines split an object into items: any with ``items`` at the top, whatever its kind."""
    return manifest.get("kind") == "List" or isinstance(manifest.get("items"), list)


def group_kind(manifest: Mapping[str, Json]) -> str:
    """Write an object's kind as ``group/Kind``, the core group being empty."""
    version = str(manifest.get("apiVersion", ""))
    group = version.rpartition("/")[0]
    return f"{group}/{manifest.get('kind', '')}"


def cluster_scoped(kind: str) -> bool:
    """Tell whether objects of a ``group/Kind`` have no namespace."""
    group, _, name = kind.partition("/")
    if kind in CLUSTER_SCOPED or kind in PLATFORM_SCOPED or group in _CLUSTER_SCOPED_GROUPS:
        return True
    return "." in group and not group.endswith(".k8s.io") and name.startswith("Cluster")


def refused(kind: str) -> str:
    """Return why a ``group/Kind`` needs the permission of the workspace; empty where it does not."""
    group, _, name = kind.partition("/")
    if group in RIGHTS:
        return "grants rights (RBAC)"
    if group == "argoproj.io" and name not in _ARGO_WORKLOADS:
        return "steers Argo CD"
    if group.endswith("toolkit.fluxcd.io") or group == "fluxcd.controlplane.io":
        return "steers Flux"
    if kind == "apiextensions.k8s.io/CustomResourceDefinition":
        return "defines a kind for the whole cluster"
    return "belongs to the whole cluster" if cluster_scoped(kind) else ""
