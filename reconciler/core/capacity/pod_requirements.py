"""Requirements of a request: the GPUs that it asks for, else the requests of the pods of its manifests.

Clusters name GPUs and their models differently: requested GPUs are translated for each cluster.
Unknown pods, as those of a chart, are not counted and are named in `unknown`: nothing is placed for them, unless the
workspace allows unknown needs. Claims of devices are counted by the ResourceClaimTemplates and ComputeDomains that are
deployed with the pods. A constraint that only a scheduler can evaluate, as Volcano's network domains or a fraction of a
GPU, is an obstacle; gprDetails overrides it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.core.capacity import admission_defaults
from reconciler.core.capacity.exclusive_topology import TopologyDomains, read_exclusive_topology, template_identities
from reconciler.core.capacity.gpu_models import gpus_of_pod, uses_gpus
from reconciler.core.capacity.gpu_requests import gpu_pod_shape
from reconciler.core.capacity.included_admission import included_admission
from reconciler.core.capacity.pod_anti_affinity import merged_shape
from reconciler.core.capacity.shared_topology import (
    COMPUTE_DOMAIN,
    NVLINK_DOMAIN,
    UNCOUNTABLE,
    ShapedPods,
    SharedDomain,
    read_shared_domains,
    shared_domains,
    topology_obstacles,
)
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.pods.label_selectors import reject_mixed_rules
from reconciler.core.pods.pod_admission import volume_claim
from reconciler.core.pods.pod_affinity import pod_on_node
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.pods.resource_claims import TemplateRecord, pod_claims, read_template, with_claims
from reconciler.core.workloads import pod_template
from reconciler.core.workloads.api_kinds import cluster_scoped, group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.kueue_pod_sets import object_annotations, template_annotations
from reconciler.core.workloads.paths import at, replicas_at
from reconciler.core.workloads.pod_counts import PodRole, pods_to_start
from reconciler.core.workloads.pods import (
    TemplatePods,
    gang_minimum,
    group_count,
    has_whole_labels,
    pod_metadata,
    pod_specs,
    read_pods,
)
from reconciler.core.workloads.queue_claims import queue_claim
from reconciler.core.workloads.train_job import job_set, runtime_among, runtime_ref, states_its_pods
from reconciler.model.capacity import ClusterObservation, DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.kubernetes.scheduling import PodOnNode
from reconciler.model.kubernetes.workload_kind import path
from reconciler.model.policy import Workspace
from reconciler.model.request import Request
from reconciler.model.units import Resources, total
from reconciler.model.workload import DeploySpec, Json, ManifestResource, StepType
from reconciler.text.findings import shortened
from reconciler.text.wording import count, join_names

_TEMPLATE = "resource.k8s.io/ResourceClaimTemplate"
_CHANNEL = path("spec.channel.resourceClaimTemplate.name")
_ONE_CHANNEL = TemplateRecord(
    requests=(DeviceRequest(options=(DeviceOption(device_class="compute-domain-default-channel.nvidia.com"),)),)
)
"""The template that the driver makes of a ComputeDomain: each pod claims the channel of its node.

