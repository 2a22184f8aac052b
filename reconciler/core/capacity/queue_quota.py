"""What Kueue admits in a cluster: the quotas of its own queues bound what its nodes hold.

Pods of an object in a queue get a node only once Kueue has admitted them, from the quota of a flavor, and then only on
nodes of that flavor. The rules are those of kubernetes-sigs/kueue at ff69552, in `pkg/scheduler/flavorassigner`:

- All resources of a resource group come from one flavor, the first in order that has enough left. Its taints have to be
  tolerated, and its labels have to match what pods ask of these labels.
- The pods of a set are admitted together, those of one shape by one flavor. Pods that are Workloads of their own are
  admitted one by one, each by the first flavor that has enough left for it.
- Kueue does not look at nodes: where those of the flavor that comes first are full, pods wait for them, and no later
  flavor is tried.

Preemption is no room, nor is what would be admitted only because it is tried in another order: in doubt the count is
lower.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from reconciler.core.capacity.cohort_tree import CohortTree
from reconciler.core.capacity.included_admission import namespace_labels
from reconciler.core.capacity.shortfall import Shortfall
from reconciler.core.pods.namespaces import NAME_LABEL
from reconciler.core.pods.pod_admission import DEFAULT_QUEUE
from reconciler.core.pods.taints import untolerated_taint
from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.admission import PodAdmission
from reconciler.model.kubernetes.queues import (
    ClusterQueue,
    FlavorResource,
    KueueQueues,
    QueueClaim,
    QuotaGroup,
    ResourceFlavor,
)
from reconciler.model.kubernetes.requirements import Requirements, all_met, any_met
from reconciler.model.units import ONE, Quantity, format_quantity
from reconciler.text.wording import conjugate, count, join_names, sanitize

_PODS = "pods"
"""The resource by which a quota counts pods."""
_SEE = "see its stopPolicy and its conditions there"


ShapeParts: TypeAlias = tuple[tuple[ReplicaShape, int], ...]
"""Replicas by shape."""
OnNodes: TypeAlias = Callable[[ReplicaShape, int], int]
"""Counts the replicas of a shape that nodes hold, up to a limit."""


@dataclass(frozen=True, slots=True)
class _Share:
    """Replicas that come from the same flavors."""

    flavors: tuple[str, ...]
    """One of each resource group that the pods need, in the order of these."""
    upto: int
    """The most replicas: beside those of earlier shares, or in all for pods that are admitted together."""


@dataclass(frozen=True, slots=True)
class _Order:
    """The flavors of one resource group, in the order in which they are taken."""

    needs: Mapping[str, int]
    """What a replica takes of each resource of the group."""
    steps: tuple[tuple[str, int], ...]
    """Each flavor with the replicas that it has quota for."""
    excluded: tuple[str, ...]
    """Why other flavors do not take the pods."""


class QueueQuota:
    """What Kueue's queues of one cluster still admit."""

    def __init__(self, queues: KueueQueues | None, tree: CohortTree | None = None) -> None:
        """Begin with what is left, as observed, or with a `tree` of which some has been taken.

        Without `queues`, which are unknown or not there, all pods are admitted.
        """
        self._queues = queues or KueueQueues()
        self._bounds = queues is not None
        self._made = tree
        self._known: dict[Hashable, tuple[str | Shortfall, ...]] = {}

    @property
    def _tree(self) -> CohortTree:
        if self._made is None:
            self._made = CohortTree(self._queues)
        return self._made

    def copy(self) -> QueueQuota:
        """Return a copy, for a trial."""
        return QueueQuota(self._queues if self._bounds else None, None if self._made is None else self._made.copy())

    def bounds(self, shape: ReplicaShape) -> bool:
        """Return whether Kueue queues the pods of a shape there."""
        return self._bounds and bool(self._ways(shape))

    def count(self, shape: ReplicaShape, limit: int, on_nodes: OnNodes) -> int:
        """Count the replicas that are admitted and find nodes, up to a limit; any fewer of them do as well."""
        ways = self._ways(shape)
        if not ways:
            return on_nodes(shape, limit)
        return min(0 if isinstance(way, Shortfall) else self._count(way, shape, limit, on_nodes) for way in ways)

    def take(self, shape: ReplicaShape, replicas: int) -> ShapeParts:
        """Reserve quota for replicas, also beyond what is left; return them with what their flavors add to them."""
        parts: ShapeParts = ((shape, replicas),)
        for way in self._ways(shape):
            if not isinstance(way, Shortfall):
                parts = self._take(way, shape, replicas)
        return parts

    def refusal(self, shape: ReplicaShape, replicas: int) -> Shortfall | None:
        """Say why fewer replicas are admitted; None where all of them are."""
        for way in self._ways(shape):
            if isinstance(way, Shortfall):
                return way
            orders = self._orders(way, shape)
            if isinstance(orders, Shortfall):
                return orders
            if not orders:
                continue
            single = _is_single(shape)
            steps = [share.upto for share in _shares(orders, each=single)]
            if (sum(steps) if single else max(steps, default=0)) < replicas:
                return self._describe(way, orders, replicas)
        return None

    def _ways(self, shape: ReplicaShape) -> Sequence[str | Shortfall]:
        """Name the ClusterQueues that admit pods of a shape, or say why they are not admitted; none without a queue.

        They are several where the namespace is unknown, or where several objects make such pods.
        """
        if not self._bounds:
            return ()
        ways: dict[str | Shortfall, None] = {}
        for stated in shape.admission:
            if stated.queue is not None:
                key = stated.namespace, stated.queue.queue, stated.queue.cluster_queue, stated.included
                if key not in self._known:
                    self._known[key] = tuple(self._ways_of(stated, stated.queue))
                ways |= dict.fromkeys(self._known[key])
        return tuple(ways)

    def _ways_of(self, stated: PodAdmission, claim: QueueClaim) -> Iterator[str | Shortfall]:
        """Yield the ClusterQueue of a LocalQueue, of each of the name if the namespace is unknown; or what lacks."""
        namespace, queue = stated.namespace, claim.queue
        if claim.cluster_queue:
            yield self._open_queue(claim.cluster_queue, namespace, stated)
            return
        name, local = queue or DEFAULT_QUEUE, self._queues.local
        places = sorted(key for key in local if key[1] == name and namespace in ("", key[0]))
        if not places and queue:
            where = f" in namespace {sanitize(namespace)}" if namespace else ""
            remedy = "create it there, or name another queue"
            yield Shortfall(message=f"has no LocalQueue {sanitize(queue)}{where}", remedy=remedy)
        for place in places:
            found = local[place]
            if found.closed:
                called = f"LocalQueue {sanitize(name)} of namespace {sanitize(place[0])}"
                yield Shortfall(message=f"{called} {found.closed}", remedy=_SEE)
            elif not found.cluster_queue:
                called = f"LocalQueue {sanitize(name)} of namespace {sanitize(place[0])}"
                yield Shortfall(message=f"{called} names no ClusterQueue", remedy="set its spec.clusterQueue there")
            else:
                yield self._open_queue(found.cluster_queue, place[0], stated)

    def _open_queue(self, name: str, namespace: str, stated: PodAdmission) -> str | Shortfall:
        """Return the name of a ClusterQueue that may admit pods of a namespace, or why it admits none."""
        queue, called = self._queues.clusters.get(name), f"ClusterQueue {sanitize(name)}"
        if queue is None:
            return Shortfall(message=f"has no {called}", remedy="create it there, or name another queue")
        if queue.closed:
            return Shortfall(message=f"{called} {queue.closed}", remedy=_SEE)
        if self._tree.has_cycle(name):
            return Shortfall(
                message=f"{called} is in Cohorts that lead back to each other", remedy="mend their parentName there"
            )
        if not self._is_selected(queue, namespace, stated):
            message = f"{called} takes nothing of namespace {sanitize(namespace)}"
            return Shortfall(message=message, remedy="see its namespaceSelector and the labels of the namespace there")
        if queue.is_strict and queue.pending:
            waiting = f"{count(queue.pending, 'Workload')} {conjugate(queue.pending, 'waits')}"
            return Shortfall(
                message=f"{called}: {waiting} before it (StrictFIFO)", remedy="see what its first Workload waits for"
            )
        return name

    def _is_selected(self, queue: ClusterQueue, namespace: str, stated: PodAdmission) -> bool:
        """Return whether a ClusterQueue takes Workloads of a namespace; labels that are unknown are taken to match."""
        if queue.namespaces is None:
            return False
        if not namespace:
            return True
        namespaces = namespace_labels(self._queues.namespaces, (stated,))
        known = None if namespaces is None else namespaces.get(namespace, {})
        labels = {**(known or {}), NAME_LABEL: namespace}
        asked = [each for each in queue.namespaces if known is not None or each.key == NAME_LABEL]
        return all_met(asked, labels)

    def _count(self, way: str, shape: ReplicaShape, limit: int, on_nodes: OnNodes) -> int:
        orders = self._orders(way, shape)
        if isinstance(orders, Shortfall):
            return 0
        if not orders:  # they ask for nothing that a quota is for
            return on_nodes(shape, limit)
        if _is_single(shape):
            return self._count_each(orders, shape, limit, on_nodes)
        fitting = 0
        for share in _shares(orders, each=False):
            wanted = min(share.upto, limit)
            held = on_nodes(self._in_flavors(shape, share.flavors), wanted)
            fitting = max(fitting, held)
            if held < wanted or share.upto >= limit:
                break
        return fitting

    def _count_each(self, orders: Sequence[_Order], shape: ReplicaShape, limit: int, on_nodes: OnNodes) -> int:
        """Count replicas that are admitted one by one: those of later flavors after those of earlier ones."""
        earlier: list[tuple[ReplicaShape, int]] = []
        fitting = 0
        for share in _shares(orders, each=True):
            # What rules and devices leave beside the earlier ones is not known.
            if fitting >= limit or (earlier and (shape.rules is not None or shape.devices)):
                break
            narrowed, wanted = self._in_flavors(shape, share.flavors), min(share.upto, limit - fitting)
            beside = sum(number for other, number in earlier if not _are_apart(other, narrowed))
            held = max(0, on_nodes(narrowed, wanted + beside) - beside)
            fitting += held
            earlier.append((narrowed, held))
            if held < wanted:
                break
        return fitting

    def _take(self, way: str, shape: ReplicaShape, replicas: int) -> ShapeParts:
        orders = self._orders(way, shape)
        if isinstance(orders, Shortfall) or not orders:
            return ((shape, replicas),)
        parts: list[tuple[tuple[str, ...], int]] = []
        left = replicas
        for share in _shares(orders, each=_is_single(shape)):
            if not left:
                break
            if _is_single(shape):
                parts.append((share.flavors, min(left, share.upto)))
                left -= parts[-1][1]
            elif share.upto >= replicas:
                parts, left = [(share.flavors, replicas)], 0
        if left:  # more than is left: they wait, and take what comes next
            first = tuple(order.steps[0][0] for order in orders if order.steps)
            if len(first) < len(orders):
                return ((shape, replicas),)
            parts.append((first, left))
        for flavors, number in parts:
            for order, flavor in zip(orders, flavors, strict=True):
                for resource, amount in order.needs.items():
                    self._tree.reserve(way, FlavorResource(flavor, resource), amount * number)
        return tuple((self._in_flavors(shape, flavors), number) for flavors, number in parts)

    def _orders(self, way: str, shape: ReplicaShape) -> Sequence[_Order] | Shortfall:
        """Return the order of flavors in each resource group that pods need, or say why they are never admitted."""
        queue = self._queues.clusters[way]
        needs = {name: amount * shape.group_size for name, amount in shape.requests.amounts.items() if amount}
        needs[_PODS] = ONE * shape.group_size
        covered = frozenset[str]().union(*(group.resources for group in queue.groups))
        if lacking := sorted(needs.keys() - covered - {_PODS}):
            message = f"ClusterQueue {sanitize(way)} has no quota for {join_names(map(sanitize, lacking))}"
            return Shortfall(message=message, remedy="cover it in its resourceGroups there")
        orders: list[_Order] = []
        for group in queue.groups:
            of_group = {name: amount for name, amount in needs.items() if name in group.resources}
            if of_group:
                orders.append(self._order(way, queue, group, of_group, shape))
        return orders

    def _order(
        self, way: str, queue: ClusterQueue, group: QuotaGroup, needs: Mapping[str, int], shape: ReplicaShape
    ) -> _Order:
        """Return the order of flavors in one resource group."""
        labels = frozenset(key for name in group.flavors if (flavor := self._flavor(name)) for key in flavor.labels)
        taking: list[str] = []
        excluded: list[str] = []
        for name in group.flavors:
            flavor = self._flavor(name)
            why = "is not there"
            if flavor is not None:
                why = self._why_by_topology(queue, flavor, shape) or _why_excluded(
                    flavor, shape, frozenset(flavor.labels)
                )
            if why:
                excluded.append(f"flavor {sanitize(name)} {why}")
                continue
            # Kueue 0.14 asks for the labels of all flavors of the group, later releases for those of this one.
            if flavor is not None and _why_excluded(flavor, shape, labels):
                break
            taking.append(name)
            if queue.preempts_first and self._replicas(way, name, needs, self._tree.most):
                break
        all_of_it = [(name, self._replicas(way, name, needs, self._tree.left)) for name in taking]
        if not (queue.borrows_last and queue.cohort):
            return _Order(needs, tuple(all_of_it), tuple(excluded))
        own = [(name, self._replicas(way, name, needs, self._tree.left_of_own)) for name in taking]
        if _is_single(shape):
            all_of_it = [(name, most - first) for (name, most), (_, first) in zip(all_of_it, own, strict=True)]
        return _Order(needs, (*own, *all_of_it), tuple(excluded))

    def _replicas(
        self, way: str, flavor: str, needs: Mapping[str, int], of: Callable[[str, FlavorResource], int]
    ) -> int:
        """Return the replicas that a quota of a flavor is enough for."""
        return min(of(way, FlavorResource(flavor, resource)) // amount for resource, amount in needs.items())

    def _why_by_topology(self, queue: ClusterQueue, flavor: ResourceFlavor, shape: ReplicaShape) -> str:
        """Say why a flavor takes no pods of a shape by its topology; empty where it may.

        `checkPodSetAndFlavorMatchForTAS`: what asks for no topology gets one where the queue has no other flavors.
        """
        asked = {stated.queue.topology for stated in shape.admission if stated.queue is not None}
        if True in asked and not flavor.topology:
            return "has no topology, which its pods ask for"
        flavors = (self._flavor(name) for group in queue.groups for name in group.flavors)
        if False in asked and flavor.topology and not all(each and each.topology for each in flavors):
            return "is only for pods that ask for a topology"
        return ""

    def _flavor(self, name: str) -> ResourceFlavor | None:
        return self._queues.flavors.get(name)

    def _in_flavors(self, shape: ReplicaShape, flavors: Sequence[str]) -> ReplicaShape:
        """Return a shape with the node selector and tolerations that flavors add to its pods."""
        selector, tolerations = dict(shape.node_selector), shape.tolerations
        for name in flavors:
            flavor = self._queues.flavors[name]
            selector = {**flavor.labels, **selector}
            tolerations = tuple(dict.fromkeys((*tolerations, *flavor.tolerations)))
        if selector == shape.node_selector and tolerations == shape.tolerations:
            return shape
        return replace(shape, node_selector=dict(sorted(selector.items())), tolerations=tolerations)

    def _describe(self, way: str, orders: Sequence[_Order], replicas: int) -> Shortfall:
        """Say which quota is too small for some replicas."""
        called, queue = f"ClusterQueue {sanitize(way)}", self._queues.clusters[way]
        order = min(orders, key=lambda order: max((number for _, number in order.steps), default=-1))
        if not order.steps:
            why = join_names(order.excluded) or "the flavors of its resources are unknown"
            return Shortfall(
                message=f"{called} has no flavor for its pods: {why}", remedy="see its ResourceFlavors there"
            )
        flavor, _ = max(order.steps, key=lambda step: step[1])
        short = [(name, FlavorResource(flavor, name), amount) for name, amount in order.needs.items()]
        name, wanted, amount = min(short, key=lambda entry: self._tree.left(way, entry[1]) // entry[2])
        left, nominal = Quantity(self._tree.left(way, wanted)), Quantity(self._tree.nominal(way, wanted))
        cohort = f", with what cohort {sanitize(queue.cohort)} lends" if queue.cohort else ""
        total = format_quantity(nominal)
        message = f"{called}: {format_quantity(left)} of {total} {sanitize(name)} left in flavor {sanitize(flavor)}"
        needed = format_quantity(amount * replicas)
        return Shortfall(
            message=f"{message}{cohort}, {needed} needed", remedy=f"free or raise the quota of {called} there"
        )


def _shares(orders: Sequence[_Order], *, each: bool) -> Iterator[_Share]:
    """Yield the flavors that replicas come from, those that are taken first before others.

    Those that are admitted one by one use up what comes before. Of those that are admitted together more may need a
    later flavor, which all of them have then.
    """
    left = [list(order.steps) for order in orders]
    reached = 0
    while True:
        chosen = [next((step for step in steps if step[1] > (0 if each else reached)), None) for steps in left]
        taken = [step for step in chosen if step is not None]
        if len(taken) < len(left) or not taken:
            return
        upto = min(number for _, number in taken)
        yield _Share(tuple(flavor for flavor, _ in taken), upto)
        reached = upto
        for steps, step in zip(left, taken, strict=True):
            if each:
                position = steps.index(step)
                steps[: position + 1] = [(step[0], step[1] - upto)]


def _is_single(shape: ReplicaShape) -> bool:
    """Return whether each replica of a shape is a Workload of its own."""
    each = all(stated.queue is None or stated.queue.each for stated in shape.admission)
    return each and shape.group_size == 1


def _are_apart(one: ReplicaShape, other: ReplicaShape) -> bool:
    """Return whether no node can hold pods of both, by the labels that they ask for."""
    theirs = other.node_selector
    return any(theirs.get(key, value) != value for key, value in one.node_selector.items())


def _why_excluded(flavor: ResourceFlavor, shape: ReplicaShape, keys: frozenset[str]) -> str:
    """Say why a flavor takes no pods of a shape, by what they ask of the labels with these `keys`; empty where it may.

    `flavorSelector` of Kueue: a term that asks for none of these labels lets all flavors match.
    """
    taint = untolerated_taint((*shape.tolerations, *flavor.tolerations), flavor.taints)
    if taint is not None:
        return f"is tainted {sanitize(str(taint))}"
    for key, value in shape.node_selector.items():
        if key in keys and flavor.labels.get(key) != value:
            return f"is not {sanitize(f'{key}={value}')}"
    terms = [Requirements(labels=tuple(each for each in term.labels if each.key in keys)) for term in shape.node_terms]
    if not terms or any(term.is_empty for term in terms) or any_met(terms, flavor.labels, ""):
        return ""
    return "does not match their node affinity"


def with_quota(shape: ReplicaShape) -> ReplicaShape:
    """Return a shape whose pods have their quota already."""
    return replace(shape, admission=tuple(stated._replace(queue=None) for stated in shape.admission))
