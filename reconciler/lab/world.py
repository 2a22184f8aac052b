"""The simulated world of a run: pods on nodes, and engines that apply commits with a delay.

It moves from event to event: a change of demand or of an owner's use, the end of an engine's delay, a pod that becomes
ready, an outage. A placement's pods take the first nodes with room. Owners evict the newest pods of bursts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.lab.scenario import ClusterScenario, DemandScenario, Scenario, Series
from reconciler.model.ids import ClusterName


@dataclass(frozen=True, slots=True)
class PlacedReplicas:
    """The replicas of one workload that a cluster is to run under one name."""

    workload: str
    replicas: int


Placed = Mapping[str, PlacedReplicas]
"""By the name of the placement."""


@dataclass(slots=True)
class SimulatedPod:
    """One replica of a placement; it is pending until it has a node."""

    placement: str
    workload: str
    created: int
    node: SimulatedNode | None = None
    bound: int = 0
    ready_at: int = 0


@dataclass(slots=True, eq=False)
class SimulatedNode:
    """A node with what its owners and our pods use of its GPUs."""

    name: str
    gpus: int
    owners: int = 0
    pods: list[SimulatedPod] = field(default_factory=list)
    used: int = 0
    """GPUs of our pods."""
    ready_at: int = 0
    """When the autoscaler's node is there."""
    added: bool = False
    empty_since: int | None = None

    @property
    def free(self) -> int:
        """The GPUs that nobody uses."""
        return self.gpus - self.owners - self.used


@dataclass(frozen=True, slots=True)
class PodCounts:
    """The pods of one cluster by workload: those that serve, those with a node that do not yet, and those without."""

    ready: Counter[str] = field(default_factory=Counter)
    starting: Counter[str] = field(default_factory=Counter)
    pending: Counter[str] = field(default_factory=Counter)