https://github.com/NVIDIA/k8s-dra-driver-gpu, templates/compute-domain-workload-claim-template.tmpl.yaml.
"""

_VOLUMES = path("spec.volumeClaimTemplates")
"""The claims that a StatefulSet makes with each pod."""
_NO_REQUESTS = ReplicaShape(requests=Resources())
MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
"""Errors from reading a manifest that no API server has validated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods of one shape."""

    shape: ReplicaShape
    replicas: int
    apart: bool = False
    """Whether each of them needs its own node."""
    least: int | None = None
    """The pods that have to exist before any of their group runs; None for all."""

    @property
    def room(self) -> tuple[ReplicaShape, int]:
        """The shape and count that have to fit: separate pods fit together or not at all."""
        if not self.apart:
            return self.shape, self.replicas
        return replace(self.shape, group_size=self.replicas, apart=True), 1

    @property
    def start(self) -> int:
        """The pods that are enough to start with."""
        return self.replicas if self.least is None else self.least


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequirements:
    """The requirements of one placement."""

    main: PodSet
    """The pods that its replicas are counted by."""
    others: tuple[PodSet, ...] = ()
    """Pods that come with the main ones."""
    unknown: str = ""
    """A clause that names the requirements that are not counted; empty if there are none."""
    domains: tuple[TopologyDomains, ...] = ()
    """Domains that some of the pods require; these pods are in `parts` too."""
    loose: tuple[PodSet, ...] = ()
    """Pods without a required domain, where others have one."""
    marked: Mapping[str, int] = field(default_factory=dict)
    """Pods by label that block domains for groups of other workloads."""
    shared: tuple[SharedDomain, ...] = ()
    """Domains that some of the pods have to run in together; these pods are in `parts` too."""

    @property
    def parts(self) -> tuple[PodSet, ...]:
        """All pods, those with the most GPUs first."""
        return tuple(sorted((self.main, *self.others), key=lambda part: -gpus_of_pod(part.shape)))

    @property
    def pods(self) -> int:
        """The number of all pods."""
        return sum(part.replicas for part in self.parts)

    @property
    def start(self) -> int:
        """The pods that are enough to start with; all, where no part has a minimum."""
        return sum(part.start for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Pods of one object that are scheduled in groups."""

    name: str
    called: str
    """The name of a group in messages."""
    groups: int
    """The number of groups."""
    size: int
    """Pods of one group."""
    least: int
    """Pods of a group that have to exist before any of them runs."""
    requests: Resources
    """Requests of one group."""
    pods: tuple[tuple[ReplicaShape, int], ...] = ()
    """The pods of one group, by shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPods:
    """The pods of all manifests of a spec."""

    parts: tuple[PodSet, ...]
    strange: tuple[str, ...]
    """Names of the manifests whose pods cannot be read."""
    gangs: tuple[Gang, ...] = ()
    domains: tuple[TopologyDomains, ...] = ()
    """Domains that some of the pods require."""
    loose: tuple[PodSet, ...] = ()
    """The pods that require none, where others do."""
    marked: Mapping[str, int] = field(default_factory=dict)
    """As in `PodRequirements`."""
    shared: tuple[SharedDomain, ...] = ()
    """As in `PodRequirements`."""
    uncounted_topology: str = ""
    """The required topology that cannot be counted; empty where all of it can."""


def request_likeness(request: Request, pods: ManifestPods) -> Hashable:
    """Return a value that is equal for requests with the same requirements on every cluster."""
    counted = tuple((part.shape.likeness, part.replicas, part.apart, part.start) for part in pods.parts)
    return (
        request.ask,
        request.terms.dedicated,
        counted,
        (*(domain.likeness for domain in pods.domains), *pods.marked.items()),
        tuple(unit.likeness for unit in pods.shared),
    )


def request_requirements(
    request: Request,
    seen: ClusterObservation | None = None,
    pods: ManifestPods | None = None,
    *,
    kinds: Kinds = NO_KINDS,
) -> PodRequirements:
    """Return the requirements of a request, in the terms of the cluster that is `seen`.

    `pods` are those of the request where they have been read; else `kinds` are the WorkloadKinds of the fleet
    repository.
    """
    pods = pods or pods_of_request(request, kinds)
    if request.ask is not None:
        gpu_shape, nodes = gpu_pod_shape(request.ask, seen, dedicated=request.terms.dedicated), request.ask.nodes
        tolerations = next((part.shape.tolerations for part in pods.parts if uses_gpus(part.shape)), ())
        stated = tuple(
            dict.fromkeys(each for part in pods.parts if uses_gpus(part.shape) for each in part.shape.admission)
        )
        tolerated = tuple(dict.fromkeys((*tolerations, *gpu_shape.tolerations)))
        shape = replace(gpu_shape, tolerations=tolerated, admission=stated)
        return PodRequirements(main=PodSet(shape=shape, replicas=nodes, apart=nodes > 1))
    return requirements_of(pods, request.spec)


def requirements_of(pods: ManifestPods, spec: DeploySpec) -> PodRequirements:
    """Return the requirements of the pods of a spec."""
    unknown, parts = _describe_uncounted(spec, pods.strange), pods.parts
    if not parts:
        return PodRequirements(main=PodSet(shape=_NO_REQUESTS, replicas=1), unknown=unknown)
    main = next((part for part in parts if uses_gpus(part.shape)), parts[0])
    others = tuple(part for part in parts if part is not main)
    return PodRequirements(
        main=main,
        others=others,
        unknown=unknown,
        domains=pods.domains,
        loose=pods.loose,
        marked=pods.marked,
        shared=pods.shared,
    )


def _describe_uncounted(spec: DeploySpec, strange: tuple[str, ...]) -> str:
    """Return a clause that names the parts of a spec that cannot be counted."""
    charts = {step.name for step in spec.steps if step.type is StepType.HELM}
    sources = [f"chart {name}" for name in sorted(charts)] + [f"manifest {name}" for name in strange]
    return f"the needs of {join_names(sources)} are unknown" if sources else ""


def pods_of_request(request: Request, kinds: Kinds = NO_KINDS, namespace: str = "") -> ManifestPods:
    """Read the pods of a request; `kinds` and `namespace` are as in `pods_of_spec`."""
    return pods_of_spec(request.spec, kinds, namespace)


def pods_of_spec(spec: DeploySpec, kinds: Kinds = NO_KINDS, namespace: str = "") -> ManifestPods:
    """Read the pods of every manifest that a step names, and name those that cannot be read.

    `kinds` are the WorkloadKinds of the fleet repository. Objects that name no namespace go to `namespace`
    (`engines.deployment.target_namespace`); where that is empty, it is the one that the spec itself names, if any.
    """
    around = namespace or _namespace_around(spec)
    manifests = {resource.name: _in_namespace(resource.manifest, around) for resource in spec.manifests}
    known = (*manifests.values(), *spec.referred)
    named = dict.fromkeys(step.name for step in spec.steps if step.type is StepType.MANIFEST)
    parts: list[PodSet] = []
    pods: list[tuple[Hashable, PodOnNode]] = []
    gangs: list[Gang] = []
    strange: list[str] = []
    domains: list[TopologyDomains] = []
    loose: list[PodSet] = []
    marked = Counter[str]()
    shared: list[SharedDomain] = []
    claiming: list[ShapedPods] = []
    uncounted = ""
    for name in named:
        try:
            others = tuple(manifests[other] for other in named if other in manifests)
            made = _pod_maker(manifests[name], kinds, known)
            pod_sets, made_of, shaped, obstacles = _pod_sets(made, kinds, others)
            gang = _gang(made, kinds, pod_sets, manifests[name])
            apart = read_exclusive_topology(made, kinds)
        except MALFORMED:
            strange.append(f"{name}{_describe(manifests[name], kinds, known)}")
            continue
        parts += pod_sets
        pods += made_of
        shared += read_shared_domains(made, kinds, shaped)
        uncounted = uncounted or next(iter(obstacles.values()), "")
        claiming += shaped
        gangs += () if gang is None else (gang,)
        if apart is not None:
            marked.update(apart.marked)
        if apart is not None and apart.domains is not None:
            domains.append(apart.domains)
            pod_sets = tuple(PodSet(shape=shape, replicas=number) for shape, number in apart.loose)
        loose += pod_sets
    shared += compute_domains(claiming, (manifests[name] for name in named if name in manifests))

    def completed(shape: ReplicaShape) -> ReplicaShape:
        return reject_mixed_rules(shape, pods)

    return ManifestPods(
        parts=tuple(replace(part, shape=completed(part.shape)) for part in parts),
        strange=tuple(strange),
        gangs=tuple(gangs),
        domains=tuple(domains),
        loose=tuple(loose) if domains else (),
        marked=dict(marked),
        shared=tuple(unit.with_shapes(completed) for unit in shared),
        uncounted_topology=uncounted,
    )


def _namespace_around(spec: DeploySpec) -> str:
    """Return the namespace of objects that name none (`engines.target_namespace`); empty where the spec names none."""
    charts = {chart.name: chart.release_namespace for chart in spec.helm}
    manifests = {resource.name: at(resource.manifest, ("metadata", "namespace")) for resource in spec.manifests}
    named = [charts.get(step.name) for step in spec.steps if step.type is StepType.HELM]
    named += [manifests.get(step.name) for step in spec.steps if step.type is StepType.MANIFEST]
    return next((name for name in named if isinstance(name, str) and name and not has_expression(name)), "")


def _in_namespace(manifest: Mapping[str, Json], namespace: str) -> Mapping[str, Json]:
    """Return an object as it is deployed to a namespace; the same object where it names one, or has none."""
    metadata = manifest.get("metadata")
    if not namespace or not isinstance(metadata, Mapping) or metadata.get("namespace"):
        return manifest
    if cluster_scoped(group_kind(manifest)):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


def largest_shape(spec: DeploySpec, kinds: Kinds, namespace: str = "") -> ReplicaShape | None:
    """Return the shape of the pods of a spec with the most GPUs, which stand for the replica; None without any."""
    return max((part.shape for part in pods_of_spec(spec, kinds, namespace).parts), key=gpus_of_pod, default=None)


def pod_shape(
    pods_made: TemplatePods, manifest: Mapping[str, Json], others: tuple[Mapping[str, Json], ...] = ()
) -> ReplicaShape:
    """Read the shape of the pods of one template of an object; `others` are the objects deployed with it.

    Raises one of AttributeError, LookupError, TypeError and ValueError where it cannot be read.
    """
    metadata = pod_metadata(manifest, pods_made.place)
    annotations = {
        **object_annotations(manifest),
        **template_annotations(pods_made.place, manifest),
        **metadata["annotations"],
    }
    metadata = {**metadata, "annotations": annotations}
    shape = replica_shape(pods_made.spec, metadata, whole=has_whole_labels(manifest, pods_made.place))
    shape = admission_defaults.with_included_runtime_class(shape, others)
    volumes = tuple(volume_claim(claim.get("spec") or {}) for claim in at(manifest, _VOLUMES) or ())
    queue, included = queue_claim(manifest, pods_made.place, others), included_admission(others)
    admission = tuple(
        stated._replace(volumes=(*stated.volumes, *volumes), queue=queue, included=included)
        for stated in shape.admission
    )
    who = template_identities(manifest, pods_made.place)
    rules = shape.rules
    if rules is not None and who[0].added:
        known = {key for key, _ in who[0].labels} - {key for key, _ in rules.labels}
        rules = replace(rules, added=tuple(sorted({*who[0].added, *known})))
    return with_manifest_claims(replace(shape, who=who, rules=rules, admission=admission), pods_made, manifest, others)


def takes_gpus(spec: DeploySpec, resource: ManifestResource, kinds: Kinds) -> bool:
    """Return whether any pod of an object of a spec takes GPUs or parts of them, whether or not its pods are counted.

    By requests, claims or annotations (`uses_gpus`). A request that an expression gives is one of 1; pods that cannot
    be read take none.
    """
    beside = tuple(each.manifest for each in spec.manifests)
    try:
        made = _pod_maker(resource.manifest, kinds, (*beside, *spec.referred))
        return any(
            uses_gpus(pod_shape(TemplatePods(place=place, spec=_with_amounts(pod), replicas=None), made, beside))
            for place, pod in pod_specs(made, kinds, beside)
        )
    except MALFORMED:
        return False


def _with_amounts(value: Json) -> Json:
    """Return a pod spec with 1 in place of each value that is an expression, among them the amounts of requests."""
    if isinstance(value, Mapping):
        return {key: _with_amounts(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_amounts(part) for part in value]
    return "1" if isinstance(value, str) and has_expression(value) else value


RUNTIME_REMEDY = (
    "let the daemon read it on the primary, list it below objects in the primary's observation, bring it in the"
    " template, or state spec.trainer.numNodes and resourcesPerNode"
)
"""The ways out if the runtime of a TrainJob is not seen."""

UNKNOWN_REMEDY = "declare it in gprDetails: numberOfGPUs, numberOfGPUNodes"
"""The way out if the needs of a request's pods are unknown."""


