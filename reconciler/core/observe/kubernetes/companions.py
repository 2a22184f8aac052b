"""Companions of live workloads: single ConfigMaps and Services that templates name, kept as another cluster takes them.

A Secret is never one: `resources.COMPANION_RESOURCES` are the kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from reconciler.core.observe.kubernetes.live_objects import observed_object
from reconciler.core.observe.kubernetes.resources import COMPANION_RESOURCES, CompanionResource
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.model.capacity import ObservedObject
from reconciler.model.manifest_source import Companion, WorkloadSource
from reconciler.model.workload import Json


def companions_of(sources: Iterable[WorkloadSource]) -> frozenset[Companion]:
    """Return the companions of all sources."""
    return frozenset(companion for source in sources for companion in source.companions)


class LiveCompanion:
    """One companion as its cluster has it (a `ResourcePart`)."""

    def __init__(self, companion: Companion) -> None:
        self._key = f"{companion.namespace}/{companion.name}"
        self.resource: CompanionResource = COMPANION_RESOURCES[companion.kind]
        self.object: ObservedObject | None = None
        """None where it is not there, or may not be read; the same object while nothing changes."""

    def apply(self, raw: Json) -> ChangeEffect:
        """Keep the object, if it is the one that is meant."""
        if key_of(raw) != self._key:
            return ChangeEffect.NOTHING
        kept = observed_object({**raw, "apiVersion": self.resource.versions[0], "kind": self.resource.kind})
        if kept == self.object:
            return ChangeEffect.NOTHING
        self.object = kept
        return ChangeEffect.DEMAND

    def remove(self, key: str) -> ChangeEffect:
        """Drop the object."""
        if key != self._key or self.object is None:
            return ChangeEffect.NOTHING
        self.object = None
        return ChangeEffect.DEMAND

    def keys(self) -> AbstractSet[str]:
        """Return the key of the object while it is there."""
        return frozenset() if self.object is None else frozenset({self._key})
