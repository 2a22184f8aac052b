"""Orders of API callers, carried out one after the other, with the answer to each.

An order is judged by what stands when its turn comes: of two that want the same name the first gets it. What the rules
of states do not allow (docs/reference/egs.md, R19 and R20) is denied, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from reconciler.core.capacity.pod_requirements import request_requirements
from reconciler.core.decide.orders.approve import rule_on_order
from reconciler.core.decide.orders.steer import (
    extend_on_request,
    moved_end,
    release_on_request,
    requested_extension,
    revert_on_request,
)
from reconciler.core.decide.state.enrolment import notes, observed_clusters
from reconciler.core.decide.state.order import Order, Ruling, Steering
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.close_requests import close
from reconciler.core.decide.steps.end import make_revert
from reconciler.core.decide.steps.follow_requests import CHANGEABLE, amend, deletion_policy_problem, forget
from reconciler.core.fleet.admission import admit, review
from reconciler.core.fleet.objects import find_workspace
from reconciler.core.ledger.request_record import body_digest, differences, write_request
from reconciler.core.schema.egs.request import RequestDraft, merge_update
from reconciler.errors import Bug, InvalidInput, Problem, Severity
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Change
from reconciler.model.policy import Workspace
from reconciler.model.request import Answer, Asker, Denial, Provisioning, Request, RequestRecord, Verb
from reconciler.text.findings import Finding
from reconciler.text.wording import join_names

_NAMING = ("name", "workspaceName")

_PLACE = "request"
"""The path of problems of a body, which is in no file."""


def carry_out_orders(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Carry out the orders in the order in which they came, and answer each."""
    execution = _OrderExecution(inputs=inputs, working_plan=working_plan)
    for order in inputs.orders:
        bug = working_plan.frozen.get(order.number)
        answer = (
            working_plan.decide(order.number, partial(execution.answer, order)) if bug is None else _bug_answer(bug)
        )
        if answer is not None:
            working_plan.answer(order.number, answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OrderExecution:
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
        if order.steering is not None:
            return self._steer(order, order.steering)
        if order.ruling is not None:
            return self._rule(order, order.ruling)
        target = self._find(order)
        if isinstance(target, Answer):
            return target
        match order.verb, target:
            case Verb.UPDATE, RequestRecord():
                return self._update(order, target)
            case Verb.RELEASE, RequestRecord():
                return self._release(order, target)
            case _, RequestRecord():
                return self._delete(order, target)
            case Verb.UPDATE, Placement():
                return self._extend(order, target)
            case _:
                return self._revert(order, target)

    # requests

    def _create(self, order: Order) -> Answer:
        """Take a request into the ledger. The same call a second time is answered like the first."""
        draft, workspaces = order.draft, self.inputs.desired.workspaces
        if draft is None:
            return _invalid("says nothing to create")
        named = draft.workspace or order.workspace
        place = find_workspace(named, draft.used, _visible_workspaces(workspaces, order, named))
        if isinstance(place, Finding):
            return _invalid_body((draft.spelling.of(place),))
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
        other = self._workload_of_key(order.key) if order.key else None
        if other is not None:
            return Answer(denial=Denial.KEY_REUSED, message=f"this Idempotency-Key made {other}", workload=workload)
        # 3. Admission denies the request.
        examined = review(replace(draft, name=workload.name), place, self.inputs.desired)
        admitted = examined.request
        if admitted is None:
            return _invalid_body(examined.errors, workload)
        # 4. Admission accepts the request.
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
            observed=observed_clusters(admitted, self.inputs.desired),
        )
        written = _written_or_denied(record)
        if isinstance(written, Answer):
            return written
        self.received[workload] = self.working_plan.position
        if order.key:
            self.keys[order.key] = workload
        notes = self._notes(admitted, examined.unknown)
        self.working_plan.change(
            Change(action=Action.RECEIVE, record=record, notes=notes, author=order.author, written=written)
        )
        return Answer(change=self.received[workload], workload=workload, notes=notes)

    def _workload_of_key(self, key: str) -> WorkloadId | None:
        """Find the request that a call with this idempotency key has made, as long as there is one."""
        recorded = self.inputs.enrolment.with_idempotency_key(key)
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
        return notes(request, desired, unknown)

    # targets of orders

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
            return _invalid(f"{order.name} may be {names}", "say which workspace")
        (target,) = targets
        if isinstance(target, Placement) and target.workload.request:
            return _invalid(
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
            return _invalid("says nothing to change", workload=workload)
        moved = [
            name for name in _NAMING if name in order.given and _draft_value(draft, name) != _record_value(record, name)
        ]
        if moved:
            why, hint = "it is what the placement is known by", "delete it, and ask for it under the new name"
            return _immutable(moved, why, workload, hint)
        asked, wrong = merge_update(record.request, draft)
        errors = tuple(finding for finding in wrong if finding.severity is Severity.ERROR)
        admitted = errors or admit(asked, self.inputs.desired)
        if isinstance(admitted, tuple):
            return _invalid_body(admitted, workload)
        changed = differences(record.request, admitted.settled)
        if record.ended is not None:
            fixed, state = changed, f"it is {record.ended.status}"
            hint = "ask for it under another name, or delete it first"
        elif self.working_plan.of(workload):
            fixed, state = tuple(name for name in changed if name not in CHANGEABLE), "it has its placement"
            hint = f"ask for it under another name; of this one {join_names(sorted(CHANGEABLE))} may change"
        else:
            fixed, state, hint = (), "", ""
        if fixed:
            return _immutable([draft.spelling.called(name) for name in fixed], state, workload, hint)
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
            observed=observed_clusters(admitted, self.inputs.desired, record.observed),
        )
        policy = admitted.spec.deletion_policy
        unwritten = deletion_policy_problem(self.inputs, self.working_plan, record.workload, policy)
        if unwritten:
            message, hint = f"the files of {record.workload} cannot be written anew: {unwritten}", "try again later"
            return _invalid(f"deletionPolicy cannot change to {policy}: {message}", hint, record.workload)
        written = _written_or_denied(after)
        if isinstance(written, Answer):
            return written
        position = self.working_plan.position
        detail = f"asked for by {order.author.name}: {join_names(changed)}"
        amend(self.inputs, self.working_plan, record, after, detail=detail, author=order.author)
        return Answer(change=position, workload=record.workload, notes=self._notes(admitted))

    def _delete(self, order: Order, record: RequestRecord) -> Answer:
        """End a request in any state and forget it; `strict` callers get EGS's refusal (docs/reference/egs.md, R19)."""
        if record.asker is Asker.FILE:
            return self._of_a_file(record, "delete")
        status = Provisioning.SUCCESSFUL if self.working_plan.of(record.workload) else Provisioning.PENDING
        status = record.ended.status if record.ended is not None else status
        if order.strict and status is not Provisioning.PENDING:
            return _deletion_restriction(status, record.workload)
        forget(self.inputs, self.working_plan, record, f"deleted by {order.author.name}", order.author)
        return Answer(change=self.working_plan.position - 1, workload=record.workload)

    def _release(self, order: Order, record: RequestRecord) -> Answer:
        """End a request before its time; its record stays, so that its GPR is known as released early."""
        if record.asker is Asker.FILE:
            return self._of_a_file(record, "delete")
        if record.ended is not None:
            why, hint = f"it is {record.ended.status}", "its GPUs are given back already"
            return _immutable(("earlyRelease",), why, record.workload, hint)
        detail = f"released early by {order.author.name}"
        for placement in self.working_plan.of(record.workload):
            ended = make_revert(self.inputs, placement, EndReason.REQUESTED, detail, author=order.author)
            self.working_plan.change(ended)
        close(self.inputs, self.working_plan, record, Provisioning.COMPLETED, detail, author=order.author)
        return Answer(change=self.working_plan.position - 1, workload=record.workload)

    def _extend(self, order: Order, placement: Placement) -> Answer:
        """Give a burst another end, which is all that a caller may change of it."""
        draft = order.draft
        fixed = sorted(order.given - {*_NAMING, "burstDuration"})
        if fixed:
            why, hint = "it is a burst, and the rest is its template's", "change its template, by a pull request"
            return _immutable(fixed, why, placement.workload, hint)
        if draft is None or draft.spec.burst_duration is None:
            return Answer(workload=placement.workload)
        until = placement.created_at + draft.spec.burst_duration
        if until == placement.expires_at:
            return Answer(workload=placement.workload)
        try:
            change = requested_extension(self.inputs, placement, until, by=order.author.name)
        except InvalidInput as error:
            return _invalid(str(error), workload=placement.workload)
        position = self.working_plan.position
        self.working_plan.change(replace(change, author=order.author))
        return Answer(change=position, workload=placement.workload)

    def _revert(self, order: Order, placement: Placement) -> Answer:
        """End a burst as `overspill revert` does."""
        if order.strict:
            return _deletion_restriction(Provisioning.SUCCESSFUL, placement.workload)
        position, name = self.working_plan.position, order.author.name
        reason = f"released early by {name}" if order.verb is Verb.RELEASE else ""
        revert_on_request(self.inputs, self.working_plan, placement, by=name, reason=reason, author=order.author)
        return Answer(change=position, workload=placement.workload)

    def _steer(self, order: Order, steering: Steering) -> Answer:
        """Revert or extend placements, or release a workload, as the commands of these names do: all, or none."""
        first, by = self.working_plan.position, order.author.name
        if steering.workload is not None:
            return self._release_workload(order, steering.workload, steering)
        placements: list[Placement] = []
        for path in steering.paths:
            placement = self.inputs.ledger.placements.get(path)
            stands = placement is not None and placement in self.working_plan.of(placement.workload)
            if placement is None or not stands or not order.may(placement.workload.workspace):
                return _invalid(f"{path} has just been changed or ended", "look at it, and try again")
            placements.append(placement)
        try:
            for placement in placements:
                if order.verb is Verb.REVERT:
                    revert_on_request(
                        self.inputs,
                        self.working_plan,
                        placement,
                        by=by,
                        reason=steering.reason,
                        everywhere=steering.everywhere,
                        author=order.author,
                    )
                else:
                    until = steering.until or moved_end(placement, steering.by or timedelta())
                    extend_on_request(
                        self.inputs,
                        self.working_plan,
                        placement,
                        until,
                        by=by,
                        reason=steering.reason,
                        author=order.author,
                    )
        except InvalidInput as error:
            return _invalid(str(error), workload=placements[0].workload)
        return Answer(change=self.working_plan.position - 1, first=first, workload=placements[0].workload)

    def _rule(self, order: Order, ruling: Ruling) -> Answer:
        """Approve or refuse a proposal as the commands of these names do, or note its pull request."""
        first, workload = self.working_plan.position, ruling.workload
        if not order.may(workload.workspace):
            return Answer(denial=Denial.MISSING, message=f"nothing of {workload} is proposed")
        try:
            rule_on_order(self.inputs, self.working_plan, order, ruling)
        except InvalidInput as error:
            return _invalid(str(error), workload=workload)
        last = self.working_plan.position - 1
        return Answer(change=last, first=first, workload=workload) if last >= first else Answer(workload=workload)

    def _release_workload(self, order: Order, workload: WorkloadId, steering: Steering) -> Answer:
        """End what holds a workload back."""
        position = self.working_plan.position
        if not order.may(workload.workspace):
            return _invalid(f"{workload} is of a workspace that you may not change", workload=workload)
        try:
            release_on_request(
                self.inputs, self.working_plan, workload, steering.cluster, by=order.author, reason=steering.reason
            )
        except InvalidInput as error:
            return _invalid(str(error), workload=workload)
        return Answer(change=position, first=position, workload=workload)

    # why not

    def _of_a_file(self, record: RequestRecord, verb: str) -> Answer:
        asked = self.inputs.desired.requests.get(record.workload)
        where = f"{asked.path}:{asked.line}" if asked is not None and asked.path else "a file of the fleet repository"
        message = f"{record.workload} is asked for by {where}"
        return _invalid(message, f"{verb} it there, by a pull request", workload=record.workload)

    def _unreadable(self, workload: WorkloadId) -> Answer:
        message = f"the record of {workload} on the output branch cannot be read"
        return _invalid(message, "mend the file that the problems name", workload=workload)


