"""Observations that were pushed by HTTP, kept in memory.

They are lost with the process on purpose: a cluster counts as unobserved until its next push.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from reconciler.errors import InvalidInput
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired

MAX_CLUSTERS = 10_000
"""
Most clusters that are kept, ten times the largest measured fleet, so that made-up names do not fill the memory. Beyond
it the clusters with the oldest pushes are dropped: a fleet whose clusters come and go must accept new ones.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """The result of a push."""

    taken: tuple[ClusterObservation, ...] = ()
    """Observations that are in force now."""
    older: tuple[ClusterObservation, ...] = ()
    """Observations that are older than the known ones."""


class PushedObservations:
    """The newest pushed observation of each cluster (a `ports.ClusterView`), safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._clusters: dict[ClusterName, ClusterObservation] = {}

    def take(self, observations: Iterable[ClusterObservation]) -> PushResult:
        """Keep each observation unless a newer one of its cluster is held; one of the same moment replaces the old.

        Beyond the limit a new cluster replaces the one with the oldest push. Raises InvalidInput, and keeps no
        observation, if the new ones alone exceed the limit.
        """
        taken: list[ClusterObservation] = []
        older: list[ClusterObservation] = []
        with self._lock:
            clusters = dict(self._clusters)  # ordered by their last push
            heard: set[ClusterName] = set()
            for observation in observations:
                held = clusters.pop(observation.cluster, None)
                heard.add(observation.cluster)
                if held is not None and observation.observed_at < held.observed_at:
                    clusters[observation.cluster] = held
                    older.append(observation)
                else:
                    clusters[observation.cluster] = observation
                    taken.append(observation)
            if len(heard) > MAX_CLUSTERS:
                raise InvalidInput(f"taking observations: more than {MAX_CLUSTERS} clusters (are their names right?)")
            for forgotten in list(islice(clusters, max(0, len(clusters) - MAX_CLUSTERS))):
                del clusters[forgotten]
            self._clusters = clusters
        return PushResult(taken=tuple(taken), older=tuple(older))

    def follow(self, desired: Desired) -> None:
        """Do nothing: the sender decides which clusters and workloads are in its observations."""

    def observe(self) -> Observed:
        """Return the newest pushed observations."""
        with self._lock:
            return Observed(clusters=dict(self._clusters))
