"""CustomResourceDefinitions of the fleet repository, as the schemas of their kinds.

Their schemas are structural, so that API servers drop a field that the schema does not name without a word; here it is
an error. Of CEL rules only those are read that keep a value, as ``self == oldSelf`` and ``self.a == oldSelf.a``, for
`immutable_fields`. The others, patterns, bounds of numbers and formats are left to API servers
(docs/reference/fleet.md, "CustomResourceDefinition").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.core.validation import kubernetes
from reconciler.model.kubernetes.object_schema import ANYTHING, CustomKind, Schema
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.workload import Json
from reconciler.text.findings import Finding

KIND = "CustomResourceDefinition"
_GROUP = "apiextensions.k8s.io/"
_OPEN = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_RULES = "x-kubernetes-validations"
_SCOPES: Mapping[str, bool] = {"Cluster": True, "Namespaced": False}
"""Whether the objects of a definition have no namespace, by its ``spec.scope``."""
_BOTH = frozenset({"self", "oldSelf"})
"""The values after and before a change, in CEL rules."""


def is_definition(value: Mapping[str, Json]) -> bool:
    """Return whether an object is a CustomResourceDefinition, of any version."""
    return value.get("kind") == KIND and str(value.get("apiVersion", "")).startswith(_GROUP)


def custom_kind(value: Mapping[str, Json]) -> tuple[CustomKind | None, tuple[Finding, ...]]:
    """Read a CustomResourceDefinition; None, with the findings, for one that no API server takes."""
    if value["apiVersion"] != f"{_GROUP}v1":
        message = "is read in version v1 alone"
        return None, (Finding(loc=("apiVersion",), message=message, hint=f"try '{_GROUP}v1'"),)
    spec = value.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(spec.get("versions"), list):
        return None, (Finding(loc=("spec",), message="needs group, names and versions"),)
    group, kind = spec.get("group"), names.get("kind")
    if not isinstance(group, str) or not isinstance(kind, str):
        return None, (Finding(loc=("spec",), message="needs a group, and names with a kind"),)
    if any(kind == name and version.rpartition("/")[0] == group for version, name in kubernetes.kinds_of_kubernetes()):
        return None, (Finding(loc=("spec", "names", "kind"), message=f"{kind} is Kubernetes' own in group {group!r}"),)
    versions = dict(_versions(spec["versions"]))
    scope = _SCOPES.get(str(spec.get("scope")))
    return CustomKind(group=group, kind=kind, versions=versions, cluster_scoped=scope), ()


def _versions(versions: list[Json]) -> Iterator[tuple[str, Schema]]:
    """Yield the schema of each served version by its name."""
    for version in versions:
        if not isinstance(version, dict) or version.get("served") is False:
            continue
        outline = version.get("schema")
        schema = outline.get("openAPIV3Schema") if isinstance(outline, dict) else None
        yield (
            str(version.get("name")),
            _root(schema) if isinstance(schema, dict) else Schema(type="object", is_open=True),
        )


def _root(outline: Mapping[str, Json]) -> Schema:
    """Read the schema of whole objects: API servers know their header and metadata themselves."""
    schema = _schema(outline)
    text = Schema(type="string")
    header = {"apiVersion": text, "kind": text, "metadata": kubernetes.definition(kubernetes.OBJECT_META)}
    return Schema(
        type="object",
        fields={**schema.fields, **header, "status": ANYTHING},
        required=schema.required,
        is_open=schema.is_open,
    )


def _schema(outline: Json) -> Schema:
    if not isinstance(outline, dict):
        return ANYTHING
    schema, rules = _type(outline), outline.get(_RULES)
    for rule in rules if isinstance(rules, list) else ():
        for field in _kept_fields(str(rule.get("rule", ""))) if isinstance(rule, dict) else ():
            schema = _with_immutable(schema, field)
    return schema


def _kept_fields(rule: str) -> Iterator[Path]:
    """Yield the fields below that of a CEL rule which it lets nobody change; an empty path is that field itself.

    Read are equalities, alone or joined by ``&&``, and ``!has(oldSelf.a) || self.a == oldSelf.a``.
    """
    text = "".join(rule.split())
    if "||" in text and "&&" in text:
        return
    for part in text.split("&&"):
        condition, _, equality = part.removeprefix("(").removesuffix(")").rpartition("||")
        (one, _, field), (other, _, same) = (side.partition(".") for side in equality.partition("==")[::2])
        if {one, other} == _BOTH and field == same and condition in ("", f"!has(oldSelf.{field})"):
            yield tuple(filter(None, field.split(".")))


def _with_immutable(schema: Schema, field: Path) -> Schema:
    if not field:
        return replace(schema, is_immutable=True)
    name, *below = field
    if name not in schema.fields:
        return schema
    return replace(schema, fields={**schema.fields, name: _with_immutable(schema.fields[name], tuple(below))})


def _type(outline: Mapping[str, Json]) -> Schema:
    if outline.get(_INT_OR_STRING) is True:
        return Schema(type="int-or-string")
    kind = outline.get("type")
    words = outline.get("enum")
    if kind == "object":
        return _object(outline)
    if kind == "array":
        return Schema(type="array", values=_schema(outline.get("items")))
    if kind in ("string", "boolean", "integer", "number"):
        narrow = kind == "integer" and outline.get("format") in ("int32", "int64")
        return Schema(type=outline["format"] if narrow else kind, words=tuple(words) if isinstance(words, list) else ())
    return ANYTHING


def _object(outline: Mapping[str, Json]) -> Schema:
    properties, values = outline.get("properties"), outline.get("additionalProperties")
    return Schema(
        type="object",
        fields={name: _schema(part) for name, part in properties.items()} if isinstance(properties, dict) else {},
        required=tuple(_required(outline)),
        values=_schema(values) if isinstance(values, dict) else None,
        is_open=values is True or outline.get(_OPEN) is True or outline.get(_EMBEDDED) is True,
    )


def _required(outline: Mapping[str, Json]) -> Iterator[str]:
    """Yield the required fields without a default: API servers fill in defaults before they validate.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting
    """
    properties, required = outline.get("properties"), outline.get("required")
    for name in map(str, required) if isinstance(required, list) else ():
        field = properties.get(name) if isinstance(properties, dict) else None
        if not isinstance(field, dict) or field.get("default") is None:
            yield name
