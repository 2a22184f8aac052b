"""Topology domains that groups of pods want for themselves: how many of a cluster's are free, and who has which.

A domain is all nodes with the same value of a label. LeaderWorkerSet's annotation ``exclusive-topology`` gives each
group one that no other group is in, and all pods of the group are inside (spread-and-groups.md, section 5); JobSet's
does so for each job. Their webhooks say so by required anti-affinity to each pod with a label of other groups: a pod
without it is in nobody's way, and one with it is, whether or not its own group wants a domain (pod_webhook.go of LWS,
in its own namespace; pod_mutating_webhook.go of JobSet, in all). So a domain with such a pod is taken, and one of which
nobody says which pods are there is none. Of groups that have no node yet nobody knows the domains: as many of those
that would do are taken to be gone. Where this is wrong, it says that a group does not fit which would.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.fit import ClusterCapacity
from reconciler.core.kept import IdentityCache
from reconciler.core.wording import count
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.neighbours import PodOnNode
from reconciler.model.scheduling import NodeRequirement, NodeTerm

Pods = tuple[tuple[ReplicaShape, int], ...]
"""So many pods of a shape each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainUnit:
    """Pods that have one domain for themselves; those of `inner` have domains of their own within it."""

    pods: Pods
    inner: TopologyDomains | None = None

    @property
    def likeness(self) -> Hashable:
        """Equal for units that need the same of a domain."""
        pods = tuple((shape.likeness, number) for shape, number in self.pods)
        return pods, None if self.inner is None else self.inner.likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDomains:
    """A domain of the node label `key` for each unit; `called` is what people call a unit.

    No pod with the label `mark` may be there already, of this namespace where one is named.
    """

    key: str
    units: tuple[DomainUnit, ...]
    called: str = "group"
    mark: str = ""
    namespace: str = ""

    @property
    def likeness(self) -> Hashable:
        """Equal for what needs the same."""
        return self.key, self.mark, self.namespace, tuple(unit.likeness for unit in self.units)


