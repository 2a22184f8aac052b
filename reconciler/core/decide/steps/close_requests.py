"""What becomes of a request when one of its placements has ended: it goes on, waits again, or is closed for good.

A closed request stays in the ledger, and nothing of it begins again.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.decide.state.enrolment import end_of
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.cluster_order import Candidate
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Amend, Close, Why
from reconciler.model.request import Ended, Provisioning, RequestRecord
from reconciler.model.units import format_duration
from reconciler.text.wording import clause, count


def released(inputs: PassInput, working_plan: WorkingPlan, placement: Placement, why: Why, detail: str) -> None:
    """Draw the consequences for a request of which a placement has just ended."""
    record = working_plan.requests.get(placement.workload)
    if record is None or record.ended is not None:
        return
    others = bool(working_plan.of(placement.workload))
    match why:
        # 1. Its time is over.
        case Why.EXPIRED:
            if not others:
                close(inputs, working_plan, record, Provisioning.COMPLETED, detail)
        # 2. It did not get well: the next cluster, where it may have another one.
        case Why.FAILED:
            _fail(inputs, working_plan, record, placement, detail, others=others)
        # 3. A person wants it no more on this cluster, or nobody uses it there.
        case Why.REQUESTED | Why.IDLE if others:
            working_plan.change(Amend(before=record, after=_without(inputs, record, placement), detail=detail))
        case Why.REQUESTED | Why.IDLE:
            close(inputs, working_plan, record, Provisioning.COMPLETED, detail)
        # 4. It may not stay where it was: it waits for another place until its time is over.
        case _:
            pass


def close(
    inputs: PassInput, working_plan: WorkingPlan, record: RequestRecord, status: Provisioning, message: str
) -> None:
    """Let a request end for good."""
    ended = Ended(status=status, at=inputs.now, message=clause(message))
    working_plan.change(Close(before=record, after=replace(record, changed_at=inputs.now, ended=ended)))


def close_what_is_over(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Close the open requests without a placement that have had their time, or have failed wherever they might go."""
    enrolment = inputs.enrolment
    if enrolment is None:
        return
    for workload in sorted({*enrolment.lacking(inputs.ledger.placements), *working_plan.touched()}):
        record = working_plan.requests.get(workload)
        if record is None or record.ended is not None or working_plan.of(workload) or workload not in enrolment.entries:
            continue
        end = end_of(record, inputs.desired)
        if end is not None and end <= inputs.now and record.began_at is not None:
            lasted = format_duration(end - record.began_at)
            close(inputs, working_plan, record, Provisioning.COMPLETED, f"its {lasted} are over")
        elif record.attempts and not enrolment.short(workload, 0):
            close(inputs, working_plan, record, Provisioning.FAILED, "no other cluster is left to try")


def astray(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> str:
    """Say why placements of a request that is not carried out may not stay; empty where they do until they expire.

    What cannot be read proves nothing.
    """
    if workload in inputs.ledger.blocked:
        return ""
    record = working_plan.requests.get(workload)
    if record is None:
        return f"request {workload} is no longer in the ledger"
    if record.ended is not None:
        return f"request {workload} has ended"
    if workload.workspace not in inputs.desired.workspaces and not inputs.desired.incomplete:
        return f"workspace {workload.workspace} is no longer in the fleet repository"
    return ""


def _fail(
    inputs: PassInput,
    working_plan: WorkingPlan,
    record: RequestRecord,
    placement: Placement,
    detail: str,
    *,
    others: bool,
) -> None:
    """Avoid the cluster from here on. What failed everywhere it was begins anew on another one, where there is one.

    A restart is no reason to try a cluster twice: the ledger knows where it failed.
    """
    after = replace(_without(inputs, record, placement), attempts=record.attempts + 1)
    failed = f"failed on {placement.cluster}: {clause(detail)}"
    if others:
        working_plan.change(Amend(before=record, after=after, detail=failed))
        return
    left = {candidate.cluster for candidate in _order(inputs, record)} - {*after.avoids}
    chooses = record.request.placements is not None or not record.request.clusters
    if left and (record.request.terms.requeue or chooses):
        again = f"{failed}; it waits for another of {count(len(left), 'cluster')}"
        working_plan.change(Amend(before=record, after=replace(after, began_at=None), detail=again))
        return
    close(inputs, working_plan, after, Provisioning.FAILED, failed)


def _order(inputs: PassInput, record: RequestRecord) -> tuple[Candidate, ...]:
    return inputs.reach.order(record.workload) if record.workload in inputs.desired.policies else ()


def _without(inputs: PassInput, record: RequestRecord, placement: Placement) -> RequestRecord:
    """Note that a request is not to come back to a cluster."""
    avoids = tuple(dict.fromkeys((*record.avoids, placement.cluster)))
    return replace(record, changed_at=inputs.now, avoids=avoids)
