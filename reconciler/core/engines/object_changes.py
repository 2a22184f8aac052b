"""What applying an object changes in a cluster: it is new, some of its fields change, or none does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.workload import Json

_SERVERS_OWN = frozenset({"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"})
"""Fields of the metadata that a server counts or sets by itself."""


class ApplyAction(StrEnum):
    """What becomes of an object."""

    CREATE = "create"
    CHANGE = "change"
    KEEP = "keep"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    """The effect of applying one object."""

    action: ApplyAction
    kind: str
    name: str
    """With its namespace, where it has one."""
    fields: tuple[str, ...] = ()
    """The fields that change, as dotted paths; lists are told as a whole."""
    conflicts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """By field manager: the fields that another tool has set, and that are taken over from it."""
    why: str = ""
    """Why it is refused."""


def object_change(
    wanted: Json, before: Json, after: Json, conflicts: Mapping[str, tuple[str, ...]] | None = None
) -> ObjectChange:
    """Compare an object before (None: not there) and after it has been applied; `wanted` is what is applied."""
    fields = () if before is None else tuple(changed_fields(before, after))
    action = ApplyAction.CREATE if before is None else ApplyAction.CHANGE if fields else ApplyAction.KEEP
    return ObjectChange(
        action=action, kind=wanted["kind"], name=object_name(wanted), fields=fields, conflicts=conflicts or {}
    )


def refused_change(wanted: Json, why: str) -> ObjectChange:
    """Report an object that the server does not take."""
    return ObjectChange(action=ApplyAction.REFUSED, kind=wanted["kind"], name=object_name(wanted), why=why)


def object_name(wanted: Json) -> str:
    """Return ``namespace/name``, or the name of an object without a namespace."""
    metadata = wanted["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def changed_fields(before: Json, after: Json, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the dotted paths of fields that differ, but for those of the server and the status."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            if (path == ("metadata",) and name in _SERVERS_OWN) or (not path and name == "status"):
                continue
            yield from changed_fields(before.get(name), after.get(name), (*path, name))
    elif before != after:
        yield ".".join(path)
