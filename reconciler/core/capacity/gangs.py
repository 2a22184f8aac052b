"""Gang workloads: templates with an object whose pods are scheduled all together or not at all.

Manifests declare a gang; the gang of a chart is known by its pods alone (`chart_gangs`).

A replica of such a template is the unit of ``replicas`` in its expressions: a group of a LeaderWorkerSet, a worker of a
RayCluster. A template whose number of pods does not follow from ``replicas`` is placed as one copy, never as more. The
primary reports pods; they are converted into replicas by their groups or by their number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.pod_requirements import Gang, PodRequirements, PodSet, pods_of_spec, requirements_of
from reconciler.core.capacity.shared_topology import (
    COUNTED,
    UNCOUNTABLE,
    DomainShortage,
    SharedDomain,
    additional_domains,
    mentions_domain,
    shared_domains,
)
from reconciler.core.expressions import dialect, sandbox
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.expressions.render import FAILURES
from reconciler.core.expressions.work import SHORT_WORK, EvaluationBudget
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import unknown_field
from reconciler.core.workloads.replica_count import requests_devices
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation, MissingReplicas, ReplicaShape, WorkloadObservation
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json, StepType, WorkloadRef, WorkloadTemplate
from reconciler.text.wording import conjugate, count

_JOINS = "its other pods run in a topology domain that these would have to join, and nobody knows which"
_MAX_COUNTS = 1024
"""Replica counts of one template in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangCount:
    """Requirements and pods of a number of replicas."""

    needs: PodRequirements
    """Requirements of all pods."""
    gangs: tuple[Gang, ...]
    """The pods by object, as groups."""
    pods: int
    """Pods of the object that is observed on the primary."""
    groups: int
    """Groups of these pods."""
    enough: int
    """The pods that start without the others, by the minimums of the object."""
    states_minimum: bool = False
    """Whether the object says that so many are enough, even if these are all that it begins with."""


