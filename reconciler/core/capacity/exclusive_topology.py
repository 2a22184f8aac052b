"""Exclusive topology: domains that each hold one group of pods, and how many of a cluster's are free.

A domain is all nodes with the same value of a label. The annotation ``exclusive-topology`` of a LeaderWorkerSet gives
each group a domain without other groups, with all pods of the group inside; JobSet's does so for each job. Their
webhooks add required anti-affinity to each pod with a label of other groups (docs/background/upstream/groups.md,
"Exclusive topology"). Pods without that label block no domain; pods with it do, whether or not their own group requires
a domain.

The count is a lower bound: a domain with such a pod is taken, and so is a domain whose pods are unknown. Each group
without a node is assumed to use up one of the suitable domains.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.node import keep_to_domain
from reconciler.core.capacity.pod_anti_affinity import merged_shape
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.pods.pod_affinity import pod_identities
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import (
    PodTemplateSite,
    TemplatePods,
    added_labels,
    group_count,
    has_whole_labels,
    pod_metadata,
    read_pods,
)
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import PodIdentity, PodOnNode
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.workload import Json
from reconciler.text.wording import count

ShapeCounts = tuple[tuple[ReplicaShape, int], ...]
"""Shapes, each with a number of pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainUnit:
    """Pods that require one domain."""

    pods: ShapeCounts
    """Pods of the unit, by shape."""
    inner: TopologyDomains | None = None
    """Domains within this one that subgroups of the pods require; None for none."""

    @property
    def likeness(self) -> Hashable:
        """Equal for units with the same requirements."""
        pods = tuple((shape.likeness, number) for shape, number in self.pods)
        return pods, None if self.inner is None else self.inner.likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDomains:
    """Domains of one node label that units require, one each."""

    key: str
    """The node label."""
    units: tuple[DomainUnit, ...]
    called: str = "group"
    """The name of a unit in messages: group, subgroup or job."""
    mark: str = ""
    """The pod label that identifies a group: a domain with such a pod is taken."""
    namespace: str = ""
    """The namespace of the pods that block a domain; empty for any namespace."""

    @property
    def likeness(self) -> Hashable:
        """Equal for the same requirements."""
        return self.key, self.mark, self.namespace, tuple(unit.likeness for unit in self.units)