def unknown_needs(need: PodRequirements, workspace: Workspace) -> str:
    """Return why nothing of a request can be placed: unknown pods are unknown room; empty where it can.

    A workspace with `allow_unknown_needs` lets them count as nothing.
    """
    return "" if not need.unknown or workspace.allow_unknown_needs else f"{need.unknown}, so nothing of it is placed"


def _pod_maker(manifest: Mapping[str, Json], kinds: Kinds, others: Iterable[Mapping[str, Json]]) -> Mapping[str, Json]:
    """Return the object that makes the pods: the JobSet of a TrainJob whose runtime is among `others`, else the object.

    A WorkloadKind of the fleet says itself where the pods of its objects are.
    """
    ref = None if group_kind(manifest) in kinds else runtime_ref(manifest)
    runtime = None if ref is None else runtime_among(ref, others)
    return manifest if runtime is None else job_set(manifest, runtime)


def _describe(manifest: Mapping[str, Json], kinds: Kinds, others: Iterable[Mapping[str, Json]]) -> str:
    """Describe an object whose pods are unknown, else empty.

    That is an unknown kind, the replicas that it declares, or a TrainJob that leaves its pods to a runtime.
    """
    kind = kind_of(manifest, kinds)
    ref = None if group_kind(manifest) in kinds else runtime_ref(manifest)
    if ref is not None and runtime_among(ref, others) is not None:
        return f" ({ref.title} cannot be read: see that it names its replicatedJobs with their containers)"
    if ref is not None and not states_its_pods(manifest):
        return f" (nobody has seen its {ref.title}: {RUNTIME_REMEDY})"
    if kind is None:
        return f" ({shortened(group_kind(manifest).removeprefix('/'))} is no known kind)"
    if kind.templates or not kind.replicas:
        return ""
    try:
        return f" ({count(replicas_at(manifest, kind.replicas), 'replica')})"
    except ValueError as error:
        return f" ({error})"


