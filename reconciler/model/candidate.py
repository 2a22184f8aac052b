"""A cluster that may take replicas of a workload, on its whole way from the policy's order to the choice."""

from __future__ import annotations

from typing import NamedTuple

from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.placement import ClusterSubset
from reconciler.model.score import Score, weighted_mean
from reconciler.model.units import Resources

_NOT_ASSESSED = ReplicaShape(requests=Resources())


class Candidate(NamedTuple):
    """A cluster, or its part for a WorkloadSpread subset, as a place for replicas of one workload.

    Every stage of a decision fills in fields of its own and copies the others. A cluster that drops out on the way
    leaves a Refusal instead, and the plan records the candidate that was taken as its Choice.
    """

    # 1. Order (core.fleet.cluster_order): the entry of the policy. A cluster outside of the order has rank 0.
    cluster: ClusterName
    # The place in the order, from 1, by the policy at first, then by scorers.
    rank: int
    # The subset that the replicas are for; empty without a WorkloadSpread, and for replicas in none of its subsets.
    subset: str = ""
    # The most replicas that it may have; None sets no bound.
    limit: int | None = None
    # The replicas that it gets before other clusters get more.
    least: int = 0
    # Weight for the Weighted strategy.
    weight: int = 1
    # Its values of the labels that the policy spreads over.
    groups: tuple[str, ...] = ()
    # The tier that it is in, those of lower ones being filled first: of the policy's entries where these are filled one
    # after the other, with slices of GPUs behind whole ones in each.
    tier: int = 0
    # The scores of the scorers that the policy weighs, in its order; empty where it weighs none.
    scores: tuple[Score, ...] = ()

    # 2. Filter and fit (core.decide.candidates): the free capacity.
    # The shape of a replica there.
    shape: ReplicaShape = _NOT_ASSESSED
    # The replicas that its free capacity holds.
    fits: int = 0
    # Replicas that fit, within the limit and the number of missing replicas.
    room: int = 0
    # The pods of a gang that start there, by shape, where not all have room: in the order in which they have it.
    start: tuple[tuple[ReplicaShape, int], ...] = ()

    # 3. Assign (core.decide.assign): the replicas.
    # The assigned replicas, on top of the current ones.
    replicas: int = 0
    # The reason for it in addition to its rank: of the policy's strategy, or of the part of a gang that starts.
    because: str = ""

    def with_room(self, shape: ReplicaShape, fits: int, room: int) -> Candidate:
        """Return the candidate with its free capacity."""
        return self._copy(shape, fits, room, self.replicas, self.because)

    def with_replicas(self, replicas: int, because: str = "") -> Candidate:
        """Return the candidate with its assigned replicas, and the reason."""
        return self._copy(self.shape, self.fits, self.room, replicas, because)

    def _copy(self, shape: ReplicaShape, fits: int, room: int, replicas: int, because: str) -> Candidate:
        """Return a copy with what assessing and assigning add. A pass makes thousands, so without `_replace`."""
        return tuple.__new__(Candidate, (*self[:_ORDERED], shape, fits, room, self.start, replicas, because))

    @property
    def score(self) -> float:
        """The mean of its scores by their weights."""
        return weighted_mean(self.scores)

    @property
    def key(self) -> ClusterSubset:
        """The cluster and the subset, by which its replicas are counted."""
        return self.cluster, self.subset


_ORDERED = Candidate._fields.index("shape")
"""The fields that the order and its scorers fill in."""
