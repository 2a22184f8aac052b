"""Objects of a cluster that templates are made from, kept as another cluster can take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from reconciler.core.observe.kubernetes.resources import Watched
from reconciler.core.safety import credentials
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.portable_object import portable
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.model.capacity import ObservedObject
from reconciler.model.manifest_source import WorkloadSource
from reconciler.model.workload import Json
from reconciler.text.findings import dotted


def observed_object(raw: Json) -> ObservedObject:
    """Keep an object; of one with a credential in it only what it is called, since all else would come into git."""
    manifest = portable(raw)
    leak = next(credentials.check_document(manifest), None)
    if leak is None:
        return ObservedObject(manifest=manifest)
    metadata = {part: raw["metadata"][part] for part in ("name", "namespace") if part in raw["metadata"]}
    named = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
    return ObservedObject(manifest=named, refused=f"{dotted(leak.loc)}: {leak.message} ({leak.hint})")


def by_name(objects: Iterable[ObservedObject]) -> tuple[ObservedObject, ...]:
    """Sort objects by kind, namespace and name."""
    return tuple(
        sorted(
            objects,
            key=lambda each: (
                str(each.manifest["kind"]),
                str(at(each.manifest, ("metadata", "namespace"))),
                str(at(each.manifest, ("metadata", "name"))),
            ),
        )
    )


class LiveObjects:
    """The followed objects; those of other resources are passed over."""

    def __init__(self, sources: AbstractSet[WorkloadSource] = frozenset()) -> None:
        self._wanted = _by_kind(sources)
        self._kept: dict[tuple[Watched, str], ObservedObject] = {}
        self.objects: tuple[ObservedObject, ...] = ()
        """Sorted; the same tuple while nothing changes."""

    def follow(self, sources: AbstractSet[WorkloadSource], resources: Iterable[Watched]) -> AbstractSet[Watched]:
        """Follow these objects from now on; return those of the resources that have to be listed again."""
        before, self._wanted = self._wanted, _by_kind(sources)
        for resource, key in list(self._kept):
            if key not in self._keys(resource):
                self._forget(resource, key)
        return {
            resource
            for resource in resources
            if self._keys(resource) - before.get((resource.kind, resource.group), frozenset())
        }

    def apply(self, resource: Watched, raw: Json, api_version: str) -> ChangeEffect:
        """Keep an object if it is followed, in the version that it is served in where it does not say so itself."""
        wanted = self._wanted and self._keys(resource)
        if not wanted or (key := key_of(raw)) not in wanted:
            return ChangeEffect.NOTHING
        version = raw.get("apiVersion") or api_version or "/".join(filter(None, (resource.group, resource.versions[0])))
        kept = observed_object({**raw, "apiVersion": version, "kind": resource.kind})
        if self._kept.get((resource, key)) == kept:
            return ChangeEffect.NOTHING
        self._kept[resource, key] = kept
        self.objects = by_name(self._kept.values())
        return ChangeEffect.DEMAND

    def remove(self, resource: Watched, key: str) -> ChangeEffect:
        """Drop an object that is gone."""
        if (resource, key) not in self._kept:
            return ChangeEffect.NOTHING
        self._forget(resource, key)
        return ChangeEffect.DEMAND

    def keys(self, resource: Watched) -> set[str]:
        """Return the keys of the kept objects of a resource."""
        return {key for other, key in self._kept if other == resource}

    def _forget(self, resource: Watched, key: str) -> None:
        del self._kept[resource, key]
        self.objects = by_name(self._kept.values())

    def _keys(self, resource: Watched) -> frozenset[str]:
        """Return the keys of the followed objects of a resource."""
        return self._wanted.get((resource.kind, resource.group), frozenset())


def _by_kind(sources: AbstractSet[WorkloadSource]) -> Mapping[tuple[str, str], frozenset[str]]:
    kinds: dict[tuple[str, str], set[str]] = {}
    for source in sources:
        kinds.setdefault((source.kind, source.group), set()).add(
            f"{source.namespace}/{source.name}" if source.namespace else source.name
        )
    return {kind: frozenset(keys) for kind, keys in kinds.items()}
