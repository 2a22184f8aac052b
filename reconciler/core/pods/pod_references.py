"""Objects that pods refer to and cannot start without, by their spec, labels and annotations.

The input is user-written and unvalidated: values of another type than Kubernetes takes are skipped. References that are
``optional``, and Secrets for pulling images, keep no pod from starting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from reconciler.model.capacity import CLASS_PREFIX
from reconciler.model.cluster import Category
from reconciler.model.workload import Json

Reference: TypeAlias = tuple[Category, str, bool]
"""A category, a name, and whether the object is in the namespace of the referrer."""

_ALWAYS_PRESENT: Mapping[Category, frozenset[str]] = {
    Category.SCHEDULERS: frozenset({"default-scheduler"}),
    Category.SERVICE_ACCOUNTS: frozenset({"default"}),
    Category.PRIORITY_CLASSES: frozenset({"system-cluster-critical", "system-node-critical"}),
}
"""Objects of every cluster."""

_FIELDS = (
    ("schedulerName", Category.SCHEDULERS, False),
    ("priorityClassName", Category.PRIORITY_CLASSES, False),
    ("runtimeClassName", Category.RUNTIME_CLASSES, False),
    ("serviceAccountName", Category.SERVICE_ACCOUNTS, True),
)
_LABELS = (
    ("kueue.x-k8s.io/queue-name", Category.QUEUES, True),
    ("kai.scheduler/queue", Category.QUEUES, False),
    ("kueue.x-k8s.io/priority-class", Category.PRIORITY_CLASSES, False),
)
"""Labels of Kueue (a LocalQueue, a WorkloadPriorityClass) and KAI (a Queue, which has no namespace)."""

_ANNOTATIONS = (
    ("scheduling.volcano.sh/queue-name", Category.QUEUES, False),
    ("scheduling.k8s.io/group-name", Category.POD_GROUPS, True),
    ("kai.scheduler/topology", Category.TOPOLOGIES, False),
)
"""Annotations of Volcano (a Queue, a PodGroup) and KAI (a Topology)."""

_NETWORKS = "k8s.v1.cni.cncf.io/networks"


def pod_references(spec: Mapping[str, Json], containers: tuple[str, ...] = ()) -> Iterator[Reference]:
    """Yield the references of a pod spec; `containers` are fields of it that are a container each."""
    for field, category, own in _FIELDS:
        yield from _reference(category, spec.get(field), own=own)
    for volume in mappings_in(spec.get("volumes")):
        yield from _volume_references(volume)
    for claim in mappings_in(spec.get("resourceClaims")):
        yield from _reference(Category.CLAIM_TEMPLATES, claim.get("resourceClaimTemplateName"), own=True)
        yield from _reference(Category.CLAIMS, claim.get("resourceClaimName"), own=True)
    for part in ("initContainers", "containers"):
        for container in mappings_in(spec.get(part)):
            yield from _container_references(container)
    for field in containers:
        yield from _container_references(as_mapping(spec.get(field)))


def metadata_references(metadata: Mapping[str, Json]) -> Iterator[Reference]:
    """Yield the references in labels and annotations of an object, or of the pods that it makes."""
    for part, table in (("labels", _LABELS), ("annotations", _ANNOTATIONS)):
        texts = as_mapping(metadata.get(part))
        for key, category, own in table if texts else ():
            yield from _reference(category, texts.get(key), own=own)
    yield from _network_references(as_mapping(metadata.get("annotations")).get(_NETWORKS))


def volume_claim_references(spec: Mapping[str, Json]) -> Iterator[Reference]:
    """Yield the references of a PersistentVolumeClaim's spec."""
    yield from _reference(Category.STORAGE_CLASSES, spec.get("storageClassName"), own=False)


def device_class_references(spec: Mapping[str, Json]) -> Iterator[Reference]:
    """Yield the DeviceClasses that a ResourceClaim's spec refers to."""
    for request in mappings_in(as_mapping(spec.get("devices")).get("requests")):
        for subrequest in (request, as_mapping(request.get("exactly")), *mappings_in(request.get("firstAvailable"))):
            yield from _reference(Category.DEVICE_CLASSES, subrequest.get("deviceClassName"), own=False)


def as_mapping(value: Json) -> Mapping[str, Json]:
    """Return a mapping as it is, and an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return a list as it is, and an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def mappings_in(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the mappings of a list."""
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _volume_references(volume: Mapping[str, Json]) -> Iterator[Reference]:
    yield from _reference(Category.VOLUMES, as_mapping(volume.get("persistentVolumeClaim")).get("claimName"), own=True)
    template = as_mapping(as_mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
    yield from volume_claim_references(as_mapping(template.get("spec")))
    yield from _object_reference(Category.CONFIG_MAPS, volume.get("configMap"))
    yield from _object_reference(Category.SECRETS, volume.get("secret"), "secretName")
    for source in mappings_in(as_mapping(volume.get("projected")).get("sources")):
        yield from _object_reference(Category.CONFIG_MAPS, source.get("configMap"))
        yield from _object_reference(Category.SECRETS, source.get("secret"))


def _container_references(container: Mapping[str, Json]) -> Iterator[Reference]:
    for source in mappings_in(container.get("envFrom")):
        yield from _object_reference(Category.CONFIG_MAPS, source.get("configMapRef"))
        yield from _object_reference(Category.SECRETS, source.get("secretRef"))
    for variable in mappings_in(container.get("env")):
        source = as_mapping(variable.get("valueFrom"))
        yield from _object_reference(Category.CONFIG_MAPS, source.get("configMapKeyRef"))
        yield from _object_reference(Category.SECRETS, source.get("secretKeyRef"))
    if container.get("imagePullPolicy") == "Never":
        yield from _reference(Category.IMAGES, container.get("image"), own=False)
    for part in as_mapping(container.get("resources")).values():
        for name in as_mapping(part):
            if name.startswith(CLASS_PREFIX):
                yield Category.DEVICE_CLASSES, name.removeprefix(CLASS_PREFIX), False


def _network_references(text: Json) -> Iterator[Reference]:
    """Parse Multus' annotation: ``namespace/name@interface`` separated by commas, or a list in JSON."""
    if not isinstance(text, str):
        return
    if not text.lstrip().startswith("["):
        for part in text.split(","):
            yield from _reference(Category.NETWORKS, part.strip().partition("@")[0], own=True)
        return
    try:
        networks = json.loads(text)
    except (ValueError, RecursionError):
        return
    for network in mappings_in(networks):
        namespace, name = network.get("namespace"), network.get("name")
        full = f"{namespace}/{name}" if isinstance(namespace, str) and namespace and name else name
        yield from _reference(Category.NETWORKS, full, own=True)


def _object_reference(category: Category, reference: Json, field: str = "name") -> Iterator[Reference]:
    target = as_mapping(reference)
    if target.get("optional") is not True:
        yield from _reference(category, target.get(field), own=True)


def _reference(category: Category, name: Json, *, own: bool) -> Iterator[Reference]:
    if isinstance(name, str) and name and name not in _ALWAYS_PRESENT.get(category, ()):
        yield category, name, own
