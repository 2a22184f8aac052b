"""Parses helm's output as kubectl does, within limits.

helm's output may hold anchors, merge keys and repeated keys, unlike files of the fleet. Its author may be a stranger,
so values are counted while they are parsed, an alias with its whole content, and parsing stops at a limit.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from reconciler.core.schema.yaml.events import YamlEvent, events
from reconciler.errors import InvalidInput
from reconciler.model.bounds import CHART_DEPTH, CHART_OBJECTS, CHART_OUTPUT, CHART_VALUES
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_MAX_NUMBER = 64
_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset({"str", "int", "float", "bool", "null"})
_MERGE = f"{_TAG}merge"
# libyaml searches all earlier directives at each one, and reads UTF-16 after a byte order mark.
_DOCUMENT_START = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)
_SOURCE = re.compile(r"^# Source: (.+)$", re.MULTILINE)
_DIRECTIVE = re.compile(rb"(?:^|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9])%TAG")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def objects(output: bytes, what: str) -> Iterator[dict[str, Json]]:
    """Parse the objects of helm's output in order, without empty documents.

    `what` is the prefix of errors. Raises InvalidInput for invalid YAML, other values than objects, and over a limit.
    """
    # The search takes a second for 8 MiB, in which no other thread runs; a search for a text takes none.
    if output[:2] in _UTF16 or (b"%TAG" in output and _DIRECTIVE.search(output)):
        raise InvalidInput(f"{what}: the manifests are not plain YAML in UTF-8: tags are not read")
    count = 0
    try:
        for document in _Builder(what).documents(output):
            if document is None:
                continue
            count += 1
            if count > CHART_OBJECTS.most:
                raise InvalidInput(f"{what}: it becomes more than {CHART_OBJECTS.most:,} objects")
            if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
                raise InvalidInput(f"{what}: a document of it is no Kubernetes object")
            yield document
    except yaml.YAMLError as error:
        raise InvalidInput(f"{what}: the manifests are not YAML: {shortened(str(error), 300)}") from error


def sourced_objects(output: str, what: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Parse objects like `objects`, each with the template that made it, as Helm notes it; empty where it does not."""
    for part in _DOCUMENT_START.split(output):
        source = _SOURCE.search(part)
        for manifest in objects(part.encode(), what):
            yield (source[1].strip() if source else ""), manifest


class _ScalarTypes(yaml.resolver.Resolver, yaml.constructor.SafeConstructor):
    """Types scalars as Go's YAML parser: no times, dates or base-60 numbers, and ``1e3`` is a number."""

    def __init__(self) -> None:
        yaml.resolver.Resolver.__init__(self)
        yaml.constructor.SafeConstructor.__init__(self)


_ScalarTypes.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("timestamp", "int", "float", "value")
    ]
    for first, resolvers in yaml.resolver.Resolver.yaml_implicit_resolvers.items()
}
_ScalarTypes.add_implicit_resolver(
    f"{_TAG}int",
    re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)
_ScalarTypes.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


class _Cost(NamedTuple):
    """The size of a value with aliases expanded: values, characters of text, and levels below it."""

    values: int
    text: int
    levels: int


@dataclass(slots=True, kw_only=True)
class _OpenContainer:
    """An unfinished list or mapping, and the cost of all values before it."""

    value: list[Json] | dict[str, Json]
    anchor: str | None
    values: int
    text: int
    levels: int = 0
    key: str | None = None
    merging: bool = False
    merged: dict[str, Json] = field(default_factory=dict)


