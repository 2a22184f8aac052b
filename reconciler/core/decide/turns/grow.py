"""Room on nodes that autoscalers may add, for what has no room on the nodes that are there.

A cluster that scales from zero has no node until a pod waits for one: the workload is placed there, its pods pend, and
the autoscaler acts. Existing room always comes first, and added nodes before anything is evicted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.ids import WorkloadId


def grow_if_short(
    working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId, take: Callable[[], None]
) -> Callable[[], None]:
    """Return a turn that is taken again with the nodes that autoscalers may add, where the others have no room."""
    if not finder.capacity.growing_clusters:
        return take
    return partial(_take, working_plan, finder, workload, take)


def _take(working_plan: WorkingPlan, finder: CandidateFinder, workload: WorkloadId, take: Callable[[], None]) -> None:
    take()
    if working_plan.unplaceable(workload) is None or not finder.may_grow(workload):
        return
    working_plan.retract(workload)
    with finder.capacity.grown():
        take()
