"""Frozen values as JSON documents, by the types of their fields.

A dataclass or named tuple is an object with camelCase fields, and a field with its default is left out; a quantity is
written as Kubernetes does, a moment by RFC 3339, a duration in seconds. A mapping whose keys are not texts has them
written as JSON. Each text passes `text.redaction`, unless secrets are kept. `difference` tells two values apart as
operations of JSON Patch (RFC 6902), and looks only at what is not the same object: its cost follows the change.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from itertools import compress, islice
from operator import attrgetter, eq, ne
from typing import Any, NewType, Protocol, Union, cast, get_args, get_origin, get_type_hints

from reconciler.core.safety.credentials import name_of_value
from reconciler.model.action import TRAITS, Action
from reconciler.model.ids import CommitId, read_commit_id
from reconciler.model.plan import Change
from reconciler.model.units import Quantity, format_quantity, parse_quantity
from reconciler.model.workload import Json
from reconciler.text.redaction import REDACTED, credential, redacted

Operation = dict[str, Json]
"""One operation of JSON Patch: add, replace or remove, with a path and a value."""

LeftOut = frozenset[tuple[type, str, Hashable]]
"""Fields that are left out, by dataclass and name, each with the value that is read in its place."""

_TAG = "kind"
"""The field that names the type of a value, where a field has several."""
_FEW = 64
"""Entries of a mapping up to which their order is kept."""

_redacted = lru_cache(maxsize=1 << 16)(redacted)
_KEY_TEXT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class DocumentType(Protocol):
    """How values of one type are written and read."""

    def encode(self, value: Any) -> Json:
        """Write a value."""
        ...

    def decode(self, document: Json) -> Any:
        """Read a value. Raises KeyError, TypeError or ValueError for what `encode` never writes."""
        ...

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Add the operations that turn the document of `before`, at `path`, into that of `after`."""
        ...


@dataclass(frozen=True)
class LateDocumentType:
    """How values of a large type are written and read, which is found out at its first use: most commands have none."""

    annotation: Any
    without: LeftOut = frozenset()
    outlined: bool = False

    @cached_property
    def _made(self) -> DocumentType:
        return document_type(self.annotation, without=self.without, outlined=self.outlined)

    def encode(self, value: Any) -> Json:
        """Write a value."""
        return self._made.encode(value)

    def decode(self, document: Json) -> Any:
        """Read a value. Raises KeyError, TypeError or ValueError for what `encode` never writes."""
        return self._made.decode(document)

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Add the operations that turn the document of `before`, at `path`, into that of `after`."""
        self._made.difference(before, after, path, operations)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value that is replaced as a whole."""

    encode: Callable[[Any], Json]
    decode: Callable[[Json], Any]

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Replace it."""
        if before != after:
            operations.append({"op": "replace", "path": path, "value": self.encode(after)})


def _same(value: Any) -> Any:
    return value


def _seconds(value: timedelta) -> int | float:
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _foreign(value: Json, name: str = "") -> Json:
    """Write JSON of somebody else, without credentials by their form or by the name that they stand under."""
    if isinstance(value, str):
        return REDACTED if credential(value, name) else _redacted(value)
    if isinstance(value, Mapping):
        return {key: _foreign(item, name_of_value(value, key)) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_foreign(item, name) for item in value]
    return value


def _outline(document: Mapping[str, Json]) -> Json:
    """Write a manifest, or the values of a chart, as its kind, its name and a digest of all of it."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), default=str)
    named: dict[str, Json] = {key: document[key] for key in ("apiVersion", "kind") if key in document}
    metadata = document.get("metadata")
    if isinstance(metadata, Mapping):
        named["metadata"] = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    return {**_foreign(named), "digest": f"sha256-{sha256(text.encode(errors='surrogatepass')).hexdigest()}"}


def _read_text(value: Json) -> str:
    if type(value) is not str:
        raise TypeError(f"{type(value).__name__} where a text belongs")
    return value


