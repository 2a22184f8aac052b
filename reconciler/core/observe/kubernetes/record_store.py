"""Records of objects that are read one by one and combined on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Generic, TypeVar

from reconciler.core.observe.kubernetes.members import FollowedWorkloads
from reconciler.core.workloads.watch import ChangeEffect, key_of, namespace_of_key
from reconciler.model.workload import Json

T = TypeVar("T")


class RecordStore(Generic[T]):
    """The part of one resource (a `watch.ResourcePart`): a record of each object for which `read` returns one.

    With `followed`, objects outside of the followed namespaces are skipped. `met` is called with each record, and
    `after` makes one of an object's record and the one that follows it. `version` changes with each of them.
    """

    def __init__(
        self,
        read: Callable[[Json], T | None],
        effect: ChangeEffect,
        followed: FollowedWorkloads | None = None,
        met: Callable[[T], None] | None = None,
        *,
        after: Callable[[T, T], T] | None = None,
    ) -> None:
        self._read = read
        self._effect = effect
        self._followed = followed
        self._met = met
        self._after = after
        self._records: dict[str, T] = {}
        self.version = 0

    @property
    def records(self) -> Mapping[str, T]:
        """The records by key."""
        return self._records

    def apply(self, raw: Json) -> ChangeEffect:
        """Apply an object."""
        return self.prepare(raw)()

    def prepare(self, raw: Json) -> Callable[[], ChangeEffect]:
        """Read an object, and return what applies it, which cannot fail."""
        key = key_of(raw)
        passed = self._followed is not None and namespace_of_key(key) not in self._followed.namespaces
        return partial(self._put, key, None if passed else self._read(raw))

    def remove(self, key: str) -> ChangeEffect:
        """Apply the deletion of an object."""
        return self._put(key, None)

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the objects with a record."""
        return self._records.keys()

    def _put(self, key: str, record: T | None) -> ChangeEffect:
        before = self._records.get(key)
        if self._after is not None and before is not None and record is not None:
            record = self._after(before, record)
        if before == record:
            return ChangeEffect.NOTHING
        self.version += 1
        if record is None:
            del self._records[key]
        else:
            self._records[key] = record
            if self._met is not None:
                self._met(record)
        return self._effect
