"""Gang workloads: templates with an object whose pods only run in groups, so that a burst goes whole or not at all.

Manifests say what a gang is; the gang of a chart is known by its pods alone (`chart_gangs`).

A replica of such a template is what its expressions mean by ``replicas``: a group of a LeaderWorkerSet, a worker of a
RayCluster. A template whose number of pods does not follow from ``replicas`` is placed as one copy, never as more. The
primary reports pods; here they become replicas, by the groups that they belong to or by their number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.capacity.pod_needs import Gang, PodRequirements, PodSet, pods_of_spec, requirements_of
from reconciler.core.expressions import dialect, sandbox
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.expressions.render import FAILURES
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.replica_count import requests_devices
from reconciler.model.capacity import MissingReplicas, ReplicaShape, WorkloadObservation
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json, StepType, WorkloadRef, WorkloadTemplate

_MAX_COUNTS = 1024
"""Numbers of replicas of one template whose pods are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangCount:
    """What so many replicas take, how they are grouped, and how many `pods` in how many `groups` are looked at.

    `enough` of these pods are what they can start with.
    """

    needs: PodRequirements
    gangs: tuple[Gang, ...]
    pods: int
    groups: int
    enough: int


@dataclass(frozen=True, kw_only=True)  # no slots, for what is worked out once
class GangWorkload(ABC):
    """What so many replicas of a template take, all of them beside each other.

    `counts` tells that some expression reads ``replicas``.
    """

    counts: bool
    _known: dict[int, GangCount] = field(default_factory=dict)

    def of(self, replicas: int) -> PodRequirements:
        """Return what so many replicas take; `unknown` says what of it cannot be counted."""
        return self._counted(replicas).needs

    def pods(self, replicas: int) -> int:
        """Count the pods of so many replicas as the primary shows them: of the object that is looked at there.

        Where it is none of the template's own manifests, those count that run in groups.
        """
        return self._counted(replicas).pods

    def groups(self, replicas: int) -> int:
        """Count the groups of those pods."""
        return self._counted(replicas).groups

    def gangs(self, replicas: int) -> tuple[Gang, ...]:
        """Say how the pods of so many replicas are grouped, by object."""
        return self._counted(replicas).gangs

    @property
    def divisible(self) -> bool:
        """Whether there may be more than one replica: more of them are more pods."""
        return self.counts and self.pods(2) > self.pods(1)

    @property
    def unknown(self) -> str:
        """Say why nobody knows what it takes, empty where that is known."""
        gang_count = self._counted(1)
        return "" if gang_count.gangs else gang_count.needs.unknown or "nothing of it makes pods that run in groups"

    @property
    def shape(self) -> ReplicaShape | None:
        """One replica as it is recorded: the pods that take most of a node, as many as have devices where any do.

        Those are what is counted as having come; a replica whose pods need different numbers of GPUs is told as if all
        needed the most. What is there once for all replicas, as a head, is none of it.
        """
        if self.unknown:
            return None
        parts = additional_requirements(self.of(2), self.of(1)).parts if self.divisible else self.of(1).parts
        able = [part for part in parts if requests_devices(part.shape)] or list(parts)
        return replace(able[0].shape, group_size=sum(part.replicas for part in able))

    def replicas(self, pods: int, groups: int = 0) -> int:
        """Return the fewest replicas that make so many pods, and so many groups if more groups are more replicas."""
        if not self.divisible:
            return 1 if pods > 0 or groups > 0 else 0
        told_apart = groups and self.groups(2) > self.groups(1)
        return max(_fewest_replicas(self.pods, pods), _fewest_replicas(self.groups, groups) if told_apart else 0)

    def seen(self, workload: WorkloadObservation) -> WorkloadObservation:
        """Turn pods into replicas in what is seen of the workload on its primary.

        A group that lacks one pod is missing as a whole: of pods that say which they are of, each group counts. The one
        copy of a gang that runs there with its minimum is not missing: another would be the same job twice.
        """
        size = workload.shape.group_size if workload.shape is not None else 1
        if self._runs(workload.running * size):
            return replace(workload, wanted=1, running=1, waiting=(), shape=self.shape)
        steps: list[MissingReplicas] = []
        pods = reached = 0
        groups: set[str] = set()
        for wait in sorted(workload.waiting, key=lambda replicas_missing: replicas_missing.since):
            pods += wait.replicas * size
            groups |= {wait.group} if wait.group else set()
            level = self.replicas(pods, len(groups))
            if level > reached:
                steps.append(replace(wait, replicas=level - reached))
            reached = level
        missing = max(reached, self.replicas(max(0, workload.wanted - workload.running) * size))
        groups_seen = workload.group.number if workload.group is not None else 0
        wanted = max(missing, self.replicas(workload.wanted * size, groups_seen))
        return replace(
            workload,
            wanted=wanted,
            running=wanted - missing,
            waiting=tuple(steps),
            shape=self.shape,
        )

    def _runs(self, pods: int) -> bool:
        """Tell whether so many pods are enough for the one copy that there is, and not all of it."""
        gang_count = self._counted(1)
        return 0 < gang_count.enough < gang_count.pods and gang_count.enough <= pods and not self.divisible

    def _counted(self, replicas: int) -> GangCount:
        gang_count = self._known.get(replicas)
        if gang_count is None:
            if len(self._known) >= _MAX_COUNTS:
                self._known.clear()
            gang_count = self._known[replicas] = self._count(replicas)
        return gang_count

    @abstractmethod
    def _count(self, replicas: int) -> GangCount: ...


