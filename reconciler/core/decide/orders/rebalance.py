"""Rebalance: the placed replicas of one workload are assigned anew because a person asks for it, as if none stood.

Passes never do this (docs/decisions/0008-what-runs-stays.md). The outcome are changes like any other, and no later pass
undoes them: the total is the same, and every cluster has a share that its policy would have given it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from reconciler.core.decide.assign.assignment import Assignment, Released, Returns
from reconciler.core.decide.assign.copies import WAY_OUT
from reconciler.core.decide.assign.replicas_by_cluster import assign
from reconciler.core.decide.assign.surplus import GivenUp, give_up
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder, describe_first_remedy
from reconciler.core.decide.candidates.gpr_limits import within_limits
from reconciler.core.decide.state.gate import may_not_move
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import end_expired
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.core.decide.steps.transfer import REBALANCED, Departure, earliest_end, transfer
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.workloads import replica_count
from reconciler.errors import InvalidInput
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset, Placement, place_name
from reconciler.model.plan import Plan, Reason, ReasonTraits, Refusal
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import as_clause, count, sanitize


def rebalance(inputs: PassInput, workload: WorkloadId, *, by: str, reason: str = "") -> Plan:
    """Assign the placed replicas of a workload anew; the plan is empty where each cluster has its share already.

    Placements that give up replicas come first, so that no commit has more of them than before. No restraint comes of
    it. Raises InvalidInput with a remedy where it cannot be done.
    """
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)  # a commit of ours on top would hide it from every later pass
    end_expired(inputs, working_plan)
    template, policy = _template_and_policy(inputs, working_plan, workload)
    placements = working_plan.of(workload)
    if not placements:
        return Plan()
    rebalancing = _Rebalance(
        inputs=inputs,
        working_plan=working_plan,
        finder=CandidateFinder(inputs, working_plan),
        template=template,
        policy=policy,
        placements=placements,
        by=by,
        reason=as_clause(reason),
    )
    if not rebalancing.carry_out():
        return Plan()
    return Plan(changes=working_plan.plan().changes, drafted=working_plan.drafts.drafted())


def _template_and_policy(
    inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId
) -> tuple[WorkloadTemplate, BurstPolicy]:
    """Return the template and the policy of a workload that can be rebalanced, or raise InvalidInput."""
    desired, trying = inputs.desired, f"rebalancing {workload}"
    template, policy = desired.templates.get(workload), desired.policies.get(workload)
    if template is None or policy is None:
        missing = "template" if template is None else "policy"
        raise InvalidInput(f"{trying}: it has no {missing} that can be read (see `overspill check`)")
    demand = inputs.demands.get(workload)
    if policy.subsets and isinstance(demand, UnseenPrimary):
        raise InvalidInput(f"{trying}: {demand.message}, so the limits of its subsets are unknown (try again later)")
    undivided = unit_of_workload(inputs, workload).undivided(WAY_OUT)
    if undivided:
        raise InvalidInput(f"{trying}: {undivided}")
    if workload in inputs.ledger.blocked:
        raise InvalidInput(f"{trying}: a file of its on the output branch cannot be read (see `overspill status`)")
    cooling = working_plan.cooling(workload)
    if cooling is not None and working_plan.of(workload):
        raise InvalidInput(f"{trying}: it is held back everywhere: {as_clause(cooling.reason)} (wait until that ends)")
    return template, policy


@dataclass(frozen=True, kw_only=True)
class _Rebalance:
    """A workload with its placements."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    template: WorkloadTemplate
    policy: BurstPolicy
    placements: tuple[Placement, ...]
    by: str
    reason: str

    def carry_out(self) -> bool:
        """Release all replicas, and move those that have another share now; return whether any has."""
        places = Counter(self.held)
        released = Released(
            places=places,
            ends=len(self.placements),
            closed=self._unapproved(),
            returns=Returns(keeps=self._keeps, ended=self._count_ends),
        )
        assignment = assign(
            self.finder,
            self.template,
            self.policy,
            self.shape,
            places.total(),
            unit=unit_of_workload(self.inputs, self.workload),
            released=released,
        )
        self._complete(assignment)
        departures = [
            Departure(
                placement=placement,
                replicas=placement.replicas - rest,
                cause=REBALANCED,
                detail=self._detail(self.inputs.slot(placement), assignment.counts),
            )
            for placement, rest, _ in self._given_up(assignment.counts)
        ]
        if departures:
            tell = partial(self._tell, assignment, departures)
            transfer(self.inputs, self.working_plan, self.finder, departures, assignment, tell=tell)
        return bool(departures)

    @property
    def workload(self) -> WorkloadId:
        return self.template.workload

    @cached_property
    def held(self) -> Counter[ClusterSubset]:
        """The replicas of each cluster before, by subset."""
        return self.finder.held(self.workload)

    @cached_property
    def candidates(self) -> Mapping[ClusterSubset, Candidate]:
        """The clusters that the workload may use, in order."""
        return {candidate.key: candidate for candidate in self.finder.order(self.workload)}

    @cached_property
    def shape(self) -> ReplicaShape:
        """A replica as its primary shows it now, or else as it was placed last."""
        demand = self.inputs.demands.get(self.workload)
        newest = max(self.placements, key=lambda placement: (placement.created_at, placement.name))
        return (demand.shape if isinstance(demand, Demand) else None) or newest.shape

    def _unapproved(self) -> Mapping[ClusterSubset, Refusal]:
        """Refuse the clusters that have none of it, and that nobody has approved."""
        approved, refusals = {cluster for cluster, _ in self.held}, dict[ClusterSubset, Refusal]()
        for candidate in self.candidates.values():
            refusal = may_not_move(self.inputs, self.placements[0], candidate.cluster)
            if refusal is not None and candidate.cluster not in approved:
                refusals[candidate.key] = replace(refusal, subset=candidate.subset)
        return refusals

    def _keeps(self, place: ClusterSubset, refusal: Refusal | None) -> int:
        """Count the replicas that may stay on a cluster, by why it takes no new ones.

        A cluster that takes none still has room for those that run there, and without capacity for none of those that
        wait there for a node. A cluster that the workload may not stay on keeps none.
        """
        if self._gone(place) is not None:
            return 0
        waiting = self._pending_replicas(place) if refusal is not None and refusal.reason is Reason.NO_CAPACITY else 0
        limit = within_limits(self.inputs, self.workload, self.candidates[place], self.shape).limit
        return min(self.held[place] - waiting, MOST if limit is None else limit)

    def _complete(self, assignment: Assignment) -> None:
        """Raise InvalidInput where a cluster may only seem to have gone, or where some replicas have no place."""
        for place in sorted(self.held):
            gone = self._gone(place)
            if gone is not None and gone.reason.has(ReasonTraits.ABSENCE) and not self.inputs.absence_counts:
                raise InvalidInput(
                    f"rebalancing {self.workload}: {place_name(*place)}: {gone.message}, but not every file can be read"
                    " (try mending the files that `overspill check` names)"
                )
        total, placed = self.held.total(), sum(assignment.counts.values())
        if placed != total:
            raise InvalidInput(
                f"rebalancing {self.workload}: shared out again, {placed} of its {count(total, 'replica')} would have a"
                f" place within {self.policy.slot_file}{describe_first_remedy(assignment.refusals)}"
            )

    def _gone(self, place: ClusterSubset) -> Refusal | None:
        """Say why a workload may not even keep what it has on a cluster or for a subset; None where it may."""
        excluded = (self.inputs.reach.exclusion_of(placement) for placement in self._on(place))
        exclusion = next(filter(None, excluded), None)
        if exclusion is not None or place in self.candidates:
            return exclusion
        message = f"in no subset of {self.policy.slot_file} any more"
        return Refusal(cluster=place[0], reason=Reason.NOT_IN_POLICY, message=message)

    def _pending_replicas(self, place: ClusterSubset) -> int:
        """Count the replicas that are seen to wait for a node on a cluster."""
        seen = self.inputs.observed.clusters.get(place[0])
        return (
            sum(replica_count.pending_replicas(placement, seen) for placement in self._on(place))
            if seen is not None
            else 0
        )

    def _on(self, place: ClusterSubset) -> list[Placement]:
        return [placement for placement in self.placements if self.inputs.slot(placement) == place]

    def _given_up(self, counts: Mapping[ClusterSubset, int]) -> Iterator[GivenUp]:
        """Yield the placements that give up replicas: what serves least on a cluster first, then what is newest."""
        for place in sorted(self.held):
            yield from give_up(self.inputs, self._on(place), counts.get(place, 0))

    def _count_ends(self, counts: Mapping[ClusterSubset, int]) -> int:
        return sum(not each.rest for each in self._given_up(counts))

    def _tell(
        self, assignment: Assignment, departures: Sequence[Departure], candidate: Candidate, joined: Placement | None
    ) -> tuple[str, tuple[Refusal, ...]]:
        """Say what a cluster had and gets; of a new placement also when it ends, and which clusters were refused."""
        if joined is not None:
            return self._detail(candidate.key, assignment.counts), ()
        first = earliest_end(departures)
        detail = self._detail(
            candidate.key, assignment.counts, f"it ends when {first.name} on {first.where} would have"
        )
        ahead = list(self.candidates)[: candidate.rank - 1] if self.policy.is_in_order else self.candidates
        refusals = ((refusal, (refusal.cluster, refusal.subset)) for refusal in assignment.refusals)
        return detail, tuple(refusal for refusal, key in refusals if key in ahead and key not in self.held)

    def _detail(self, place: ClusterSubset, counts: Mapping[ClusterSubset, int], *more: str) -> str:
        """Say who asked for it, the replicas that a cluster had and gets, and why; a long reason is cut off."""
        has, gets, gone = self.held[place], counts.get(place, 0), self._gone(place)
        why = f" ({gone.message})" if gone is not None else ""
        had = f"{has or 'none'} of {count(self.held.total(), 'replica')}"
        shares = f"{sanitize(place_name(*place))} had {had} and gets {gets or 'none'}{why}"
        return f"rebalanced by {self.by}: {'; '.join((shares, *more, *filter(None, (self.reason,))))}"
