"""The assessments that a plan keeps of named workloads, as `overspill explain` shows them.

At the turn of such a workload each of its clusters is asked what it would take, beside what the turns before it have
taken, and what the turn then decides comes before these answers. Where it has no turn, or one that reaches no cluster,
the clusters are asked for what is missing, or for one replica. A pass that keeps no assessments asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.capacity.gpu_slices import gpu_slices
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.cost.prices import price_of
from reconciler.core.decide.assign.replicas_by_cluster import assess_alone, assign
from reconciler.core.decide.assign.subset_order import rows_of, slots_in_tiers
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.turn_record import TurnRecord
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.spread.placement_subset import replicas_by_subset
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Assessment, Reason, Refusal, WorkloadAssessment
from reconciler.model.policy import BurstPolicy
from reconciler.model.units import Resources
from reconciler.text.wording import conjugate, join_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What the clusters of a workload are asked."""

    working_plan: WorkingPlan
    finder: CandidateFinder
    workload: WorkloadId
    ask: Callable[[Candidate], Candidate | Refusal]
    """Returns a candidate with the room that it has for replicas of the workload, or why it takes none."""
    shape: Callable[[Candidate], ReplicaShape]
    """Returns the shape of a replica on a cluster."""
    trial: Callable[[], TurnRecord] = TurnRecord
    """Returns what a turn would assign and refuse now."""
    others: tuple[ClusterName, ...] = ()
    """Clusters beyond the order that are asked too."""

    def assess(self) -> tuple[Assessment, ...]:
        """Ask all clusters, in their order."""
        candidates = (*self.finder.order(self.workload), *(Candidate(cluster=name, rank=0) for name in self.others))
        assessments = tuple(map(self._assess, candidates))
        ranks = self._ranks({each.key: each.fits for each in assessments if each.rank is not None})
        ranked = (replace(each, rank=ranks.get(each.key)) for each in assessments)
        return tuple(sorted(ranked, key=lambda each: (each.rank is None, each.rank or 0)))

    def _assess(self, candidate: Candidate) -> Assessment:
        finder, inputs, workload = self.finder, self.finder.inputs, self.workload
        policy, cluster = inputs.desired.policies[workload], inputs.desired.clusters.get(candidate.cluster)
        placements = inputs.ledger.placements.of(workload).placements
        answer, nodes_to_come = self._answer(candidate)
        taking = answer if isinstance(answer, Candidate) else candidate
        shape, free = self.shape(candidate), Resources()
        if candidate.cluster in inputs.observed.clusters:
            with finder.capacity.grown(growth=False):
                free = finder.capacity.room(candidate.cluster, workload.workspace).free(shape)
        return Assessment(
            cluster=candidate.cluster,
            rank=candidate.rank or None,
            placed=replicas_by_subset(placements, policy, inputs.desired.clusters)[candidate.key],
            fits=taking.room,
            limit=taking.limit,
            free=free,
            price_per_gpu_hour=price_of(cluster, shape, inputs.now) if cluster is not None else None,
            refusal=self._after_others(answer) if isinstance(answer, Refusal) else None,
            subset=candidate.subset,
            start=nodes_to_come or taking.because,
            slices=gpu_slices(inputs.observed.clusters.get(candidate.cluster), shape),
            scores=candidate.scores,
        )

    def _answer(self, candidate: Candidate) -> tuple[Candidate | Refusal, str]:
        """Ask a cluster, again with nodes to come where it is full; return also which nodes these are, in words."""
        capacity, ask = self.finder.capacity, partial(self.finder.contained, candidate, partial(self.ask, candidate))
        with capacity.grown(growth=False):
            answer = ask()
        is_full = isinstance(answer, Refusal) and answer.reason is Reason.NO_CAPACITY
        if not is_full or not capacity.may_grow(candidate.cluster):
            return answer, ""
        with capacity.grown():
            answer = ask()
        nodes = self.finder.describe_growth(answer.cluster, answer.shape) if isinstance(answer, Candidate) else ""
        return answer, nodes

    def _after_others(self, refusal: Refusal) -> Refusal:
        """Name the workloads that have taken room of a full cluster earlier in the pass."""
        if refusal.reason is not Reason.NO_CAPACITY:
            return refusal
        before = self.finder.inputs.ledger.placements
        takers = sorted(
            {
                str(placement.workload)
                for placement in self.working_plan.on(refusal.cluster)
                if placement.workload != self.workload
                and (placement.path not in before or placement.replicas > before[placement.path].replicas)
            }
        )
        if not takers:
            return refusal
        verb = conjugate(len(takers), "takes")
        return replace(refusal, message=f"{refusal.message}, after what {join_names(takers)} {verb} in this pass")

    def _ranks(self, fits: Mapping[ClusterSubset, int]) -> Mapping[ClusterSubset, int]:
        """Rank the clusters of each subset, and those of none, in the order of filling."""
        inputs, workload = self.finder.inputs, self.workload
        slots = slots_in_tiers(inputs, workload, self.finder.order(workload))
        rows = rows_of(inputs.desired.policies[workload], slots, (), lambda place: fits.get(place, 0))
        ordered = (place for row in rows for place in row if place in fits)
        return {place: rank for rank, place in enumerate(ordered, start=1)}


def kept_turn(
    working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId, take: Callable[[], None]
) -> Callable[[], None]:
    """Return the turn of a workload, or what stands for one; it leaves the assessment in the plan, if that is kept."""
    if workload not in working_plan.kept.workloads:
        return take
    return partial(_take, working_plan, finder, workload, take)


