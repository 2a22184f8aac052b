"""What is kept of any object that makes pods, or makes objects that do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from reconciler.core.workloads.builtin_kinds import REVISION_LABELS
from reconciler.model.workload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectIdentity:
    """Which object this is, and whether it is still wanted."""

    # Empty where unknown.
    uid: str = ""
    # Whether it is being deleted, so that it asks for nothing any more.
    leaving: bool = False
    # The labels that say which part of its owner it is a revision of, sorted.
    part: tuple[tuple[str, str], ...] = ()


UNKNOWN_OBJECT = ObjectIdentity()


def object_identity(metadata: Json, template: Json = None) -> ObjectIdentity:
    """Read the identity of an object; `template` are the metadata of its pods, which may have the labels instead."""
    labels = {**((template or {}).get("labels") or {}), **(metadata.get("labels") or {})}
    part = tuple(sorted((key, str(labels[key])) for key in REVISION_LABELS & labels.keys()))
    return ObjectIdentity(
        uid=metadata.get("uid") or "", leaving="deletionTimestamp" in metadata, part=_shared(part) if part else ()
    )


@lru_cache(maxsize=1024)
def _shared(part: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return part
