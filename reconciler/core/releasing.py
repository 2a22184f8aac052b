"""What becomes of a request when one of its placements has ended: it goes on, waits again, or is closed for good.

A closed request stays in the ledger, and nothing of it begins again.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.enrolling import end_of
from reconciler.core.reach import Rung
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.wording import clause, count
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Amend, Close, Why
from reconciler.model.request import Ended, Provisioning, RequestRecord
from reconciler.model.units import format_duration


def released(situation: Situation, standing: Standing, placement: Placement, why: Why, detail: str) -> None:
    """Draw the consequences for a request of which a placement has just ended."""
    record = standing.requests.get(placement.workload)
    if record is None or record.ended is not None:
        return
    others = bool(standing.of(placement.workload))
    match why:
        # 1. Its time is over.
        case Why.EXPIRED:
            if not others:
                close(situation, standing, record, Provisioning.COMPLETED, detail)
        # 2. It did not get well: the next cluster, where it may have another one.
        case Why.FAILED:
            _fail(situation, standing, record, placement, detail, others=others)
        # 3. A person wants it no more on this cluster, or nobody uses it there.
        case Why.REQUESTED | Why.IDLE if others:
            standing.change(Amend(before=record, after=_without(situation, record, placement), detail=detail))
        case Why.REQUESTED | Why.IDLE:
            close(situation, standing, record, Provisioning.COMPLETED, detail)
        # 4. It may not stay where it was: it waits for another place until its time is over.
        case _:
            pass


def close(situation: Situation, standing: Standing, record: RequestRecord, status: Provisioning, message: str) -> None:
    """Let a request end for good."""
    ended = Ended(status=status, at=situation.now, message=clause(message))
    standing.change(Close(before=record, after=replace(record, changed_at=situation.now, ended=ended)))


def close_what_is_over(situation: Situation, standing: Standing) -> None:
    """Close the open requests without a placement that have had their time, or have failed wherever they might go."""
    enrolment = situation.enrolment
    if enrolment is None:
        return
    for workload in sorted({*enrolment.lacking(situation.ledger.placements), *standing.touched()}):
        record = standing.requests.get(workload)
        if record is None or record.ended is not None or standing.of(workload) or workload not in enrolment.entries:
            continue
        end = end_of(record, situation.desired)
        if end is not None and end <= situation.now and record.began_at is not None:
            lasted = format_duration(end - record.began_at)
            close(situation, standing, record, Provisioning.COMPLETED, f"its {lasted} are over")
        elif record.attempts and not enrolment.short(workload, 0):
            close(situation, standing, record, Provisioning.FAILED, "no other cluster is left to try")


def astray(situation: Situation, standing: Standing, workload: WorkloadId) -> str:
    """Say why placements of a request that is not carried out may not stay; empty where they do until they expire.

    What cannot be read proves nothing.
    """
    if workload in situation.ledger.blocked:
        return ""
    record = standing.requests.get(workload)
    if record is None:
        return f"request {workload} is no longer in the ledger"
    if record.ended is not None:
        return f"request {workload} has ended"
    if workload.workspace not in situation.desired.workspaces and not situation.desired.incomplete:
        return f"workspace {workload.workspace} is no longer in the fleet repository"
    return ""


def _fail(
    situation: Situation, standing: Standing, record: RequestRecord, placement: Placement, detail: str, *, others: bool
) -> None:
    """Avoid the cluster from here on. What failed everywhere it was begins anew on another one, where there is one.

    A restart is no reason to try a cluster twice: the ledger knows where it failed.
    """
    after = replace(_without(situation, record, placement), attempts=record.attempts + 1)
    failed = f"failed on {placement.cluster}: {clause(detail)}"
    if others:
        standing.change(Amend(before=record, after=after, detail=failed))
        return
    left = {rung.cluster for rung in _order(situation, record)} - {*after.avoids}
    chooses = record.request.placements is not None or not record.request.clusters
    if left and (record.request.terms.requeue or chooses):
        again = f"{failed}; it waits for another of {count(len(left), 'cluster')}"
        standing.change(Amend(before=record, after=replace(after, began_at=None), detail=again))
        return
    close(situation, standing, after, Provisioning.FAILED, failed)


def _order(situation: Situation, record: RequestRecord) -> tuple[Rung, ...]:
    return situation.reach.order(record.workload) if record.workload in situation.desired.policies else ()


def _without(situation: Situation, record: RequestRecord, placement: Placement) -> RequestRecord:
    """Note that a request is not to come back to a cluster."""
    avoids = tuple(dict.fromkeys((*record.avoids, placement.cluster)))
    return replace(record, changed_at=situation.now, avoids=avoids)
