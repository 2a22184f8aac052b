"""Shared topology: pods that all have to run in one domain, and the domains of a cluster that hold them.

A domain is all nodes with the same value of a label, as a rack or an NVLink domain; a node without the label is in
none. Unlike an exclusive domain (`exclusive_topology`), it may hold pods of others. Who asks for one:

- Kueue's ``podset-required-topology`` on a pod template, for its pods, and ``podset-slice-required-topology`` for each
  slice of them (https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/). Of a LeaderWorkerSet each group
  has pod sets of its own; those with one ``podset-group-name`` go together.
- KAI's ``topology-required-placement`` on an object, for all pods of each of its groups
  (https://github.com/NVIDIA/KAI-Scheduler, docs/topology).
- NVIDIA's ComputeDomain, for all pods that claim its channel: they reach each other by NVLink within one clique
  (https://github.com/NVIDIA/k8s-dra-driver-gpu).

Domains are filled as both schedulers do, the one with the least room that holds all pods first. For equal groups of
pods of one shape the number that fits is exact; for others it is a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.exclusive_topology import ShapeCounts, merge_shapes
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.node import keep_to_domain
from reconciler.core.capacity.remedies import ADD_NODES
from reconciler.core.pods.pod_references import as_mapping
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import TemplatePods, group_count
from reconciler.model.capacity import ReplicaShape
from reconciler.model.workload import Json
from reconciler.text.digits import whole_number
from reconciler.text.wording import count, join_names, sanitize

ShapedPods: TypeAlias = tuple[TemplatePods, ReplicaShape]
"""The pods of one template, and their shape."""

NVLINK_DOMAIN = "nvidia.com/gpu.clique"
"""The label of nodes whose GPUs are connected by NVLink; GPU feature discovery writes it."""

_POD_SET = "kueue.x-k8s.io/podset-required-topology"
_POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
_SLICE = "kueue.x-k8s.io/podset-slice-required-topology"
_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
_OBJECT = "kai.scheduler/topology-required-placement"
_UNCOUNTED = (
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
    "kai.scheduler/segment-topology-required-placement",
)
"""Annotations that require several levels of domains, or domains by the index of a pod."""
_MAX_GROUPS = 10_000
"""Groups that are listed; clusters have fewer nodes (Kubernetes supports 5,000), so that more fit nowhere."""

REMEDY = "free or add nodes in one domain there"
UNCOUNTABLE = "which cannot be counted here"
COUNTED = f"ask for one level of domains ({_POD_SET}), or for slices that divide its pods ({_SLICE_SIZE})"
"""The topology that can be counted, as a remedy for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDomain:
    """Pods that have to run in one domain."""

    key: str
    """The node label."""
    pods: ShapeCounts
    """All pods of the domain, by shape."""
    inner: tuple[SharedDomain, ...] = ()
    """Parts of these pods, each of which also has to run in one domain of a label of its own."""

    @property
    def likeness(self) -> Hashable:
        """Equal for the same requirements."""
        pods = tuple((shape.likeness, number) for shape, number in self.pods)
        return self.key, pods, tuple(unit.likeness for unit in self.inner)

    def with_shapes(self, change: Callable[[ReplicaShape], ReplicaShape]) -> SharedDomain:
        """Return the same domain for changed pods."""
        pods = tuple((change(shape), number) for shape, number in self.pods)
        return replace(self, pods=pods, inner=tuple(unit.with_shapes(change) for unit in self.inner))

    @property
    def size(self) -> int:
        """The number of pods."""
        return sum(number for _, number in self.pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainShortage:
    """Why shared domains have no room."""

    message: str
    remedy: str


def read_shared_domains(
    manifest: Mapping[str, Json], kinds: Kinds, pods: Sequence[ShapedPods]
) -> Iterator[SharedDomain]:
    """Read the domains that groups of an object's pods share; a pod that is alone in its group shares none."""
    kind = kind_of(manifest, kinds)
    if kind is None or kind.one_by_one:  # each pod is a group of its own
        return
    number = min(_MAX_GROUPS, max(1, group_count(manifest, kind) or 1))
    whole = object_annotations(manifest).get(_OBJECT)
    if isinstance(whole, str):
        yield from shared_domains(whole, [(shape, (made.replicas or 0) // number) for made, shape in pods], number)
    for (key, slice_key, _), members in _pod_sets(manifest, pods).items():
        slices: tuple[SharedDomain, ...] = ()
        parts = [(shape, (made.replicas or 0) // number) for made, shape in members]
        if slice_key:
            ((made, shape),) = members  # of a group of pod sets they cannot be counted
            size = _slice_size(made, manifest)
            slices = tuple(shared_domains(slice_key, [(shape, size)], parts[0][1] // size))
        if key:
            yield from (replace(domain, inner=slices) for domain in shared_domains(key, parts, number))
        else:
            yield from slices * number


def topology_obstacle(pods: TemplatePods, manifest: Mapping[str, Json]) -> str:
    """Say which required topology of a template's pods cannot be counted; empty where all of it can."""
    annotations = template_annotations(pods, manifest)
    for key in _UNCOUNTED:
        if key in annotations:
            return f"wants its pods in topology domains ({key})"
    if _SLICE not in annotations:
        return ""
    size = _slice_size(pods, manifest)
    if not size or (pods.replicas or 0) % size or _POD_SET_GROUP in annotations:
        return f"wants slices of its pods in topology domains ({_SLICE})"
    return ""


def uncounted_topology(manifest: Mapping[str, Json], kinds: Kinds, pods: Sequence[ShapedPods]) -> str:
    """Say which required topology of an object's pods cannot be counted; empty where all of it can."""
    kind = kind_of(manifest, kinds)
    if kind is None or kind.one_by_one:
        return ""
    obstacles = (topology_obstacle(made, manifest) for made, _ in pods if made.replicas != 1)
    return next(filter(None, obstacles), "")


def assign_shared_domains(
    room: ClusterCapacity, wanted: Sequence[SharedDomain], parts: Iterable[tuple[ReplicaShape, int]]
) -> ShapeCounts | DomainShortage:
    """Keep the pods of shared domains to a domain each and return them with the others, or why there is no room.

    `parts` are all pods, by shape, those of the domains among them. Nothing is taken.
    """
    left, assigned = room.copy(), list[tuple[ReplicaShape, int]]()
    ordered = sorted(wanted, key=lambda unit: -sum(gpus_of_pod(shape) * number for shape, number in unit.pods))
    for placed, unit in enumerate(ordered):
        pods = _find(left, unit)
        if pods is None:
            return _describe(left, unit, placed, len(ordered))
        for shape, number in pods:
            left.take(shape, number)
        assigned += pods
    others = _others(wanted, parts)
    if left.fitting_in_order(others) < len(others):
        message = "has no room for the other pods beside the groups that share a topology domain"
        return DomainShortage(message=message, remedy=ADD_NODES)
    return (*assigned, *others)


def pods_in_domains(
    room: ClusterCapacity, wanted: Sequence[SharedDomain], parts: Sequence[tuple[ReplicaShape, int]]
) -> ShapeCounts:
    """Return the pods as `assign_shared_domains` does, or as they are where they share no domain or have no room."""
    assigned = assign_shared_domains(room, wanted, parts) if wanted else ()
    return tuple(parts) if not wanted or isinstance(assigned, DomainShortage) else assigned


def describe_shared_domains(wanted: Sequence[SharedDomain]) -> str:
    """Say which pods run in one domain of which label."""
    sizes = Counter((unit.key, unit.size) for unit in wanted)
    clauses = (
        f"one domain of {sanitize(key)} for {f'its {size} pods' if number == 1 else f'each of {number} groups'}"
        for (key, size), number in sizes.items()
    )
    return join_names(clauses)


def count_groups(room: ClusterCapacity, wanted: Sequence[SharedDomain], shape: ReplicaShape) -> int:
    """Count the replicas of a shape that find a domain each, where every replica is one of these groups; else 0."""
    keys = {unit.key for unit in wanted}
    if len(keys) != 1 or any(unit.inner or unit.size != shape.group_size for unit in wanted):
        return 0
    pods_by_domain = room.pods_by_domain(replace(shape, group_size=1), keys.pop())
    return sum(pods // shape.group_size for pods in pods_by_domain.values())


def largest_domain(room: ClusterCapacity, unit: SharedDomain) -> tuple[str, int, int] | None:
    """Return the domain that holds most pods of a unit, with their number, and the number of domains; None for none."""
    held = dict(room.pods_by_domain(unit.pods[0][0], unit.key))
    if not held:
        return None
    if len(unit.pods) > 1:
        held = {value: _count_pods(room, unit, value) for value in held}
    largest = max(sorted(held), key=lambda value: held[value])
    return largest, min(unit.size, held[largest]), len(held)


def _count_pods(room: ClusterCapacity, unit: SharedDomain, value: str) -> int:
    """Count the pods of a unit that one domain holds, those of its first shape first."""
    holds, left = 0, room.copy()
    for shape, most in unit.pods:
        pod = keep_to_domain(shape, unit.key, value)
        fit = left.count(pod, most)
        left.take(pod, fit)
        holds += fit
    return holds


def additional_domains(
    wanted: Sequence[SharedDomain], present: Sequence[SharedDomain]
) -> tuple[SharedDomain, ...] | None:
    """Return the domains beyond those of running pods; None where one of those would have to take more pods."""
    unmatched = Counter(unit.likeness for unit in present)
    more: list[SharedDomain] = []
    for unit in wanted:
        if unmatched[unit.likeness]:
            unmatched[unit.likeness] -= 1
        else:
            more.append(unit)
    return None if unmatched.total() else tuple(more)


def _find(room: ClusterCapacity, unit: SharedDomain) -> list[tuple[ReplicaShape, int]] | None:
    """Return the pods of a unit, each kept to the domain that holds all of them; None where none does."""
    (first, number), *_ = unit.pods
    pods_by_domain = room.pods_by_domain(first, unit.key)
    for value in sorted(pods_by_domain, key=lambda value: (pods_by_domain[value], value)):
        if pods_by_domain[value] < number:
            continue
        pods = [(keep_to_domain(shape, unit.key, value), number) for shape, number in unit.pods]
        if room.fitting_in_order(pods) < len(pods):
            continue
        if not unit.inner:
            return pods
        keep = partial(keep_to_domain, key=unit.key, value=value)
        trial, parts = room.copy(), [part.with_shapes(keep) for part in unit.inner]
        inner, others = _find_all(trial, parts), _others(parts, pods)
        if inner is not None and trial.fitting_in_order(others) == len(others):
            return [*inner, *others]
    return None


def _find_all(room: ClusterCapacity, units: Iterable[SharedDomain]) -> list[tuple[ReplicaShape, int]] | None:
    """Place units one beside the other, on a capacity for the trial."""
    placed: list[tuple[ReplicaShape, int]] = []
    for unit in units:
        pods = _find(room, unit)
        if pods is None:
            return None
        for shape, number in pods:
            room.take(shape, number)
        placed += pods
    return placed


def _others(
    wanted: Iterable[SharedDomain], parts: Iterable[tuple[ReplicaShape, int]]
) -> list[tuple[ReplicaShape, int]]:
    """Return the pods that share no domain."""
    shared = Counter[Hashable]()
    for unit in wanted:
        for shape, number in unit.pods:
            shared[shape.likeness] += number
    others: list[tuple[ReplicaShape, int]] = []
    for shape, number in parts:
        alone = max(0, number - shared[shape.likeness])
        shared[shape.likeness] -= number - alone
        others += [(shape, alone)] if alone else []
    return others


def _describe(room: ClusterCapacity, unit: SharedDomain, placed: int, number: int) -> DomainShortage:
    """Say how much of a unit the domain holds that holds most of it."""
    key, pods = sanitize(unit.key), count(unit.size, "pod")
    wants = f"wants {f'its {pods}' if number == 1 else f'the {pods} of each of {number} groups'} in one domain of {key}"
    held = largest_domain(room, unit)
    if held is None:
        remedy = f"label its nodes with {key}, or ask for another label"
        return DomainShortage(message=f"{wants}, and no node there has that label", remedy=remedy)
    beside = f" beside {count(placed, 'other group')}" if placed else ""
    largest, holds, number_of_domains = held
    domains = count(number_of_domains, "domain")
    if holds < unit.size:
        message = f"{wants}: the largest of {domains}, {sanitize(largest)}, holds {holds} of {unit.size}{beside}"
    else:
        inner = f" with each part in one of {sanitize(unit.inner[0].key)}" if unit.inner else ""
        message = f"{wants}{inner}: none of {domains} holds them{beside}"
    return DomainShortage(message=message, remedy=REMEDY)


def shared_domains(
    key: str, pods: Sequence[tuple[ReplicaShape, int]], number: int, *, inner: tuple[SharedDomain, ...] = ()
) -> Iterator[SharedDomain]:
    """Yield so many domains with these pods each; none for a single pod."""
    unit = SharedDomain(key=key, pods=merge_shapes(pair for pair in pods if pair[1]), inner=inner)
    if unit.size > 1:
        yield from [unit] * min(number, _MAX_GROUPS)


def _pod_sets(
    manifest: Mapping[str, Json], pods: Sequence[ShapedPods]
) -> Mapping[tuple[str, str, object], list[ShapedPods]]:
    """Gather the pods of templates with Kueue's annotations by the labels of all and of slices, and by their group."""
    sets: dict[tuple[str, str, object], list[ShapedPods]] = {}
    for position, (made, shape) in enumerate(pods):
        annotations = template_annotations(made, manifest)
        key, slice_key = (str(annotations.get(name) or "") for name in (_POD_SET, _SLICE))
        if made.replicas and (key or slice_key) and not topology_obstacle(made, manifest):
            sets.setdefault((key, slice_key, annotations.get(_POD_SET_GROUP) or position), []).append((made, shape))
    return sets


def _slice_size(pods: TemplatePods, manifest: Mapping[str, Json]) -> int:
    """Return the pods of one of Kueue's slices: as annotated, else one job of a JobSet; 0 where that is unknown."""
    stated = template_annotations(pods, manifest).get(_SLICE_SIZE)
    if stated is not None:
        return (whole_number(stated) or 0) if isinstance(stated, str) else 0
    jobs = at(manifest, (*pods.place.item, "replicas")) if pods.place.item else 0
    return (pods.replicas or 0) // jobs if type(jobs) is int and jobs > 0 else 0


def template_annotations(pods: TemplatePods, manifest: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the annotations of a pod template, or those beside a pod spec that stands without metadata."""
    spec_path = tuple(map(str, pods.place.loc))
    beside = spec_path[-1:] in (("spec",), ("podSpec",))
    return object_annotations(as_mapping(at(manifest, spec_path[:-1] if beside else spec_path)))


def object_annotations(value: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the annotations of an object, or of a template of one."""
    return as_mapping(at(value, ("metadata", "annotations"))) or as_mapping(value.get("annotations"))