def _visible_workspaces(
    workspaces: Mapping[WorkspaceName, Workspace], order: Order, named: WorkspaceName | None
) -> Mapping[WorkspaceName, Workspace]:
    """Return the workspaces that an order may be about, or all of them where it names one of those."""
    if named is not None and named in workspaces and order.may(named):
        return workspaces
    return {name: workspace for name, workspace in workspaces.items() if order.may(name)}


def _draft_value(draft: RequestDraft, field_name: str) -> str | None:
    return draft.name if field_name == "name" else draft.workspace


def _record_value(record: RequestRecord, field_name: str) -> str:
    return record.request.name if field_name == "name" else record.request.workspace


def _written_or_denied(record: RequestRecord) -> bytes | Answer:
    """Write a record, or deny its order: an order that was accepted has to be carried out."""
    try:
        return write_request(record)
    except (InvalidInput, UnicodeError) as error:
        return _invalid(str(error), workload=record.workload)


def _invalid(message: str, hint: str = "", workload: WorkloadId | None = None) -> Answer:
    """Deny an order that contradicts the rules or the state."""
    problem = Problem(path=_PLACE, message=message, hint=hint)
    text = f"{message} ({hint})" if hint else message
    return Answer(denial=Denial.INVALID, message=text, workload=workload, problems=(problem,))