def _pod_sets(
    manifest: Mapping[str, Json], kinds: Kinds, others: tuple[Mapping[str, Json], ...]
) -> tuple[tuple[PodSet, ...], list[tuple[Hashable, PodOnNode]], list[ShapedPods], Mapping[int, str]]:
    """Read the pods of one object, merged by shape; none where they cannot be counted.

    The second value is each template's pod as rules see it, with the likeness of its shape, the third the pods of each
    template by themselves, the fourth `topology_obstacles`. A number of replicas that an expression gives counts as
    one. Raises one of MALFORMED where it cannot be read.
    """
    for finding in pod_template.check_pod_template(manifest, kinds=kinds):
        raise ValueError(finding.message)
    parts: dict[Hashable, PodSet] = {}
    pods: list[tuple[Hashable, PodOnNode]] = []
    roles: list[PodRole] = []
    shaped: list[ShapedPods] = []
    templates = tuple(read_pods(manifest, kinds, others))
    obstacles = topology_obstacles(manifest, kinds, templates)
    for position, template_pods in enumerate(templates):
        if template_pods.replicas is None:
            raise ValueError("the number of its pods is unknown")
        metadata = pod_metadata(manifest, template_pods.place)
        shape = pod_shape(template_pods, manifest, others)
        if position in obstacles and not shape.obstacle:
            shape = replace(shape, obstacle=f"{obstacles[position]}, {UNCOUNTABLE}")
        shaped.append((template_pods, shape))
        earlier = parts.get(shape.likeness)
        shape = merged_shape(shape, earlier.shape) if earlier else shape
        pods.append((shape.likeness, pod_on_node(template_pods.spec, metadata)))
        parts[shape.likeness] = PodSet(
            shape=shape, replicas=template_pods.replicas + (earlier.replicas if earlier else 0)
        )
        roles.append(
            PodRole(
                likeness=shape.likeness, gpus=gpus_of_pod(shape), pods=template_pods.replicas, least=template_pods.least
            )
        )
    kind = kind_of(manifest, kinds)
    least = pods_to_start(roles, manifest, kind) if kind is not None else {}
    counted = tuple(replace(pods, least=least.get(likeness)) for likeness, pods in parts.items() if pods.replicas)
    return counted, pods, shaped, obstacles


