"""How many replicas a cluster can hold, node by node, and which resource runs short where none fits.

Counting a cluster's free GPUs is not enough: eight nodes with one free GPU each hold no replica that needs eight.
Answers are cached by shape, so that like replicas are counted once. Capacity that preemption frees is a lower bound
where the nodes of the evicted pods are unknown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from reconciler.core.capacity import admission_defaults, topology_spread
from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.capacity.devices import ClusterDevices, DeviceAllocation
from reconciler.core.capacity.node import (
    NodeCapacity,
    admits,
    admits_anywhere,
    device_views,
    max_pods_held,
    max_pods_on_node,
    may_be_in_domains,
    node_capacities,
    pod_usage,
    pods_fitting,
    separate_groups,
)
from reconciler.core.capacity.pod_anti_affinity import (
    ANTI_AFFINITY_PODS,
    NOT_REPELLED,
    REPELLED_BY_EXISTING_PODS,
    REPELLED_BY_INCOMING_PODS,
    Domain,
    in_domains,
    repels,
)
from reconciler.core.capacity.topology_spread import NodeInfo
from reconciler.core.workloads.node_affinity import describe_node_selector, selects_node
from reconciler.core.workloads.taints import untolerated_taint
from reconciler.model.capacity import CLASS_PREFIX, ClusterObservation, ReplicaShape
from reconciler.model.scheduling import PodRules
from reconciler.model.units import ONE, Quantity, Resources, total
from reconciler.text.wording import amounts, count, is_gpu, join_names


def certain_pods(places: Sequence[int], pods: int) -> list[int]:
    """Say how many of some pods are on each node at the least, when so many of them can be on each at the most."""
    spare = max(0, sum(places) - pods)
    return [max(0, most - spare) for most in places]


def replacement_needs(pod: Resources, wanted: Resources, nodes: Sequence[Resources]) -> Resources | None:
    """Say what a newcomer needs of a node beside the room of one pod, so that it fits in that pod's place anywhere.

    `nodes` are what is free on those that the pod can be on; what is needed has to be taken off each of them. None
    where one of them has too little, or more newcomers would find room without it. In place of a large pod there may be
    several newcomers.
    """
    for number in sorted({1, _max_newcomers(pod, wanted)}, reverse=True):
        missing = wanted.times(number).minus(pod).amounts.items()
        needed = Resources(amounts={name: amount for name, amount in missing if amount and name in wanted.amounts})
        if not needed.amounts:
            return needed
        if all(free.holds(needed) for free in nodes):
            lost = sum(free.holds(wanted) - free.minus(needed).holds(wanted) for free in nodes)
            if lost < number:
                return needed
    return None


def _max_newcomers(pod: Resources, wanted: Resources) -> int:
    """Count the newcomers whose extended resources a pod makes free, whatever else they need."""
    extended = [(pod.amounts.get(name, 0), amount) for name, amount in wanted.amounts.items() if amount and "/" in name]
    return max(1, min((free // amount for free, amount in extended), default=1))


_MAX_ANSWERS = 1000
"""Answers that are kept for one room; it would take that many different shapes."""


@dataclass(frozen=True, slots=True)
class FitCache:
    """What has been answered of one room: how often shapes fit, each up to a limit, and why they do not."""

    counts: dict[tuple[Hashable, int], int] = field(default_factory=dict)
    shortfalls: dict[Hashable, str] = field(default_factory=dict)

    def bound(self) -> None:
        """Forget all when there are too many to keep."""
        if len(self.counts) >= _MAX_ANSWERS:
            self.counts.clear()
        if len(self.shortfalls) >= _MAX_ANSWERS:
            self.shortfalls.clear()


FIT_CACHES = ClusterCache[FitCache](lambda _: FitCache())
"""What has been answered of the clusters as they were seen, before anything was taken there."""


def describe_shortage(shape: ReplicaShape, nodes: list[NodeCapacity]) -> str:
    """Name the resource that too little of is free on any one node, accelerators first."""
    for name in sorted(shape.requests.amounts, key=_by_scarcity):
        request = shape.requests.amounts[name]
        largest = max(node.free.amounts.get(name, Quantity(0)) for node in nodes)
        if not largest:
            return f"needs {format_amount(name, request)} on one node, none is free on {count(len(nodes), 'node')}"
        if largest < request:
            summed = sum(node.free.amounts.get(name, 0) for node in nodes)
            return (
                f"needs {format_amount(name, request)} on one node, largest has {format_amount(name, largest)} free"
                f" ({format_amount(name, Quantity(summed))} over {count(len(nodes), 'node')})"
            )
    together = join_names(amounts(shape.requests))
    able = sum(pods_fitting(node, shape) > 0 for node in nodes) if shape.apart else 0
    if able:
        return f"needs {together} free on each of {count(shape.group_size, 'node')}, {able} of {len(nodes)} has that"
    group = f" for {count(shape.group_size, 'pod')} of a group" if shape.group_size > 1 else ""
    return f"none of {count(len(nodes), 'node')} has {together} free together{group}"


def format_amount(name: str, quantity: Quantity) -> str:
    """Write so much of a resource."""
    return amounts(Resources(amounts={name: quantity}))[0]


def _by_scarcity(name: str) -> tuple[bool, bool, str]:
    """Sort resources by how likely they are what runs out: GPUs, other extended resources, then the rest."""
    return (not is_gpu(name), "/" not in name, name)


_UNTOLERATED = "which the workload does not tolerate"
"""How a shortfall ends that is for taints alone."""


class ClusterCapacity:
    """What is free in one cluster while a pass hands it out.

    Replicas are taken first-fit over the nodes by pool and name, so the same inputs always leave the same room. An
    answer holds until something is taken or given: of many alike that wait, the first alone has its nodes counted. What
    was answered of a room that nothing has been taken of holds for as long as its nodes are the same objects.
    """

    def __init__(
        self,
        observation: ClusterObservation,
        nodes: list[NodeCapacity] | None = None,
        handed: DeviceAllocation | None = None,
        moving: Iterable[PodRules] = (),
    ) -> None:
        """Begin with what was observed free, or with what is left of it."""
        self._observation = observation
        self._stockroom = ClusterDevices(observation.device_classes)
        self._handed = handed or DeviceAllocation()
        self._moving = tuple(moving)
        self._laid_out = nodes
        self._answers = FitCache() if nodes is not None else FIT_CACHES.of(observation)

    def together(self, wanted: Iterable[tuple[ReplicaShape, int]]) -> int:
        """Count how many of these, so many replicas of a shape each, fit one beside the other; nothing is taken."""
        parts, fitting = list(wanted), 0
        # What does not even fit alone, as most of what waits, needs nothing tried out.
        able = next((at for at, (shape, most) in enumerate(parts) if self.count(shape, most) < most), len(parts))
        room = self.copy() if able > 1 else self
        for shape, replicas in parts[:able]:
            if room.count(shape, replicas) < replicas:
                break
            fitting += 1
            if fitting < able:
                room.take(shape, replicas)
        return fitting

    def copy(self) -> ClusterCapacity:
        """Return the same room, to try something in."""
        return ClusterCapacity(
            self._observation, [replace(node) for node in self._nodes], self._handed.copy(), self._moving
        )

    def count(self, shape: ReplicaShape, limit: int) -> int:
        """Count the replicas of this shape that fit, up to `limit`. A replica is a whole group of pods or nothing."""
        shape = self.admitted(shape)
        key = (shape.likeness, self.hindered(shape)), limit
        cached = self._answers.counts.get(key)
        if cached is None:
            self._answers.bound()
            cached = self._answers.counts[key] = self._count(shape, limit)
        return cached

    def take(self, shape: ReplicaShape, replicas: int) -> None:
        """Take the room of replicas, as much as there is: some may have been lost. Unknown additions count as none."""
        shape = replace(self.admitted(shape), obstacle=shape.obstacle)
        self._change(shape)
        pods = replicas * shape.group_size
        for node in self._admitting(shape):
            if not pods:
                return
            here = self._held(node, shape, max_pods_on_node(shape, pods, replicas), self._handed)
            if here:
                node.free = node.free.minus(pod_usage(node, shape).times(here))
                pods -= here

    def give(self, shape: ReplicaShape, replicas: int) -> None:
        """Give back the room of replicas that had a node: first-fit among the nodes they can have been on.

        Nobody tells which that were. Devices that are claimed do not come back, for nobody knows whose they were.
        """
        shape = self.admitted(shape)
        self._change(shape)
        pods = replicas * shape.group_size
        for node in self._nodes:
            if not pods or not admits(node, shape):
                continue
            pod = pod_usage(node, shape)
            here = min(node.allocatable.minus(node.free).holds(pod), max_pods_on_node(shape, pods, replicas))
            node.free = total([node.free, pod.times(here)])
            pods -= here

    def vacate(self, shape: ReplicaShape, replicas: int, newcomer: ReplicaShape) -> None:
        """Give back of the room of replicas that had a node what a newcomer can surely have, wherever they were."""
        shape, newcomer = self.admitted(shape), self.admitted(newcomer)
        self._change(shape)
        pods, node_capacities = (
            replicas * shape.group_size,
            [node for node in self._nodes if max_pods_held(node, shape)],
        )
        places = [
            min(max_pods_held(node, shape), replicas) if shape.apart else max_pods_held(node, shape)
            for node in node_capacities
        ]
        freed = certain_pods(places, pods)
        for node, number in zip(node_capacities, freed, strict=True):
            node.free = total([node.free, pod_usage(node, shape).times(number)])
        unsure = [node for node, most, number in zip(node_capacities, places, freed, strict=True) if number < most]
        if newcomer.rules is not None and (newcomer.rules.together or newcomer.rules.evenly):
            self._change(newcomer)  # nobody knows which pods it will find there
        if newcomer.devices or newcomer.rules or not all(admits_anywhere(node, newcomer) for node in unsure):
            return
        for _ in range(pods - sum(freed) if unsure else 0):
            pod, wanted = pod_usage(unsure[0], shape), pod_usage(unsure[0], newcomer)
            needed = replacement_needs(pod, wanted, [node.free for node in unsure])
            if needed is None:
                return
            for node in unsure:
                node.free = node.free.minus(needed)
            self._nodes.append(replace(unsure[0], free=total([pod, needed]), devices=(), one_of=tuple(unsure)))

    def choices(self, shape: ReplicaShape) -> int:
        """Count the nodes that hold at least one pod of this shape, devices aside."""
        shape = self.admitted(shape)
        return sum(1 for node in self._nodes if admits(node, shape) and pods_fitting(node, shape))

    def free(self, shape: ReplicaShape) -> Resources:
        """Add up what is free of the requested resources and devices on the nodes that admit this shape."""
        shape = self.admitted(shape)
        names = shape.requests.amounts.keys()
        nodes = [node for node in self._nodes if admits(node, shape)]
        summed = total(node.free for node in nodes)
        amounts = {name: summed.amounts.get(name, Quantity(0)) for name in names}
        for request in shape.devices:
            option = request.options[0]
            left = sum(self._stockroom.free(node.name, node.devices, option, self._handed) for node in nodes)
            amounts[f"{CLASS_PREFIX}{option.device_class}"] = Quantity(left * ONE)
        return Resources(amounts=amounts)

    def shortfall(self, shape: ReplicaShape) -> str:
        """Say with numbers why not one replica fits."""
        shape = self.admitted(shape)
        key = shape.likeness, self.hindered(shape)
        cached = self._answers.shortfalls.get(key)
        if cached is None:
            self._answers.bound()
            cached = self._answers.shortfalls[key] = self._shortfall(shape)
        return cached

    def remedy(self, shape: ReplicaShape) -> str:
        """Say what would let a replica fit of which not one does."""
        if shape.obstacle:
            return "change what its pods, or the patch of its subset, ask for"
        if admission_remedy := admission_defaults.admission_remedy(shape, self._observation):
            return admission_remedy
        if self.shortfall(shape).endswith(_UNTOLERATED):
            return "tolerate the taint in its pods, or add nodes without it there"
        return "free or add nodes there"

    def admitted(self, shape: ReplicaShape) -> ReplicaShape:
        """Return a replica as it is made here, with what the cluster adds to its pods."""
        return admission_defaults.with_admission_defaults(shape, self._observation)

    def hindered(self, shape: ReplicaShape) -> tuple[frozenset[Domain], bool]:
        """Say which domains other pods keep a shape out of, and whether some do so whose nodes nobody knows."""
        if not shape.who:
            return NOT_REPELLED
        return ANTI_AFFINITY_PODS.of(self._observation).shut(shape.who), repels(self._moving, shape)

    @property
    def guarded(self) -> bool:
        """Whether there are pods that keep any others out."""
        return bool(self._moving) or ANTI_AFFINITY_PODS.of(self._observation).some

    @property
    def _nodes(self) -> list[NodeCapacity]:
        """The nodes, laid out for the first question that has not been answered before."""
        if self._laid_out is None:
            self._laid_out = node_capacities(self._observation)
        return self._laid_out

    def _change(self, shape: ReplicaShape) -> None:
        """Forget the answers: pods of a shape come or go."""
        self._answers = FitCache()
        if shape.rules is not None:
            self._moving = (*self._moving, shape.rules)

    def _count(self, shape: ReplicaShape, limit: int) -> int:
        if repels(self._moving, shape):
            return 0
        if shape.rules is not None:
            pods = topology_spread.pods_by_rules(
                shape.rules, self._seats(shape, limit * shape.group_size), self._moving
            )
            return min(limit, pods // shape.group_size)
        nodes = self._admitting(shape)
        if not shape.devices:
            return self._counted(shape, limit, nodes)
        nodes = list(nodes)
        return max(self._counted(shape, limit, node_capacities) for node_capacities in device_views(shape, nodes))

    def _shortfall(self, shape: ReplicaShape) -> str:
        if shape.obstacle:
            return shape.obstacle
        if not self._nodes:
            return "no node is ready"
        chosen = [node for node in self._nodes if not node.one_of and selects_node(shape, node.labels, node.name)]
        if not chosen:
            return f"no node has {describe_node_selector(shape)}"
        admitted = [node for node in chosen if not untolerated_taint(shape.tolerations, node.taints)]
        if not admitted:
            taint = untolerated_taint(shape.tolerations, chosen[0].taints)
            return f"{count(len(chosen), 'node')} tainted {taint}, {_UNTOLERATED}"
        shut, coming = self.hindered(shape)
        admitted = [node for node in admitted if not in_domains(node.labels, shut)]
        if not admitted:
            return REPELLED_BY_EXISTING_PODS
        obstacle = self._stockroom.obstacle(shape, (stock for node in admitted for stock in node.devices))
        if shape.rules is not None and not obstacle:
            obstacle = topology_spread.rules_obstacle(
                shape, shape.rules, self._seats(shape, shape.group_size), self._moving
            )
        obstacle = obstacle or (REPELLED_BY_INCOMING_PODS if coming else "")
        return obstacle or self._too_few_devices(shape, admitted) or describe_shortage(shape, admitted)

    def _seats(self, shape: ReplicaShape, most: int) -> list[NodeInfo] | None:
        """Lay out the nodes for a shape with rules: devices that several nodes can reach are none of any."""
        nodes, handed = [node.alone() for node in self._admitting(shape)], self._handed.copy()
        holds = {node.name: self._held(node, shape, most, handed) for node in nodes if not node.one_of}
        return topology_spread.node_infos(shape, self._nodes, self._observation.closed, holds)

    def _counted(self, shape: ReplicaShape, limit: int, nodes: Iterable[NodeCapacity]) -> int:
        pods, wanted, handed = 0, limit * shape.group_size, self._handed.copy()
        if shape.apart:
            return separate_groups([self._held(node, shape, limit, handed) for node in nodes], shape.group_size, limit)
        for node in nodes:
            if pods >= wanted:
                break
            pods += self._held(node, shape, wanted - pods, handed)
        return pods // shape.group_size

    def _admitting(self, shape: ReplicaShape) -> Iterable[NodeCapacity]:
        """Yield the nodes that a replica may go to; none if nobody can count what it needs."""
        shut = ANTI_AFFINITY_PODS.of(self._observation).shut(shape.who)
        nodes = (node for node in self._nodes if admits(node, shape) and not may_be_in_domains(node, shut))
        if shape.obstacle:
            return ()
        if not shape.devices:
            return nodes
        admitting = list(nodes)
        if self._stockroom.obstacle(shape, (stock for node in admitting for stock in node.devices)):
            return ()
        # Nodes that have devices of their own come first: they may use up those that other nodes need.
        return sorted(admitting, key=lambda node: -sum(stock.free for stock in node.devices if not stock.shared))

    def _held(self, node: NodeCapacity, shape: ReplicaShape, most: int, handed: DeviceAllocation) -> int:
        """Count the pods that a node holds, up to `most`, and note the devices that they take."""
        pods = min(most, pods_fitting(node, shape))
        return self._stockroom.hand_out(node.name, node.devices, shape.devices, pods, handed) if shape.devices else pods

    def _too_few_devices(self, shape: ReplicaShape, nodes: list[NodeCapacity]) -> str:
        """Name the first request of devices that no one node can meet; empty if each finds some node."""
        for request in shape.devices:
            option = request.options[0]
            name = f"{CLASS_PREFIX}{option.device_class}"
            if any(
                self._stockroom.hand_out(node.name, node.devices, (request,), 1, self._handed.copy()) for node in nodes
            ):
                continue
            left = [self._stockroom.free(node.name, node.devices, option, self._handed) for node in nodes]
            needs = f"needs {'every one' if option.every else format_amount(name, Quantity(option.count * ONE))}"
            if not any(left):
                return f"{needs} on one node, none is free on {count(len(nodes), 'node')}"
            largest, summed = (format_amount(name, Quantity(number * ONE)) for number in (max(left), sum(left)))
            return f"{needs} on one node, largest has {largest} free ({summed} over {count(len(nodes), 'node')})"
        return ""
