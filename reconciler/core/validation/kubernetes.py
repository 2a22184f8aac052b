"""The kinds of Kubernetes itself, and their schemas: read from `kubernetes_kinds` once one is needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from reconciler.core.validation.kubernetes_kinds import DEFINITIONS, VERSION
from reconciler.model.kubernetes.object_schema import ANYTHING, Schema

__all__ = ["OBJECT_META", "POD", "POD_SPEC", "VERSION", "definition", "kind_schema", "kinds_of_kubernetes"]

OBJECT_META = "meta.v1.ObjectMeta"
POD = "core.v1.Pod"
POD_SPEC = "core.v1.PodSpec"
"""Names of definitions that objects of other kinds contain."""

_HEADER = Schema(type="string")
_ANY_OBJECT = Schema(type="object", is_open=True)
_ANY_LIST = Schema(type="array")
_SCALARS = {
    name: Schema(type=name) for name in ("string", "boolean", "int32", "int64", "number", "quantity", "int-or-string")
}


def kind_schema(api_version: str, kind: str) -> Schema | None:
    """Return the schema of a kind; None for one that Kubernetes does not have."""
    name = kinds_of_kubernetes().get((api_version, kind))
    return None if name is None else definition(name)


@cache
def kinds_of_kubernetes() -> Mapping[tuple[str, str], str]:
    """Return the definition of each kind, by apiVersion and kind."""
    kinds: dict[tuple[str, str], str] = {}
    for name, block in _blocks().items():
        kind = _heading(block).kind
        if kind is not None:
            kinds[kind] = name
    return kinds


def definition(name: str) -> Schema:
    """Return the schema of a definition, with the definitions that it refers to."""
    library = _library()
    if name not in library:
        _read_definition(name, library)
    return library[name]


@cache
def _library() -> dict[str, Schema]:
    """Return the definitions that have been read, by name."""
    return {}


def _read_definition(name: str, library: dict[str, Schema]) -> None:
    """Read a definition and those below it into the library; some refer to themselves."""
    types = _types(name)
    is_kind = _heading(_blocks()[name]).kind is not None
    fields: dict[str, Schema] = {"apiVersion": _HEADER, "kind": _HEADER} if is_kind else {}
    required = tuple(field.rstrip("!") for field in types if field.endswith("!"))
    library[name] = Schema(name=name, type="object", fields=fields, required=required)
    group_version = name.rpartition(".")[0]
    for field, type_text in types.items():
        fields[field.rstrip("!")] = _type(type_text, group_version)


class _Heading(NamedTuple):
    """The first line of a definition."""

    name: str
    kind: tuple[str, str] | None
    """The apiVersion and the kind of an object that can be applied."""
    parent: str
    """The definition whose fields it has too; empty for none."""


def _heading(block: str) -> _Heading:
    """Read the first line of a definition."""
    name, *words = block.partition("\n")[0].split(" ")
    parent = words.pop()[1:] if words and words[-1].startswith("<") else ""
    return _Heading(name, (words[0], words[1]) if words else None, parent)


def _types(name: str) -> Mapping[str, str]:
    """Return the types of a definition's fields, with those of its parent, in the order of their names."""
    block = _blocks()[name]
    parent = _heading(block).parent
    own = dict(line.strip().split(" ") for line in block.split("\n")[1:])
    return dict(sorted({**(_types(parent) if parent else {}), **own}.items()))


def _type(text: str, group_version: str) -> Schema:
    """Read the type of a field of a definition in a group and version."""
    if text in ("*", "{}*", "[]*"):
        return {"*": ANYTHING, "{}*": _ANY_OBJECT, "[]*": _ANY_LIST}[text]
    if text.startswith("[]"):
        return Schema(type="array", values=_type(text[2:], group_version))
    if text.startswith("{}"):
        return Schema(type="object", values=_type(text[2:], group_version))
    if text in _SCALARS:
        return _SCALARS[text]
    if "|" in text:
        return Schema(type="string", words=tuple(text.split("|")))
    return definition(f"{group_version}{text}" if text.startswith(".") else text)


@cache
def _blocks() -> Mapping[str, str]:
    """Return the text of each definition by name."""
    blocks = (block.strip("\n") for block in DEFINITIONS.split("\n\n"))
    return {block.partition("\n")[0].partition(" ")[0]: block for block in blocks if block}