def _take(working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId, take: Callable[[], None]) -> None:
    kept, inquiry = working_plan.kept, _inquiry_of(working_plan, finder, workload)
    before, record = kept.assessments.get(workload), kept.records.get(workload, TurnRecord())
    assessments = inquiry.assess() if inquiry is not None else ()
    take()
    after = kept.records.get(workload, record)
    # 1. It has had a turn, and another one has reached no cluster.
    if before is not None and after is record:
        return
    # 2. No turn has reached any cluster.
    if after is record and inquiry is not None:
        after = inquiry.trial()
    # 3. Clusters that a turn before has taken stay as that one found them, with what is left of them.
    taken = {place: candidate.replicas for place, candidate in record.assigned.items()}
    earlier = {each.key: each for each in (before.candidates if before is not None else ()) if each.key in taken}
    kept.assessments[workload] = WorkloadAssessment(
        candidates=tuple(_decided(each, after, earlier.get(each.key), taken.get(each.key, 0)) for each in assessments),
        assigned=tuple(after.assigned.values()),
        out_of_reach=after.out_of_reach,
        restraints=working_plan.restraints(workload),
    )


def _decided(asked: Assessment, record: TurnRecord, earlier: Assessment | None, taken: int) -> Assessment:
    """Return what a cluster answered with what the turns decided; `earlier` is of a turn that took that number."""
    # 1. It gets replicas.
    chosen = record.assigned.get(asked.key)
    if chosen is not None:
        found = asked if earlier is None else replace(earlier, rank=asked.rank)
        return replace(found, fits=max(taken + asked.fits, chosen.replicas), refusal=None)
    # 2. It has room for some, and gets none for another reason.
    refusal = record.refusals.get(asked.key)
    if refusal is not None and refusal.reason is not Reason.NO_CAPACITY:
        return replace(asked, refusal=refusal)
    # 3. Its own answer holds, also where that is room on nodes to come, or for the minimum of a gang.
    return asked


def _inquiry_of(working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId) -> Inquiry | None:
    """Return what the clusters of a workload are asked.

    None without a policy or the shape of a replica, and for a request that is over.
    """
    inputs, record = finder.inputs, working_plan.requests.get(workload)
    template, policy = inputs.desired.templates.get(workload), inputs.desired.policies.get(workload)
    demand, unit = inputs.demands.get(workload), unit_of_workload(inputs, workload)
    shape = unit.shape if unit.apart else replica_shape(inputs, workload)
    if template is None or policy is None or shape is None or (record is not None and record.ended is not None):
        return None
    workspace = inputs.desired.workspaces[workload.workspace]
    # Clusters that a request does not name are none of its own.
    named = {candidate.cluster for candidate in finder.order(workload)} if not unit.apart else workspace.clusters
    others = (name for name in sorted(workspace.clusters) if name not in named and name != workspace.primary)
    placed = working_plan.replicas(workload)
    missing = policy.capped(demand.missing if isinstance(demand, Demand) else placed) - placed
    burst = _Burst(finder=finder, workload=workload, policy=policy, shape=shape, unit=unit, missing=missing)
    return Inquiry(
        working_plan=working_plan,
        finder=finder,
        workload=workload,
        ask=burst.ask,
        shape=burst.shape_on,
        trial=burst.trial if isinstance(demand, Demand) else TurnRecord,
        others=tuple(others),
    )


def replica_shape(inputs: PassInput, workload: WorkloadId) -> ReplicaShape | None:
    """Return the shape of a burst's replica, by the demand for it, else by a placement; None where neither says it."""
    demand, placements = inputs.demands.get(workload), inputs.ledger.placements.of(workload).placements
    if isinstance(demand, Demand) and demand.shape is not None:
        return demand.shape
    return placements[0].shape if placements else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Burst:
    """A burst for whose replicas clusters are asked."""

    finder: CandidateFinder
    workload: WorkloadId
    policy: BurstPolicy
    shape: ReplicaShape
    unit: PlacementUnit
    missing: int
    """Replicas that are missing, within the limit of the policy; negative where more are placed."""

    def shape_on(self, candidate: Candidate) -> ReplicaShape:
        """Return the shape of a replica on a cluster."""
        inputs = self.finder.inputs
        own = self.unit.on(inputs.observed.clusters.get(candidate.cluster)).shape if self.unit.apart else None
        template = inputs.desired.templates[self.workload]
        return self.finder.shaped(template, self.policy, candidate, own or self.shape)

    def ask(self, candidate: Candidate) -> Candidate | Refusal:
        """Ask for a unit that is placed together, else for all that a cluster takes."""
        template = self.finder.inputs.desired.templates[self.workload]
        return assess_alone(
            self.finder, template, self.policy, self.shape, candidate, unit=self.unit, missing=self.missing
        )

    def trial(self) -> TurnRecord:
        """Assign what is missing; where nothing is, one replica shows which clusters the policy leaves out."""
        missing, template = max(self.missing, 1), self.finder.inputs.desired.templates[self.workload]
        if self.unit.is_set and (self.unit.shape is None or self.missing <= 0):
            return TurnRecord()
        assignment = assign(self.finder, template, self.policy, self.shape, missing, unit=self.unit)
        if self.missing <= 0:
            return TurnRecord().with_turn((), assignment.refusals, "")
        return TurnRecord().with_turn(assignment.chosen, assignment.refusals, assignment.out_of_reach)
