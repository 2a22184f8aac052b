"""What stands now, as values: one row for each workload that may burst, each request, placement and cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.decide.steps import gang_health
from reconciler.core.explain import request_state
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import UnseenPrimary, unseen
from reconciler.core.workloads import replica_count
from reconciler.daemon.reconcile import View
from reconciler.errors import Problem
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId
from reconciler.model.placement import Phase, Placement
from reconciler.model.plan import Suppressed
from reconciler.model.policy import Cluster, EngineName
from reconciler.model.request import Asker, Provisioning
from reconciler.model.rollout import EngineState


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadStatus:
    """One workload that may burst."""

    workload: WorkloadId
    primary: ClusterName
    policy: str
    wanted: int | None
    """None, as `running` and `deficit`, where its primary is unseen."""
    running: int | None
    deficit: int | None
    placed: int
    message: str
    """Why its primary is unseen; empty where it is seen."""
    suppressed: tuple[Suppressed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStatus:
    """One request: who made it, where it is, and how it stands."""

    request: WorkloadId
    asker: Asker
    author: str
    clusters: tuple[ClusterName, ...]
    """Clusters that it names."""
    placed: tuple[ClusterName, ...]
    """Clusters where it is."""
    provisioning_status: Provisioning
    phase: Phase
    message: str
    received_at: datetime
    began_at: datetime | None
    ends_at: datetime | None
    """None before it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementStatus:
    """One placement: its health, its nodes, and the time that it has left."""

    placement: Placement
    phase: Phase
    provisioning: Provisioning
    """Whether its replicas have nodes."""
    engine: EngineState | None
    """What its engine reports of the version that stands; None where no engine does."""
    message: str
    """Why it is not healthy, since `unhealthy_since`."""
    unhealthy_since: datetime | None
    bound: int | None
    """Replicas that have a node; None where the cluster is unseen."""
    left: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingStatus:
    """What is still in a cluster of a placement that has ended: its engine's object, or pods."""

    cluster: ClusterName
    name: PlacementName
    pods: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """One cluster: how it is reached, and when it was last seen."""

    cluster: ClusterName
    engine: EngineName
    connection: str
    """What the Cluster says, or the context of its name; empty where observations are pushed or come from files."""
    observed_at: datetime | None
    reporting: bool
    """Whether its engine reports all placements there."""
    message: str
    """Why it counts as unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """The fleet at one moment."""

    now: datetime
    workloads: tuple[WorkloadStatus, ...]
    requests: tuple[RequestStatus, ...]
    placements: tuple[PlacementStatus, ...]
    leaving: tuple[LeavingStatus, ...]
    clusters: tuple[ClusterStatus, ...]
    problems: tuple[Problem, ...]
    wake_at: datetime | None


def status(view: View) -> FleetStatus:
    """Sum up what a pass saw, before anything of its plan is carried out."""
    placed: dict[WorkloadId, int] = {}
    rows: list[PlacementStatus] = []
    for _, placement in sorted(view.ledger.placements.items()):
        placed[placement.workload] = placed.get(placement.workload, 0) + placement.replicas
        rows.append(placement_status(view, placement))
    return FleetStatus(
        now=view.now,
        workloads=tuple(
            _workload(view, workload, placed.get(workload, 0))
            for workload, template in sorted(view.desired.templates.items(), key=lambda item: item[0])
            if not template.request
        ),
        requests=tuple(_requests(view)),
        placements=tuple(rows),
        leaving=tuple(_leaving(view)),
        clusters=tuple(_cluster(view, cluster) for _, cluster in sorted(view.desired.clusters.items())),
        problems=(*view.desired.problems, *view.ledger.problems, *view.observed.problems),
        wake_at=view.plan.wake_at,
    )


def _requests(view: View) -> Iterator[RequestStatus]:
    """Tell how each request stands, by name."""
    held = request_state.suppressed_by_request(view.plan)
    for workload, record in view.ledger.requests.items():
        state = request_state.state_of_request(record, view, held.get(workload, ()))
        yield RequestStatus(
            request=workload,
            asker=record.asker,
            author=record.author,
            clusters=record.request.clusters,
            placed=tuple(placement.cluster for placement in state.placements),
            provisioning_status=state.provisioning,
            phase=state.phase,
            message=state.message,
            received_at=record.received_at,
            began_at=record.began_at,
            ends_at=state.ends_at,
        )


def placement_status(view: View, placement: Placement) -> PlacementStatus:
    """Tell how one placement stands."""
    observation = view.observed.clusters.get(placement.cluster)
    bound = replica_count.bound_replicas(placement, observation) if observation else None
    arrived = view.rollouts.has_arrived(placement)
    ailment = view.rollouts.ailing.get(placement.path)
    provided = arrived or (bound or 0) >= placement.replicas
    reported = placement.path in view.observed.reports and arrived
    return PlacementStatus(
        placement=placement,
        phase=lifecycle.phase(placement, bound or 0, well=gang_health.is_healthy(view, placement)),
        provisioning=Provisioning.SUCCESSFUL if provided else Provisioning.PENDING,
        engine=ailment.state if ailment else (EngineState.HEALTHY if reported else None),
        message=gang_health.describe_partial_gang(view, placement) or (ailment.message if ailment else ""),
        unhealthy_since=ailment.since if ailment else None,
        bound=bound,
        left=max(timedelta(), placement.expires_at - view.now),
    )


def _leaving(view: View) -> Iterator[LeavingStatus]:
    """Tell what is still there of placements that have ended, by cluster and name."""
    messages = {(report.cluster, report.placement): report.message for report in view.rollouts.leaving}
    pods: dict[tuple[ClusterName, PlacementName], int] = {}
    for cluster, observation in view.observed.clusters.items():
        working_plan = {placement.name for placement in view.ledger.placements.on(cluster).placements}
        for name in {*observation.bound, *observation.homeless} - working_plan:
            homeless = observation.homeless.get(name)
            pods[cluster, name] = observation.bound.get(name, 0) + (homeless.replicas if homeless else 0)
    for cluster, name in sorted({*messages, *pods}):
        yield LeavingStatus(
            cluster=cluster, name=name, pods=pods.get((cluster, name), 0), message=messages.get((cluster, name), "")
        )


def _cluster(view: View, cluster: Cluster) -> ClusterStatus:
    observation = view.observed.clusters.get(cluster.name)
    watched = view.observed.reached_by.get(cluster.name, "")
    return ClusterStatus(
        cluster=cluster.name,
        engine=cluster.engine,
        connection=watched if cluster.connection is None else str(cluster.connection),
        observed_at=None if observation is None else observation.observed_at,
        reporting=cluster.name in view.observed.reporting,
        message=unseen(view.desired.fleet, view.observed, cluster.name, view.now),
    )


def _workload(view: View, workload: WorkloadId, placed: int) -> WorkloadStatus:
    demand = view.demands.get(workload)
    policy = view.desired.policies.get(workload)
    seen = demand if isinstance(demand, Demand) else None
    if isinstance(demand, UnseenPrimary):
        message = demand.message
    else:
        message = "" if demand else "does not burst: no policy covers it, or nothing says which object is counted"
    return WorkloadStatus(
        workload=workload,
        primary=view.desired.workspaces[workload.workspace].primary,
        policy=policy.name if policy else "",
        wanted=seen.wanted if seen else None,
        running=seen.running if seen else None,
        deficit=seen.missing if seen else None,
        placed=placed,
        message=message,
        suppressed=tuple(suppression for suppression in view.plan.suppressed if suppression.workload == workload),
    )
