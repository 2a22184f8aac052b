"""What goes whole by its own manifests, and which templates these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core import dialect, sandbox
from reconciler.core.dialect import has_expression
from reconciler.core.fieldpath import at
from reconciler.core.kinds import group_kind
from reconciler.core.needs import needs_of, pods_in
from reconciler.core.templates import FAILURES
from reconciler.core.wholes import GangCount, GangWorkload
from reconciler.core.workloadkinds import NONE, Kinds, known
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json, StepType, WorkloadRef, WorkloadTemplate


@dataclass(frozen=True, kw_only=True)
class ManifestGang(GangWorkload):
    """What goes whole by its own manifests. `ref` is the object on the primary whose pods are seen."""

    spec: DeploySpec
    ref: WorkloadRef | None = None
    kinds: Kinds = field(default_factory=lambda: NONE)

    def _count(self, replicas: int) -> GangCount:
        spec = filled(self.spec, replicas)
        pods = pods_in(spec, self.kinds)
        own = [pods_in(one, self.kinds) for one in _objects(spec, self.ref)]
        number = sum(part.replicas for one in own for part in one.parts)
        gangs = [gang for one in own for gang in one.gangs] if number else pods.gangs
        return GangCount(
            needs=needs_of(pods, self.spec),
            gangs=pods.gangs,
            pods=number or sum(gang.groups * gang.size for gang in gangs),
            groups=sum(gang.groups for gang in gangs),
            enough=sum(part.start for one in own for part in one.parts),
        )


_Known = tuple[Mapping[WorkloadId, WorkloadTemplate], Mapping[WorkloadId, ManifestGang | None]]
"""The templates of a fleet, and what `wholes` returns for it."""


class _Grouped:
    """What `wholes` returns, for the fleets that were asked for last. Losing it costs time and changes nothing.

    A pass asks for two: the one in the repository, and the one with the requests of callers in it. What follows from a
    spec that a fleet shares with one of these is the same object, with all that it has worked out.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[Desired, Mapping[WorkloadId, ManifestGang | None]], ...] = ()

    def of(self, desired: Desired) -> Mapping[WorkloadId, ManifestGang | None]:
        for fleet, found in self._last:
            if fleet.templates is desired.templates and fleet.kinds is desired.kinds:
                return found
        alike = [(fleet.templates, found) for fleet, found in self._last if fleet.kinds == desired.kinds]
        made = {
            workload: _written(template, desired.kinds, alike)
            for workload, template in desired.templates.items()
            if not template.request
        }
        found = {
            workload: goes_whole
            for workload, goes_whole in made.items()
            if goes_whole is not None or _may_be_seen_to(desired.templates[workload], desired.kinds)
        }
        self._last = (desired, found), *self._last[:1]
        return found


_GROUPED = _Grouped()


def wholes(desired: Desired) -> Mapping[WorkloadId, ManifestGang | None]:
    """Return the workloads that go whole, or None where its pods or its owner may say so and no manifest does.

    What asks of all workloads in each pass asks here.
    """
    return _GROUPED.of(desired)


def _written(template: WorkloadTemplate, kinds: Kinds, alike: Iterable[_Known]) -> ManifestGang | None:
    """Return what a burst of a template takes if it goes whole by its manifests, as a fleet before may have it."""
    for templates, found in alike:
        last = templates.get(template.workload)
        if last is not None and last.spec is template.spec and last.ref == template.ref:
            return found.get(template.workload)
    if not in_groups(template.spec, kinds):
        return None
    return ManifestGang(spec=template.spec, counts=template.uses_replicas, ref=template.ref, kinds=kinds)


def _may_be_seen_to(template: WorkloadTemplate, kinds: Kinds) -> bool:
    return template.group_size is not None or has_chart(template.spec) or uncounted(template.spec, kinds)


def has_chart(spec: DeploySpec) -> bool:
    """Tell whether something is deployed of which nobody knows the pods before they are there."""
    return any(step.type is StepType.HELM for step in spec.steps)


def uncounted(spec: DeploySpec, kinds: Kinds = NONE) -> bool:
    """Tell whether an object that a step names makes pods that only run together, and nobody knows how many."""
    return any(
        at(manifest, way) is not None
        for manifest in _deployed(spec)
        if (kind := known(manifest, kinds)) is not None
        for way in kind.unknown
    )


def in_groups(spec: DeploySpec, kinds: Kinds = NONE) -> bool:
    """Tell whether an object that a step names is of a kind whose pods only run in groups."""
    found = (known(manifest, kinds) for manifest in _deployed(spec))
    return any(kind is not None and kind.together is not None for kind in found)


def filled(spec: DeploySpec, replicas: int) -> DeploySpec:
    """Fill in the expressions that read ``replicas`` and nothing else; all others stay for when more is known."""
    values = sandbox.variables({"replicas": replicas})
    manifests = tuple(replace(one, manifest=_filled(one.manifest, values)) for one in spec.manifests)
    return replace(spec, manifests=manifests)


def _filled(value: Json, values: dict[str, Json]) -> Json:
    if isinstance(value, Mapping):
        return {key: _filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if not isinstance(value, str) or not has_expression(value):
        return value
    reading = dialect.read(value)
    if reading.faults or reading.names != {"replicas"}:
        return value
    try:
        return sandbox.run(value, values)
    except FAILURES:
        return value


def _objects(spec: DeploySpec, ref: WorkloadRef | None) -> Iterator[DeploySpec]:
    """Yield the parts of a spec that make an object of this kind and name."""
    steps = {step.name: step for step in spec.steps if step.type is StepType.MANIFEST}
    for one in spec.manifests if ref is not None else ():
        same = ref is not None and at(one.manifest, ("metadata", "name")) == ref.name
        group = group_kind(one.manifest).partition("/")[0]
        kind = ref is not None and ref.kind in {"", one.manifest.get("kind")} and ref.group in {"", group}
        if same and kind and one.name in steps:
            yield replace(spec, manifests=(one,), steps=(steps[one.name],))


def _deployed(spec: DeploySpec) -> list[Mapping[str, Json]]:
    """List the manifests that a step names."""
    named = {step.name for step in spec.steps if step.type is StepType.MANIFEST}
    return [one.manifest for one in spec.manifests if one.name in named]
