"""The simulated world as the daemon observes it."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.lab.fleet_files import GPU, MODEL_LABEL, NAMESPACE
from reconciler.lab.scenario import BEGIN, PRIMARY
from reconciler.lab.world import SimulatedCluster, SimulatedPrimary, SimulatedWorld
from reconciler.model.capacity import (
    ClosedNode,
    ClusterObservation,
    MissingReplicas,
    Node,
    Observed,
    PendingPods,
    Pool,
    ReplicaShape,
    WorkloadObservation,
)
from reconciler.model.ids import PlacementName
from reconciler.model.policy import Desired
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import WorkloadRef

UNSCHEDULABLE = "0 of the nodes have GPUs enough"


def moment(second: int) -> datetime:
    """Return the time of a second of the run."""
    return BEGIN + timedelta(seconds=second)


class SimulatedView:
    """The `ports.ClusterView` and `ports.Clock` of a run. A cluster that is unseen keeps its last observation."""

    def __init__(self, world: SimulatedWorld) -> None:
        """Observe nothing yet."""
        self._world = world
        self._second = 0
        self._last: dict[str, ClusterObservation] = {}
        self._shapes = {
            name: ReplicaShape(
                requests=_gpus(demand.gpus), node_selector={MODEL_LABEL: demand.model} if demand.model else {}
            )
            for name, demand in world.primary.demands.items()
        }

    def now(self) -> datetime:
        """Return the time of the pass."""
        return moment(self._second)

    def follow(self, desired: Desired) -> None:
        """Observe the same whatever is asked for."""

    def look(self, second: int) -> None:
        """Set the second of the next pass."""
        self._second = second

    def observe(self) -> Observed:
        """Observe all clusters."""
        for name, cluster in self._world.clusters.items():
            if not cluster.unseen:
                self._last[name] = self._observe(cluster)
        primary = self._observe_primary(self._world.primary)
        return Observed(clusters={PRIMARY: primary, **{each.cluster: each for each in self._last.values()}})

    def _observe_primary(self, primary: SimulatedPrimary) -> ClusterObservation:
        workloads = []
        for name, demand in primary.demands.items():
            waiting = primary.waiting[name]
            wanted = demand.wanted.at(self._second)
            workloads.append(
                WorkloadObservation(
                    ref=WorkloadRef(kind="Deployment", namespace=NAMESPACE, name=name),
                    wanted=wanted,
                    running=min(wanted, demand.home),
                    waiting=tuple(
                        MissingReplicas(replicas=count, since=moment(since), cause="Unschedulable")
                        for since, count in waiting
                    ),
                    shape=self._shapes[name],
                )
            )
        return ClusterObservation(cluster=PRIMARY, observed_at=self.now(), workloads=tuple(workloads))

    def _observe(self, cluster: SimulatedCluster) -> ClusterObservation:
        total = _gpus(cluster.scenario.gpus)
        nodes, closed = [], []
        for node in cluster.nodes:
            if node.ready_at > self._second:
                continue
            if cluster.down:
                closed.append(ClosedNode(name=node.name, allocatable=total, ready=False))
            else:
                nodes.append(Node(name=node.name, free=_gpus(node.free), allocatable=total))
        bound, ready = dict[PlacementName, int](), dict[PlacementName, int]()
        pending = dict[PlacementName, PendingPods]()
        for pod in cluster.pods:
            name = PlacementName(pod.placement)
            bound[name] = bound.get(name, 0) + (pod.node is not None)
            ready[name] = ready.get(name, 0) + (pod.node is not None and pod.ready_at <= self._second)
            if pod.node is None:
                earlier = pending.get(name)
                since = moment(pod.created)
                pending[name] = PendingPods(
                    replicas=1 + (earlier.replicas if earlier else 0),
                    shape=self._shapes[pod.workload],
                    since=min(since, earlier.since) if earlier and earlier.since else since,
                )
        model = {MODEL_LABEL: cluster.scenario.model}
        return ClusterObservation(
            cluster=cluster.scenario.name,
            observed_at=self.now(),
            pools=(Pool(name="gpu", nodes=tuple(nodes), labels=model),),
            closed=tuple(closed),
            bound=bound,
            ready=ready,
            pending_pods=pending,
            waiting_reasons=dict.fromkeys(pending, UNSCHEDULABLE),
        )


def _gpus(number: int) -> Resources:
    return Resources(amounts={GPU: Quantity(number * ONE)})
