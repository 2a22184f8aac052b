"""Objects that a template includes, so that no cluster has to provide them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from reconciler.core.workloads.api_kinds import cluster_scoped, group_kind
from reconciler.core.workloads.paths import at
from reconciler.model.cluster import Category
from reconciler.model.kubernetes.workload_kind import Path, path
from reconciler.model.workload import Json

IncludedObject: TypeAlias = tuple[Category, str]
"""A category, and a name in it as in a `Prerequisite`."""

_NAME = path("metadata.name")
_INCLUDED: Mapping[str, tuple[Category, tuple[Path, ...]]] = {
    "/PersistentVolumeClaim": (Category.VOLUMES, (_NAME,)),
    "/ConfigMap": (Category.CONFIG_MAPS, (_NAME,)),
    "/Secret": (Category.SECRETS, (_NAME,)),
    "/ServiceAccount": (Category.SERVICE_ACCOUNTS, (_NAME,)),
    "bitnami.com/SealedSecret": (Category.SECRETS, (path("spec.template.metadata.name"), _NAME)),
    "cert-manager.io/Certificate": (Category.SECRETS, (path("spec.secretName"),)),
    "external-secrets.io/ExternalSecret": (Category.SECRETS, (path("spec.target.name"), _NAME)),
    "k8s.cni.cncf.io/NetworkAttachmentDefinition": (Category.NETWORKS, (_NAME,)),
    "kai.scheduler/Topology": (Category.TOPOLOGIES, (_NAME,)),
    "kueue.x-k8s.io/LocalQueue": (Category.QUEUES, (_NAME,)),
    "kueue.x-k8s.io/WorkloadPriorityClass": (Category.PRIORITY_CLASSES, (_NAME,)),
    "node.k8s.io/RuntimeClass": (Category.RUNTIME_CLASSES, (_NAME,)),
    "resource.k8s.io/DeviceClass": (Category.DEVICE_CLASSES, (_NAME,)),
    "resource.k8s.io/ResourceClaim": (Category.CLAIMS, (_NAME,)),
    "resource.k8s.io/ResourceClaimTemplate": (Category.CLAIM_TEMPLATES, (_NAME,)),
    "resource.nvidia.com/ComputeDomain": (Category.CLAIM_TEMPLATES, (path("spec.channel.resourceClaimTemplate.name"),)),
    "scheduling.k8s.io/PriorityClass": (Category.PRIORITY_CLASSES, (_NAME,)),
    "scheduling.run.ai/PodGroup": (Category.POD_GROUPS, (_NAME,)),
    "scheduling.run.ai/Queue": (Category.QUEUES, (_NAME,)),
    "scheduling.volcano.sh/PodGroup": (Category.POD_GROUPS, (_NAME,)),
    "scheduling.volcano.sh/Queue": (Category.QUEUES, (_NAME,)),
    "serving.kserve.io/ClusterServingRuntime": (Category.RUNTIMES, (_NAME,)),
    "serving.kserve.io/ServingRuntime": (Category.RUNTIMES, (_NAME,)),
    "storage.k8s.io/StorageClass": (Category.STORAGE_CLASSES, (_NAME,)),
    "trainer.kubeflow.org/ClusterTrainingRuntime": (Category.RUNTIMES, (_NAME,)),
    "trainer.kubeflow.org/TrainingRuntime": (Category.RUNTIMES, (_NAME,)),
}
"""Kinds that references name, or that make such objects; the name is at the first path with a value."""


def included_objects(manifest: Mapping[str, Json], namespace: str) -> Iterator[IncludedObject]:
    """Yield the names that an object provides; `namespace` is its namespace, if it has one."""
    kind = group_kind(manifest)
    if kind == "apiextensions.k8s.io/CustomResourceDefinition":
        group = at(manifest, path("spec.group"))
        yield Category.KINDS, f"{group}/{at(manifest, path('spec.names.kind'))}"
        versions = at(manifest, path("spec.versions"))
        for version in versions if isinstance(versions, list) else ():
            if at(version, path("served")) is not False:
                yield Category.API_VERSIONS, f"{group}/{at(version, path('name'))}"
        return
    category, field_paths = _INCLUDED.get(kind, (None, ()))
    name = next(
        (
            name_text
            for field_path in field_paths
            if isinstance(name_text := at(manifest, field_path), str) and name_text
        ),
        "",
    )
    if category is not None and name:
        yield category, name if cluster_scoped(kind) else f"{namespace}/{name}"
