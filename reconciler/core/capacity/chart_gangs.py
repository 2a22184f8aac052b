"""Gangs of Helm charts, known by their pods on the primary instead of by a manifest.

The objects of a chart are unknown before it is installed. Its pods are a gang by the kind of the object that its
template refers to, by the group labels of its pods on the primary, or by an annotation of the template.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.core.capacity.gangs import (
    GangCount,
    GangWorkload,
    gang_kinds,
    has_chart,
    has_gang_manifest,
    has_unknown_pod_count,
)
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.pod_requirements import Gang, ManifestPods, PodSet, requirements_of
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kinds_named
from reconciler.core.workloads.replica_count import requests_devices
from reconciler.model.capacity import GroupUnit, ReplicaShape, WorkloadObservation
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.units import total
from reconciler.model.workload import DeploySpec, WorkloadRef, WorkloadTemplate

GROUP_SIZE = "overspill.dev/group-size"
"""The annotation with the number of pods of one replica, which are scheduled as a gang."""

_CHARTS = 16_384
"""Charts in the cache; beyond that the cache is emptied."""

_PodCount = tuple[ReplicaShape, int]
_UNKNOWN_SIZE = f"the number of pods of one replica is unknown (annotate its template: {GROUP_SIZE})"
_NO_PODS_SEEN = "no pod of it is seen on its primary"


@dataclass(frozen=True, kw_only=True)
class ChartGang(GangWorkload):
    """A gang workload known by the pods of one replica."""

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
            pods=tuple((shape, number // groups) for shape, number in self.unit.pods),
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
    """Return whether files alone declare a template to be a gang: a manifest, an annotation or a kind.

    The kind is that of the object on the primary that a chart makes. A kind that several API groups have, as Job, only
    counts where all of them are gangs.
    """
    return has_gang_manifest(spec, kinds) or _is_declared(spec, ref, group_size, kinds)


def undivided(template: WorkloadTemplate, kinds: Kinds) -> str:
    """Say why the groups of a template cannot be divided over clusters; empty where they can, and where it has none."""
    spec, ref = template.spec, template.ref
    if not is_declared_gang(spec, ref, template.group_size, kinds):
        return ""
    if template.runs_once:
        return "it runs once"
    made = [*gang_kinds(spec, kinds)]
    if ref is not None and ref.kind and has_chart(spec):
        made += [kind for kind in kinds_named(ref.kind, kinds) if ref.group in ("", kind.group)]
    dependent = next((kind for kind in made if not kind.divides), None)
    if dependent is not None:
        return f"the groups of a {dependent.kind} depend on one another"
    return "" if made else "no kind says that its groups serve by themselves (name it in overspill.dev/workload)"


def group_unit(template: WorkloadTemplate, kinds: Kinds, seen: WorkloadObservation) -> GroupUnit | None:
    """Return one replica of a chart gang as its primary shows it; None where pods are scheduled one by one.

    Only for templates whose manifests declare no gang.
    """
    spec, stated_size = template.spec, template.group_size
    shown = seen.group is not None and has_chart(spec)
    if template.request or not (shown or _is_declared(spec, template.ref, stated_size, kinds)):
        return None
    name = f"{seen.ref.kind or 'object'} {seen.ref.name}"
    seen_size = seen.shape.group_size if seen.shape is not None else 1
    pods, number = _pods_of_group(seen), seen.group.number if seen.group is not None else 0
    group_pods = max(
        seen.group.size if seen.group is not None else 0, sum(number_of_pods for _, number_of_pods in pods)
    )
    if not group_pods:
        return GroupUnit(name=name, unknown=_NO_PODS_SEEN)
    # 1. There is one copy of it all, which nothing makes more of.
    if not template.uses_replicas:
        copies = max(1, number)
        each = _pods_of_replica(pods, max(1, -(-stated_size // copies)) if stated_size else group_pods)
        enough = 0 if stated_size or seen.group is None else seen.group.least * copies
        return GroupUnit(
            name=name,
            pods=tuple((shape, number_of_pods * copies) for shape, number_of_pods in each),
            groups=number,
            enough=enough,
        )
    # 2. Its owner says how many pods one replica is, or an observation does.
    if stated_size or seen_size > 1:
        size = stated_size or seen_size
        return GroupUnit(
            name=name, pods=_pods_of_replica(pods, size), groups=max(1, size // group_pods) if number else 0
        )
    # 3. Its pods say which group they are of, and a replica is one.
    if number:
        return GroupUnit(name=name, pods=_pods_of_replica(pods, group_pods), groups=1)
    return GroupUnit(name=name, unknown=_UNKNOWN_SIZE)


class _ChartGangCache:
    """The last gang of each chart, with its cached counts. Losing it costs time only."""

    def __init__(self) -> None:
        self._last: dict[WorkloadId, ChartGang] = {}

    def of(self, template: WorkloadTemplate, unit: GroupUnit) -> ChartGang:
        last = self._last.get(template.workload)
        if last is not None and last.counts == template.uses_replicas and last.unit == unit:
            return last
        if len(self._last) >= _CHARTS:
            self._last.clear()
        gang = self._last[template.workload] = ChartGang(counts=template.uses_replicas, unit=unit)
        return gang


_CACHE = _ChartGangCache()


def chart_gang_of(template: WorkloadTemplate, unit: GroupUnit) -> ChartGang:
    """Return the gang of a template with this unit; the same value for as long as the unit is equal."""
    return _CACHE.of(template, unit)


def chart_gang(
    template: WorkloadTemplate, kinds: Kinds, demand: Demand | None, placement: Placement | None = None
) -> ChartGang | None:
    """Return the gang of a chart: by its demand, else by one of its placements; None where it is no gang.

    Only for templates whose manifests declare no gang.
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
    """List the pods of one group; without group labels, all pods of the object, each of the same shape."""
    if seen.group is not None:
        return seen.group.pods
    if seen.shape is None:
        return ()
    return ((replace(seen.shape, group_size=1), seen.wanted * seen.shape.group_size),)


def _pods_of_replica(pods: tuple[_PodCount, ...], size: int) -> tuple[_PodCount, ...]:
    """Take `size` pods, those with the largest requests first; missing pods are counted as the largest."""
    parts: list[_PodCount] = []
    for shape, number in sorted(pods, key=lambda alike: _weight(alike[0]), reverse=True):
        parts.append((shape, min(number, size)))
        size -= parts[-1][1]
    (shape, number), *rest = parts
    return ((shape, number + size), *(alike for alike in rest if alike[1]))


def _weight(shape: ReplicaShape) -> tuple[bool, int, int]:
    return requests_devices(shape), gpus_of_pod(shape), sum(shape.requests.amounts.values())
