"""The part of a patch that a Pod has fields for.

OpenKruise merges a patch as JSON and reads the result as a Pod of the Go types, which drops every unknown field
(https://github.com/openkruise/kruise/blob/master/pkg/util/workloadspread/workloadspread.go,
``injectWorkloadSpreadIntoPod``). Here the patch becomes part of a file that engines and API servers may check
strictly, so that its unknown fields are left out before the merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.validation import kubernetes
from reconciler.model.kubernetes.object_schema import Schema
from reconciler.model.workload import Json
from reconciler.text.findings import Loc

_DIRECTIVE = "$"
"""How the keys of a strategic merge patch begin that name no field."""


def known_fields(patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return a patch with its directives, and without the fields that no Pod of Kubernetes has, at any depth."""
    known: dict[str, Json] = _known(patch, kubernetes.definition(kubernetes.POD))
    return known


def unknown_fields(patch: Mapping[str, Json], loc: Loc) -> Iterator[tuple[Loc, Schema, Json]]:
    """Yield the fields of a patch that no Pod has: the location below `loc`, the schema of their object, the value."""
    yield from _unknown(patch, kubernetes.definition(kubernetes.POD), loc)


def _known(value: Json, schema: Schema) -> Json:
    if isinstance(value, list) and schema.values is not None:
        return [_known(item, schema.values) for item in value]
    if not _names_fields(schema) or not isinstance(value, Mapping):
        return value
    return {
        name: _known(below, schema.fields[name]) if name in schema.fields else below
        for name, below in value.items()
        if name in schema.fields or name.startswith(_DIRECTIVE)
    }


def _unknown(value: Json, schema: Schema, loc: Loc) -> Iterator[tuple[Loc, Schema, Json]]:
    if isinstance(value, list) and schema.values is not None:
        for index, item in enumerate(value):
            yield from _unknown(item, schema.values, (*loc, index))
    elif _names_fields(schema) and isinstance(value, Mapping):
        for name, below in value.items():
            if name in schema.fields:
                yield from _unknown(below, schema.fields[name], (*loc, name))
            elif not name.startswith(_DIRECTIVE):
                yield (*loc, name), schema, below


def _names_fields(schema: Schema) -> bool:
    """Return whether a schema names all fields of an object."""
    return schema.type == "object" and not schema.is_open and schema.values is None