def _fewest_replicas(made: Callable[[int], int], wanted: int) -> int:
    """Return the fewest replicas of which so much is made, or of which most is: an expression may bound them."""
    if wanted <= 0:
        return 0
    low, high, most = 0, wanted, min(wanted, made(wanted))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if made(middle) >= most else (middle, high)
    return high


def additional_requirements(needed: PodRequirements, present: PodRequirements) -> PodRequirements:
    """Return what is needed beyond what is there already, pods that are alike counted against each other.

    All of it is, whatever the minimum of a gang: what is there runs without it.
    """
    had = Counter[Hashable]()
    for part in present.parts:
        had[part.shape.recorded.likeness] += part.replicas
    parts: list[PodSet] = []
    for part in needed.parts:
        replicas_had = min(part.replicas, had[part.shape.recorded.likeness])
        had[part.shape.recorded.likeness] -= replicas_had
        parts += (
            [replace(part, replicas=part.replicas - replicas_had, least=None)] if part.replicas > replicas_had else []
        )
    if not parts:
        return replace(
            needed, main=PodSet(shape=needed.main.shape, replicas=0), others=(), domains=(), loose=(), marked={}
        )
    units = tuple(
        replace(topology_domains, units=topology_domains.units[len(had_.units) :])
        for topology_domains, had_ in zip(needed.domains, present.domains, strict=False)
    )
    marked = {mark: max(0, number - present.marked.get(mark, 0)) for mark, number in needed.marked.items()}
    return replace(needed, main=parts[0], others=tuple(parts[1:]), domains=units, marked=marked)


@dataclass(frozen=True, kw_only=True)
class ManifestGang(GangWorkload):
    """What goes whole by its own manifests. `ref` is the object on the primary whose pods are seen."""

    spec: DeploySpec
    ref: WorkloadRef | None = None
    kinds: Kinds = field(default_factory=lambda: NO_KINDS)

    def _count(self, replicas: int) -> GangCount:
        spec = with_replicas(self.spec, replicas)
        pods = pods_of_spec(spec, self.kinds)
        own = [pods_of_spec(manifest, self.kinds) for manifest in _parts_of_object(spec, self.ref)]
        number = sum(part.replicas for pods in own for part in pods.parts)
        gangs = [gang for pods in own for gang in pods.gangs] if number else pods.gangs
        return GangCount(
            needs=requirements_of(pods, self.spec),
            gangs=pods.gangs,
            pods=number or sum(gang.groups * gang.size for gang in gangs),
            groups=sum(gang.groups for gang in gangs),
            enough=sum(part.start for pods in own for part in pods.parts),
        )


_FleetGangs = tuple[Mapping[WorkloadId, WorkloadTemplate], Mapping[WorkloadId, ManifestGang | None]]
"""The templates of a fleet, and what `wholes` returns for it."""


