"""Which resources are watched, and where the API server serves them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from reconciler.model.workload import WorkloadRef


class Resource(Enum):
    """A resource by the path of its API, its plural, and the kind of its objects."""

    NODES = ("/api/v1", "nodes", "Node")
    PODS = ("/api/v1", "pods", "Pod")
    DEPLOYMENTS = ("/apis/apps/v1", "deployments", "Deployment")
    STATEFUL_SETS = ("/apis/apps/v1", "statefulsets", "StatefulSet")
    REPLICA_SETS = ("/apis/apps/v1", "replicasets", "ReplicaSet")
    JOBS = ("/apis/batch/v1", "jobs", "Job")

    @property
    def path(self) -> str:
        """The path that lists it over all namespaces."""
        return f"{self.value[0]}/{self.value[1]}"

    @property
    def plural(self) -> str:
        """Its name in paths and in RBAC rules."""
        return self.value[1]

    @property
    def kind(self) -> str:
        """The kind of its objects; the items of a list do not say it themselves."""
        return self.value[2]


CAPACITY = frozenset({Resource.NODES, Resource.PODS})
"""What every cluster is asked for."""

_WORKLOADS = frozenset(Resource) - CAPACITY
_BY_KIND = {resource.kind: resource for resource in _WORKLOADS}


class Owner(NamedTuple):
    """An object that others may belong to; an owner reference never leaves its namespace."""

    kind: str
    namespace: str
    name: str


def needed(refs: Iterable[WorkloadRef]) -> frozenset[Resource]:
    """Tell what has to be watched to count the replicas of these workloads.

    Without a kind it may be any. The pods of a Deployment belong to its ReplicaSets; those of a kind that is not known
    here may belong to it through StatefulSets or Jobs.
    """
    found = set(CAPACITY)
    for ref in refs:
        if ref.kind == Resource.DEPLOYMENTS.kind:
            found |= {Resource.DEPLOYMENTS, Resource.REPLICA_SETS}
        elif ref.kind in _BY_KIND:
            found.add(_BY_KIND[ref.kind])
        else:
            found |= _WORKLOADS
    return frozenset(found)
