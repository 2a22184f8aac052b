"""Kubernetes' strategic merge patch on a Pod: what ``kubectl patch --local --type strategic`` makes of it.

The rules were read from apimachinery's strategicpatch of Kubernetes 1.36.3, and a test compares with the real kubectl;
which lists are merged by what is data (`podfields`). In short: objects are merged, null deletes, scalars and lists that
are atomic are replaced, other lists are merged item by item (`mergedlists`), and directives are keys of the patch:

- ``$patch: replace`` or ``delete``, of an object or an item of a list (``merge`` is no directive of Kubernetes');
- ``$retainKeys``: the fields that stay, of which those in the patch have to be some;
- ``$deleteFromPrimitiveList/<field>``: scalars to take out of a list;
- ``$setElementOrder/<field>``: the order of a list by its keys, or scalars.

A directive in a new item of a list that is already there stays as text, as it does with kubectl.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core import mergedlists
from reconciler.core.findings import Loc, shortened
from reconciler.core.mergedlists import MARK, Unmergeable
from reconciler.core.podfields import ROOT, TYPES, PodField
from reconciler.model.workload import Json

_RETAIN = "$retainKeys"
_REMOVE = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"


def merge(pod: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return the pod that the patch makes; neither is changed.

    Keys keep the order of the pod, and new ones follow in that of the patch. Raises Unmergeable.
    """
    return _object(pod, patch, ROOT, ())


