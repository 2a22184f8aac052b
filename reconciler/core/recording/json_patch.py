"""JSON Patch (RFC 6902), as far as `documents` writes it: add, replace and remove."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.core.recording.documents import Operation
from reconciler.model.workload import Json


def patched(document: Json, operations: Iterable[Operation]) -> Json:
    """Return a patched copy of a document, which shares with it all that no operation touches.

    Raises KeyError, IndexError, TypeError or ValueError for operations that do not fit the document.
    """
    fresh: set[int] = set()
    kept: list[Json] = []

    def own(value: Json) -> Json:
        """Return a value of which this call has a copy of its own."""
        if id(value) not in fresh:
            value = value.copy()
            fresh.add(id(value))
            kept.append(value)  # so that no other value gets its id
        return value

    holder: dict[str, Json] = {"": document}
    fresh.add(id(holder))
    for operation in operations:
        target: Json = holder
        *way, last = (_unescaped(part) for part in operation["path"].split("/"))
        for part in way:
            key = int(part) if isinstance(target, list) else part
            target[key] = own(target[key])
            target = target[key]
        _apply(operation, target, last)
    return holder[""]


def _apply(operation: Operation, target: Json, last: str) -> None:
    key = int(last) if isinstance(target, list) else last
    match operation["op"]:
        case "remove":
            del target[key]
        case "add" if isinstance(target, list):
            target.insert(int(last), operation["value"])
        case "replace" if key not in (range(len(target)) if isinstance(target, list) else target):
            raise KeyError(operation["path"])
        case "add" | "replace":
            target[key] = operation["value"]
        case other:
            raise ValueError(f"{other!r} is no operation")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part
