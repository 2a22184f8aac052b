"""Who asks for more replicas of which workload object, resource by resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from reconciler.core.kubernetes.members import Followed
from reconciler.core.kubernetes.parts import Effect, key_of, namespace_of
from reconciler.core.kubernetes.resources import Owner
from reconciler.model.capacity import Ask
from reconciler.model.workload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRecord:
    """What is kept of an object that asks for replicas of another."""

    owner: Owner
    ask: Ask


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
        return Effect.DEMAND


def by_owner(parts: Iterable[Asks]) -> Mapping[Owner, tuple[Ask, ...]]:
    """Put together what is asked for of each workload object."""
    found: dict[Owner, tuple[Ask, ...]] = {}
    for part in parts:
        for record in part.records:
            found[record.owner] = (*found.get(record.owner, ()), record.ask)
    return found
