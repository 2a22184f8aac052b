"""Who asks for more replicas of which workload object, resource by resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from reconciler.core.observe.kubernetes.record_store import RecordStore
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.model.capacity import ReplicaShape
from reconciler.model.signal import ReplicaRequest


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

    def ask(self, pods: int, ready: int) -> ReplicaRequest | None:
        """Say what is asked for while the workload object has so many pods, of which so many are ready."""
        ...


def by_owner(parts: Iterable[RecordStore[AskRecord]]) -> Mapping[Owner, list[AskRecord]]:
    """Put together who asks for more of each workload object, by resource and then by name.

    Nothing is kept of objects that ask for none, which most do at most times.
    """
    asks: dict[Owner, list[AskRecord]] = {}
    for part in parts:
        for _, record in sorted(part.records.items()):
            asks.setdefault(record.owner, []).append(record)
    return asks
