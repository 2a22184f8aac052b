"""Requests whose placements have ended: they go on with the others, wait again, or are closed for good.

A closed request stays in the ledger, and is never placed again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from reconciler.core.decide.state.enrolment import Enrolment, request_end
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Change
from reconciler.model.request import Ended, Provisioning, RequestRecord
from reconciler.model.tree import Identity
from reconciler.model.units import format_duration
from reconciler.text.wording import as_clause, count


def follow_end(
    inputs: PassInput,
    working_plan: WorkingPlan,
    placement: Placement,
    why: EndReason,
    detail: str,
    *,
    author: Identity | None = None,
) -> None:
    """Amend or close the request of a placement that has just ended; `author` is who asked for the end.

    A burst has no record in the ledger, and nothing of it is left to close.
    """
    record = working_plan.requests.get(placement.workload)
    if record is None or record.ended is not None:
        return
    others = bool(working_plan.of(placement.workload))
    match why:
        # 1. Its time is over.
        case EndReason.EXPIRED:
            if not others:
                close(inputs, working_plan, record, Provisioning.COMPLETED, detail)
        # 2. It failed: the next cluster is tried, where the request may use another one.
        case EndReason.FAILED:
            _fail(inputs, working_plan, record, placement, detail, others=others)
        # 3. A person ended it on this cluster, its GPUs were idle there, or it has run to completion there.
        case EndReason.REQUESTED | EndReason.IDLE | EndReason.SUCCEEDED if others:
            after = _without(inputs, record, placement)
            working_plan.change(
                Change(action=Action.AMEND, record_before=record, record=after, detail=detail, author=author)
            )
        case EndReason.REQUESTED | EndReason.IDLE | EndReason.SUCCEEDED:
            succeeded = why is EndReason.SUCCEEDED
            close(inputs, working_plan, record, Provisioning.COMPLETED, detail, author=author, succeeded=succeeded)
        # 4. It may not stay on its cluster: it waits for another one until its time is over.
        case _:
            pass


def close(
    inputs: PassInput,
    working_plan: WorkingPlan,
    record: RequestRecord,
    status: Provisioning,
    message: str,
    *,
    author: Identity | None = None,
    succeeded: bool = False,
) -> None:
    """Close a request for good."""
    ended = Ended(status=status, at=inputs.now, message=as_clause(message), succeeded=succeeded)
    after = replace(record, changed_at=inputs.now, ended=ended)
    working_plan.change(Change(action=Action.CLOSE, record_before=record, record=after, author=author))


def close_finished(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Close the open requests without a placement whose time is over, or that have failed on all of their clusters."""
    enrolment = inputs.enrolment
    for workload in sorted({*enrolment.unplaced_requests(inputs.ledger.placements), *working_plan.changed_workloads()}):
        working_plan.decide(workload, partial(_close_finished, inputs, working_plan, enrolment, workload))


def _close_finished(inputs: PassInput, working_plan: WorkingPlan, enrolment: Enrolment, workload: WorkloadId) -> None:
    record = working_plan.requests.get(workload)
    if record is None or record.ended is not None or working_plan.of(workload) or workload not in enrolment.entries:
        return
    end = request_end(record, inputs.desired)
    if end is not None and end <= inputs.now and record.began_at is not None:
        lasted = format_duration(end - record.began_at)
        close(inputs, working_plan, record, Provisioning.COMPLETED, f"its {lasted} are over")
    elif record.attempts and not enrolment.missing_placements(workload, 0):
        close(inputs, working_plan, record, Provisioning.FAILED, "no other cluster is left to try")


def why_unwanted(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> str:
    """Say why the placements of a request without a policy end; empty where they stay until they expire.

    A record that cannot be read is no reason.
    """
    if workload in inputs.ledger.blocked:
        return ""
    record = working_plan.requests.get(workload)
    if record is None:
        return f"request {workload} is no longer in the ledger"
    if record.ended is not None:
        return f"request {workload} has ended"
    if workload.workspace not in inputs.desired.workspaces and inputs.absence_counts:
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
    """Note that the cluster is to be avoided; a request that failed on all of its clusters begins again on another one.

    The ledger keeps the clusters where it failed, so that a restart tries none of them twice.
    """
    after = replace(_without(inputs, record, placement), attempts=record.attempts + 1)
    failed = f"failed on {placement.cluster}: {as_clause(detail)}"
    if others:
        working_plan.change(Change(action=Action.AMEND, record_before=record, record=after, detail=failed))
        return
    left = _clusters(inputs, record) - {*after.avoids}
    chooses = record.request.placements is not None or not record.request.clusters
    if left and (record.request.terms.requeue or chooses):
        again = f"{failed}; it waits for another of {count(len(left), 'cluster')}"
        working_plan.change(
            Change(action=Action.AMEND, record_before=record, record=replace(after, began_at=None), detail=again)
        )
        return
    close(inputs, working_plan, after, Provisioning.FAILED, failed)


def _clusters(inputs: PassInput, record: RequestRecord) -> frozenset[ClusterName]:
    return inputs.reach.named(record.workload) if record.workload in inputs.desired.policies else frozenset()


def _without(inputs: PassInput, record: RequestRecord, placement: Placement) -> RequestRecord:
    """Return a request's record with the cluster of a placement among those to be avoided."""
    avoids = tuple(dict.fromkeys((*record.avoids, placement.cluster)))
    return replace(record, changed_at=inputs.now, avoids=avoids)
