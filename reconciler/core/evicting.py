"""GPUs that go from who is less urgent, and lets them go, to who is more urgent and finds no room anywhere.

As EGS has it: a GPR evicts others of strictly lower priority that opted in, where its workspace allows it (the EGS
reference, section 4). Only placements of ours are ended, never what runs on a primary by itself. What was evicted can
evict only what is less urgent still, so that every chain of evictions comes to an end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.core.ending import revert
from reconciler.core.fit import Room
from reconciler.core.gprlimits import within_limits
from reconciler.core.gpuask import shapes
from reconciler.core.grouping import whole
from reconciler.core.growth import MOST, Growth
from reconciler.core.needs import needs
from reconciler.core.placing import turn
from reconciler.core.queueing import Turn
from reconciler.core.reach import Rung
from reconciler.core.releasing import close
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.subsetlimits import room_in
from reconciler.core.terms import terms
from reconciler.core.victims import all_of, fewest, served
from reconciler.core.wording import count
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Amend, Reason, Suppressed, Why
from reconciler.model.request import Provisioning


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Who would have to go from one cluster, so that `served` replicas of a newcomer have room there."""

    rung: Rung
    newcomer: ReplicaShape
    victims: tuple[Placement, ...]
    served: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictions:
    """What this pass does about those whom their turn has left without room."""

    situation: Situation
    standing: Standing
    growth: Growth
    _evictable: dict[ClusterName, tuple[int, tuple[tuple[int, Placement], ...]]] = field(default_factory=dict)
    _rooms: dict[Hashable, tuple[Hashable, Room]] = field(default_factory=dict)
    _found: dict[Hashable, tuple[Hashable, Eviction | None]] = field(default_factory=dict)
    _yielding: dict[int, tuple[tuple[Rung, ...], tuple[Rung, ...]]] = field(default_factory=dict)
    _hopeless: dict[Hashable, tuple[int, Suppressed]] = field(default_factory=dict)

    def after(self, turn: Turn) -> tuple[Turn, ...]:
        """Make room for who found none in its turn, let it have another, and return the turns of who had to go.

        Where several clusters would do, the one that serves most is taken, then the one where the fewest have to go.
        """
        held = self.standing.short_of_room(turn.workload)
        limits = self.situation.desired.limits.get(turn.workload.workspace)
        if held is None or (limits is not None and not limits.evicts):
            return ()
        alike = self._kind(turn.workload)
        kind = None if alike is None else (alike, id(held.refusals))  # the same for all that were told the same
        if kind is not None and self._hopeless.get(kind, (None,))[0] == self.standing.position:
            return ()
        best = min(self._ways(turn.workload, held, alike), key=self._cost, default=None)
        best = best or min(self._ways(turn.workload, held, alike, least=True), key=self._cost, default=None)
        if best is None:
            if kind is not None:
                self._hopeless[kind] = self.standing.position, held
            return ()
        self.growth.rooms.evict(best.rung.cluster, best.victims, best.newcomer)
        self._yielding.clear()
        for victim in best.victims:
            self._evict(victim, turn.workload, best)
        self.standing.retract(turn.workload)
        turn.take()
        return tuple(self._turns({victim.workload for victim in best.victims}, turn.workload))

    def _kind(self, workload: WorkloadId) -> Hashable | None:
        """Say for which of those who wait the same others would have to go; None where it is for one alone."""
        enrolment = self.situation.enrolment
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        if entry is None or self.standing.of(workload):
            return None
        request = entry.record.request
        return self.growth.kind(entry), request.terms.priority, request.template

    def _ways(
        self, workload: WorkloadId, held: Suppressed, alike: Hashable, *, least: bool = False
    ) -> Iterator[Eviction]:
        """Yield what each cluster that lacks nothing but room could do; at `least` for the minimum of a gang.

        A cluster is asked once for all who are `alike`, until something changes there.
        """
        rungs = self._crowded(workload)
        if not rungs:
            return
        otherwise = {(one.cluster, one.subset) for one in held.refusals if one.reason is not Reason.NO_CAPACITY}
        if workload.request:
            otherwise |= {(placement.cluster, "") for placement in self.standing.of(workload)}
        for rung in rungs:
            if rung.site in otherwise or rung.cluster not in self.situation.observed.clusters:
                continue
            asked, now = (alike, rung.site, least), self.growth.rooms.moment(rung.cluster)
            known = self._found.get(asked)
            if alike is None or known is None or known[0] != now:
                known = self._found[asked] = now, self._way(workload, held, rung, least=least)
            if known[1] is not None:
                yield known[1]

    def _crowded(self, workload: WorkloadId) -> tuple[Rung, ...]:
        """List the clusters that a workload may use and where somebody gives way to others, in order."""
        rungs = self._rungs(workload)
        if id(rungs) not in self._yielding:
            self._yielding[id(rungs)] = rungs, tuple(rung for rung in rungs if self._giving(rung.cluster))
        return self._yielding[id(rungs)][1]

    def _rungs(self, workload: WorkloadId) -> tuple[Rung, ...]:
        """List the clusters that a workload may use, in order."""
        if workload in self.situation.desired.policies:
            return self.situation.reach.order(workload)
        clusters = self.standing.requests[workload].request.clusters  # a reservation, which has no policy
        named = clusters or self.situation.desired.workspaces[workload.workspace].clusters
        return tuple(Rung(cluster=name, rank=rank, limit=None) for rank, name in enumerate(named, start=1))

    def _way(self, workload: WorkloadId, held: Suppressed, rung: Rung, *, least: bool) -> Eviction | None:
        mine = terms(workload, rung.cluster, self.situation).priority
        candidates = [one for own, one in self._giving(rung.cluster) if own < mine and one.workload != workload]
        if not candidates:
            return None
        wanted, whole = self._wanted(workload, held, rung, least=least)
        if not wanted:
            return None
        newcomer = wanted[0][0]
        whose = None if self._reserves(workload) else workload.workspace
        serves = served(self._emptied(rung.cluster, workload, whose, candidates, newcomer), wanted, whole=whole)
        if not serves:
            return None

        def enough(victims: Sequence[Placement]) -> bool:
            room = self.growth.rooms.room(rung.cluster, whose, without=victims, newcomer=newcomer)
            return served(room, wanted, whole=whole) >= serves

        return Eviction(rung=rung, newcomer=newcomer, victims=fewest(candidates, enough), served=serves)

    def _reserves(self, workload: WorkloadId) -> bool:
        """Tell whether it is a reservation, which needs room beside all others, those of its own workspace too."""
        record = self.standing.requests.get(workload)
        return record is not None and record.request.reserves

    def _emptied(
        self,
        cluster: ClusterName,
        workload: WorkloadId,
        whose: WorkspaceName | None,
        candidates: Sequence[Placement],
        newcomer: ReplicaShape,
    ) -> Room:
        """Return the room without any of the candidates, the same for all who need the same until it changes.

        The candidates are the first of those that give way, less the workload's own.
        """
        own = workload if any(one.workload == workload for _, one in self._giving(cluster)) else None
        key, now = (cluster, whose, len(candidates), own, newcomer.likeness), self.growth.rooms.moment(cluster)
        known = self._rooms.get(key)
        if known is None or known[0] != now:
            room = self.growth.rooms.room(cluster, whose, without=candidates, newcomer=newcomer)
            self._rooms[key] = known = now, room
        return known[1]

    def _giving(self, cluster: ClusterName) -> tuple[tuple[int, Placement], ...]:
        """List the placements that give way to others, with their priorities: the least urgent and youngest first.

        What begins in this pass is not among them.
        """
        now, known = self.standing.moved(cluster), self._evictable.get(cluster)
        if known is None or known[0] != now:
            youngest = sorted(self.standing.on(cluster), key=lambda one: (one.created_at, one.name), reverse=True)
            found = ((terms(one.workload, cluster, self.situation), one) for one in youngest)
            giving = (
                (own.priority, one) for own, one in found if own.evictable and one.created_at < self.situation.now
            )
            known = self._evictable[cluster] = now, tuple(sorted(giving, key=lambda pair: pair[0]))
        return known[1]

    def _wanted(
        self, workload: WorkloadId, held: Suppressed, rung: Rung, *, least: bool
    ) -> tuple[tuple[tuple[ReplicaShape, int], ...], bool]:
        """Say what has to fit on a cluster, and whether only all of it will do."""
        record = self.standing.requests.get(workload)
        if least and record is not None and record.request.reserves:
            return (), True
        seen = self.situation.observed.clusters[rung.cluster]
        if record is not None and record.request.reserves and record.request.ask is not None:
            ways = shapes(record.request.ask, seen, dedicated=record.request.terms.dedicated)
            return tuple((way, 1) for way in ways[:1]), True
        if record is not None:
            needed = needs(record.request, seen, kinds=self.situation.desired.kinds)
            return all_of(needed, least=least), True
        demand = self.situation.demands.get(workload)
        if not isinstance(demand, Demand) or demand.shape is None:
            return (), True
        goes_whole = whole(self.situation, workload)
        if goes_whole is not None:
            needed = goes_whole.of(held.replicas)
            return (() if self.standing.of(workload) else all_of(needed, least=least)), True
        if least:
            return (), False
        policy = self.situation.desired.policies[workload]
        here = self.growth.here(workload, policy, rung)
        shape = self.growth.shaped(self.situation.desired.templates[workload], policy, rung, demand.shape)
        most = within_limits(self.situation, workload, rung, shape).limit
        left = (MOST if most is None else most) - here
        if policy.spread is not None:
            left = min(left, room_in(self.growth, policy.spread, workload, rung))
        return ((shape, min(held.replicas, left)),), False

    def _cost(self, way: Eviction) -> tuple[int, int, int, int]:
        priorities = [terms(one.workload, one.cluster, self.situation).priority for one in way.victims]
        return -way.served, len(way.victims), max(priorities), way.rung.rank

    def _evict(self, victim: Placement, newcomer: WorkloadId, way: Eviction) -> None:
        """End a placement for the sake of a newcomer; a request notes for whom, and begins anew where it can."""
        urgency = terms(newcomer, victim.cluster, self.situation).priority
        own = terms(victim.workload, victim.cluster, self.situation).priority
        others = f" with {count(len(way.victims) - 1, 'other')}" if len(way.victims) > 1 else ""
        detail = f"its priority is {own}, and it makes room{others} for {newcomer} of priority {urgency}"
        revert(self.situation, self.standing, victim, Why.PREEMPTED, detail)
        record = self.standing.requests.get(victim.workload)
        if record is None or record.ended is not None:
            return
        goes_on = bool(self.standing.of(victim.workload))
        after = replace(
            record,
            changed_at=self.situation.now,
            began_at=record.began_at if goes_on else None,
            attempts=record.attempts + 1,
            evicted_by=str(newcomer),
        )
        self.standing.change(Amend(before=record, after=after, detail=f"evicted from {victim.cluster} by {newcomer}"))

    def _turns(self, evicted: set[WorkloadId], newcomer: WorkloadId) -> Iterator[Turn]:
        """Yield the turns of requests that were evicted; a burst goes back to its demand, for the next pass."""
        enrolment = self.situation.enrolment
        if enrolment is None:
            return
        for workload in sorted(evicted):
            entry, record = enrolment.entries.get(workload), self.standing.requests.get(workload)
            if entry is None or record is None or record.ended is not None:
                continue
            if enrolment.short(workload, len(self.standing.of(workload))):
                again = turn(self.situation, self.standing, self.growth, entry)
                yield replace(again, take=partial(self._again, again, newcomer))

    def _again(self, turn: Turn, newcomer: WorkloadId) -> None:
        """Let an evicted request go to another cluster; what finds none waits where it may, and has failed else."""
        turn.take()
        record, held = self.standing.requests[turn.workload], self.standing.short_of_room(turn.workload)
        if held is None or record.request.terms.requeue or self.standing.of(turn.workload):
            return
        self.standing.retract(turn.workload)
        message = f"evicted by {newcomer}, and no other cluster has room"
        close(self.situation, self.standing, record, Provisioning.FAILED, message)