def _read_whole(value: Json) -> int:
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__} where a whole number belongs")
    return value


def _read_number(value: Json) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{type(value).__name__} where a number belongs")
    return cast("float", value)


def _read_switch(value: Json) -> bool:
    if type(value) is not bool:
        raise TypeError(f"{type(value).__name__} where true or false belongs")
    return value


def _read_commit(value: Json) -> CommitId:
    """Read the id of a commit; empty where there was none."""
    return CommitId("") if value == "" else read_commit_id(value)


def _entries(value: Json) -> Sequence[Json]:
    """Return a list; a text, whose characters could be taken for its entries, is none."""
    if type(value) is not list:
        raise TypeError(f"{type(value).__name__} where a list belongs")
    return value


def _members(value: Json) -> Mapping[str, Json]:
    if type(value) is not dict:
        raise TypeError(f"{type(value).__name__} where an object belongs")
    return value


_PLAIN = _Leaf(_same, _same)
_SCALARS: Mapping[type, DocumentType] = {
    bool: _Leaf(_same, _read_switch),
    int: _Leaf(_same, _read_whole),
    float: _Leaf(_same, _read_number),
}
_TEXT = _Leaf(_redacted, _read_text)
_SECRET_TEXT = _Leaf(_same, _read_text)
_COMMIT_TEXT = _Leaf(_same, _read_commit)
_TIME = _Leaf(datetime.isoformat, datetime.fromisoformat)
_DURATION = _Leaf(_seconds, lambda seconds: timedelta(seconds=seconds))
_FRACTION = _Leaf(str, Fraction)
_QUANTITY = _Leaf(lru_cache(maxsize=1 << 12)(format_quantity), lru_cache(maxsize=1 << 12)(parse_quantity))
_FOREIGN = _Leaf(_foreign, _same)
_OUTLINE = _Leaf(_outline, _same)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    key: str
    """Its name in the document."""
    type: DocumentType
    default: Any
    """MISSING for a field that is always written."""


def _reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads these fields of a value: compiled, as dataclasses compile their own methods.

    Twice as quick as `attrgetter`, and called for each cluster in each pass.
    """
    parts = "".join(f"value.{name}, " for name in names)
    return cast("Callable[[Any], tuple[Any, ...]]", eval(f"lambda value: ({parts})"))  # noqa: S307 - names of our fields


class _Record:
    """A dataclass or a named tuple."""

    def __init__(self, cls: type, every: Sequence[_Field], left_out: Mapping[str, Hashable], tag: str = "") -> None:
        self._cls = cls
        self._fields = every
        self._left_out = left_out
        self._tag = tag
        self._last: tuple[Mapping[Any, Any], Sequence[Any]] = {}, ()
        self.values = _reader([field.name for field in every])

    def tagged(self, name: str) -> _Record:
        """Return the type that writes a name as well."""
        return _Record(self._cls, self._fields, self._left_out, name)

    def of_action(self, action: Action) -> _Record:
        """Return the type of changes of an action, with the fields that these have by their names in JSON."""
        traits, written = TRAITS[action], {field.name: field for field in self._fields}
        every = [
            _Field(name, _camel(key), written[name].type, MISSING if key in traits.required else written[name].default)
            for key, name in traits.published.items()
            if name in written
        ]
        return _Record(self._cls, every, {**self._left_out, "action": action}, action.value)

    def encode(self, value: Any) -> Json:
        """Write the fields that are not as by default."""
        document: dict[str, Json] = {_TAG: self._tag} if self._tag else {}
        for field, part in zip(self._fields, self.values(value), strict=True):
            if field.default is MISSING or (part is not field.default and part != field.default):
                document[field.key] = field.type.encode(part)
        return document

    def decode(self, document: Json) -> Any:
        """Read the fields; those that are not there have their defaults."""
        given = [field for field in self._fields if field.key in _members(document)]
        return self._cls(**self._left_out, **{field.name: field.type.decode(document[field.key]) for field in given})

    def values_of(self, mapping: Mapping[Any, Any]) -> Sequence[Any]:
        """Return the fields of all values of a mapping; kept for the last one, which is the first of the next pair."""
        if self._last[0] is not mapping:
            self._last = mapping, list(map(self.values, mapping.values()))
        return self._last[1]

    def same(self, before: Any, after: Any) -> bool:
        """Return whether all fields but those that are left out are equal."""
        return bool(self.values(before) == self.values(after))

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Go through the fields."""
        if before is after:
            return
        olds, news = self.values(before), self.values(after)
        for field, old, new in zip(self._fields, olds, news, strict=True):
            if old is new:
                continue
            place = f"{path}/{field.key}"
            default = field.default
            if default is not MISSING and (old is default or old == default):
                if new != default:
                    operations.append({"op": "add", "path": place, "value": field.type.encode(new)})
            elif default is not MISSING and (new is default or new == default):
                operations.append({"op": "remove", "path": place})
            else:
                field.type.difference(old, new, place, operations)