class TopologyNodes:
    """Topology labels and pods of a cluster's nodes; each answer is cached."""

    def __init__(self, seen: ClusterObservation) -> None:
        """Take the nodes of an observation."""
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
        """Return the domains with pods of other groups, and the domains whose pods are unknown."""
        key = wanted.key, wanted.mark, wanted.namespace
        if key not in self._held:
            labelled = [(labels[wanted.key], pods) for labels, pods in self._all if wanted.key in labels]
            unknown = frozenset(value for value, pods in labelled if pods is None)
            taken = frozenset(value for value, pods in labelled if any(_occupies(pod, wanted) for pod in pods or ()))
            self._held[key] = taken, unknown - taken
        return self._held[key]

    def shared(self, key: str, others: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Return the domains of `key` that share a node with other domains, each a label and its value."""
        domains = {*others}
        return frozenset(
            labels[key] for labels, _ in self._all if key in labels and not domains.isdisjoint(labels.items())
        )


TOPOLOGY_NODES = ClusterCache[TopologyNodes](TopologyNodes)
"""The topology of each cluster as it was last observed."""


def assign_domains(
    room: ClusterCapacity,
    nodes: TopologyNodes,
    wanted: TopologyDomains,
    *,
    used: int = 0,
    loose: int = 0,
    besides: Iterable[tuple[str, str]] = (),
) -> tuple[tuple[DomainUnit, str], ...] | str:
    """Pair each unit with the value of its domain, or return why that is impossible; nothing is taken.

    `used` counts the domains that other placements of ours may get, `loose` those that the other pods of the same
    workload may use. `besides` are labels and values of domains that are assigned together with these.
    """
    values = nodes.values(wanted.key)
    if not values:
        return f"no node has a label {wanted.key}, by which each {wanted.called} wants a domain of its own"
    taken, unknown = nodes.held(wanted)
    shut = taken | unknown | nodes.shared(wanted.key, besides)
    open_values = [value for value in values if value not in shut]
    suitable = {
        likeness: _domains_for(room, nodes, wanted.key, open_values, unit)
        for likeness, unit in _unit_kinds(wanted).items()
    }
    usable = {value for values_able in suitable.values() for value in values_able}
    enough = len(usable) - used - loose >= len(wanted.units)
    pairs = _match([unit.likeness for unit in wanted.units], suitable) if enough else {}
    if enough and len(pairs) == len(wanted.units):
        return tuple((wanted.units[index], pairs[index]) for index in sorted(pairs))
    needs = f"needs {count(len(wanted.units), 'domain')} of {wanted.key}, one for each {wanted.called}"
    reasons = [f"{len(usable)} of {len(values)} there can hold one"]
    reasons += [f"other {wanted.called}s have pods in {len(taken)}"] if taken else []
    reasons += [f"the pods in {len(unknown)} are unknown"] if unknown else []
    reasons += [f"others of ours have {used}"] if used else []
    reasons += [f"its other pods may go to {loose}"] if loose else []
    *first, last = reasons
    return f"{needs}: {', '.join(first)}, and {last}" if first else f"{needs}: {last}"


def _occupies(pod: PodOnNode, wanted: TopologyDomains) -> bool:
    """Return whether a pod on a node belongs to another group."""
    return (not wanted.namespace or pod.namespace == wanted.namespace) and any(
        key == wanted.mark for key, _ in pod.labels
    )


def take_domains(room: ClusterCapacity, pairs: Iterable[tuple[DomainUnit, str]], key: str) -> None:
    """Take the capacity of units in their assigned domains."""
    for unit, value in pairs:
        for shape, number in unit.pods:
            room.take(keep_to_domain(shape, key, value), number)


def exclude_domains(shape: ReplicaShape, given: Mapping[str, Iterable[tuple[str, str]]]) -> ReplicaShape:
    """Exclude a shape from domains assigned to others, by the label that identifies their groups."""
    exclusions = tuple(
        Requirement(key=key, operator="NotIn", values=(value,)) for pairs in given.values() for key, value in pairs
    )
    terms = tuple(term.also(exclusions) for term in shape.node_terms or (Requirements(),))
    return replace(shape, node_terms=terms) if exclusions else shape


def _unit_kinds(wanted: TopologyDomains) -> Mapping[Hashable, DomainUnit]:
    return {unit.likeness: unit for unit in wanted.units}


def _domains_for(
    room: ClusterCapacity, nodes: TopologyNodes, key: str, values: Sequence[str], unit: DomainUnit
) -> list[str]:
    """List the domains that can hold a whole unit."""
    return [value for value in values if _fits(room, nodes, key, value, unit)]


def _fits(room: ClusterCapacity, nodes: TopologyNodes, key: str, value: str, unit: DomainUnit) -> bool:
    pods = [(keep_to_domain(shape, key, value), number) for shape, number in unit.pods]
    if room.fitting_in_order(pods) < len(pods):
        return False
    return unit.inner is None or not isinstance(assign_domains(room, nodes, _nest(unit.inner, key, value)), str)


def _nest(inner: TopologyDomains, key: str, value: str) -> TopologyDomains:
    """Restrict units to the domain that encloses them."""
    units = tuple(
        replace(unit, pods=tuple((keep_to_domain(shape, key, value), number) for shape, number in unit.pods))
        for unit in inner.units
    )
    return replace(inner, units=units)


def _match(kinds: Sequence[Hashable], values_by_kind: Mapping[Hashable, Sequence[str]]) -> Mapping[int, str]:
    """Match units to domains, at most one unit a domain, as many as possible.

    Augmenting paths, as in Kuhn's algorithm. Each path visits a kind once, since all units of a kind suit the same
    domains. Domains that come first in a list are taken first.
    """
    holder: dict[str, int] = {}

    def find(index: int, tried: set[Hashable]) -> bool:
        kind = kinds[index]
        tried.add(kind)
        free = next((value for value in values_by_kind[kind] if value not in holder), None)
        if free is not None:
            holder[free] = index
            return True
        for value in values_by_kind[kind]:
            if kinds[holder[value]] not in tried and find(holder[value], tried):
                holder[value] = index
                return True
        return False

    for index in range(len(kinds)):
        if not find(index, set()):
            break
    return {index: value for value, index in holder.items()}


SUBGROUPS = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_GROUP = ("spec", "leaderWorkerTemplate")
_MAX_DOMAINS = 10_000
"""Units that are listed; clusters have fewer nodes (Kubernetes supports 5,000), so that more fit nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveTopology:
    """Domains that the pods of an object require, and its other pods."""

    domains: TopologyDomains | None = None
    """Required domains; None where only `marked` is set."""
    loose: ShapeCounts = ()
    """Pods of the object that require no domain."""
    marked: Mapping[str, int] = field(default_factory=dict)
    """Pods by label that block domains for other groups, and require no domain of that label themselves."""


def read_exclusive_topology(manifest: Mapping[str, Json], kinds: Kinds) -> ExclusiveTopology | None:
    """Read the exclusive topology of an object; None for other kinds, or where it makes no pods.

    Raises LookupError and ValueError as `workloads.pods.read_pods` does.
    """
    kind = kind_of(manifest, kinds)
    if kind is None:
        return None
    pods = [pod for pod in read_pods(manifest, kinds) if pod.replicas] if kind.group_key else []
    if not pods:
        return None
    return _of_leader_worker_set(manifest, kind, pods) if kind.subgroup_key else _of_job_set(manifest, kind, pods)


def template_identities(manifest: Mapping[str, Json], place: PodTemplateSite) -> tuple[PodIdentity, ...]:
    """Return the identities of a template's pods for pod rules, with the labels that identify groups.

    The value of a group's key is unknown beforehand, and equal to no existing one. Operators may add the labels that
    the table of kinds has of their pods, and others of their own domain.
    """
    (identity,) = pod_identities(pod_metadata(manifest, place))
    kind = BUILT_IN.get(group_kind(manifest))
    marks = {kind.group_key: ""} if kind is not None and kind.group_key else {}
    if kind is not None and kind.subgroup_key and at(manifest, (*_GROUP, "subGroupPolicy")):
        marks |= {kind.subgroup_key: ""}
    known, added = ({}, ()) if has_whole_labels(manifest, place) else added_labels(manifest)
    labels = {**known, **dict(identity.labels), **marks}
    return (identity._replace(labels=tuple(sorted(labels.items())), added=added),)


def subgroup_of(size: int, subgroup: int, worker: int) -> int:
    """Return the subgroup of a worker of a group; worker 0 is the leader.

    Where the leader makes subgroups uneven, the first subgroup has it as an additional pod (LeaderWorkerSet's
    getSubGroupIndex).
    """
    return worker // subgroup if size % subgroup == 0 else max(0, worker - 1) // subgroup


def _of_leader_worker_set(
    manifest: Mapping[str, Json], kind: WorkloadKind, pods: list[TemplatePods]
) -> ExclusiveTopology | None:
    number = group_count(manifest, kind) or 0
    if not number:
        return None
    group_key, subgroup_key = _annotation(manifest, (), kind.apart), _annotation(manifest, (), SUBGROUPS)
    shapes = [(_shape(manifest, pod), (pod.replicas or 0) // number) for pod in pods]
    inner, outside = _subgroups(manifest, shapes, subgroup_key, kind.subgroup_key) if subgroup_key else (None, ())
    pod_count = number * sum(each for _, each in shapes)
    marked = {} if group_key else {kind.group_key: pod_count}
    if inner is None and at(manifest, (*_GROUP, "subGroupPolicy")):
        marked[kind.subgroup_key] = pod_count
    if group_key:
        unit = DomainUnit(pods=merge_shapes(shapes), inner=inner)
        units, namespace = (unit,) * min(number, _MAX_DOMAINS), _namespace(manifest)
        return ExclusiveTopology(
            domains=TopologyDomains(key=group_key, units=units, mark=kind.group_key, namespace=namespace), marked=marked
        )
    if inner is None:
        return ExclusiveTopology(marked=marked)
    domains = replace(inner, units=inner.units * min(number, -(-_MAX_DOMAINS // len(inner.units))))
    loose = tuple((shape, each * number) for shape, each in outside)
    return ExclusiveTopology(domains=domains, loose=loose, marked=marked)


def _subgroups(
    manifest: Mapping[str, Json], shapes: list[tuple[ReplicaShape, int]], key: str, mark: str
) -> tuple[TopologyDomains | None, ShapeCounts]:
    """Divide the pods of one group over its subgroups; with LeaderExcluded the leader is in none."""
    policy = at(manifest, (*_GROUP, "subGroupPolicy")) or {}
    subgroup = policy.get("subGroupSize")
    if type(subgroup) is not int or subgroup < 1:
        return None, ()
    outside: ShapeCounts = ()
    if policy.get("subGroupPolicyType") == "LeaderExcluded":
        (leader, leaders), *workers = shapes  # the leader's template comes first
        outside, shapes = ((leader, 1),), [(leader, leaders - 1), *workers]
    size = sum(number for _, number in shapes)
    number = subgroup_of(size, subgroup, size - 1) + 1 if size else 0
    firsts = [_first_worker(size, subgroup, index) for index in range(min(number, _MAX_DOMAINS) + 1)]
    made_of = tuple(DomainUnit(pods=merge_shapes(_slice(shapes, *ends))) for ends in pairwise(firsts))
    if not made_of:
        return None, ()
    domains = TopologyDomains(key=key, units=made_of, called="subgroup", mark=mark, namespace=_namespace(manifest))
    return domains, outside


def _first_worker(size: int, subgroup: int, index: int) -> int:
    """Return the first worker of a subgroup, the inverse of `subgroup_of`."""
    return min(size, index * subgroup + (1 if index and size % subgroup else 0))


def _slice(shapes: list[tuple[ReplicaShape, int]], first: int, end: int) -> list[tuple[ReplicaShape, int]]:
    """Count the pods from `first` up to `end` by shape, where pods of a shape are contiguous."""
    parts: list[tuple[ReplicaShape, int]] = []
    start = 0
    for shape, number in shapes:
        within = min(end, start + number) - max(first, start)
        parts += [(shape, within)] if within > 0 else []
        start += number
    return parts


def _of_job_set(manifest: Mapping[str, Json], kind: WorkloadKind, pods: list[TemplatePods]) -> ExclusiveTopology | None:
    units: list[DomainUnit] = []
    loose: list[tuple[ReplicaShape, int]] = []
    keys: set[str] = set()
    for pod in pods:
        shape, number = _shape(manifest, pod), pod.replicas or 0
        key = _annotation(manifest, (*pod.place.item, "template"), kind.apart) or _annotation(manifest, (), kind.apart)
        if not key:
            loose.append((shape, number))
            continue
        jobs = at(manifest, (*pod.place.item, "replicas"))
        several = jobs if type(jobs) is int and jobs > 0 else 1
        keys.add(key)
        units += [DomainUnit(pods=((shape, number // several),))] * min(several, _MAX_DOMAINS)
    marked = {kind.group_key: sum(number for _, number in loose)}
    if not units:
        return ExclusiveTopology(marked=marked)
    if len(keys) > 1:
        raise ValueError(f"its jobs want domains of several labels: {', '.join(sorted(keys))}")
    domains = TopologyDomains(key=keys.pop(), units=tuple(units), called="job", mark=kind.group_key)
    return ExclusiveTopology(domains=domains, loose=tuple(loose), marked=marked)


def _shape(manifest: Mapping[str, Json], pods: TemplatePods) -> ReplicaShape:
    """Read the shape of pods; the rules between them are evaluated with all pods of the object."""
    shape = replica_shape(pods.spec)
    admission = tuple(each._replace(namespace=_namespace(manifest)) for each in shape.admission)
    return replace(shape, who=template_identities(manifest, pods.place), admission=admission)


def _namespace(manifest: Mapping[str, Json]) -> str:
    """Return the namespace of an object; empty where it is unknown."""
    namespace = at(manifest, ("metadata", "namespace"))
    return namespace if isinstance(namespace, str) and not has_expression(namespace) else ""


def _annotation(manifest: Mapping[str, Json], object_path: tuple[str, ...], name: str) -> str:
    """Return the value of an annotation; empty where it is missing."""
    value = at(manifest, (*object_path, "metadata", "annotations", name)) if name else None
    return value if isinstance(value, str) else ""


def merge_shapes(shapes: Iterable[tuple[ReplicaShape, int]]) -> ShapeCounts:
    """Merge pods of equal shapes, those with the most GPUs first."""
    sums: dict[Hashable, tuple[ReplicaShape, int]] = {}
    for shape, number in shapes:
        first, before = sums.get(shape.likeness, (shape, 0))
        sums[shape.likeness] = merged_shape(shape, first), before + number
    return tuple(sorted(sums.values(), key=lambda pair: -gpus_of_pod(pair[0])))
