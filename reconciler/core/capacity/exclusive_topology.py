"""Exclusive topology: the domains that groups of pods want for themselves, and how many of a cluster's are free.

A domain is all nodes with the same value of a label. The annotation ``exclusive-topology`` of a LeaderWorkerSet gives
each group a domain that no other group is in, with all pods of the group inside; JobSet's does so for each job. Their
webhooks do it by required anti-affinity to each pod with a label of other groups (docs/reference/groups.md, "Exclusive
topology"). A pod without that label is in nobody's way; a pod with it is, whether or not its own group wants a domain.

The count is a lower bound: a domain with such a pod is taken, and so is a domain whose pods are unknown. Each group
that has no node yet is taken to use up one of the domains that would do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.pod_anti_affinity import merged_identities
from reconciler.core.capacity.room import ClusterCapacity
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pod_affinity import pod_identities
from reconciler.core.workloads.pod_shape import replica_shape
from reconciler.core.workloads.pods import PodTemplateSite, TemplatePods, group_count, pod_metadata, read_pods
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.scheduling import NodeRequirement, NodeTerm, PodIdentity, PodOnNode
from reconciler.model.workload import Json
from reconciler.model.workload_kind import WorkloadKind
from reconciler.text.wording import count

ShapeCounts = tuple[tuple[ReplicaShape, int], ...]
"""So many pods of a shape each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainUnit:
    """Pods that have one domain for themselves; those of `inner` have domains of their own within it."""

    pods: ShapeCounts
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


