"""Demands for more replicas of workload objects, by resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from reconciler.core.observe.kubernetes.record_store import RecordStore
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.model.capacity import ReplicaShape
from reconciler.model.signal import ReplicaRequest


class AskRecord(Protocol):
    """The record of an object that asks for replicas of another, its `owner`."""

    @property
    def owner(self) -> Owner:
        """The workload object that is missing replicas."""
        ...

    @property
    def owner_uid(self) -> str:
        """The uid of that very object; empty where it is known by its name alone."""
        ...

    @property
    def current(self) -> int:
        """The replicas that the object has by its scale subresource, in its own unit; 0 where that is not stated."""
        ...

    @property
    def shape(self) -> ReplicaShape | None:
        """The shape of a missing replica, if it is stated."""
        ...

    def ask(self, pods: int, ready: int) -> ReplicaRequest | None:
        """Return the missing replicas, given the pods of the workload object and its replicas that are ready."""
        ...


def by_owner(parts: Iterable[RecordStore[AskRecord]]) -> Mapping[Owner, list[AskRecord]]:
    """Group the asks by workload object, by resource and then by name.

    Objects without an ask, which are most at most times, have no entry.
    """
    asks: dict[Owner, list[AskRecord]] = {}
    for part in parts:
        for _, record in sorted(part.records.items()):
            asks.setdefault(record.owner, []).append(record)
    return asks
