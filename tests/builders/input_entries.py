"""Everything that can be reached from a value, as it is now: what a decision is given is the same before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet


def entries(value: object) -> dict[str, object]:
    """Return every leaf that can be reached from a value, by its path."""
    return dict(_leaves(value, "", {}))


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """List the paths whose leaf is another one; one that is nobody's before or after among them."""
    none = object()
    pairs = ((path, before.get(path, none), after.get(path, none)) for path in sorted({*before, *after}))
    return [path for path, old, new in pairs if old is not new and old != new]


def _leaves(value: object, path: str, known: dict[int, object]) -> Iterator[tuple[str, object]]:
    parts = None if id(value) in known else _parts(value)
    if parts is None:
        yield path, value
        return
    known[id(value)] = value  # which keeps its id from being another's
    yield path, (type(value), len(parts))
    for name, part in parts.items():
        yield from _leaves(part, f"{path}.{name}", known)


def _parts(value: object) -> dict[str, object] | None:
    """Return what a value is made of by name; None of a leaf."""
    if isinstance(value, dict):
        return {repr(key): part for key, part in value.items()}
    if isinstance(value, AbstractSet):
        return {repr(part): part for part in value}
    if isinstance(value, list | tuple):
        return {str(index): part for index, part in enumerate(value)}
    if not type(value).__module__.startswith("reconciler") or callable(value):
        return None
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    names = {*getattr(value, "__dict__", ()), *slots}
    return {name: getattr(value, name) for name in sorted(names) if hasattr(value, name)} or None
