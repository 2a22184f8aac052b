"""Requests by files of the fleet repository, received into the ledger and followed there.

The rule is level-triggered: only the current files and records count. A file without a record is a new request; a
record without its file is a request that was withdrawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from reconciler.core.capacity.pod_requirements import request_requirements
from reconciler.core.decide.state.enrolment import notes, observed_clusters, request_duration
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import make_revert, revert
from reconciler.core.ledger.request_record import differences, digest_of
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import WorkloadId
from reconciler.model.plan import Change, Reason, Suppressed
from reconciler.model.request import Asker, Request, RequestRecord
from reconciler.model.tree import Identity
from reconciler.model.units import format_duration
from reconciler.model.workload import DeletionPolicy
from reconciler.text.wording import as_clause, join_names

CHANGEABLE = frozenset({"burstDuration", "deletionPolicy"})
"""The fields of a request with a placement that may change, as in EGS (docs/reference/egs.md, R20)."""


def follow_request_files(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Take new requests into the ledger, follow those whose files have changed, and let go of those without one."""
    for workload in inputs.enrolment.changed_requests():
        working_plan.decide(workload, partial(_follow_file, inputs, working_plan, workload))


def _follow_file(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> None:
    asked, record = inputs.desired.requests.get(workload), working_plan.requests.get(workload)
    # 1. The record cannot be read, so that a new request cannot be told from an old one.
    if workload in inputs.ledger.blocked:
        message = "its record on the output branch cannot be read; see the problems"
        working_plan.suppress(Suppressed(workload=workload, reason=Reason.LEDGER_UNREADABLE, message=message))
    # 2. The request is new.
    elif asked is not None and record is None:
        _receive(inputs, working_plan, asked)
    # 3. The file is gone; a file that cannot be read proves nothing.
    elif asked is None and record is not None:
        if record.asker is Asker.FILE and inputs.absence_counts:
            forget(inputs, working_plan, record, "its file is gone from the fleet repository")
    # 4. The file differs from the record.
    elif asked is not None and record is not None:
        _follow(inputs, working_plan, record, asked)


def forget(
    inputs: PassInput, working_plan: WorkingPlan, record: RequestRecord, detail: str, author: Identity | None = None
) -> None:
    """End whatever a request has, and take it out of the ledger."""
    for placement in working_plan.of(record.workload):
        working_plan.change(make_revert(inputs, placement, EndReason.REQUESTED, detail, author=author))
    working_plan.change(Change(action=Action.FORGET, record=record, detail=detail, author=author))


def amend(
    inputs: PassInput,
    working_plan: WorkingPlan,
    before: RequestRecord,
    after: RequestRecord,
    *,
    detail: str,
    author: Identity | None = None,
) -> None:
    """Change a request, and with it the expiry and the deletion policy of its placements.

    All of its placements end when the time of the request is over, counted from when the first of them was made.
    """
    working_plan.change(Change(action=Action.AMEND, record_before=before, record=after, detail=detail, author=author))
    lasts = request_duration(after.request, inputs.desired.limits.get(after.request.workspace))
    for placement in working_plan.of(after.workload):
        end = (after.began_at or placement.created_at) + lasts
        if end <= inputs.now:
            revert(inputs, working_plan, placement, EndReason.EXPIRED, f"its {format_duration(lasts)} are over")
            continue
        longer = replace(placement, expires_at=end, deletion_policy=after.request.spec.deletion_policy)
        if longer != placement:
            working_plan.change(
                Change(action=Action.EXTEND, before=placement, after=longer, detail=detail, author=author)
            )


def deletion_policy_problem(
    inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, policy: DeletionPolicy
) -> str:
    """Say why what a request has cannot be given a deletion policy; empty where nothing is known to be in the way.

    Engines keep or prune by what stands in each file, so all of them are written anew, charts included.
    """
    changed = (placement for placement in working_plan.of(workload) if placement.deletion_policy is not policy)
    problems = ((placement.cluster, inputs.unwritable.get((workload, placement.cluster))) for placement in changed)
    return "; ".join(f"{cluster}: {problem}" for cluster, problem in problems if problem)


def _receive(inputs: PassInput, working_plan: WorkingPlan, asked: Request) -> None:
    """Take a request into the ledger. If it has placements, its record got lost, and goes on from when they began."""
    placements = working_plan.of(asked.workload)
    record = RequestRecord(
        request=asked.settled,
        asker=Asker.FILE,
        author="",
        received_at=inputs.now,
        changed_at=inputs.now,
        source_commit=inputs.desired.commit,
        asked=digest_of(asked),
        began_at=min((placement.created_at for placement in placements), default=None),
        observed=observed_clusters(asked, inputs.desired),
    )
    unknown = request_requirements(asked, kinds=inputs.desired.kinds).unknown
    working_plan.change(Change(action=Action.RECEIVE, record=record, notes=notes(asked, inputs.desired, unknown)))


def _follow(inputs: PassInput, working_plan: WorkingPlan, record: RequestRecord, asked: Request) -> None:
    """Apply the changes of a file, as far as the state of the request allows."""
    workload, digest = record.workload, digest_of(asked)
    changed = differences(record.request, asked)
    # 1. The name was taken by the API.
    if record.asker is Asker.API:
        message = f"the API was asked for {workload} before a file was; give the file another name"
        working_plan.suppress(Suppressed(workload=workload, reason=Reason.REQUEST_FIXED, message=message))
    # 2. The request has ended.
    elif record.ended is not None:
        message = f"it is {record.ended.status} and does not begin again; ask for it again under another name"
        working_plan.suppress(Suppressed(workload=workload, reason=Reason.REQUEST_FIXED, message=message))
    # 3. The request waits: every field may change.
    elif not working_plan.of(workload):
        recorded = record.request
        stays = recorded.ask == asked.ask and recorded.clusters == asked.clusters  # of a reservation, where it is
        after = replace(
            record,
            request=asked.settled,
            changed_at=inputs.now,
            source_commit=inputs.desired.commit,
            asked=digest,
            cluster=record.cluster if stays else None,
            began_at=record.began_at if stays else None,
            avoids=() if changed else record.avoids,
            attempts=0 if changed else record.attempts,
            observed=observed_clusters(asked, inputs.desired, record.observed),
        )
        working_plan.change(Change(action=Action.AMEND, record_before=record, record=after, detail=_told(changed)))
    # 4. The request has a placement: its expiry and its deletion policy may change.
    else:
        _follow_placed(inputs, working_plan, record, asked, changed)


def _follow_placed(
    inputs: PassInput, working_plan: WorkingPlan, record: RequestRecord, asked: Request, changed: Sequence[str]
) -> None:
    recorded = record.request.spec
    unwritten = deletion_policy_problem(inputs, working_plan, record.workload, asked.spec.deletion_policy)
    policy = recorded.deletion_policy if unwritten else asked.spec.deletion_policy
    spec = replace(recorded, burst_duration=asked.spec.burst_duration, deletion_policy=policy)
    taken = [name for name in changed if name in CHANGEABLE and not (unwritten and name == "deletionPolicy")]
    fixed = [name for name in changed if name not in CHANGEABLE]
    later = bool(fixed or unwritten)
    after = replace(
        record,
        request=replace(record.request, spec=spec),
        changed_at=inputs.now,
        source_commit=inputs.desired.commit,
        asked=record.asked if later else digest_of(asked),
    )
    if spec != recorded or not later:
        amend(inputs, working_plan, record, after, detail=_told(taken))
    if unwritten:
        message = f"its deletionPolicy stays {policy} until its files can be written anew: {unwritten}"
        working_plan.suppress(Suppressed(workload=record.workload, reason=Reason.NOT_RENDERED, message=message))
    if fixed:
        message = (
            f"it has a placement, so {join_names(fixed)} cannot change;"
            " delete the file and ask for it again under another name"
        )
        working_plan.suppress(Suppressed(workload=record.workload, reason=Reason.REQUEST_FIXED, message=message))


def _told(changed: Sequence[str]) -> str:
    return (
        f"its file has changed: {as_clause(join_names(changed))}"
        if changed
        else "its file says the same in other words"
    )
