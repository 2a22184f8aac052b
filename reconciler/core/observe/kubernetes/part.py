"""What a cluster's state is put together from: a part for each resource, told of that resource's objects alone."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import IntEnum
from typing import Protocol

from reconciler.model.workload import Json


class ChangeEffect(IntEnum):
    """What a change means for deciding: nothing, that room came or went, or that somebody's demand did."""

    NOTHING = 0
    CAPACITY = 1
    DEMAND = 2


class ResourcePart(Protocol):
    """What is kept of one resource's objects, by `key_of`.

    What it holds after any events is what it would hold after a fresh list: an event told twice is Effect.NOTHING the
    second time. It may keep nothing of an object; `keys` names those that it keeps something of.
    """

    def apply(self, raw: Json) -> ChangeEffect:
        """Take note of an object as it is now."""
        ...

    def remove(self, key: str) -> ChangeEffect:
        """Take note that an object is gone; it need not have been known."""
        ...

    def keys(self) -> AbstractSet[str]:
        """Name the objects that something is kept of."""
        ...
