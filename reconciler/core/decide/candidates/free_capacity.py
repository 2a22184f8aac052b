"""The room of every cluster while one pass hands it out.

Capacity is handed out once: what one workload is given in a pass is gone for the next, and so is what replicas need
that were committed earlier and have no node yet, and what others have reserved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.core.capacity.best_fit import ShapeReplicas, tightest_first
from reconciler.core.capacity.exclusive_topology import TopologyDomains
from reconciler.core.capacity.pod_needs import PodRequirements
from reconciler.core.capacity.room import ClusterCapacity
from reconciler.core.decide.candidates.gang import placement_needs
from reconciler.core.decide.candidates.gang_start import may_start, waiting
from reconciler.core.decide.candidates.reservations import Reservations, keep_free, reserved, seen_by, to_come
from reconciler.core.decide.state.in_flight import InFlight, flight
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.workloads import replica_count
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.request import RequestRecord


class FleetCapacity:
    """What is free where. A cluster that nobody asks for is never looked at."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Begin with all that was observed free."""
        self._inputs = inputs
        self._desired = inputs.desired
        self._observed = inputs.observed
        self._now = inputs.now
        self._working_plan = working_plan
        self._rooms: dict[ClusterName, ClusterCapacity] = {}
        self._handed: Counter[ClusterName] = Counter()
        self._views: dict[tuple[ClusterName, WorkspaceName | None], tuple[Hashable, ClusterCapacity]] = {}
        self._reserved: tuple[int, Reservations] | None = None
        self._guarded: set[ClusterName] | None = None
        self._touched: set[ClusterName] = set()
        self._evicted: dict[ClusterName, tuple[tuple[Placement, ReplicaShape], ...]] = {}

    @property
    def handed(self) -> int:
        """Count how often any room has been handed out."""
        return self._handed.total()

    def moment(self, cluster: ClusterName) -> Hashable:
        """Return what is another after each change on which it can depend what is free in a cluster."""
        return self._handed[cluster], self._working_plan.moved(cluster), self._working_plan.holdings

    def room(
        self,
        cluster: ClusterName,
        workspace: WorkspaceName | None,
        *,
        without: Sequence[Placement] = (),
        newcomer: ReplicaShape | None = None,
    ) -> ClusterCapacity:
        """Return what is free in a cluster for a workspace, less what is in flight and what this pass has handed out.

        What others have reserved is not free; without a workspace all are others. `without` tells what a `newcomer`
        would surely have if some placements, and their pods, were not there. Pods of a placement that has ended take
        what they ask for until they are gone, also those without a node.
        """
        leaving = [(item, newcomer) for item in without] if newcomer is not None else []
        reserved_here = self.reservations().on.get(cluster, ())
        held = [record for record in reserved_here if record.request.workspace != workspace]
        if leaving or not held:
            room = self._without(cluster, leaving) if leaving else self._all(cluster)
            return self._less(room, held, without, cluster) if held else room
        view = cluster, workspace if len(held) < len(reserved_here) else None
        now, cached = self.moment(cluster), self._views.get(view)
        if cached is None or cached[0] != now:
            cached = self._views[view] = now, self._less(self._all(cluster), held, (), cluster)
        return cached[1]

    def hindered(self, clusters: Iterable[ClusterName], pods: Sequence[ReplicaShape]) -> Hashable:
        """Return where others keep pods out of clusters, which tells apart what is alike otherwise; None if nowhere."""
        named = [shape for shape in pods if shape.who]
        guarded = self._keep_out() if named else ()
        rooms = [self._all(name) for name in clusters if name in guarded] if guarded else []
        hindrances = [room.hindered(shape) for room in rooms for shape in named]
        return tuple(hindrances) if any(shut or coming for shut, coming in hindrances) else None

    def given(self, clusters: Iterable[ClusterName], pods: Iterable[ReplicaShape]) -> Hashable:
        """Return whose LimitRanges add to pods in clusters, which tells apart what is alike otherwise; None if none."""
        seen = (self._observed.clusters.get(name) for name in clusters)
        if not any(observation.limit_ranges for observation in seen if observation is not None):
            return None
        return tuple(frozenset(owner.namespace for owner in shape.who) for shape in pods)

    def _keep_out(self) -> Collection[ClusterName]:
        """Name the clusters where pods keep any others out; those are looked at again that have handed out room."""
        if self._guarded is None:
            self._guarded, self._touched = set(), {*self._observed.clusters.keys() & self._desired.clusters.keys()}
        self._guarded.difference_update(self._touched)
        self._guarded.update(name for name in self._touched if self._all(name).guarded)
        self._touched = set()
        return self._guarded

    def take(self, cluster: ClusterName, shape: ReplicaShape, replicas: int) -> None:
        """Hand out room to replicas that have just been decided on."""
        self._all(cluster).take(shape, replicas)
        self._note(cluster)

    def evict(self, cluster: ClusterName, leaving: Iterable[Placement], newcomer: ReplicaShape) -> None:
        """Count the room of placements as free: they are ended for a newcomer."""
        self._evicted[cluster] = (*self._evicted.get(cluster, ()), *((placement, newcomer) for placement in leaving))
        self._rooms.pop(cluster, None)
        self._note(cluster)

    def _note(self, cluster: ClusterName) -> None:
        self._handed[cluster] += 1
        self._touched.add(cluster)

    def needs(self, placement: Placement) -> PodRequirements | None:
        """Return what a placement takes that went out whole; None where its replicas are all there is to it."""
        return placement_needs(self._inputs, placement)

    def domains(self, cluster: ClusterName, wanted: TopologyDomains) -> int:
        """Count the domains that groups on a cluster may come to have, beside those that they are seen in."""
        requirements_here = ((placement, self.needs(placement)) for placement in self._working_plan.on(cluster))
        claims = [
            (placement_of_claim, needed)
            for placement_of_claim, needed in requirements_here
            if needed is not None and (needed.domains or needed.marked)
        ]
        if not claims:
            return 0
        seen = seen_by(self._observed.clusters[cluster], wanted)
        return sum(
            to_come(needed, wanted, seen.get(placement_of_claim.name, Counter()))
            for placement_of_claim, needed in claims
        )

    def _coming(self, placement: Placement, replicas: int) -> tuple[ShapeReplicas, ...]:
        """Return what is still to come of a placement that lacks so many replicas.

        Of what went out whole, as a leader and its workers, that is all of it while nothing has come. Of a gang that
        has started with its minimum it is the pods that have no node yet.
        """
        needed, seen = self.needs(placement), self._observed.clusters[placement.cluster]
        if needed is not None and may_start(needed):
            return waiting(needed, *replica_count.bound_pods(placement, seen))
        if needed is not None and needed.others and replicas >= placement.replicas:
            return tuple(part.room for part in needed.parts)
        return ((placement.shape, replicas),)

    def _less(
        self, room: ClusterCapacity, held: Iterable[RequestRecord], without: Iterable[Placement], cluster: ClusterName
    ) -> ClusterCapacity:
        """Return a room without what is reserved in it."""
        paths = {placement.path for placement in without}
        left = [placement for placement in self._working_plan.on(cluster) if placement.path not in paths]
        room = room.copy()
        keep_free(room, held, left, self._observed.clusters[cluster])
        return room

    def reservations(self) -> Reservations:
        """Return what is reserved, sorted anew when any of it has changed."""
        holdings = self._working_plan.holdings
        if self._reserved is None or self._reserved[0] != holdings:
            self._reserved = holdings, Reservations(reserved(self._inputs, self._working_plan))
        return self._reserved[1]

    def _all(self, cluster: ClusterName) -> ClusterCapacity:
        """Return what is free whoever asks."""
        if cluster not in self._rooms:
            self._rooms[cluster] = self._without(cluster, ())
        return self._rooms[cluster]

    def _without(self, cluster: ClusterName, leaving: Iterable[tuple[Placement, ReplicaShape]]) -> ClusterCapacity:
        """Work out what is free if some placements are not there. All that this pass has handed out is in flight."""
        left = (*self._evicted.get(cluster, ()), *leaving)
        seen, gone = self._observed.clusters[cluster], {evicted.path: evicted for evicted, _ in left}
        room = ClusterCapacity(seen)
        alike: dict[Hashable, tuple[ReplicaShape, ReplicaShape, int]] = {}
        for placement, newcomer in left:
            key = placement.shape.likeness, newcomer.likeness
            *_, replicas = alike.get(key, (0,))
            alike[key] = placement.shape, newcomer, replicas + replica_count.bound_replicas(placement, seen)
        for shape, newcomer, replicas in alike.values():
            room.vacate(shape, replicas, newcomer)
        flying = self._flight(cluster, gone) if gone else self._working_plan.in_flight(cluster)
        parts: list[ShapeReplicas] = []
        for placement, replicas in flying.replicas:
            parts += self._coming(placement, replicas)
        parts += flying.going
        for shape, replicas in tightest_first(room, parts, lambda part: part[0]):
            room.take(shape, replicas)
        return room

    def _flight(self, cluster: ClusterName, gone: Mapping[str, Placement]) -> InFlight:
        """Find what is in flight in a cluster where some placements, and their pods, are not counted."""
        seen, names = self._observed.clusters[cluster], {placement.name for placement in gone.values()}
        homeless = {name: waiting for name, waiting in seen.homeless.items() if name not in names}
        left = (placement for placement in self._working_plan.on(cluster) if placement.path not in gone)
        inputs = self._inputs
        return flight(left, replace(seen, homeless=homeless), inputs.rollouts, self._desired.policies, self._now)
