"""Watched resources of a cluster: their API paths, and the state that is kept of their objects."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import Enum, IntEnum, auto
from typing import NamedTuple, Protocol

from reconciler.model.workload import Json


class Effect(Enum):
    """The effect on a cluster of a resource that cannot be read."""

    UNSEEN = auto()
    """The whole cluster is out of sight, and its objects stay as they were seen last."""
    EMPTY = auto()
    """The cluster has no such objects."""
    UNKNOWN = auto()
    """The objects are unknown: those seen last stay, and no placement ends or begins on account of them."""


class Gap(NamedTuple):
    """What follows where a resource cannot be read."""

    absent: Effect
    """Where the API server serves no such resource (404), as without its CRD."""
    forbidden: Effect
    """Where the login may not read it (403)."""


REQUIRED = Gap(Effect.UNSEEN, Effect.UNSEEN)
OPTIONAL = Gap(Effect.EMPTY, Effect.UNKNOWN)
NEVER_EMPTY = Gap(Effect.UNKNOWN, Effect.UNKNOWN)
"""For objects without which the others would be counted wrongly, as devices without their claims."""


class ServedResource:
    """A resource of an API group, and where the API server serves its objects."""

    group: str
    """The API group; empty for the core group."""
    versions: tuple[str, ...]
    """The versions of the group, in the order in which to try them."""
    plural: str
    """The name of the resource in paths: ``pods``."""
    gap: Gap
    """What follows where it cannot be read."""
    selector: str = ""
    """The label selector of the objects that count; empty for all."""

    @property
    def fields(self) -> str:
        """The field selector of the objects that are watched; empty for all."""
        return ""

    @property
    def optional(self) -> bool:
        """Whether a cluster may do without: the group need not be served, and the right need not be granted."""
        return self.gap.absent is not Effect.UNSEEN

    @property
    def full_name(self) -> str:
        """Return the name that kubectl uses where the plural alone may be another group's."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def paths(self, namespace: str = "") -> tuple[str, ...]:
        """Return the paths that list the resource, in the order in which to try them: of one namespace, or of all."""
        scope = f"namespaces/{namespace}/" if namespace else ""
        root = f"/apis/{self.group}" if self.group else "/api"
        return tuple(f"{root}/{version}/{scope}{self.plural}" for version in self.versions)


class ChangeEffect(IntEnum):
    """The effect of a change on decisions; higher values are more urgent."""

    NOTHING = 0
    """The decision cannot differ."""
    CAPACITY = 1
    """Free capacity has changed."""
    DEMAND = 2
    """The demand of a workload has changed."""


class ResourcePart(Protocol):
    """The part of a cluster's state that the objects of one resource make up, by `key_of`.

    Events are idempotent: each leaves the part as a fresh list would, and the effect of a repeated event is
    ChangeEffect.NOTHING. A part may ignore an object; `keys` lists the objects that it keeps.
    """

    def apply(self, raw: Json) -> ChangeEffect:
        """Add or replace an object."""
        ...

    def remove(self, key: str) -> ChangeEffect:
        """Remove an object; an unknown key changes nothing."""
        ...

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the objects that the part keeps."""
        ...


def key_of(raw: Json) -> str:
    """Return the key of an object within its resource: ``namespace/name``, or the name of a cluster-scoped one."""
    metadata = raw["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def namespace_of_key(key: str) -> str:
    """Return the namespace in a key of `key_of`."""
    return key.partition("/")[0]
