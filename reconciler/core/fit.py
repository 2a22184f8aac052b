"""How many replicas a cluster can hold, node by node.

Counting a cluster's free GPUs is not enough: eight nodes with one free GPU each hold no replica that needs eight.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.core.affinity import described, selected
from reconciler.core.devices import Handed, Stockroom
from reconciler.core.noderoom import NodeRoom, nodes_of, pod_on, pods_fitting
from reconciler.core.roomanswers import UNTOUCHED, Answers
from reconciler.core.vacated import beside, sure
from reconciler.core.wording import amounts, count, is_gpu, listed
from reconciler.model.capacity import ClusterObservation, ReplicaShape, Taint, Toleration
from reconciler.model.devices import CLASS_PREFIX
from reconciler.model.units import ONE, Quantity, Resources, total

_REPELLING = frozenset({"NoSchedule", "NoExecute"})


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Tell whether any toleration accepts the taint, as the scheduler's TaintToleration plugin does."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (
            (not toleration.key and toleration.operator == "Exists")
            or (toleration.key == taint.key and (toleration.operator == "Exists" or toleration.value == taint.value))
        )
        for toleration in tolerations
    )


def repelled(tolerations: tuple[Toleration, ...], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that keeps pods away and is not tolerated. PreferNoSchedule keeps nobody away."""
    for taint in taints:
        if taint.effect in _REPELLING and not tolerates(tolerations, taint):
            return taint
    return None


