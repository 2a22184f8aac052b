"""The parts of a cluster's state that are Kueue's queues: what their quotas leave for placements."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from reconciler.core.observe.kubernetes.record_store import RecordStore
from reconciler.core.observe.kubernetes.resources import QUEUES, Resource, Watched
from reconciler.core.workloads.kueue_queues import (
    kueue_queues,
    read_cluster_queue,
    read_cohort,
    read_local_queue,
    read_namespace_labels,
    read_resource_flavor,
)
from reconciler.core.workloads.watch import ChangeEffect, ResourcePart
from reconciler.model.kubernetes.queues import ClusterQueue, Cohort, KueueQueues, LocalQueue, ResourceFlavor


class KueueQuotas:
    """Kueue's queues in one cluster, of all namespaces, and the labels of these."""

    def __init__(self) -> None:
        self._local: RecordStore[LocalQueue] = RecordStore(read_local_queue, ChangeEffect.CAPACITY)
        self._clusters: RecordStore[ClusterQueue] = RecordStore(read_cluster_queue, ChangeEffect.CAPACITY)
        self._cohorts: RecordStore[Cohort] = RecordStore(read_cohort, ChangeEffect.CAPACITY)
        self._flavors: RecordStore[ResourceFlavor] = RecordStore(read_resource_flavor, ChangeEffect.CAPACITY)
        self._namespaces: RecordStore[Mapping[str, str]] = RecordStore(read_namespace_labels, ChangeEffect.CAPACITY)
        self._labels: tuple[int, Mapping[str, Mapping[str, str]]] = -1, {}
        self._last: tuple[tuple[object, ...], KueueQueues | None] = (), None

    @property
    def parts(self) -> Mapping[Watched, ResourcePart]:
        """The part of each resource."""
        return {
            Resource.LOCAL_QUEUES: self._local,
            Resource.CLUSTER_QUEUES: self._clusters,
            Resource.COHORTS: self._cohorts,
            Resource.FLAVORS: self._flavors,
            Resource.NAMESPACES: self._namespaces,
        }

    def namespaces(self, unknown: AbstractSet[Watched]) -> Mapping[str, Mapping[str, str]] | None:
        """Return the labels of all namespaces, the same object until one changes; None while they are `unknown`."""
        if Resource.NAMESPACES in unknown:
            return None
        if self._labels[0] != self._namespaces.version:
            self._labels = self._namespaces.version, dict(sorted(self._namespaces.records.items()))
        return self._labels[1]

    def queues(self, unknown: AbstractSet[Watched]) -> KueueQueues | None:
        """Return the queues, the same object until one of them changes; None while any of them is `unknown`."""
        if unknown & QUEUES:
            return None
        stores = (self._local, self._clusters, self._cohorts, self._flavors, self._namespaces)
        namespaces = self.namespaces(unknown)
        versions = (*(store.version for store in stores), namespaces is not None)
        if self._last[0] != versions:
            made = kueue_queues(
                self._local.records,
                self._clusters.records,
                self._cohorts.records,
                self._flavors.records,
                namespaces,
            )
            self._last = versions, made
        return self._last[1]
