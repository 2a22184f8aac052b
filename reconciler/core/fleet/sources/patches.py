"""Changes of a template's objects by cluster.

A patch is a part of an object: objects are merged, null deletes, a list whose items all have a name is merged by name,
and any other list is replaced. So the patches of kustomize for containers, environments and volumes read as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.core.capacity.pod_requirements import largest_shape
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import WorkloadId
from reconciler.model.manifest_source import ManifestPatch
from reconciler.model.policy import Cluster, Desired
from reconciler.model.workload import DeploySpec, Json, ManifestResource, WorkloadRef, WorkloadTemplate
from reconciler.text.findings import Finding, Loc


def spec_for(template: WorkloadTemplate, cluster: Cluster, kinds: Kinds) -> DeploySpec:
    """Return the spec of a template as it is for one cluster; the same object where no patch is for it."""
    patches = [patch for patch in template.patches if patch.applies_to(cluster.name, cluster.labels)]
    return _patched(template.spec, template.ref, patches, kinds) if patches else template.spec


def indexes_for(template: WorkloadTemplate, cluster: Cluster) -> tuple[int, ...]:
    """Return the places of the patches that are for one cluster: clusters with the same ones get the same objects."""
    patches = enumerate(template.patches)
    return tuple(index for index, patch in patches if patch.applies_to(cluster.name, cluster.labels))


def _patched(spec: DeploySpec, ref: WorkloadRef | None, patches: Iterable[ManifestPatch], kinds: Kinds) -> DeploySpec:
    manifests = spec.manifests
    for patch in patches:
        manifests = tuple(
            replace(resource, manifest=merged(resource.manifest, patch.patch))
            if _is_meant(resource, patch, ref, kinds)
            else resource
            for resource in manifests
        )
    return replace(spec, manifests=manifests)


_PATCHED = (
    "requests", "node_selector", "node_terms", "tolerations", "devices", "rules", "group_size", "apart", "admission",
)  # fmt: skip # a table
"""Fields of a shape that the objects of a template state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PatchedObjects:
    """What decisions read of the objects of a template as some of its patches make them."""

    prerequisites: tuple[Prerequisite, ...]
    # By field, where the patches change it.
    shape: Mapping[str, Any]


class PatchedTemplates:
    """The templates of one fleet as their patches make them, each read once for clusters with the same patches.

    A decision asks for them by cluster, in every pass. Requests are read each time: their templates come and go.
    """

    def __init__(self, desired: Desired) -> None:
        """Start without any."""
        self._desired = desired
        self._read: dict[tuple[WorkloadId, tuple[int, ...]], _PatchedObjects] = {}

    def prerequisites(self, template: WorkloadTemplate, cluster: Cluster) -> tuple[Prerequisite, ...]:
        """Return the objects that one cluster must have before the template can run there."""
        objects = self._of(template, cluster)
        return template.prerequisites if objects is None else objects.prerequisites

    def template(self, template: WorkloadTemplate, cluster: Cluster) -> WorkloadTemplate:
        """Return a template with the objects and prerequisites that it has on one cluster; the same without patches."""
        objects = self._of(template, cluster)
        if objects is None:
            return template
        spec = spec_for(template, cluster, self._desired.kinds)
        return replace(template, spec=spec, prerequisites=objects.prerequisites, patches=())

    def shape(self, template: WorkloadTemplate, cluster: Cluster, shape: ReplicaShape) -> ReplicaShape:
        """Return the shape of a replica as the patches for one cluster make it; what they leave stays as observed."""
        objects = self._of(template, cluster)
        return replace(shape, **objects.shape) if objects is not None and objects.shape else shape

    def _of(self, template: WorkloadTemplate, cluster: Cluster) -> _PatchedObjects | None:
        """Return what the patches for one cluster make of a template; None where no patch is for it."""
        meant = indexes_for(template, cluster)
        if not meant:
            return None
        key = template.workload, meant
        objects = self._read.get(key)
        if objects is None:
            objects = self._read_objects(template, cluster)
            if not template.request:
                self._read[key] = objects
        return objects

    def _read_objects(self, template: WorkloadTemplate, cluster: Cluster) -> _PatchedObjects:
        kinds, workspace = self._desired.kinds, self._desired.workspaces[template.workspace]
        spec = spec_for(template, cluster, kinds)
        before, after = largest_shape(template.spec, kinds), largest_shape(spec, kinds)
        changed = {} if before is None or after is None else _changed_fields(before, after)
        return _PatchedObjects(prerequisites=prerequisites(spec, workspace, kinds), shape=changed)


