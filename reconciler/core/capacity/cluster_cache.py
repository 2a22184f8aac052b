"""Values derived from the nodes of a cluster, computed once for as long as these are the same objects.

The nodes of an idle cluster are the same objects in each pass. Only the last value of each cluster is kept; losing it
costs time only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reconciler.model.capacity import ClosedNode, ClusterObservation, Pool
from reconciler.model.ids import ClusterName

V = TypeVar("V")

_CLUSTERS = 2048
"""Clusters in the cache; beyond that the cache is emptied."""


class ClusterCache(Generic[V]):
    """A value for each cluster, which `make` computes from its nodes, DeviceClasses and namespaces alone."""

    def __init__(self, make: Callable[[ClusterObservation], V]) -> None:
        self._make = make
        self._last: dict[ClusterName, tuple[tuple[Pool, ...], object, tuple[ClosedNode, ...], V]] = {}

    def of(self, seen: ClusterObservation) -> V:
        """Return the value for a cluster as it was observed."""
        classes = (seen.device_classes, seen.extended_resources, seen.namespaces)
        last = self._last.get(seen.cluster)
        if last is not None and last[0] is seen.pools and last[1:3] == (classes, seen.closed):
            if last[2] is not seen.closed:  # equal: from now on that is seen at a glance
                self._last[seen.cluster] = seen.pools, classes, seen.closed, last[3]
            return last[3]
        if len(self._last) >= _CLUSTERS:
            self._last.clear()
        made = self._make(seen)
        self._last[seen.cluster] = seen.pools, classes, seen.closed, made
        return made