class SimulatedCluster:
    """One cluster to burst to."""

    def __init__(self, scenario: ClusterScenario, demands: Mapping[str, DemandScenario]) -> None:
        """Begin with empty nodes but for what the owners use at second 0."""
        self.scenario = scenario
        self.nodes = [SimulatedNode(f"{scenario.name}-{number}", scenario.gpus) for number in range(scenario.nodes)]
        self.pods: list[SimulatedPod] = []
        self.starts = 0
        self._demands = demands
        self._made = scenario.nodes
        self.down = False
        self.unseen = False

    def fits(self, workload: str) -> bool:
        """Return whether the pods of a workload may run on its GPU model."""
        return self._demands[workload].model in ("", self.scenario.model)

    def room(self, workload: str, now: int) -> int:
        """Count the replicas of a workload that its free GPUs hold."""
        if self.down or not self.fits(workload):
            return 0
        gpus = self._demands[workload].gpus
        return sum(node.free // gpus for node in self.nodes if node.ready_at <= now)

    def apply(self, placed: Placed, now: int) -> None:
        """Make the pods of placements, and end others, the newest first."""
        counts = Counter(pod.placement for pod in self.pods)
        for name, count in counts.items():
            target = placed[name].replicas if name in placed else 0
            if count > target:
                for pod in self._newest(name)[: count - target]:
                    self._end(pod, now)
        for name, wanted in placed.items():
            more = wanted.replicas - counts[name]
            self.pods += [SimulatedPod(name, wanted.workload, now) for _ in range(more)]

    def advance(self, now: int, placed: Placed | None = None) -> None:
        """Follow outages and owners, apply what is `placed`, then bind pods and follow the autoscaler.

        On a cluster that is back, pods of placements that have moved away are ended before they could start.
        """
        self._follow_outages(now)
        self._follow_owners(now)
        if placed is not None and not self.unseen:
            self.apply(placed, now)
        if not self.down:
            self._bind(now)
            self._autoscale(now)

    def next_event(self, now: int) -> int | None:
        """Return the next second at which something changes here by itself."""
        moments: list[int | None] = [self.scenario.owners.next_change(now)]
        moments += [moment for outage in self.scenario.outages for moment in (outage.begin, outage.end)]
        moments += [pod.ready_at for pod in self.pods if pod.node is not None]
        moments += [node.ready_at for node in self.nodes]
        if self.scenario.added is not None:
            idle = self.scenario.added.idle
            moments += [node.empty_since + idle for node in self.nodes if node.added and node.empty_since is not None]
        return min((moment for moment in moments if moment is not None and moment > now), default=None)

    def count(self, now: int) -> PodCounts:
        """Count its pods by workload and state."""
        counts = PodCounts()
        for pod in self.pods:
            state = counts.pending if pod.node is None else counts.ready if pod.ready_at <= now else counts.starting
            state[pod.workload] += 1
        return counts

    @property
    def gpus_in_use(self) -> int:
        """The GPUs of our pods that have a node."""
        return sum(node.used for node in self.nodes)

    def _newest(self, placement: str) -> list[SimulatedPod]:
        """List the pods of a placement, those without a node first, then the newest."""
        pods = [pod for pod in self.pods if pod.placement == placement]
        return sorted(pods, key=lambda pod: (pod.node is not None, -pod.bound, -pod.created))

    def _end(self, pod: SimulatedPod, now: int) -> None:
        self._unbind(pod, now)
        self.pods.remove(pod)

    def _unbind(self, pod: SimulatedPod, now: int) -> None:
        node, pod.node = pod.node, None
        if node is not None:
            node.pods.remove(pod)
            node.used -= self._demands[pod.workload].gpus
            node.empty_since = now if not node.pods else None

    def _evict(self, pod: SimulatedPod, now: int) -> None:
        """Take a pod's node away; its controller makes another one, which waits from now."""
        self._unbind(pod, now)
        pod.created = now

    def _follow_outages(self, now: int) -> None:
        outage = next((each for each in self.scenario.outages if each.begin <= now < each.end), None)
        down = outage is not None
        if down and not self.down:
            for pod in self.pods:
                self._evict(pod, now)
        self.down = down
        self.unseen = outage is not None and not outage.seen

    def _follow_owners(self, now: int) -> None:
        """Give owners their GPUs: free ones first, then those of the newest pods of bursts."""
        more = self.scenario.owners.at(now) - sum(node.owners for node in self.nodes)
        for node in reversed(self.nodes):
            less = max(0, min(-more, node.owners))
            node.owners -= less
            more += less
        for node in self.nodes:
            taken = max(0, min(more, node.free))
            node.owners += taken
            more -= taken
        while more > 0 and any(pod.node is not None for pod in self.pods):
            seated = [pod for pod in self.pods if pod.node is not None]
            pod = max(seated, key=lambda pod: (pod.bound, pod.created))
            place = pod.node
            self._evict(pod, now)
            if place is not None:
                taken = min(more, place.free)
                place.owners += taken
                more -= taken

    def _bind(self, now: int) -> None:
        for pod in self.pods:
            if pod.node is not None:
                continue
            gpus = self._demands[pod.workload].gpus
            node = next((node for node in self.nodes if node.free >= gpus and node.ready_at <= now), None)
            if node is not None and self.fits(pod.workload):
                node.pods.append(pod)
                node.used += gpus
                node.empty_since = None
                pod.node, pod.bound, pod.ready_at = node, now, now + self.scenario.start_up
                self.starts += 1

    def _autoscale(self, now: int) -> None:
        added = self.scenario.added
        if added is None:
            return
        here = [node for node in self.nodes if node.added]
        for node in here:
            if not node.pods and node.empty_since is not None and node.empty_since + added.idle <= now:
                self.nodes.remove(node)
        coming = sum(node.gpus for node in self.nodes if node.ready_at > now)
        short = sum(
            self._demands[pod.workload].gpus for pod in self.pods if pod.node is None and self.fits(pod.workload)
        )
        while short > coming and sum(node.added for node in self.nodes) < added.most:
            self._made += 1
            ready_at = now + added.delay
            node = SimulatedNode(
                f"{self.scenario.name}-{self._made}", self.scenario.gpus, ready_at=ready_at, added=True,
                empty_since=ready_at,
            )  # fmt: skip # one node
            self.nodes.append(node)
            coming += node.gpus


class SimulatedPrimary:
    """The primary: each workload has room of its own there, and what is beyond it waits."""

    def __init__(self, demands: Iterable[DemandScenario]) -> None:
        """Begin at second 0."""
        self.demands = {demand.name: demand for demand in demands}
        self.waiting: dict[str, list[tuple[int, int]]] = {name: [] for name in self.demands}
        """By workload: since when so many replicas have been missing, the oldest first."""

    def advance(self, now: int) -> None:
        """Follow the demand; the newest of the waiting go first."""
        for name, demand in self.demands.items():
            waiting = self.waiting[name]
            more = demand.missing(now) - sum(count for _, count in waiting)
            if more > 0:
                waiting.append((now, more))
            while more < 0:
                since, count = waiting.pop()
                if count + more > 0:
                    waiting.append((since, count + more))
                more = min(0, more + count)

    def missing(self, workload: str) -> int:
        """Count the replicas that wait."""
        return sum(count for _, count in self.waiting[workload])

    def next_event(self, now: int) -> int | None:
        """Return when any demand next changes."""
        changes = (demand.wanted.next_change(now) for demand in self.demands.values())
        return min((change for change in changes if change is not None), default=None)


class SimulatedWorld:
    """All clusters, and the commits that engines have not applied yet."""

    def __init__(self, scenario: Scenario) -> None:
        """Begin at second 0."""
        self.scenario = scenario
        self.primary = SimulatedPrimary(scenario.demands)
        self.clusters = {cluster.name: SimulatedCluster(cluster, self.primary.demands) for cluster in scenario.clusters}
        self._commits: list[tuple[int, Mapping[ClusterName, Placed]]] = []
        self.committed: Mapping[ClusterName, Placed] = {}
        """The newest commit, applied or not."""
        self._applied: Mapping[ClusterName, Placed] = {}
        self.advance(0)

    def commit(self, placed: Mapping[ClusterName, Placed], now: int) -> None:
        """Commit the placements of all clusters; engines apply them after their delay."""
        self.committed = placed
        self._commits.append((now + self.scenario.engine_delay, placed))

    def advance(self, now: int) -> None:
        """Bring the world to a second."""
        self.primary.advance(now)
        while self._commits and self._commits[0][0] <= now:
            self._applied = self._commits.pop(0)[1]
        for name, cluster in self.clusters.items():
            cluster.advance(now, self._applied.get(name, {}))

    def next_event(self, now: int) -> int | None:
        """Return the next second at which something changes by itself."""
        moments = [self.primary.next_event(now), *(cluster.next_event(now) for cluster in self.clusters.values())]
        moments += [self._commits[0][0]] if self._commits else []
        return min((moment for moment in moments if moment is not None), default=None)

    def on_the_way(self) -> Counter[str]:
        """Count the replicas by workload that are committed and not yet applied."""
        replicas = Counter[str]()
        for name, placed in self.committed.items():
            applied = Counter(pod.placement for pod in self.clusters[name].pods)
            for placement, each in placed.items():
                replicas[each.workload] += max(0, each.replicas - applied[placement])
        return replicas


def free_gpus(cluster: ClusterScenario) -> Series:
    """Return the GPUs of a cluster's own nodes that neither owners nor outages take, over time."""
    moments = {0, *(second for second, _ in cluster.owners.points)}
    moments |= {moment for outage in cluster.outages for moment in (outage.begin, outage.end)}
    points = []
    for moment in sorted(moments):
        down = any(outage.begin <= moment < outage.end for outage in cluster.outages)
        points.append((moment, 0 if down else max(0, cluster.nodes * cluster.gpus - cluster.owners.at(moment))))
    return Series.of(points)
