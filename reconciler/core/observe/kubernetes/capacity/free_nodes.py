"""The nodes of a cluster and the resources that pods use there, updated with each pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from reconciler.core.capacity.node import PODS
from reconciler.core.observe.kubernetes.capacity.nodes import NodeGroup, NodeRecord, group_nodes, read_node
from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.model.capacity import ClosedNode, DeviceStock, Node, Pool
from reconciler.model.kubernetes.scheduling import PodOnNode
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import Json


class NodeTracker:
    """The part of nodes (a `watch.ResourcePart`), with the use of each by pods; each change updates free capacity."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeRecord] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._there: dict[str, Counter[PodOnNode]] = {}
        self._made: dict[str, Node] = {}
        self._groups: tuple[NodeGroup, ...] | None = None
        self.version = 0

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        """All nodes; `version` changes with each of them."""
        return self._nodes

    def apply(self, raw: Json) -> ChangeEffect:
        """Apply a node."""
        return self._put(key_of(raw), read_node(raw))

    def remove(self, key: str) -> ChangeEffect:
        """Apply the deletion of a node."""
        return self._put(key, None)

    def keys(self) -> AbstractSet[str]:
        """Return the names of the nodes."""
        return self._nodes.keys()

    def count(self, pod: PodRecord, sign: int) -> None:
        """Add a bound pod to the use of its node, or subtract it; the node may be unknown yet."""
        used = self._used.setdefault(pod.node, {})
        for name, amount in (*pod.requests.amounts.items(), (PODS, ONE)):
            used[name] = used.get(name, 0) + sign * amount
        pods_there = self._there.setdefault(pod.node, Counter())
        if pod.here is not None:
            pods_there[pod.here] += sign
            if not pods_there[pod.here]:
                del pods_there[pod.here]
        if not used[PODS]:
            del self._used[pod.node], self._there[pod.node]
        self._made.pop(pod.node, None)

    def is_open(self, name: str) -> bool:
        """Return whether a node takes pods; one that is unknown does not."""
        record = self._nodes.get(name)
        return record is not None and record.open

    def pools(self, devices: Mapping[str, tuple[DeviceStock, ...]]) -> tuple[Pool, ...]:
        """Make a pool of each group of nodes, named after its first; `devices` are the stock by node."""
        if self._groups is None:
            self._groups = group_nodes(self._nodes)
            self._made.clear()  # the labels that are a node's own depend on all other nodes
        return tuple(
            Pool(
                name=group.names[0],
                nodes=tuple(self._node(name, group, devices.get(name, ())) for name in group.names),
                labels=group.labels,
                taints=group.taints,
            )
            for group in self._groups
        )

    def closed(self) -> tuple[ClosedNode, ...]:
        """List the nodes that take no pods, by name."""
        return tuple(
            ClosedNode(
                name=name,
                allocatable=record.allocatable,
                ready=record.ready,
                labels=dict(record.labels),
                pods=self._pods(name),
            )
            for name, record in sorted(self._nodes.items())
            if not record.open
        )

    def _pods(self, node: str) -> tuple[PodOnNode, ...]:
        """List the pods on a node, in an order independent of their arrival."""
        pods_there = self._there.get(node)
        return (
            tuple(pod_on_node for pod_on_node in sorted(pods_there, key=_place) for _ in range(pods_there[pod_on_node]))
            if pods_there
            else ()
        )

    def _put(self, name: str, record: NodeRecord | None) -> ChangeEffect:
        if self._nodes.get(name) == record:
            return ChangeEffect.NOTHING
        self._groups = None
        self.version += 1
        self._made.pop(name, None)
        if record is None:
            del self._nodes[name]
        else:
            self._nodes[name] = record
        return ChangeEffect.CAPACITY

    def _node(self, name: str, group: NodeGroup, devices: tuple[DeviceStock, ...]) -> Node:
        """Return a node with its free resources, computed again only after a change on it."""
        made = self._made.get(name)
        if made is None or made.devices != devices:
            used = self._used.get(name, {})
            allocatable = self._nodes[name].allocatable
            amounts = allocatable.amounts
            # Only resources that the node has now count: a removed one cannot be free.
            free = {resource: Quantity(max(0, amount - used.get(resource, 0))) for resource, amount in amounts.items()}
            made = Node(
                name=name,
                free=Resources(amounts=free),
                allocatable=allocatable,
                labels=group.own[name],
                devices=devices,
                pods=self._pods(name),
            )
            self._made[name] = made
        return made


def _place(pod: PodOnNode) -> tuple[object, ...]:
    return *pod[:4], str(pod.keeps), pod.expected
