"""Who asks for more replicas of which workload object, resource by resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from reconciler.core.kubernetes.members import Followed
from reconciler.core.kubernetes.parts import Effect, key_of, namespace_of
from reconciler.core.kubernetes.resources import Owner
from reconciler.model.capacity import Ask, ReplicaShape
from reconciler.model.workload import Json


class AskRecord(Protocol):
    """What is kept of an object that asks for replicas of another, its `owner`."""

    @property
    def owner(self) -> Owner:
        """The workload object that is missing replicas."""
        ...

    @property
    def shape(self) -> ReplicaShape | None:
        """What one of them needs, where that is said."""
        ...

    def ask(self, pods: int, ready: int) -> Ask | None:
        """Say what is asked for while the workload object has so many pods, of which so many are ready."""
        ...


class Asks:
    """The part of one resource whose objects ask for replicas (a `parts.Part`).

    Nothing is kept of one that asks for none, which most do at most times, or that is in another namespace than all
    that is followed.
    """

    def __init__(self, read: Callable[[Json], AskRecord | None], followed: Followed) -> None:
        self._read = read
        self._followed = followed
        self._records: dict[str, AskRecord] = {}

    @property
    def records(self) -> Iterable[AskRecord]:
        """What is asked for, by the name of who asks."""
        return [record for _, record in sorted(self._records.items())]

    def apply(self, raw: Json) -> Effect:
        """Take note of an object that may ask for replicas."""
        key = key_of(raw)
        return self._put(key, self._read(raw) if namespace_of(key) in self._followed.namespaces else None)

    def remove(self, key: str) -> Effect:
        """Take note that an object is gone, and what it asked for with it."""
        return self._put(key, None)

    def keys(self) -> AbstractSet[str]:
        """Name the objects that ask."""
        return self._records.keys()

    def _put(self, key: str, record: AskRecord | None) -> Effect:
        if self._records.get(key) == record:
            return Effect.NOTHING
        if record is None:
            del self._records[key]
        else:
            self._records[key] = record
            self._followed.meet((record.owner,))
        return Effect.DEMAND


def by_owner(parts: Iterable[Asks]) -> Mapping[Owner, list[AskRecord]]:
    """Put together who asks for more of each workload object."""
    found: dict[Owner, list[AskRecord]] = {}
    for part in parts:
        for record in part.records:
            found.setdefault(record.owner, []).append(record)
    return found