def directive(value: Json, loc: Loc = ()) -> Loc | None:
    """Find a directive that a patch has left in what it made; None where there is none."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            found = (*loc, key) if key == MARK or key.startswith((_RETAIN, f"{_REMOVE}/", f"{_ORDER}/")) else None
            if found := found or directive(below, (*loc, key)):
                return found
    if isinstance(value, list):
        for index, item in enumerate(value):
            if found := directive(item, (*loc, index)):
                return found
    return None


def _object(original: Mapping[str, Json], patch: Mapping[str, Json], kind: str, loc: Loc) -> dict[str, Json]:
    """Merge an object of a type."""
    if MARK in patch:
        return _directed(patch, loc)
    merged, rest = dict(original), dict(patch)
    if _RETAIN in rest:
        merged = _retained(merged, rest, loc)
    for key in [key for key in rest if key.startswith(_ORDER)]:
        _ordered(merged, rest, key, kind, loc)
    for key, value in rest.items():
        name = _named(key, _REMOVE, loc) if key.startswith(_REMOVE) else key
        if value is None:
            merged.pop(name, None)
        elif name != key:
            _remove(merged, name, value, kind, (*loc, key))
        else:
            _set(merged, key, value, kind, (*loc, key))
    return merged


def _directed(patch: Mapping[str, Json], loc: Loc) -> dict[str, Json]:
    """Carry out a directive over a whole object."""
    match patch[MARK]:
        case "replace":
            return {key: value for key, value in patch.items() if key != MARK}
        case "delete":
            return {}
        case other:
            raise Unmergeable((*loc, MARK), f"{shortened(str(other))!r} is neither replace nor delete")


def _retained(merged: dict[str, Json], rest: dict[str, Json], loc: Loc) -> dict[str, Json]:
    """Leave of an object only the fields that are to stay, and take the directive out of the patch."""
    stays = rest.pop(_RETAIN)
    if not isinstance(stays, list):
        raise Unmergeable((*loc, _RETAIN), "is no list of fields")
    for key, value in rest.items():
        if value is not None and not key.startswith((_REMOVE, _ORDER)) and key not in stays:
            raise Unmergeable((*loc, key), f"is set and not among {_RETAIN}")
    return {key: value for key, value in merged.items() if key in stays}


def _ordered(merged: dict[str, Json], rest: dict[str, Json], key: str, kind: str, loc: Loc) -> None:
    """Merge the list that an order is given for, and take both out of the patch."""
    order, name = rest.pop(key), _named(key, _ORDER, loc)
    field = _list_field(kind, name, (*loc, name))
    old, new = merged.get(name, []), rest.get(name, [])
    for where, value in ((key, order), (name, old), (name, new)):
        if not isinstance(value, list):
            raise Unmergeable((*loc, where), "is no list")
    mergedlists.check_order(new, order, field.key, (*loc, key))
    if name not in merged and name not in rest:
        return
    server = old
    if name not in rest:
        made = old
    elif name not in merged:
        made = _plain(new)
    else:
        made = _list(old, new, field, (*loc, name))
        server = mergedlists.left_behind(old, new, field, (*loc, name)) if field.merges else old
    if not old and not new:
        raise Unmergeable((*loc, key), "orders a list in which nothing is")
    mergedlists.one_type((*loc, name), old, new)
    merged[name] = mergedlists.arranged(made, order, server, field.key, (*loc, name))
    rest.pop(name, None)


def _remove(merged: dict[str, Json], name: str, value: Json, kind: str, loc: Loc) -> None:
    """Take scalars out of a list."""
    there = merged.get(name)
    if isinstance(there, list) and isinstance(value, list):
        merged[name] = _list(there, value, _list_field(kind, name, loc), loc, removing=True)
    elif name in merged and type(there) is type(value):
        _set(merged, name, value, kind, loc)


def _set(merged: dict[str, Json], name: str, value: Json, kind: str, loc: Loc) -> None:
    """Merge a value into a field, which may not be there or be of another type."""
    there = merged.get(name)
    if isinstance(there, Mapping) and isinstance(value, Mapping):
        merged[name] = _object(there, value, _object_field(kind, name, loc), loc)
    elif isinstance(there, list) and isinstance(value, list):
        merged[name] = _list(there, value, _list_field(kind, name, loc), loc)
    elif _marked(value):
        merged.pop(name, None)
    else:
        merged[name] = _plain(_without_nulls(value))


def _list(old: list[Json], new: list[Json], field: PodField, loc: Loc, *, removing: bool = False) -> list[Json]:
    """Merge a list, or replace it where it is atomic."""
    if not (field.merges or removing):
        return [*new]
    if not old and not new:
        return old
    kind = mergedlists.one_type(loc, old, new)
    if kind is not dict:
        if removing:
            return [item for item in old if item not in new]
        return mergedlists.arranged(mergedlists.distinct([*old, *new]), new, old, "", loc)
    if not field.key:
        raise Unmergeable(loc, "its items are no scalars, and nothing says by what they are merged")
    kept, added = mergedlists.without_directed(old, new, field.key, loc)
    made = [*kept]
    places: dict[mergedlists.Token, int] = {}
    for index, item in enumerate(kept):
        if field.key in item:
            places.setdefault(mergedlists.token(item, field.key, (*loc, index)), index)
    for index, item in enumerate(added):
        known = mergedlists.token(item, field.key, (*loc, index))
        at = places.setdefault(known, len(made))
        if at == len(made):
            made.append(item)
        else:
            made[at] = _object(made[at], item, field.of, (*loc, index))
    return mergedlists.arranged(made, added, kept, field.key, loc)


def _plain(value: Json) -> Json:
    """Take the objects with a directive out of what is new."""
    if isinstance(value, Mapping):
        return {key: _plain(below) for key, below in value.items() if not _marked(below)}
    if isinstance(value, list):
        return [_plain(item) for item in value if not _marked(item)]
    return value


def _without_nulls(value: Json) -> Json:
    """Take the fields without a value out of what is new; items of lists stay."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(below) for key, below in value.items() if below is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _marked(value: Json) -> bool:
    return isinstance(value, Mapping) and MARK in value


def _named(key: str, prefix: str, loc: Loc) -> str:
    """Return the field that the key of a directive names."""
    found, slash, name = key.partition("/")
    if found != prefix or not slash:
        raise Unmergeable((*loc, key), f"names no list, as {prefix}/finalizers does")
    return name


def _object_field(kind: str, name: str, loc: Loc) -> str:
    """Return the type of a field that holds an object."""
    field = TYPES[kind].get(name)
    if field is None or field.many:
        raise Unmergeable(loc, "a Pod has no such object")
    return field.of


def _list_field(kind: str, name: str, loc: Loc) -> PodField:
    """Return what is known of a field that holds a list."""
    field = TYPES[kind].get(name)
    if field is None or not field.many:
        raise Unmergeable(loc, "a Pod has no such list")
    return field
