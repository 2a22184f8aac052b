"""One cluster in memory: told of each change, it keeps just the numbers that deciding needs, summed up as they come."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import datetime

from reconciler.core.kubernetes.asks import Asks, by_owner
from reconciler.core.kubernetes.autoscalers import read_autoscaler
from reconciler.core.kubernetes.controllers import ControllerRecord
from reconciler.core.kubernetes.members import Controllers, Followed, PodSums
from reconciler.core.kubernetes.parts import Effect, Part, namespace_of
from reconciler.core.kubernetes.resources import CAPACITY, CONTROLLERS, Owner, Resource
from reconciler.core.kubernetes.room import NodeRoom
from reconciler.core.kubernetes.workloads import Members, observe_workloads
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from reconciler.model.workload import Json, WorkloadRef


class ClusterState:
    """What is known of one cluster: a part for each resource, and what they add up to.

    The order between different objects does not matter. Not safe to use from several threads at once.
    """

    def __init__(self, refs: AbstractSet[WorkloadRef] = frozenset()) -> None:
        self._followed = Followed(refs)
        self._room = NodeRoom()
        self._pods = PodSums(self._followed, self._room)
        self._controllers: dict[Owner, ControllerRecord] = {}
        self._asks = {Resource.AUTOSCALERS: Asks(read_autoscaler, self._followed)}
        self._parts: dict[Resource, Part] = {
            Resource.NODES: self._room,
            Resource.PODS: self._pods,
            **{one: Controllers(one, self._followed, self._controllers) for one in CONTROLLERS},
            **self._asks,
        }

    def follow(self, refs: AbstractSet[WorkloadRef]) -> bool:
        """Report these workloads from now on; tell whether objects must be listed anew that were passed over so far."""
        namespaces = {ref.namespace for ref in refs}
        missing = bool(namespaces - self._followed.namespaces)
        self._followed.refs, self._followed.namespaces = frozenset(refs), namespaces
        for resource in self._parts.keys() - CAPACITY:
            part = self._parts[resource]
            for key in filter(self._elsewhere, set(part.keys())):
                part.remove(key)
        return missing

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

    def observation(self, cluster: ClusterName, at: datetime) -> ClusterObservation:
        """Sum up the cluster as it is known to be at a moment."""
        members = Members(
            pods=self._pods.pods,
            by_owner=self._pods.by_owner,
            controllers=self._controllers,
            asks=by_owner(self._asks.values()),
        )
        return ClusterObservation(
            cluster=cluster,
            observed_at=at,
            pools=self._room.pools(),
            workloads=tuple(observe_workloads(self._followed.refs, members)),
            bound=dict(sorted(self._pods.bound.items())),
        )

    def _elsewhere(self, key: str) -> bool:
        return namespace_of(key) not in self._followed.namespaces
