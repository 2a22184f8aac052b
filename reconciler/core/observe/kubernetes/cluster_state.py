"""A cluster in memory: takes each change, and keeps the sums that decisions need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from functools import partial

from reconciler.core.observe.kubernetes.autoscaler import read_autoscaler
from reconciler.core.observe.kubernetes.capacity.free_nodes import NodeTracker
from reconciler.core.observe.kubernetes.capacity.node_devices import NodeDevices
from reconciler.core.observe.kubernetes.capacity.node_pools import read_node_pool
from reconciler.core.observe.kubernetes.capacity.resource_slices import identifying_names, read_slice
from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.custom_workloads import CustomWorkloadRecord, read_spec
from reconciler.core.observe.kubernetes.kueue import KueueWorkloads
from reconciler.core.observe.kubernetes.kueue_quotas import KueueQuotas
from reconciler.core.observe.kubernetes.live_objects import LiveObjects
from reconciler.core.observe.kubernetes.members import Controllers, FollowedWorkloads, PodSums
from reconciler.core.observe.kubernetes.node_rejections import RejectedOwner, with_rejections
from reconciler.core.observe.kubernetes.ownership import BUILT_IN_MARKS, Marks
from reconciler.core.observe.kubernetes.placed_objects import PlacedObjects
from reconciler.core.observe.kubernetes.placement_pods import PlacementProgress
from reconciler.core.observe.kubernetes.placement_refusals import (
    PlacedMaker,
    RefusedPods,
    read_placed_maker,
    refused_pods,
    with_refused_pods,
)
from reconciler.core.observe.kubernetes.quota_refusals import FailedCreation, QuotaRefusals, read_failed_creation
from reconciler.core.observe.kubernetes.record_store import RecordStore
from reconciler.core.observe.kubernetes.replica_asks import AskRecord, by_owner
from reconciler.core.observe.kubernetes.resources import (
    CLUSTER_WIDE,
    CONTROLLERS,
    DEVICES,
    TRAINING_RUNTIMES,
    CustomResource,
    Owner,
    Resource,
    Watched,
    custom_resources_of_pods,
    placed_resources,
)
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled
from reconciler.core.observe.kubernetes.workloads import Members, observe_workloads, other_objects
from reconciler.core.pods.resource_claims import extended_resources, read_claim, read_class, read_template
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds
from reconciler.core.workloads.resource_quotas import quotas_by_namespace, read_resource_quota
from reconciler.core.workloads.runtime_defaults import (
    bounds_by_namespace,
    by_namespace,
    read_default_priority_class,
    read_limit_range,
    read_runtime_class,
)
from reconciler.core.workloads.watch import ChangeEffect, ResourcePart, key_of, namespace_of_key
from reconciler.model.capacity import ClusterObservation, DeviceStock, NodePool
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.kubernetes.admission import ResourceQuota
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.manifest_source import WorkloadSource
from reconciler.model.workload import Json, WorkloadRef


class ClusterState:
    """The state of one cluster: a part for each resource, and their sums.

    The order between different objects does not matter. Not safe to use from several threads at once.
    """

    def __init__(
        self,
        refs: AbstractSet[WorkloadRef] = frozenset(),
        marks: Marks = BUILT_IN_MARKS,
        kinds: Kinds = NO_KINDS,
        sources: AbstractSet[WorkloadSource] = frozenset(),
        placed: AbstractSet[WorkloadRef] = frozenset(),
        *,
        placeable: AbstractSet[WorkloadRef] = frozenset(),
    ) -> None:
        self._live = LiveObjects(sources)
        self._followed = FollowedWorkloads(refs, marks, _unlabelled(placed, kinds), bare_pods=_bare_pods(placed))
        self._kinds = kinds
        self._placed_kinds = frozenset(placed)
        self._placed: dict[CustomResource, PlacedObjects] = {}
        self._makers: dict[CustomResource, RecordStore[PlacedMaker]] = {}
        self._specs: dict[CustomResource, RecordStore[CustomWorkloadRecord]] = {}
        self._room = NodeTracker()
        self._pods = PodSums(self._followed, self._room)
        self._placeable = frozenset(placeable)
        self._pods.unplaced.watch(self._placeable, ())
        self._controllers: dict[Owner, ControllerRecord] = {}
        self._queue = KueueWorkloads(self._followed, self._meet)
        self._asks: dict[Resource, RecordStore[AskRecord]] = {
            Resource.AUTOSCALERS: RecordStore(read_autoscaler, ChangeEffect.DEMAND, self._followed, self._meet),
            Resource.QUEUED: self._queue.asks,
        }
        self._slices = RecordStore(read_slice, ChangeEffect.CAPACITY)
        self._claims = RecordStore(read_claim, ChangeEffect.CAPACITY)
        self._classes = RecordStore(read_class, ChangeEffect.CAPACITY)
        self._runtime_classes = RecordStore(read_runtime_class, ChangeEffect.CAPACITY)
        self._limit_ranges = RecordStore(read_limit_range, ChangeEffect.CAPACITY)
        self._failed_creations = RecordStore(self._read_event, ChangeEffect.DEMAND)
        self._quotas = RecordStore(read_resource_quota, ChangeEffect.CAPACITY)
        self._priority_classes = RecordStore(read_default_priority_class, ChangeEffect.CAPACITY)
        self._node_pools = RecordStore(read_node_pool, ChangeEffect.CAPACITY)
        self._kueue = KueueQuotas()
        self._templates = RecordStore(read_template, ChangeEffect.DEMAND, self._followed)
        self._parts: dict[Watched, ResourcePart] = {
            Resource.NODES: self._room,
            Resource.PODS: self._pods,
            **{resource: Controllers(resource, self._followed, self._controllers) for resource in CONTROLLERS},
            Resource.AUTOSCALERS: self._asks[Resource.AUTOSCALERS],
            Resource.QUEUED: self._queue,
            Resource.SLICES: self._slices,
            Resource.CLAIMS: self._claims,
            Resource.CLASSES: self._classes,
            Resource.RUNTIME_CLASSES: self._runtime_classes,
            Resource.LIMIT_RANGES: self._limit_ranges,
            Resource.QUOTAS: self._quotas,
            Resource.EVENTS: self._failed_creations,
            Resource.PRIORITY_CLASSES: self._priority_classes,
            Resource.NODE_POOLS: self._node_pools,
            **self._kueue.parts,
            Resource.TEMPLATES: self._templates,
        }
        self._refused: tuple[PlacementProgress, Mapping[PlacementName, RefusedPods], PlacementProgress] | None = None
        self._heard: dict[Watched, set[str]] = {}
        self._listed: set[Watched] = set()
        self._follow_specs()
        self._follow_placed()
        self._stocks = NodeDevices()
        self._in_stock: tuple[object, Mapping[str, tuple[DeviceStock, ...]]] = (None, {})
        self._pools_by_name: tuple[int, Mapping[str, NodePool]] = (0, {})
        self._quotas_by_namespace: tuple[int, Mapping[str, tuple[ResourceQuota, ...]]] = (0, {})

    def follow(
        self,
        refs: AbstractSet[WorkloadRef],
        marks: Marks = BUILT_IN_MARKS,
        kinds: Kinds = NO_KINDS,
        sources: AbstractSet[WorkloadSource] = frozenset(),
        placed: AbstractSet[WorkloadRef] = frozenset(),
        *,
        placeable: AbstractSet[WorkloadRef] = frozenset(),
    ) -> AbstractSet[Watched]:
        """Follow these workloads and objects from now on; return the resources that have to be listed again.

        Objects in other namespaces were skipped so far, and pods and templates were read by other marks. `kinds` are
        those that the fleet repository declares: objects were read by others. `placed` are kinds, as references
        without a name, whose objects have the label of their placement: they say how their run has ended, or whose
        their pods are, which have no label themselves. `placeable` are workloads that placements would make here.
        """
        namespaces = {ref.namespace for ref in refs}
        missing = bool(namespaces - self._followed.namespaces)
        relisted: AbstractSet[Watched] = self._parts.keys() - CLUSTER_WIDE if missing else frozenset()
        if marks != self._followed.marks:
            relisted |= {Resource.PODS, *CONTROLLERS}
        if kinds != self._kinds:
            relisted |= self._specs.keys() | self._makers.keys()
        unlabelled = _unlabelled(placed, kinds)
        if (unlabelled, _bare_pods(placed)) != (self._followed.unlabelled, self._followed.bare_pods):
            relisted |= {Resource.PODS, Resource.QUEUED}
        self._followed.follow(refs, marks, unlabelled, bare_pods=_bare_pods(placed))
        if placed != self._placed_kinds:
            relisted |= {Resource.EVENTS}
        if placeable != self._placeable:
            self._placeable = frozenset(placeable)
            self._pods.unplaced.watch(self._placeable, self._pods.pods.values())
        for records in (self._pods.pods, self._controllers):
            for record in records.values():
                self._followed.meet(record.owners)
        self._queue.follow()
        self._followed.meet(by_owner(self._asks.values()))
        self._kinds, self._placed_kinds = kinds, frozenset(placed)
        known = set(self._specs)
        self._follow_specs()
        relisted |= self._follow_placed() | (self._specs.keys() - known)
        for resource in self._parts.keys() - CLUSTER_WIDE - {Resource.QUEUED, Resource.EVENTS}:
            part = self._parts[resource]
            for key in filter(self._elsewhere, set(part.keys())):
                part.remove(key)
        self._listed -= relisted
        return relisted | self._live.follow(sources, self._parts.keys() | TRAINING_RUNTIMES)

    def _follow_specs(self) -> None:
        """Keep a part for each followed kind, and none for others."""
        self._met = len(self._followed.met)
        wanted = custom_resources_of_pods({*self._followed.refs, *self._followed.met}, self._kinds)
        for gone in self._specs.keys() - wanted:
            del self._specs[gone], self._parts[gone]
            self._heard.pop(gone, None)
            self._listed.discard(gone)
        for new in wanted - self._specs.keys():
            self._specs[new] = RecordStore(partial(self._read_spec, new), ChangeEffect.DEMAND, self._followed)
            self._parts[new] = self._specs[new]

    def _follow_placed(self) -> AbstractSet[CustomResource]:
        """Keep a part for each kind whose objects of placements are watched; return those that are new."""
        wanted = placed_resources(self._placed_kinds, self._kinds)
        for gone in self._makers.keys() - wanted:
            if (ends := self._placed.pop(gone, None)) is not None:
                for key in set(ends.keys()):
                    ends.remove(key)
            del self._makers[gone]
        new = wanted - self._makers.keys()
        for resource in new:
            self._makers[resource] = RecordStore(partial(self._read_maker, resource), ChangeEffect.DEMAND)
            kind = _kind(resource, self._kinds)
            if kind.end is not None or kind.leaves_pods_unlabelled:
                self._placed[resource] = PlacedObjects(resource, kind, self._pods.place)
        return new

    @property
    def customs(self) -> AbstractSet[CustomResource]:
        """The followed kinds of objects: those that are named, of placements, or whose pods are met."""
        return frozenset(self._specs) | self._makers.keys()

    def _meet(self, record: AskRecord) -> None:
        self._followed.meet((record.owner,))

    def _read_spec(self, resource: CustomResource, raw: Json) -> CustomWorkloadRecord | None:
        return read_spec(resource, raw, self._kinds)

    def _read_maker(self, resource: CustomResource, raw: Json) -> PlacedMaker | None:
        return read_placed_maker(resource, raw, self._kinds)

    def _read_event(self, raw: Json) -> FailedCreation | None:
        """Read an Event on an object in a followed namespace, or of a kind of placements."""
        event = read_failed_creation(raw)
        if event is None or event.owner.namespace in self._followed.namespaces:
            return event
        placed = {resource.owning for resource in self._makers}
        return event if (event.owner.kind, event.owner.group) in placed else None

    def apply(self, resource: Watched, raw: Json, api_version: str = "") -> ChangeEffect:
        """Apply an object as it is now; resources that are no longer followed are ignored."""
        return max(step() for step in self.steps(resource, raw, api_version))

    def steps(self, resource: Watched, raw: Json, api_version: str = "") -> Iterator[Callable[[], ChangeEffect]]:
        """Yield what applies an object as it is now, in this order; a step that fails leaves the others to be done.

        `api_version` is the one in which it is served: items of a list do not say it themselves.
        """
        yield partial(self._hear, resource, raw)
        for part in self._parts_of(resource):
            yield partial(part.apply, raw)
        yield partial(self._live.apply, resource, raw, api_version)
        yield self._follow_met

    def _hear(self, resource: Watched, raw: Json) -> ChangeEffect:
        """Note that there is an object of a workload, whether or not it can be read."""
        if resource in CONTROLLERS or resource in self._specs:
            key = key_of(raw)
            if namespace_of_key(key) in self._followed.namespaces:
                self._heard.setdefault(resource, set()).add(key)
        return ChangeEffect.NOTHING

    def _gone(self, unknown: AbstractSet[Watched]) -> Callable[[Owner], bool]:
        """Return the question whether an object is not there any more, as far as all of its kind have been listed."""
        listed = {_owning_of(resource): self._heard.get(resource, set()) for resource in self._listed - unknown}

        def is_gone(owner: Owner) -> bool:
            keys = listed.get((owner.kind, owner.group))
            return keys is not None and f"{owner.namespace}/{owner.name}" not in keys

        return is_gone

    def _follow_met(self) -> ChangeEffect:
        """Follow the kinds of owners that have just been met."""
        if len(self._followed.met) > self._met:
            self._follow_specs()
        return ChangeEffect.NOTHING

    def keys(self, resource: Watched) -> AbstractSet[str]:
        """Return the keys of the objects of a resource, of the part that keeps the most."""
        return max((part.keys() for part in self._parts_of(resource)), key=len, default=frozenset())

    def remove(self, resource: Watched, key: str) -> ChangeEffect:
        """Apply the deletion of an object."""
        self._heard.get(resource, set()).discard(key)
        effects = [part.remove(key) for part in self._parts_of(resource)]
        return max([*effects, self._live.remove(resource, key)])

    def retain(self, resource: Watched, keys: AbstractSet[str], *, served: bool = True) -> ChangeEffect:
        """Drop all objects of a resource but these: a list is complete.

        Of a kind that is not `served`, or in versions alone that are not known here, objects may be there all the same.
        """
        if resource in CONTROLLERS or resource in self._specs:
            (self._listed.add if served else self._listed.discard)(resource)
            self._heard.get(resource, set()).intersection_update(keys)
        gone = self._live.keys(resource).union(*(part.keys() for part in self._parts_of(resource))) - keys
        return max((self.remove(resource, key) for key in gone), default=ChangeEffect.NOTHING)

    def is_outdated(self, at: datetime) -> bool:
        """Return whether the last observation no longer holds at a moment, though nothing has changed since."""
        return self._pods.rejections.are_over(at)

    def observation(
        self, cluster: ClusterName, at: datetime, unknown: AbstractSet[Watched] = frozenset()
    ) -> ClusterObservation:
        """Sum up the cluster at a moment.

        `unknown` are optional resources whose objects are unknown at present. While anything of DRA is among them no
        device counts: devices without their claims would all seem free. What was last heard of the end of a run, or of
        a queue, may long be over, and would end placements.
        """
        devices_known = not unknown & DEVICES
        self._pods.ours.disregard_ends({resource.owning for resource in self._placed if resource in unknown})
        self._pods.ours.forget_ends(at)
        classes = sorted(self._classes.records.items()) if devices_known else []
        admission = self._admission(cluster, at, unknown)
        events = () if Resource.EVENTS in unknown else self._failed_creations.records.values()
        refusals = QuotaRefusals(admission, events)
        rejected = self._pods.rejections.current(at)
        specs = {
            _owner_of(custom, key): record
            for custom, part in self._specs.items()
            for key, record in part.records.items()
        }
        members = Members(
            pods=self._pods.pods,
            by_owner=self._pods.by_owner,
            controllers=with_rejections(
                refusals.of_controllers(self._controllers, self._pods.pods, self._pods.by_owner), rejected
            ),
            rejected=rejected,
            asks=by_owner(self._asks.values()),
            templates=self._templates.records,
            is_open=self._room.is_open,
            specs=refusals.of_customs(specs, self._controllers, self._pods.by_owner, self._pods.ended),
            is_gone=self._gone(unknown),
            starts=self._queue.starts(),
            reservations=self._queue.reservations(),
            unadmitted=self._queue.unadmitted(),
            dispatched=self._queue.dispatched(),
        )
        progress = self._pods.ours.progress()
        if Resource.QUEUED not in unknown:
            progress = self._queue.progress(progress)
        progress = self._with_refused_pods(progress, refusals, rejected, unknown)
        workloads = tuple(observe_workloads(self._followed.refs, members))
        return replace(
            admission,
            pools=self._room.pools(self._devices() if devices_known else {}),
            closed=self._room.closed(),
            workloads=workloads,
            objects=self._live.objects,
            others=other_objects(self._followed.refs, workloads, members),
            unplaced=self._pods.unplaced.refs,
            bound=_less(self._pods.bound(self._claims.keys() if devices_known else None), progress.rejected),
            ready=progress.ready,
            non_gpu_pods=progress.non_gpu_pods,
            gpu_pods=progress.gpu_pods,
            pending_pods=progress.pending_pods,
            waiting_reasons=progress.waiting_reasons,
            unadmitted=progress.unadmitted,
            evicted=progress.evicted,
            refused=progress.refused,
            succeeded=progress.succeeded,
            failed=progress.failed,
            unfinished=progress.unfinished,
            device_classes={name: record.selectors for name, record in classes},
            extended_resources=extended_resources(dict(classes)),
            node_pools=None if Resource.NODE_POOLS in unknown else self._known_node_pools(),
            namespaces=self._kueue.namespaces(unknown),
            queues=self._kueue.queues(unknown),
            reserved={} if Resource.QUEUED in unknown else self._queue.reserved(),
        )

    def _with_refused_pods(
        self,
        progress: PlacementProgress,
        refusals: QuotaRefusals,
        rejected: Mapping[RejectedOwner, Unscheduled],
        unknown: AbstractSet[Watched],
    ) -> PlacementProgress:
        """Add the pods of placements that may not be created; the same object until something changes."""
        makers = (
            maker
            for resource, part in self._makers.items()
            if resource not in unknown
            for maker in part.records.values()
        )
        refused = refused_pods(makers, refusals, self._pods.ours.pods, self._pods.ended, rejected)
        if self._refused is None or self._refused[0] is not progress or self._refused[1] != refused:
            self._refused = progress, refused, with_refused_pods(progress, refused)
        return self._refused[2]

    def _admission(self, cluster: ClusterName, at: datetime, unknown: AbstractSet[Watched]) -> ClusterObservation:
        """Return a cluster with what it adds to new pods, and what it refuses, and nothing else."""
        return ClusterObservation(
            cluster=cluster,
            observed_at=at,
            runtime_classes=None
            if Resource.RUNTIME_CLASSES in unknown
            else dict(sorted(self._runtime_classes.records.items())),
            limit_ranges=None
            if Resource.LIMIT_RANGES in unknown
            else by_namespace((key, record.defaults) for key, record in self._limit_ranges.records.items()),
            limit_range_items={}
            if Resource.LIMIT_RANGES in unknown
            else bounds_by_namespace(self._limit_ranges.records.items()),
            quotas=None if Resource.QUOTAS in unknown else self._known_quotas(),
            priority_class=None
            if Resource.PRIORITY_CLASSES in unknown
            else min(self._priority_classes.records.values(), default=""),
        )

    def _parts_of(self, resource: Watched) -> Iterator[ResourcePart]:
        part = self._parts.get(resource)
        if part is not None:
            yield part
        if isinstance(resource, CustomResource) and resource in self._makers:
            yield self._makers[resource]
            if resource in self._placed:
                yield self._placed[resource]

    def _known_node_pools(self) -> Mapping[str, NodePool]:
        """Return the NodePools by name, the same object until one of them changes."""
        if self._pools_by_name[0] != self._node_pools.version:
            self._pools_by_name = self._node_pools.version, dict(sorted(self._node_pools.records.items()))
        return self._pools_by_name[1]

    def _known_quotas(self) -> Mapping[str, tuple[ResourceQuota, ...]]:
        """Return the quotas by namespace, the same object until one of them changes."""
        if self._quotas_by_namespace[0] != self._quotas.version:
            self._quotas_by_namespace = self._quotas.version, quotas_by_namespace(self._quotas.records.items())
        return self._quotas_by_namespace[1]

    def _devices(self) -> Mapping[str, tuple[DeviceStock, ...]]:
        """Return the device stock of nodes, summed up again after a change."""
        choosing = (self._classes.version, self._templates.version)
        versions = (self._slices.version, self._claims.version, self._room.version, *choosing)
        if self._in_stock[0] != versions:
            claimed = self._claims.records.values()
            stocks = self._stocks.by_node(
                self._slices.records, claimed, self._room.nodes, identifying_names(self._selectors())
            )
            self._in_stock = (versions, stocks)
        return self._in_stock[1]

    def _selectors(self) -> Iterator[str]:
        """Yield the expressions by which DeviceClasses and templates choose devices."""
        for record in self._classes.records.values():
            yield from record.selectors
        for template in self._templates.records.values():
            for request in template.requests:
                yield from (selector for option in request.options for selector in option.selectors)

    def _elsewhere(self, key: str) -> bool:
        return namespace_of_key(key) not in self._followed.namespaces


def _less(bound: Mapping[PlacementName, int], rejected: Mapping[PlacementName, int]) -> Mapping[PlacementName, int]:
    """Return the bound pods of placements without those that their nodes reject; the same mapping without any."""
    if not rejected:
        return bound
    rest = {name: number - rejected.get(name, 0) for name, number in bound.items()}
    return {name: number for name, number in rest.items() if number > 0}


def _unlabelled(placed: Iterable[WorkloadRef], kinds: Kinds) -> frozenset[tuple[str, str]]:
    """Return the kind and group, as of an `Owner`, of the objects that leave their pods without a label."""
    return frozenset(
        each.owning for each in placed_resources(placed, kinds) if _kind(each, kinds).leaves_pods_unlabelled
    )


def _bare_pods(placed: Iterable[WorkloadRef]) -> bool:
    """Return whether placements make pods themselves, and not by another object."""
    return any((ref.kind, ref.group) == (Resource.PODS.kind, Resource.PODS.group) for ref in placed)


def _kind(resource: CustomResource, kinds: Kinds) -> WorkloadKind:
    return kinds.get(resource.name) or BUILT_IN[resource.name]


def _owning_of(resource: Watched) -> tuple[str, str]:
    """Return the kind and group of the objects of a resource as an `Owner`."""
    return resource.owning if isinstance(resource, CustomResource) else (resource.kind, "")


def _owner_of(resource: CustomResource, key: str) -> Owner:
    """Return an object of a resource by its key."""
    kind, group = resource.owning
    namespace, _, name = key.partition("/")
    return Owner(kind, namespace, name, group)
