"""Fields that an API server lets nobody change once their object exists.

`immutable_rules` has what Kubernetes and controllers of GPU platforms validate in code. A CustomResourceDefinition of
the fleet repository adds the fields that its validation rules keep, as ``self == oldSelf``
(https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#transition-rules).

Values are compared as they are written. A default that one version of an object states and the other leaves out counts
as a change, which keeps the object as it is for no need, and harms nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.core.validation.immutable_rules import ANY, FIELDS, ImmutableField
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas, Schema
from reconciler.model.kubernetes.workload_kind import EACH, Path
from reconciler.model.units import parse_quantity
from reconciler.model.workload import Json
from reconciler.text.digits import is_digits

_SERVICE_TYPE: Path = ("spec", "type")
_COMPLETIONS: Path = ("spec", "completions")
_POD_IMAGES = ("containers", "initContainers")
_IMAGE = frozenset({"image"})


def rules_of(manifest: Mapping[str, Json]) -> Iterator[ImmutableField]:
    """Yield the rules of Kubernetes and of controllers that hold for an object."""
    kind, marked = group_kind(manifest), manifest.get("immutable") is True
    for field in FIELDS:
        if field.kind in (kind, ANY) and (marked or field.when != "marked") and _is_labelled(manifest, field.label):
            yield field


def _is_labelled(manifest: Mapping[str, Json], label: str) -> bool:
    return not label or bool(at(manifest, ("metadata", "labels", label)))


def immutable_changes(
    before: Mapping[str, Json], after: Mapping[str, Json], schemas: ObjectSchemas = NO_SCHEMAS
) -> tuple[Path, ...]:
    """List the immutable fields that differ between two versions of one object, in the order of the rules."""
    changes = [field.path for field in rules_of(before) if _differs(field, before, after)]
    if group_kind(before) == "/Pod" and _pod_changes_beyond_images(before, after):
        changes.append(("spec", "containers"))
    kind = schemas.custom.get(group_kind(before))
    schema = kind.versions.get(str(after.get("apiVersion", "")).rpartition("/")[2]) if kind is not None else None
    if schema is not None:
        changes.extend(_transitions(schema, before, after, ()))
    return tuple(dict.fromkeys(changes))


def is_immutable(manifest: Mapping[str, Json], path: Path, schemas: ObjectSchemas = NO_SCHEMAS) -> bool:
    """Return whether the value at a path of an object, an index standing for an item, is part of an immutable field."""
    if any(_covers(field, manifest, path) for field in rules_of(manifest)):
        return True
    kind = schemas.custom.get(group_kind(manifest))
    schema = kind.versions.get(str(manifest.get("apiVersion", "")).rpartition("/")[2]) if kind is not None else None
    for part in path:
        if schema is None or schema.is_immutable:
            break
        schema = schema.values if schema.type == "array" else schema.fields.get(part, schema.values)
    return schema is not None and schema.is_immutable


def _covers(field: ImmutableField, manifest: Mapping[str, Json], path: Path) -> bool:
    """Return whether a rule keeps a value at a path of an object, or what it is part of."""
    size = len(field.path)
    if len(path) < size or any(part not in (EACH, own) for part, own in zip(field.path, path, strict=False)):
        return False
    if not _is_given(field, at(manifest, path[: _depth(field)])):
        return False
    below = path[size:]
    name = below[1:2] if below and is_digits(below[0]) else below[:1]
    if field.when == "named":
        return name == ("name",)
    return field.when not in ("present", "shrunk") and name not in {(part,) for part in field.but}


def _depth(field: ImmutableField) -> int:
    """Return how many parts of the path of a field lead to the last entry on it; 0 for a path without ``*``."""
    return max((place for place, part in enumerate(field.path, 1) if part == EACH), default=0)


def _is_given(field: ImmutableField, owner: Json) -> bool:
    """Return whether a rule holds for an entry of an object, by what stands beside the field."""
    return not field.given or at(owner, field.given) not in (None, False)


def _differs(field: ImmutableField, before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    if field.when in ("set", "first") and "ExternalName" in (at(before, _SERVICE_TYPE), at(after, _SERVICE_TYPE)):
        return False
    if field.when == "balanced" and not all(at(each, _SERVICE_TYPE) == "LoadBalancer" for each in (before, after)):
        return False  # what stands may be of any type, since people write to the output branch
    if field.path == _COMPLETIONS and _is_elastic(before) and _is_elastic(after):
        return False
    depth = _depth(field)
    return any(
        _is_changed(field, at(old, field.path[depth:]), at(new, field.path[depth:]))
        for old, new in _common_entries(field.path[:depth], before, after)
        if _is_given(field, old) or _is_given(field, new)
    )


def _common_entries(path: Path, before: Json, after: Json) -> Iterator[tuple[Json, Json]]:
    """Yield both versions of each entry that a path leads to, which ends with ``*``; an empty one leads to all."""
    if not path:
        yield before, after
        return
    end = path.index(EACH)
    old, new = _entries(at(before, path[:end])), _entries(at(after, path[:end]))
    for name in old:
        if name in new:
            yield from _common_entries(path[end + 1 :], old[name], new[name])


def _entries(value: Json) -> dict[Any, Json]:
    """Return the entries of a mapping or a list by their names; an item without a name by its place."""
    if isinstance(value, Mapping):
        return dict(sorted(value.items(), key=lambda entry: str(entry[0])))
    return {_name(item, place): item for place, item in enumerate(value)} if isinstance(value, list) else {}


def _name(item: Json, place: int) -> str | int:
    name = item.get("name") if isinstance(item, Mapping) else None
    return name if isinstance(name, str) else place


def _is_changed(field: ImmutableField, old: Json, new: Json) -> bool:
    match field.when:
        case "set":
            return bool(new and old != new)
        case "shrunk":
            return _has_shrunk(old, new)
        case "first":
            return isinstance(old, list) and isinstance(new, list) and bool(old and new and old[:1] != new[:1])
        case "named":
            return [*_entries(old)] != [*_entries(new)]
        case "present":
            return (old is None) is not (new is None)
        case "both":
            return old is not None and new is not None and bool(old != new)
        case "counted":
            return 0 not in (old, new) and bool((old or 1) != (new or 1))
        case _:
            return bool(_without(old, field.but) != _without(new, field.but))


def _has_shrunk(old: Json, new: Json) -> bool:
    """Return whether one amount is below another; what is no amount is refused elsewhere."""
    try:
        return parse_quantity(str(new)) < parse_quantity(str(old))
    except ValueError:
        return False


def _without(value: Json, names: frozenset[str]) -> Json:
    """Leave fields out, and those without a value, also in items; of a value with nothing else, None remains."""
    if isinstance(value, Mapping):
        return {name: part for name, part in value.items() if part is not None and name not in names} or None
    if isinstance(value, list) and names:
        return [_without(item, names) for item in value]
    return value


def _is_elastic(job: Mapping[str, Json]) -> bool:
    """Return whether a Job's completions may change: those of an indexed Job that follow its parallelism.

    https://kubernetes.io/docs/concepts/workloads/controllers/job/#elastic-indexed-jobs
    """
    spec = job.get("spec")
    if not isinstance(spec, Mapping) or spec.get("completionMode") != "Indexed":
        return False
    return spec.get("completions") is not None and spec.get("completions") == spec.get("parallelism")


def _pod_changes_beyond_images(before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    return any(
        _without(at(before, ("spec", name)), _IMAGE) != _without(at(after, ("spec", name)), _IMAGE)
        for name in _POD_IMAGES
    )


def _transitions(schema: Schema, before: Json, after: Json, path: Path) -> Iterator[Path]:
    """Yield the fields that both versions have and whose rule forbids a change; items of lists have no old version.

    API servers compare a field with its old value only where it had one.
    """
    if before is None or after is None or before == after:
        return
    if schema.is_immutable:
        yield path
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() & after.keys()):
            below = schema.fields.get(name, schema.values)
            if below is not None:
                yield from _transitions(below, before[name], after[name], (*path, name))
