"""One cluster in memory: told of each change, it keeps just the numbers that deciding needs, summed up as they come."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from reconciler.core.kubernetes.asks import Asks, by_owner
from reconciler.core.kubernetes.autoscalers import read_autoscaler
from reconciler.core.kubernetes.claims import read_claim, read_class, read_template
from reconciler.core.kubernetes.controllers import ControllerRecord
from reconciler.core.kubernetes.marks import BUILT_IN_MARKS, Marks
from reconciler.core.kubernetes.members import Controllers, Followed, PodSums
from reconciler.core.kubernetes.parts import Effect, Part, namespace_of
from reconciler.core.kubernetes.queued import read_queued
from reconciler.core.kubernetes.records import Records
from reconciler.core.kubernetes.resources import CAPACITY, CONTROLLERS, DEVICES, Owner, Resource
from reconciler.core.kubernetes.room import NodeRoom
from reconciler.core.kubernetes.slices import read_slice
from reconciler.core.kubernetes.stocks import Stocks
from reconciler.core.kubernetes.workloads import Members, observe_workloads
from reconciler.model.capacity import ClusterObservation
from reconciler.model.devices import DeviceStock
from reconciler.model.ids import ClusterName
from reconciler.model.workload import Json, WorkloadRef


class ClusterState:
    """What is known of one cluster: a part for each resource, and what they add up to.

    The order between different objects does not matter. Not safe to use from several threads at once.
    """

    def __init__(self, refs: AbstractSet[WorkloadRef] = frozenset(), marks: Marks = BUILT_IN_MARKS) -> None:
        self._followed = Followed(refs, marks)
        self._room = NodeRoom()
        self._pods = PodSums(self._followed, self._room)
        self._controllers: dict[Owner, ControllerRecord] = {}
        self._asks = {
            Resource.AUTOSCALERS: Asks(read_autoscaler, self._followed),
            Resource.QUEUED: Asks(read_queued, self._followed),
        }
        self._slices = Records(read_slice, Effect.CAPACITY)
        self._claims = Records(read_claim, Effect.CAPACITY)
        self._classes = Records(read_class, Effect.CAPACITY)
        self._templates = Records(read_template, Effect.DEMAND, self._followed)
        self._parts: dict[Resource, Part] = {
            Resource.NODES: self._room,
            Resource.PODS: self._pods,
            **{one: Controllers(one, self._followed, self._controllers) for one in CONTROLLERS},
            **self._asks,
            Resource.SLICES: self._slices,
            Resource.CLAIMS: self._claims,
            Resource.CLASSES: self._classes,
            Resource.TEMPLATES: self._templates,
        }
        self._stocks = Stocks()
        self._in_stock: tuple[object, Mapping[str, tuple[DeviceStock, ...]]] = (None, {})

    def follow(self, refs: AbstractSet[WorkloadRef], marks: Marks = BUILT_IN_MARKS) -> AbstractSet[Resource]:
        """Report these workloads from now on; tell which resources must be listed anew.

        Objects in other namespaces were passed over so far, and other marks were looked for in pods and templates.
        """
        namespaces = {ref.namespace for ref in refs}
        missing = bool(namespaces - self._followed.namespaces)
        anew = self._parts.keys() - CAPACITY if missing else frozenset[Resource]()
        if marks != self._followed.marks:
            anew |= {Resource.PODS, *CONTROLLERS}
        self._followed.refs, self._followed.namespaces, self._followed.marks = frozenset(refs), namespaces, marks
        for resource in self._parts.keys() - CAPACITY:
            part = self._parts[resource]
            for key in filter(self._elsewhere, set(part.keys())):
                part.remove(key)
        return anew

    def apply(self, resource: Resource, raw: Json) -> Effect:
        """Take note of an object as it is now."""
        return self._parts[resource].apply(raw)

    def remove(self, resource: Resource, key: str) -> Effect:
        """Take note that an object is gone."""
        return self._parts[resource].remove(key)

    def retain(self, resource: Resource, keys: AbstractSet[str]) -> Effect:
        """Forget all objects of a resource but these: what a list does not name is gone."""
        part = self._parts[resource]
        return max((part.remove(key) for key in set(part.keys()) - keys), default=Effect.NOTHING)

    def observation(
        self, cluster: ClusterName, at: datetime, unknown: AbstractSet[Resource] = frozenset()
    ) -> ClusterObservation:
        """Sum up the cluster as it is known to be at a moment.

        `unknown` are optional resources of which nobody knows what is there now. While anything of DRA is among them no
        device counts: to see devices and not who holds them would make all of them free.
        """
        devices_known = not unknown & DEVICES
        members = Members(
            pods=self._pods.pods,
            by_owner=self._pods.by_owner,
            controllers=self._controllers,
            asks=by_owner(self._asks.values()),
            templates=self._templates.records,
        )
        come = self._pods.ours.come()
        return ClusterObservation(
            cluster=cluster,
            observed_at=at,
            pools=self._room.pools(self._devices() if devices_known else {}),
            closed=self._room.closed(),
            workloads=tuple(observe_workloads(self._followed.refs, members)),
            bound=self._pods.bound(self._claims.keys() if devices_known else None),
            ready=come.ready,
            helpers=come.helpers,
            homeless=come.homeless,
            troubles=come.troubles,
            device_classes=dict(sorted(self._classes.records.items())) if devices_known else {},
        )

    def _devices(self) -> Mapping[str, tuple[DeviceStock, ...]]:
        """Return what nodes have in stock of devices, summed up anew when any of it has changed."""
        versions = (self._slices.version, self._claims.version, self._room.version)
        if self._in_stock[0] != versions:
            claimed = self._claims.records.values()
            self._in_stock = (versions, self._stocks.by_node(self._slices.records, claimed, self._room.nodes))
        return self._in_stock[1]

    def _elsewhere(self, key: str) -> bool:
        return namespace_of(key) not in self._followed.namespaces
