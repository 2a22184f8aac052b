"""Division of replicas over clusters: how many go where, once each cluster's room and replicas are known.

Called by `core.decide.assign`, which makes a `ClusterShare` of each candidate. Pure arithmetic on shares: nothing here
may know of capacity, demand, files or time. A division is never more than fits and never more than was asked for, and
no cluster loses what it keeps.

Each strategy is a module with the functions of `Strategy`. Their common parts are in `divide` (minimums) and
`cluster_bounds` (how many clusters and groups); `subsets` divides over the subsets of a WorkloadSpread.
"""

from reconciler.core.decide.distribution.cluster_bounds import Groups, Reached, choose, reached
from reconciler.core.decide.distribution.divide import (
    Division,
    SortedShares,
    reachable,
    returns,
    share_out,
    within,
)
from reconciler.core.decide.distribution.strategy import ClusterShare
from reconciler.core.decide.distribution.subsets import Layer, give_back

__all__ = [
    "ClusterShare",
    "Division",
    "Groups",
    "Layer",
    "Reached",
    "SortedShares",
    "choose",
    "give_back",
    "reachable",
    "reached",
    "returns",
    "share_out",
    "within",
]
