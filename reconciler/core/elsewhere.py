"""What a workload has elsewhere, in words: what runs there, what waits there for a node, and what moves on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.core import headcount
from reconciler.core.situation import PassInput
from reconciler.core.wording import plain
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Move, Plan, Resize, Revert


def describe_elsewhere(inputs: PassInput, placements: Iterable[Placement]) -> str:
    """Say how many replicas run elsewhere, and where some are seen to wait for a node instead."""
    runs, waiting = 0, list[str]()
    for one in placements:
        seen = inputs.observed.clusters.get(one.cluster)
        # Pods that an engine has not taken away yet are no replicas any more.
        homeless = 0
        if seen is not None:
            homeless = max(0, min(headcount.waiting(one, seen), one.replicas - headcount.bound(one, seen)))
        runs += one.replicas - homeless
        if homeless:
            waiting.append(f"{homeless} waiting for a node on {plain(one.where)}")
    return ", ".join((f"{runs} run elsewhere", *waiting))


def moving(workload: WorkloadId, plan: Plan) -> Iterator[str]:
    """Say what of a workload moves on, since it found no node for too long."""
    for change in plan.changes:
        match change:
            case (
                Resize(before=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE, reason=why))
                | Move(before=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE, reason=why))
                | Revert(placement=left, restraint=Restraint(kind=RestraintKind.UNSCHEDULABLE, reason=why))
            ) if left.workload == workload:
                goes = left.replicas - (change.after.replicas if isinstance(change, Resize) else 0)
                yield f"{why}; {goes} of {plain(left.where)} move on to another subset now."
            case _:
                pass
