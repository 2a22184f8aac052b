"""GPUs that go from who is less urgent, and lets them go, to who is more urgent and finds no room anywhere.

As EGS has it: a GPR evicts others of strictly lower priority that opted in, where its workspace allows it
(docs/gprs.md, "Eviction"). Only placements of ours are ended, never what runs on a primary by itself. What was evicted
can evict only what is less urgent still, so that every chain of evictions comes to an end.

Who has to go so that a newcomer has room: what of it has to fit, how much of it does, and the fewest who will do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.core.capacity.gpu_requests import shapes
from reconciler.core.capacity.pod_needs import PodRequirements, needs
from reconciler.core.capacity.room import ClusterCapacity
from reconciler.core.decide.assign.subset_limits import room_in
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.gang import whole
from reconciler.core.decide.candidates.gang_start import may_start, minimum
from reconciler.core.decide.candidates.gpr_limits import within_limits
from reconciler.core.decide.candidates.gpr_terms import terms
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.close_requests import close
from reconciler.core.decide.steps.end import revert
from reconciler.core.decide.steps.place_requests import turn
from reconciler.core.decide.steps.queue import Turn
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Amend, Reason, Suppressed, Why
from reconciler.model.request import Provisioning
from reconciler.text.wording import count


def all_of(needed: PodRequirements, *, least: bool) -> tuple[tuple[ReplicaShape, int], ...]:
    """Return what has to fit; nothing of what wants domains of its own, since who goes may leave it none."""
    if least:
        return minimum(needed) if may_start(needed) else ()
    return () if needed.domains else tuple(part.room for part in needed.parts)


def served(room: ClusterCapacity, wanted: Sequence[tuple[ReplicaShape, int]], *, whole: bool) -> int:
    """Count the replicas that fit; of what goes to one cluster whole that is all of it, counted as one, or none."""
    if whole:
        return int(room.together(wanted) == len(wanted))
    ((shape, most),) = wanted
    return room.count(shape, most)


def fewest(candidates: list[Placement], enough: Callable[[Sequence[Placement]], bool]) -> tuple[Placement, ...]:
    """Choose who goes: the first that is enough by itself, else as many in order as it takes, less who need not go."""
    chosen = candidates[: bisect_left(range(len(candidates) + 1), True, key=lambda number: enough(candidates[:number]))]
    alone = next((one for one in candidates if len(chosen) > 1 and enough([one])), None)
    if alone is not None:
        return (alone,)
    for one in reversed(chosen[:-1]):
        rest = [other for other in chosen if other is not one]
        if enough(rest):
            chosen = rest
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Who would have to go from one cluster, so that `served` replicas of a newcomer have room there."""

    candidate: Candidate
    newcomer: ReplicaShape
    victims: tuple[Placement, ...]
    served: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictions:
    """What this pass does about those whom their turn has left without room."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    _evictable: dict[ClusterName, tuple[int, tuple[tuple[int, Placement], ...]]] = field(default_factory=dict)
    _rooms: dict[Hashable, tuple[Hashable, ClusterCapacity]] = field(default_factory=dict)
    _found: dict[Hashable, tuple[Hashable, Eviction | None]] = field(default_factory=dict)
    _yielding: dict[int, tuple[tuple[Candidate, ...], tuple[Candidate, ...]]] = field(default_factory=dict)
    _hopeless: dict[Hashable, tuple[int, Suppressed]] = field(default_factory=dict)

    def after(self, turn: Turn) -> tuple[Turn, ...]:
        """Make room for who found none in its turn, let it have another, and return the turns of who had to go.

        Where several clusters would do, the one that serves most is taken, then the one where the fewest have to go.
        """
        held = self.working_plan.short_of_room(turn.workload)
        limits = self.inputs.desired.limits.get(turn.workload.workspace)
        if held is None or (limits is not None and not limits.evicts):
            return ()
        alike = self._kind(turn.workload)
        kind = None if alike is None else (alike, id(held.refusals))  # the same for all that were told the same
        if kind is not None and self._hopeless.get(kind, (None,))[0] == self.working_plan.position:
            return ()
        best = min(self._ways(turn.workload, held, alike), key=self._cost, default=None)
        best = best or min(self._ways(turn.workload, held, alike, least=True), key=self._cost, default=None)
        if best is None:
            if kind is not None:
                self._hopeless[kind] = self.working_plan.position, held
            return ()
        self.finder.rooms.evict(best.candidate.cluster, best.victims, best.newcomer)
        self._yielding.clear()
        for victim in best.victims:
            self._evict(victim, turn.workload, best)
        self.working_plan.retract(turn.workload)
        turn.take()
        return tuple(self._turns({victim.workload for victim in best.victims}, turn.workload))

    def _kind(self, workload: WorkloadId) -> Hashable | None:
        """Say for which of those who wait the same others would have to go; None where it is for one alone."""
        enrolment = self.inputs.enrolment
        entry = enrolment.entries.get(workload) if enrolment is not None else None
        if entry is None or self.working_plan.of(workload):
            return None
        request = entry.record.request
        return self.finder.kind(entry), request.terms.priority, request.template

    def _ways(
        self, workload: WorkloadId, held: Suppressed, alike: Hashable, *, least: bool = False
    ) -> Iterator[Eviction]:
        """Yield what each cluster that lacks nothing but room could do; at `least` for the minimum of a gang.

        A cluster is asked once for all who are `alike`, until something changes there.
        """
        candidates = self._crowded(workload)
        if not candidates:
            return
        otherwise = {(one.cluster, one.subset) for one in held.refusals if one.reason is not Reason.NO_CAPACITY}
        if workload.request:
            otherwise |= {(placement.cluster, "") for placement in self.working_plan.of(workload)}
        for candidate in candidates:
            if candidate.site in otherwise or candidate.cluster not in self.inputs.observed.clusters:
                continue
            asked, now = (alike, candidate.site, least), self.finder.rooms.moment(candidate.cluster)
            known = self._found.get(asked)
            if alike is None or known is None or known[0] != now:
                known = self._found[asked] = now, self._way(workload, held, candidate, least=least)
            if known[1] is not None:
                yield known[1]

    def _crowded(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """List the clusters that a workload may use and where somebody gives way to others, in order."""
        candidates = self._rungs(workload)
        if id(candidates) not in self._yielding:
            self._yielding[id(candidates)] = (
                candidates,
                tuple(candidate for candidate in candidates if self._giving(candidate.cluster)),
            )
        return self._yielding[id(candidates)][1]

    def _rungs(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """List the clusters that a workload may use, in order."""
        if workload in self.inputs.desired.policies:
            return self.inputs.reach.order(workload)
        clusters = self.working_plan.requests[workload].request.clusters  # a reservation, which has no policy
        named = clusters or self.inputs.desired.workspaces[workload.workspace].clusters
        return tuple(Candidate(cluster=name, rank=rank, limit=None) for rank, name in enumerate(named, start=1))

    def _way(self, workload: WorkloadId, held: Suppressed, candidate: Candidate, *, least: bool) -> Eviction | None:
        mine = terms(workload, candidate.cluster, self.inputs).priority
        candidates = [one for own, one in self._giving(candidate.cluster) if own < mine and one.workload != workload]
        if not candidates:
            return None
        wanted, whole = self._wanted(workload, held, candidate, least=least)
        if not wanted:
            return None
        newcomer = wanted[0][0]
        whose = None if self._reserves(workload) else workload.workspace
        serves = served(self._emptied(candidate.cluster, workload, whose, candidates, newcomer), wanted, whole=whole)
        if not serves:
            return None

        def enough(victims: Sequence[Placement]) -> bool:
            room = self.finder.rooms.room(candidate.cluster, whose, without=victims, newcomer=newcomer)
            return served(room, wanted, whole=whole) >= serves

        return Eviction(candidate=candidate, newcomer=newcomer, victims=fewest(candidates, enough), served=serves)

    def _reserves(self, workload: WorkloadId) -> bool:
        """Tell whether it is a reservation, which needs room beside all others, those of its own workspace too."""
        record = self.working_plan.requests.get(workload)
        return record is not None and record.request.reserves

    def _emptied(
        self,
        cluster: ClusterName,
        workload: WorkloadId,
        whose: WorkspaceName | None,
        candidates: Sequence[Placement],
        newcomer: ReplicaShape,
    ) -> ClusterCapacity:
        """Return the room without any of the candidates, the same for all who need the same until it changes.

        The candidates are the first of those that give way, less the workload's own.
        """
        own = workload if any(one.workload == workload for _, one in self._giving(cluster)) else None
        key, now = (cluster, whose, len(candidates), own, newcomer.likeness), self.finder.rooms.moment(cluster)
        known = self._rooms.get(key)
        if known is None or known[0] != now:
            room = self.finder.rooms.room(cluster, whose, without=candidates, newcomer=newcomer)
            self._rooms[key] = known = now, room
        return known[1]

    def _giving(self, cluster: ClusterName) -> tuple[tuple[int, Placement], ...]:
        """List the placements that give way to others, with their priorities: the least urgent and youngest first.

        What begins in this pass is not among them.
        """
        now, known = self.working_plan.moved(cluster), self._evictable.get(cluster)
        if known is None or known[0] != now:
            youngest = sorted(self.working_plan.on(cluster), key=lambda one: (one.created_at, one.name), reverse=True)
            found = ((terms(one.workload, cluster, self.inputs), one) for one in youngest)
            giving = ((own.priority, one) for own, one in found if own.evictable and one.created_at < self.inputs.now)
            known = self._evictable[cluster] = now, tuple(sorted(giving, key=lambda pair: pair[0]))
        return known[1]

    def _wanted(
        self, workload: WorkloadId, held: Suppressed, candidate: Candidate, *, least: bool
    ) -> tuple[tuple[tuple[ReplicaShape, int], ...], bool]:
        """Say what has to fit on a cluster, and whether only all of it will do."""
        record = self.working_plan.requests.get(workload)
        if least and record is not None and record.request.reserves:
            return (), True
        seen = self.inputs.observed.clusters[candidate.cluster]
        if record is not None and record.request.reserves and record.request.ask is not None:
            ways = shapes(record.request.ask, seen, dedicated=record.request.terms.dedicated)
            return tuple((way, 1) for way in ways[:1]), True
        if record is not None:
            needed = needs(record.request, seen, kinds=self.inputs.desired.kinds)
            return all_of(needed, least=least), True
        demand = self.inputs.demands.get(workload)
        if not isinstance(demand, Demand) or demand.shape is None:
            return (), True
        goes_whole = whole(self.inputs, workload)
        if goes_whole is not None:
            needed = goes_whole.of(held.replicas)
            return (() if self.working_plan.of(workload) else all_of(needed, least=least)), True
        if least:
            return (), False
        policy = self.inputs.desired.policies[workload]
        here = self.finder.here(workload, policy, candidate)
        shape = self.finder.shaped(self.inputs.desired.templates[workload], policy, candidate, demand.shape)
        most = within_limits(self.inputs, workload, candidate, shape).limit
        left = (MOST if most is None else most) - here
        if policy.spread is not None:
            left = min(left, room_in(self.finder, policy.spread, workload, candidate))
        return ((shape, min(held.replicas, left)),), False

    def _cost(self, way: Eviction) -> tuple[int, int, int, int]:
        priorities = [terms(one.workload, one.cluster, self.inputs).priority for one in way.victims]
        return -way.served, len(way.victims), max(priorities), way.candidate.rank

    def _evict(self, victim: Placement, newcomer: WorkloadId, way: Eviction) -> None:
        """End a placement for the sake of a newcomer; a request notes for whom, and begins anew where it can."""
        urgency = terms(newcomer, victim.cluster, self.inputs).priority
        own = terms(victim.workload, victim.cluster, self.inputs).priority
        others = f" with {count(len(way.victims) - 1, 'other')}" if len(way.victims) > 1 else ""
        detail = f"its priority is {own}, and it makes room{others} for {newcomer} of priority {urgency}"
        revert(self.inputs, self.working_plan, victim, Why.PREEMPTED, detail)
        record = self.working_plan.requests.get(victim.workload)
        if record is None or record.ended is not None:
            return
        goes_on = bool(self.working_plan.of(victim.workload))
        after = replace(
            record,
            changed_at=self.inputs.now,
            began_at=record.began_at if goes_on else None,
            attempts=record.attempts + 1,
            evicted_by=str(newcomer),
        )
        self.working_plan.change(
            Amend(before=record, after=after, detail=f"evicted from {victim.cluster} by {newcomer}")
        )

    def _turns(self, evicted: set[WorkloadId], newcomer: WorkloadId) -> Iterator[Turn]:
        """Yield the turns of requests that were evicted; a burst goes back to its demand, for the next pass."""
        enrolment = self.inputs.enrolment
        if enrolment is None:
            return
        for workload in sorted(evicted):
            entry, record = enrolment.entries.get(workload), self.working_plan.requests.get(workload)
            if entry is None or record is None or record.ended is not None:
                continue
            if enrolment.short(workload, len(self.working_plan.of(workload))):
                again = turn(self.inputs, self.working_plan, self.finder, entry)
                yield replace(again, take=partial(self._again, again, newcomer))

    def _again(self, turn: Turn, newcomer: WorkloadId) -> None:
        """Let an evicted request go to another cluster; what finds none waits where it may, and has failed else."""
        turn.take()
        record, held = self.working_plan.requests[turn.workload], self.working_plan.short_of_room(turn.workload)
        if held is None or record.request.terms.requeue or self.working_plan.of(turn.workload):
            return
        self.working_plan.retract(turn.workload)
        message = f"evicted by {newcomer}, and no other cluster has room"
        close(self.inputs, self.working_plan, record, Provisioning.FAILED, message)
