"""The WorkloadSpread subset of a placement, and the replicas of each subset.

A placement's record decides, as the annotation of a pod does for OpenKruise. Placements of a deleted subset belong to
no subset. A placement older than the spread belongs to the subset that could have made it: with the best preferred
terms, then one whose patch changes nothing that runs, then the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.core.spread.subset_selection import node_requirements, preference_weight, selects_cluster
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.model.policy import BurstPolicy, Cluster


def cluster_subset(placement: Placement, policy: BurstPolicy, clusters: Mapping[ClusterName, Cluster]) -> ClusterSubset:
    """Return the cluster and subset that a placement's replicas count for; the subset is empty for none."""
    if placement.subset:
        return placement.cluster, placement.subset if policy.subset(placement.subset) is not None else ""
    cluster = clusters.get(placement.cluster)
    if cluster is None:
        return placement.cluster, ""
    able = [
        subset
        for subset in policy.subsets
        if selects_cluster(subset, cluster) and not node_requirements(subset, cluster)
    ]
    best = max(
        able, key=lambda choice: (preference_weight(choice, cluster, None), _changes_nothing(choice)), default=None
    )
    return placement.cluster, "" if best is None else best.name


def replicas_by_subset(
    placements: Iterable[Placement], policy: BurstPolicy, clusters: Mapping[ClusterName, Cluster]
) -> Counter[ClusterSubset]:
    """Count the replicas of one workload by cluster and subset."""
    held = Counter[ClusterSubset]()
    for placement in placements:
        held[cluster_subset(placement, policy, clusters)] += placement.replicas
    return held


def _changes_nothing(subset: Subset) -> bool:
    """Return whether a patch leaves all but annotations of a pod as it is."""
    metadata = subset.patch.get("metadata")
    return {*subset.patch} <= {"metadata"} and (not isinstance(metadata, Mapping) or {*metadata} <= {"annotations"})
