"""What one workload has elsewhere, shared out anew because a person asks for it: as if nothing stood.

Passes never do this (docs/decisions/0008-what-runs-stays.md). What comes of it are changes like any other, and no later
pass undoes them: the total is the same, and every cluster has a share that its policy would have given it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.decide.assign.replicas_by_subset import Anew, spread_anew
from reconciler.core.decide.assign.share import Share, ShareOut, beyond_gprs, newest_first
from reconciler.core.decide.assign.share_out import spoken_for, target_of
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder, Offer
from reconciler.core.decide.candidates.gang import whole
from reconciler.core.decide.candidates.gpr_limits import within_limits
from reconciler.core.decide.distribution import ClusterShare, Division, share_out
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import ABSENT, end_what_has_lapsed
from reconciler.core.decide.steps.manual_changes import respect_people
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.spread.placement_subset import Site, site
from reconciler.core.workloads import replica_count
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement, where
from reconciler.model.plan import Change, Place, Plan, Reason, Refusal, Resize, Revert, Why
from reconciler.model.policy import BurstPolicy, Distribution
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import clause, count, plain


def anew(total: int, targets: Sequence[ClusterShare], distribution: Distribution) -> Division:
    """Divide a total as if nothing stood: no target keeps what it has, and `most` counts that as room."""
    return share_out(total, [replace(target, keeps=0) for target in targets], distribution)


def rebalance(inputs: PassInput, workload: WorkloadId, *, by: str, reason: str = "") -> Plan:
    """Share out anew what a workload has elsewhere; the plan is empty where it has its shares already.

    What gives up replicas comes first, so that no commit has more of them than were agreed on. Nothing is held back
    because of it. Raises InvalidInput where that cannot be done, and with what would help.
    """
    working_plan = WorkingPlan(inputs)
    respect_people(inputs, working_plan)  # a commit of ours on top would hide it from every later pass
    end_what_has_lapsed(inputs, working_plan)
    template, policy = _governed(inputs, working_plan, workload)
    placements = working_plan.of(workload)
    if not placements:
        return Plan()
    made = _Rebalancing(
        inputs=inputs,
        working_plan=working_plan,
        finder=CandidateFinder(inputs, working_plan),
        template=template,
        policy=policy,
        placements=placements,
        by=by,
        reason=clause(reason),
    )
    changes = tuple(made.changes())
    for change in changes:
        working_plan.change(change)
    return Plan(changes=working_plan.plan().changes) if changes else Plan()


def _governed(
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
        raise InvalidInput(f"{trying}: {demand.message}, so nobody knows what its subsets may hold (try again later)")
    if whole(inputs, workload) is not None:
        raise InvalidInput(
            f"{trying}: it runs in groups and goes whole to one cluster, so there is nothing to share out"
            " (try `overspill revert` with its placement)"
        )
    if workload in inputs.ledger.blocked:
        raise InvalidInput(f"{trying}: a file of its on the output branch cannot be read (see `overspill status`)")
    cooling = working_plan.cooling(workload)
    if cooling is not None and working_plan.of(workload):
        raise InvalidInput(f"{trying}: it is held back everywhere: {clause(cooling.reason)} (wait until that ends)")
    return template, policy


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rebalancing:
    """One workload's placements, and what they are shared out over."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    template: WorkloadTemplate
    policy: BurstPolicy
    placements: tuple[Placement, ...]
    by: str
    reason: str

    def changes(self) -> Iterator[Change]:
        """Yield what gives up replicas, then what gets some: ends, shrinks, growths, new placements."""
        found = self._divided() if self.policy.spread is None else self._subsets()
        ends, shrinks, leaving = list[Change](), list[Change](), list[Placement]()
        for placement, rest in self._given_up(found.counts):
            detail = self._detail(self._site(placement), found.counts)
            leaving.append(placement)
            if not rest:
                ends.append(self._end(placement, detail))
                continue
            after = lifecycle.renewed(placement, self.inputs.desired, self.inputs.now, rest)
            shrinks.append(Resize(before=placement, after=after, detail=detail))
        taken = [self._taken(share, found, leaving) for share in found.shares]
        yield from (*ends, *shrinks, *sorted(taken, key=lambda change: isinstance(change, Place)))

    @property
    def workload(self) -> WorkloadId:
        return self.template.workload

    @property
    def held(self) -> Counter[Site]:
        """What each cluster has now, or each subset's part of it."""
        return self.finder.seated(self.workload, self.policy)

    @property
    def candidates(self) -> Mapping[Site, Candidate]:
        """Where the workload may go, in order."""
        return {candidate.site: candidate for candidate in self.finder.order(self.workload)}

    @property
    def shape(self) -> ReplicaShape:
        """One replica as its primary shows it now, or else as it was placed last."""
        demand = self.inputs.demands.get(self.workload)
        newest = max(self.placements, key=lambda one: (one.created_at, one.name))
        return (demand.shape if isinstance(demand, Demand) else None) or newest.shape

    def _subsets(self) -> ShareOut:
        """Share out over the subsets of a WorkloadSpread. Raises InvalidInput as `_divided` does."""
        afresh = Anew(keeps=self._keeps, ended=self._ended, placements=len(self.placements))
        found = spread_anew(self.finder, self.template, self.policy, self.shape, afresh)
        self._complete(found.counts, found.refusals)
        return found

    def _divided(self) -> ShareOut:
        """Share out over what each cluster has and offers, without those that would be a GPR too many.

        Raises InvalidInput where not all of the replicas have a place.
        """
        held, candidates = self.held, self.candidates
        # Those that end make room for as many GPRs; which ones these are is known only when it is shared out.
        ending = -len(self.placements)
        answers: dict[ClusterName, Offer | Refusal] = {
            candidate.cluster: self.finder.assess(self.template, self.policy, self.shape, candidate, MOST, more=ending)
            for candidate in candidates.values()
        }
        while True:
            targets = [self._target(candidate, answers[candidate.cluster]) for candidate in candidates.values()]
            division = anew(held.total(), targets, self.policy.distribution)
            counts: dict[Site, int] = {(cluster, ""): has for cluster, has in division.counts.items()}
            refusals = tuple(one for one in answers.values() if isinstance(one, Refusal))
            self._complete(counts, refusals)
            shares = tuple(self._shares(answers, division))
            new = [one for one in shares if not held[one.offer.candidate.site]]
            beyond = beyond_gprs(self.finder, self.workload.workspace, new, ended=self._ended(counts))
            if beyond is None:
                return ShareOut(shares=shares, refusals=refusals, counts=counts)
            answers[beyond[1].cluster] = beyond[1]

    def _target(self, candidate: Candidate, answer: Offer | Refusal) -> ClusterShare:
        """Make a target with room for what the cluster has and for what it offers beside that."""
        has = self.held[candidate.site]
        most = min(MOST, has + answer.replicas if isinstance(answer, Offer) else self._keeps(candidate.site, answer))
        return target_of(candidate, keeps=has, most=most, capacity=most)

    def _keeps(self, place: Site, refusal: Refusal | None) -> int:
        """Count what may stay where it is, by why a cluster gives nothing new.

        One that gives nothing new still has room for what runs there; replicas that wait there for a node do not, where
        no room is the reason. One that the workload may not even stay on has none.
        """
        if self._gone(place) is not None:
            return 0
        waiting = self._waiting(place) if refusal is not None and refusal.reason is Reason.NO_CAPACITY else 0
        limit = within_limits(self.inputs, self.workload, self.candidates[place], self.shape).limit
        return min(self.held[place] - waiting, MOST if limit is None else limit)

    def _complete(self, counts: Mapping[Site, int], refusals: Sequence[Refusal]) -> None:
        """Raise InvalidInput where a cluster may only seem to be gone, or where some replicas have no place."""
        for place in sorted(self.held):
            gone = self._gone(place)
            if gone is not None and gone.reason in ABSENT and self.inputs.desired.incomplete:
                raise InvalidInput(
                    f"rebalancing {self.workload}: {where(*place)}: {gone.message}, but not every file can be read"
                    " (try mending the files that `overspill check` names)"
                )
        total, placed = self.held.total(), sum(counts.values())
        if placed != total:
            first = next((one for one in refusals if one.remedy), None)
            hint = f"; {first.where}: {clause(first.message)} ({first.remedy})" if first is not None else ""
            bounds = f"WorkloadSpread {one.id}" if (one := self.policy.spread) else f"policy {self.policy.name}"
            raise InvalidInput(
                f"rebalancing {self.workload}: shared out anew, {placed} of its {count(total, 'replica')} would have a"
                f" place within {bounds}{hint}"
            )

    def _gone(self, place: Site) -> Refusal | None:
        """Say why a workload may not even keep what it has on a cluster or for a subset; None where it may."""
        cluster, subset = place
        banned, spread = self.inputs.reach.banned(self.workload, cluster), self.policy.spread
        if banned is not None or spread is None or place in self.candidates:
            return banned
        told = f"not in subset {plain(subset)}" if subset else "in no subset"
        message = f"{told} of WorkloadSpread {spread.id} any more"
        return Refusal(cluster=cluster, subset=subset, reason=Reason.NOT_IN_POLICY, message=message)

    def _waiting(self, place: Site) -> int:
        """Count the replicas that are seen to wait for a node on a cluster."""
        seen = self.inputs.observed.clusters.get(place[0])
        return sum(replica_count.waiting(one, seen) for one in self._on(place)) if seen is not None else 0

    def _site(self, placement: Placement) -> Site:
        return site(placement, self.policy, self.inputs.desired.clusters)

    def _on(self, place: Site) -> list[Placement]:
        return [placement for placement in self.placements if self._site(placement) == place]

    def _shares(self, answers: Mapping[ClusterName, Offer | Refusal], division: Division) -> Iterator[Share]:
        """Yield what each cluster gets on top of what it has, in the policy's order."""
        held = self.held
        for place, candidate in self.candidates.items():
            answer, more = answers[candidate.cluster], division.counts.get(candidate.cluster, 0) - held[place]
            if more > 0 and isinstance(answer, Offer):
                yield Share(offer=answer, replicas=more, because=spoken_for(division, candidate, self.policy))

    def _given_up(self, counts: Mapping[Site, int]) -> Iterator[tuple[Placement, int]]:
        """Yield the placements that give up replicas, and what each keeps: the newest of a cluster first."""
        for place in sorted(self.held):
            yield from newest_first(self._on(place), counts.get(place, 0))

    def _ended(self, counts: Mapping[Site, int]) -> int:
        return sum(not rest for _, rest in self._given_up(counts))

    def _end(self, placement: Placement, detail: str) -> Revert:
        """End a placement, and hold nothing back: its replicas run on elsewhere."""
        bound = replica_count.bound(placement, self.inputs.observed.clusters.get(placement.cluster))
        phase = lifecycle.final_phase(placement, bound, Why.REQUESTED)
        return Revert(placement=placement, why=Why.REQUESTED, detail=detail, phase=phase)

    def _taken(self, share: Share, found: ShareOut, leaving: Sequence[Placement]) -> Place | Resize:
        """Let the placement of a cluster grow, or begin one that ends when the first of those does that gave it up.

        It also counts from when that one began, so that nothing lasts longer than its policy allows.
        """
        shape, place, subset = share.offer.shape, share.offer.candidate.site, share.offer.candidate.subset
        choice = replace(self.finder.choice(share.offer, shape, self.workload.workspace), because=share.because)
        here = self._on(place)
        if here:
            before = max(here, key=lambda one: (one.created_at, one.name))
            replicas = before.replicas + share.replicas
            grown = lifecycle.renewed(before, self.inputs.desired, self.inputs.now, replicas)
            detail = self._detail(place, found.counts)
            after = replace(grown, shape=shape.recorded, subset=subset)
            return Resize(before=before, after=after, detail=detail, choice=choice)
        first = min(leaving, key=lambda one: (one.expires_at, one.created_at, one.name))
        made = self.finder.placement(self.template, self.policy, shape, place[0], share.replicas, subset=subset)
        made = replace(made, created_at=first.created_at, expires_at=first.expires_at)
        detail = self._detail(place, found.counts, f"it ends when {first.name} on {first.where} would have")
        # Of subsets, which are in order, only what comes before explains why this one was taken.
        before_it = self.candidates if self.policy.spread is None else list(self.candidates)[: choice.rank - 1]
        new = ((one, (one.cluster, one.subset)) for one in found.refusals)
        refused = tuple(one for one, there in new if there in before_it and there not in self.held)
        return Place(placement=made, shortage=None, choice=choice, refused=refused, detail=detail)

    def _detail(self, place: Site, counts: Mapping[Site, int], *more: str) -> str:
        """Say who asked for it, what a cluster had of all and gets, and why: of a long reason the end is cut off."""
        has, gets, gone = self.held[place], counts.get(place, 0), self._gone(place)
        why = f" ({gone.message})" if gone is not None else ""
        had = f"{has or 'none'} of {count(self.held.total(), 'replica')}"
        shares = f"{plain(where(*place))} had {had} and gets {gets or 'none'}{why}"
        return f"rebalanced by {self.by}: {'; '.join((shares, *more, *filter(None, (self.reason,))))}"