class Room:
    """What is free in one cluster while a pass hands it out.

    Replicas are taken first-fit over the nodes by pool and name, so the same inputs always leave the same room. An
    answer holds until something is taken or given: of many alike that wait, the first alone has its nodes counted. What
    was answered of a room that nothing has been taken of holds for as long as its nodes are the same objects.
    """

    def __init__(
        self, observation: ClusterObservation, nodes: list[NodeRoom] | None = None, handed: Handed | None = None
    ) -> None:
        """Begin with what was observed free, or with what is left of it."""
        self._observation = observation
        self._stockroom = Stockroom(observation.device_classes)
        self._handed = handed or Handed()
        self._laid_out = nodes
        self._answers = Answers() if nodes is not None else UNTOUCHED.of(observation)

    def together(self, wanted: Iterable[tuple[ReplicaShape, int]]) -> int:
        """Count how many of these, so many replicas of a shape each, fit one beside the other; nothing is taken."""
        parts, fitting = list(wanted), 0
        room = self.copy() if len(parts) > 1 else self
        for shape, replicas in parts:
            if room.count(shape, replicas) < replicas:
                break
            fitting += 1
            if fitting < len(parts):
                room.take(shape, replicas)
        return fitting

    def copy(self) -> Room:
        """Return the same room, to try something in."""
        return Room(self._observation, [replace(node) for node in self._nodes], self._handed.copy())

    def count(self, shape: ReplicaShape, limit: int) -> int:
        """Count the replicas of this shape that fit, up to `limit`. A replica is a whole group of pods or nothing."""
        key = shape.likeness, limit
        known = self._answers.counts.get(key)
        if known is None:
            self._answers.bound()
            known = self._answers.counts[key] = self._count(shape, limit)
        return known

    def take(self, shape: ReplicaShape, replicas: int) -> None:
        """Take the room of replicas, as much of it as there is: what was promised may have been lost since."""
        self._answers = Answers()
        pods = replicas * shape.group_size
        for node in self._admitting(shape):
            if not pods:
                return
            here = self._held(node, shape, min(pods, replicas) if shape.apart else pods, self._handed)
            if here:
                node.free = node.free.minus(pod_on(node, shape).times(here))
                pods -= here

    def give(self, shape: ReplicaShape, replicas: int) -> None:
        """Give back the room of replicas that had a node: first-fit among the nodes they can have been on.

        Nobody tells which that were. Devices that are claimed do not come back, for nobody knows whose they were.
        """
        self._answers = Answers()
        pods = replicas * shape.group_size
        for node in self._nodes:
            if not pods or not _admits(node, shape):
                continue
            pod = pod_on(node, shape)
            here = min(pods, node.allocatable.minus(node.free).holds(pod), replicas if shape.apart else pods)
            node.free = total([node.free, pod.times(here)])
            pods -= here

    def vacate(self, shape: ReplicaShape, replicas: int, newcomer: ReplicaShape) -> None:
        """Give back of the room of replicas that had a node what a newcomer can surely have, wherever they were."""
        self._answers = Answers()
        pods, there = replicas * shape.group_size, [node for node in self._nodes if _held_by(node, shape)]
        places = [min(_held_by(node, shape), replicas) if shape.apart else _held_by(node, shape) for node in there]
        known = sure(places, pods)
        for node, number in zip(there, known, strict=True):
            node.free = total([node.free, pod_on(node, shape).times(number)])
        unsure = [node for node, most, number in zip(there, places, known, strict=True) if number < most]
        if newcomer.devices or not all(_serves(node, newcomer) for node in unsure):
            return
        for _ in range(pods - sum(known) if unsure else 0):
            pod, wanted = pod_on(unsure[0], shape), pod_on(unsure[0], newcomer)
            needed = beside(pod, wanted, [node.free for node in unsure])
            if needed is None:
                return
            for node in unsure:
                node.free = node.free.minus(needed)
            self._nodes.append(replace(unsure[0], free=total([pod, needed]), devices=(), one_of=tuple(unsure)))

    def free(self, shape: ReplicaShape) -> Resources:
        """Add up what is free of the requested resources and devices on the nodes that admit this shape."""
        names = shape.requests.amounts.keys()
        nodes = [node for node in self._nodes if _admits(node, shape)]
        summed = total(node.free for node in nodes)
        found = {name: summed.amounts.get(name, Quantity(0)) for name in names}
        for request in shape.devices:
            option = request.options[0]
            left = sum(self._stockroom.free(node.name, node.devices, option, self._handed) for node in nodes)
            found[f"{CLASS_PREFIX}{option.device_class}"] = Quantity(left * ONE)
        return Resources(amounts=found)

    def shortfall(self, shape: ReplicaShape) -> str:
        """Say with numbers why not one replica fits."""
        known = self._answers.shortfalls.get(shape.likeness)
        if known is None:
            self._answers.bound()
            known = self._answers.shortfalls[shape.likeness] = self._shortfall(shape)
        return known

    @property
    def _nodes(self) -> list[NodeRoom]:
        """The nodes, laid out for the first question that has not been answered before."""
        if self._laid_out is None:
            self._laid_out = nodes_of(self._observation)
        return self._laid_out

    def _count(self, shape: ReplicaShape, limit: int) -> int:
        nodes = self._admitting(shape)
        if not shape.devices:
            return self._counted(shape, limit, nodes)
        nodes = list(nodes)
        return max(self._counted(shape, limit, ways) for ways in _ways(shape, nodes))

    def _shortfall(self, shape: ReplicaShape) -> str:
        if shape.obstacle:
            return shape.obstacle
        if not self._nodes:
            return "no node is ready"
        chosen = [node for node in self._nodes if not node.one_of and selected(shape, node.labels, node.name)]
        if not chosen:
            return f"no node has {described(shape)}"
        admitted = [node for node in chosen if not repelled(shape.tolerations, node.taints)]
        if not admitted:
            taint = repelled(shape.tolerations, chosen[0].taints)
            return f"{count(len(chosen), 'node')} tainted {taint}, which the workload does not tolerate"
        obstacle = self._stockroom.obstacle(shape, (stock for node in admitted for stock in node.devices))
        return obstacle or self._too_few_devices(shape, admitted) or _scarcity(shape, admitted)

    def _counted(self, shape: ReplicaShape, limit: int, nodes: Iterable[NodeRoom]) -> int:
        pods, wanted, handed = 0, limit * shape.group_size, self._handed.copy()
        if shape.apart:
            return _apart([self._held(node, shape, limit, handed) for node in nodes], shape.group_size, limit)
        for node in nodes:
            if pods >= wanted:
                break
            pods += self._held(node, shape, wanted - pods, handed)
        return pods // shape.group_size

    def _admitting(self, shape: ReplicaShape) -> Iterable[NodeRoom]:
        """Yield the nodes that a replica may go to; none if nobody can count what it needs."""
        nodes = (node for node in self._nodes if _admits(node, shape))
        if shape.obstacle:
            return ()
        if not shape.devices:
            return nodes
        admitting = list(nodes)
        if self._stockroom.obstacle(shape, (stock for node in admitting for stock in node.devices)):
            return ()
        # Nodes that have devices of their own come first: they may use up those that other nodes need.
        return sorted(admitting, key=lambda node: -sum(stock.free for stock in node.devices if not stock.shared))

    def _held(self, node: NodeRoom, shape: ReplicaShape, most: int, handed: Handed) -> int:
        """Count the pods that a node holds, up to `most`, and note the devices that they take."""
        pods = min(most, pods_fitting(node, shape))
        return self._stockroom.hand_out(node.name, node.devices, shape.devices, pods, handed) if shape.devices else pods

    def _too_few_devices(self, shape: ReplicaShape, nodes: list[NodeRoom]) -> str:
        """Name the first request of devices that no one node can meet; empty if each finds some node."""
        for request in shape.devices:
            option = request.options[0]
            name = f"{CLASS_PREFIX}{option.device_class}"
            if any(
                self._stockroom.hand_out(node.name, node.devices, (request,), 1, self._handed.copy()) for node in nodes
            ):
                continue
            left = [self._stockroom.free(node.name, node.devices, option, self._handed) for node in nodes]
            needs = f"needs {'every one' if option.every else _amount(name, Quantity(option.count * ONE))}"
            if not any(left):
                return f"{needs} on one node, none is free on {count(len(nodes), 'node')}"
            largest, summed = (_amount(name, Quantity(number * ONE)) for number in (max(left), sum(left)))
            return f"{needs} on one node, largest has {largest} free ({summed} over {count(len(nodes), 'node')})"
        return ""