@dataclass(frozen=True, slots=True)
class _Optional:
    inner: DocumentType

    def encode(self, value: Any) -> Json:
        """Write null for None."""
        return None if value is None else self.inner.encode(value)

    def decode(self, document: Json) -> Any:
        """Read null as None."""
        return None if document is None else self.inner.decode(document)

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Replace what comes or goes."""
        if before is None or after is None:
            if before is not after:
                operations.append({"op": "replace", "path": path, "value": self.encode(after)})
        else:
            self.inner.difference(before, after, path, operations)


@dataclass(frozen=True, slots=True)
class _OneOf:
    """One of several dataclasses, or a change of one of several actions, which the document names."""

    kind: Callable[[Any], str]
    """The name of a value."""
    names: Mapping[str, DocumentType]

    def encode(self, value: Any) -> Json:
        """Write it with its name."""
        return self.names[self.kind(value)].encode(value)

    def decode(self, document: Json) -> Any:
        """Read the type that it names."""
        return self.names[document[_TAG]].decode(document)

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Replace another type."""
        if self.kind(before) == self.kind(after):
            self.names[self.kind(after)].difference(before, after, path, operations)
        else:
            operations.append({"op": "replace", "path": path, "value": self.encode(after)})


@dataclass(frozen=True, slots=True)
class _TupleItems:
    """A tuple of any length."""

    item: DocumentType
    same: Callable[[Any, Any], bool]

    def encode(self, value: Any) -> Json:
        """Write all items."""
        return list(map(self.item.encode, value))

    def decode(self, document: Json) -> Any:
        """Read all items."""
        return tuple(map(self.item.decode, _entries(document)))

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Compare items by place; where their number differs, between what is equal at both ends."""
        first, short = 0, min(len(before), len(after))
        end = 0
        if len(before) != len(after):
            while first < short and (before[first] is after[first] or before[first] == after[first]):
                first += 1
            while end < short - first and before[-1 - end] == after[-1 - end]:
                end += 1
        both = range(first, short - end)
        difference = self.item.difference
        for index in both:
            old, new = before[index], after[index]
            if old is not new and not self.same(old, new):
                difference(old, new, f"{path}/{index}", operations)
        gone = reversed(range(both.stop, len(before) - end))
        operations += ({"op": "remove", "path": f"{path}/{index}"} for index in gone)
        encode = self.item.encode
        come = range(both.stop, len(after) - end)
        operations += ({"op": "add", "path": f"{path}/{index}", "value": encode(after[index])} for index in come)


@dataclass(frozen=True, slots=True)
class _Tuple:
    """A tuple of fixed length."""

    items: tuple[DocumentType, ...]

    def encode(self, value: Any) -> Json:
        """Write all items."""
        return [item.encode(part) for item, part in zip(self.items, value, strict=True)]

    def decode(self, document: Json) -> Any:
        """Read all items."""
        return tuple(item.decode(part) for item, part in zip(self.items, _entries(document), strict=True))

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Compare items by place."""
        for index, (item, old, new) in enumerate(zip(self.items, before, after, strict=True)):
            item.difference(old, new, f"{path}/{index}", operations)


