"""What a cluster was seen to have room for, and what others take of it in a pass before a workload has its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reconciler.core.seats import Site
from reconciler.core.wording import listed
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.plan import Change, Move, Place, Plan, Reason, Refusal, Resize


def outrun(plan: Plan, workload: WorkloadId, place: Site) -> Refusal | None:
    """Return why a cluster has no room for a workload in its turn, and who took some of it before; None if nobody did.

    For what is seen to have room there as the pass begins.
    """
    takers = sorted({str(one) for change in plan.changes for one in _takers(change, place[0]) if one != workload})
    refusals = (
        refusal
        for held in plan.suppressed
        if held.workload == workload and held.reason is Reason.NOTHING_FITS
        for refusal in held.refusals
        if (refusal.cluster, refusal.subset) == place and refusal.reason is Reason.NO_CAPACITY
    )
    refusal = next(refusals, None)
    if refusal is None or not takers:
        return None
    verb = "takes" if len(takers) == 1 else "take"
    return replace(refusal, message=f"{refusal.message}, after what {listed(takers)} {verb} in this pass")


def _takers(change: Change, cluster: ClusterName) -> Iterator[WorkloadId]:
    """Yield the workload that gets more of a cluster by a change."""
    match change:
        case Place(placement=after):
            more = True
        case Resize(before=before, after=after):
            more = after.replicas > before.replicas
        case Move(before=before, after=after):
            more = after.cluster != before.cluster
        case _:
            return
    if more and after.cluster == cluster:
        yield after.workload
