"""What demand lends whole: templates with an object whose pods only run in groups (spread-and-groups.md, section 6).

Here are those whose manifests say so; what a chart deploys is known by its pods alone, as `charted` has it.

A replica of such a template is what its expressions mean by ``replicas``: a group of a LeaderWorkerSet, a worker of a
RayCluster. Where no number of its pods follows from that, it is one copy, and there is never more than one. What is
seen of the primary counts pods; here those become replicas, by the groups that they say they are of or by their number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core import dialect, sandbox
from reconciler.core.dialect import has_expression
from reconciler.core.fieldpath import at
from reconciler.core.headcount import asks_for_devices
from reconciler.core.needs import Gang, Needs, Part, needs_of, pods_in
from reconciler.core.templates import FAILURES
from reconciler.core.workloadkinds import NONE, Kinds, known
from reconciler.model.capacity import ReplicaShape, Waiting, WorkloadObservation
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json, StepType, WorkloadRef, WorkloadTemplate

_MOST = 1024
"""Numbers of replicas of one template whose pods are kept."""
_TEMPLATES = 16_384
"""Templates of which it is kept whether they go whole; beyond that all is forgotten and begins anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What so many replicas take, how they are grouped, and how many `pods` in how many `groups` are looked at.

    `enough` of these pods are what they can start with.
    """

    needs: Needs
    gangs: tuple[Gang, ...]
    pods: int
    groups: int
    enough: int


@dataclass(frozen=True, kw_only=True)  # no slots, for what is worked out once
class Whole(ABC):
    """What so many replicas of a template take, all of them beside each other.

    `counts` tells that some expression reads ``replicas``.
    """

    counts: bool
    _known: dict[int, Counted] = field(default_factory=dict)

    def of(self, replicas: int) -> Needs:
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
        one = self._counted(1)
        return "" if one.gangs else one.needs.unknown or "nothing of it makes pods that run in groups"

    @property
    def shape(self) -> ReplicaShape | None:
        """One replica as it is recorded: the pods that take most of a node, as many as have devices where any do.

        Those are what is counted as having come; a replica whose pods need different numbers of GPUs is told as if all
        needed the most. What is there once for all replicas, as a head, is none of it.
        """
        if self.unknown:
            return None
        parts = more(self.of(2), self.of(1)).parts if self.divisible else self.of(1).parts
        able = [part for part in parts if asks_for_devices(part.shape)] or list(parts)
        return replace(able[0].shape, group_size=sum(part.replicas for part in able))

    def replicas(self, pods: int, groups: int = 0) -> int:
        """Return the fewest replicas that make so many pods, and so many groups if more groups are more replicas."""
        if not self.divisible:
            return 1 if pods > 0 or groups > 0 else 0
        told_apart = groups and self.groups(2) > self.groups(1)
        return max(_fewest(self.pods, pods), _fewest(self.groups, groups) if told_apart else 0)

    def seen(self, workload: WorkloadObservation) -> WorkloadObservation:
        """Turn pods into replicas in what is seen of the workload on its primary.

        A group that lacks one pod is missing as a whole: of pods that say which they are of, each group counts. The one
        copy of a gang that runs there with its minimum is not missing: another would be the same job twice.
        """
        size = workload.shape.group_size if workload.shape is not None else 1
        if self._runs(workload.running * size):
            return replace(workload, wanted=1, running=1, waiting=(), shape=self.shape)
        steps: list[Waiting] = []
        pods = reached = 0
        groups: set[str] = set()
        for wait in sorted(workload.waiting, key=lambda one: one.since):
            pods += wait.replicas * size
            groups |= {wait.group} if wait.group else set()
            level = self.replicas(pods, len(groups))
            if level > reached:
                steps.append(replace(wait, replicas=level - reached))
            reached = level
        missing = max(reached, self.replicas(max(0, workload.wanted - workload.running) * size))
        there = workload.group.number if workload.group is not None else 0
        wanted = max(missing, self.replicas(workload.wanted * size, there))
        return replace(
            workload,
            wanted=wanted,
            running=wanted - missing,
            waiting=tuple(steps),
            shape=self.shape,
        )

    def _runs(self, pods: int) -> bool:
        """Tell whether so many pods are enough for the one copy that there is, and not all of it."""
        one = self._counted(1)
        return 0 < one.enough < one.pods and one.enough <= pods and not self.divisible

    def _counted(self, replicas: int) -> Counted:
        found = self._known.get(replicas)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[replicas] = self._count(replicas)
        return found

    @abstractmethod
    def _count(self, replicas: int) -> Counted: ...


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


def _fewest(made: Callable[[int], int], wanted: int) -> int:
    """Return the fewest replicas of which so much is made, or of which most is: an expression may bound them."""
    if wanted <= 0:
        return 0
    low, high, most = 0, wanted, min(wanted, made(wanted))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if made(middle) >= most else (middle, high)
    return high


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


def more(needed: Needs, there: Needs) -> Needs:
    """Return what is needed beyond what is there already, pods that are alike counted against each other.

    All of it is, whatever the minimum of a gang: what is there runs without it.
    """
    had = {part.shape.likeness: part.replicas for part in there.parts}
    lacking = [
        replace(part, replicas=part.replicas - had.get(part.shape.likeness, 0), least=None) for part in needed.parts
    ]
    parts = [part for part in lacking if part.replicas > 0]
    if not parts:
        return replace(
            needed, main=Part(shape=needed.main.shape, replicas=0), others=(), domains=(), loose=(), marked={}
        )
    units = tuple(
        replace(one, units=one.units[len(had_.units) :])
        for one, had_ in zip(needed.domains, there.domains, strict=False)
    )
    marked = {mark: max(0, number - there.marked.get(mark, 0)) for mark, number in needed.marked.items()}
    return replace(needed, main=parts[0], others=tuple(parts[1:]), domains=units, marked=marked)


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
        if same and ref is not None and ref.kind in {"", one.manifest.get("kind")} and one.name in steps:
            yield replace(spec, manifests=(one,), steps=(steps[one.name],))


def _deployed(spec: DeploySpec) -> list[Mapping[str, Json]]:
    """List the manifests that a step names."""
    named = {step.name for step in spec.steps if step.type is StepType.MANIFEST}
    return [one.manifest for one in spec.manifests if one.name in named]
