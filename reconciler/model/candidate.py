"""A cluster that may take replicas of a workload, on its whole way from the policy's order to the choice."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.placement import ClusterSubset
from reconciler.model.units import Resources

_NOT_ASSESSED = ReplicaShape(requests=Resources())


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One cluster, or the part of it that a WorkloadSpread's subset has, as a place for replicas of one workload.

    Every stage of a decision fills in fields of its own and copies the others. A cluster that drops out on the way
    leaves a Refusal instead, and the plan records the candidate that was taken as its Choice.
    """

    # 1. Order (core.fleet.cluster_order): what the policy says. A cluster outside of the order has rank 0.
    cluster: ClusterName
    # The subset that the replicas are for; empty without a WorkloadSpread, and for replicas in none of its subsets.
    subset: str = ""
    # The place in the order, from 1, as the policy has it until scorers have had their say.
    rank: int
    # The most replicas that it may have; None sets no bound.
    limit: int | None = None
    # The replicas that it gets before other clusters get more.
    least: int = 0
    # Its share where the strategy goes by weights.
    weight: int = 1
    # Its value of the label that the policy spreads over.
    group: str = ""

    # 2. Filter and fit (core.decide.candidates): what it has room for now.
    # A replica as it would be made there.
    shape: ReplicaShape = _NOT_ASSESSED
    # The replicas that its free capacity holds, whatever is asked for.
    fits: int = 0
    # The replicas that it may take: those that fit, within its limit and what is asked for.
    room: int = 0
    # The pods of a gang that start there, by shape, where only its minimum has room.
    start: tuple[tuple[ReplicaShape, int], ...] = ()

    # 3. Assign (core.decide.assign): what it gets.
    # The replicas that it gets on top of what it has.
    replicas: int = 0
    # The words that speak for it beside its rank: of the policy's strategy, or of what starts of a gang.
    because: str = ""

    @property
    def key(self) -> ClusterSubset:
        """The cluster and the subset, by which its replicas are counted."""
        return self.cluster, self.subset
