"""The prerequisites of a template: objects that its own objects refer to and that the template does not include.

Computed once for each version of a template. Pod specs are found wherever an object holds one, also in unknown kinds.
The objects of a chart are unknown until it is rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.engines.deployment import made_manifests, target_namespace
from reconciler.core.engines.service_export import export_kind, export_version, service
from reconciler.core.pods.pod_references import (
    Reference,
    as_mapping,
    device_class_references,
    mappings_in,
    metadata_references,
    pod_references,
    volume_claim_references,
)
from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS, group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds
from reconciler.core.workloads.included_objects import IncludedObject, included_objects
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.kubernetes.workload_kind import Path, path
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeploySpec, Json, StepType
from reconciler.text.findings import shortened

_QUEUED = ((path("spec.queue"), Category.QUEUES), (path("spec.priorityClassName"), Category.PRIORITY_CLASSES))
_ELSEWHERE: Mapping[str, tuple[tuple[Path, Category], ...]] = {
    **{name: kind.references for name, kind in BUILT_IN.items() if kind.references},
    "scheduling.volcano.sh/PodGroup": _QUEUED,
    "scheduling.run.ai/PodGroup": _QUEUED,
}
"""References outside of pod specs, by kind; all without a namespace."""

_VOLCANO = "batch.volcano.sh/Job"
_CLAIM = "pvc://"
"""The prefix by which KServe names a model on a volume."""


def prerequisites(spec: DeploySpec, workspace: Workspace, kinds: Kinds) -> tuple[Prerequisite, ...]:
    """List the prerequisites of a spec, each once, in the order of `Category` and then by name.

    `kinds` are the workload kinds that the fleet repository declares. A name with an expression is kept as written.
    """
    target = target_namespace(spec, workspace)
    objects = list(made_manifests(spec, kinds, kept=True))
    is_complete = all(step.type is StepType.MANIFEST for step in spec.steps)
    own: set[IncludedObject] = set()
    for manifest in objects:
        own.update(included_objects(manifest, namespace_of(manifest, target)))
    needed_by_key: dict[IncludedObject, Prerequisite] = {}
    for manifest in objects:
        by = shortened(f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}")
        for version in _api_version(manifest, is_complete=is_complete):
            key = Category.API_VERSIONS, version
            if key not in own:
                # Without the object's name: templates of the same kinds have the same answers of clusters.
                kind = shortened(str(manifest.get("kind")))
                needed_by_key.setdefault(key, Prerequisite(category=key[0], name=version, by=kind))
        for category, name in _references(manifest, namespace_of(manifest, target), kinds):
            if (category, name) not in own:
                needed_by_key.setdefault((category, name), Prerequisite(category=category, name=name, by=by))
    shared = workspace.shared_networking
    if shared is not None and (services := [prerequisite for prerequisite in objects if service(prerequisite)]):
        by = shortened(f"Service {at(services[0], ('metadata', 'name'))}")
        kind, version = export_kind(shared), export_version(shared)
        for category, name, user in ((Category.KINDS, kind, by), (Category.API_VERSIONS, version, "ServiceExport")):
            if (category, name) not in own:
                needed_by_key.setdefault((category, name), Prerequisite(category=category, name=name, by=user))
    order = list(Category)
    return tuple(sorted(needed_by_key.values(), key=lambda needed: (order.index(needed.category), needed.name)))


def _api_version(manifest: Mapping[str, Json], *, is_complete: bool) -> Iterator[str]:
    """Yield the ``group/version`` that an object is written in; none for the core group, which all clusters serve.

    Where a spec is not `is_complete`, what its charts and commands bring is unknown: they may define any custom kind.
    """
    version = manifest.get("apiVersion")
    if not isinstance(version, str):
        return
    group = version.rpartition("/")[0]
    if group and (is_complete or group in KUBERNETES_GROUPS):
        yield version


def namespace_of(manifest: Mapping[str, Json], target: str) -> str:
    """Return the namespace of an object: its own, else the `target`."""
    namespace = at(manifest, ("metadata", "namespace"))
    return namespace if isinstance(namespace, str) and namespace else target


def _references(manifest: Mapping[str, Json], namespace: str, kinds: Kinds) -> Iterator[IncludedObject]:
    """Yield every reference of one object."""
    kind = group_kind(manifest)
    if kind.partition("/")[0] not in KUBERNETES_GROUPS:
        yield Category.KINDS, kind
    for category, name, own in (
        *_kind_references(manifest, kind),
        *_pod_path_references(manifest, kinds),
        *_nested_references(manifest),
    ):
        yield category, f"{namespace}/{name}" if own and "/" not in name else name


def _kind_references(manifest: Mapping[str, Json], kind: str) -> Iterator[Reference]:
    """Yield the references of an object outside of its pods, by its kind."""
    for field_path, category in _ELSEWHERE.get(kind, ()):
        name = at(manifest, field_path)
        if isinstance(name, str) and name:
            yield category, name, False
    spec = as_mapping(manifest.get("spec"))
    if kind == _VOLCANO:
        if not spec.get("schedulerName"):
            yield Category.SCHEDULERS, "volcano", False
        for volume in mappings_in(spec.get("volumes")):
            claim = volume.get("volumeClaimName")
            if isinstance(claim, str) and claim and not volume.get("volumeClaim"):
                yield Category.VOLUMES, claim, True
    elif kind == "/PersistentVolumeClaim":
        yield from volume_claim_references(spec)
    elif kind == "resource.k8s.io/ResourceClaim":
        yield from device_class_references(spec)
    elif kind == "resource.k8s.io/ResourceClaimTemplate":
        yield from device_class_references(as_mapping(spec.get("spec")))


def _pod_path_references(manifest: Mapping[str, Json], kinds: Kinds) -> Iterator[Reference]:
    """Yield the references of the pods of a known kind, at paths that do not look like pod specs."""
    for place in pod_template_sites(manifest, kinds):
        if place.loc and place.template.containers:
            pod = as_mapping(at(manifest, tuple(map(str, place.loc))))
            yield from pod_references(pod, place.template.containers)


def _nested_references(value: Json) -> Iterator[Reference]:
    """Yield the references anywhere below a value: in pod specs, and in metadata."""
    if isinstance(value, list):
        for item in value:
            yield from _nested_references(item)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("containers"), list):
        yield from pod_references(value)
    yield from metadata_references(as_mapping(value.get("metadata")))
    for claim in mappings_in(value.get("volumeClaimTemplates")):
        yield from volume_claim_references(as_mapping(claim.get("spec")))
    for field in ("storageUri", "uri"):
        text = value.get(field)
        if isinstance(text, str) and text.startswith(_CLAIM):
            yield Category.VOLUMES, text.removeprefix(_CLAIM).partition("/")[0], True
    for item in value.values():
        if isinstance(item, dict | list):
            yield from _nested_references(item)
