"""What follows from the nodes of a cluster alone, worked out once for as long as they are the same objects.

A cluster where nothing happens is shown pass after pass with the same nodes. Only what was last seen of each is kept:
losing it costs time and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reconciler.model.capacity import ClosedNode, ClusterObservation, Pool
from reconciler.model.ids import ClusterName

V = TypeVar("V")

_CLUSTERS = 2048
"""Clusters of which something is kept; beyond that all is forgotten and begins anew."""


class ClusterCache(Generic[V]):
    """One value for each cluster, which `make` works out of its nodes and its DeviceClasses and of nothing else."""

    def __init__(self, make: Callable[[ClusterObservation], V]) -> None:
        self._make = make
        self._last: dict[ClusterName, tuple[tuple[Pool, ...], object, tuple[ClosedNode, ...], V]] = {}

    def of(self, seen: ClusterObservation) -> V:
        """Return the value for a cluster as it is seen."""
        last = self._last.get(seen.cluster)
        if last is not None and last[0] is seen.pools and last[1:3] == (seen.device_classes, seen.closed):
            if last[2] is not seen.closed:  # equal: from now on that is seen at a glance
                self._last[seen.cluster] = seen.pools, seen.device_classes, seen.closed, last[3]
            return last[3]
        if len(self._last) >= _CLUSTERS:
            self._last.clear()
        made = self._make(seen)
        self._last[seen.cluster] = seen.pools, seen.device_classes, seen.closed, made
        return made
