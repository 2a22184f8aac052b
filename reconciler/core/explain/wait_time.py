"""Wait times for GPUs: of a demand that is only asked about, and of what waits in the queue.

An estimate, by one simulation of the queue for all of them (`queue_simulation`, which says what is assumed). A cluster
that meets an unforeseen exception has no time, and the bug as its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import TypeVar

from reconciler.bulkhead import NoteBug, Seam, attempt
from reconciler.core.capacity.gpu_models import uses_gpus
from reconciler.core.capacity.gpu_requests import describe_gpus, gpu_shapes, missing_gpus
from reconciler.core.capacity.pod_requirements import request_requirements
from reconciler.core.capacity.scalable_nodes import addable_nodes, with_added_nodes
from reconciler.core.decide.candidates.cluster_obstacles import obstacle
from reconciler.core.decide.candidates.gpr_terms import request_of
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.turns.fair_share import Share
from reconciler.core.decide.turns.queue import Turn, urgency
from reconciler.core.explain.queue_simulation import MAX_TURNS, QueueSimulation, Stage, Start
from reconciler.core.fleet.admission import check_gpu_ask, check_terms
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.gpr import DEFAULT_PRIORITY, GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Plan, ReasonTraits
from reconciler.model.policy import Desired
from reconciler.model.units import format_duration
from reconciler.text.findings import Finding
from reconciler.text.timestamps import format_time
from reconciler.text.wording import conjugate, count, join_names

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDemand:
    """A demand for GPUs of a workspace, which comes last of its priority."""

    workspace: WorkspaceName
    ask: GpuAsk
    # None for the default of EGS, or the nearest that the workspace allows.
    priority: int | None = None
    # Empty for any cluster of the workspace.
    clusters: tuple[ClusterName, ...] = ()
    dedicated: bool = False

    def urgency(self, desired: Desired) -> int:
        """Return the priority that it has in its workspace."""
        if self.priority is not None:
            return self.priority
        limits = desired.limits.get(self.workspace)
        return DEFAULT_PRIORITY if limits is None else min(max(DEFAULT_PRIORITY, limits.lowest), limits.highest)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEstimate:
    """The wait for GPUs on one cluster."""

    cluster: ClusterName
    # None if no known event frees enough.
    wait: timedelta | None
    at: datetime | None
    # The workloads that wait before it: for the cluster, or for a GPR of its workspace.
    ahead: tuple[WorkloadId, ...]
    # The events that it depends on, or the obstacles.
    reasons: tuple[str, ...]


def estimate_waits(
    asking: GpuDemand, inputs: PassInput, plan: Plan, note_bug: NoteBug = lambda _: None, *, most: int = MAX_TURNS
) -> tuple[WaitEstimate, ...]:
    """Estimate the wait on each cluster of the workspace, the shortest first, then by the order of the clusters.

    At the most so many turns of the queue are simulated. `note_bug` gets the bug of each cluster without an estimate.
    """
    workspace = inputs.desired.workspaces.get(asking.workspace)
    named = asking.clusters or (workspace.clusters if workspace else ())
    own = [name for name in named if workspace is not None and name in workspace.everywhere]
    estimates = {name: _outside(asking, name) for name in named if name not in own}
    probe = _WaitProbe(asking, inputs, own, note_bug)
    simulation = QueueSimulation(inputs, plan, own, (asking.workspace,), most=most)
    last = simulation.play(probe)
    estimates |= {name: probe.estimate(name, simulation, last) for name in own}
    return tuple(
        sorted(
            (estimates[name] for name in named),
            key=lambda estimate: timedelta.max if estimate.wait is None else estimate.wait,
        )
    )


def estimate_starts(
    workloads: Collection[WorkloadId], inputs: PassInput, plan: Plan, *, most: int = MAX_TURNS
) -> Mapping[WorkloadId, Start]:
    """Estimate when workloads that wait next get room, and where; those that nothing brings any are left out."""
    if not workloads:
        return {}
    simulation = QueueSimulation(inputs, plan, (), (), following=workloads, most=most)
    follower = _Follower({workload: simulation.placed(workload) for workload in workloads})
    simulation.play(follower)
    return follower.starts


def waiting_for_room(plan: Plan) -> frozenset[WorkloadId]:
    """Return the workloads that a plan leaves without room, or without a GPR."""
    return frozenset(held.workload for held in plan.suppressed if held.reason.has(ReasonTraits.NEEDS_ROOM))


def describe_start(workload: WorkloadId, inputs: PassInput, plan: Plan) -> Iterator[str]:
    """Describe when a workload that waits for room, or for a GPR, is estimated to get some; nothing of others."""
    if workload not in waiting_for_room(plan):
        return
    start = estimate_starts((workload,), inputs, plan).get(workload)
    if start is None:
        yield "Nothing that is known to end brings it more room than it has."
    else:
        wait = format_duration(start.at - inputs.now)
        yield f"By what is known it gets room on {start.cluster} in {wait}, at {format_time(start.at)}."


def write_wait(wait: timedelta) -> str:
    """Write a wait as EGS does: ``0h2m40s``."""
    minutes, seconds = divmod(max(0, int(wait.total_seconds())), 60)
    return f"{minutes // 60}h{minutes % 60}m{seconds}s"


def _outside(asking: GpuDemand, name: ClusterName) -> WaitEstimate:
    """Report a cluster outside of the workspace; whether it exists is not disclosed."""
    reason = f"not a cluster of workspace {asking.workspace}"
    return WaitEstimate(cluster=name, wait=None, at=None, ahead=(), reasons=(reason,))


class _Follower:
    """Follows workloads that wait, until all of them have started.

    A part that gets only the room that another part of its own workload leaves is no start: no more of it runs then.
    """

    def __init__(self, placed: Mapping[WorkloadId, int]) -> None:
        self._placed = placed
        self.starts: dict[WorkloadId, Start] = {}

    def turn(self, stage: Stage) -> None:
        """Return no turn: the workloads have their own."""
        del stage

    def has_room(self) -> bool:
        """Return False: it asks for nothing."""
        return False

    def accept(self, stage: Stage, starts: Sequence[Start]) -> bool:
        """Note the starts of the workloads, from when on more of each is placed than before."""
        for start in starts:
            placed = self._placed.get(start.workload)
            if placed == 0 or (
                placed and start.at == stage.moment and stage.working_plan.replicas(start.workload) > placed
            ):
                self.starts.setdefault(start.workload, start)
        return len(self.starts) < len(self._placed)


class _WaitProbe:
    """A demand at its place in the queue, on each of its clusters by itself."""

    def __init__(self, asking: GpuDemand, inputs: PassInput, names: Sequence[ClusterName], note_bug: NoteBug) -> None:
        self._asking, self._inputs, self._note_bug = asking, inputs, note_bug
        self._priority = asking.urgency(inputs.desired)
        self._refused: dict[ClusterName, str] = {}
        self._shapes: dict[ClusterName, tuple[ReplicaShape, ...]] = {}
        for name in names:
            self._contain(name, partial(self._admit, name))
        self._open = [name for name in self._shapes if name not in self._refused]
        self._able: list[ClusterName] = []
        self._at: dict[ClusterName, datetime] = {}
        self._first: Stage | None = None
        self._limited: dict[ClusterName, str] = {}

    def turn(self, stage: Stage) -> Turn:
        """Return the turn of the demand: the last of its priority."""
        self._able = []
        forever = datetime.max.replace(tzinfo=self._inputs.now.tzinfo)
        unnamed = WorkloadId(self._asking.workspace, TemplateName(""))
        return Turn(
            priority=self._priority,
            share=Share(inf, inf),
            since=forever,
            workload=unnamed,
            take=lambda: self._look(stage),
        )

    def has_room(self) -> bool:
        """Tell whether any cluster has had room at the last turn."""
        return bool(self._able)

    def accept(self, stage: Stage, starts: Sequence[Start]) -> bool:
        """Note the moment for clusters that have room."""
        del starts
        self._first = self._first or stage
        for name in self._able:
            self._at[name] = stage.moment
        self._open = [name for name in self._open if name not in self._at]
        return bool(self._open)

    def estimate(self, name: ClusterName, simulation: QueueSimulation, last: Stage) -> WaitEstimate:
        """Return the estimate for a cluster, after the simulation."""
        estimate = self._contain(name, partial(self._estimate, name, simulation, last))
        if estimate is not None:
            return estimate
        return WaitEstimate(cluster=name, wait=None, at=None, ahead=(), reasons=(self._refused[name],))

    def _contain(self, name: ClusterName, call: Callable[[], T]) -> T | None:
        """Do the work on one cluster; after an unforeseen exception it is refused, by the bug."""
        outcome = attempt(Seam.STATUS, f"cluster {name}", call)
        if isinstance(outcome, Bug):
            self._note_bug(outcome)
            self._refused[name] = outcome.summary
            return None
        return outcome

    def _admit(self, name: ClusterName) -> None:
        """Refuse a cluster for good, or note the shapes of the demand there."""
        message = self._refusal(name)
        if message:
            self._refused[name] = message
        else:
            self._shapes[name] = gpu_shapes(self._asking.ask, self._grown(name), dedicated=self._asking.dedicated)

    def _estimate(self, name: ClusterName, simulation: QueueSimulation, last: Stage) -> WaitEstimate:
        ahead = self._ahead(name, simulation)
        at = self._at.get(name)
        if at is not None:
            reasons = [*self._events(name, at, simulation)]
        elif name in self._refused:
            reasons = [self._refused[name]]
        else:
            reasons = [self._shortfall(name, simulation, last)]
        if ahead and at != self._inputs.now:
            reasons.append(f"after {join_names(map(str, ahead))}")
        wait = None if at is None else at - self._inputs.now
        return WaitEstimate(cluster=name, wait=wait, at=at, ahead=ahead, reasons=tuple(reasons))

    def _refusal(self, name: ClusterName) -> str:
        """Say why a cluster never has room for the demand, whatever ends; empty where it may."""
        refusal = obstacle(self._inputs, self._asking.workspace, name)
        if refusal is not None:
            return refusal.message
        finding = next(self._beyond_policy(name), None)
        if finding is not None:
            return f"{finding.message} ({finding.hint})" if finding.hint else finding.message
        ask, grown = self._asking.ask, self._grown(name)
        if not gpu_shapes(ask, grown, dedicated=self._asking.dedicated):
            return missing_gpus(ask, self._inputs.observed.clusters[name])
        return ""

    def _beyond_policy(self, name: ClusterName) -> Iterator[Finding]:
        """Yield what the WorkspacePolicy does not allow of the demand on a cluster."""
        limits = self._inputs.desired.limits.get(self._asking.workspace)
        if limits is None:
            return
        where = f"in workspace {limits.workspace}"
        yield from check_terms(GprTerms(priority=self._priority), limits)
        yield from check_gpu_ask(self._asking.ask, limits.limits, where)
        if name in limits.by_cluster:
            yield from check_gpu_ask(self._asking.ask, limits.by_cluster[name], f"on {name} {where}")

    def _grown(self, name: ClusterName) -> ClusterObservation:
        """Return a cluster with all nodes that its autoscaler may add."""
        cluster, seen = self._inputs.desired.clusters[name], self._inputs.observed.clusters[name]
        delays = [nodes.delay for nodes, _ in addable_nodes(cluster, seen)]
        return with_added_nodes(cluster, seen, max(delays, default=timedelta()))

    def _look(self, stage: Stage) -> None:
        """Find the clusters that have room at a stage, less all that was taken before this turn."""
        self._limited = {}
        for name in self._open:
            self._contain(name, partial(self._look_at, name, stage))
        self._open = [name for name in self._open if name not in self._refused]

    def _look_at(self, name: ClusterName, stage: Stage) -> None:
        """Find whether one cluster has room at a stage."""
        shapes, workspace = self._shapes[name], self._asking.workspace
        limited = stage.finder.gprs.refusal(workspace, name, shapes[0])
        if limited is not None:
            self._limited[name] = limited.message
        elif any(stage.finder.capacity.room(name, workspace).count(shape, 1) for shape in shapes):
            self._able.append(name)

    def _shortfall(self, name: ClusterName, simulation: QueueSimulation, last: Stage) -> str:
        """Describe the shortage at the last known moment."""
        if simulation.exhausted:
            return f"more waits ahead than can be played through ({count(simulation.most, 'turn')})"
        room = last.finder.capacity.room(name, self._asking.workspace)
        shape = self._shapes[name][0]
        missing = self._limited.get(name) or f"{room.shortfall(shape)}{last.finder.describe_held(name, shape)}"
        ends = any(simulation.ends(name, self._asking.workspace))
        return f"{missing}, even when all that is known to end has ended" if ends else missing

    def _events(self, name: ClusterName, at: datetime, simulation: QueueSimulation) -> Iterator[str]:
        """Describe the events on a cluster until a moment."""
        now = self._inputs.now
        if at == now:
            yield f"there is room for {describe_gpus(self._asking.ask)}"
            return
        times = sorted(simulation.ends(name, self._asking.workspace), key=lambda pair: (pair[1], pair[0]))
        ended = [f"{what} at {format_time(end)}" for what, end in times if now < end <= at]
        if ended:
            yield f"when {join_names(ended)} {conjugate(len(ended), 'ends')}"
        for nodes, most in addable_nodes(self._inputs.desired.clusters[name], self._inputs.observed.clusters[name]):
            if nodes.delay <= at - now:
                yield f"{nodes.adding} can add {count(most, 'node')} within {format_duration(nodes.delay)}"

    def _ahead(self, name: ClusterName, simulation: QueueSimulation) -> tuple[WorkloadId, ...]:
        """List the workloads before this one that wait for room there or for a GPR, or start there before it."""
        if self._first is None:
            return ()
        own = urgency(self.turn(self._first))
        at = self._at.get(name)
        started = {
            start.workload for start in simulation.starts if start.cluster == name and (at is None or start.at <= at)
        }
        waiting = waiting_for_room(self._first.working_plan.plan())
        return tuple(
            turn.workload
            for turn in self._first.turns
            if urgency(turn) < own
            and (turn.workload in started or turn.workload in waiting)
            and self._competes(turn.workload, name, simulation)
        )

    def _competes(self, workload: WorkloadId, name: ClusterName, simulation: QueueSimulation) -> bool:
        """Tell whether a workload takes a GPR of the same limited workspace, or may take GPUs of a cluster."""
        if workload.workspace == self._asking.workspace and workload.workspace in self._inputs.desired.limits:
            return True
        return name in simulation.reach(workload) and self._wants_gpus(workload, name)

    def _wants_gpus(self, workload: WorkloadId, name: ClusterName) -> bool:
        """Tell whether a workload takes GPUs of a cluster; one of unknown needs, as of a chart, may."""
        request, inputs = request_of(workload, self._inputs), self._inputs
        if request is not None:
            needed = request_requirements(request, inputs.observed.clusters.get(name), kinds=inputs.desired.kinds)
            return bool(needed.unknown) or any(uses_gpus(part.shape) for part in needed.parts)
        demand = inputs.demands.get(workload)
        shape = demand.shape if isinstance(demand, Demand) else None
        return shape is None or uses_gpus(shape)
