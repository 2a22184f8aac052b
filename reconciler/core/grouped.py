"""What goes whole by its own manifests, and which templates these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core import dialect, sandbox
from reconciler.core.dialect import has_expression
from reconciler.core.fieldpath import at
from reconciler.core.kinds import group_kind
from reconciler.core.needs import needs_of, pods_in
from reconciler.core.templates import FAILURES
from reconciler.core.wholes import Counted, Whole
from reconciler.core.workloadkinds import NONE, Kinds, known
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json, StepType, WorkloadRef, WorkloadTemplate

_TEMPLATES = 16_384
"""Templates of which it is kept whether they go whole; beyond that all is forgotten and begins anew."""


@dataclass(frozen=True, kw_only=True)
class Written(Whole):
    """What goes whole by its own manifests. `ref` is the object on the primary whose pods are seen."""

    spec: DeploySpec
    ref: WorkloadRef | None = None
    kinds: Kinds = field(default_factory=lambda: NONE)

    def _count(self, replicas: int) -> Counted:
        spec = filled(self.spec, replicas)
        pods = pods_in(spec, self.kinds)
        own = [pods_in(one, self.kinds) for one in _objects(spec, self.ref)]
        number = sum(part.replicas for one in own for part in one.parts)
        gangs = [gang for one in own for gang in one.gangs] if number else pods.gangs
        return Counted(
            needs=needs_of(pods, self.spec),
            gangs=pods.gangs,
            pods=number or sum(gang.groups * gang.size for gang in gangs),
            groups=sum(gang.groups for gang in gangs),
            enough=sum(part.start for one in own for part in one.parts),
        )


class _Wholes:
    """Which templates go whole, worked out once for each spec. Losing it costs time and changes nothing."""

    def __init__(self) -> None:
        self._last: dict[WorkloadId, tuple[DeploySpec, Kinds, Written | None]] = {}

    def of(self, template: WorkloadTemplate, kinds: Kinds) -> Written | None:
        last = self._last.get(template.workload)
        same = last is not None and last[0] is template.spec and (last[1] is kinds or last[1] == kinds)
        if last is not None and same and (last[2] is None or last[2].ref == template.ref):
            return last[2]
        if len(self._last) >= _TEMPLATES:
            self._last.clear()
        grouped = in_groups(template.spec, kinds)
        made = (
            Written(spec=template.spec, counts=template.uses_replicas, ref=template.ref, kinds=kinds)
            if grouped
            else None
        )
        self._last[template.workload] = template.spec, kinds, made
        return made


_WHOLES = _Wholes()


def written(template: WorkloadTemplate, kinds: Kinds) -> Written | None:
    """Return what a burst of a template takes if it goes whole by its manifests; None else, and for requests."""
    return None if template.request else _WHOLES.of(template, kinds)


class _Grouped:
    """What `wholes` returns, kept for as long as a fleet's templates and kinds are the same objects.

    A pass asks for two fleets: the one in the repository, and the one with the requests of callers in it.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[Desired, Mapping[WorkloadId, Written | None]], ...] = ()

    def of(self, desired: Desired) -> Mapping[WorkloadId, Written | None]:
        for fleet, found in self._last:
            if fleet.templates is desired.templates and fleet.kinds is desired.kinds:
                return found
        made = {workload: written(template, desired.kinds) for workload, template in desired.templates.items()}
        found = {
            workload: goes_whole
            for workload, goes_whole in made.items()
            if goes_whole is not None or _may_be_seen_to(desired.templates[workload])
        }
        self._last = (desired, found), *self._last[:1]
        return found


_GROUPED = _Grouped()


def wholes(desired: Desired) -> Mapping[WorkloadId, Written | None]:
    """Return the workloads that go whole, or None where its pods or its owner may say so and no manifest does.

    What asks of all workloads in each pass asks here.
    """
    return _GROUPED.of(desired)


def _may_be_seen_to(template: WorkloadTemplate) -> bool:
    return not template.request and (template.group_size is not None or has_chart(template.spec))


def has_chart(spec: DeploySpec) -> bool:
    """Tell whether something is deployed of which nobody knows the pods before they are there."""
    return any(step.type is StepType.HELM for step in spec.steps)


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