@dataclass(frozen=True, slots=True)
class _Map:
    key: DocumentType | None
    """None where keys are texts."""
    value: DocumentType
    same: Callable[[Any, Any], bool]

    def encode(self, value: Any) -> Json:
        """Write all entries in their order."""
        encode = self.value.encode
        return {self._key(key): encode(item) for key, item in value.items()}

    def decode(self, document: Json) -> Any:
        """Read all entries."""
        decode = self.value.decode
        if self.key is None:
            return {key: decode(item) for key, item in _members(document).items()}
        return {self.key.decode(json.loads(key)): decode(item) for key, item in _members(document).items()}

    def difference(self, before: Any, after: Any, path: str, operations: list[Operation]) -> None:
        """Compare entries by key; a small mapping whose order changes is replaced."""
        if len(after) <= _FEW and not _keeps_order(before, after):
            operations.append({"op": "replace", "path": path, "value": self.encode(after)})
            return
        new_keys = 0
        difference = self.value.difference
        for key in self._suspects(before, after):
            old, new = before.get(key, MISSING), after[key]
            if old is new or (old is not MISSING and self.same(old, new)):
                continue
            place = f"{path}/{_escaped(self._key(key))}"
            if old is MISSING:
                new_keys += 1
                operations.append({"op": "add", "path": place, "value": self.value.encode(new)})
            else:
                difference(old, new, place, operations)
        if len(before) + new_keys != len(after):
            gone = (key for key in before if key not in after)
            operations += ({"op": "remove", "path": f"{path}/{_escaped(self._key(key))}"} for key in gone)

    def _suspects(self, before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterable[Any]:
        """Return the keys whose values may differ; of thousands of equal ones none is looked at here."""
        if not isinstance(self.value, _Record):
            return () if before == after else after
        if len(after) <= _FEW or list(before) != list(after):
            return after
        return compress(after, map(ne, self.value.values_of(before), self.value.values_of(after)))

    def _key(self, key: Any) -> str:
        if self.key is None:
            return str(key)
        return _KEY_TEXT(self.key.encode(key))


def _keeps_order(before: Collection[Any], after: Collection[Any]) -> bool:
    """Return whether a mapping has the order in which a patch of single entries leaves it."""
    kept = [key for key in before if key in after]
    return kept == list(islice(after, len(kept)))


def _escaped(key: str) -> str:
    """Write a key as a part of a JSON Pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1") if "/" in key or "~" in key else key


@dataclass(frozen=True, slots=True)
class _WritingRules:
    """How all values of a document are written."""

    without: LeftOut
    secrets: bool
    outlined: bool


def document_type(
    annotation: Any, *, without: LeftOut = frozenset(), secrets: bool = False, outlined: bool = False
) -> DocumentType:
    """Return how values of a type are written; `without` lists fields that are left out.

    Fields that do not count in comparisons are left out as well. With `secrets`, texts are written as they are: for
    documents that only the user who reads the repository can read. With `outlined`, manifests and the values of charts
    are written as their kind, name and digest: for documents that leave the house. Raises TypeError for a type that has
    no document.
    """
    return _document_type(annotation, _WritingRules(without, secrets, outlined))


@cache
def _document_type(annotation: Hashable, rules: _WritingRules) -> DocumentType:
    if annotation is Any:
        return _PLAIN if rules.secrets else _FOREIGN
    if annotation is Quantity:
        return _QUANTITY
    if annotation is Fraction:
        return _FRACTION
    if annotation is CommitId:
        return _COMMIT_TEXT
    if isinstance(annotation, NewType):
        return _document_type(annotation.__supertype__, rules)
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _union(get_args(annotation), rules)
    if origin is not None:
        return _generic(origin, get_args(annotation), rules)
    if isinstance(annotation, type):
        return _plain_type(annotation, rules)
    raise TypeError(f"{annotation!r} has no document")


def _union(parts: Sequence[Any], rules: _WritingRules) -> DocumentType:
    some = [part for part in parts if part is not types.NoneType]
    inner: DocumentType
    if len(some) == 1:
        inner = _document_type(some[0], rules)
    elif all(is_dataclass(part) for part in some):
        inner = _OneOf(_class_name, {part.__name__: _record(part, rules).tagged(part.__name__) for part in some})
    elif all(isinstance(part, type) and issubclass(part, Enum) for part in some):
        members = {member.value: member for part in some for member in part}
        inner = _Leaf(attrgetter("value"), members.__getitem__)
    elif all(part in (str, int, bool, float) for part in some):
        inner = _PLAIN if rules.secrets else _FOREIGN
    else:
        raise TypeError(f"{parts!r} has no document")
    return _Optional(inner) if len(some) < len(parts) else inner


def _generic(origin: Any, parts: Sequence[Any], rules: _WritingRules) -> DocumentType:
    if origin is tuple and parts[-1:] == (...,):
        item = _document_type(parts[0], rules)
        return _TupleItems(item, _same_test(item))
    if origin is tuple:
        return _Tuple(tuple(_document_type(part, rules) for part in parts))
    if issubclass(origin, AbstractSet):
        item = _document_type(parts[0], rules)
        return _Leaf(
            lambda value: sorted(map(item.encode, value)), lambda items: frozenset(map(item.decode, _entries(items)))
        )
    if issubclass(origin, Mapping):
        if rules.outlined and parts[1] is Any:
            return _OUTLINE
        key = _document_type(parts[0], rules)
        value = _document_type(parts[1], rules)
        return _Map(None if _is_text(parts[0]) else key, value, _same_test(value))
    raise TypeError(f"{origin!r} has no document")


def _is_text(annotation: Any) -> bool:
    return annotation is str or (isinstance(annotation, NewType) and _is_text(annotation.__supertype__))


def _same_test(written: DocumentType) -> Callable[[Any, Any], bool]:
    """Return how to tell that two values have the same document, quicker than by their difference."""
    return written.same if isinstance(written, _Record) else eq


def _class_name(value: Any) -> str:
    return type(value).__name__


def _plain_type(cls: type, rules: _WritingRules) -> DocumentType:
    if cls is Change:
        return _OneOf(attrgetter("action"), {action.value: _record(cls, rules).of_action(action) for action in TRAITS})
    if is_dataclass(cls) or hasattr(cls, "_fields"):
        return _record(cls, rules)
    if issubclass(cls, Enum):
        return _Leaf(attrgetter("value"), cls)
    if cls in _SCALARS:
        return _SCALARS[cls]
    if cls is str:
        return _SECRET_TEXT if rules.secrets else _TEXT
    if cls is datetime:
        return _TIME
    if cls is timedelta:
        return _DURATION
    raise TypeError(f"{cls!r} has no document")


def _record(cls: Any, rules: _WritingRules) -> _Record:
    hints = get_type_hints(cls)
    left_out = {name: value for owner, name, value in rules.without if owner is cls}
    every = [
        _Field(name, _camel(name), _document_type(hints[name], rules), default)
        for name, default in _defaults(cls)
        if name not in left_out
    ]
    return _Record(cls, every, left_out)


def _defaults(cls: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields that count in comparisons, with their defaults."""
    if not is_dataclass(cls):
        yield from ((name, cls._field_defaults.get(name, MISSING)) for name in cls._fields)
        return
    for field in fields(cls):
        if field.compare:
            yield field.name, field.default if field.default_factory is MISSING else field.default_factory()


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
