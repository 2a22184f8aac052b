"""The current state as values: a row for each workload that may burst, each request, placement and cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.candidates import gang_health
from reconciler.core.engines import ENGINES
from reconciler.core.engines.reports import SELECTOR
from reconciler.core.explain import request_state
from reconciler.core.explain.blocked import describe_blocked
from reconciler.core.explain.provisioning import provisioning_of_burst
from reconciler.core.explain.summary import spare_replicas
from reconciler.core.ledger import lifecycle
from reconciler.core.ledger.proposal_record import approvals_of
from reconciler.core.observe.demand import UnseenPrimary, unseen
from reconciler.core.workloads import replica_count
from reconciler.daemon.reconcile import PassDecision
from reconciler.errors import Bug, Problem
from reconciler.model.budget import BudgetState
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId
from reconciler.model.placement import Phase, Placement
from reconciler.model.plan import Suppressed
from reconciler.model.policy import Cluster, EngineName
from reconciler.model.request import Asker, Provisioning, RequestRecord
from reconciler.model.rollout import EngineReport, EngineState
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadStatus:
    """A workload that may burst."""

    workload: WorkloadId
    primary: ClusterName
    policy: str
    wanted: int | None
    """None, as `running` and `deficit`, where its primary is unseen."""
    running: int | None
    deficit: int | None
    placed: int
    spare: int
    """The placed replicas that nothing misses, which headroom or a forecast wants beforehand."""
    message: str
    """Why its primary is unseen, which of several objects is counted, or what its pods wait for that is no lack of
    room; empty where there is nothing to say."""
    suppressed: tuple[Suppressed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStatus:
    """A request: its author, its placements and its status."""

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
    """A placement: its health, its nodes, and its remaining time."""

    placement: Placement
    phase: Phase
    provisioning: Provisioning
    """Whether the replicas have nodes."""
    engine: EngineState | None
    """The report of its engine on the current version; None without a report."""
    message: str
    """Why it is not healthy, since `unhealthy_since`."""
    unhealthy_since: datetime | None
    bound: int | None
    """Replicas that have a node; None where the cluster is unseen."""
    left: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingStatus:
    """The remains of an ended placement in a cluster: its engine's object, or pods."""

    cluster: ClusterName
    name: PlacementName
    pods: int
    since: datetime | None
    """When the engine's object was first seen without its placement, since the daemon started; None for pods alone."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """A cluster: its connection, and its last observation."""

    cluster: ClusterName
    engine: EngineName | None
    """None of a partition of Slurm."""
    connection: str
    """The connection of the Cluster, or the context of its name; empty where observations are pushed or are files."""
    observed_at: datetime | None
    reporting: bool
    """Whether the cluster's engine reports all placements there."""
    message: str
    """Why it counts as unseen, or that it is a partition of Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """The fleet at one moment."""

    now: datetime
    workloads: tuple[WorkloadStatus, ...]
    requests: tuple[RequestStatus, ...]
    placements: tuple[PlacementStatus, ...]
    leaving: tuple[LeavingStatus, ...]
    clusters: tuple[ClusterStatus, ...]
    budgets: tuple[BudgetState, ...]
    problems: tuple[Problem, ...]
    wake_at: datetime | None


def status(decision: PassDecision) -> FleetStatus:
    """Sum up what a pass saw, before anything of its plan is carried out."""
    placed: dict[WorkloadId, int] = {}
    rows: list[PlacementStatus] = []
    bugs: list[Bug] = []

    def row(item: object, call: Callable[[], T]) -> Iterator[T]:
        """Yield a row, or nothing for an item of unknown status."""
        status = attempt(Seam.STATUS, item, call)
        if isinstance(status, Bug):
            bugs.append(status)
        else:
            yield status

    for path, placement in sorted(decision.inputs.ledger.placements.items()):
        placed[placement.workload] = placed.get(placement.workload, 0) + placement.replicas
        rows.extend(row(path, partial(placement_status, decision, placement)))
    workloads = tuple(
        status
        for workload, template in sorted(decision.inputs.desired.templates.items(), key=lambda item: item[0])
        if not template.request
        for status in row(workload, partial(_workload, decision, workload, placed.get(workload, 0)))
    )
    held = request_state.suppressed_by_request(decision.plan)
    requests = tuple(
        status
        for workload, record in decision.inputs.ledger.requests.items()
        for status in row(workload, partial(_request, decision, record, held.get(workload, ())))
    )
    clusters = tuple(
        status
        for name, cluster in sorted(decision.inputs.desired.clusters.items())
        for status in row(name, partial(cluster_status, decision, cluster))
    )
    reporting = {report.cluster for report in decision.inputs.rollouts.leaving}
    leaving = tuple(
        status
        for name in sorted({*decision.inputs.observed.clusters, *reporting})
        for statuses in row(f"cluster {name}", partial(_leaving_statuses, decision, name))
        for status in statuses
    )
    return FleetStatus(
        now=decision.inputs.now,
        workloads=workloads,
        requests=requests,
        placements=tuple(rows),
        leaving=leaving,
        clusters=clusters,
        budgets=decision.inputs.budgets.states,
        problems=(*decision.problems, *(bug.problem(bug.item) for bug in bugs)),
        wake_at=decision.plan.wake_at,
    )


def _request(decision: PassDecision, record: RequestRecord, held: Sequence[Suppressed]) -> RequestStatus:
    """Tell how a request stands."""
    state = request_state.state_of_request(record, decision.inputs, held)
    return RequestStatus(
        request=record.workload,
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


def placement_status(decision: PassDecision, placement: Placement) -> PlacementStatus:
    """Tell how one placement stands."""
    observation = decision.inputs.observed.clusters.get(placement.cluster)
    bound = replica_count.bound_replicas(placement, observation) if observation else None
    arrived = decision.inputs.rollouts.has_arrived(placement)
    ailment = decision.inputs.rollouts.ailing.get(placement.path)
    reported = placement.path in decision.inputs.observed.reports and arrived
    return PlacementStatus(
        placement=placement,
        phase=lifecycle.phase(placement, bound or 0, well=gang_health.is_healthy(decision.inputs, placement)),
        provisioning=provisioning_of_burst(placement, decision.inputs),
        engine=ailment.state if ailment else (EngineState.HEALTHY if reported else None),
        message="; ".join(
            part
            for part in (
                _describe_orphan(decision, placement),
                gang_health.describe_partial_gang(decision.inputs, placement) or (ailment.message if ailment else ""),
            )
            if part
        ),
        unhealthy_since=ailment.since if ailment else None,
        bound=bound,
        left=max(timedelta(), placement.expires_at - decision.inputs.now),
    )


def _describe_orphan(decision: PassDecision, placement: Placement) -> str:
    """Say what of the fleet repository a placement stands without, and how long it stays; empty for nothing."""
    desired = decision.inputs.desired
    ends = f"it ends at {format_time(placement.expires_at)} at the latest"
    broken = " (files that cannot be read keep it)" if desired.incomplete or not decision.inputs.absence_counts else ""
    if placement.cluster not in desired.clusters:
        return f"no file describes Cluster {placement.cluster} any more; {ends}{broken}"
    if not placement.workload.request and placement.workload not in desired.templates:
        return f"its template is in no file any more; {ends}{broken}"
    return ""


def _leaving_statuses(decision: PassDecision, cluster: ClusterName) -> tuple[LeavingStatus, ...]:
    """List the remains of ended placements on a cluster, by name."""
    reports = {each.placement: each for each in decision.inputs.rollouts.leaving if each.cluster == cluster}
    since = {name: decision.inputs.rollouts.leaving_since(report) for name, report in reports.items()}
    pods: dict[PlacementName, int] = {}
    observation = decision.inputs.observed.clusters.get(cluster)
    if observation is not None:
        recorded = {placement.name for placement in decision.inputs.ledger.placements.on(cluster).placements}
        for name in {*observation.bound, *observation.pending_pods} - recorded:
            pending_pods = observation.pending_pods.get(name)
            waiting = pending_pods.replicas - pending_pods.uncreated if pending_pods else 0
            pods[name] = observation.bound.get(name, 0) + waiting
    return tuple(
        LeavingStatus(
            cluster=cluster,
            name=name,
            pods=pods.get(name, 0),
            since=since.get(name),
            message=_describe_remains(decision, reports[name]) if name in reports else "",
        )
        for name in sorted({*reports, *pods})
    )


def _describe_remains(decision: PassDecision, report: EngineReport) -> str:
    """Return the engine's words, and for an object that nobody removes the command that does."""
    if not decision.inputs.rollouts.is_overdue(report, decision.inputs.now):
        return report.message
    told = f"{report.message}; " if report.message else ""
    if report.leaving:
        return f"{told}it is being deleted, and a finalizer of it waits"
    desired = decision.inputs.desired
    cluster = desired.clusters.get(report.cluster)
    source = None if cluster is None else ENGINES[cluster.engine].cluster_reports(desired.fleet, cluster.name)
    if source is None:
        return f"{told}its engine does not remove it"
    resource = next(iter(source.objects().parts))
    return (
        f"{told}its engine does not remove it: `kubectl delete {resource.full_name} -n {source.namespace}"
        f" -l {SELECTOR}={report.placement}` does, and all that it has applied"
    )