class Nodes:
    """The nodes of a cluster as domains see them; each question is looked into once."""

    def __init__(self, seen: ClusterObservation) -> None:
        """Begin with what was observed."""
        self._open = [({**pool.labels, **node.labels}, node.pods) for pool in seen.pools for node in pool.nodes]
        self._all = [*self._open, *((node.labels, node.pods) for node in seen.closed)]
        self._values: dict[str, Sequence[str]] = {}
        self._held: dict[tuple[str, str, str], tuple[frozenset[str], frozenset[str]]] = {}

    def values(self, key: str) -> Sequence[str]:
        """List the values of a label among the nodes that take pods, sorted."""
        if key not in self._values:
            self._values[key] = sorted({labels[key] for labels, _ in self._open if key in labels})
        return self._values[key]

    def held(self, wanted: TopologyDomains) -> tuple[frozenset[str], frozenset[str]]:
        """Return the domains that pods of other groups are in, and those of which nobody says which pods are there."""
        asked = wanted.key, wanted.mark, wanted.namespace
        if asked not in self._held:
            there = [(labels[wanted.key], pods) for labels, pods in self._all if wanted.key in labels]
            unknown = frozenset(value for value, pods in there if pods is None)
            taken = frozenset(value for value, pods in there if any(_hinders(pod, wanted) for pod in pods or ()))
            self._held[asked] = taken, unknown - taken
        return self._held[asked]

    def shared(self, key: str, others: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Return the domains that share a node with domains of any label, each a label and its value."""
        wanted = {*others}
        return frozenset(
            labels[key] for labels, _ in self._all if key in labels and not wanted.isdisjoint(labels.items())
        )


NODES = IdentityCache[Nodes](Nodes)
"""The nodes of the clusters as they were seen."""


def place(
    room: ClusterCapacity,
    nodes: Nodes,
    wanted: TopologyDomains,
    *,
    used: int = 0,
    loose: int = 0,
    besides: Iterable[tuple[str, str]] = (),
) -> tuple[tuple[DomainUnit, str], ...] | str:
    """Pair each unit with the value of its domain, or say why that cannot be; nothing is taken from the room.

    `used` are the domains that others of ours may come to have, `loose` those that the other pods of its own may, and
    `besides` are the labels and values of those that are given away beside it.
    """
    values = nodes.values(wanted.key)
    if not values:
        return f"no node has a label {wanted.key}, by which each {wanted.called} wants a domain of its own"
    taken, unknown = nodes.held(wanted)
    shut = taken | unknown | nodes.shared(wanted.key, besides)
    left = [value for value in values if value not in shut]
    able = {likeness: _able(room, nodes, wanted.key, left, unit) for likeness, unit in _kinds(wanted).items()}
    usable = {value for found in able.values() for value in found}
    enough = len(usable) - used - loose >= len(wanted.units)
    pairs = _matched([unit.likeness for unit in wanted.units], able) if enough else {}
    if enough and len(pairs) == len(wanted.units):
        return tuple((wanted.units[index], pairs[index]) for index in sorted(pairs))
    needs = f"needs {count(len(wanted.units), 'domain')} of {wanted.key}, one for each {wanted.called}"
    said = [f"{len(usable)} of {len(values)} there can hold one"]
    said += [f"other {wanted.called}s have pods in {len(taken)}"] if taken else []
    said += [f"nobody says which pods are in {len(unknown)}"] if unknown else []
    said += [f"others of ours have {used}"] if used else []
    said += [f"its other pods may go to {loose}"] if loose else []
    *first, last = said
    return f"{needs}: {', '.join(first)}, and {last}" if first else f"{needs}: {last}"


def _hinders(pod: PodOnNode, wanted: TopologyDomains) -> bool:
    """Tell whether a pod that is there is of another group."""
    return (not wanted.namespace or pod.namespace == wanted.namespace) and any(
        key == wanted.mark for key, _ in pod.labels
    )


def take(room: ClusterCapacity, pairs: Iterable[tuple[DomainUnit, str]], key: str) -> None:
    """Take the room of units in the domains that they were paired with."""
    for unit, value in pairs:
        for shape, number in unit.pods:
            room.take(_within(shape, key, value), number)


def outside(shape: ReplicaShape, given: Mapping[str, Iterable[tuple[str, str]]]) -> ReplicaShape:
    """Keep a shape out of domains that are given to others: labels and values, by what marks who has them."""
    asked = tuple(
        NodeRequirement(key=key, operator="NotIn", values=(value,)) for found in given.values() for key, value in found
    )
    terms = tuple(replace(term, labels=term.labels + asked) for term in shape.node_terms or (NodeTerm(),))
    return replace(shape, node_terms=terms) if asked else shape


def _kinds(wanted: TopologyDomains) -> Mapping[Hashable, DomainUnit]:
    return {unit.likeness: unit for unit in wanted.units}


def _able(room: ClusterCapacity, nodes: Nodes, key: str, values: Sequence[str], unit: DomainUnit) -> list[str]:
    """List the domains that can hold a unit whole."""
    return [value for value in values if _holds(room, nodes, key, value, unit)]


def _holds(room: ClusterCapacity, nodes: Nodes, key: str, value: str, unit: DomainUnit) -> bool:
    wanted = [(_within(shape, key, value), number) for shape, number in unit.pods]
    if room.together(wanted) < len(wanted):
        return False
    return unit.inner is None or not isinstance(place(room, nodes, _inside(unit.inner, key, value)), str)


def _inside(inner: TopologyDomains, key: str, value: str) -> TopologyDomains:
    """Keep units to a domain that they are within."""
    units = tuple(
        replace(one, pods=tuple((_within(shape, key, value), number) for shape, number in one.pods))
        for one in inner.units
    )
    return replace(inner, units=units)


def _within(shape: ReplicaShape, key: str, value: str) -> ReplicaShape:
    """Keep a shape to a domain; one that is kept to another already fits nowhere."""
    other = shape.node_selector.get(key, value)
    if other != value:
        return replace(shape, obstacle=f"is kept to {key}={other}")
    return replace(shape, node_selector=dict(sorted({**shape.node_selector, key: value}.items())))


def _matched(kinds: Sequence[Hashable], able: Mapping[Hashable, Sequence[str]]) -> Mapping[int, str]:
    """Pair as many as possible with one of those that its kind can have, none of which two share.

    Augmenting paths, as in Kuhn's algorithm, of which each passes a kind once: all of a kind can have the same. What is
    first in a list is taken first.
    """
    holder: dict[str, int] = {}

    def find(index: int, tried: set[Hashable]) -> bool:
        kind = kinds[index]
        tried.add(kind)
        free = next((value for value in able[kind] if value not in holder), None)
        if free is not None:
            holder[free] = index
            return True
        for value in able[kind]:
            if kinds[holder[value]] not in tried and find(holder[value], tried):
                holder[value] = index
                return True
        return False

    for index in range(len(kinds)):
        if not find(index, set()):
            break
    return {index: value for value, index in holder.items()}
