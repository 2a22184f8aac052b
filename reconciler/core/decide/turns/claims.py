"""Claims on bursts that are about to be renewed: workloads that found no room, and have more right to theirs.

A renewal gives replicas back in two cases. One workload would still have less of its share than the other without a
replica: the replica changes hands. Or neither can have its share at any one moment, as one replica between two: then
they take turns, and who has had more than its share in time yields for as long as that is so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.turns.fair_share import FairShares
from reconciler.core.decide.turns.queue import Turn, urgency
from reconciler.core.ledger import lifecycle
from reconciler.core.workloads import replica_count
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason
from reconciler.text.wording import conjugate, count, join_names

_LONGEST_AHEAD = timedelta(hours=1)
_PARTS = 100
"""The most parts in which a burst gives back, each of which is weighed by itself: one replica, of up to so many."""
_PATIENCE = 2
"""A workload below its share waits for so many turns of another one above its own, however little that is ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomClaim:
    """Replicas of a burst that others have more right to."""

    replicas: int
    detail: str
    waits_from: datetime | None
    """When its workload will have had no more than its share, where both take turns."""


@dataclass(slots=True, kw_only=True)
class _Claimant:
    """A workload that found no room in its turn."""

    turn: Turn
    left: int
    """Replicas without room that none is promised to."""
    clusters: frozenset[ClusterName]
    """Where nothing but room is lacking."""

    @property
    def workload(self) -> WorkloadId:
        return self.turn.workload