@dataclass(frozen=True, kw_only=True)  # no slots, for cached properties
class GangWorkload(ABC):
    """A template whose replicas are gangs."""

    by_pod: ClassVar[bool] = False
    """Whether each of its main pods counts as a replica, also where they are recorded."""
    remedy: ClassVar[str] = ""
    """The way out where its requirements are unknown."""
    counts: bool
    """Whether an expression of the template reads ``replicas``."""
    copy: int = 1
    """The replicas that its only copy counts as, where it does not divide."""
    domain: str = ""
    """The node label of which each group has to share one value by its policy; empty for none."""
    namespace: str = ""
    """Where its objects go that name no namespace; empty where that is unknown."""
    _known: dict[int, GangCount] = field(default_factory=dict)
    _within: dict[tuple[str, str], GangWorkload] = field(default_factory=dict)

    def within(self, namespace: str, domain: str = "") -> GangWorkload:
        """Return this gang in a namespace, with each group in one domain of a node label, if one is given.

        The same value for the same arguments.
        """
        gang = self._within.get((namespace, domain))
        if gang is None:
            gang = replace(self, namespace=namespace, domain=domain, _known={}, _within={})
            self._within[namespace, domain] = gang
        return gang

    def on(self, seen: ClusterObservation | None) -> GangWorkload:
        """Return this gang in the terms of a cluster; the same value where no cluster changes its requirements."""
        del seen
        return self

    def of(self, replicas: int) -> PodRequirements:
        """Return the requirements of `replicas` replicas; `unknown` names requirements that cannot be counted."""
        return self._gang_count(replicas).needs

    def more(self, here: int, more: int) -> PodRequirements:
        """Return the requirements of more replicas beside those `here`, which have their room."""
        needed = self.of(here + more)
        return additional_requirements(needed, self.of(here)) if here else needed

    def pods(self, replicas: int) -> int:
        """Count the pods of `replicas` replicas in the object that is observed on the primary.

        Where that is none of the template's own manifests, the pods of its gangs are counted.
        """
        return self._gang_count(replicas).pods

    def groups(self, replicas: int) -> int:
        """Count the groups of those pods."""
        return self._gang_count(replicas).groups

    def gangs(self, replicas: int) -> tuple[Gang, ...]:
        """Return the groups of the pods, by object."""
        return self._gang_count(replicas).gangs

    @property
    def divisible(self) -> bool:
        """Whether more than one replica can be placed: more replicas make more pods."""
        return self.counts and self.pods(2) > self.pods(1)

    @property
    def unknown(self) -> str:
        """Return why the requirements are unknown; empty where they are known."""
        gang_count = self._gang_count(1)
        return "" if gang_count.gangs else gang_count.needs.unknown or "nothing of it makes pods that run in groups"

    @property
    def shape(self) -> ReplicaShape | None:
        """The recorded shape of a replica: its pods with the largest requests, those with devices first.

        These pods are counted as its running replicas. Where pods of a replica request different numbers of GPUs, all
        are recorded with the largest. Pods that exist once for all replicas, as a head, are left out.
        """
        if self.unknown:
            return None
        one, two = replace(self.of(1), shared=()), replace(self.of(2), shared=())
        parts = additional_requirements(two, one).parts if self.divisible else one.parts
        counted = [part for part in parts if requests_devices(part.shape)] or list(parts)
        pods = sum(part.replicas for part in counted)
        return replace(counted[0].shape, group_size=pods if self.divisible else max(1, pods // self.copy))

    def replicas(self, pods: int, groups: int = 0) -> int:
        """Return the fewest replicas with at least these pods and, where replicas make groups, these groups."""
        if not self.divisible:
            if self.copy == 1 or not (pods > 0 or groups > 0):
                return int(pods > 0 or groups > 0)
            return min(self.copy, max(groups, -(-pods * self.copy // max(1, self.pods(1)))))
        groups_matter = groups and self.groups(2) > self.groups(1)
        return max(_fewest_replicas(self.pods, pods), _fewest_replicas(self.groups, groups) if groups_matter else 0)

    def seen(self, workload: WorkloadObservation) -> WorkloadObservation:
        """Convert the observed pods of a workload into replicas.

        A group that lacks one pod is missing as a whole: where pods name their group, each such group counts. The only
        copy of a gang is not missing while it runs with its minimum: another copy would be the same job twice.
        """
        size = workload.shape.group_size if workload.shape is not None else 1
        if self._runs(workload.running * size):
            return replace(workload, wanted=self.copy, running=self.copy, waiting=(), shape=self.shape)
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

    def note(self, workload: WorkloadObservation) -> str:
        """Say of observed pods that some wait beside the minimum of the only copy; empty where none does."""
        size = workload.shape.group_size if workload.shape is not None else 1
        waiting = sum(step.replicas for step in workload.waiting) * size
        if not waiting or not self._runs(workload.running * size):
            return ""
        run = f"{count(workload.running * size, 'pod')} of it {conjugate(workload.running * size, 'runs')}"
        least = f"its minimum is {self._gang_count(1).enough}"
        waits = f"{waiting} {conjugate(waiting, 'waits')}"
        return f"{run}, {least}, and {waits} there: a copy elsewhere would be another one, and serves none of its work"

    def _runs(self, pods: int) -> bool:
        """Return whether these pods are the minimum of the only copy, which may be all that it begins with."""
        gang_count = self._gang_count(1)
        is_minimum = gang_count.states_minimum or gang_count.enough < gang_count.pods
        return is_minimum and 0 < gang_count.enough <= pods and not self.divisible

    def _gang_count(self, replicas: int) -> GangCount:
        gang_count = self._known.get(replicas)
        if gang_count is None:
            if len(self._known) >= _MAX_COUNTS:
                self._known.clear()
            gang_count = self._count(replicas)
            if self.domain:
                gang_count = replace(gang_count, needs=_in_one_domain(gang_count, self.domain))
            self._known[replicas] = gang_count
        return gang_count

    @abstractmethod
    def _count(self, replicas: int) -> GangCount: ...


def _in_one_domain(counted: GangCount, key: str) -> PodRequirements:
    """Add to the requirements of a gang that each of its groups shares one domain, around those that it asks for."""
    needs = counted.needs
    # 1. Each of its groups has a domain of that label for itself.
    if needs.domains and all(domains.key == key and domains.called == "group" for domains in needs.domains):
        return needs
    # 2. Its own domains are within those of its groups.
    own = Counter(unit.likeness for unit in needs.shared)
    alike = {unit.likeness: unit for unit in needs.shared}
    units: list[SharedDomain] = []
    for gang in counted.gangs:
        inner = [unit for likeness, unit in alike.items() for _ in range(own[likeness] // gang.groups)]
        if own and (len(counted.gangs) > 1 or len(inner) * gang.groups != own.total()):
            return _with_obstacle(needs, f"shares topology domains between groups, each of which wants one of {key}")
        units += shared_domains(key, gang.pods, gang.groups, inner=tuple(inner))
    return replace(needs, shared=tuple(units) or needs.shared)


def shares_domain(template: WorkloadTemplate, kinds: Kinds) -> bool:
    """Return whether more replicas of a template need a larger topology domain, as a StatefulSet in one rack does.

    Never of a gang, whose groups have domains of their own. A copy shares one where its pods do.
    """
    manifests = _applied_manifests(template.spec)
    if has_gang_manifest(template.spec, kinds) or not any(mentions_domain(manifest, kinds) for manifest in manifests):
        return False
    two = _topology(template.spec, 2, kinds)
    return two != (_topology(template.spec, 1, kinds) if template.copy is None else ((), ""))


def _topology(spec: DeploySpec, replicas: int, kinds: Kinds) -> tuple[tuple[Hashable, ...], str]:
    """Return the domains that a number of replicas share, and the topology that cannot be counted."""
    pods = pods_of_spec(with_replicas(spec, replicas), kinds)
    return tuple(unit.likeness for unit in pods.shared), pods.uncounted_topology


def whole_domains(
    spec: DeploySpec, shape: ReplicaShape, replicas: int, kinds: Kinds, domain: str = ""
) -> tuple[SharedDomain, ...] | DomainShortage:
    """Return the topology domains of replicas that are no gang and yet go together, as the pods of a Job.

    The manifests ask for them, or a policy for one `domain`, a node label, around those. A shortage says which of them
    cannot be counted.
    """
    pods = pods_of_spec(with_replicas(spec, replicas), kinds)
    if pods.uncounted_topology:
        return DomainShortage(message=f"{pods.uncounted_topology}, {UNCOUNTABLE}", remedy=COUNTED)
    own = tuple(unit.with_shapes(lambda _: shape) for unit in pods.shared)
    return tuple(shared_domains(domain, [(shape, replicas)], 1, inner=own)) if domain else own


def _with_obstacle(needs: PodRequirements, obstacle: str) -> PodRequirements:
    """Return requirements that fit nowhere."""
    return replace(needs, main=replace(needs.main, shape=replace(needs.main.shape, obstacle=obstacle)))


def _fewest_replicas(items: Callable[[int], int], wanted: int) -> int:
    """Return the fewest replicas that make `wanted` items, or the most possible: expressions may bound them."""
    if wanted <= 0:
        return 0
    low, high, most = 0, wanted, min(wanted, items(wanted))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if items(middle) >= most else (middle, high)
    return high


def additional_requirements(needed: PodRequirements, present: PodRequirements) -> PodRequirements:
    """Return the requirements beyond those of running pods, matched by shape.

    Minimums of gangs do not apply: the running pods do without the others.
    """
    unmatched = Counter[Hashable]()
    for part in present.parts:
        unmatched[part.shape.recorded.likeness] += part.replicas
    parts: list[PodSet] = []
    for part in needed.parts:
        unmatched_replicas = min(part.replicas, unmatched[part.shape.recorded.likeness])
        unmatched[part.shape.recorded.likeness] -= unmatched_replicas
        parts += (
            [replace(part, replicas=part.replicas - unmatched_replicas, least=None)]
            if part.replicas > unmatched_replicas
            else []
        )
    if not parts:
        return replace(
            needed,
            main=PodSet(shape=needed.main.shape, replicas=0),
            others=(),
            domains=(),
            loose=(),
            marked={},
            shared=(),
        )
    units = tuple(
        replace(domains, units=domains.units[len(running_domains.units) :])
        for domains, running_domains in zip(needed.domains, present.domains, strict=False)
    )
    marked = {mark: max(0, number - present.marked.get(mark, 0)) for mark, number in needed.marked.items()}
    shared = additional_domains(needed.shared, present.shared)
    more = replace(needed, main=parts[0], others=tuple(parts[1:]), domains=units, marked=marked, shared=shared or ())
    return more if shared is not None else _with_obstacle(more, _JOINS)


@dataclass(frozen=True, kw_only=True)
class ManifestGang(GangWorkload):
    """A gang declared by its manifests."""

    spec: DeploySpec
    ref: WorkloadRef | None = None
    """The object on the primary whose pods are observed."""
    kinds: Kinds = field(default_factory=lambda: NO_KINDS)

    def _count(self, replicas: int) -> GangCount:
        spec = with_replicas(self.spec, replicas)
        pods = pods_of_spec(spec, self.kinds, self.namespace)
        own = [pods_of_spec(manifest, self.kinds, self.namespace) for manifest in _parts_of_object(spec, self.ref)]
        number = sum(part.replicas for pods in own for part in pods.parts)
        gangs = [gang for pods in own for gang in pods.gangs] if number else pods.gangs
        return GangCount(
            needs=requirements_of(pods, self.spec),
            gangs=pods.gangs,
            pods=number or sum(gang.groups * gang.size for gang in gangs),
            groups=sum(gang.groups for gang in gangs),
            enough=sum(part.start for pods in own for part in pods.parts),
            states_minimum=any(part.least is not None for pods in own for part in pods.parts),
        )


_FleetGangs = tuple[Mapping[WorkloadId, WorkloadTemplate], Mapping[WorkloadId, ManifestGang | None]]
"""The templates of a fleet, and the result of `gang_workloads` for it."""


class _GangCache:
    """Results of `gang_workloads` for the two latest fleets. Losing them costs time only.

    A pass asks for two fleets: the one in the repository, and the same with the requests of API callers. Gangs of an
    unchanged spec are the same objects, with their cached counts.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[Desired, Mapping[WorkloadId, ManifestGang | None]], ...] = ()

    def of(self, desired: Desired) -> Mapping[WorkloadId, ManifestGang | None]:
        for fleet, gangs in self._last:
            if fleet.templates is desired.templates and fleet.kinds is desired.kinds:
                return gangs
        same_kinds = [(fleet.templates, gangs) for fleet, gangs in self._last if fleet.kinds == desired.kinds]
        declared = {
            # A gang that cannot be counted fails where its own workload is decided on.
            workload: attempt(Seam.GANG, workload, partial(_manifest_gang, template, desired.kinds, same_kinds))
            for workload, template in desired.templates.items()
            if not template.request
        }
        gangs = {
            workload: None if isinstance(gang, Bug) else gang
            for workload, gang in declared.items()
            if gang is not None or _may_be_chart_gang(desired.templates[workload], desired.kinds)
        }
        self._last = (desired, gangs), *self._last[:1]
        return gangs


_CACHE = _GangCache()


def gang_workloads(desired: Desired) -> Mapping[WorkloadId, ManifestGang | None]:
    """Return the workloads that are gangs; None as value where only pods or an annotation may tell.

    For questions about all workloads of a pass.
    """
    return _CACHE.of(desired)


def _manifest_gang(template: WorkloadTemplate, kinds: Kinds, earlier: Iterable[_FleetGangs]) -> ManifestGang | None:
    """Return the gang that the manifests of a template declare, reused from an earlier fleet if unchanged."""
    for templates, gangs in earlier:
        last = templates.get(template.workload)
        if last is not None and (last.spec is template.spec and (last.ref, last.copy) == (template.ref, template.copy)):
            return gangs.get(template.workload)
    if not has_gang_manifest(template.spec, kinds):
        return None
    counts, copy = template.uses_replicas, template.copy or 1
    return ManifestGang(spec=template.spec, counts=counts, copy=copy, ref=template.ref, kinds=kinds)


def _may_be_chart_gang(template: WorkloadTemplate, kinds: Kinds) -> bool:
    return template.group_size is not None or has_chart(template.spec) or has_unknown_pod_count(template.spec, kinds)


def has_chart(spec: DeploySpec) -> bool:
    """Return whether a spec deploys a chart, whose pods are unknown before it is installed."""
    return any(step.type is StepType.HELM for step in spec.steps)


def has_unknown_pod_count(spec: DeploySpec, kinds: Kinds = NO_KINDS) -> bool:
    """Return whether an applied object makes a gang of an unknown number of pods."""
    return any(
        unknown_field(manifest, kind) is not None
        for manifest in _applied_manifests(spec)
        if (kind := kind_of(manifest, kinds)) is not None
    )


def has_gang_manifest(spec: DeploySpec, kinds: Kinds = NO_KINDS) -> bool:
    """Return whether an applied object is of a kind whose pods are gangs."""
    return any(True for _ in gang_kinds(spec, kinds))


def gang_kinds(spec: DeploySpec, kinds: Kinds = NO_KINDS) -> Iterator[WorkloadKind]:
    """List the kinds of the applied objects whose pods are gangs."""
    for manifest in _applied_manifests(spec):
        kind = kind_of(manifest, kinds)
        if kind is not None and kind.together is not None:
            yield kind


def with_replicas(spec: DeploySpec, replicas: int) -> DeploySpec:
    """Render the expressions that read ``replicas`` and nothing else; others stay as they are, and so do long ones.

    A number that stays an expression is an unknown one.
    """
    values = sandbox.spec_variables({"replicas": replicas}, EvaluationBudget(SHORT_WORK))
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
    """Yield the parts of a spec that make the object of this kind and name."""
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
