"""Scopes of Kubernetes kinds.

Kubernetes reports scopes by API discovery, which is not available here: rendering is pure. The lists are those of
Kubernetes 1.37, and of the projects of GPU platforms, whose queues and node pools bound all tenants; other kinds named
``Cluster...`` are assumed to be cluster-scoped, as is the custom.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.workload import Json

KUBERNETES_GROUPS = frozenset({
    "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
    "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io",
    "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
    "storagemigration.k8s.io",
})  # fmt: skip # a list of words, filled line by line
"""The API groups that Kubernetes 1.37 itself serves; kinds of any other group have to be installed."""

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
    "apps.kruise.io/NodeImage", "apps.kruise.io/NodePodProbe", "apps.kruise.io/ResourceDistribution",
    "apps.kruise.io/SidecarSet", "gateway.networking.k8s.io/GatewayClass", "kai.scheduler/Config",
    "kai.scheduler/SchedulingShard", "kai.scheduler/Topology", "karpenter.azure.com/AKSNodeClass",
    "karpenter.k8s.aws/EC2NodeClass", "karpenter.sh/NodeClaim", "karpenter.sh/NodePool",
    "kueue.x-k8s.io/AdmissionCheck", "kueue.x-k8s.io/Cohort", "kueue.x-k8s.io/MultiKueueCluster",
    "kueue.x-k8s.io/MultiKueueConfig", "kueue.x-k8s.io/ProvisioningRequestConfig", "kueue.x-k8s.io/ResourceFlavor",
    "kueue.x-k8s.io/Topology", "kueue.x-k8s.io/WorkloadPriorityClass", "nodeinfo.volcano.sh/Numatopology",
    "nvidia.com/NVIDIADriver", "scheduling.run.ai/Queue", "scheduling.volcano.sh/Queue",
    "serving.kserve.io/LocalModelCache", "serving.kserve.io/LocalModelNode", "serving.kserve.io/LocalModelNodeGroup",
    "shard.volcano.sh/NodeShard", "snapshot.storage.k8s.io/VolumeSnapshotClass",
    "snapshot.storage.k8s.io/VolumeSnapshotContent", "topology.volcano.sh/HyperNode",
})  # fmt: skip # a list of words, filled line by line
"""Kinds of GPU platforms that have no namespace and are not called so, as their CustomResourceDefinitions say."""

_CLUSTER_SCOPED_GROUPS = frozenset({
    "admissionregistration.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "storagemigration.k8s.io",
})  # fmt: skip # a list of words, filled line by line


def is_list(manifest: Mapping[str, Json]) -> bool:
    """Return whether engines split an object into items: any with ``items`` at the top, whatever its kind."""
    return manifest.get("kind") == "List" or isinstance(manifest.get("items"), list)


def group_kind(manifest: Mapping[str, Json]) -> str:
    """Write an object's kind as ``group/Kind``, the core group being empty."""
    version = str(manifest.get("apiVersion", ""))
    group = version.rpartition("/")[0]
    return f"{group}/{manifest.get('kind', '')}"


def cluster_scoped(kind: str) -> bool:
    """Return whether objects of a ``group/Kind`` have no namespace."""
    group, _, name = kind.partition("/")
    if kind in CLUSTER_SCOPED or kind in PLATFORM_SCOPED or group in _CLUSTER_SCOPED_GROUPS:
        return True
    return "." in group and not group.endswith(".k8s.io") and name.startswith("Cluster")
