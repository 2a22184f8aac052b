"""Shared topology: pods that all have to run in one domain, and the domains of a cluster that hold them.

A domain is all nodes with the same value of a label, as a rack or an NVLink domain; a node without the label is in
none. Unlike an exclusive domain (`exclusive_topology`), it may hold pods of others. Who asks for one:

- Kueue's ``podset-required-topology`` on a pod template, for its pod set (`kueue_pod_sets`), and
  ``podset-slice-required-topology`` for each slice of that
  (https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/). Pod sets of one ``podset-group-name`` go
  together.
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
from reconciler.core.capacity.shortfall import ADD_NODES
from reconciler.core.pods.topology_annotations import GROUP, REQUIRED, SLICE, SLICE_LEVELS, SLICE_SIZE
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.kueue_pod_sets import (
    KueuePodSet,
    kueue_pod_sets,
    object_annotations,
    template_annotations,
)
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import TemplatePods, group_count, pod_template_sites
from reconciler.model.capacity import ReplicaShape
from reconciler.model.workload import Json
from reconciler.text.digits import whole_number
from reconciler.text.wording import count, join_names, sanitize

ShapedPods: TypeAlias = tuple[TemplatePods, ReplicaShape]
"""The pods of one template, and their shape."""

NVLINK_DOMAIN = "nvidia.com/gpu.clique"
"""The label of nodes whose GPUs are connected by NVLink; GPU feature discovery writes it."""

_OBJECT = "kai.scheduler/topology-required-placement"
_SEGMENTS = "kai.scheduler/segment-topology-required-placement"
"""Requires domains by the index of a pod."""
_REQUIRED = frozenset({REQUIRED, SLICE, SLICE_LEVELS, _SEGMENTS})
"""Annotations of pod templates that require domains."""
COMPUTE_DOMAIN = "resource.nvidia.com/ComputeDomain"
"""The kind whose objects have a channel that pods within one NVLink domain claim."""
_MAX_GROUPS = 10_000
"""Groups that are listed; clusters have fewer nodes (Kubernetes supports 5,000), so that more fit nowhere."""

REMEDY = "free or add nodes in one domain there"
UNCOUNTABLE = "which cannot be counted here"
COUNTED = f"ask for one level of domains ({REQUIRED}), or for slices that divide its pods ({SLICE_SIZE})"
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
    groups = min(_MAX_GROUPS, max(1, group_count(manifest, kind) or 1))
    whole = object_annotations(manifest).get(_OBJECT)
    if isinstance(whole, str):
        yield from shared_domains(whole, [(shape, (made.replicas or 0) // groups) for made, shape in pods], groups)
    made_of = [made for made, _ in pods]
    together: dict[tuple[str, Hashable], list[tuple[ReplicaShape, int]]] = {}
    for position, pod_set in enumerate(kueue_pod_sets(manifest, kinds, made_of)):
        if _obstacle(pod_set, made_of, manifest):
            continue
        key, slice_key = (str(pod_set.annotations.get(name) or "") for name in (REQUIRED, SLICE))
        parts = [(pods[index][1], number) for index, number in pod_set.parts]
        if not slice_key:
            together.setdefault((key, pod_set.annotations.get(GROUP) or position), []).extend(parts)
            continue
        size = _slice_size(pod_set, made_of, manifest)
        slices = tuple(shared_domains(slice_key, [(parts[0][0], size)], pod_set.size // size))
        if key:
            yield from shared_domains(key, parts, groups, inner=slices)
        else:
            yield from slices * groups
    for (key, _), parts in together.items():
        if key:
            yield from shared_domains(key, parts, groups)


def mentions_domain(manifest: Mapping[str, Json], kinds: Kinds) -> bool:
    """Return whether an object names any topology that its pods require: a quick look, before they are counted."""
    if group_kind(manifest) == COMPUTE_DOMAIN or _OBJECT in object_annotations(manifest):
        return True
    sites = pod_template_sites(manifest, kinds)
    return any(not _REQUIRED.isdisjoint(template_annotations(place, manifest)) for place in sites)


def topology_obstacles(manifest: Mapping[str, Json], kinds: Kinds, pods: Sequence[TemplatePods]) -> Mapping[int, str]:
    """Say which required topology of an object's pods cannot be counted, by the position of their template.

    Templates without such a topology are left out. `pods` are all pods of the object.
    """
    kind = kind_of(manifest, kinds)
    obstacles = {
        position: obstacle
        for pod_set in kueue_pod_sets(manifest, kinds, pods)
        if (obstacle := _obstacle(pod_set, pods, manifest))
        for position, _ in pod_set.parts
    }
    if kind is not None and not kind.one_by_one:
        for position, made in enumerate(pods):
            if made.replicas != 1 and _SEGMENTS in template_annotations(made.place, manifest):
                obstacles.setdefault(position, f"wants its pods in topology domains ({_SEGMENTS})")
    return obstacles


def _obstacle(pod_set: KueuePodSet, pods: Sequence[TemplatePods], manifest: Mapping[str, Json]) -> str:
    """Say which required topology of a pod set cannot be counted; empty where all of it can, and for a single pod."""
    if pod_set.size == 1:
        return ""
    if SLICE_LEVELS in pod_set.annotations:
        return f"wants its pods in topology domains ({SLICE_LEVELS})"
    if SLICE not in pod_set.annotations:
        return ""
    size = _slice_size(pod_set, pods, manifest)
    if not size or pod_set.size % size or GROUP in pod_set.annotations:
        return f"wants slices of its pods in topology domains ({SLICE})"
    return ""


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


def _slice_size(pod_set: KueuePodSet, pods: Sequence[TemplatePods], manifest: Mapping[str, Json]) -> int:
    """Return the pods of one of Kueue's slices: as annotated, else one job of a JobSet; 0 where that is unknown."""
    stated = pod_set.annotations.get(SLICE_SIZE)
    if stated is not None:
        return (whole_number(stated) or 0) if isinstance(stated, str) else 0
    item = pods[pod_set.parts[0][0]].place.item
    jobs = at(manifest, (*item, "replicas")) if item else 0
    return pod_set.size // jobs if type(jobs) is int and jobs > 0 else 0
