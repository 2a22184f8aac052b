"""Orders of callers of the API, carried out one after the other, and what each of them is answered.

An order is judged by what stands when its turn comes: of two that want the same name the first gets it. What the rules
of states do not allow (docs/egs.md, R19 and R20) is denied, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.capacity.pod_needs import request_requirements
from reconciler.core.decide.state import answers
from reconciler.core.decide.state.enrolment import notes, observed
from reconciler.core.decide.state.order import Order
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.follow_requests import CHANGEABLE, amend, deletion_policy_problem, forget
from reconciler.core.decide.steps.steer import prolonged, withdrawn
from reconciler.core.fleet.admission import admit, review
from reconciler.core.fleet.objects import find_workspace
from reconciler.core.ledger.request_record import body_digest, differences
from reconciler.core.schema.egs.request import RequestDraft, merge_update
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Receive
from reconciler.model.policy import Workspace
from reconciler.model.request import Answer, Asker, Denial, Provisioning, Request, RequestRecord, Verb
from reconciler.text.findings import Finding
from reconciler.text.wording import join_names

_NAMING = ("name", "workspaceName")


def carry_out_orders(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Carry out the orders in the order in which they came, and answer each."""
    clerk = _Clerk(inputs=inputs, working_plan=working_plan)
    for order in inputs.orders:
        working_plan.answer(order.number, clerk.answer(order))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clerk:
    """Carries orders out, one after the other."""

    inputs: PassInput
    working_plan: WorkingPlan
    received: dict[WorkloadId, int] = field(default_factory=dict)
    """Positions in the plan of the requests that this pass has received."""
    keys: dict[str, WorkloadId] = field(default_factory=dict)
    """Idempotency keys of those requests."""

    def answer(self, order: Order) -> Answer:
        """Carry one order out, or say why not."""
        if order.verb is Verb.CREATE:
            return self._create(order)
        target = self._find(order)
        if isinstance(target, Answer):
            return target
        if isinstance(target, RequestRecord):
            return self._update(order, target) if order.verb is Verb.UPDATE else self._delete(order, target)
        return self._prolong(order, target) if order.verb is Verb.UPDATE else self._withdraw(order, target)

    # what is asked for

    def _create(self, order: Order) -> Answer:
        """Take a request into the ledger. The same call a second time is answered like the first."""
        draft, workspaces = order.draft, self.inputs.desired.workspaces
        if draft is None:
            return answers.invalid("says nothing to create")
        named = draft.workspace or order.workspace
        place = find_workspace(named, draft.used, _seen(workspaces, order, named))
        if isinstance(place, Finding):
            return answers.refused((draft.spelling.of(place),))
        workload = WorkloadId(place.name, TemplateName(order.name), request=True)
        body = body_digest(draft, place.name) if order.key else ""
        # 1. The name is taken, or is about to be by a file; or by this very call, which did not hear the answer.
        record = self.working_plan.requests.get(workload)
        if record is not None and order.key and record.key == order.key:
            return self._again(record, body)
        if record is not None or workload in self.inputs.desired.requests:
            return Answer(denial=Denial.EXISTS, message=f"{workload} already exists", workload=workload)
        if workload in self.inputs.ledger.blocked:
            return self._unreadable(workload)
        # 2. The key belongs to another request.
        other = self._keyed(order.key) if order.key else None
        if other is not None:
            return Answer(denial=Denial.KEY_REUSED, message=f"this Idempotency-Key made {other}", workload=workload)
        # 3. It may not be made.
        examined = review(replace(draft, name=workload.name), place, self.inputs.desired)
        admitted = examined.request
        if admitted is None:
            return answers.refused(examined.errors, workload)
        # 4. It may.
        now = self.inputs.now
        record = RequestRecord(
            request=admitted.settled,
            asker=Asker.API,
            author=order.author.name,
            received_at=now,
            changed_at=now,
            source_commit=self.inputs.desired.commit,
            key=order.key,
            body=body,
            observed=observed(admitted, self.inputs.desired),
        )
        written = answers.written(record)
        if isinstance(written, Answer):
            return written
        self.received[workload] = self.working_plan.position
        if order.key:
            self.keys[order.key] = workload
        notes = self._notes(admitted, examined.unknown)
        self.working_plan.change(Receive(record=record, notes=notes, author=order.author, written=written))
        return Answer(change=self.received[workload], workload=workload, notes=notes)

    def _keyed(self, key: str) -> WorkloadId | None:
        """Find the request that a call with this idempotency key has made, as long as there is one."""
        enrolment = self.inputs.enrolment
        recorded = enrolment.keyed(key) if enrolment is not None else ()
        for workload in (*recorded, self.keys[key]) if key in self.keys else recorded:
            record = self.working_plan.requests.get(workload)
            if record is not None and record.key == key:
                return workload
        return None

    def _again(self, record: RequestRecord, body: str) -> Answer:
        """Answer a call that has been carried out before; another call must not use its key."""
        if record.body != body:
            message = f"this Idempotency-Key made {record.workload} of another body"
            return Answer(denial=Denial.KEY_REUSED, message=message, workload=record.workload)
        notes = self._notes(record.request)
        if record.workload in self.received:
            return Answer(change=self.received[record.workload], workload=record.workload, notes=notes)
        return Answer(workload=record.workload, since=record.received_at, notes=notes)

    def _notes(self, request: Request, unknown: str | None = None) -> tuple[str, ...]:
        desired = self.inputs.desired
        if unknown is None:
            unknown = request_requirements(request, kinds=desired.kinds).unknown
        return notes(request, desired.limits.get(request.workspace), unknown)

    # what is there

    def _find(self, order: Order) -> RequestRecord | Placement | Answer:
        """Find what an order is about: a request of its name, or a burst's placement."""
        spaces = sorted(name for name in {order.workspace, *self.inputs.desired.workspaces} if name and order.may(name))
        named = [WorkloadId(space, TemplateName(order.name), request=True) for space in spaces]
        for workload in named:
            if workload in self.inputs.ledger.blocked:
                return self._unreadable(workload)
        targets: list[RequestRecord | Placement] = [
            record for workload in named if (record := self.working_plan.requests.get(workload)) is not None
        ]
        targets = targets or [target for target in self._placements(order.name) if order.may(target.workload.workspace)]
        if not targets:
            return Answer(denial=Denial.MISSING, message=f"there is no placement {order.name}")
        if len(targets) > 1:
            names = join_names(str(target.workload) for target in targets)
            return answers.invalid(f"{order.name} may be {names}", "say which workspace")
        (target,) = targets
        if isinstance(target, Placement) and target.workload.request:
            return answers.invalid(
                f"{order.name} is a placement of request {target.workload.name}", f"name {target.workload.name}"
            )
        return target

    def _placements(self, name: str) -> Iterable[Placement]:
        """Find the placements of this name, wherever they are."""
        placements = self.inputs.ledger.placements
        for cluster in sorted(placements.clusters()):
            placement = placements.get(f"clusters/{cluster}/{name}")
            if placement is not None and placement in self.working_plan.of(placement.workload):
                yield placement

    def _update(self, order: Order, record: RequestRecord) -> Answer:
        """Change a request by its state: one that waits whole, a placed one in its end, one that is over not."""
        workload, draft = record.workload, order.draft
        if record.asker is Asker.FILE:
            return self._of_a_file(record, "change")
        if draft is None:
            return answers.invalid("says nothing to change", workload=workload)
        moved = [name for name in _NAMING if name in order.given and _named(draft, name) != _is(record, name)]
        if moved:
            return answers.immutable(moved, "it is what the placement is known by", workload)
        asked, wrong = merge_update(record.request, draft)
        errors = tuple(finding for finding in wrong if finding.severity is Severity.ERROR)
        admitted = errors or admit(asked, self.inputs.desired)
        if isinstance(admitted, tuple):
            return answers.refused(admitted, workload)
        changed = differences(record.request, admitted.settled)
        if record.ended is not None:
            fixed, state = changed, f"it is {record.ended.status}"
        elif self.working_plan.of(workload):
            fixed, state = tuple(name for name in changed if name not in CHANGEABLE), "it is Successful"
        else:
            fixed, state = (), ""
        if fixed:
            return answers.immutable([draft.spelling.called(name) for name in fixed], state, workload)
        if not changed:
            return Answer(change=self.received.get(workload), workload=workload, notes=self._notes(admitted))
        return self._amend(order, record, admitted, changed)

    def _amend(self, order: Order, record: RequestRecord, admitted: Request, changed: tuple[str, ...]) -> Answer:
        waits = not self.working_plan.of(record.workload)
        after = replace(
            record,
            request=admitted.settled,
            changed_at=self.inputs.now,
            source_commit=self.inputs.desired.commit,
            avoids=() if waits else record.avoids,
            attempts=0 if waits else record.attempts,
            observed=observed(admitted, self.inputs.desired, record.observed),
        )
        policy = admitted.spec.deletion_policy
        unwritten = deletion_policy_problem(self.inputs, self.working_plan, record.workload, policy)
        if unwritten:
            message, hint = f"the files of {record.workload} cannot be written anew: {unwritten}", "try again later"
            return answers.invalid(f"deletionPolicy cannot change to {policy}: {message}", hint, record.workload)
        written = answers.written(after)
        if isinstance(written, Answer):
            return written
        position = self.working_plan.position
        detail = f"{order.author.name} asked for it: {join_names(changed)}"
        amend(self.inputs, self.working_plan, record, after, detail=detail, author=order.author)
        return Answer(change=position, workload=record.workload, notes=self._notes(admitted))

    def _delete(self, order: Order, record: RequestRecord) -> Answer:
        """End a request, whatever its state, and forget it; `strict` callers get EGS's refusal (docs/egs.md, R19)."""
        if record.asker is Asker.FILE:
            return self._of_a_file(record, "delete")
        status = Provisioning.SUCCESSFUL if self.working_plan.of(record.workload) else Provisioning.PENDING
        status = record.ended.status if record.ended is not None else status
        if order.strict and status is not Provisioning.PENDING:
            return answers.restricted(status, record.workload)
        forget(self.inputs, self.working_plan, record, f"deleted by {order.author.name}", order.author)
        return Answer(change=self.working_plan.position - 1, workload=record.workload)

    def _prolong(self, order: Order, placement: Placement) -> Answer:
        """Give a burst another end, which is all that a caller may change of it."""
        draft = order.draft
        fixed = sorted(order.given - {*_NAMING, "burstDuration"})
        if fixed:
            return answers.immutable(fixed, "it is a burst, and the rest is its template's", placement.workload)
        if draft is None or draft.spec.burst_duration is None:
            return Answer(workload=placement.workload)
        until = placement.created_at + draft.spec.burst_duration
        if until == placement.expires_at:
            return Answer(workload=placement.workload)
        try:
            change = prolonged(self.inputs, placement, until, by=order.author.name)
        except InvalidInput as error:
            return answers.invalid(str(error), workload=placement.workload)
        position = self.working_plan.position
        self.working_plan.change(replace(change, author=order.author))
        return Answer(change=position, workload=placement.workload)

    def _withdraw(self, order: Order, placement: Placement) -> Answer:
        """End a burst as `overspill revert` does."""
        if order.strict:
            return answers.restricted(Provisioning.SUCCESSFUL, placement.workload)
        position = self.working_plan.position
        self.working_plan.change(withdrawn(self.inputs, placement, by=order.author.name, author=order.author))
        return Answer(change=position, workload=placement.workload)

    # why not

    def _of_a_file(self, record: RequestRecord, verb: str) -> Answer:
        asked = self.inputs.desired.requests.get(record.workload)
        where = f"{asked.path}:{asked.line}" if asked is not None and asked.path else "a file of the fleet repository"
        message = f"{record.workload} is asked for by {where}"
        return answers.invalid(message, f"{verb} it there, by a pull request", workload=record.workload)

    def _unreadable(self, workload: WorkloadId) -> Answer:
        message = f"the record of {workload} on the output branch cannot be read"
        return answers.invalid(message, "mend the file that the problems name", workload=workload)


def _seen(
    workspaces: Mapping[WorkspaceName, Workspace], order: Order, named: WorkspaceName | None
) -> Mapping[WorkspaceName, Workspace]:
    """Return the workspaces that an order may be about, or all of them where it names one of those."""
    if named is not None and named in workspaces and order.may(named):
        return workspaces
    return {name: workspace for name, workspace in workspaces.items() if order.may(name)}


def _named(draft: RequestDraft, field_name: str) -> str | None:
    return draft.name if field_name == "name" else draft.workspace


def _is(record: RequestRecord, field_name: str) -> str:
    return record.request.name if field_name == "name" else record.request.workspace
