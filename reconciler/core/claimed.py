"""How many topology domains the groups of our own placements may come to have that nobody sees yet.

A pod that has a node shows by a label which group it is of, and by that which domain is taken. One that has none yet
may go anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from reconciler.core.domains import TopologyDomains
from reconciler.core.needs import PodRequirements
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL


def seen_by(seen: ClusterObservation, wanted: TopologyDomains) -> Mapping[PlacementName, Counter[str]]:
    """Count the pods with a node that have the mark of some domains: of each placement, by their groups."""
    found: dict[PlacementName, Counter[str]] = {}
    there = [node.pods for pool in seen.pools for node in pool.nodes] + [node.pods for node in seen.closed]
    for pod in (pod for pods in there for pod in pods or () if not pod.leaving):
        labels = dict(pod.labels)
        if wanted.mark in labels and PLACEMENT_LABEL in labels:
            found.setdefault(PlacementName(labels[PLACEMENT_LABEL]), Counter())[labels[wanted.mark]] += 1
    return found


def to_come(needed: PodRequirements, wanted: TopologyDomains, seen: Counter[str]) -> int:
    """Count the domains at the most that a placement may take with the pods that are not seen to have a node."""
    loose = needed.marked.get(wanted.mark, 0)
    alike = [one for one in needed.domains if one.mark == wanted.mark]
    pods = sum(_pods(one) for one in alike) + loose
    most = sum(len(one.units) if one.key == wanted.key else _pods(one) for one in alike) + loose
    return max(0, min(pods - seen.total(), most - len(seen)))


def _pods(domains: TopologyDomains) -> int:
    return sum(number for unit in domains.units for _, number in unit.pods)
