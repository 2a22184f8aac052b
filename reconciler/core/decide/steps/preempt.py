"""Preemption: a workload that no cluster has room for evicts placements of lower priority that allow it.

As in EGS, a GPR evicts others of strictly lower priority that opted in, where its workspace allows that
(docs/reference/gprs.md, "Eviction"). Only placements are ended, never pods that run on a primary by themselves. An
evicted workload can evict only those of lower priority still, so that every chain of evictions ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.core.capacity.best_fit import tightest_first
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.gpu_requests import gpu_shapes
from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.decide.assign.serving import serving
from reconciler.core.decide.assign.subset_quota import quota_left
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.gang_start import may_start, minimum
from reconciler.core.decide.candidates.gpr_limits import within_limits
from reconciler.core.decide.candidates.gpr_terms import terms
from reconciler.core.decide.candidates.replica_domains import replica_domains
from reconciler.core.decide.state.enrolment import reservation_clusters
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.close_requests import close
from reconciler.core.decide.steps.end import revert
from reconciler.core.decide.steps.place_requests import turn
from reconciler.core.decide.turns.fair_share import FairShares
from reconciler.core.decide.turns.queue import Turn
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Reason, Suppressed
from reconciler.model.request import Provisioning, Request
from reconciler.text.wording import count


def required_pods(needed: PodRequirements, *, least: bool) -> tuple[tuple[ReplicaShape, int], ...]:
    """Return the pods that have to fit; none of a gang that wants topology domains, which evictions may not free."""
    if least:
        return minimum(needed) if may_start(needed) else ()
    return () if needed.domains or needed.shared else tuple(part.room for part in needed.parts)


def replicas_that_fit(room: ClusterCapacity, wanted: Sequence[tuple[ReplicaShape, int]], *, whole: bool) -> int:
    """Count the replicas that fit; a gang counts as one where all of it fits, else as none."""
    if whole:
        return int(room.fitting_in_order(tightest_first(room, wanted, lambda pods: pods[0])) == len(wanted))
    ((shape, most),) = wanted
    return room.count(shape, most)


def fewest_victims(evictable: list[Placement], enough: Callable[[Sequence[Placement]], bool]) -> tuple[Placement, ...]:
    """Choose the victims: the first that is enough by itself, else the fewest in order that are enough together."""
    chosen = evictable[: bisect_left(range(len(evictable) + 1), True, key=lambda number: enough(evictable[:number]))]
    alone = next((victim for victim in evictable if len(chosen) > 1 and enough([victim])), None)
    if alone is not None:
        return (alone,)
    for victim in reversed(chosen[:-1]):
        rest = [other for other in chosen if other is not victim]
        if enough(rest):
            chosen = rest
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """The placements that would have to end on one cluster to make room there."""

    candidate: Candidate
    # The shape of the replicas that need the room.
    newcomer: ReplicaShape
    victims: tuple[Placement, ...]
    # The replicas that would have room then; a gang counts as one.
    served: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """Makes room for workloads that found none in their turn."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    shares: FairShares
    _evictable: dict[ClusterName, tuple[int, tuple[tuple[int, Placement], ...]]] = field(default_factory=dict)
    _rooms: dict[Hashable, tuple[Hashable, ClusterCapacity]] = field(default_factory=dict)
    _cache: dict[Hashable, tuple[Hashable, Eviction | None]] = field(default_factory=dict)
    _yielding: dict[int, tuple[tuple[Candidate, ...], tuple[Candidate, ...]]] = field(default_factory=dict)
    _hopeless: dict[Hashable, tuple[int, Suppressed]] = field(default_factory=dict)
    _evicts: list[bool] = field(default_factory=list)

    def make_room(self, turn: Turn) -> tuple[Turn, ...]:
        """Evict for a workload that found no room, let it take its turn again, and return the turns of the evicted.

        Of several clusters the one with room for most replicas is taken, then the one with the fewest victims.
        """
        suppressed = self.working_plan.unplaceable(turn.workload)
        limits = self.inputs.desired.limits.get(turn.workload.workspace)
        if suppressed is None or (limits is not None and not limits.evicts):
            return ()
        suppressed = self._without_spare(suppressed)
        if suppressed is None:
            return ()
        alike = self._kind(turn.workload)
        kind = None if alike is None else (alike, id(suppressed.refusals))  # the same object for all of a kind
        if kind is not None and self._hopeless.get(kind, (None,))[0] == self.working_plan.position:
            return ()
        evictions = self._evictions(turn.workload, suppressed, alike)
        best = min(evictions, key=self._cost, default=None)
        evictions = self._evictions(turn.workload, suppressed, alike, least=True)
        best = best or min(evictions, key=self._cost, default=None)
        if best is None:
            if kind is not None:
                self._hopeless[kind] = self.working_plan.position, suppressed
            return ()
        self.finder.capacity.evict(best.candidate.cluster, best.victims, best.newcomer)
        self._yielding.clear()
        for victim in best.victims:
            self._evict(victim, turn.workload, best)
        self.working_plan.retract(turn.workload)
        turn.take()
        return tuple(self._turns({victim.workload for victim in best.victims}, turn.workload))

    def _without_spare(self, suppressed: Suppressed) -> Suppressed | None:
        """Leave out replicas that are only wanted beforehand, for which nobody is evicted; None where all are."""
        demand = self.inputs.demands.get(suppressed.workload)
        if not isinstance(demand, Demand) or demand.needed == demand.missing:
            return suppressed
        lacking = demand.needed - self.working_plan.replicas(suppressed.workload)
        return replace(suppressed, replicas=min(suppressed.replicas, lacking)) if lacking > 0 else None

    def _kind(self, workload: WorkloadId) -> Hashable | None:
        """Return a value that is equal for waiting requests with the same victims; None for a workload of its own."""
        entry = self.inputs.enrolment.entries.get(workload)
        if entry is None or self.working_plan.of(workload):
            return None
        request = entry.record.request
        return self.finder.kind(entry), request.terms.priority, request.template

    def _evictions(
        self, workload: WorkloadId, suppressed: Suppressed, alike: Hashable, *, least: bool = False
    ) -> Iterator[Eviction]:
        """Yield the eviction of each cluster that lacks nothing but room; at `least` for the minimum of a gang.

        Workloads that are `alike` share the answer of a cluster until something changes there.
        """
        candidates = self._yielding_clusters(workload)
        if not candidates:
            return
        refusals = (refusal for refusal in suppressed.refusals if refusal.reason is not Reason.NO_CAPACITY)
        otherwise = {(refusal.cluster, refusal.subset) for refusal in refusals}
        if unit_of_workload(self.inputs, workload).whole:
            otherwise |= {(placement.cluster, "") for placement in self.working_plan.of(workload)}
        for candidate in candidates:
            if candidate.key in otherwise or candidate.cluster not in self.inputs.observed.clusters:
                continue
            asked, now = (alike, candidate.key, least), self.finder.capacity.moment(candidate.cluster)
            entry = self._cache.get(asked)
            if alike is None or entry is None or entry[0] != now:
                entry = self._cache[asked] = now, self._eviction(workload, suppressed, candidate, least=least)
            if entry[1] is not None:
                yield entry[1]

    def _yielding_clusters(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """List the clusters that a workload may use and that have evictable placements, in order."""
        if not self.may_evict():
            return ()
        candidates = self._order(workload)
        if id(candidates) not in self._yielding:
            self._yielding[id(candidates)] = (
                candidates,
                tuple(candidate for candidate in candidates if self._evictable_on(candidate.cluster)),
            )
        return self._yielding[id(candidates)][1]

    def may_evict(self) -> bool:
        """Tell whether the terms of anything that runs may say that it is evictable: of a GPRTemplate or a request."""
        if not self._evicts:
            requests = self.inputs.ledger.requests.values()
            evictable = any(record.request.terms.evictable for record in requests)
            self._evicts.append(evictable or bool(self.inputs.desired.gpr_templates))
        return self._evicts[0]

    def _order(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """List the clusters that a workload may use, in order."""
        if workload in self.inputs.desired.policies:
            return self.finder.order(workload)
        request = self.working_plan.requests[workload].request  # a reservation, which has no policy
        clusters = reservation_clusters(request, self.inputs.desired)
        return tuple(Candidate(cluster=name, rank=rank) for rank, name in enumerate(clusters, start=1))

    def _eviction(
        self, workload: WorkloadId, suppressed: Suppressed, candidate: Candidate, *, least: bool
    ) -> Eviction | None:
        """Find the fewest victims on a cluster that make room for as many replicas as all of them would."""
        mine = terms(workload, candidate.cluster, self.inputs).priority
        evictable = [
            placement
            for own, placement in self._evictable_on(candidate.cluster)
            if own < mine and placement.workload != workload
        ]
        reclaimed = self._reclaimable(workload, candidate, mine)
        evictable += reclaimed
        if not evictable:
            return None
        wanted, whole = self._required_replicas(workload, suppressed, candidate, least=least)
        if not wanted:
            return None
        newcomer = wanted[0][0]
        whose = workload.workspace if self._reservation(workload) is None else None
        serves = replicas_that_fit(
            self._capacity_after_eviction(candidate.cluster, workload, whose, evictable, newcomer, reclaimed=reclaimed),
            wanted,
            whole=whole,
        )
        if not serves:
            return None

        def enough(victims: Sequence[Placement]) -> bool:
            room = self.finder.capacity.room(candidate.cluster, whose, without=victims, newcomer=newcomer)
            return replicas_that_fit(room, wanted, whole=whole) >= serves

        return Eviction(
            candidate=candidate, newcomer=newcomer, victims=fewest_victims(evictable, enough), served=serves
        )

    def _reclaimable(self, workload: WorkloadId, candidate: Candidate, mine: int) -> list[Placement]:
        """List the evictable placements of equal priority with room that the quota of a workload's workspace is owed.

        They are as many as it takes for the replicas that it lacks within its quota, and no more than was borrowed.
        """
        shares, demand = self.shares, self.inputs.demands.get(workload)
        quota = self.inputs.desired.workspaces[workload.workspace].quota.amounts
        if not quota or not isinstance(demand, Demand) or demand.shape is None:
            return []
        loans = []
        shares.forget()
        for own, placement in self._evictable_on(candidate.cluster):
            # What stands apart has been given its time, and yields to a higher priority alone.
            if own != mine or unit_of_workload(self.inputs, placement.workload, placement).apart:
                continue
            if shares.reclaims(workload, placement.workload):
                loans.append(placement)
                shares.expect_end(placement)
                shares.expect(workload, placement.replicas * placement.shape.group_size // demand.shape.group_size)
        return loans

    def _reservation(self, workload: WorkloadId) -> Request | None:
        """Return what a reservation asks for: room beside all others, those of its own workspace too."""
        record = self.working_plan.requests.get(workload)
        return record.request if record is not None and record.request.reserves else None

    def _capacity_after_eviction(
        self,
        cluster: ClusterName,
        workload: WorkloadId,
        whose: WorkspaceName | None,
        evictable: Sequence[Placement],
        newcomer: ReplicaShape,
        *,
        reclaimed: Sequence[Placement],
    ) -> ClusterCapacity:
        """Return the room of a cluster without any of its evictable placements; cached by shape until it changes.

        They are the first of all that are evictable there, less those of the workload itself, and what it reclaims.
        """
        own = workload if any(other.workload == workload for _, other in self._evictable_on(cluster)) else None
        loans = tuple(placement.path for placement in reclaimed)
        key = cluster, whose, len(evictable), own, newcomer.likeness, loans
        now = self.finder.capacity.moment(cluster)
        entry = self._rooms.get(key)
        if entry is None or entry[0] != now:
            room = self.finder.capacity.room(cluster, whose, without=evictable, newcomer=newcomer)
            self._rooms[key] = entry = now, room
        return entry[1]

    def _evictable_on(self, cluster: ClusterName) -> tuple[tuple[int, Placement], ...]:
        """List the evictable placements with their priorities: the lowest first, then what serves least, the youngest.

        Placements that begin in this pass are not evictable.
        """
        now, entry = self.working_plan.moved(cluster), self._evictable.get(cluster)
        if entry is None or entry[0] != now:
            placements = self.working_plan.on(cluster)
            youngest = sorted(placements, key=lambda placement: (placement.created_at, placement.name), reverse=True)
            evictable = []
            for placement in youngest:
                own = terms(placement.workload, cluster, self.inputs)
                stays = placement.created_at >= self.inputs.now or self.working_plan.is_frozen(placement)
                if own.evictable and not stays:
                    evictable.append((own.priority, placement))
            evictable.sort(key=lambda pair: (pair[0], serving(self.inputs, pair[1]).parts))
            entry = self._evictable[cluster] = now, tuple(evictable)
        return entry[1]

    def _required_replicas(
        self, workload: WorkloadId, suppressed: Suppressed, candidate: Candidate, *, least: bool
    ) -> tuple[tuple[tuple[ReplicaShape, int], ...], bool]:
        """Return the replicas that have to fit on a cluster, and whether they have to fit all together."""
        seen, reservation = self.inputs.observed.clusters[candidate.cluster], self._reservation(workload)
        if reservation is not None:
            ask, dedicated = reservation.ask, reservation.terms.dedicated
            options = () if least or ask is None else gpu_shapes(ask, seen, dedicated=dedicated)
            return tuple((option, 1) for option in options[:1]), True
        unit, demand = unit_of_workload(self.inputs, workload).on(seen), self.inputs.demands.get(workload)
        together = unit.needs(suppressed.replicas)
        if together is not None and (unit.apart or not self.working_plan.of(workload)):
            return required_pods(together, least=least), True
        if together is not None or not isinstance(demand, Demand) or demand.shape is None:
            return (), True
        if least:
            return (), False
        policy = self.inputs.desired.policies[workload]
        here = self.finder.held(workload)[candidate.key]
        shape = self.finder.shaped(self.inputs.desired.templates[workload], policy, candidate, demand.shape)
        most = within_limits(self.inputs, workload, candidate, shape).limit
        left = min((MOST if most is None else most) - here, quota_left(self.finder, workload, candidate))
        if not unit.is_single:
            # Evictions need not free one topology domain, so that what wants one evicts nobody, as gangs do not.
            size = unit.replicas(suppressed.replicas)
            domains = replica_domains(self.inputs, workload, shape, size)
            fits = not here and size <= min(suppressed.replicas, left) and not domains
            return (((shape, size),) if fits else ()), True
        return ((shape, min(suppressed.replicas, left)),), False

    def _cost(self, eviction: Eviction) -> tuple[int, int, int, int]:
        """Return a sort key: the best eviction comes first."""
        victims = eviction.victims
        priorities = [terms(victim.workload, victim.cluster, self.inputs).priority for victim in victims]
        return -eviction.served, len(victims), max(priorities), eviction.candidate.rank

    def _evict(self, victim: Placement, newcomer: WorkloadId, eviction: Eviction) -> None:
        """End a placement to make room for a newcomer; a request notes for which one, and waits again."""
        urgency = terms(newcomer, victim.cluster, self.inputs).priority
        own = terms(victim.workload, victim.cluster, self.inputs).priority
        others = f" with {count(len(eviction.victims) - 1, 'other')}" if len(eviction.victims) > 1 else ""
        detail = f"its priority is {own}, and it makes room{others} for {newcomer} of priority {urgency}"
        if own == urgency:
            owed = f"the quota of {newcomer.workspace} has a right to"
            detail = f"{victim.workload.workspace} has borrowed room that {owed}; it goes to {newcomer}"
        revert(self.inputs, self.working_plan, victim, EndReason.PREEMPTED, detail)
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
            Change(
                action=Action.AMEND,
                record_before=record,
                record=after,
                detail=f"evicted from {victim.cluster} by {newcomer}",
            )
        )

    def _turns(self, evicted: set[WorkloadId], newcomer: WorkloadId) -> Iterator[Turn]:
        """Yield the turns of requests that were evicted; bursts follow their demand in the next pass."""
        enrolment = self.inputs.enrolment
        for workload in sorted(evicted):
            entry, record = enrolment.entries.get(workload), self.working_plan.requests.get(workload)
            if entry is None or record is None or record.ended is not None:
                continue
            if enrolment.missing_placements(workload, len(self.working_plan.of(workload))):
                again = turn(self.inputs, self.working_plan, self.finder, entry)
                yield again._replace(take=partial(self._again, again, newcomer))

    def _again(self, turn: Turn, newcomer: WorkloadId) -> None:
        """Let an evicted request go to another cluster; without room it waits if its terms say so, else it fails."""
        turn.take()
        record, suppressed = self.working_plan.requests[turn.workload], self.working_plan.unplaceable(turn.workload)
        if suppressed is None or record.request.terms.requeue or self.working_plan.of(turn.workload):
            return
        self.working_plan.retract(turn.workload)
        message = f"evicted by {newcomer}, and no other cluster has room"
        close(self.inputs, self.working_plan, record, Provisioning.FAILED, message)