class TopologyNodes:
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
            labelled = [(labels[wanted.key], pods) for labels, pods in self._all if wanted.key in labels]
            unknown = frozenset(value for value, pods in labelled if pods is None)
            taken = frozenset(value for value, pods in labelled if any(_occupies(pod, wanted) for pod in pods or ()))
            self._held[asked] = taken, unknown - taken
        return self._held[asked]

    def shared(self, key: str, others: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Return the domains that share a node with domains of any label, each a label and its value."""
        wanted = {*others}
        return frozenset(
            labels[key] for labels, _ in self._all if key in labels and not wanted.isdisjoint(labels.items())
        )


TOPOLOGY_NODES = ClusterCache[TopologyNodes](TopologyNodes)
"""The nodes of the clusters as they were seen."""


def assign_domains(
    room: ClusterCapacity,
    nodes: TopologyNodes,
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
    able = {
        likeness: _domains_for(room, nodes, wanted.key, left, unit) for likeness, unit in _unit_kinds(wanted).items()
    }
    usable = {value for values_able in able.values() for value in values_able}
    enough = len(usable) - used - loose >= len(wanted.units)
    pairs = _match([unit.likeness for unit in wanted.units], able) if enough else {}
    if enough and len(pairs) == len(wanted.units):
        return tuple((wanted.units[index], pairs[index]) for index in sorted(pairs))
    needs = f"needs {count(len(wanted.units), 'domain')} of {wanted.key}, one for each {wanted.called}"
    reasons = [f"{len(usable)} of {len(values)} there can hold one"]
    reasons += [f"other {wanted.called}s have pods in {len(taken)}"] if taken else []
    reasons += [f"nobody says which pods are in {len(unknown)}"] if unknown else []
    reasons += [f"others of ours have {used}"] if used else []
    reasons += [f"its other pods may go to {loose}"] if loose else []
    *first, last = reasons
    return f"{needs}: {', '.join(first)}, and {last}" if first else f"{needs}: {last}"


def _occupies(pod: PodOnNode, wanted: TopologyDomains) -> bool:
    """Tell whether a pod that is there is of another group."""
    return (not wanted.namespace or pod.namespace == wanted.namespace) and any(
        key == wanted.mark for key, _ in pod.labels
    )


def take_domains(room: ClusterCapacity, pairs: Iterable[tuple[DomainUnit, str]], key: str) -> None:
    """Take the room of units in the domains that they were paired with."""
    for unit, value in pairs:
        for shape, number in unit.pods:
            room.take(_in_domain(shape, key, value), number)


def exclude_domains(shape: ReplicaShape, given: Mapping[str, Iterable[tuple[str, str]]]) -> ReplicaShape:
    """Keep a shape out of domains that are given to others: labels and values, by what marks who has them."""
    asked = tuple(
        NodeRequirement(key=key, operator="NotIn", values=(value,)) for pairs in given.values() for key, value in pairs
    )
    terms = tuple(replace(term, labels=term.labels + asked) for term in shape.node_terms or (NodeTerm(),))
    return replace(shape, node_terms=terms) if asked else shape


def _unit_kinds(wanted: TopologyDomains) -> Mapping[Hashable, DomainUnit]:
    return {unit.likeness: unit for unit in wanted.units}


def _domains_for(
    room: ClusterCapacity, nodes: TopologyNodes, key: str, values: Sequence[str], unit: DomainUnit
) -> list[str]:
    """List the domains that can hold a unit whole."""
    return [value for value in values if _fits(room, nodes, key, value, unit)]


def _fits(room: ClusterCapacity, nodes: TopologyNodes, key: str, value: str, unit: DomainUnit) -> bool:
    wanted = [(_in_domain(shape, key, value), number) for shape, number in unit.pods]
    if room.together(wanted) < len(wanted):
        return False
    return unit.inner is None or not isinstance(assign_domains(room, nodes, _nested(unit.inner, key, value)), str)


def _nested(inner: TopologyDomains, key: str, value: str) -> TopologyDomains:
    """Keep units to a domain that they are within."""
    units = tuple(
        replace(unit, pods=tuple((_in_domain(shape, key, value), number) for shape, number in unit.pods))
        for unit in inner.units
    )
    return replace(inner, units=units)


def _in_domain(shape: ReplicaShape, key: str, value: str) -> ReplicaShape:
    """Keep a shape to a domain; one that is kept to another already fits nowhere."""
    other = shape.node_selector.get(key, value)
    if other != value:
        return replace(shape, obstacle=f"is kept to {key}={other}")
    return replace(shape, node_selector=dict(sorted({**shape.node_selector, key: value}.items())))


def _match(kinds: Sequence[Hashable], able: Mapping[Hashable, Sequence[str]]) -> Mapping[int, str]:
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


SUBGROUPS = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_LWS, _JOBSET = "leaderworkerset.x-k8s.io/LeaderWorkerSet", "jobset.x-k8s.io/JobSet"
_GROUP_KEY, _SUBGROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/subgroup-key"
_JOB_KEY = "jobset.sigs.k8s.io/job-key"
"""Labels that tell groups apart; every pod of a set has them."""

_GROUP = ("spec", "leaderWorkerTemplate")
_MAX_DOMAINS = 10_000
"""Domains that are listed; no cluster has as many nodes (Kubernetes is made for 5,000), so that more fit nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveTopology:
    """The domains that pods of an object want, and its other pods.

    `marked` counts by label the pods that are in the way of groups elsewhere, and want no domain for that themselves.
    """

    domains: TopologyDomains | None = None
    loose: ShapeCounts = ()
    marked: Mapping[str, int] = field(default_factory=dict)


def read_exclusive_topology(manifest: Mapping[str, Json], kinds: Kinds) -> ExclusiveTopology | None:
    """Read the domains that an object wants, and who is in its way; None for other kinds, or where it makes no pods.

    Raises LookupError and ValueError as `podsof.made` does.
    """
    kind = kind_of(manifest, kinds)
    if kind is None:
        return None
    pods = (
        [pods_made for pods_made in read_pods(manifest, kinds) if pods_made.replicas]
        if kind.name in (_LWS, _JOBSET)
        else []
    )
    if not pods:
        return None
    return _of_leader_worker_set(manifest, kind, pods) if kind.name == _LWS else _of_job_set(manifest, kind, pods)


def template_identities(manifest: Mapping[str, Json], place: PodTemplateSite) -> tuple[PodIdentity, ...]:
    """Return what the rules of other pods see in the pods of a template, with the labels that tell groups apart.

    What a group's key will be nobody knows; it is none that is there.
    """
    (seen,) = pod_identities(pod_metadata(manifest, place))
    kind, marks = group_kind(manifest), dict[str, str]()
    if kind == _LWS:
        marks = {_GROUP_KEY: ""} | ({_SUBGROUP_KEY: ""} if at(manifest, (*_GROUP, "subGroupPolicy")) else {})
    elif kind == _JOBSET:
        marks = {_JOB_KEY: ""}
    return (seen._replace(labels=tuple(sorted({**dict(seen.labels), **marks}.items()))),) if marks else (seen,)


def subgroup_of(size: int, subgroup: int, worker: int) -> int:
    """Say which subgroup a pod of a group is in; worker 0 is the leader.

    Where the leader is one too many for even subgroups, the first has it beside its own (LeaderWorkerSet's
    getSubGroupIndex).
    """
    return worker // subgroup if size % subgroup == 0 else max(0, worker - 1) // subgroup


def _of_leader_worker_set(
    manifest: Mapping[str, Json], kind: WorkloadKind, pods: list[TemplatePods]
) -> ExclusiveTopology | None:
    number = group_count(manifest, kind) or 0
    if not number:
        return None
    whole, part = _annotation(manifest, (), kind.apart), _annotation(manifest, (), SUBGROUPS)
    shapes = [(_shape(manifest, pod), (pod.replicas or 0) // number) for pod in pods]
    inner, outside = _subgroups(manifest, shapes, part) if part else (None, ())
    every = number * sum(each for _, each in shapes)
    marked = {} if whole else {_GROUP_KEY: every}
    if inner is None and at(manifest, (*_GROUP, "subGroupPolicy")):
        marked[_SUBGROUP_KEY] = every
    if whole:
        unit = DomainUnit(pods=_merged(shapes), inner=inner)
        units, namespace = (unit,) * min(number, _MAX_DOMAINS), _namespace(manifest)
        return ExclusiveTopology(
            domains=TopologyDomains(key=whole, units=units, mark=_GROUP_KEY, namespace=namespace), marked=marked
        )
    if inner is None:
        return ExclusiveTopology(marked=marked)
    domains = replace(inner, units=inner.units * min(number, -(-_MAX_DOMAINS // len(inner.units))))
    loose = tuple((shape, each * number) for shape, each in outside)
    return ExclusiveTopology(domains=domains, loose=loose, marked=marked)


def _subgroups(
    manifest: Mapping[str, Json], shapes: list[tuple[ReplicaShape, int]], key: str
) -> tuple[TopologyDomains | None, ShapeCounts]:
    """Share the pods of one group out over its subgroups; with LeaderExcluded the leader is in none."""
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
    made_of = tuple(DomainUnit(pods=_merged(_slice(shapes, *ends))) for ends in pairwise(firsts))
    if not made_of:
        return None, ()
    domains = TopologyDomains(
        key=key, units=made_of, called="subgroup", mark=_SUBGROUP_KEY, namespace=_namespace(manifest)
    )
    return domains, outside


def _first_worker(size: int, subgroup: int, index: int) -> int:
    """Say which pod of a group is the first of a subgroup, as `subgroup_of` has it."""
    return min(size, index * subgroup + (1 if index and size % subgroup else 0))


def _slice(shapes: list[tuple[ReplicaShape, int]], first: int, end: int) -> list[tuple[ReplicaShape, int]]:
    """Count the pods from one to another by shape, of so many of each in a row."""
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
    marked = {_JOB_KEY: sum(number for _, number in loose)}
    if not units:
        return ExclusiveTopology(marked=marked)
    if len(keys) > 1:
        raise ValueError(f"its jobs want domains of several labels: {', '.join(sorted(keys))}")
    domains = TopologyDomains(key=keys.pop(), units=tuple(units), called="job", mark=_JOB_KEY)
    return ExclusiveTopology(domains=domains, loose=tuple(loose), marked=marked)


def _shape(manifest: Mapping[str, Json], pods: TemplatePods) -> ReplicaShape:
    """Read what pods ask of nodes; their rules are counted with all pods together."""
    return replace(replica_shape(pods.spec), who=template_identities(manifest, pods.place))


def _namespace(manifest: Mapping[str, Json]) -> str:
    """Return the namespace that an object names; empty where nobody knows it."""
    namespace = at(manifest, ("metadata", "namespace"))
    return namespace if isinstance(namespace, str) and not has_expression(namespace) else ""


def _annotation(manifest: Mapping[str, Json], object_path: tuple[str, ...], name: str) -> str:
    """Return the value of an annotation; empty where there is none."""
    value = at(manifest, (*object_path, "metadata", "annotations", name)) if name else None
    return value if isinstance(value, str) else ""


def _merged(shapes: list[tuple[ReplicaShape, int]]) -> ShapeCounts:
    """Count pods that are alike together, those that take most of a node first."""
    sums: dict[Hashable, tuple[ReplicaShape, int]] = {}
    for shape, number in shapes:
        alike, before = sums.get(shape.likeness, (shape, 0))
        sums[shape.likeness] = replace(shape, who=merged_identities((alike, shape))), before + number
    return tuple(sorted(sums.values(), key=lambda pair: -gpus_of_pod(pair[0])))
