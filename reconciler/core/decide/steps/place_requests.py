"""Where what people asked for by name goes: the first of its clusters that have room for the whole of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.capacity.pod_needs import PodRequirements, needs
from reconciler.core.decide.assign.gang_placement import fitted, named, taken, ways
from reconciler.core.decide.candidates.finder import CandidateFinder, Offer, why_not
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.enrolment import EnrolledRequest, end_of, lasting
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.queue import Turn
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.model.ids import WorkloadId
from reconciler.model.plan import Place, Reason, Refusal, Suppressed
from reconciler.model.request import RequestRecord
from reconciler.text.wording import clause, count


def requests_that_wait(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> Iterator[Turn]:
    """Yield a turn for each open request that lacks placements; it waits since it was received."""
    enrolment = inputs.enrolment
    if enrolment is None:
        return
    for workload in waiting(inputs, working_plan):
        yield turn(inputs, working_plan, finder, enrolment.entries[workload])


def turn(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, entry: EnrolledRequest) -> Turn:
    """Make the turn of a request that waits, as its record stands now."""
    workload = entry.workload
    record = working_plan.requests[workload]
    return Turn(
        priority=priority(workload, inputs),
        since=record.received_at,
        workload=workload,
        take=_Try(inputs=inputs, working_plan=working_plan, finder=finder, entry=entry, record=record).make,
    )


def waiting(inputs: PassInput, working_plan: WorkingPlan) -> tuple[WorkloadId, ...]:
    """List the open requests that lack placements as things stand, by name."""
    enrolment = inputs.enrolment
    if enrolment is None:
        return ()
    suspects = {*enrolment.lacking(inputs.ledger.placements), *working_plan.touched()}
    lacking = (workload for workload in suspects if enrolment.short(workload, len(working_plan.of(workload))))
    return tuple(sorted(lacking))


def assess(
    inputs: PassInput,
    finder: CandidateFinder,
    record: RequestRecord,
    candidate: Candidate,
    *,
    more: int = 0,
    least: bool = False,
) -> tuple[Offer, PodRequirements] | Refusal:
    """Say what one cluster offers of a request and what that takes there, or why it has no room for the whole of it.

    `more` are the placements that begin, less those that end, beside it. At `least` has the minimum of a gang do.
    """
    name, request = candidate.cluster, record.request
    if name in record.avoids:
        why = "it failed there, was idle there, or was ended there"
        return Refusal(cluster=name, reason=Reason.AVOIDED, message=why, remedy="ask for it anew to try again")
    template, policy = inputs.desired.templates[request.workload], inputs.desired.policies[request.workload]
    entry = inputs.enrolment.entries.get(request.workload) if inputs.enrolment is not None else None
    pods = entry.pods if entry is not None else None
    need = needs(request, inputs.observed.clusters.get(name), pods, kinds=inputs.desired.kinds)
    answer = finder.assess(template, policy, need.main.shape, candidate, need.main.replicas, more=more)
    if isinstance(answer, Refusal):
        return answer
    found = fitted(inputs, finder, request.workspace, answer, need, least=least)
    return found if isinstance(found, Refusal) else (found, need)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """What is done about one request that waits."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    entry: EnrolledRequest
    record: RequestRecord

    def make(self) -> None:
        """Place what has room, and tell what has none."""
        workload, enrolment = self.entry.workload, self.inputs.enrolment
        here = {placement.cluster for placement in self.working_plan.of(workload)}
        lacking = enrolment.short(workload, len(here)) if enrolment is not None else 0
        kind = self._kind()
        alike = (kind, lacking, frozenset(here), self.record.avoids) if kind is not None else None
        known = self.finder.told.suppressed(alike, self.finder.moment()) if alike is not None and lacking else None
        if known is not None:
            self._tell(known)
            return
        wanted, refusals = lacking + len(here), tuple[Refusal, ...]()
        began = self.finder.moment()
        for least in ways(self.entry.needs):
            refusals = ()
            for candidate in self.inputs.reach.order(workload) if lacking else ():
                if not lacking or candidate.cluster in here:
                    continue
                refusal = self._try(candidate, refusals, kind, least=least)
                if refusal is None:
                    lacking, here = lacking - 1, {*here, candidate.cluster}
                else:
                    refusals = (*refusals, refusal)
        if lacking:
            held = self._held(lacking, wanted, refusals)
            if alike is not None and self.finder.moment() == began:
                self.finder.told.suppress(alike, held, began)
            self._tell(held)

    def _kind(self) -> Hashable | None:
        """Say of which kind it is; None where something is known of it alone."""
        workload, unwritable = self.entry.workload, self.inputs.unwritable
        if self.working_plan.restraints(workload) or (unwritable and any(one == workload for one, _ in unwritable)):
            return None
        if self.finder.clashes.possible(workload):
            return None
        return self.finder.kind(self.entry)

    def _try(
        self, candidate: Candidate, passed: tuple[Refusal, ...], kind: Hashable | None, *, least: bool
    ) -> Refusal | None:
        """Place it on one cluster, or say why not."""
        name, finder = candidate.cluster, self.finder
        shared = kind is not None and name not in self.record.avoids
        kind = (kind, least)
        state = finder.state(name, self.record.request.workspace) if shared else None
        known = finder.told.refusal(kind, name, state) if shared else None
        answer = known or assess(self.inputs, finder, self.record, candidate, least=least)
        if not isinstance(answer, Refusal):
            self._place(*answer, passed)
            return None
        if shared and known is None:
            finder.told.refuse(kind, answer, state)
        return answer

    def _place(self, offer: Offer, need: PodRequirements, passed: tuple[Refusal, ...]) -> None:
        desired, workload, cluster = self.inputs.desired, self.entry.workload, offer.candidate.cluster
        record = self.working_plan.requests[workload]
        began = replace(record, began_at=record.began_at or self.inputs.now)
        choice = taken(self.finder, offer, need, need.main.shape, workload, replicas=need.main.replicas)
        if not need.main.shape.requests.amounts:
            choice = replace(choice, fits=offer.replicas)  # what asks for nothing fits without end
        template, policy = desired.templates[workload], desired.policies[workload]
        made = self.finder.placement(template, policy, need.main.shape, cluster, need.main.replicas)
        placement = replace(made, expires_at=self._end(began))
        first = record.began_at is None
        self.working_plan.change(
            Place(placement=placement, shortage=None, choice=choice, refused=passed, record=began if first else None)
        )

    def _end(self, began: RequestRecord) -> datetime:
        """Return the end that all placements of a request share."""
        limits = self.inputs.desired.limits.get(began.request.workspace)
        return end_of(began, self.inputs.desired) or self.inputs.now + lasting(began.request, limits)

    def _tell(self, held: Suppressed) -> None:
        """Tell that it waits, and why. What has begun waits until its time is over."""
        end = end_of(self.record, self.inputs.desired)
        if end is not None:
            self.working_plan.wake(end)
        self.working_plan.suppress(replace(held, workload=self.entry.workload))

    def _held(self, lacking: int, wanted: int, refusals: tuple[Refusal, ...]) -> Suppressed:
        """Say why it waits, and the one thing that would change it."""
        of = f"{lacking} of {count(wanted, 'placement')}" if wanted > 1 else "it"
        first = next((refusal for refusal in refusals if refusal.remedy), None)
        hint = f"; {first.cluster}: {clause(first.message)} ({first.remedy})" if first is not None else ""
        need = self.entry.needs
        nor = f", nor does {named(need)}" if named(need) else ""
        reason, message = why_not(refusals, f"{of} fits on no cluster{nor}{hint}")
        return Suppressed(
            workload=self.entry.workload,
            reason=reason,
            message=message,
            replicas=lacking * need.main.replicas,
            until=self.finder.next_change(self.entry.workload),
            refusals=refusals,
        )
