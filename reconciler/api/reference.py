"""The content of the reference page: operations in order, schemas as lists of fields.

Pure: an OpenAPI document in, values out. The supported part of OpenAPI 3.1 is the output of FastAPI and our routes. A
schema that refers to itself is listed once.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeAlias

from reconciler.text.digits import is_digits

SchemaNode: TypeAlias = Mapping[str, Any]

_METHODS = ("get", "post", "put", "patch", "delete")
_DEEPEST = 6
_JSON = "application/json"
_NULL = {"type": "null"}
_BOUNDS = {"minimum": "at least", "maximum": "at most", "maxLength": "no longer than"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A parameter, or a field of a body."""

    name: str
    """A parameter's name, or the dotted path of a field."""
    kind: str
    """The type in words, such as ``list of string``."""
    required: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example of a body."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationBody:
    """A request or response body: media types, fields and examples."""

    types: tuple[str, ...] = ()
    fields: tuple[FieldRow, ...] = ()
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationAnswer:
    """An answer of an operation, by its status."""

    status: str
    description: str
    body: OperationBody

    @property
    def good(self) -> bool:
        """Whether the status means success."""
        return self.status.startswith("2")

    @property
    def plain(self) -> bool:
        """Whether the description only repeats the status."""
        return not self.body.examples and self.description == _phrase(self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A call of the API."""

    name: str
    method: str
    path: str
    title: str
    """The purpose in one sentence."""
    description: str
    """The docstring's text after the title."""
    guarded: bool
    """Whether the call needs a bearer token."""
    parameters: tuple[FieldRow, ...]
    body: OperationBody | None
    answers: tuple[OperationAnswer, ...]
    curl: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Operations of one tag."""

    title: str
    operations: tuple[Operation, ...]


def chapters(document: SchemaNode) -> tuple[Chapter, ...]:
    """Read all operations of a document by tag; operations without a tag are grouped by the resource in their path."""
    by_tag: dict[str, list[Operation]] = {}
    reader = _OpenApiReader(document)
    for path, item in document.get("paths", {}).items():
        for method in _METHODS:
            if method in item:
                tags = item[method].get("tags") or [_subject(path)]
                by_tag.setdefault(str(tags[0]), []).append(reader.operation(method, path, item[method]))
    return tuple(Chapter(title=title, operations=tuple(several)) for title, several in by_tag.items())


def error_schema(several: tuple[Chapter, ...]) -> OperationBody:
    """Return the body of errors, which all operations share; an empty one if no operation declares errors."""
    bodies = (
        answer.body for chapter in several for call in chapter.operations for answer in call.answers if not answer.good
    )
    return next((body for body in bodies if body.fields), OperationBody())


def _subject(path: str) -> str:
    words = [word for word in path.split("/") if word and not word.startswith("{")]
    return words[2] if words[:2] == ["api", "v1"] and len(words) > 2 else "health"  # noqa: PLR2004 - it is /api/v1/<subject>


class _OpenApiReader:
    """Reads one document and follows the references in it."""

    def __init__(self, document: SchemaNode) -> None:
        self._document = document

    def operation(self, method: str, path: str, node: SchemaNode) -> Operation:
        """Read one operation."""
        body = self._body(self._resolve(node["requestBody"])) if "requestBody" in node else None
        parameters = [self._resolve(parameter) for parameter in node.get("parameters", ())]
        guarded = bool(node.get("security", self._document.get("security")))
        answers = [
            OperationAnswer(
                status=str(status),
                description=_description(answer, str(status)),
                body=self._body(self._resolve(answer)),
            )
            for status, answer in sorted(node.get("responses", {}).items())
        ]
        # The summary of a route with a docstring only repeats the function's name.
        title, _, rest = str(node.get("description") or node.get("summary", "")).partition("\n")
        return Operation(
            name=str(node.get("operationId", f"{method}{path}")),
            method=method.upper(),
            path=path,
            title=title,
            description=rest.strip(),
            guarded=guarded,
            parameters=tuple(self._parameter(parameter) for parameter in parameters),
            body=body,
            answers=tuple(answers),
            curl=_curl(method.upper(), path, body, guarded=guarded),
        )

    def _parameter(self, node: SchemaNode) -> FieldRow:
        schema = self._dereference(node.get("schema", {}))
        return FieldRow(
            name=str(node["name"]),
            kind=f"{node['in']}, {self._kind(schema)}",
            required=bool(node.get("required")),
            description=_sentences(node.get("description") or schema.get("description", ""), _bounds(schema)),
        )

    def _body(self, node: SchemaNode) -> OperationBody:
        content = node.get("content", {})
        kept: SchemaNode = content.get(_JSON) or next(iter(content.values()), {})
        fields = tuple(self._fields(kept.get("schema", {}), "", {}))
        return OperationBody(types=tuple(content), fields=fields, examples=tuple(self._examples(kept)))

    def _fields(self, schema: SchemaNode, above: str, shown: dict[str, str]) -> Iterator[FieldRow]:
        """Yield the fields below a schema, depth first; `shown` is the path where each named schema was listed."""
        if above.count(".") >= _DEEPEST or (self._ref(schema) and shown.setdefault(self._ref(schema), above) != above):
            return
        schema = self._dereference(schema)
        for part in schema.get("allOf", ()):
            yield from self._fields(part, above, shown)
        forms = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
        optional = {f"{above}{name}" for name in self._optional(forms)}
        for part in forms:
            for field in self._fields(part, above, shown):
                yield replace(field, required=False) if field.name in optional else field
        required = schema.get("required", ())
        for name, inner in schema.get("properties", {}).items():
            resolved = self._dereference(inner)
            path = f"{above}{name}"
            before = shown.get(self._ref(inner) or self._ref(resolved.get("items", {})), "").rstrip(".[]")
            same = f"The same as `{before}`" if before else ""
            yield FieldRow(
                name=path,
                kind=self._kind(inner),
                required=name in required,
                description=_sentences(
                    inner.get("description") or resolved.get("description", ""), same, _bounds(resolved)
                ),
            )
            yield from self._fields(inner, f"{path}.", shown)
        if isinstance(items := schema.get("items"), Mapping):
            yield from self._fields(items, f"{above.removesuffix('.')}[].", shown)

    def _optional(self, forms: Iterable[SchemaNode]) -> set[str]:
        """List the fields that only some forms of an object require."""
        objects = [form for form in map(self._dereference, forms) if form.get("type") == "object"]
        required = [set(form.get("required", ())) for form in objects]
        return set().union(*required) - set.intersection(*required) if required else set()

    def _ref(self, schema: SchemaNode) -> str:
        """Return the reference of a schema, also of a nullable schema; empty for an inline schema."""
        several = [part for part in schema.get("anyOf", ()) if part != _NULL]
        return str((several[0] if len(several) == 1 else schema).get("$ref", ""))

    def _dereference(self, schema: SchemaNode) -> SchemaNode:
        """Follow a reference, and drop the null of a nullable schema."""
        schema = self._resolve(schema)
        several = [part for part in schema.get("anyOf", ()) if part != _NULL]
        if len(several) != 1:
            return schema
        return {**self._dereference(several[0]), **{word: value for word, value in schema.items() if word != "anyOf"}}

    def _kind(self, schema: SchemaNode) -> str:
        """Describe the type of a schema in words; null is left out, since it means the same as a missing field."""
        schema = self._dereference(schema)
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        parts = [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, ())]
        several = [self._kind(part) for part in parts if part != _NULL]
        if several:
            return " or ".join(dict.fromkeys(several))
        kind = schema.get("type", "any")
        if kind == "array":
            return f"list of {self._kind(schema.get('items', {}))}"
        words = kind if isinstance(kind, list) else [kind]
        named = " or ".join(str(word) for word in words)
        return f"{named} ({schema['format']})" if "format" in schema else named

    def _examples(self, node: SchemaNode) -> Iterator[Example]:
        for name, example in node.get("examples", {}).items():
            resolved = self._resolve(example)
            yield Example(title=str(resolved.get("summary") or name), text=_pretty(resolved.get("value")))
        if "example" in node:
            yield Example(title="Example", text=_pretty(node["example"]))

    def _resolve(self, node: Any) -> SchemaNode:
        """Follow a reference within the document; anything but a schema reads as an empty one."""
        while isinstance(node, Mapping) and "$ref" in node:
            target: Any = self._document
            for word in str(node["$ref"]).removeprefix("#/").split("/"):
                target = target.get(word, {}) if isinstance(target, Mapping) else {}
            node = target
        return node if isinstance(node, Mapping) else {}


def _description(answer: SchemaNode, status: str) -> str:
    """Return the description of an answer; FastAPI's own for success is replaced by the status phrase."""
    description = str(answer.get("description", ""))
    return _phrase(status) if description in ("", "Successful Response") else description


def _phrase(status: str) -> str:
    return HTTPStatus(int(status)).phrase if is_digits(status) else ""


def _bounds(schema: SchemaNode) -> str:
    """Describe the bounds and the default of a value."""
    phrases = [f"{phrase} {json.dumps(schema[word])}" for word, phrase in _BOUNDS.items() if word in schema]
    phrases += ["not empty"] if schema.get("minLength") == 1 else []
    phrases += [f"matches `{schema['pattern']}`"] if "pattern" in schema else []
    phrases += [f"by default {json.dumps(schema['default'])}"] if schema.get("default") else []
    words = ", ".join(phrases)
    return words[:1].upper() + words[1:]


def _sentences(*parts: str) -> str:
    return " ".join(f"{part.rstrip('.')}." for part in map(str.strip, parts) if part)


def _pretty(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2)


def _curl(method: str, path: str, body: OperationBody | None, *, guarded: bool) -> str:
    """Write a command line that makes the call."""
    lines = ["curl" if method == "GET" else f"curl -X {method}"]
    if guarded:
        lines.append('-H "Authorization: Bearer $OVERSPILL_TOKEN"')
    if body is not None and body.types:
        lines.append(f"-H {shlex.quote(f'Content-Type: {body.types[0]}')} --data-binary @body.json")
    between = " \\\n  " if lines[1:] else " "
    return between.join([*lines, f'"$OVERSPILL_SERVER{path}"'])
