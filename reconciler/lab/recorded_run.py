"""Recorded days played with the files of another branch: its own decisions, on what was observed.

Demand, nodes, outages and what others use are as recorded. The pods of recorded placements are taken out, and those of
the run's own placements put in: an engine takes them up after `ENGINE_DELAY`, each gets the first node with room, and
is ready after the time that placements took to become ready in the recording. Engines report nothing, and nothing
fails. A run begins without placements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from statistics import median

from reconciler.core.capacity.gpu_models import gpus_paid
from reconciler.core.cost.prices import node_labels, price_pieces
from reconciler.core.observe.track_record import PlacementStart
from reconciler.core.recording.pass_record import PassRecord
from reconciler.core.workloads.replica_count import ready_replicas
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.errors import InvalidInput, Severity
from reconciler.lab.memory_repository import OURS, MemoryRepository
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, Observed, PendingPods
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired
from reconciler.model.units import Resources, total
from reconciler.ports import Charts

ENGINE_DELAY = timedelta(seconds=20)
TIME_TO_READY = timedelta(seconds=140)
"""From a commit to a ready pod, where the recording has no start to measure it by."""
_MOST_PASSES = 10
"""Passes at one moment, until one commits nothing."""
_NO_NODE = "no node has room for it"


@dataclass(slots=True)
class _Pod:
    placement: PlacementName
    node: str = ""
    bound_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class RunFigures:
    """What a run served, what it took, and its commits."""

    missing_seconds: float = 0.0
    unserved_seconds: float = 0.0
    gpu_seconds: float = 0.0
    dollars: float = 0.0
    commits: list[tuple[datetime, str]] = field(default_factory=list)
    """With their subjects."""

    @property
    def unmet(self) -> float:
        """The part of the missing replica-seconds that nobody served."""
        return self.unserved_seconds / self.missing_seconds if self.missing_seconds else 0.0


def time_to_ready(records: Sequence[PassRecord]) -> timedelta | None:
    """Measure the time from a commit to a ready pod; None where nothing became ready in the recording.

    A placement that is ready by the next pass is none of the daemon's own starts: for these its pass is the measure.
    """
    starts = {
        (name, start) for record in records for name, each in record.starts.items() for start in each if start.ready
    }
    coming: dict[str, Placement] = {}
    for record in sorted(records, key=attrgetter("at")):
        for path, placement in list(coming.items()):
            seen = record.observed.clusters.get(placement.cluster)
            if seen is not None and ready_replicas(placement, seen):
                took = record.at - placement.created_at
                starts.add((placement.cluster, PlacementStart(workload=placement.workload, took=took, ready=True)))
                del coming[path]
        coming |= {
            change.placement.path: change.placement for change in record.plan.changes if change.action is Action.PLACE
        }
    return timedelta(seconds=median(start.took.total_seconds() for _, start in starts)) if starts else None


class RecordedRun:
    """A run over recorded passes; it is its own view of the clusters, and its own clock."""

    def __init__(
        self, name: str, files: Mapping[str, bytes], charts: Charts, first: PassRecord, ready_after: timedelta
    ) -> None:
        """Begin with the files of a source branch, and with the demand that the daemon had watched.

        Raises InvalidInput for files with errors: of these the last good versions would be in force.
        """
        self.figures = RunFigures()
        self._repository = MemoryRepository(files)
        self._world = World(repository=self._repository, clusters=self, charts=charts, clock=self, author=OURS)
        self._memory = Memory(source=SourceReader(self._repository), branch=BranchReader(self._repository))
        self._memory.history, self._memory.past = first.history, first.past
        source = self._repository.tips().source
        problems = () if source is None else self._memory.source.desired(source).problems
        errors = [str(problem) for problem in problems if problem.severity is Severity.ERROR]
        if errors:
            raise InvalidInput(f"the files of {name} have errors:\n" + "\n".join(errors))
        self._start_up = max(timedelta(), ready_after - ENGINE_DELAY)
        self._moment = first.at
        self._observed = Observed()
        self._pods: dict[ClusterName, list[_Pod]] = {}
        self._placements: Mapping[PlacementName, Placement] = {}
        self._due: list[tuple[datetime, Mapping[PlacementName, Placement]]] = []
        self._wake_at: datetime | None = None
        self._outcome: Outcome | None = None

    def now(self) -> datetime:
        """Return the moment of the pass."""
        return self._moment

    def follow(self, desired: Desired) -> None:
        """Observe what was recorded, whatever is asked for."""

    def observe(self) -> Observed:
        """Return the recorded observation with the run's own pods."""
        clusters = {name: self._with_own_pods(seen) for name, seen in self._observed.clusters.items()}
        return replace(self._observed, clusters=clusters)

    def play(self, record: PassRecord, ledger: Ledger, until: datetime) -> None:
        """Pass on a recorded observation, and whenever anything is due until the next one."""
        self._observed = _without_bursts(record.observed, ledger)
        ages = {name: record.at - seen.observed_at for name, seen in record.observed.clusters.items()}
        self._step(record.at)
        while (moment := self._next_moment()) is not None and moment < until:
            clusters = {
                name: replace(seen, observed_at=moment - ages[name]) for name, seen in self._observed.clusters.items()
            }
            self._observed = replace(self._observed, clusters=clusters)
            self._account(moment)
            self._step(moment)
        self._account(until)

    def _step(self, moment: datetime) -> None:
        self._moment = moment
        while self._due and self._due[0][0] <= moment:
            self._placements = self._due.pop(0)[1]
        self._bind()
        for _ in range(_MOST_PASSES):
            self._outcome = outcome = reconcile_once(self._world, self._memory)
            self.figures.commits += (
                (commit.at, commit.message.partition("\n")[0]) for commit in outcome.rendered.commits
            )
            if not outcome.commits:
                break
            ledger = self._memory.branch.ledger(self._repository.tips().output)
            placed = {placement.name: placement for placement in ledger.placements.values()}
            self._due.append((moment + ENGINE_DELAY, placed))
        self._wake_at = outcome.wake_at

    def _next_moment(self) -> datetime | None:
        moments = [self._wake_at, *(at for at, _ in self._due)]
        moments += [pod.bound_at + self._start_up for pods in self._pods.values() for pod in pods if pod.bound_at]
        return min((moment for moment in moments if moment is not None and moment > self._moment), default=None)

    def _bind(self) -> None:
        """Give each placement its pods, the oldest first, and each pod a node while there is room."""
        wanted = {placement.name: placement for placement in self._placements.values()}
        for cluster in {**self._pods, **self._observed.clusters}:
            seen = self._observed.clusters.get(cluster)
            if seen is None:
                self._pods[cluster] = []
                continue
            here = [placement for placement in wanted.values() if placement.cluster == cluster]
            pods = self._pods.get(cluster, [])
            kept: list[_Pod] = []
            for placement in here:
                count = placement.replicas * placement.shape.group_size
                own = [pod for pod in pods if pod.placement == placement.name][:count]
                kept += own + [_Pod(placement.name) for _ in range(count - len(own))]
            nodes = [node for pool in seen.pools for node in pool.nodes]
            room = {node.name: node.free for node in nodes}
            for pod in sorted(kept, key=lambda pod: not pod.node):
                requests = wanted[pod.placement].shape.requests
                if pod.node and (pod.node not in room or not room[pod.node].holds(requests)):
                    pod.node, pod.bound_at = "", None
                if not pod.node:
                    pod.node = next((name for name, free in room.items() if free.holds(requests)), "")
                    pod.bound_at = self._moment if pod.node else None
                if pod.node:
                    room[pod.node] = room[pod.node].minus(requests)
            self._pods[cluster] = kept

    def _with_own_pods(self, seen: ClusterObservation) -> ClusterObservation:
        bound, ready, pending = Counter[PlacementName](), Counter[PlacementName](), Counter[PlacementName]()
        used: dict[str, Resources] = {}
        for pod in self._pods.get(seen.cluster, ()):
            bound[pod.placement] += bool(pod.node)
            ready[pod.placement] += self._is_ready(pod)
            pending[pod.placement] += not pod.node
            if pod.node:
                requests = self._placements[pod.placement].shape.requests
                used[pod.node] = total((used.get(pod.node, Resources()), requests))
        pools = tuple(
            replace(pool, nodes=tuple(_less(node, used.get(node.name)) for node in pool.nodes)) for pool in seen.pools
        )
        waiting = {name: count for name, count in pending.items() if count}
        return replace(
            seen,
            pools=pools,
            bound=dict(bound),
            ready=dict(ready),
            pending_pods={
                name: PendingPods(replicas=count, shape=self._placements[name].shape, since=self._moment)
                for name, count in waiting.items()
            },
            waiting_reasons=dict.fromkeys(waiting, _NO_NODE),
            non_gpu_pods={}, unadmitted={}, evicted={}, refused={}, reserved={}, gpu_pods={}, unused={}, succeeded={},
            failed={}, reports={}, unfinished=frozenset(),
        )  # fmt: skip # what the recorded placements had

    def _is_ready(self, pod: _Pod) -> bool:
        return pod.bound_at is not None and pod.bound_at + self._start_up <= self._moment

    def _account(self, until: datetime) -> None:
        """Account for the time from the last step to a moment, in which nothing changes."""
        if self._outcome is None or until <= self._moment:
            return
        seconds = (until - self._moment).total_seconds()
        inputs = self._outcome.decision.inputs
        ready = Counter[PlacementName]()
        for cluster, pods in self._pods.items():
            described = inputs.desired.clusters.get(cluster)
            for pod in pods:
                placement = self._placements[pod.placement]
                ready[pod.placement] += self._is_ready(pod)
                if pod.node:
                    gpus = float(gpus_paid(placement.shape))
                    taken = gpus * seconds
                    self.figures.gpu_seconds += taken
                    labels = node_labels(placement.shape)
                    for piece in price_pieces(described, labels, self._moment, until):
                        part = (piece.end - piece.begin).total_seconds()
                        self.figures.dollars += gpus * part / 3600 * (piece.price or 0.0)
        served = Counter[WorkloadId]()
        for name, pods_ready in ready.items():
            served[self._placements[name].workload] += pods_ready // self._placements[name].shape.group_size
        for workload, demand in inputs.demands.items():
            if isinstance(demand, Demand):
                self.figures.missing_seconds += demand.needed * seconds
                self.figures.unserved_seconds += max(0, demand.needed - served[workload]) * seconds


def _without_bursts(observed: Observed, ledger: Ledger) -> Observed:
    """Give the nodes back what the recorded placements used of them, first those that are used most."""
    clusters = {}
    for name, seen in observed.clusters.items():
        nodes = {node.name: node for pool in seen.pools for node in pool.nodes}
        for placement in ledger.placements.on(name).placements:
            requests = placement.shape.requests
            for _ in range(seen.bound.get(placement.name, 0)):
                holder = next((node for node in nodes.values() if _used(node).holds(requests)), None)
                if holder is not None:
                    nodes[holder.name] = replace(holder, free=total((holder.free, requests)))
        pools = tuple(replace(pool, nodes=tuple(nodes[node.name] for node in pool.nodes)) for pool in seen.pools)
        clusters[name] = replace(seen, pools=pools)
    return replace(observed, clusters=clusters, reports={}, reporting={})


def _used(node: Node) -> Resources:
    return node.allocatable.minus(node.free)


def _less(node: Node, used: Resources | None) -> Node:
    return node if used is None else replace(node, free=node.free.minus(used))