class _GangCache:
    """What `wholes` returns, for the fleets that were asked for last. Losing it costs time and changes nothing.

    A pass asks for two: the one in the repository, and the one with the requests of callers in it. What follows from a
    spec that a fleet shares with one of these is the same object, with all that it has worked out.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[Desired, Mapping[WorkloadId, ManifestGang | None]], ...] = ()

    def of(self, desired: Desired) -> Mapping[WorkloadId, ManifestGang | None]:
        for fleet, gangs in self._last:
            if fleet.templates is desired.templates and fleet.kinds is desired.kinds:
                return gangs
        alike = [(fleet.templates, gangs) for fleet, gangs in self._last if fleet.kinds == desired.kinds]
        made = {
            workload: _manifest_gang(template, desired.kinds, alike)
            for workload, template in desired.templates.items()
            if not template.request
        }
        gangs = {
            workload: goes_whole
            for workload, goes_whole in made.items()
            if goes_whole is not None or _may_be_chart_gang(desired.templates[workload], desired.kinds)
        }
        self._last = (desired, gangs), *self._last[:1]
        return gangs


_CACHE = _GangCache()


def gang_workloads(desired: Desired) -> Mapping[WorkloadId, ManifestGang | None]:
    """Return the workloads that go whole, or None where its pods or its owner may say so and no manifest does.

    What asks of all workloads in each pass asks here.
    """
    return _CACHE.of(desired)


def _manifest_gang(template: WorkloadTemplate, kinds: Kinds, alike: Iterable[_FleetGangs]) -> ManifestGang | None:
    """Return what a burst of a template takes if it goes whole by its manifests, as a fleet before may have it."""
    for templates, gangs in alike:
        last = templates.get(template.workload)
        if last is not None and last.spec is template.spec and last.ref == template.ref:
            return gangs.get(template.workload)
    if not has_gang_manifest(template.spec, kinds):
        return None
    return ManifestGang(spec=template.spec, counts=template.uses_replicas, ref=template.ref, kinds=kinds)


def _may_be_chart_gang(template: WorkloadTemplate, kinds: Kinds) -> bool:
    return template.group_size is not None or has_chart(template.spec) or has_unknown_pod_count(template.spec, kinds)


def has_chart(spec: DeploySpec) -> bool:
    """Tell whether something is deployed of which nobody knows the pods before they are there."""
    return any(step.type is StepType.HELM for step in spec.steps)


def has_unknown_pod_count(spec: DeploySpec, kinds: Kinds = NO_KINDS) -> bool:
    """Tell whether an object that a step names makes pods that only run together, and nobody knows how many."""
    return any(
        at(manifest, unknown_path) is not None
        for manifest in _applied_manifests(spec)
        if (kind := kind_of(manifest, kinds)) is not None
        for unknown_path in kind.unknown
    )


def has_gang_manifest(spec: DeploySpec, kinds: Kinds = NO_KINDS) -> bool:
    """Tell whether an object that a step names is of a kind whose pods only run in groups."""
    deployed_kinds = (kind_of(manifest, kinds) for manifest in _applied_manifests(spec))
    return any(kind is not None and kind.together is not None for kind in deployed_kinds)


def with_replicas(spec: DeploySpec, replicas: int) -> DeploySpec:
    """Fill in the expressions that read ``replicas`` and nothing else; all others stay for when more is known."""
    values = sandbox.spec_variables({"replicas": replicas})
    manifests = tuple(
        replace(manifest, manifest=_with_replicas(manifest.manifest, values)) for manifest in spec.manifests
    )
    return replace(spec, manifests=manifests)


def _with_replicas(value: Json, values: dict[str, Json]) -> Json:
    if isinstance(value, Mapping):
        return {key: _with_replicas(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_replicas(item, values) for item in value]
    if not isinstance(value, str) or not has_expression(value):
        return value
    reading = dialect.read_expression(value)
    if reading.faults or reading.names != {"replicas"}:
        return value
    try:
        return sandbox.evaluate(value, values)
    except FAILURES:
        return value


def _parts_of_object(spec: DeploySpec, ref: WorkloadRef | None) -> Iterator[DeploySpec]:
    """Yield the parts of a spec that make an object of this kind and name."""
    steps = {step.name: step for step in spec.steps if step.type is StepType.MANIFEST}
    for manifest in spec.manifests if ref is not None else ():
        same = ref is not None and at(manifest.manifest, ("metadata", "name")) == ref.name
        group = group_kind(manifest.manifest).partition("/")[0]
        kind = ref is not None and ref.kind in {"", manifest.manifest.get("kind")} and ref.group in {"", group}
        if same and kind and manifest.name in steps:
            yield replace(spec, manifests=(manifest,), steps=(steps[manifest.name],))


def _applied_manifests(spec: DeploySpec) -> list[Mapping[str, Json]]:
    """List the manifests that a step names."""
    named = {step.name for step in spec.steps if step.type is StepType.MANIFEST}
    return [manifest.manifest for manifest in spec.manifests if manifest.name in named]
