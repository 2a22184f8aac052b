"""One cluster in memory: told of each change, it keeps just the numbers that deciding needs, summed up as they come."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime
from enum import IntEnum

from reconciler.core.fit import PODS
from reconciler.core.kubernetes.controllers import ControllerRecord, read_controller
from reconciler.core.kubernetes.nodes import NodeGroup, NodeRecord, group_nodes, read_node
from reconciler.core.kubernetes.pods import PodRecord, read_pod
from reconciler.core.kubernetes.resources import Owner, Resource
from reconciler.core.kubernetes.workloads import Members, observe_workloads
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import Json, WorkloadRef


class Effect(IntEnum):
    """What a change means for deciding: nothing, that room came or went, or that somebody's demand did."""

    NOTHING = 0
    CAPACITY = 1
    DEMAND = 2


def key_of(raw: Json) -> str:
    """Name an object within its resource: ``namespace/name``, or the name alone where there is no namespace."""
    metadata = raw["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


class ClusterState:
    """What is known of one cluster's nodes, pods and workload objects.

    What it holds after any events is what it would hold after a fresh list: an event told twice changes nothing, and
    the order between different objects does not matter. About 400 bytes a pod; a node's free room is kept, not summed
    anew. Not safe to use from several threads at once.
    """

    def __init__(self, refs: AbstractSet[WorkloadRef] = frozenset()) -> None:
        self._refs = frozenset(refs)
        self._namespaces = {ref.namespace for ref in refs}
        self._nodes: dict[str, NodeRecord] = {}
        self._pods: dict[str, PodRecord] = {}
        self._controllers: dict[Owner, ControllerRecord] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._by_owner: dict[Owner, set[str]] = {}
        self._bound: dict[PlacementName, int] = {}
        self._made: dict[str, Node] = {}
        self._groups: tuple[NodeGroup, ...] | None = None

    def follow(self, refs: AbstractSet[WorkloadRef]) -> bool:
        """Report these workloads from now on; tell whether objects must be listed anew that were passed over so far."""
        namespaces = {ref.namespace for ref in refs}
        missing = bool(namespaces - self._namespaces)
        self._refs, self._namespaces = frozenset(refs), namespaces
        self._controllers = {owner: one for owner, one in self._controllers.items() if owner.namespace in namespaces}
        return missing

    def apply(self, resource: Resource, raw: Json) -> Effect:
        """Take note of an object as it is now."""
        key = key_of(raw)
        if resource is Resource.NODES:
            return self._put_node(key, read_node(raw))
        if resource is Resource.PODS:
            return self._put_pod(key, read_pod(raw))
        owner = _owner_of(resource, key)
        if owner.namespace not in self._namespaces:
            return Effect.NOTHING
        return self._put_controller(owner, read_controller(resource, raw))

    def remove(self, resource: Resource, key: str) -> Effect:
        """Take note that an object is gone."""
        if resource is Resource.NODES:
            return self._put_node(key, None)
        if resource is Resource.PODS:
            return self._put_pod(key, None)
        return self._put_controller(_owner_of(resource, key), None)

    def retain(self, resource: Resource, keys: AbstractSet[str]) -> Effect:
        """Forget all objects of a resource but these: what a list does not name is gone."""
        if resource is Resource.NODES:
            known: Iterable[str] = self._nodes
        elif resource is Resource.PODS:
            known = self._pods
        else:
            kept = (owner for owner in self._controllers if owner.kind == resource.kind)
            known = [f"{owner.namespace}/{owner.name}" for owner in kept]
        effects = [self.remove(resource, key) for key in set(known) - keys]
        return max(effects, default=Effect.NOTHING)

    def observation(self, cluster: ClusterName, at: datetime) -> ClusterObservation:
        """Sum up the cluster as it is known to be at a moment."""
        members = Members(pods=self._pods, by_owner=self._by_owner, controllers=self._controllers)
        return ClusterObservation(
            cluster=cluster,
            observed_at=at,
            pools=self._pools(),
            workloads=tuple(observe_workloads(self._refs, members)),
            bound=dict(sorted(self._bound.items())),
        )

    def _put_node(self, name: str, record: NodeRecord | None) -> Effect:
        if self._nodes.get(name) == record:
            return Effect.NOTHING
        self._groups = None
        self._made.pop(name, None)
        if record is None:
            del self._nodes[name]
        else:
            self._nodes[name] = record
        return Effect.CAPACITY

    def _put_pod(self, key: str, record: PodRecord | None) -> Effect:
        before = self._pods.get(key)
        if before == record:
            return Effect.NOTHING
        if before is not None:
            self._count(key, before, -1)
        if record is None:
            del self._pods[key]
        else:
            self._pods[key] = record
            self._count(key, record, 1)
        told = [one for one in (before, record) if one is not None]
        if any(one.held or one.placement or _namespace(key) in self._namespaces for one in told):
            return Effect.DEMAND
        return Effect.CAPACITY if any(one.node for one in told) else Effect.NOTHING

    def _put_controller(self, owner: Owner, record: ControllerRecord | None) -> Effect:
        if self._controllers.get(owner) == record:
            return Effect.NOTHING
        if record is None:
            del self._controllers[owner]
        else:
            self._controllers[owner] = record
        return Effect.DEMAND

    def _count(self, key: str, pod: PodRecord, sign: int) -> None:
        """Add a pod to the sums that it is part of, or take it off again."""
        if pod.owner is not None:
            _enter(self._by_owner, pod.owner, key, sign)
        if pod.placement and pod.runs:
            count = self._bound.pop(pod.placement, 0) + sign
            if count:
                self._bound[pod.placement] = count
        if pod.node:
            used = self._used.setdefault(pod.node, {})
            for name, amount in (*pod.requests.amounts.items(), (PODS, ONE)):
                used[name] = used.get(name, 0) + sign * amount
            if not used[PODS]:
                del self._used[pod.node]
            self._made.pop(pod.node, None)

    def _pools(self) -> tuple[Pool, ...]:
        """Make a pool of each kind of nodes, named after the first of them."""
        if self._groups is None:
            self._groups = group_nodes(self._nodes)
            self._made.clear()  # which labels are a node's own depends on all the others
        return tuple(
            Pool(
                name=group.names[0],
                nodes=tuple(self._node(name, group) for name in group.names),
                labels=group.labels,
                taints=group.taints,
            )
            for group in self._groups
        )

    def _node(self, name: str, group: NodeGroup) -> Node:
        """Return a node with what is free on it, made anew only when something on it has changed."""
        made = self._made.get(name)
        if made is None:
            used = self._used.get(name, {})
            amounts = self._nodes[name].allocatable.amounts
            # Only what the node has counts: a resource that it has no longer cannot be free.
            free = {resource: Quantity(max(0, amount - used.get(resource, 0))) for resource, amount in amounts.items()}
            made = self._made[name] = Node(name=name, free=Resources(amounts=free), labels=group.own[name])
        return made


def _enter(index: dict[Owner, set[str]], owner: Owner, key: str, sign: int) -> None:
    """Add a key to the set of its owner, or take it out; an empty set is not kept."""
    if sign > 0:
        index.setdefault(owner, set()).add(key)
        return
    index[owner].discard(key)
    if not index[owner]:
        del index[owner]


def _owner_of(resource: Resource, key: str) -> Owner:
    namespace, _, name = key.partition("/")
    return Owner(resource.kind, namespace, name)


def _namespace(key: str) -> str:
    return key.partition("/")[0]
