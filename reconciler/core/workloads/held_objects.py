"""The objects that an object holds whole and its controller makes, so that what holds of objects holds of these too.

A kind of workload says where they are (`WorkloadKind.wraps`). A kind that no table has may hold them anywhere, as a
ManifestWork, a Work of Karmada and a ResourceDistribution of Kruise do: whatever has an apiVersion, a kind and a name
in its metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS, group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds
from reconciler.core.workloads.paths import at, located
from reconciler.core.workloads.wrapped_kinds import wrapped_objects
from reconciler.model.workload import Json
from reconciler.text.findings import Loc

_NAME, _NAMESPACE = ("metadata", "name"), ("metadata", "namespace")


def held_objects(manifest: Mapping[str, Json], declared: Kinds) -> Iterator[tuple[Loc, Json]]:
    """Yield what an object holds whole, at any depth, each with its place in it: objects, unless it is broken.

    `declared` are the WorkloadKinds of the fleet repository.
    """
    name = group_kind(manifest)
    kind = declared.get(name) or BUILT_IN.get(name)
    if kind is not None:
        held = [(located(manifest, place), inner) for place, inner in wrapped_objects(kind, manifest)]
    elif name.partition("/")[0] in KUBERNETES_GROUPS:
        held = []
    else:
        held = [*_whole_objects(manifest, ())]
    for place, inner in held:
        yield place, inner
        for below, deeper in held_objects(inner, declared) if isinstance(inner, Mapping) else ():
            yield (*place, *below), deeper


def with_wrapped(manifest: Mapping[str, Json], declared: Kinds) -> Iterator[Mapping[str, Json]]:
    """Yield an object and those that it makes for certain: what a kind of workload wraps, at any depth.

    They are in its namespace where they name none.
    """
    yield manifest
    name = group_kind(manifest)
    kind = declared.get(name) or BUILT_IN.get(name)
    for _, inner in wrapped_objects(kind, manifest) if kind is not None else ():
        if isinstance(inner, Mapping) and isinstance(inner.get("metadata"), Mapping):
            yield from with_wrapped(_in_namespace_of(manifest, inner), declared)


def _in_namespace_of(manifest: Mapping[str, Json], inner: Mapping[str, Json]) -> Mapping[str, Json]:
    namespace = at(manifest, _NAMESPACE)
    if at(inner, _NAMESPACE) or not namespace:
        return inner
    return {**inner, "metadata": {**inner["metadata"], "namespace": namespace}}


def _whole_objects(value: Json, loc: Loc) -> Iterator[tuple[Loc, Mapping[str, Json]]]:
    """Yield the whole objects below a value, without those inside of them."""
    entries = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        if isinstance(item, Mapping) and _is_whole(item):
            yield (*loc, key), item
        elif isinstance(item, Mapping | list):
            yield from _whole_objects(item, (*loc, key))


def _is_whole(value: Mapping[str, Json]) -> bool:
    stated = (value.get("apiVersion"), value.get("kind"), at(value, _NAME))
    return all(isinstance(text, str) and text for text in stated)
