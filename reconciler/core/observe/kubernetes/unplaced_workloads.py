"""Workloads that a cluster runs by itself, among those that placements would make there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from operator import attrgetter

from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.model.workload import WorkloadRef

_OF_DEPLOYMENT = re.compile(r"(.+)-[bcdfghjklmnpqrstvwxz2456789]{1,10}")
"""The name of a Deployment's ReplicaSet: the hash of its pod template has no vowels."""


class UnplacedWorkloads:
    """Counts the pods without the label of a placement, by the watched workload that they are of.

    Pods are watched on each cluster, workload objects only on primaries: a workload without pods is not found.
    """

    def __init__(self, watched: AbstractSet[WorkloadRef]) -> None:
        self._pods = Counter[WorkloadRef]()
        self._refs: tuple[WorkloadRef, ...] | None = None
        self.watch(watched, ())

    def watch(self, watched: AbstractSet[WorkloadRef], pods: Iterable[PodRecord]) -> None:
        """Find these workloads from now on, among all pods of the cluster."""
        self._watched: dict[tuple[str, str], list[WorkloadRef]] = {}
        for ref in watched:
            self._watched.setdefault((ref.namespace, ref.name), []).append(ref)
        self._pods.clear()
        self._refs = None
        for pod in pods if self._watched else ():
            self.count(pod, 1)

    def count(self, pod: PodRecord, sign: int) -> None:
        """Add a pod, or subtract it."""
        if not self._watched or pod.placement or pod.leaving:
            return
        for owner in map(_root, pod.owners):
            for ref in self._watched.get((owner.namespace, owner.name), ()):
                if owner.meant_by(ref):
                    self._pods[ref] += sign
                    self._refs = None

    @property
    def refs(self) -> tuple[WorkloadRef, ...]:
        """The workloads with pods of their own, sorted; the same value while they stay the same."""
        if self._refs is None:
            self._refs = sorted_refs(ref for ref, pods in self._pods.items() if pods > 0)
        return self._refs


def sorted_refs(refs: Iterable[WorkloadRef]) -> tuple[WorkloadRef, ...]:
    """Sort references to workloads, each once."""
    return tuple(sorted(set(refs), key=attrgetter("namespace", "name", "kind", "group")))


def _root(owner: Owner) -> Owner:
    """Return the Deployment of a ReplicaSet by its name, and any other owner itself."""
    match = _OF_DEPLOYMENT.fullmatch(owner.name) if owner.kind == "ReplicaSet" and not owner.group else None
    return owner if match is None else owner._replace(kind="Deployment", name=match[1])