def _apart(held: list[int], size: int, limit: int) -> int:
    """Count the groups of `size` pods that fit when no two pods of a group share a node, which holds so many each.

    So many groups fit as there are pods for, when no node gives more than one to each.
    """
    groups = limit
    while (fewer := sum(min(pods, groups) for pods in held) // size) < groups:
        groups = fewer
    return groups


def _ways(shape: ReplicaShape, nodes: list[NodeRoom]) -> list[list[NodeRoom]]:
    """List the ways to look at nodes of which the better one is sure.

    Where other resources run short, pods on one node may use up the devices that several can reach, and leave its own
    to nobody: then only one or the other is sure. With several requests in a claim only a node's own devices are.
    """
    shared = [any(stock.shared for stock in node.devices) for node in nodes]
    own = [any(not stock.shared for stock in node.devices) for node in nodes]
    alone = [replace(node, devices=tuple(stock for stock in node.devices if not stock.shared)) for node in nodes]
    if any(shared) and len(shape.devices) > 1:
        return [alone]
    if not (any(shared) and any(own)):
        return [nodes]
    if all(pods_fitting(node, shape) >= sum(stock.free for stock in node.devices) for node in nodes):
        return [nodes]
    return [alone, [replace(node, devices=tuple(one for one in node.devices if one.shared)) for node in nodes]]


def _scarcity(shape: ReplicaShape, nodes: list[NodeRoom]) -> str:
    """Name the resource that too little of is free on any one node, accelerators first."""
    for name in sorted(shape.requests.amounts, key=_by_scarcity):
        request = shape.requests.amounts[name]
        largest = max(node.free.amounts.get(name, Quantity(0)) for node in nodes)
        if not largest:
            return f"needs {_amount(name, request)} on one node, none is free on {count(len(nodes), 'node')}"
        if largest < request:
            summed = sum(node.free.amounts.get(name, 0) for node in nodes)
            return (
                f"needs {_amount(name, request)} on one node, largest has {_amount(name, largest)} free"
                f" ({_amount(name, Quantity(summed))} over {count(len(nodes), 'node')})"
            )
    together = listed(amounts(shape.requests))
    able = sum(pods_fitting(node, shape) > 0 for node in nodes) if shape.apart else 0
    if able:
        return f"needs {together} free on each of {count(shape.group_size, 'node')}, {able} of {len(nodes)} has that"
    group = f" for {count(shape.group_size, 'pod')} of a group" if shape.group_size > 1 else ""
    return f"none of {count(len(nodes), 'node')} has {together} free together{group}"


def _amount(name: str, quantity: Quantity) -> str:
    return amounts(Resources(amounts={name: quantity}))[0]


def _by_scarcity(name: str) -> tuple[bool, bool, str]:
    """Sort resources by how likely they are what runs out: GPUs, other extended resources, then the rest."""
    return (not is_gpu(name), "/" not in name, name)


def _held_by(node: NodeRoom, shape: ReplicaShape) -> int:
    """Count the pods of a shape that can be on a node at the most."""
    there = not node.one_of and _admits(node, shape)
    return node.allocatable.minus(node.free).holds(pod_on(node, shape)) if there else 0


def _serves(node: NodeRoom, shape: ReplicaShape) -> bool:
    """Tell whether pods may go to a node wherever else they go: those that are apart, where it never holds two."""
    return _admits(node, shape) and not (shape.apart and node.allocatable.holds(shape.requests) > 1)


def _admits(node: NodeRoom, shape: ReplicaShape) -> bool:
    if node.one_of:
        return all(_admits(one, shape) for one in node.one_of)
    return selected(shape, node.labels, node.name) and repelled(shape.tolerations, node.taints) is None