class _Builder:
    """Builds values from the parser's events and counts their cost."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._typing = _ScalarTypes()
        self._values = self._text = 0
        self._stack: list[_OpenContainer] = []
        self._anchors: dict[str, tuple[Json, _Cost]] = {}
        self._root: Json = None

    def documents(self, output: bytes) -> Iterator[Json]:
        """Yield each document's value."""
        next_event = events(output)
        while not isinstance(event := next_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentEndEvent):
                yield self._root
                self._root = None
                self._anchors.clear()
            elif isinstance(event, yaml.CollectionStartEvent):
                self._open(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()
            elif isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)

    def _open(self, event: YamlEvent) -> None:
        """Start a list or mapping."""
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
        if event.tag not in (None, "!", _TAG + kind):
            raise self._refusal(f"tag {shortened(event.tag)} is not read")
        if self._stack and self._wants_key(self._stack[-1]):
            raise self._refusal("a key of it is no text")
        self._stack.append(
            _OpenContainer(value={} if kind == "map" else [], anchor=event.anchor, values=self._values, text=self._text)
        )
        self._spend(_Cost(1, 0, 0))

    def _close(self) -> None:
        """End the innermost list or mapping."""
        done = self._stack.pop()
        value: Json = done.value
        if done.merged:
            value = {**done.merged, **value}
        self._add(value, _Cost(self._values - done.values, self._text - done.text, done.levels + 1), done.anchor)

    def _scalar(self, event: YamlEvent) -> None:
        """Add a scalar as key or value."""
        cost = _Cost(1, len(event.value), 0)
        self._spend(cost)
        tag = event.tag
        if tag is None and event.implicit[0]:
            tag = self._typing.resolve(yaml.ScalarNode, event.value, (True, False))  # type: ignore[no-untyped-call] # the stubs do not type it
        if tag == _MERGE and self._stack and self._wants_key(self._stack[-1]):
            self._stack[-1].merging = True
            return
        self._add(self._typed_scalar(tag, event.value), cost, event.anchor)

    def _alias(self, event: YamlEvent) -> None:
        """Add the value of an anchor, and its whole cost."""
        if event.anchor not in self._anchors:
            raise self._refusal(f"alias *{shortened(event.anchor)} stands for nothing")
        value, cost = self._anchors[event.anchor]
        self._spend(cost)
        self._add(copy.deepcopy(value), cost, None)

    def _add(self, value: Json, cost: _Cost, anchor: str | None) -> None:
        """Add a value to the innermost list or mapping."""
        if anchor is not None:
            self._anchors[anchor] = (value, cost)
        if not self._stack:
            self._root = value
            return
        inside = self._stack[-1]
        inside.levels = max(inside.levels, cost.levels)
        if isinstance(inside.value, list):
            inside.value.append(value)
        elif inside.merging:
            inside.merging = False
            self._merge(inside, value)
        elif inside.key is None:
            inside.key = self._key(value)
        else:
            inside.value[inside.key] = value
            inside.key = None

    def _merge(self, inside: _OpenContainer, value: Json) -> None:
        """Merge the keys of one or several mappings; the first mapping wins."""
        for mapping in reversed(value) if isinstance(value, list) else [value]:
            if not isinstance(mapping, dict):
                raise self._refusal("what a merge key has is no mapping")
            inside.merged.update(mapping)

    def _spend(self, cost: _Cost) -> None:
        """Count a value before it is built; raises InvalidInput over a limit."""
        self._values += cost.values
        self._text += cost.text
        if self._values > CHART_VALUES.most:
            raise self._refusal(f"the manifests hold more than {CHART_VALUES.most:,} values")
        if self._text > CHART_OUTPUT.most:
            raise self._refusal(f"the manifests hold more than {CHART_OUTPUT.most:,} characters")
        if len(self._stack) + cost.levels > CHART_DEPTH.most:
            raise self._refusal(f"the manifests are nested deeper than {CHART_DEPTH.most} levels")

    def _typed_scalar(self, tag: str | None, text: str) -> Json:
        """Convert a scalar by its tag."""
        kind = "str" if tag in (None, "!") else str(tag).removeprefix(_TAG)
        if kind not in _SCALARS and tag != _MERGE:
            raise self._refusal(f"tag {shortened(str(tag))} is not read")
        if kind == "str" or tag == _MERGE:
            return text
        if len(text) > _MAX_NUMBER:
            raise self._refusal(f"{shortened(text)} is more than a number can hold")
        try:
            value: Any = self._typing.yaml_constructors[_TAG + kind](self._typing, yaml.ScalarNode(_TAG + kind, text))
        except (ValueError, KeyError, IndexError) as error:
            raise self._refusal(f"{shortened(text)!r} is no {kind}") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self._refusal(f"{shortened(text)} is a number that JSON does not have")
        return value

    def _key(self, value: Json) -> str:
        """Convert a key to a string, as in JSON."""
        if isinstance(value, dict | list):
            raise self._refusal("a key of it is no text")
        return ("true" if value else "false") if isinstance(value, bool) else "null" if value is None else str(value)

    def _refusal(self, message: str) -> InvalidInput:
        return InvalidInput(f"{self._what}: {message}")

    @staticmethod
    def _wants_key(inside: _OpenContainer) -> bool:
        """Return whether the next value is a key."""
        return isinstance(inside.value, dict) and inside.key is None and not inside.merging