def _invalid_body(findings: Iterable[Finding], workload: WorkloadId | None = None) -> Answer:
    """Deny an order with an invalid body."""
    problems = tuple(finding.problem(path=_PLACE, line=0) for finding in findings)
    message = "; ".join(str(replace(problem, path="")) for problem in problems)
    return Answer(denial=Denial.INVALID, message=message, workload=workload, problems=problems)


def _immutable(fields: Sequence[str], why: str, workload: WorkloadId, hint: str) -> Answer:
    """Deny a change of fields that the state of a placement fixes."""
    names = join_names(fields)
    problems = tuple(Problem(path=_PLACE, field=name, message=f"cannot change: {why}", hint=hint) for name in fields)
    message = f"{names} cannot change: {why}"
    return Answer(denial=Denial.INVALID_UPDATE, message=message, hint=hint, workload=workload, problems=problems)


def _bug_answer(bug: Bug) -> Answer:
    """Answer an order that could not be judged, since an exception that nothing foresaw got in the way."""
    return Answer(denial=Denial.BUG, message=bug.summary)


def _deletion_restriction(status: Provisioning, workload: WorkloadId) -> Answer:
    """Deny an end as EGS does."""
    message = f"{workload} is {status}, and what has been provisioned is not deleted here"
    if status is Provisioning.SUCCESSFUL:
        hint = "it ends when its burstDuration is over; a shorter one ends it sooner, and so does `overspill revert`"
    else:
        hint = "it stays on record; ask for the next one under another name"
    return Answer(denial=Denial.DELETION_RESTRICTED, message=message, hint=hint, workload=workload)
