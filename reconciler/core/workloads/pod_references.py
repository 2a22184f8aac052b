"""What pods refer to and cannot start without, as their spec and the labels and annotations beside it name it.

What is read here a person wrote, and no API server has looked at it: whatever is not of the type that Kubernetes takes
is passed over. A reference that is ``optional``, and a Secret to pull images with, keep no pod from starting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from reconciler.model.capacity import CLASS_PREFIX
from reconciler.model.prerequisites import Category
from reconciler.model.workload import Json

Named: TypeAlias = tuple[Category, str, bool]
"""What is needed, by what name, and whether it is in the namespace of whoever needs it."""

_USUAL: Mapping[Category, frozenset[str]] = {
    Category.SCHEDULERS: frozenset({"default-scheduler"}),
    Category.SERVICE_ACCOUNTS: frozenset({"default"}),
    Category.PRIORITY_CLASSES: frozenset({"system-cluster-critical", "system-node-critical"}),
}
"""What every cluster has."""

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


def of_pod(spec: Mapping[str, Json], containers: tuple[str, ...] = ()) -> Iterator[Named]:
    """Yield what a pod's spec refers to; `containers` are further fields of it that are a container each."""
    for field, category, own in _FIELDS:
        yield from _named(category, spec.get(field), own=own)
    for volume in maps(spec.get("volumes")):
        yield from _of_volume(volume)
    for claim in maps(spec.get("resourceClaims")):
        yield from _named(Category.CLAIM_TEMPLATES, claim.get("resourceClaimTemplateName"), own=True)
        yield from _named(Category.CLAIMS, claim.get("resourceClaimName"), own=True)
    for part in ("initContainers", "containers"):
        for container in maps(spec.get(part)):
            yield from _of_container(container)
    for field in containers:
        yield from _of_container(mapping(spec.get(field)))


def of_metadata(metadata: Mapping[str, Json]) -> Iterator[Named]:
    """Yield what the labels and annotations of an object, or of the pods that it makes, refer to."""
    for part, table in (("labels", _LABELS), ("annotations", _ANNOTATIONS)):
        texts = mapping(metadata.get(part))
        for key, category, own in table if texts else ():
            yield from _named(category, texts.get(key), own=own)
    yield from _networks(mapping(metadata.get("annotations")).get(_NETWORKS))


def of_claim(spec: Mapping[str, Json]) -> Iterator[Named]:
    """Yield what the spec of a PersistentVolumeClaim refers to."""
    yield from _named(Category.STORAGE_CLASSES, spec.get("storageClassName"), own=False)


def of_devices(spec: Mapping[str, Json]) -> Iterator[Named]:
    """Yield the DeviceClasses that the spec of a ResourceClaim refers to."""
    for request in maps(mapping(spec.get("devices")).get("requests")):
        for subrequest in (request, mapping(request.get("exactly")), *maps(request.get("firstAvailable"))):
            yield from _named(Category.DEVICE_CLASSES, subrequest.get("deviceClassName"), own=False)


def mapping(value: Json) -> Mapping[str, Json]:
    """Return a mapping as it is, and nothing in place of anything else."""
    return value if isinstance(value, dict) else {}


def maps(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the mappings of a list."""
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _of_volume(volume: Mapping[str, Json]) -> Iterator[Named]:
    yield from _named(Category.VOLUMES, mapping(volume.get("persistentVolumeClaim")).get("claimName"), own=True)
    template = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
    yield from of_claim(mapping(template.get("spec")))
    yield from _referred(Category.CONFIG_MAPS, volume.get("configMap"))
    yield from _referred(Category.SECRETS, volume.get("secret"), "secretName")
    for source in maps(mapping(volume.get("projected")).get("sources")):
        yield from _referred(Category.CONFIG_MAPS, source.get("configMap"))
        yield from _referred(Category.SECRETS, source.get("secret"))


def _of_container(container: Mapping[str, Json]) -> Iterator[Named]:
    for source in maps(container.get("envFrom")):
        yield from _referred(Category.CONFIG_MAPS, source.get("configMapRef"))
        yield from _referred(Category.SECRETS, source.get("secretRef"))
    for variable in maps(container.get("env")):
        source = mapping(variable.get("valueFrom"))
        yield from _referred(Category.CONFIG_MAPS, source.get("configMapKeyRef"))
        yield from _referred(Category.SECRETS, source.get("secretKeyRef"))
    if container.get("imagePullPolicy") == "Never":
        yield from _named(Category.IMAGES, container.get("image"), own=False)
    for part in mapping(container.get("resources")).values():
        for name in mapping(part):
            if name.startswith(CLASS_PREFIX):
                yield Category.DEVICE_CLASSES, name.removeprefix(CLASS_PREFIX), False


def _networks(text: Json) -> Iterator[Named]:
    """Read Multus' annotation: names, each with its namespace before and its interface behind, or a list in JSON."""
    if not isinstance(text, str):
        return
    if not text.lstrip().startswith("["):
        for part in text.split(","):
            yield from _named(Category.NETWORKS, part.strip().partition("@")[0], own=True)
        return
    try:
        networks = json.loads(text)
    except (ValueError, RecursionError):
        return
    for network in maps(networks):
        namespace, name = network.get("namespace"), network.get("name")
        full = f"{namespace}/{name}" if isinstance(namespace, str) and namespace and name else name
        yield from _named(Category.NETWORKS, full, own=True)


def _referred(category: Category, reference: Json, field: str = "name") -> Iterator[Named]:
    target = mapping(reference)
    if target.get("optional") is not True:
        yield from _named(category, target.get(field), own=True)


def _named(category: Category, name: Json, *, own: bool) -> Iterator[Named]:
    if isinstance(name, str) and name and name not in _USUAL.get(category, ()):
        yield category, name, own
