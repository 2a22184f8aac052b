"""Whose placements are not as people allow them: on a cluster that they may not be on, or above a limit.

Nearly always nobody's, and the answer follows from the fleet repository and the output branch alone. So it is worked
out anew only where one of them has changed, and a pass in which nothing has changed looks at no placement for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.core.reach import ClusterOrder
from reconciler.core.situation import PassInput
from reconciler.core.standing import WorkingPlan
from reconciler.model.ids import WorkloadId
from reconciler.model.placements import PlacementGroup, Placements
from reconciler.model.policy import Desired


def overstepping(inputs: PassInput, working_plan: WorkingPlan) -> tuple[WorkloadId, ...]:
    """List the workloads, by name, whose placements may have to be moved or cut back, whatever is seen.

    A superset: what this pass has changed already is among them, and so is all that a WorkloadSpread governs, whose
    quotas depend on what runs on the primary cluster.
    """
    found = _LAST.of(inputs.desired, inputs.reach, inputs.ledger.placements)
    return tuple(sorted(workload for workload in {*found, *working_plan.altered()} if working_plan.of(workload)))


class _Overstepping:
    """What was found last, and of what, set at once for whoever asks meanwhile. Losing it costs time alone."""

    def __init__(self) -> None:
        self._last: tuple[ClusterOrder, Placements, frozenset[WorkloadId]] | None = None

    def of(self, desired: Desired, reach: ClusterOrder, placements: Placements) -> frozenset[WorkloadId]:
        touched, found = None, frozenset[WorkloadId]()
        if self._last is not None and self._last[0] is reach:
            touched, found = placements.touched_since(self._last[1]), self._last[2]
        if touched is None:
            found = frozenset(_among(placements.workloads(), desired, reach, placements))
        elif touched:
            found = found.difference(touched).union(_among(touched, desired, reach, placements))
        self._last = reach, placements, found
        return found


_LAST = _Overstepping()


def _among(
    workloads: Iterable[WorkloadId], desired: Desired, reach: ClusterOrder, placements: Placements
) -> Iterable[WorkloadId]:
    return (workload for workload in workloads if not _within(workload, placements.of(workload), desired, reach))


def _within(workload: WorkloadId, lent: PlacementGroup, desired: Desired, reach: ClusterOrder) -> bool:
    policy = desired.policies.get(workload)
    if policy is None or workload not in desired.templates or policy.spread is not None:
        return False
    if not lent.clusters <= reach.allowed(workload):
        return False
    tightest = reach.tightest(workload)
    return (policy.max_replicas is None or lent.replicas <= policy.max_replicas) and (
        tightest is None or lent.most <= tightest
    )
