"""Observations that came to us, by HTTP, and are kept in memory.

They are lost with the process, as they should be: until a cluster is seen again it counts as unseen.
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
"""Ten times the largest fleet that is measured; a sender that makes up names must not fill the memory.

When they are reached, the clusters that were not heard of for longest are forgotten: a fleet whose clusters come and go
must not come to a point where new ones are refused.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """What became of pushed observations: `taken` are in force, `older` were behind what is already known."""

    taken: tuple[ClusterObservation, ...] = ()
    older: tuple[ClusterObservation, ...] = ()


class PushedObservations:
    """The newest pushed observation of each cluster (a `ports.ClusterView`), safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._clusters: dict[ClusterName, ClusterObservation] = {}

    def take(self, observations: Iterable[ClusterObservation]) -> PushResult:
        """Keep each observation unless a newer one of its cluster is known; one of the same moment replaces it.

        A cluster that is new takes the place of the one not heard of for longest when there are too many. Raises
        InvalidInput, and keeps none of them, when they alone are more clusters than any fleet has.
        """
        taken: list[ClusterObservation] = []
        older: list[ClusterObservation] = []
        with self._lock:
            clusters = dict(self._clusters)  # in the order in which they were last heard of
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
        """Ignore what is asked for: whoever writes the observations decides what is in them."""

    def observe(self) -> Observed:
        """Return what has been pushed so far."""
        with self._lock:
            return Observed(clusters=dict(self._clusters))
