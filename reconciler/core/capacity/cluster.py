"""How many replicas a cluster can hold, node by node, and which resource runs short where none fits.

Counting a cluster's free GPUs is not enough: eight nodes with one free GPU each hold no replica that needs eight.
Answers are cached by shape, so that like replicas are counted once, and after a change only the nodes that it touched
are counted again (`node_fit`). Capacity that preemption frees is a lower bound where the nodes of the evicted pods are
unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from reconciler.core.capacity import admission_defaults, topology_spread
from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.capacity.devices import ClusterDevices, DeviceAllocation, with_extended_resources
from reconciler.core.capacity.included_admission import brings_bounds, namespace_labels
from reconciler.core.capacity.node import (
    PODS,
    NodeCapacity,
    admits,
    admits_anywhere,
    cannot_bind,
    device_views,
    devices_on,
    domain_of,
    has_plugin,
    keep_to_domain,
    max_pods_held,
    max_pods_on_node,
    may_be_in_domains,
    node_capacities,
    pod_usage,
    pods_fitting,
    separate_groups,
)
from reconciler.core.capacity.node_columns import NodeColumns, node_kinds
from reconciler.core.capacity.node_fit import NodeFit
from reconciler.core.capacity.pod_anti_affinity import (
    ANTI_AFFINITY_PODS,
    NOT_REPELLED,
    REPELLED_BY_EXISTING_PODS,
    REPELLED_BY_INCOMING_PODS,
    Domain,
    in_domains,
    repels,
)
from reconciler.core.capacity.pod_quotas import PodQuotas, may_bound_pods
from reconciler.core.capacity.queue_quota import QueueQuota
from reconciler.core.capacity.shortfall import OTHER_PODS, Shortfall
from reconciler.core.capacity.topology_spread import NodeInfo
from reconciler.core.pods.gpu_parts import WHOLE_GPUS_REMEDY, shares_gpu
from reconciler.core.pods.namespaces import has_namespace_selector, with_namespaces
from reconciler.core.pods.node_affinity import describe_node_selector, selects_node
from reconciler.core.pods.taints import marks_condition, untolerated_taint
from reconciler.model.capacity import CLASS_PREFIX, ClusterObservation, DeviceRequest, ReplicaShape
from reconciler.model.kubernetes.scheduling import PodIdentity, PodOnNode, PodRules
from reconciler.model.units import ONE, Quantity, Resources, total
from reconciler.text.wording import amounts, conjugate, count, is_gpu, join_names


def certain_pods(places: Sequence[int], pods: int) -> list[int]:
    """Return the fewest pods on each node, of `pods` that are on nodes with these maximums."""
    spare = max(0, sum(places) - pods)
    return [max(0, most - spare) for most in places]


def replacement_needs(pod: Resources, wanted: Resources, nodes: Sequence[Resources]) -> Resources | None:
    """Return what a newcomer needs on a node beyond the capacity of the pod that it replaces.

    `nodes` are the free resources of the nodes that the pod may be on; the result is taken off each of them. None where
    one of them has too little, or where more newcomers would fit without it. Several newcomers may replace one large
    pod.
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
    """Count the newcomers whose extended resources fit into those of a pod, other resources aside."""
    extended = [(pod.amounts.get(name, 0), amount) for name, amount in wanted.amounts.items() if amount and "/" in name]
    return max(1, min((free // amount for free, amount in extended), default=1))


_MAX_ANSWERS = 1000
"""Cached answers of one cluster; each is of a different shape."""
_MANY = 10**6
"""More pods than any domain holds."""
_MAX_FITS = 32
"""Shapes that a cluster keeps the pods of each node for."""


@dataclass(slots=True)
class FitCache:
    """Cached answers for one state of a cluster: counts of shapes up to a limit, and shortfalls."""

    counts: dict[tuple[Hashable, int], int] = field(default_factory=dict)
    shortfalls: dict[Hashable, Shortfall] = field(default_factory=dict)
    fits: dict[Hashable, NodeFit] = field(default_factory=dict)
    kinds: list[int] = field(default_factory=list)
    """The kinds of the nodes by their labels and taints, once they have been told apart."""

    def bound(self) -> None:
        """Empty the cache when it is full."""
        if len(self.counts) >= _MAX_ANSWERS:
            self.counts.clear()
        if len(self.shortfalls) >= _MAX_ANSWERS:
            self.shortfalls.clear()


def _pod_namespaces(seen: ClusterObservation) -> frozenset[str]:
    """Name the namespaces of the pods on the nodes of a cluster."""
    there = (*(node.pods for pool in seen.pools for node in pool.nodes), *(node.pods for node in seen.closed))
    return frozenset(pod.namespace for pods in there for pod in pods or ())


POD_NAMESPACES = ClusterCache[frozenset[str]](_pod_namespaces)
"""The namespaces of the pods of each cluster as it was last observed."""
FIT_CACHES = ClusterCache[FitCache](lambda _: FitCache())
"""Answers for clusters as they were observed, before any capacity was taken."""


def _none_free(nodes: list[NodeCapacity]) -> str:
    """Say that the nodes that may take a pod have none of a resource free."""
    which = "only eligible node" if len(nodes) == 1 else f"{len(nodes)} eligible nodes"
    return f"its {which} {conjugate(len(nodes), 'has')} none free"


def describe_shortage(shape: ReplicaShape, nodes: list[NodeCapacity]) -> str:
    """Name the resource that is short on every node, accelerators first."""
    for name in sorted(shape.requests.amounts, key=_by_scarcity):
        request = shape.requests.amounts[name]
        largest = max(node.free.amounts.get(name, Quantity(0)) for node in nodes)
        if not largest:
            return f"needs {format_amount(name, request)} on one node; {_none_free(nodes)}"
        if largest < request:
            summed = sum(node.free.amounts.get(name, 0) for node in nodes)
            return (
                f"needs {format_amount(name, request)} on one node, largest has {format_amount(name, largest)} free"
                f" ({format_amount(name, Quantity(summed))} over {count(len(nodes), 'node')})"
            )
    lacking = [lacking_resources(node, shape) for node in nodes]
    if all(PODS in names for names in lacking):
        return f"{count(len(nodes), 'node')} at the limit of pods, so that none takes another one"
    together = join_names(amounts(shape.requests))
    fitting = sum(pods_fitting(node, shape) > 0 for node in nodes) if shape.apart else 0
    if fitting:
        return f"needs {together} free on each of {count(shape.group_size, 'node')}, {fitting} of {len(nodes)} has that"
    group = f" for {count(shape.group_size, 'pod')} of a group" if shape.group_size > 1 else ""
    said = f"none of {count(len(nodes), 'node')} has {together} free together{group}"
    numbers = Counter(name for names in lacking for name in names)
    each = [f"{name} on {numbers[name]}" for name in sorted(numbers, key=_by_scarcity)]
    return f"{said} (too little {join_names(each)})" if each else said


def lacking_resources(node: NodeCapacity, shape: ReplicaShape) -> list[str]:
    """Name the resources of which a node has too little for one pod, with `pods` at its limit of these."""
    wanted = pod_usage(node, shape).amounts
    return [name for name, amount in wanted.items() if amount > node.free.amounts.get(name, 0)]


def format_amount(name: str, quantity: Quantity) -> str:
    """Write an amount of a resource."""
    return amounts(Resources(amounts={name: quantity}))[0]


def _by_scarcity(name: str) -> tuple[bool, bool, str]:
    """Sort resources by how likely they run out: GPUs, other extended resources, then the rest."""
    return (not is_gpu(name), "/" not in name, name)


def _name_of(request: DeviceRequest) -> str:
    """Return the resource by which the devices of a request are named."""
    return request.resource or f"{CLASS_PREFIX}{request.options[0].device_class}"


_MOST_REPLACEMENTS = 1000
"""Pods of a newcomer that are counted one by one in the place of evicted ones; beyond it none is certain."""


class ClusterCapacity:
    """Free capacity of one cluster while a pass places replicas.

    Replicas are taken first-fit over the nodes by pool and name, so that equal inputs leave equal capacity. An answer
    is cached until capacity is taken or released: of many equal requests only the first has its nodes counted, and
    after that those nodes that have changed. Answers for an untouched cluster are kept for as long as its nodes are the
    same objects.
    """

    def __init__(
        self,
        observation: ClusterObservation,
        nodes: list[NodeCapacity] | None = None,
        allocated: DeviceAllocation | None = None,
        moving: Iterable[PodRules] = (),
        quotas: PodQuotas | None = None,
        *,
        queues: QueueQuota | None = None,
    ) -> None:
        """Take the observed free capacity, or `nodes` with the remaining capacity."""
        self._observation = observation
        self._devices = ClusterDevices(observation.device_classes)
        self._allocated = allocated or DeviceAllocation()
        self._moving = tuple(moving)
        self._quotas = quotas or PodQuotas(observation)
        self._plain: dict[tuple[PodIdentity, ...], None] = {}
        """Pods without rules that are on their way or leaving, by what rules of others match; empty where unknown."""
        self._queues = queues or QueueQuota(observation.queues)
        self._listed_nodes = nodes
        self._answers = FitCache() if nodes is not None else FIT_CACHES.of(observation)
        self._begun = self._answers.fits
        """What each node held in the beginning, by shape."""
        self._fits: dict[Hashable, NodeFit] = {}
        """What each node holds now, by shape, once capacity has been taken or released."""
        self._columns: NodeColumns | None = None
        self._has_changed = False
        self._changed_nodes: list[int] = []
        self._latest: tuple[ReplicaShape, NodeFit] | None = None
        """The latest shape whose nodes were counted after a change, and what each of them holds."""
        self._latest_defaulted: tuple[ReplicaShape, ReplicaShape] | None = None
        """The latest shape that quotas were asked about, and the same with the admission defaults of the cluster."""
        self._repels_some = False
        """Whether it matters whose pods they are, of shapes that are alike."""

    def fitting_in_order(self, wanted: Iterable[tuple[ReplicaShape, int]]) -> int:
        """Count how many of these, each a shape and its replicas, fit one after another; nothing is taken."""
        parts, fitting = list(wanted), 0
        # Shapes that do not fit alone, as most that wait, need no trial.
        fitting_alone = next(
            (at for at, (shape, most) in enumerate(parts) if self.count(shape, most) < most), len(parts)
        )
        room = self.copy() if fitting_alone > 1 else self
        for shape, replicas in parts[:fitting_alone]:
            if room.count(shape, replicas) < replicas:
                break
            fitting += 1
            if replicas and fitting < fitting_alone:  # pods that are not there repel none
                room.take(shape, replicas)
        return fitting

    def copy(self) -> ClusterCapacity:
        """Return a copy, for a trial."""
        other = ClusterCapacity(
            self._observation,
            [replace(node) for node in self._nodes],
            self._allocated.copy(),
            self._moving,
            self._quotas.copy(),
            queues=self._queues.copy(),
        )
        other._plain = dict(self._plain)
        other._answers.kinds = self._answers.kinds
        other._columns = None if self._columns is None else self._columns.copy(other._nodes)
        if not self._has_changed:
            other._begun = self._begun
            return other
        for key, fit in self._fits.items():
            fit.update(self._node_columns, self._changed_nodes)
            other._begun[key] = fit.copy()
        return other

    def count(self, shape: ReplicaShape, limit: int) -> int:
        """Count the replicas of a shape that fit, up to `limit`. A replica is a whole group of pods or nothing.

        Quotas of the namespace that its pods go to bound it, and those of its queue, whatever the nodes have free.
        """
        limit = min(limit, self._quotas.fits(self._defaulted(shape)) // shape.group_size)
        if not limit:
            return 0
        if self._queues.bounds(shape):
            return self._queues.count(self.admitted(shape), limit, self._on_nodes)
        return self._on_nodes(shape, limit)

    def _on_nodes(self, shape: ReplicaShape, limit: int) -> int:
        """Count the replicas that nodes hold, whatever quotas let in."""
        latest = self._latest_fit(shape)
        if latest is not None and not self._moving:
            return latest.count(limit)
        shape = self.admitted(shape)
        if self._has_changed and not self._moving and self._is_plain(shape):
            return self._fit(shape).count(limit)
        key = (shape.likeness, self.repelling_domains(shape)), limit
        cached = self._answers.counts.get(key)
        if cached is None:
            self._answers.bound()
            cached = self._answers.counts[key] = self._count(shape, limit)
        return cached

    def pods_by_domain(self, shape: ReplicaShape, key: str) -> Counter[str]:
        """Count the pods of a shape that fit in each domain of a node label by itself; all of its domains are named.

        Nodes without the label are in none.
        """
        shape = self.admitted(shape)
        pods: Counter[str] = Counter()
        if self._is_plain(shape) and not repels(self._moving, shape) and not self._queues.bounds(shape):
            for node, held in zip(self._nodes, self._fit(shape).pods, strict=True):
                value = domain_of(node, key)
                if value is not None:
                    pods[value] += held
            return pods
        for value in sorted({value for node in self._nodes if (value := domain_of(node, key)) is not None}):
            pods[value] = self.count(keep_to_domain(shape, key, value), _MANY) * shape.group_size
        return pods

    def take(self, shape: ReplicaShape, replicas: int) -> None:
        """Take the capacity of replicas, as far as there is any: nodes may be lost. Unknown defaults count as none."""
        self.charge(shape, replicas * shape.group_size)
        self.take_nodes(shape, replicas)

    def reserve(self, shape: ReplicaShape, replicas: int) -> None:
        """Take the capacity of a reservation: no pods are on their way that rules could mean."""
        plain = dict(self._plain)
        self.take(shape, replicas)
        self._plain = plain

    def charge(self, shape: ReplicaShape, pods: int) -> None:
        """Count pods that do not exist yet as used in the quotas of their namespace; a negative number frees it."""
        self._quotas.take(self._defaulted(shape), pods)

    def take_nodes(self, shape: ReplicaShape, replicas: int) -> None:
        """Take the capacity of replicas on nodes, and what their queue has to admit, for pods that may exist already.

        Those that have their quota of the queue are known by `queue_quota.with_quota`.
        """
        if not self._queues.bounds(shape):
            self._take_on_nodes(shape, replicas)
            return
        for part, number in self._queues.take(self.admitted(shape), replicas):
            self._take_on_nodes(part, number)

    def _take_on_nodes(self, shape: ReplicaShape, replicas: int) -> None:
        """Take what nodes have free."""
        fit = self._latest_fit(shape)
        if fit is not None:
            self._change(shape)
            self._take_plain(shape, replicas, fit)
            return
        obstacle, shape = shape.obstacle, self.admitted(shape)
        if shape.obstacle != obstacle:
            shape = replace(shape, obstacle=obstacle)
        self._change(shape)
        if self._is_plain(shape):
            self._take_plain(shape, replicas, self._fit(shape))
            return
        pods, names = replicas * shape.group_size, self._placeable_nodes(shape)
        for node in self._admitting_nodes(shape):
            if not pods:
                break
            if names is not None and node.name not in names:
                continue
            node_pods = self._held(node, shape, max_pods_on_node(shape, pods, replicas), self._allocated)
            if node_pods:
                node.free = node.free.minus(pod_usage(node, shape), node_pods)
                pods -= node_pods
        self._count_anew()

    def _take_plain(self, shape: ReplicaShape, replicas: int, fit: NodeFit) -> None:
        """Take the capacity of replicas without devices and rules, which fit on the nodes like this."""
        pods, nodes, columns = replicas * shape.group_size, self._nodes, self._node_columns
        for position, most in fit.holding():
            if not pods:
                return
            node, node_pods = nodes[position], min(most, max_pods_on_node(shape, pods, replicas))
            node.free = node.free.minus(pod_usage(node, shape), node_pods)
            columns.update(position)
            self._has_changed = True
            self._changed_nodes.append(position)
            pods -= node_pods

    def release(self, shape: ReplicaShape, replicas: int) -> None:
        """Release the capacity of scheduled replicas: first-fit among the nodes that they may be on.

        Their nodes are unknown. Claimed devices are not released, since their holders are unknown.
        """
        self.charge(shape, -replicas * shape.group_size)
        shape = self.admitted(shape)
        self._change(shape)
        self._count_anew()
        pods = replicas * shape.group_size
        for node in self._nodes:
            if not pods or not admits(node, shape):
                continue
            pod = pod_usage(node, shape)
            node_pods = min(node.allocatable.minus(node.free).holds(pod), max_pods_on_node(shape, pods, replicas))
            node.free = total([node.free, pod.times(node_pods)])
            pods -= node_pods

    def release_evicted(self, shape: ReplicaShape, replicas: int, newcomer: ReplicaShape) -> None:
        """Release the capacity of evicted replicas that a newcomer gets for certain, wherever the replicas ran."""
        self.charge(shape, -replicas * shape.group_size)
        shape, newcomer = self.admitted(shape), self.admitted(newcomer)
        self._change(shape)
        self._count_anew()
        pods, nodes = (
            replicas * shape.group_size,
            [node for node in self._nodes if max_pods_held(node, shape)],
        )
        places = [
            min(max_pods_held(node, shape), replicas) if shape.apart else max_pods_held(node, shape) for node in nodes
        ]
        freed = certain_pods(places, pods)
        for node, number in zip(nodes, freed, strict=True):
            node.free = total([node.free, pod_usage(node, shape).times(number)])
        uncertain = [node for node, most, number in zip(nodes, places, freed, strict=True) if number < most]
        if newcomer.rules is not None and (newcomer.rules.together or newcomer.rules.evenly):
            self._change(newcomer)  # the pods that it will meet there are unknown
        if newcomer.devices or newcomer.rules or not all(admits_anywhere(node, newcomer) for node in uncertain):
            return
        for _ in range(min(pods - sum(freed), _MOST_REPLACEMENTS) if uncertain else 0):
            pod, newcomer_usage = pod_usage(uncertain[0], shape), pod_usage(uncertain[0], newcomer)
            needed = replacement_needs(pod, newcomer_usage, [node.free for node in uncertain])
            if needed is None:
                return
            for node in uncertain:
                node.free = node.free.minus(needed)
            self._nodes.append(replace(uncertain[0], free=total([pod, needed]), devices=(), one_of=tuple(uncertain)))

    def node_count(self, shape: ReplicaShape) -> int:
        """Count the nodes that hold at least one pod of this shape, devices aside."""
        shape = self.admitted(shape)
        if self._is_plain(shape) and not self.repelling_domains(shape)[0]:
            return self._fit(shape).node_count()
        return sum(1 for node in self._nodes if admits(node, shape) and pods_fitting(node, shape))

    def fullest_use(self, shape: ReplicaShape) -> float | None:
        """Return how full a pod of this shape makes the node that it fills most, from 0 to 1, devices aside.

        By the scarcest resource that it requests; None where no node takes it.
        """
        shape = self.admitted(shape)
        name = min(shape.requests.amounts, key=_by_scarcity, default="")
        fractions = [
            1 - (node.free.amounts[name] - shape.requests.amounts[name]) / node.allocatable.amounts[name]
            for node in self._nodes
            if node.allocatable.amounts.get(name) and admits(node, shape) and pods_fitting(node, shape)
        ]
        return max(fractions, default=None)

    def free(self, shape: ReplicaShape) -> Resources:
        """Sum the requested resources and devices that are free on the nodes that admit this shape."""
        latest = self._latest_fit(shape)
        if latest is not None:
            return latest.free(self._node_columns)
        shape = self.admitted(shape)
        if self._is_plain(shape) and not self.repelling_domains(shape)[0]:
            return self._fit(shape).free(self._node_columns)
        names = shape.requests.amounts.keys()
        nodes = [node for node in self._nodes if admits(node, shape)]
        summed = total(node.free for node in nodes)
        amounts = {name: summed.amounts.get(name, Quantity(0)) for name in names}
        for request in shape.devices:
            amounts[_name_of(request)] = Quantity(sum(self._free_devices(node, request) for node in nodes) * ONE)
        return Resources(amounts=amounts)

    def shortfall(self, shape: ReplicaShape) -> str:
        """Return with numbers why no replica fits."""
        return self._cached_shortfall(shape).message

    def remedy(self, shape: ReplicaShape) -> str:
        """Return a remedy by which a replica would fit where none does."""
        if shares_gpu(shape):
            return WHOLE_GPUS_REMEDY
        if shape.obstacle:
            return "change what its pods, or the patch of its subset, ask for"
        return admission_defaults.admission_remedy(shape, self._observation) or self._cached_shortfall(shape).remedy

    def _cached_shortfall(self, shape: ReplicaShape) -> Shortfall:
        refused, shape = self.refused_pods(shape, 1), self.admitted(shape)
        if refused is not None and not shape.obstacle:
            return refused
        if self._queues.bounds(shape):
            ((shape, _), *_) = self._queues.copy().take(shape, 1)
        key = shape.likeness, self.repelling_domains(shape)
        cached = self._answers.shortfalls.get(key)
        if cached is None:
            self._answers.bound()
            cached = self._answers.shortfalls[key] = self._shortfall(shape)
        return cached

    def refused_pods(self, shape: ReplicaShape, replicas: int) -> Shortfall | None:
        """Say why admission, or a queue, lets in fewer replicas of a shape than these; None where all are let in."""
        refused = self._quotas.refusal(self._defaulted(shape), replicas * shape.group_size)
        if refused is None and self._queues.bounds(shape):
            refused = self._queues.refusal(self.admitted(shape), replicas)
        return refused

    def _defaulted(self, shape: ReplicaShape) -> ReplicaShape:
        """Return a replica with the admission defaults of this cluster, if its quotas are to be asked about it."""
        if shape.unstated is None or not may_bound_pods(self._observation, shape):
            return shape
        if self._latest_defaulted is None or self._latest_defaulted[0] is not shape:
            defaulted = admission_defaults.with_admission_defaults(shape, self._observation)
            self._latest_defaulted = shape, defaulted
        return self._latest_defaulted[1]

    def admitted(self, shape: ReplicaShape) -> ReplicaShape:
        """Return a replica with the admission defaults of this cluster, and its DeviceClasses behind resources."""
        seen = self._observation
        if shape.unstated is not None:
            shape = admission_defaults.with_admission_defaults(shape, seen)
        if shape.rules is not None and brings_bounds(shape.admission):
            shape = replace(shape, rules=self._rules(shape))
        if not seen.extended_resources:
            return shape
        return with_extended_resources(shape, seen.extended_resources, seen.device_classes)

    def repelling_domains(self, shape: ReplicaShape) -> tuple[frozenset[Domain], bool]:
        """Return the domains that other pods repel a shape from, and whether incoming pods repel it too."""
        if not shape.who:
            return NOT_REPELLED
        return ANTI_AFFINITY_PODS.of(self._observation).repelling_domains(shape.who), repels(self._moving, shape)

    @property
    def may_repel(self) -> bool:
        """Whether any pods of the cluster, or on their way to it, may repel others."""
        return bool(self._moving) or ANTI_AFFINITY_PODS.of(self._observation).any

    @property
    def _nodes(self) -> list[NodeCapacity]:
        """The nodes, listed at the first question without a cached answer."""
        if self._listed_nodes is None:
            self._listed_nodes = node_capacities(self._observation)
        return self._listed_nodes

    @property
    def _node_columns(self) -> NodeColumns:
        """The nodes as columns, made at the first count."""
        if self._columns is None:
            kinds = self._answers.kinds = self._answers.kinds or node_kinds(self._nodes)
            self._columns = NodeColumns(self._nodes, kinds)
        return self._columns

    @staticmethod
    def _is_plain(shape: ReplicaShape) -> bool:
        """Return whether a shape takes what single nodes have free, whatever its pods meet there."""
        return not shape.devices and shape.rules is None and not shape.obstacle

    def _fit(self, shape: ReplicaShape) -> NodeFit:
        """Return the pods of a plain shape that each node holds now."""
        shut, _ = self.repelling_domains(shape)
        key = shape.likeness, shut
        fit = self._fits.get(key)
        if fit is None and not self._has_changed:
            fit = self._begun.get(key)
        elif fit is None and key in self._begun:
            fit = self._fits[key] = self._begun[key].copy()
        if fit is None:
            fit = NodeFit(shape, self._node_columns, shut, len(self._changed_nodes))
            fits = self._fits if self._has_changed else self._begun
            if len(fits) >= _MAX_FITS:
                fits.clear()
            fits[key] = fit
        if self._changed_nodes:
            fit.update(self._node_columns, self._changed_nodes)
        if self._has_changed and not shut:
            self._latest, self._repels_some = (shape, fit), ANTI_AFFINITY_PODS.of(self._observation).any
        return fit

    def _latest_fit(self, shape: ReplicaShape) -> NodeFit | None:
        """Return the pods that each node holds now, where nodes were last counted for a shape like this one.

        One turn after the other asks for shapes that are alike, and each of them several times.
        """
        if self._latest is None or brings_bounds(shape.admission):
            return None
        known, fit = self._latest
        if known is not shape and (self._repels_some or known.likeness != shape.likeness):
            return None
        if fit.changes != len(self._changed_nodes):
            fit.update(self._node_columns, self._changed_nodes)
        return fit

    def _count_anew(self) -> None:
        """Drop what was counted on nodes: any of them may change."""
        self._has_changed, self._fits, self._begun, self._columns, self._latest = True, {}, {}, None, None
        self._answers = FitCache()  # a node may be added

    def _change(self, shape: ReplicaShape) -> None:
        """Drop cached answers: pods of a shape come or go."""
        answers = self._answers
        if not self._has_changed or answers.counts or answers.shortfalls or answers.fits:
            self._answers = FitCache(kinds=answers.kinds)
        if shape.rules is None:
            self._plain[shape.who] = None
        else:
            self._moving = (*self._moving, shape.rules)

    def _moving_pods(self) -> list[PodOnNode | None]:
        """List the pods that are on their way or leaving, each kind once; None where nobody knows what they are."""
        pods: list[PodOnNode | None] = [
            PodOnNode(rules.namespace, labels=rules.labels, ports=rules.ports, added=rules.added)
            for rules in self._moving
        ]
        for who in self._plain:
            pods += [PodOnNode(pod.namespace, labels=pod.labels, added=pod.added) for pod in who] or [None]
        return pods

    def _count(self, shape: ReplicaShape, limit: int) -> int:
        if repels(self._moving, shape):
            return 0
        if self._is_plain(shape):
            return self._fit(shape).count(limit)
        rules = self._rules(shape)
        if rules is not None:
            pods = topology_spread.pods_by_rules(
                rules, self._seats(shape, limit * shape.group_size), self._moving_pods()
            )
            return min(limit, pods // shape.group_size)
        nodes = self._admitting_nodes(shape)
        if not shape.devices:
            return self._count_on_nodes(shape, limit, nodes)
        nodes = list(nodes)
        return max(self._count_on_nodes(shape, limit, view_nodes) for view_nodes in device_views(shape, nodes))

    def _shortfall(self, shape: ReplicaShape) -> Shortfall:
        if shape.obstacle:
            return Shortfall(message=shape.obstacle)
        if not self._nodes:
            return Shortfall(message="no node is ready")
        chosen = [node for node in self._nodes if not node.one_of and selects_node(shape, node.labels, node.name)]
        if not chosen:
            return Shortfall(message=f"no node has {describe_node_selector(shape)}")
        admitted = [node for node in chosen if not untolerated_taint(shape.tolerations, node.taints)]
        if not admitted:
            return self._tainted(shape, chosen)
        shut, coming = self.repelling_domains(shape)
        admitted = [node for node in admitted if not in_domains(node.labels, shut)]
        if not admitted:
            return Shortfall(message=REPELLED_BY_EXISTING_PODS)
        obstacle = self._devices.obstacle(shape, (stock for node in admitted for stock in node.devices))
        rules = self._rules(shape)
        if rules is not None and not obstacle:
            seats = self._seats(shape, shape.group_size)
            obstacle = topology_spread.rules_obstacle(shape, rules, seats, self._moving_pods())
            if obstacle and not all(rule.itself for rule in rules.all):
                return Shortfall(message=obstacle, remedy=OTHER_PODS)
        obstacle = obstacle or (REPELLED_BY_INCOMING_PODS if coming else "")
        message = obstacle or self._too_few_devices(shape, admitted) or describe_shortage(shape, admitted)
        return Shortfall(message=message)

    @staticmethod
    def _tainted(shape: ReplicaShape, nodes: Sequence[NodeCapacity]) -> Shortfall:
        """Name the taint of nodes all of which have one that a shape does not tolerate."""
        taints = [untolerated_taint(shape.tolerations, node.taints) for node in nodes]
        # A taint that the workload may tolerate is the one to name: nodes under pressure are usually few.
        taint = min(filter(None, taints), key=marks_condition)
        tainted = f"{count(len(nodes), 'node')} tainted {taint}"
        if marks_condition(taint):
            return Shortfall(
                message=f"{tainted}, which Kubernetes sets by the state of a node",
                remedy="see the conditions of its nodes (kubectl describe nodes), or add nodes there",
            )
        return Shortfall(
            message=f"{tainted}, which the workload does not tolerate",
            remedy="tolerate the taint in its pods, or add nodes without it there",
        )

    def _rules(self, shape: ReplicaShape) -> PodRules | None:
        """Return the rules of a shape with the namespaces that they select here."""
        rules, labels = shape.rules, namespace_labels(self._observation.namespaces, shape.admission)
        if rules is None or labels is None or not has_namespace_selector(rules):
            return rules
        coming = {pod.namespace for pod in self._moving_pods() if pod is not None}
        known = (coming | POD_NAMESPACES.of(self._observation)) <= labels.keys()
        return with_namespaces(rules, labels) if known else rules

    def _placeable_nodes(self, shape: ReplicaShape) -> frozenset[str] | None:
        """Name the nodes that the rules of a shape let a pod go to; None where they are unknown, or all of them."""
        rules = self._rules(shape)
        seats = self._seats(shape, 1) if rules is not None else None
        if seats is None or rules is None or topology_spread.uncountable_rules(rules, seats, ()):
            return None
        return topology_spread.placeable_nodes(rules, seats)

    def _seats(self, shape: ReplicaShape, most: int) -> list[NodeInfo] | None:
        """List the nodes for a shape with pod rules; devices that several nodes share count for none."""
        nodes, allocated = [node.alone() for node in self._admitting_nodes(shape)], self._allocated.copy()
        holds = {node.name: self._held(node, shape, most, allocated) for node in nodes if not node.one_of}
        return topology_spread.node_infos(shape, self._nodes, self._observation.closed, holds)

    def _count_on_nodes(self, shape: ReplicaShape, limit: int, nodes: Iterable[NodeCapacity]) -> int:
        pods, wanted, allocated = 0, limit * shape.group_size, self._allocated.copy()
        if shape.apart:
            return separate_groups(
                [self._held(node, shape, limit, allocated) for node in nodes], shape.group_size, limit
            )
        for node in nodes:
            if pods >= wanted:
                break
            pods += self._held(node, shape, wanted - pods, allocated)
        return pods // shape.group_size

    def _admitting_nodes(self, shape: ReplicaShape) -> Iterable[NodeCapacity]:
        """Yield the nodes that admit a replica; none where its requirements cannot be counted."""
        shut = ANTI_AFFINITY_PODS.of(self._observation).repelling_domains(shape.who)
        nodes = (node for node in self._nodes if admits(node, shape) and not may_be_in_domains(node, shut))
        if shape.obstacle:
            return ()
        if not shape.devices:
            return nodes
        admitting = list(nodes)
        if self._devices.obstacle(shape, (stock for node in admitting for stock in node.devices)):
            return ()
        # Nodes that have devices of their own come first: they may use up those that other nodes need.
        return sorted(admitting, key=lambda node: -sum(stock.free for stock in node.devices if not stock.shared))

    def _held(self, node: NodeCapacity, shape: ReplicaShape, most: int, allocated: DeviceAllocation) -> int:
        """Count the pods that a node holds, up to `most`, and allocate their devices."""
        if cannot_bind(node, shape):
            return 0
        pods, requests = min(most, pods_fitting(node, shape)), devices_on(node, shape)
        return self._devices.hand_out(node.name, node.devices, requests, pods, allocated) if requests else pods

    def _free_devices(self, node: NodeCapacity, request: DeviceRequest) -> int:
        """Count what a node has free of the devices of a request, by its first option."""
        if request.resource and has_plugin(node, request.resource):
            return node.free.amounts.get(request.resource, Quantity(0)) // ONE
        return self._devices.free(node.name, node.devices, request.options[0], self._allocated)

    def _too_few_devices(self, shape: ReplicaShape, nodes: list[NodeCapacity]) -> str:
        """Describe the first device request that no single node can meet; empty if each can be met."""
        for request in shape.devices:
            option, name = request.options[0], _name_of(request)
            alone = ReplicaShape(requests=Resources(), devices=(request,))
            if any(self._held(node, alone, 1, self._allocated.copy()) for node in nodes):
                continue
            free = [self._free_devices(node, request) for node in nodes]
            needs = f"needs {'every one' if option.every else format_amount(name, Quantity(option.count * ONE))}"
            if not any(free):
                return f"{needs} on one node; {_none_free(nodes)}"
            largest, summed = (format_amount(name, Quantity(number * ONE)) for number in (max(free), sum(free)))
            return f"{needs} on one node, largest has {largest} free ({summed} over {count(len(nodes), 'node')})"
        return ""