def _changed_fields(before: ReplicaShape, after: ReplicaShape) -> Mapping[str, Any]:
    return {name: getattr(after, name) for name in _PATCHED if getattr(before, name) != getattr(after, name)}


def check_patches(
    spec: DeploySpec, ref: WorkloadRef | None, patches: Iterable[ManifestPatch], kinds: Kinds
) -> Iterator[Finding]:
    """Report patches of no object."""
    for index, patch in enumerate(patches):
        if not any(_is_meant(resource, patch, ref, kinds) for resource in spec.manifests):
            names = ", ".join(
                f"{resource.manifest.get('kind')}/{at(resource.manifest, ('metadata', 'name'))}"
                for resource in spec.manifests[:5]
            )
            message = "is for no object of the template"
            yield Finding(loc=("spec", "patches", index, "patch"), message=message, hint=f"it has {names or 'none'}")


def check_patched(
    spec: DeploySpec,
    ref: WorkloadRef | None,
    patches: Sequence[ManifestPatch],
    *,
    clusters: Iterable[Cluster],
    kinds: Kinds,
    check: Callable[[DeploySpec], Iterable[Finding]],
) -> Iterator[Finding]:
    """Report at its patch what `check` finds in the objects of some cluster, and not in those without patches.

    Patches of one cluster are checked together, since one may complete another.
    """
    sets = {
        tuple(index for index, patch in enumerate(patches) if patch.applies_to(cluster.name, cluster.labels))
        for cluster in clusters
    }
    before = frozenset(check(spec)) if any(sets) else frozenset()
    for indexes in sorted(filter(None, sets)):
        whole = _patched(spec, ref, [patches[index] for index in indexes], kinds)
        for finding in check(whole):
            resource = _resource_of(finding, whole)
            if finding in before or resource is None:
                continue
            meant = [index for index in indexes if _is_meant(resource, patches[index], ref, kinds)]
            places = [
                ("spec", "patches", index, "patch", *_within(patches[index].patch, resource.manifest, finding.loc[4:]))
                for index in meant
            ]
            if places:
                yield replace(finding, loc=max(places, key=len))


def _resource_of(finding: Finding, spec: DeploySpec) -> ManifestResource | None:
    """Return the object that a finding is in."""
    match finding.loc:
        case ("spec", "manifestResources", int(index), "manifest", *_):
            return spec.manifests[index]
    return None


def _within(patch: Json, value: Json, path: Loc) -> Loc:
    """Return the place in a patch that a path of the patched object leads to, as far as the patch has it."""
    if not path:
        return ()
    key, rest = path[0], path[1:]
    if isinstance(patch, Mapping) and isinstance(value, Mapping) and key in patch:
        return (key, *_within(patch[key], value.get(key), rest))
    if isinstance(patch, list) and isinstance(value, list) and isinstance(key, int):
        by_name = _named(patch) and _named(value)
        for index, item in enumerate(patch):
            if item["name"] == value[key]["name"] if by_name else index == key:
                return (index, *_within(item, value[key], rest))
    return ()


def merged(value: Json, patch: Json) -> Json:
    """Merge a patch into a value; neither is changed."""
    if isinstance(value, Mapping) and isinstance(patch, Mapping):
        made = {key: item for key, item in value.items() if key not in patch or patch[key] is not None}
        for key, item in patch.items():
            if item is not None:
                made[key] = merged(value.get(key), item)
        return made
    if isinstance(value, list) and isinstance(patch, list) and _named(value) and _named(patch):
        changes = {item["name"]: item for item in patch}
        before = {item["name"] for item in value}
        changed = [merged(item, changes[item["name"]]) if item["name"] in changes else item for item in value]
        return [*changed, *(item for item in patch if item["name"] not in before)]
    if isinstance(patch, Mapping):
        return {key: merged(None, item) for key, item in patch.items() if item is not None}
    return patch


def _named(items: list[Json]) -> bool:
    return all(isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in items)


def _is_meant(resource: ManifestResource, patch: ManifestPatch, ref: WorkloadRef | None, kinds: Kinds) -> bool:
    """Return whether a patch is for an object: by its kind and name, or as the one that bursts."""
    manifest, name = resource.manifest, at(resource.manifest, ("metadata", "name"))
    kind, wanted = patch.patch.get("kind"), at(patch.patch, ("metadata", "name"))
    if kind is None and wanted is None:
        own = ref is None or (name == ref.name and ref.kind in ("", manifest.get("kind")))
        return own and kind_of(manifest, kinds) is not None
    return kind in (None, manifest.get("kind")) and wanted in (None, name)