class Claims:
    """The workloads that found no room in this pass, less those that get the room of pods that are leaving."""

    def __init__(
        self, inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, turns: Iterable[Turn]
    ) -> None:
        """Take the turns of this pass, once they have been taken."""
        self._inputs, self._working_plan, self._finder = inputs, working_plan, finder
        self._shares = FairShares(inputs, working_plan)
        self._claimants = tuple(self._without_room(turns))
        for cluster in sorted({cluster for claimant in self._claimants for cluster in claimant.clusters}):
            self._promise(cluster, _leaving(inputs, working_plan, cluster))

    def on(self, placement: Placement) -> RoomClaim | None:
        """Return what others have more right to of a burst that is needed; None where it may keep all of it."""
        workload = placement.workload
        step = unit_of_workload(self._inputs, workload, placement).gives(placement.replicas)
        if not step:
            return None
        level = priority(workload, self._inputs)
        claimants = [
            claimant
            for claimant in self._claimants
            if claimant.turn.priority == level
            and claimant.left > 0
            and claimant.workload != workload
            and placement.cluster in claimant.clusters
        ]
        return self._lesser(placement, claimants, step) or self._turn(placement, claimants, step)

    def _without_room(self, turns: Iterable[Turn]) -> Iterable[_Claimant]:
        """Yield the workloads that found no room in their turn, the most urgent first."""
        for turn in sorted(turns, key=urgency):
            suppressed = self._working_plan.unplaceable(turn.workload) if turn.unit else None
            if suppressed is not None:
                full = (refusal.cluster for refusal in suppressed.refusals if refusal.reason is Reason.NO_CAPACITY)
                yield _Claimant(turn=turn, left=suppressed.replicas, clusters=frozenset(full))

    def _promise(self, cluster: ClusterName, replicas: int) -> None:
        """Promise room on a cluster to those who come first."""
        for claimant in self._claimants:
            if replicas and cluster in claimant.clusters:
                replicas -= self._give(claimant, replicas)

    def _lesser(self, placement: Placement, claimants: Sequence[_Claimant], step: int) -> RoomClaim | None:
        """Claim the replicas that workloads need which would still have less of their share than this one."""
        given, gains = 0, Counter[WorkloadId]()
        margin = self._shares.margin(placement.workload, step)
        part = max(1, placement.replicas // (_PARTS * step)) * step
        while given + step <= placement.replicas:
            claimant = next(
                (
                    claimant
                    for claimant in claimants
                    if claimant.left > 0
                    and self._shares.is_poorer(claimant.workload, placement.workload, given + margin)
                    and self._makes_room(placement, claimant)
                ),
                None,
            )
            if claimant is None:
                break
            lacking, rest = -(-claimant.left // step) * step, (placement.replicas - given) // step * step
            taken = min(part, lacking, rest)
            given += taken
            gains[claimant.workload] += self._give(claimant, taken)
        return self._claim(placement, given, gains, None) if given else None

    def _turn(self, placement: Placement, claimants: Sequence[_Claimant], step: int) -> RoomClaim | None:
        """Claim a turn for a workload that has less of its share, from one that has had more than its own in time."""
        inputs, shares, workload = self._inputs, self._shares, placement.workload
        own, fair = shares.of(workload), shares.fair(workload)
        if own.workload <= fair:
            return None
        policy, template = inputs.desired.policies[workload], inputs.desired.templates[workload]
        lasts = lifecycle.placement_duration(template, policy, inputs.desired.limits.get(workload.workspace))
        ahead = _time_ahead(inputs.now - placement.created_at, own.workload, fair)
        for claimant in claimants:
            has = shares.of(claimant.workload)
            if has.workload >= min(fair, own.workload) or has.workspace > own.workspace:
                continue
            gained = shares.of_workload(claimant.workload, 1)
            starves = not has.workload and inputs.now - claimant.turn.since >= _PATIENCE * lasts
            if (starves or (ahead >= lasts and (not has.workload or gained <= own.workload))) and self._makes_room(
                placement, claimant
            ):
                gains = Counter({claimant.workload: self._give(claimant, step)})
                return self._claim(placement, step, gains, inputs.now + ahead)
        return None

    def _give(self, claimant: _Claimant, replicas: int) -> int:
        """Promise room to a workload, and return the replicas that it is for."""
        part = min(replicas, claimant.left)
        claimant.left -= part
        self._shares.expect(claimant.workload, part)
        return part

    def _claim(
        self, placement: Placement, replicas: int, gains: Counter[WorkloadId], waits_from: datetime | None
    ) -> RoomClaim:
        """Say who has more right to some replicas of a placement, and why."""
        inputs, own = self._inputs, placement.workload
        has, needs = self._working_plan.replicas(own), _missing(inputs, own)
        others = join_names(
            f"{workload}, which has {self._working_plan.replicas(workload)} of {_missing(inputs, workload)}"
            for workload in gains
        )
        verb = conjugate(replicas, "makes")
        turn = "; they take turns" if waits_from is not None else ""
        return RoomClaim(
            replicas=replicas,
            detail=f"{own} has {has} of {needs}, and {count(replicas, 'replica')} {verb} room for {others}{turn}",
            waits_from=waits_from,
        )

    def _makes_room(self, placement: Placement, claimant: _Claimant) -> bool:
        """Tell whether a replica of a workload would have room for certain if a placement was gone."""
        demand = self._inputs.demands.get(claimant.workload)
        if not isinstance(demand, Demand) or demand.shape is None:
            return False
        capacity, workspace = self._finder.capacity, claimant.workload.workspace
        before = capacity.room(placement.cluster, workspace).count(demand.shape, MOST)
        room = capacity.room(placement.cluster, workspace, without=(placement,), newcomer=demand.shape)
        return room.count(demand.shape, MOST) > before


def _time_ahead(lasted: timedelta, share: float, fair: float) -> timedelta:
    """Return for how long a burst has had more than its share: what is beyond it, as a part of it.

    A fair share is nothing where none of those that miss replicas has any: who has one is ahead by the longest time.
    """
    longest = _LONGEST_AHEAD.total_seconds()
    beyond = (share - fair) * lasted.total_seconds()
    return _LONGEST_AHEAD if beyond >= longest * fair else timedelta(seconds=beyond / fair)


def _missing(inputs: PassInput, workload: WorkloadId) -> int:
    demand = inputs.demands.get(workload)
    return demand.missing if isinstance(demand, Demand) else 0


def _leaving(inputs: PassInput, working_plan: WorkingPlan, cluster: ClusterName) -> int:
    """Count the pods with a node that will be gone soon: those of placements that have ended or shrunk."""
    seen = inputs.observed.clusters.get(cluster)
    if seen is None:
        return 0
    present = {placement.name: placement for placement in working_plan.on(cluster)}
    ended = sum(pods for name, pods in seen.bound.items() if name not in present)
    bound = ((placement, replica_count.bound_replicas(placement, seen)) for placement in present.values())
    return ended + sum(max(0, replicas - placement.replicas) for placement, replicas in bound)
