"""What demand lends whole although no manifest says so: what a chart deploys, by its pods on the primary.

Nobody knows what a chart makes before it is installed. That its pods run in groups follows from the kind of the object
that its template names, from the labels of the pods on the primary, or from the owner's word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.core.capacity.gangs import GangCount, GangWorkload, has_chart, has_gang_manifest, has_unknown_pod_count
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.pod_needs import Gang, ManifestPods, PodSet, requirements_of
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kinds_named
from reconciler.core.workloads.replica_count import requests_devices
from reconciler.model.capacity import GroupUnit, ReplicaShape, WorkloadObservation
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.units import total
from reconciler.model.workload import DeploySpec, WorkloadRef, WorkloadTemplate

GROUP_SIZE = "overspill.dev/group-size"
"""The annotation that says how many pods one replica is of, which go together."""

_CHARTS = 16_384
"""Charts of which it is kept what they deploy; beyond that all is forgotten and begins anew."""

_PodCount = tuple[ReplicaShape, int]
_UNKNOWN_SIZE = f"nobody says of how many pods one replica is (annotate its template: {GROUP_SIZE})"
_NO_PODS_SEEN = "no pod of it is seen on its primary"


@dataclass(frozen=True, kw_only=True)
class ChartGang(GangWorkload):
    """What goes whole by what is known of one replica."""

    unit: GroupUnit

    def _count(self, replicas: int) -> GangCount:
        copies, size = replicas if self.counts else 1, sum(number for _, number in self.unit.pods)
        parts = tuple(PodSet(shape=shape, replicas=number * copies) for shape, number in self.unit.pods)
        parts = tuple(part for part in parts if part.replicas)
        requirements = requirements_of(ManifestPods(parts=parts, strange=()), DeploySpec())
        if not parts:
            return GangCount(
                needs=replace(requirements, unknown=self.unit.unknown), gangs=(), pods=0, groups=0, enough=0
            )
        groups = max(1, self.unit.groups)
        gang = Gang(
            name=self.unit.name,
            called="group",
            groups=copies * groups,
            size=size // groups,
            least=size // groups,
            requests=total(shape.requests.times(number // groups) for shape, number in self.unit.pods),
        )
        return GangCount(
            needs=requirements,
            gangs=(gang,),
            pods=size * copies,
            groups=self.unit.groups * copies,
            enough=(self.unit.enough or size) * copies,
        )


def is_declared_gang(
    spec: DeploySpec, ref: WorkloadRef | None, group_size: int | None, kinds: Kinds = NO_KINDS
) -> bool:
    """Tell whether files alone say that a template goes whole: by a manifest, by its owner's word, or by a kind.

    The kind is that of the object on the primary which a chart makes. One that several groups have, as Job, only counts
    where none of them has pods for themselves.
    """
    return has_gang_manifest(spec, kinds) or _is_declared(spec, ref, group_size, kinds)


def group_unit(template: WorkloadTemplate, kinds: Kinds, seen: WorkloadObservation) -> GroupUnit | None:
    """Say what one replica is by what the primary shows of it; None where each pod is for itself.

    Whoever asks knows that no manifest of the template says so.
    """
    spec, stated_size = template.spec, template.group_size
    shown = seen.group is not None and has_chart(spec)
    if template.request or not (shown or _is_declared(spec, template.ref, stated_size, kinds)):
        return None
    name = f"{seen.ref.kind or 'object'} {seen.ref.name}"
    seen_size = seen.shape.group_size if seen.shape is not None else 1
    pods, number = _pods_of_group(seen), seen.group.number if seen.group is not None else 0
    own = max(seen.group.size if seen.group is not None else 0, sum(alike for _, alike in pods))
    if not own:
        return GroupUnit(name=name, unknown=_NO_PODS_SEEN)
    # 1. There is one copy of it all, which nothing makes more of.
    if not template.uses_replicas:
        copies = max(1, number)
        each = _pods_of_replica(pods, max(1, -(-stated_size // copies)) if stated_size else own)
        enough = 0 if stated_size or seen.group is None else seen.group.least * copies
        return GroupUnit(
            name=name, pods=tuple((shape, alike * copies) for shape, alike in each), groups=number, enough=enough
        )
    # 2. Its owner says how many pods one replica is, or an observation does.
    if stated_size or seen_size > 1:
        size = stated_size or seen_size
        return GroupUnit(name=name, pods=_pods_of_replica(pods, size), groups=max(1, size // own) if number else 0)
    # 3. Its pods say which group they are of, and a replica is one.
    if number:
        return GroupUnit(name=name, pods=_pods_of_replica(pods, own), groups=1)
    return GroupUnit(name=name, unknown=_UNKNOWN_SIZE)


class _ChartGangCache:
    """What each chart was last known to deploy, with what was worked out of it. Losing it costs time alone."""

    def __init__(self) -> None:
        self._last: dict[WorkloadId, ChartGang] = {}

    def of(self, template: WorkloadTemplate, unit: GroupUnit) -> ChartGang:
        last = self._last.get(template.workload)
        if last is not None and last.counts == template.uses_replicas and last.unit == unit:
            return last
        if len(self._last) >= _CHARTS:
            self._last.clear()
        made = self._last[template.workload] = ChartGang(counts=template.uses_replicas, unit=unit)
        return made


_CACHE = _ChartGangCache()


def chart_gang_of(template: WorkloadTemplate, unit: GroupUnit) -> ChartGang:
    """Return what a burst of a template takes of which one replica is this; the same value for as long as it is."""
    return _CACHE.of(template, unit)


def chart_gang(
    template: WorkloadTemplate, kinds: Kinds, demand: Demand | None, placement: Placement | None = None
) -> ChartGang | None:
    """Return what a burst of a chart takes if it goes whole: by its demand, else by a placement that stands.

    Whoever asks knows that no manifest of the template says so.
    """
    unit = demand.unit if demand is not None else None
    stated = not template.request and _is_declared(template.spec, template.ref, template.group_size, kinds)
    if unit is None and not stated:
        return None
    if placement is not None and (unit is None or not unit.pods):
        alike = replace(placement.shape, group_size=1), placement.shape.group_size
        unit = GroupUnit(name=str(template.workload), pods=(alike,))
    return chart_gang_of(template, unit or GroupUnit(name=str(template.workload), unknown=_NO_PODS_SEEN))


def _is_declared(spec: DeploySpec, ref: WorkloadRef | None, group_size: int | None, kinds: Kinds) -> bool:
    if group_size is not None or has_unknown_pod_count(spec, kinds):
        return True
    if ref is None or not ref.kind or not has_chart(spec):
        return False
    matching_kinds = [kind for kind in kinds_named(ref.kind, kinds) if ref.group in ("", kind.group)]
    return bool(matching_kinds) and all(kind.together is not None for kind in matching_kinds)


def _pods_of_group(seen: WorkloadObservation) -> tuple[_PodCount, ...]:
    """List the pods of one group; where nothing shows groups, those of the whole object, as if all were alike."""
    if seen.group is not None:
        return seen.group.pods
    if seen.shape is None:
        return ()
    return ((replace(seen.shape, group_size=1), seen.wanted * seen.shape.group_size),)


def _pods_of_replica(pods: tuple[_PodCount, ...], size: int) -> tuple[_PodCount, ...]:
    """Take so many of some pods, those that need most first; what is more than there are needs as much as these."""
    parts: list[_PodCount] = []
    for shape, number in sorted(pods, key=lambda alike: _weight(alike[0]), reverse=True):
        parts.append((shape, min(number, size)))
        size -= parts[-1][1]
    (shape, number), *rest = parts
    return ((shape, number + size), *(alike for alike in rest if alike[1]))


def _weight(shape: ReplicaShape) -> tuple[bool, int, int]:
    return requests_devices(shape), gpus_of_pod(shape), sum(shape.requests.amounts.values())
