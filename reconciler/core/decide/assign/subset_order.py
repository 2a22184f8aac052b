"""The order in which the clusters of a WorkloadSpread's subsets are filled; replicas are given back in the reverse."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.spread.subset_selection import preference_weight
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.placement import ClusterSubset
from reconciler.text.wording import sanitize

SubsetRows = tuple[tuple[ClusterSubset, ...], ...]
"""The clusters of each subset in order; the last row is of replicas in no subset."""


def describe_subset_order(spread: WorkloadSpread) -> str:
    """Describe the subsets of a spread with their bounds, in one line."""
    words = []
    for subset in spread.subsets:
        bounds = [f"at least {subset.least}"] if subset.least else []
        bounds += [f"at most {subset.most}"] if subset.most is not None else []
        words.append(f"{sanitize(subset.name)} ({', '.join(bounds)})" if bounds else sanitize(subset.name))
    return f"WorkloadSpread {spread.id}, in order: {', '.join(words)}"


def rows_of(
    finder: CandidateFinder,
    workload: WorkloadId,
    spread: WorkloadSpread,
    held: Mapping[ClusterSubset, int],
    free: Callable[[ClusterSubset], int],
) -> SubsetRows:
    """Order the clusters of each subset: by preferred terms, by score, by free room, then by name.

    Clusters that have replicas of a subset and no longer belong to it come last in its row. The last row is of no
    subset: the policy's candidates in their order, then other clusters with replicas in none.
    """
    inputs, candidates = finder.inputs, {candidate.key: candidate for candidate in finder.order(workload)}
    seen, clusters = inputs.observed.clusters, inputs.desired.clusters
    rows = []
    for subset in spread.subsets:
        own = sorted(place for place in candidates if place[1] == subset.name)
        if len(own) > 1:
            preferences = {place: preference_weight(subset, clusters[place[0]], seen.get(place[0])) for place in own}
            own.sort(key=lambda place: (-preferences[place], -candidates[place].score, -free(place)))
        rows.append((*own, *sorted(place for place in held if place[1] == subset.name and place not in candidates)))
    none = [candidate.key for candidate in finder.order(workload) if not candidate.subset]
    return (*rows, (*none, *sorted(place for place in held if not place[1] and place not in candidates)))
