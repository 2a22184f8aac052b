"""Wait times for GPUs: free now, after a placement ends, after an autoscaler has added nodes, and behind the queue.

An estimate. Each placement is assumed to end at its time in git, and not before; the queue to take its GPUs as soon as
they fit; foreign pods to stay; and an autoscaler to add the nodes that its Cluster file declares, since its bounds
cannot be read from a cluster.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.gpu_requests import describe_gpus, gpu_shapes, missing_gpus
from reconciler.core.capacity.pod_needs import PodSet, request_requirements
from reconciler.core.capacity.room import ClusterCapacity
from reconciler.core.decide.candidates.cluster_obstacles import obstacle
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.gpr_terms import priority, recorded, requested
from reconciler.core.decide.candidates.reservations import reserved
from reconciler.core.decide.state.enrolment import end_of
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.workloads import replica_count
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.cluster import ScalableNodes
from reconciler.model.demand import Demand
from reconciler.model.gpr import GpuAsk
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason, Refusal, Revert, Why
from reconciler.model.policy import Cluster
from reconciler.model.request import Request
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count, join_names

_LAST = "~"
"""Sorts after the name of any pool, so that existing nodes are filled first."""
_HOSTNAME = "kubernetes.io/hostname"
"""The node label that kubelets set, with a value of its own for each node."""


def with_added_nodes(cluster: Cluster, seen: ClusterObservation, within: timedelta) -> ClusterObservation:
    """Add the nodes that the autoscaler of a cluster could add within a time, as if they were empty."""
    pools = [
        Pool(
            name=f"{_LAST}{index}",
            nodes=tuple(
                Node(
                    name=(name := f"{_LAST}{index}-{number}"),
                    free=nodes.allocatable,
                    allocatable=nodes.allocatable,
                    labels={_HOSTNAME: name},
                    pods=(),
                )
                for number in range(missing)
            ),
            labels=nodes.labels,
            taints=nodes.taints,
        )
        for index, (nodes, missing) in enumerate(addable_nodes(cluster, seen))
        if nodes.delay <= within
    ]
    return replace(seen, pools=(*seen.pools, *pools)) if pools else seen


def addable_nodes(cluster: Cluster, seen: ClusterObservation) -> Iterator[tuple[ScalableNodes, int]]:
    """Count the nodes of each kind that could still be added; existing ones that take no pods count as existing."""
    labels = [{**pool.labels, **node.labels} for pool in seen.pools for node in pool.nodes]
    labels += [dict(node.labels) for node in seen.closed]
    for nodes in cluster.autoscaling:
        present = sum(nodes.labels.items() <= label.items() for label in labels)
        if present < nodes.most:
            yield nodes, nodes.most - present


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDemand:
    """A demand for GPUs, in a workspace and with a priority."""

    workspace: WorkspaceName
    ask: GpuAsk
    priority: int
    # Empty for any cluster of the workspace.
    clusters: tuple[ClusterName, ...] = ()
    dedicated: bool = False
    # The asking workload if it waits already, and since when; a new one comes last of its priority.
    workload: WorkloadId | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEstimate:
    """The wait for GPUs on one cluster."""

    cluster: ClusterName
    # None if no known event frees enough.
    wait: timedelta | None
    at: datetime | None
    # The workloads that take GPUs there before it.
    ahead: tuple[WorkloadId, ...]
    # The events that it depends on, or the obstacles.
    reasons: tuple[str, ...]


def estimate_waits(asking: GpuDemand, inputs: PassInput, plan: Plan) -> tuple[WaitEstimate, ...]:
    """Estimate the wait on each cluster of the workspace, the shortest first, then by the order of the clusters."""
    workspace = inputs.desired.workspaces.get(asking.workspace)
    own = workspace.everywhere if workspace else ()
    named = asking.clusters or (workspace.clusters if workspace else ())
    ahead = _entries_ahead(asking, inputs, plan)
    wait_estimates = [
        _ClusterForecast(asking=asking, inputs=inputs, plan=plan, queue=ahead, name=name).wait()
        if name in own
        else _unknown_cluster(asking, name)
        for name in named
    ]
    return tuple(sorted(wait_estimates, key=lambda estimate: timedelta.max if estimate.wait is None else estimate.wait))


def write_wait(wait: timedelta) -> str:
    """Write a wait as EGS does: ``0h2m40s``."""
    minutes, seconds = divmod(max(0, int(wait.total_seconds())), 60)
    return f"{minutes // 60}h{minutes % 60}m{seconds}s"


def _unknown_cluster(asking: GpuDemand, name: ClusterName) -> WaitEstimate:
    """Report a cluster outside of the workspace; whether it exists is not disclosed."""
    reason = f"not a cluster of workspace {asking.workspace}"
    return WaitEstimate(cluster=name, wait=None, at=None, ahead=(), reasons=(reason,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueueEntry:
    """A queue entry: a request, or missing replicas of a known shape."""

    workload: WorkloadId
    request: Request | None
    shape: ReplicaShape | None
    replicas: int
    kinds: Kinds

    def parts(self, seen: ClusterObservation) -> tuple[PodSet, ...]:
        """Return the pods of the entry in a cluster."""
        if self.request is not None:
            return request_requirements(self.request, seen, kinds=self.kinds).parts
        return () if self.shape is None else (PodSet(shape=self.shape, replicas=self.replicas),)

    def wants_gpus(self, seen: ClusterObservation | None) -> bool:
        """Return whether it takes GPUs of a cluster; unknown needs, as of a chart, may."""
        if self.request is not None:
            needed = request_requirements(self.request, seen, kinds=self.kinds)
            return bool(needed.unknown) or any(gpus_of_pod(part.shape) for part in needed.parts)
        return self.shape is None or bool(gpus_of_pod(self.shape))


def _entries_ahead(asking: GpuDemand, inputs: PassInput, plan: Plan) -> tuple[_QueueEntry, ...]:
    """List the queue entries ahead: by priority, then by age."""
    queue: list[tuple[int, datetime, _QueueEntry]] = []
    for held in plan.suppressed:
        if held.reason is not Reason.NOTHING_FITS or held.workload == asking.workload:
            continue
        demand, request = inputs.demands.get(held.workload), requested(held.workload, inputs)
        record = recorded(inputs).get(held.workload)
        measured = demand if isinstance(demand, Demand) else None
        waited = [step.since for step in measured.waiting] if measured else []
        since = record.received_at if record else min(waited, default=inputs.now)
        ahead = _QueueEntry(
            workload=held.workload,
            request=request,
            shape=measured.shape if measured else None,
            replicas=held.replicas,
            kinds=inputs.desired.kinds,
        )
        queue.append((-priority(held.workload, inputs), since, ahead))
    place_in_queue = (-asking.priority, asking.since or datetime.max.replace(tzinfo=inputs.now.tzinfo))
    return tuple(
        ahead for urgency, since, ahead in sorted(queue, key=lambda each: each[:2]) if (urgency, since) < place_in_queue
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClusterForecast:
    """The forecast of one cluster for a demand."""

    asking: GpuDemand
    inputs: PassInput
    plan: Plan
    queue: tuple[_QueueEntry, ...]
    name: ClusterName

    def wait(self) -> WaitEstimate:
        """Return the first moment with enough capacity, among those at which capacity may grow."""
        refusal = obstacle(self.inputs, self.asking.workspace, self.name)
        if refusal is not None:
            return self._answer(None, refusal.message)
        cluster, seen = self.inputs.desired.clusters[self.name], self.inputs.observed.clusters[self.name]
        now = self.inputs.now
        delays = {now + nodes.delay for nodes, _ in addable_nodes(cluster, seen)}
        possible_shapes = gpu_shapes(self.asking.ask, self._grown(max({now, *delays})), dedicated=self.asking.dedicated)
        if not possible_shapes:
            return self._answer(None, missing_gpus(self.asking.ask, seen))
        working_plan, capped = self._working_plan(now), self._limited(possible_shapes, now) is not None
        ends = sorted(
            self._ending(working_plan, capped=capped), key=lambda placement: (placement.expires_at, placement.name)
        )
        given_back = self._reservations(working_plan, capped=capped)
        moments = sorted({now, *(max(now, end.expires_at) for end in ends), *delays, *(end for _, end in given_back)})
        index = bisect_left(moments, True, key=lambda moment: self._fits(possible_shapes, moment))
        if index == len(moments):
            limited = self._limited(possible_shapes, moments[-1])
            shortfall = limited.message if limited else self._left(moments[-1]).shortfall(possible_shapes[0])
            return self._answer(
                None, f"{shortfall}, even when all that is known to end has ended" if ends else shortfall
            )
        return self._answer(moments[index], *self._reasons(moments[index], (ends, given_back), cluster, seen))

    def _fits(self, possible_shapes: tuple[ReplicaShape, ...], moment: datetime) -> bool:
        if self._limited(possible_shapes, moment) is not None:
            return False
        room = self._left(moment)
        return any(room.count(shape, 1) for shape in possible_shapes)

    def _limited(self, possible_shapes: tuple[ReplicaShape, ...], moment: datetime) -> Refusal | None:
        """Refuse a moment at which the workspace is at its limit of GPRs; a workload with one there needs no other."""
        working_plan, workload = self._working_plan(moment), self.asking.workload
        if workload is not None and any(placement.cluster == self.name for placement in working_plan.of(workload)):
            return None
        later = replace(self.inputs, now=moment)
        return CandidateFinder(later, working_plan).limited(self.asking.workspace, self.name, possible_shapes[0])

    def _left(self, moment: datetime) -> ClusterCapacity:
        """Return the capacity at a moment, less that of the entries ahead."""
        seen, working_plan = self._grown(moment), self._working_plan(moment)
        clusters = {**self.inputs.observed.clusters, self.name: seen}
        later = replace(self.inputs, now=moment, observed=replace(self.inputs.observed, clusters=clusters))
        room = CandidateFinder(later, working_plan).capacity.room(self.name, self.asking.workspace)
        remaining = {placement.path for placement in working_plan.on(self.name)}
        for placement in self._all():
            if placement.path not in remaining:
                room.give(placement.shape, replica_count.bound_replicas(placement, seen))
        for rival in self._rivals():
            for part in rival.parts(seen):
                shape, wanted = part.room
                room.take(shape, room.count(shape, wanted))
        return room

    def _working_plan(self, moment: datetime) -> WorkingPlan:
        """Return the placements on the cluster at a moment, if all end in time and none is added."""
        working_plan = WorkingPlan(self.inputs)
        for change in self.plan.changes:
            working_plan.change(change)
        for placement in self._ending(working_plan, capped=self.asking.workspace in self.inputs.desired.limits):
            if placement.expires_at <= moment:
                working_plan.change(Revert(placement=placement, why=Why.EXPIRED, detail=""))
        return working_plan

    def _ending(self, working_plan: WorkingPlan, *, capped: bool) -> tuple[Placement, ...]:
        """List the placements whose end frees capacity there, or (`capped`) a GPR of the workspace."""
        own = (workload for workload in working_plan.placed() if capped and workload.workspace == self.asking.workspace)
        elsewhere = (
            placement for workload in own for placement in working_plan.of(workload) if placement.cluster != self.name
        )
        return (*working_plan.on(self.name), *elsewhere)

    def _reservations(self, working_plan: WorkingPlan, *, capped: bool) -> list[tuple[WorkloadId, datetime]]:
        """List the reservations of others there, or (`capped`) those of the workspace anywhere, and their ends."""
        workspace = self.asking.workspace
        reservations = [
            (record.workload, end_of(record, self.inputs.desired))
            for record in reserved(self.inputs, working_plan)
            if (capped if record.request.workspace == workspace else record.cluster == self.name)
        ]
        return [(workload, end) for workload, end in reservations if end is not None]

    def _all(self) -> tuple[Placement, ...]:
        return self.inputs.ledger.placements.on(self.name).placements

    def _grown(self, moment: datetime) -> ClusterObservation:
        cluster, seen = self.inputs.desired.clusters[self.name], self.inputs.observed.clusters[self.name]
        return with_added_nodes(cluster, seen, moment - self.inputs.now)

    def _rivals(self) -> tuple[_QueueEntry, ...]:
        """List the entries ahead that may use this cluster."""
        reach, policies = self.inputs.reach, self.inputs.desired.policies

        def may(waiting: _QueueEntry) -> bool:
            if waiting.workload in policies:
                return self.name in reach.allowed(waiting.workload)
            return waiting.request is not None and self.name in (waiting.request.clusters or (self.name,))

        return tuple(ahead for ahead in self.queue if may(ahead))

    def _reasons(
        self,
        moment: datetime,
        ending: tuple[Sequence[Placement], Sequence[tuple[WorkloadId, datetime]]],
        cluster: Cluster,
        seen: ClusterObservation,
    ) -> list[str]:
        """Describe the events until a moment."""
        now = self.inputs.now
        if moment == now:
            return [f"there is room for {describe_gpus(self.asking.ask)}"]
        ends, given_back = ending
        times = [(str(end.name), end.expires_at) for end in ends]
        times += [(f"reservation {workload}", end) for workload, end in given_back]
        ended = [f"{name} at {format_time(end)}" for name, end in times if now < end <= moment]
        reasons = [f"when {join_names(ended)} {'ends' if len(ended) == 1 else 'end'}"] if ended else []
        for nodes, most in addable_nodes(cluster, seen):
            if nodes.delay <= moment - now:
                reasons.append(f"its autoscaler can add {count(most, 'node')} within {format_duration(nodes.delay)}")
        return reasons

    def _answer(self, at: datetime | None, *reasons: str) -> WaitEstimate:
        seen = self.inputs.observed.clusters.get(self.name)
        ahead = tuple(rival.workload for rival in self._rivals() if rival.wants_gpus(seen))
        queued = (f"after {join_names(map(str, ahead))}",) if ahead and at != self.inputs.now else ()
        return WaitEstimate(
            cluster=self.name,
            wait=None if at is None else at - self.inputs.now,
            at=at,
            ahead=ahead,
            reasons=(*reasons, *queued),
        )
