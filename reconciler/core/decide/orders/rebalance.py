"""Rebalance: the placed replicas of one workload are assigned anew because a person asks for it, as if none stood.

Passes never do this (docs/decisions/0008-what-runs-stays.md). The outcome are changes like any other, and no later pass
undoes them: the total is the same, and every cluster has a share that its policy would have given it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.decide.assign.assignment import Assignment, refuse_beyond_gpr_limit
from reconciler.core.decide.assign.copies import WAY_OUT
from reconciler.core.decide.assign.replicas_by_cluster import choice_reason
from reconciler.core.decide.assign.replicas_by_subset import Anew, assign_anew
from reconciler.core.decide.assign.surplus import GivenUp, give_up
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.core.decide.candidates.gang import unit_of_workload
from reconciler.core.decide.candidates.gpr_limits import within_limits
from reconciler.core.decide.candidates.kind_answers import share_of
from reconciler.core.decide.distribution import ClusterShare, Division, share_out
from reconciler.core.decide.state.gate import may_not_move
from reconciler.core.decide.state.pass_input import ABSENT, PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import end_expired
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.spread.placement_subset import cluster_subset
from reconciler.core.workloads import replica_count
from reconciler.errors import InvalidInput
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import ClusterSubset, Placement, place_name
from reconciler.model.plan import Change, EndReason, Place, Plan, Reason, Refusal, Resize, Revert
from reconciler.model.policy import BurstPolicy, Distribution
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import as_clause, count, sanitize


def divide_anew(total: int, shares: Sequence[ClusterShare], distribution: Distribution) -> Division:
    """Divide a total as if nothing stood: no share keeps its replicas, and `most` counts them as room."""
    return share_out(total, [share._replace(keeps=0) for share in shares], distribution)


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
    changes = tuple(rebalancing.changes())
    for change in changes:
        working_plan.change(change)
    return Plan(changes=working_plan.plan().changes) if changes else Plan()


def _template_and_policy(
    inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId
) -> tuple[WorkloadTemplate, BurstPolicy]:
    """Return the template and the policy of a workload that can be rebalanced, or raise InvalidInput."""
    desired, trying = inputs.desired, f"rebalancing {workload}"
    template, policy = desired.templates.get(workload), desired.policies.get(workload)
    if workload.request:
        raise InvalidInput(f"{trying}: it is a request, which stays where its clusters were chosen (ask for it anew)")
    if template is None or policy is None:
        missing = "template" if template is None else "policy"
        raise InvalidInput(f"{trying}: it has no {missing} that can be read (see `overspill check`)")
    demand = inputs.demands.get(workload)
    if policy.spread is not None and isinstance(demand, UnseenPrimary):
        raise InvalidInput(f"{trying}: {demand.message}, so the limits of its subsets are unknown (try again later)")
    unit = unit_of_workload(inputs, workload)
    if unit.is_set:
        raise InvalidInput(
            f"{trying}: it runs in groups and goes whole to one cluster, so there is nothing to share out"
            " (try `overspill revert` with its placement)"
        )
    if unit.once:
        raise InvalidInput(f"{trying}: it runs once, so that there is nothing to share out")
    if unit.why_together:
        raise InvalidInput(
            f"{trying}: its replicas go together, since {unit.why_together} (try `overspill revert` with its placement)"
        )
    if unit.whole:
        raise InvalidInput(
            f"{trying}: its template deploys copies of {count(unit.size, 'replica')}, which are not divided ({WAY_OUT})"
        )
    if workload in inputs.ledger.blocked:
        raise InvalidInput(f"{trying}: a file of its on the output branch cannot be read (see `overspill status`)")
    cooling = working_plan.cooling(workload)
    if cooling is not None and working_plan.of(workload):
        raise InvalidInput(f"{trying}: it is held back everywhere: {as_clause(cooling.reason)} (wait until that ends)")
    return template, policy


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def changes(self) -> Iterator[Change]:
        """Yield changes that give up replicas, then those that get some: ends, shrinks, growths, new placements."""
        assignment = self._by_cluster() if self.policy.spread is None else self._by_subset()
        ends, shrinks, leaving = list[Change](), list[Change](), list[Placement]()
        for placement, rest, _ in self._given_up(assignment.counts):
            detail = self._detail(self._key(placement), assignment.counts)
            leaving.append(placement)
            if not rest:
                ends.append(self._end(placement, detail))
                continue
            after = lifecycle.resized_placement(placement, self.inputs.desired, self.inputs.now, rest)
            shrinks.append(Resize(before=placement, after=after, detail=detail))
        gains = [self._gain(candidate, assignment, leaving) for candidate in assignment.chosen]
        yield from (*ends, *shrinks, *sorted(gains, key=lambda change: isinstance(change, Place)))

    @property
    def workload(self) -> WorkloadId:
        return self.template.workload

    @property
    def held(self) -> Counter[ClusterSubset]:
        """The replicas of each cluster, by subset."""
        return self.finder.held_by_subset(self.workload, self.policy)

    @property
    def candidates(self) -> Mapping[ClusterSubset, Candidate]:
        """The clusters that the workload may use, in order."""
        return {candidate.key: candidate for candidate in self.finder.order(self.workload)}

    @property
    def shape(self) -> ReplicaShape:
        """A replica as its primary shows it now, or else as it was placed last."""
        demand = self.inputs.demands.get(self.workload)
        newest = max(self.placements, key=lambda placement: (placement.created_at, placement.name))
        return (demand.shape if isinstance(demand, Demand) else None) or newest.shape

    def _by_subset(self) -> Assignment:
        """Assign to the subsets of a WorkloadSpread. Raises InvalidInput where not all replicas have a place."""
        afresh = Anew(keeps=self._keeps, ended=self._count_ends, placements=len(self.placements))
        assignment = assign_anew(self.finder, self.template, self.policy, self.shape, afresh)
        self._complete(assignment.counts, assignment.refusals)
        return assignment

    def _by_cluster(self) -> Assignment:
        """Divide over the room of clusters and their own replicas, without GPRs beyond the limit of the workspace.

        Raises InvalidInput where not all replicas have a place.
        """
        held, candidates = self.held, self.candidates
        # Placements that end make room for as many GPRs; which ones end is known only once replicas are assigned.
        ending = -len(self.placements)
        answers: dict[ClusterName, Candidate | Refusal] = {}
        for candidate in candidates.values():
            unapproved = (
                None if held[candidate.key] else may_not_move(self.inputs, self.placements[0], candidate.cluster)
            )
            answers[candidate.cluster] = unapproved or self.finder.assess(
                self.template, self.policy, self.shape, candidate, MOST, more_gprs=ending
            )
        while True:
            shares = [self._share(candidate, answers[candidate.cluster]) for candidate in candidates.values()]
            division = divide_anew(held.total(), shares, self.policy.distribution)
            counts: dict[ClusterSubset, int] = {(cluster, ""): has for cluster, has in division.counts.items()}
            refusals = tuple(answer for answer in answers.values() if isinstance(answer, Refusal))
            self._complete(counts, refusals)
            chosen = tuple(self._growing_candidates(answers, division))
            new = [candidate for candidate in chosen if not held[candidate.key]]
            beyond = refuse_beyond_gpr_limit(self.finder, self.workload.workspace, new, ended=self._count_ends(counts))
            if beyond is None:
                return Assignment(chosen=chosen, refusals=refusals, counts=counts)
            answers[beyond[1].cluster] = beyond[1]

    def _share(self, candidate: Candidate, answer: Candidate | Refusal) -> ClusterShare:
        """Make a cluster's share with room for its own replicas and for those it can take beside them."""
        has = self.held[candidate.key]
        most = min(MOST, has + answer.room if isinstance(answer, Candidate) else self._keeps(candidate.key, answer))
        return share_of(candidate, keeps=has, most=most, capacity=most)

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

    def _complete(self, counts: Mapping[ClusterSubset, int], refusals: Sequence[Refusal]) -> None:
        """Raise InvalidInput where a cluster may only seem to have gone, or where some replicas have no place."""
        for place in sorted(self.held):
            gone = self._gone(place)
            if gone is not None and gone.reason in ABSENT and not self.inputs.absence_counts:
                raise InvalidInput(
                    f"rebalancing {self.workload}: {place_name(*place)}: {gone.message}, but not every file can be read"
                    " (try mending the files that `overspill check` names)"
                )
        total, placed = self.held.total(), sum(counts.values())
        if placed != total:
            first = next((refusal for refusal in refusals if refusal.remedy), None)
            hint = f"; {first.where}: {as_clause(first.message)} ({first.remedy})" if first is not None else ""
            spread = self.policy.spread
            bounds = f"WorkloadSpread {spread.id}" if spread else f"policy {self.policy.name}"
            raise InvalidInput(
                f"rebalancing {self.workload}: shared out anew, {placed} of its {count(total, 'replica')} would have a"
                f" place within {bounds}{hint}"
            )

    def _gone(self, place: ClusterSubset) -> Refusal | None:
        """Say why a workload may not even keep what it has on a cluster or for a subset; None where it may."""
        cluster, subset = place
        exclusion, spread = self.inputs.reach.exclusion(self.workload, cluster), self.policy.spread
        if exclusion is not None or spread is None or place in self.candidates:
            return exclusion
        state = f"not in subset {sanitize(subset)}" if subset else "in no subset"
        message = f"{state} of WorkloadSpread {spread.id} any more"
        return Refusal(cluster=cluster, subset=subset, reason=Reason.NOT_IN_POLICY, message=message)

    def _pending_replicas(self, place: ClusterSubset) -> int:
        """Count the replicas that are seen to wait for a node on a cluster."""
        seen = self.inputs.observed.clusters.get(place[0])
        return (
            sum(replica_count.pending_replicas(placement, seen) for placement in self._on(place))
            if seen is not None
            else 0
        )

    def _key(self, placement: Placement) -> ClusterSubset:
        return cluster_subset(placement, self.policy, self.inputs.desired.clusters)

    def _on(self, place: ClusterSubset) -> list[Placement]:
        return [placement for placement in self.placements if self._key(placement) == place]

    def _growing_candidates(
        self, answers: Mapping[ClusterName, Candidate | Refusal], division: Division
    ) -> Iterator[Candidate]:
        """Yield the candidates that get more replicas than they have, in order."""
        held = self.held
        for place, candidate in self.candidates.items():
            answer, gain = answers[candidate.cluster], division.counts.get(candidate.cluster, 0) - held[place]
            if gain > 0 and isinstance(answer, Candidate):
                yield answer._replace(replicas=gain, because=choice_reason(division, candidate, self.policy))

    def _given_up(self, counts: Mapping[ClusterSubset, int]) -> Iterator[GivenUp]:
        """Yield the placements that give up replicas: what serves least on a cluster first, then what is newest."""
        for place in sorted(self.held):
            yield from give_up(self.inputs, self._on(place), counts.get(place, 0))

    def _count_ends(self, counts: Mapping[ClusterSubset, int]) -> int:
        return sum(not each.rest for each in self._given_up(counts))

    def _end(self, placement: Placement, detail: str) -> Revert:
        """End a placement without a restraint: its replicas go on on other clusters."""
        bound = replica_count.bound_replicas(placement, self.inputs.observed.clusters.get(placement.cluster))
        phase = lifecycle.final_phase(placement, bound, EndReason.REQUESTED)
        return Revert(placement=placement, why=EndReason.REQUESTED, detail=detail, phase=phase)

    def _gain(self, candidate: Candidate, assignment: Assignment, leaving: Sequence[Placement]) -> Place | Resize:
        """Resize the placement on a cluster, or begin one that ends when the first of those does that gave up replicas.

        A new one counts from when that one began, so that no replica lasts longer than its policy allows.
        """
        place, counts = candidate.key, assignment.counts
        choice = self.finder.choice(candidate, self.workload.workspace)
        here = self._on(place)
        if here:
            before = max(here, key=lambda placement: (placement.created_at, placement.name))
            replicas = before.replicas + candidate.replicas
            grown = lifecycle.resized_placement(before, self.inputs.desired, self.inputs.now, replicas)
            detail = self._detail(place, counts)
            after = replace(grown, shape=candidate.shape.recorded, subset=candidate.subset)
            return Resize(before=before, after=after, detail=detail, choice=choice)
        first = min(leaving, key=lambda placement: (placement.expires_at, placement.created_at, placement.name))
        made = self.finder.placement(
            self.template,
            self.policy,
            candidate.shape,
            candidate.cluster,
            candidate.replicas,
            subset=candidate.subset,
        )
        made = replace(made, created_at=first.created_at, expires_at=first.expires_at)
        detail = self._detail(place, counts, f"it ends when {first.name} on {first.where} would have")
        # Of subsets, which are in order, only the clusters before this one explain why it was taken.
        ahead = self.candidates if self.policy.spread is None else list(self.candidates)[: candidate.rank - 1]
        refused = []
        for refusal in assignment.refusals:
            key = refusal.cluster, refusal.subset
            if key in ahead and key not in self.held:
                refused.append(refusal)
        return Place(placement=made, shortage=None, choice=choice, refused=tuple(refused), detail=detail)

    def _detail(self, place: ClusterSubset, counts: Mapping[ClusterSubset, int], *more: str) -> str:
        """Say who asked for it, the replicas that a cluster had and gets, and why; a long reason is cut off."""
        has, gets, gone = self.held[place], counts.get(place, 0), self._gone(place)
        why = f" ({gone.message})" if gone is not None else ""
        had = f"{has or 'none'} of {count(self.held.total(), 'replica')}"
        shares = f"{sanitize(place_name(*place))} had {had} and gets {gets or 'none'}{why}"
        return f"rebalanced by {self.by}: {'; '.join((shares, *more, *filter(None, (self.reason,))))}"
