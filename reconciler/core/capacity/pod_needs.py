"""What a request needs of a cluster: the GPUs that it says it asks for, else what the pods of its manifests ask for.

GPUs are called differently in different clusters, and so are their models: what is asked for is put into the words of
the cluster that is looked at. What nobody can know, as the pods of a chart, counts as nothing and is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.capacity import admission_defaults
from reconciler.core.capacity.device_claims import with_manifest_claims
from reconciler.core.capacity.exclusive_topology import TopologyDomains, read_exclusive_topology, template_identities
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.gpu_requests import gpu_pod_shape
from reconciler.core.capacity.pod_anti_affinity import merged_identities
from reconciler.core.workloads import pod_template
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.label_selectors import reject_mixed_rules
from reconciler.core.workloads.paths import at, replicas_at
from reconciler.core.workloads.pod_affinity import pod_on_node
from reconciler.core.workloads.pod_counts import PodRole, pods_to_start
from reconciler.core.workloads.pod_shape import replica_shape
from reconciler.core.workloads.pods import TemplatePods, gang_minimum, group_count, pod_metadata, read_pods
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.request import Request
from reconciler.model.scheduling import PodOnNode
from reconciler.model.units import Resources, total
from reconciler.model.workload import DeploySpec, Json, StepType
from reconciler.text.wording import count, is_gpu, join_names

_NO_REQUESTS = ReplicaShape(requests=Resources())
MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
"""What reading a manifest raises that a person wrote and no API server has looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """So many pods, each of which needs so much of one node; `apart` has each of them on a node of its own.

    `least` of them have to be there before any of their group runs, all where it is None.
    """

    shape: ReplicaShape
    replicas: int
    apart: bool = False
    least: int | None = None

    @property
    def room(self) -> tuple[ReplicaShape, int]:
        """What has to fit, and how often: pods that are apart fit together or not at all."""
        if not self.apart:
            return self.shape, self.replicas
        return replace(self.shape, group_size=self.replicas, apart=True), 1

    @property
    def start(self) -> int:
        """How many of them are enough to start with."""
        return self.replicas if self.least is None else self.least


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequirements:
    """Everything that one placement takes: `main` is what it is counted by, `others` go along.

    `unknown` says what is not counted, empty where all is. Pods that need `domains` of their own are in the parts all
    the same; `loose` are those that may be anywhere beside them, and `marked` counts by label those that keep groups
    elsewhere out of where they are.
    """

    main: PodSet
    others: tuple[PodSet, ...] = ()
    unknown: str = ""
    domains: tuple[TopologyDomains, ...] = ()
    loose: tuple[PodSet, ...] = ()
    marked: Mapping[str, int] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[PodSet, ...]:
        """All of it, in the order in which it finds room best: the pods that take most of a node go first."""
        return tuple(sorted((self.main, *self.others), key=lambda part: -gpus_of_pod(part.shape)))

    @property
    def pods(self) -> int:
        """How many pods it is in all."""
        return sum(part.replicas for part in self.parts)

    @property
    def start(self) -> int:
        """How many pods are enough to start with; all, where nothing of it has a minimum."""
        return sum(part.start for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Pods of one object that only run together: so many groups of a size, each of which asks for `requests`.

    `least` is how many pods of a group have to be there before any of them runs.
    """

    name: str
    called: str
    groups: int
    size: int
    least: int
    requests: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPods:
    """The pods of manifests, and the names of those manifests of which nobody knows what they need.

    `domains` are wanted by some of them, and `loose` are the others; `marked` is as in `Needs`.
    """

    parts: tuple[PodSet, ...]
    strange: tuple[str, ...]
    gangs: tuple[Gang, ...] = ()
    domains: tuple[TopologyDomains, ...] = ()
    loose: tuple[PodSet, ...] = ()
    marked: Mapping[str, int] = field(default_factory=dict)


def request_likeness(request: Request, pods: ManifestPods) -> Hashable:
    """Return what is equal for requests that need the same, whichever cluster is looked at."""
    counted = tuple((part.shape.likeness, part.replicas, part.apart, part.start) for part in pods.parts)
    return (
        request.ask,
        request.terms.dedicated,
        counted,
        (*(domain.likeness for domain in pods.domains), *pods.marked.items()),
    )


def request_requirements(
    request: Request,
    seen: ClusterObservation | None = None,
    pods: ManifestPods | None = None,
    *,
    kinds: Kinds = NO_KINDS,
) -> PodRequirements:
    """Work out what a request needs, in the words of the cluster that is `seen`; `pods` are its own where known.

    Where they are not, `kinds` are the kinds of workloads that the fleet repository declares.
    """
    pods = pods or pods_of_request(request, kinds)
    if request.ask is not None:
        asked, nodes = gpu_pod_shape(request.ask, seen, dedicated=request.terms.dedicated), request.ask.nodes
        own = next((part.shape.tolerations for part in pods.parts if _has_gpus(part.shape)), ())
        shape = replace(asked, tolerations=tuple(dict.fromkeys((*own, *asked.tolerations))))
        return PodRequirements(main=PodSet(shape=shape, replicas=nodes, apart=nodes > 1))
    return requirements_of(pods, request.spec)


def requirements_of(pods: ManifestPods, spec: DeploySpec) -> PodRequirements:
    """Say what the pods of a spec need."""
    unknown, parts = _unknown(spec, pods.strange), pods.parts
    if not parts:
        return PodRequirements(main=PodSet(shape=_NO_REQUESTS, replicas=1), unknown=unknown)
    main = next((part for part in parts if _has_gpus(part.shape)), parts[0])
    others = tuple(part for part in parts if part is not main)
    return PodRequirements(
        main=main, others=others, unknown=unknown, domains=pods.domains, loose=pods.loose, marked=pods.marked
    )


def _unknown(spec: DeploySpec, strange: tuple[str, ...]) -> str:
    """Say which of its parts nobody can count."""
    charts = {step.name for step in spec.steps if step.type is StepType.HELM}
    sources = [f"chart {name}" for name in sorted(charts)] + [f"manifest {name}" for name in strange]
    return f"nobody knows what {join_names(sources)} {'needs' if len(sources) == 1 else 'need'}" if sources else ""


def pods_of_request(request: Request, kinds: Kinds = NO_KINDS) -> ManifestPods:
    """Read the pods of what a request deploys; `kinds` are those that the fleet repository declares."""
    return pods_of_spec(request.spec, kinds)


def pods_of_spec(spec: DeploySpec, kinds: Kinds = NO_KINDS) -> ManifestPods:
    """Read the pods of every manifest that a step names, and name those that cannot be read."""
    manifests = {resource.name: resource.manifest for resource in spec.manifests}
    named = dict.fromkeys(step.name for step in spec.steps if step.type is StepType.MANIFEST)
    parts: list[PodSet] = []
    pods: list[tuple[Hashable, PodOnNode]] = []
    gangs: list[Gang] = []
    strange: list[str] = []
    domains: list[TopologyDomains] = []
    loose: list[PodSet] = []
    marked = Counter[str]()
    for name in named:
        try:
            others = tuple(manifests[other] for other in named if other in manifests)
            podses, made_of = _pod_sets(manifests[name], kinds, others)
            gang = _gang(manifests[name], kinds, podses)
            apart = read_exclusive_topology(manifests[name], kinds)
        except MALFORMED:
            strange.append(f"{name}{_declared_replicas(manifests[name], kinds)}")
            continue
        parts += podses
        pods += made_of
        gangs += () if gang is None else (gang,)
        if apart is not None:
            marked.update(apart.marked)
        if apart is not None and apart.domains is not None:
            domains.append(apart.domains)
            podses = tuple(PodSet(shape=shape, replicas=number) for shape, number in apart.loose)
        loose += podses
    return ManifestPods(
        parts=tuple(replace(part, shape=reject_mixed_rules(part.shape, pods)) for part in parts),
        strange=tuple(strange),
        gangs=tuple(gangs),
        domains=tuple(domains),
        loose=tuple(loose) if domains else (),
        marked=dict(marked),
    )


def pod_shape(
    pods_made: TemplatePods, manifest: Mapping[str, Json], others: tuple[Mapping[str, Json], ...] = ()
) -> ReplicaShape:
    """Read the shape of the pods that an object makes of one template; `others` are the objects beside it.

    Raises one of AttributeError, LookupError, TypeError and ValueError where it cannot be read.
    """
    shape = admission_defaults.with_included_runtime_class(
        replica_shape(pods_made.spec, pod_metadata(manifest, pods_made.place)), others
    )
    return with_manifest_claims(
        replace(shape, who=template_identities(manifest, pods_made.place)), pods_made, manifest, others
    )


def _declared_replicas(manifest: Mapping[str, Json], kinds: Kinds) -> str:
    """Say how many replicas an object wants of which nothing else is known; nothing where it does not say."""
    kind = kind_of(manifest, kinds)
    if kind is None or kind.templates or not kind.replicas:
        return ""
    try:
        return f" ({count(replicas_at(manifest, kind.replicas), 'replica')})"
    except ValueError as error:
        return f" ({error})"


def _pod_sets(
    manifest: Mapping[str, Json], kinds: Kinds, others: tuple[Mapping[str, Json], ...]
) -> tuple[tuple[PodSet, ...], list[tuple[Hashable, PodOnNode]]]:
    """Read the pods that one object makes, those that are alike together; none where nobody counts them.

    Beside them stands what rules go by of each template's pods, and the likeness of their shape. A number of replicas
    that an expression gives counts as one. Raises one of MALFORMED where it cannot be read.
    """
    for finding in pod_template.check_pod_template(manifest, kinds=kinds):
        raise ValueError(finding.message)
    parts: dict[Hashable, PodSet] = {}
    pods: list[tuple[Hashable, PodOnNode]] = []
    roles: list[PodRole] = []
    for pods_made in read_pods(manifest, kinds, others):
        if pods_made.replicas is None:
            raise ValueError("nobody knows how many pods it makes")
        metadata = pod_metadata(manifest, pods_made.place)
        shape = pod_shape(pods_made, manifest, others)
        alike = parts.get(shape.likeness)
        shape = replace(shape, who=merged_identities((shape, alike.shape))) if alike else shape
        pods.append((shape.likeness, pod_on_node(pods_made.spec, metadata)))
        parts[shape.likeness] = PodSet(shape=shape, replicas=pods_made.replicas + (alike.replicas if alike else 0))
        roles.append(
            PodRole(likeness=shape.likeness, gpus=gpus_of_pod(shape), pods=pods_made.replicas, least=pods_made.least)
        )
    kind = kind_of(manifest, kinds)
    least = pods_to_start(roles, manifest, kind) if kind is not None else {}
    return tuple(replace(pods, least=least.get(likeness)) for likeness, pods in parts.items() if pods.replicas), pods


def _gang(manifest: Mapping[str, Json], kinds: Kinds, parts: tuple[PodSet, ...]) -> Gang | None:
    """Say how the pods of an object are grouped; None where each of them is for itself."""
    kind = kind_of(manifest, kinds)
    number = group_count(manifest, kind) if kind is not None else None
    pods = sum(part.replicas for part in parts)
    if kind is None or kind.together is None or not number or not pods:
        return None
    size = pods // number
    return Gang(
        name=f"{kind.kind} {at(manifest, ('metadata', 'name'))}",
        called=kind.together.called,
        groups=number,
        size=size,
        least=min(gang_minimum(manifest, kind, size), -(-sum(part.start for part in parts) // number)),
        requests=total(part.shape.requests.times(part.replicas // number) for part in parts),
    )


def _has_gpus(shape: ReplicaShape) -> bool:
    return any(is_gpu(name) for name in shape.requests.amounts)