def _gang(
    manifest: Mapping[str, Json], kinds: Kinds, parts: tuple[PodSet, ...], owner: Mapping[str, Json]
) -> Gang | None:
    """Return the groups of an object's pods; None where its pods are scheduled one by one.

    They are called as those of its `owner`, which is deployed.
    """
    kind = kind_of(manifest, kinds)
    number = group_count(manifest, kind) if kind is not None else None
    pods = sum(part.replicas for part in parts)
    if kind is None or kind.together is None or not number or not pods:
        return None
    size = pods // number
    deployed = kind_of(owner, kinds) or kind
    return Gang(
        name=f"{deployed.kind} {at(owner, ('metadata', 'name'))}",
        called=(deployed.together or kind.together).called,
        groups=number,
        size=size,
        least=min(gang_minimum(manifest, kind, size), -(-sum(part.start for part in parts) // number)),
        requests=total(part.shape.requests.times(part.replicas // number) for part in parts),
        pods=tuple((part.shape, part.replicas // number) for part in parts),
    )


def with_manifest_claims(
    shape: ReplicaShape, pods: TemplatePods, manifest: Mapping[str, Json], beside: Iterable[Mapping[str, Json]]
) -> ReplicaShape:
    """Add to the shape of pods their claims by templates of `beside`, or the obstacle to counting them.

    Raises one of AttributeError, LookupError, TypeError and ValueError where a template cannot be read.
    """
    claims = pod_claims(pods.spec)
    manifests = tuple(beside) if claims.templates else ()
    obstacle = next(_obstacles(pods, manifest), "")
    if obstacle:
        return replace(shape, obstacle=obstacle)
    return with_claims(shape, claims, "", dict(_templates(manifests)))


def _templates(manifests: Iterable[Mapping[str, Json]]) -> Iterator[tuple[str, TemplateRecord]]:
    """Read the ResourceClaimTemplates of other manifests; they go to the cluster of the pods."""
    for manifest in manifests:
        if group_kind(manifest) == _TEMPLATE:
            yield f"/{manifest['metadata']['name']}", read_template(manifest)
        elif group_kind(manifest) == COMPUTE_DOMAIN and (name := at(manifest, _CHANNEL)):
            yield f"/{name}", _ONE_CHANNEL


def compute_domains(pods: Sequence[ShapedPods], beside: Iterable[Mapping[str, Json]]) -> Iterator[SharedDomain]:
    """Yield the NVLink domain of each ComputeDomain of `beside` that any of these pods claim a channel of."""
    for manifest in beside:
        channel = at(manifest, _CHANNEL) if group_kind(manifest) == COMPUTE_DOMAIN else None
        members = [(shape, made.replicas or 0) for made, shape in pods if channel in pod_claims(made.spec).templates]
        yield from shared_domains(NVLINK_DOMAIN, members, 1)


def _obstacles(pods: TemplatePods, manifest: Mapping[str, Json]) -> Iterator[str]:
    kind = BUILT_IN.get(group_kind(manifest))
    several = pods.replicas != 1 and not (kind is not None and kind.one_by_one)
    if several and at(manifest, path("spec.networkTopology.mode")) == "hard":
        yield f"wants its pods in one network domain (networkTopology), {UNCOUNTABLE}"
