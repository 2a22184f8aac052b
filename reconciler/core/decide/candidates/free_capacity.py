"""The free capacity of every cluster while one pass places replicas.

Capacity is counted once: replicas that a pass places take it from the next workload, and so do replicas that were
committed earlier and have no node yet, and the reservations of other workspaces.

Room is what nodes have free that are there. While the capacity is `grown`, the nodes that autoscalers may add count
too, after those that are there: what takes room on them waits for them in the cluster, so that its autoscaler acts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain
from typing import TypeAlias

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.best_fit import ShapeReplicas, tightest_first
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.exclusive_topology import ShapeCounts, TopologyDomains
from reconciler.core.capacity.included_admission import brings_bounds
from reconciler.core.capacity.node_pool_room import Growth
from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.capacity.queue_quota import with_quota
from reconciler.core.capacity.scalable_nodes import (
    addable_nodes,
    first_growth,
    held_growth,
    longest_delay,
    with_added_nodes,
)
from reconciler.core.capacity.shared_topology import SharedDomain, pods_in_domains
from reconciler.core.decide.candidates.gang_start import may_start, waiting
from reconciler.core.decide.candidates.replica_domains import countable_domains
from reconciler.core.decide.candidates.reservations import (
    Reservations,
    active_reservations,
    bound_pods_by_group,
    pending_domains,
    subtract_reservations,
)
from reconciler.core.decide.state.in_flight import InFlight, flight
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import divided_gang, placement_needs
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.observe.demand import unseen
from reconciler.core.observe.primary_shape import template_admission
from reconciler.core.workloads import replica_count
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.cluster import ScalableNodes
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.admission import PodAdmission
from reconciler.model.placement import Placement
from reconciler.model.request import RequestRecord

Mark: TypeAlias = tuple[int, int, int]
"""A point in the course of a pass, between two changes of free capacity."""


class FleetCapacity:
    """The free capacity of each cluster, computed at the first question about it."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Begin with the observed free capacity."""
        self._inputs = inputs
        self._desired = inputs.desired
        self._observed = inputs.observed
        self._now = inputs.now
        self._working_plan = working_plan
        self._rooms: dict[tuple[ClusterName, bool], ClusterCapacity] = {}
        self._is_grown = False
        self._grown: dict[ClusterName, ClusterObservation] = {}
        self._held: dict[tuple[ClusterName, Hashable], tuple[Growth, ...]] = {}
        self._allocated: Counter[ClusterName] = Counter()
        self._allocations: list[ClusterName] = []
        self._views: dict[tuple[ClusterName, WorkspaceName | None, bool], tuple[Hashable, ClusterCapacity]] = {}
        self._reserved: tuple[int, Reservations] | None = None
        self._repelling: set[ClusterName] | None = None
        self._touched: set[ClusterName] = set()
        self._evicted: dict[ClusterName, tuple[tuple[Placement, ReplicaShape], ...]] = {}
        self._ended: dict[ClusterName, dict[Hashable, tuple[ReplicaShape, int]]] = {}

    @contextmanager
    def grown(self, *, growth: bool = True) -> Iterator[None]:
        """Count the nodes that autoscalers may add, or without `growth` those that are there alone, in the context."""
        before, self._is_grown = self._is_grown, growth
        try:
            yield
        finally:
            self._is_grown = before

    @property
    def is_grown(self) -> bool:
        """Whether the nodes that autoscalers may add count."""
        return self._is_grown

    @cached_property
    def growing_clusters(self) -> frozenset[ClusterName]:
        """The clusters whose autoscaler may add a node."""
        return frozenset(name for name in self._desired.clusters if self.may_grow(name))

    def may_grow(self, cluster: ClusterName) -> bool:
        """Tell whether the autoscaler of a cluster may add a node."""
        described, seen = self._desired.clusters.get(cluster), self._observed.clusters.get(cluster)
        if described is None or seen is None or not described.autoscaling:
            return False
        return next(addable_nodes(described, seen), None) is not None

    def first_growth(self, cluster: ClusterName, shape: ReplicaShape) -> ScalableNodes | None:
        """Return the nodes that a pod of this shape gets soonest on a cluster; None unless the capacity is grown."""
        if not self._is_grown or not self.may_grow(cluster):
            return None
        return first_growth(self._desired.clusters[cluster], self._observed.clusters[cluster], shape)

    def held_growth(self, cluster: ClusterName, shape: ReplicaShape) -> tuple[Growth, ...]:
        """Return the nodes for a pod of this shape that NodePools hold back; none while others may still be tried."""
        described, seen = self._desired.clusters.get(cluster), self._observed.clusters.get(cluster)
        if described is None or seen is None or not described.has_node_pools:
            return ()
        if not self._is_grown and self.may_grow(cluster):
            return ()
        key = cluster, shape.likeness
        if key not in self._held:
            self._held[key] = tuple(held_growth(described, seen, shape))
        return self._held[key]

    def describe_held(self, cluster: ClusterName, shape: ReplicaShape) -> str:
        """Say which NodePools hold nodes for such a pod back, each after a semicolon; empty for none."""
        return "".join(f"; {growth.held}" for growth in self.held_growth(cluster, shape))

    @property
    def changes(self) -> int:
        """Count the changes of free capacity by this pass."""
        return len(self._allocations)

    def moment(self, cluster: ClusterName) -> Hashable:
        """Return a value that changes whenever the free capacity of a cluster may have changed."""
        moved, reservations = self._working_plan.moved(cluster), self._working_plan.reservation_changes
        return self._is_grown, self._allocated[cluster], moved, reservations

    @property
    def mark(self) -> Mark:
        """The present point in the course of the pass."""
        return len(self._allocations), len(self._working_plan.touched_clusters), self._working_plan.reservation_changes

    def changed_since(self, mark: Mark) -> Collection[ClusterName] | None:
        """Name the clusters whose `moment` has changed since a mark; None where all of them may have.

        That nodes of autoscalers count, or no longer, is no change here.
        """
        allocations, placements, reservations = mark
        if reservations != self._working_plan.reservation_changes:
            return None
        return {*self._allocations[allocations:], *self._working_plan.touched_clusters[placements:]}

    def basis(self, cluster: ClusterName) -> tuple[object, ...] | None:
        """Return what the room of a cluster is counted from, each the same object for as long as it has not changed.

        None where more than its nodes counts: changes of this pass, replicas in flight, reservations, added nodes, or
        that it is out of sight or unwell.
        """
        seen = self._observed.clusters.get(cluster)
        if seen is None or not seen.healthy or unseen(self._desired.fleet, self._observed, cluster, self._now):
            return None
        changed = self._allocated[cluster] or cluster in self._evicted or cluster in self._ended
        if changed or self._is_grown or self.reservations().on.get(cluster):
            return None
        flying = self._working_plan.in_flight(cluster)
        if flying.total or flying.going:
            return None
        classes = (seen.device_classes, seen.extended_resources, seen.runtime_classes)
        bounds = seen.limit_ranges, seen.limit_range_items, seen.quotas, seen.priority_class, seen.queues
        return seen.pools, seen.closed, *classes, *bounds, seen.node_pools, seen.namespaces

    def room(
        self,
        cluster: ClusterName,
        workspace: WorkspaceName | None,
        *,
        without: Sequence[Placement] = (),
        newcomer: ReplicaShape | None = None,
    ) -> ClusterCapacity:
        """Return the free capacity of a cluster for a workspace, less replicas in flight and those just placed.

        Reservations of other workspaces are not free; without a workspace all reservations are others'. With
        `without` the result is what a `newcomer` would have for certain if those placements and their pods were gone.
        Pods of a placement that has ended keep their capacity until they are gone, also those without a node.
        """
        reserved_here = self.reservations().on.get(cluster, ())
        if not without and not reserved_here:
            return self._all(cluster)
        leaving = [(item, newcomer) for item in without] if newcomer is not None else []
        held = [record for record in reserved_here if record.request.workspace != workspace]
        if leaving or not held:
            room = self._without(cluster, leaving) if leaving else self._all(cluster)
            return self._less(room, held, without, cluster) if held else room
        view = cluster, workspace if len(held) < len(reserved_here) else None, self._is_grown
        now, cached = self.moment(cluster), self._views.get(view)
        if cached is None or cached[0] != now:
            cached = self._views[view] = now, self._less(self._all(cluster), held, (), cluster)
        return cached[1]

    def repelling_domains(self, clusters: Iterable[ClusterName], pods: Sequence[ReplicaShape]) -> Hashable:
        """Return the domains where anti-affinity of other pods repels these pods; None if there are none."""
        named = [shape for shape in pods if shape.who]
        repelling = self._repelling_clusters() if named else ()
        rooms = [self._all(name) for name in clusters if name in repelling] if repelling else []
        domains = [room.repelling_domains(shape) for room in rooms for shape in named]
        return tuple(domains) if any(shut or coming for shut, coming in domains) else None

    def admission(self, clusters: Iterable[ClusterName], pods: Sequence[ReplicaShape]) -> Hashable:
        """Return what admission of a cluster looks at in pods beyond their requests; None if it looks at nothing.

        Those are their namespaces, if a LimitRange of a cluster may add to their requests, and all that its quotas and
        the bounds of its LimitRanges may be about.
        """
        defaulting = not self._defaulting_clusters.isdisjoint(clusters)
        bounding = not self._bounding_clusters.isdisjoint(clusters)
        stated = [shape.admission if bounding or brings_bounds(shape.admission) else () for shape in pods]
        if not defaulting and not any(stated):
            return None
        owners = (frozenset(owner.namespace for owner in shape.who) for shape in pods)
        return tuple(zip(owners, stated, strict=True))

    @property
    def has_admission(self) -> bool:
        """Whether admission of any cluster may add to pods, or refuse them."""
        return bool(self._defaulting_clusters or self._bounding_clusters)

    @cached_property
    def _defaulting_clusters(self) -> frozenset[ClusterName]:
        """The clusters where a LimitRange may add to the requests of pods."""
        return frozenset(name for name, seen in self._observed.clusters.items() if seen.limit_ranges)

    @cached_property
    def _bounding_clusters(self) -> frozenset[ClusterName]:
        """The clusters where quotas or LimitRanges may refuse pods."""
        return frozenset(name for name, seen in self._observed.clusters.items() if seen.has_pod_bounds)

    def _repelling_clusters(self) -> Collection[ClusterName]:
        """Name the clusters with pods that may repel others; clusters with changed capacity are evaluated again."""
        if self._repelling is None:
            self._repelling, self._touched = set(), {*self._observed.clusters.keys() & self._desired.clusters.keys()}
        self._repelling.difference_update(self._touched)
        self._repelling.update(name for name in self._touched if self._all(name).may_repel)
        self._touched = set()
        return self._repelling

    def take(self, cluster: ClusterName, shape: ReplicaShape, replicas: int) -> None:
        """Take the capacity of replicas that have just been decided, with and without added nodes."""
        self._all(cluster).take(shape, replicas)
        other = self._rooms.get((cluster, not self._is_grown))
        if other is not None:
            other.take(shape, replicas)
        self._note(cluster)

    def take_replicas(self, cluster: ClusterName, workload: WorkloadId, shape: ReplicaShape, replicas: int) -> None:
        """Take the capacity of replicas of a workload; where they share a topology domain, all of it in one.

        Groups of a set that is divided take that of all their pods, beside the groups that the cluster has of it.
        """
        gang = divided_gang(self._inputs, workload)
        if gang is not None:
            here = sum(each.replicas for each in self._working_plan.of(workload) if each.cluster == cluster)
            needed = gang.more(here, replicas)
            for pods in self.gang_pods(cluster, needed, workload.workspace):
                self.take(cluster, *pods)
            return
        domains = countable_domains(self._inputs, workload, shape, replicas)
        for pods in pods_in_domains(self._all(cluster), domains, [(shape, replicas)]):
            self.take(cluster, *pods)

    def evict(self, cluster: ClusterName, leaving: Iterable[Placement], newcomer: ReplicaShape) -> None:
        """Release the capacity of placements that are evicted for a newcomer."""
        self._evicted[cluster] = (*self._evicted.get(cluster, ()), *((placement, newcomer) for placement in leaving))
        for grown in (False, True):
            self._rooms.pop((cluster, grown), None)
        self._note(cluster)

    def free_ended(self, placements: Iterable[Placement]) -> None:
        """Count the nodes' room of placements that will have ended as free, on the first nodes that can have held them.

        To be called before anything is asked.
        """
        for placement in placements:
            seen = self._observed.clusters.get(placement.cluster)
            if seen is not None:
                ended = self._ended.setdefault(placement.cluster, {})
                shape = self._with_admission(placement)
                key = shape.likeness, shape.admission
                _, replicas = ended.get(key, (shape, 0))
                ended[key] = shape, replicas + replica_count.bound_replicas(placement, seen)

    def _note(self, cluster: ClusterName) -> None:
        self._allocated[cluster] += 1
        self._allocations.append(cluster)
        self._touched.add(cluster)

    def needs(self, placement: Placement) -> PodRequirements | None:
        """Return the requirements of a placement whose pods are a gang; None where its replicas stand alone."""
        return placement_needs(self._inputs, placement)

    def gang_pods(self, cluster: ClusterName, needed: PodRequirements, workspace: WorkspaceName) -> ShapeCounts:
        """Return all pods of a gang in the order in which they find room in a workspace.

        Those that share a topology domain are kept to one with room for them.
        """
        parts = [part.room for part in needed.parts]
        if needed.shared:
            return pods_in_domains(self._all(cluster), needed.shared, parts)
        return tuple(tightest_first(self.room(cluster, workspace), parts, lambda pods: pods[0]))

    def domains(self, cluster: ClusterName, wanted: TopologyDomains) -> int:
        """Count the domains that groups on a cluster may still take, in addition to those of their bound pods."""
        requirements_here = ((placement, self.needs(placement)) for placement in self._working_plan.on(cluster))
        claims = [
            (placement_of_claim, needed)
            for placement_of_claim, needed in requirements_here
            if needed is not None and (needed.domains or needed.marked)
        ]
        if not claims:
            return 0
        seen = bound_pods_by_group(self._observed.clusters[cluster], wanted)
        return sum(
            pending_domains(needed, wanted, seen.get(placement_of_claim.name, Counter()))
            for placement_of_claim, needed in claims
        )

    def _pods_to_come(self, placement: Placement, replicas: int, room: ClusterCapacity) -> tuple[ShapeReplicas, ...]:
        """Return the pods that a placement with missing replicas still needs.

        A gang needs all of its pods while none has a node. A gang that has started with its minimum needs the pods
        without a node. Pods that share topology domains take their room at once, and need nothing more.
        """
        needed, seen = self.needs(placement), self._observed.clusters[placement.cluster]
        if needed is not None and may_start(needed):
            return waiting(needed, *replica_count.bound_pods(placement, seen))
        if replicas < placement.replicas:
            return ((placement.shape, replicas),)
        parts = [(placement.shape, replicas)] if needed is None else [part.room for part in needed.parts]
        shared = self._shared_domains(placement) if needed is None else needed.shared
        if shared:
            for pods in pods_in_domains(room, shared, parts):
                room.take_nodes(*pods)
            return ()
        return tuple(parts) if needed is not None and needed.others else ((placement.shape, replicas),)

    def _identified(self, placement: Placement, shape: ReplicaShape) -> ReplicaShape:
        """Return a recorded shape with what rules about other pods match, where any are: a record does not name it."""
        if shape.rules is not None or shape.who or placement.subset or not self._has_rules_about_others:
            return shape
        demand, entry = (
            self._inputs.demands.get(placement.workload),
            self._inputs.enrolment.entries.get(placement.workload),
        )
        own = demand.shape if isinstance(demand, Demand) else entry.needs.main.shape if entry is not None else None
        return shape if own is None or not own.who else replace(shape, who=own.who)

    @cached_property
    def _has_rules_about_others(self) -> bool:
        """Whether any replicas that may be placed have rules about pods that are not of their own kind."""
        demanded = (demand.shape for demand in self._inputs.demands.values() if isinstance(demand, Demand))
        asked = (part.shape for entry in self._inputs.enrolment.entries.values() for part in entry.needs.parts)
        return any(
            shape is not None and shape.rules is not None and not all(rule.itself for rule in shape.rules.all)
            for shape in chain(demanded, asked)
        )

    def _shared_domains(self, placement: Placement) -> tuple[SharedDomain, ...]:
        """Return the topology domains of a placement whose pods are no gang."""
        return countable_domains(self._inputs, placement.workload, placement.shape, placement.replicas)

    def _less(
        self, room: ClusterCapacity, held: Iterable[RequestRecord], without: Iterable[Placement], cluster: ClusterName
    ) -> ClusterCapacity:
        """Return a copy of the capacity less its reservations."""
        paths = {placement.path for placement in without}
        left = [placement for placement in self._working_plan.on(cluster) if placement.path not in paths]
        room = room.copy()
        subtract_reservations(room, held, left, self._observed.clusters[cluster])
        return room

    def reservations(self) -> Reservations:
        """Return the reservations, sorted again after a change."""
        reservation_changes = self._working_plan.reservation_changes
        if self._reserved is None or self._reserved[0] != reservation_changes:
            self._reserved = reservation_changes, Reservations(active_reservations(self._inputs, self._working_plan))
        return self._reserved[1]

    def _all(self, cluster: ClusterName) -> ClusterCapacity:
        """Return the free capacity before reservations."""
        room = self._rooms.get((cluster, self._is_grown))
        if room is None:
            room = self._rooms[cluster, self._is_grown] = self._without(cluster, ())
        return room

    def _nodes(self, cluster: ClusterName) -> ClusterObservation:
        """Return the observation of a cluster, with the nodes that its autoscaler may add while these count."""
        seen = self._observed.clusters[cluster]
        if not self._is_grown or not self.may_grow(cluster):
            return seen
        if cluster not in self._grown:
            self._grown[cluster] = with_added_nodes(self._desired.clusters[cluster], seen, timedelta.max)
        return self._grown[cluster]

    def _without(self, cluster: ClusterName, leaving: Iterable[tuple[Placement, ReplicaShape]]) -> ClusterCapacity:
        """Compute the free capacity without some placements. Replicas that this pass placed are in flight."""
        left = (*self._evicted.get(cluster, ()), *leaving)
        seen, gone = self._observed.clusters[cluster], {evicted.path: evicted for evicted, _ in left}
        room = ClusterCapacity(self._nodes(cluster))
        for shape, replicas in self._ended.get(cluster, {}).values():
            room.release(shape, replicas)
        alike: dict[Hashable, tuple[ReplicaShape, ReplicaShape, int]] = {}
        for placement, newcomer in left:
            shape = self._with_admission(placement)
            key = shape.likeness, shape.admission, newcomer.likeness
            *_, replicas = alike.get(key, (0,))
            alike[key] = shape, newcomer, replicas + replica_count.bound_replicas(placement, seen)
        for shape, newcomer, replicas in alike.values():
            room.release_evicted(shape, replicas, newcomer)
        flying = self._flight(cluster, gone) if gone else self._working_plan.in_flight(cluster)
        parts: list[ShapeReplicas] = []
        for placement, replicas in flying.replicas:
            coming = attempt(Seam.PENDING, placement.path, partial(self._pods_to_come, placement, replicas, room))
            if isinstance(coming, Bug):
                self._working_plan.note_bug(coming)
                coming = ((placement.shape, replicas),)
            known = [(self._identified(placement, shape), number) for shape, number in coming]
            parts += known if seen.queues is None else self._queued(placement, known, seen)
        parts += [(with_quota(shape), pods) for shape, pods in flying.going]
        for shape, replicas in tightest_first(room, parts, lambda part: part[0]):
            room.take_nodes(shape, replicas)
        for placement, _ in flying.replicas:
            if seen.has_pod_bounds or brings_bounds(self._stated(placement)):
                for shape, pods in self._uncreated(placement, seen):
                    room.charge(shape, pods)
        return room

    def _queued(
        self, placement: Placement, coming: Iterable[ShapeReplicas], seen: ClusterObservation
    ) -> Iterator[ShapeReplicas]:
        """Yield the pods to come of a placement by whether their queue has given them quota, which it then counts."""
        given = max(0, seen.reserved.get(placement.name, 0) - replica_count.bound_pods(placement, seen)[0])
        claim = self._with_admission(placement).admission
        for shape, replicas in coming:
            waiting = shape if shape.admission else replace(shape, admission=claim)
            admitted = min(replicas, given // shape.group_size)
            given -= admitted * shape.group_size
            yield with_quota(waiting), admitted
            yield waiting, replicas - admitted

    def _uncreated(self, placement: Placement, seen: ClusterObservation) -> Iterator[ShapeReplicas]:
        """Yield the pods of a placement that do not exist yet, so that no quota counts them; of each shape at most all.

        Which pods of a gang exist is unknown.
        """
        needed, pending = self.needs(placement), seen.pending_pods.get(placement.name)
        exist = replica_count.bound_pods(placement, seen)[0]
        exist += pending.replicas - pending.uncreated if pending is not None else 0
        if needed is not None:
            for part in needed.parts:
                yield part.shape, min(part.replicas, max(0, needed.pods - exist))
            return
        yield self._with_admission(placement), max(0, placement.replicas * placement.shape.group_size - exist)

    def _with_admission(self, placement: Placement) -> ReplicaShape:
        """Return the shape of a placement with what quotas look at, by its template, or by its pods on the primary."""
        seen, stated = self._observed.clusters.get(placement.cluster), self._stated(placement)
        if seen is None or not stated or not (seen.has_pod_bounds or brings_bounds(stated)):
            return placement.shape
        return replace(placement.shape, admission=stated)

    def _stated(self, placement: Placement) -> tuple[PodAdmission, ...]:
        """Return what quotas look at in the pods of a placement; empty where its workload is no longer wanted."""
        template = self._desired.templates.get(placement.workload)
        workspace = self._desired.workspaces.get(placement.workload.workspace)
        if template is None or workspace is None:
            return ()
        demand = self._inputs.demands.get(placement.workload)
        shown = demand.shape.admission if isinstance(demand, Demand) and demand.shape is not None else ()
        return template_admission(template, workspace, self._desired.kinds) or shown

    def _flight(self, cluster: ClusterName, gone: Mapping[str, Placement]) -> InFlight:
        """Return the replicas in flight in a cluster, less some placements and their pods."""
        seen, names = self._observed.clusters[cluster], {placement.name for placement in gone.values()}
        pending_pods = {name: waiting for name, waiting in seen.pending_pods.items() if name not in names}
        left = (placement for placement in self._working_plan.on(cluster) if placement.path not in gone)
        inputs = self._inputs
        return flight(
            left,
            replace(seen, pending_pods=pending_pods),
            inputs.rollouts,
            self._desired.policies,
            self._now,
            delay=longest_delay(self._desired.clusters.get(cluster)),
        )
