"""Workloads whose replicas are counted, by the primary cluster in which their objects are."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.ids import ClusterName
from reconciler.model.manifest_source import ArgoCDSource, WorkloadSource
from reconciler.model.policy import Desired
from reconciler.model.workload import WorkloadRef


def watched_workloads(desired: Desired) -> Mapping[ClusterName, frozenset[WorkloadRef]]:
    """Return the objects of all workloads that may burst; a cluster that is no primary has no entry."""
    refs: dict[ClusterName, set[WorkloadRef]] = {}
    for workload in desired.policies:
        ref = desired.templates[workload].ref
        if ref is not None:
            refs.setdefault(desired.workspaces[workload.workspace].primary, set()).add(ref)
    return {cluster: frozenset(named) for cluster, named in refs.items()}


def live_sources(desired: Desired, cluster: ClusterName) -> frozenset[WorkloadSource]:
    """Return the objects of a cluster that templates are made from."""
    return frozenset(
        key.source for key in desired.sources if key.cluster == cluster and isinstance(key.source, WorkloadSource)
    )


def followed_applications(desired: Desired) -> frozenset[str]:
    """Return the names of Argo CD's Applications that templates are made from."""
    return frozenset(key.source.name for key in desired.sources if isinstance(key.source, ArgoCDSource))