def cluster_status(decision: PassDecision, cluster: Cluster) -> ClusterStatus:
    """Tell how one cluster is seen."""
    if cluster.slurm is not None:
        return ClusterStatus(
            cluster=cluster.name,
            engine=None,
            connection="",
            observed_at=None,
            reporting=False,
            message=cluster.slurm.description,
        )
    observation = decision.inputs.observed.clusters.get(cluster.name)
    watched = decision.inputs.observed.reached_by.get(cluster.name, "")
    return ClusterStatus(
        cluster=cluster.name,
        engine=cluster.engine,
        connection=watched if cluster.connection is None else str(cluster.connection),
        observed_at=None if observation is None else observation.observed_at,
        reporting=cluster.name in decision.inputs.observed.reporting,
        message=unseen(decision.inputs.desired.fleet, decision.inputs.observed, cluster.name, decision.inputs.now),
    )


def _workload(decision: PassDecision, workload: WorkloadId, placed: int) -> WorkloadStatus:
    demand = decision.inputs.demands.get(workload)
    policy = decision.inputs.desired.policies.get(workload)
    seen = demand if isinstance(demand, Demand) else None
    if isinstance(demand, UnseenPrimary):
        message = demand.message
    else:
        message = seen.note if seen and seen.reported else ""
        message = message if demand else "does not burst: no policy covers it, or nothing says which object is counted"
        blocked = describe_blocked(seen) if seen else ()
        message = "; ".join(part for part in (message, *map(as_clause, blocked)) if part)
    proposal = decision.inputs.ledger.proposals.get(workload)
    if proposal is not None and approvals_of(decision.inputs.ledger, proposal):
        message = "; ".join(filter(None, ("approved, not yet placed", message)))
    return WorkloadStatus(
        workload=workload,
        primary=decision.inputs.desired.workspaces[workload.workspace].primary,
        policy=policy.name if policy else "",
        wanted=seen.wanted if seen else None,
        running=seen.running if seen else None,
        deficit=seen.needed if seen else None,
        placed=placed,
        spare=spare_replicas(seen, placed) if seen else 0,
        message=message,
        suppressed=tuple(suppression for suppression in decision.plan.suppressed if suppression.workload == workload),
    )
