"""What stands now, as values: one row for each workload that may burst and one for each placement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core import lifecycle
from reconciler.core.demand import Blind
from reconciler.daemon.reconcile import View
from reconciler.errors import Problem
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Phase, Placement
from reconciler.model.plan import Suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadStatus:
    """One workload. The counts are None where its primary cannot be seen, and `message` says why."""

    workload: WorkloadId
    primary: ClusterName
    policy: str
    wanted: int | None
    running: int | None
    deficit: int | None
    placed: int
    message: str
    suppressed: tuple[Suppressed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementStatus:
    """One placement, how many of its replicas have a node there (None: unseen), and how long it still has."""

    placement: Placement
    phase: Phase
    bound: int | None
    left: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The fleet at one moment."""

    now: datetime
    workloads: tuple[WorkloadStatus, ...]
    placements: tuple[PlacementStatus, ...]
    problems: tuple[Problem, ...]
    wake_at: datetime | None


def status(view: View) -> Status:
    """Sum up what a pass saw, before anything of its plan is carried out."""
    placed: dict[WorkloadId, int] = {}
    rows: list[PlacementStatus] = []
    for _, placement in sorted(view.ledger.placements.items()):
        placed[placement.workload] = placed.get(placement.workload, 0) + placement.replicas
        observation = view.observed.clusters.get(placement.cluster)
        bound = observation.bound.get(placement.name, 0) if observation else None
        rows.append(
            PlacementStatus(
                placement=placement,
                phase=lifecycle.phase(placement, bound or 0),
                bound=bound,
                left=max(timedelta(), placement.expires_at - view.now),
            )
        )
    return Status(
        now=view.now,
        workloads=tuple(
            _workload(view, workload, placed.get(workload, 0)) for workload in sorted(view.desired.templates)
        ),
        placements=tuple(rows),
        problems=(*view.desired.problems, *view.ledger.problems, *view.observed.problems),
        wake_at=view.plan.wake_at,
    )


def _workload(view: View, workload: WorkloadId, placed: int) -> WorkloadStatus:
    demand = view.demands.get(workload)
    policy = view.desired.policies.get(workload)
    known = demand if isinstance(demand, Demand) else None
    if isinstance(demand, Blind):
        message = demand.message
    else:
        message = "" if demand else "does not burst: no policy covers it, or nothing says which object is counted"
    return WorkloadStatus(
        workload=workload,
        primary=view.desired.workspaces[workload.workspace].primary,
        policy=policy.name if policy else "",
        wanted=known.wanted if known else None,
        running=known.running if known else None,
        deficit=known.deficit if known else None,
        placed=placed,
        message=message,
        suppressed=tuple(one for one in view.plan.suppressed if one.workload == workload),
    )
