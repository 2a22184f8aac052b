"""Place requests: each goes to the first of its clusters that have room for all of its pods."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from reconciler.core.capacity.pod_requirements import UNKNOWN_REMEDY
from reconciler.core.cost.budgets import describe_used_up
from reconciler.core.decide.assign.assessments import kept_turn
from reconciler.core.decide.assign.gang_placement import assess, choose, describe_minimum, set_pods, with_room
from reconciler.core.decide.candidates.finder import CandidateFinder, describe_first_remedy, why_not
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.enrolment import EnrolledRequest, request_duration, request_end
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.turns.grow import grow_if_short
from reconciler.core.decide.turns.queue import Turn
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.plan import Change, Reason, Refusal, Suppressed
from reconciler.model.request import RequestRecord
from reconciler.text.wording import count


def request_turns(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> Iterator[Turn]:
    """Yield a turn for each open request with missing placements; it waits since it was received."""
    enrolment = inputs.enrolment
    suspects = {*enrolment.unplaced_requests(inputs.ledger.placements), *working_plan.changed_workloads()}
    for workload in sorted(suspects):
        if not enrolment.missing_placements(workload, len(working_plan.of(workload))):
            continue
        make_turn = partial(turn, inputs, working_plan, finder, enrolment.entries[workload])
        own = working_plan.decide(workload, make_turn)
        if own is not None:
            yield own


def turn(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, entry: EnrolledRequest) -> Turn:
    """Make the turn of a waiting request, as its record stands now."""
    workload = entry.workload
    record = working_plan.requests[workload]
    step = _PlaceRequest(inputs=inputs, working_plan=working_plan, finder=finder, entry=entry, record=record)
    return Turn(
        priority=priority(workload, inputs),
        since=record.received_at,
        workload=workload,
        take=kept_turn(working_plan, finder, workload, grow_if_short(working_plan, finder, workload, step.decide)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlaceRequest:
    """The turn of one waiting request."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    entry: EnrolledRequest
    record: RequestRecord

    def decide(self) -> None:
        """Place the request where it has room, and suppress its other placements with the reason."""
        workload, enrolment, finder = self.entry.workload, self.inputs.enrolment, self.finder
        taken = {placement.cluster for placement in self.working_plan.of(workload)}
        missing = enrolment.missing_placements(workload, len(taken))
        kind = self._kind()
        alike = (kind, missing, frozenset(taken), self.record.avoids) if kind is not None else None
        # 1. The needs of its pods are unknown.
        unknown = self.entry.gang.unknown
        if missing and unknown:
            self._suppress(self._suppression(missing, Reason.NO_SHAPE, f"{unknown} ({UNKNOWN_REMEDY})"))
            return
        # 2. What its workspace may cost is spent.
        budget = self.inputs.budgets.used_up(workload, "")
        if missing and budget is not None:
            suppressed = self._suppression(missing, Reason.OVER_BUDGET, describe_used_up(budget))
            self._suppress(replace(suppressed, until=budget.ends_at))
            return
        # 3. A request of the same kind has found no room, and nothing has changed since.
        cached = finder.refusals.suppressed(alike, finder.moment()) if alike is not None and missing else None
        if cached is not None:
            self._suppress(cached)
            return
        # 4. Each of its clusters is tried, until no placement is missing.
        total, refusals, began = missing + len(taken), list[Refusal](), finder.moment()
        others = [candidate for candidate in finder.order(workload) if candidate.cluster not in taken]
        for candidate in islice(with_room(self.entry.needs, others, partial(self._ask, kind), refusals), missing):
            self._place(candidate, tuple(refusals))
            missing -= 1
        self.working_plan.kept.note(workload, (), refusals)
        # 5. Some of its placements have no room.
        if missing:
            suppressed = self._explain_refusals(missing, total, tuple(refusals))
            if alike is not None and finder.moment() == began:
                finder.refusals.suppress(alike, suppressed, began)
            self._suppress(suppressed)

    def _kind(self) -> Hashable | None:
        """Return the kind of a request; None where a reason concerns it alone."""
        workload, finder = self.entry.workload, self.finder
        if self.working_plan.restraints(workload) or workload in finder.unwritten:
            return None
        if finder.conflicts.possible(workload):
            return None
        return finder.kind(self.entry)

    def _ask(self, kind: Hashable | None, candidate: Candidate, *, least: bool) -> Candidate | Refusal:
        """Say whether one cluster has room, or why not; requests of one kind share what it refuses."""
        name, finder, assess_here = candidate.cluster, self.finder, partial(self._assess, candidate, least=least)
        if kind is None or name in self.record.avoids:
            return finder.contained(candidate, assess_here)
        state = finder.state(name, self.entry.workload.workspace)
        cached = finder.refusals.refusal((kind, least), name, state)
        answer = finder.contained(candidate, assess_here) if cached is None else cached
        if cached is None and isinstance(answer, Refusal):
            finder.refusals.refuse((kind, least), answer, state)
        return answer

    def _assess(self, candidate: Candidate, *, least: bool) -> Candidate | Refusal:
        gang, replicas = self.entry.gang, self.entry.unit.size
        return assess(self.inputs, self.finder, self.entry.workload, candidate, gang, replicas=replicas, least=least)

    def _place(self, candidate: Candidate, passed: tuple[Refusal, ...]) -> None:
        desired, workload, replicas = self.inputs.desired, self.entry.workload, self.entry.unit.size
        record = self.working_plan.requests[workload]
        began_at = record.began_at or self.inputs.now
        lasts = request_duration(record.request, desired.limits.get(workload.workspace))
        candidate = candidate.with_replicas(replicas, candidate.because)
        self.working_plan.kept.note(workload, (candidate,), passed)
        pods = set_pods(self.finder, self.entry.gang, candidate.cluster, replicas, shape=candidate.shape)
        choice = choose(self.finder, candidate, pods, workload.workspace)
        template, policy = desired.templates[workload], desired.policies[workload]
        made = self.finder.placement(template, policy, pods.shape, candidate.cluster, replicas)
        placement = replace(made, expires_at=began_at + lasts)  # all of its placements end together
        began = replace(record, began_at=began_at) if record.began_at is None else None
        self.working_plan.change(
            Change(action=Action.PLACE, after=placement, choice=choice, refused=passed, record=began)
        )

    def _suppress(self, suppressed: Suppressed) -> None:
        """Note that the request waits. One that has begun waits until its time is over."""
        end = request_end(self.record, self.inputs.desired)
        if end is not None:
            self.working_plan.wake(end)
        self.working_plan.suppress(replace(suppressed, workload=self.entry.workload), in_turn=True)

    def _explain_refusals(self, missing: int, total: int, refusals: tuple[Refusal, ...]) -> Suppressed:
        """Say why the request waits, and the first remedy."""
        of = f"{missing} of {count(total, 'placement')}" if total > 1 else "it"
        need = self.entry.needs
        minimum = describe_minimum(need)
        nor = f", nor does {minimum}" if minimum else ""
        reason, message = why_not(refusals, f"{of} fits on no cluster{nor}{describe_first_remedy(refusals)}")
        suppressed = self._suppression(missing, reason, message)
        return replace(suppressed, until=self.finder.next_change(self.entry.workload), refusals=refusals)

    def _suppression(self, missing: int, reason: Reason, message: str) -> Suppressed:
        replicas = missing * self.entry.needs.main.replicas
        return Suppressed(workload=self.entry.workload, reason=reason, message=message, replicas=replicas)
