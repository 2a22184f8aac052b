"""The watched resources, and their paths at the API server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from reconciler.core.engines.reports import EngineResource
from reconciler.core.signals.cluster import HPA, KUEUE
from reconciler.core.workloads.builtin_kinds import BUILT_IN, INTERMEDIATE, NO_KINDS, Kinds
from reconciler.core.workloads.train_job import TRAINER
from reconciler.core.workloads.watch import NEVER_EMPTY, OPTIONAL, REQUIRED, Gap, ServedResource
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.manifest_source import WorkloadSource
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import WorkloadRef


def _row(name: str) -> tuple[str, tuple[str, ...], str, str]:
    """Return the row of a built-in kind of workload."""
    kind = BUILT_IN[name]
    return kind.group, kind.versions, kind.plural, kind.kind


class Resource(ServedResource, Enum):
    """A resource by its API group, the versions of that, newest first, its plural, and the kind of its objects.

    The last column says what follows where a cluster lacks the resource, or refuses it.
    """

    NODES = ("", ("v1",), "nodes", "Node")
    PODS = _row("/Pod")
    DEPLOYMENTS = _row("apps/Deployment")
    STATEFUL_SETS = _row("apps/StatefulSet")
    REPLICA_SETS = _row("apps/ReplicaSet")
    JOBS = _row("batch/Job")
    AUTOSCALERS = ("autoscaling", ("v2",), "horizontalpodautoscalers", "HorizontalPodAutoscaler", OPTIONAL)
    QUEUED = ("kueue.x-k8s.io", ("v1beta2", "v1beta1"), "workloads", "Workload", OPTIONAL)
    LOCAL_QUEUES = ("kueue.x-k8s.io", ("v1beta2", "v1beta1"), "localqueues", "LocalQueue", OPTIONAL)
    CLUSTER_QUEUES = ("kueue.x-k8s.io", ("v1beta2", "v1beta1"), "clusterqueues", "ClusterQueue", OPTIONAL)
    COHORTS = ("kueue.x-k8s.io", ("v1beta2", "v1beta1", "v1alpha1"), "cohorts", "Cohort", OPTIONAL)
    FLAVORS = ("kueue.x-k8s.io", ("v1beta2", "v1beta1"), "resourceflavors", "ResourceFlavor", OPTIONAL)
    NAMESPACES = ("", ("v1",), "namespaces", "Namespace", OPTIONAL)
    SLICES = ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceslices", "ResourceSlice", NEVER_EMPTY)
    CLAIMS = ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceclaims", "ResourceClaim", NEVER_EMPTY)
    CLASSES = ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "deviceclasses", "DeviceClass", NEVER_EMPTY)
    RUNTIME_CLASSES = ("node.k8s.io", ("v1",), "runtimeclasses", "RuntimeClass", NEVER_EMPTY)
    LIMIT_RANGES = ("", ("v1",), "limitranges", "LimitRange", NEVER_EMPTY)
    QUOTAS = ("", ("v1",), "resourcequotas", "ResourceQuota", OPTIONAL)
    EVENTS = ("", ("v1",), "events", "Event", OPTIONAL)
    PRIORITY_CLASSES = ("scheduling.k8s.io", ("v1",), "priorityclasses", "PriorityClass", OPTIONAL)
    NODE_POOLS = ("karpenter.sh", ("v1",), "nodepools", "NodePool", NEVER_EMPTY)
    RUNTIMES = (TRAINER, ("v1alpha1",), "trainingruntimes", "TrainingRuntime", OPTIONAL)
    CLUSTER_RUNTIMES = (TRAINER, ("v1alpha1",), "clustertrainingruntimes", "ClusterTrainingRuntime", OPTIONAL)
    TEMPLATES = (
        "resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceclaimtemplates", "ResourceClaimTemplate",
        OPTIONAL,
    )  # fmt: skip # a table, a row a line

    def __init__(
        self,
        group: str,
        versions: tuple[str, ...],
        plural: str,
        kind: str,
        gap: Gap = REQUIRED,
    ) -> None:
        self.group = group
        self.versions = versions
        self.plural = plural
        self.kind = kind
        self.gap = gap

    @property
    def fields(self) -> str:
        """The field selector of the objects that are watched; empty for all."""
        return _WARNINGS_OF_CONTROLLERS if self is Resource.EVENTS else ""


_WARNINGS_OF_CONTROLLERS = ",".join(
    ("type=Warning", *(f"involvedObject.kind!={kind}" for kind in ("Pod", "Node", "HorizontalPodAutoscaler")))
)
"""Events of controllers whose pods are refused, and few others. A field selector has no way to list their reasons."""


@dataclass(frozen=True, slots=True)
class CustomResource(ServedResource):
    """The objects of a kind with a controller of its own; a cluster may lack the kind."""

    group: str
    # Empty if only the API server knows them.
    versions: tuple[str, ...]
    plural: str
    kind: str
    gap: Gap = OPTIONAL
    selector: str = ""

    @property
    def name(self) -> str:
        """The ``group/Kind`` of the kind."""
        return f"{self.group}/{self.kind}"

    @property
    def owning(self) -> tuple[str, str]:
        """The kind and group of its objects as an `Owner`."""
        return self.kind, foreign_group(self.kind, self.group)


@dataclass(frozen=True, slots=True)
class CompanionResource(ServedResource):
    """A kind of companions of live workloads, of which single objects are watched by their names."""

    plural: str
    kind: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    gap: Gap = OPTIONAL


COMPANION_RESOURCES = {
    resource.kind: resource
    for resource in (CompanionResource("configmaps", "ConfigMap"), CompanionResource("services", "Service"))
}
"""Kinds of companions; Secrets are none, and never read."""

Watched: TypeAlias = Resource | CustomResource | EngineResource | CompanionResource
"""A resource that may be watched."""


def rights(resource: Watched) -> str:
    """Return the file of the layout with the RBAC rules of a resource; empty where those depend on the fleet."""
    if isinstance(resource, CompanionResource) or (
        isinstance(resource, CustomResource) and resource.name not in {**BUILT_IN, **INTERMEDIATE}
    ):
        return ""
    return resource.rights if isinstance(resource, EngineResource) else "bootstrap/rbac.yaml"


DEVICES = frozenset({Resource.SLICES, Resource.CLAIMS, Resource.CLASSES})
"""The resources that have to be complete before any device counts as free."""

ADDITIONS = frozenset({Resource.RUNTIME_CLASSES, Resource.LIMIT_RANGES, Resource.QUOTAS, Resource.PRIORITY_CLASSES})
"""The resources that add to created pods, or bound how many may be created."""

QUEUES = frozenset({Resource.LOCAL_QUEUES, Resource.CLUSTER_QUEUES, Resource.COHORTS, Resource.FLAVORS})
"""Kueue's queues: all of them have to be known before any of them bounds what is admitted."""

CAPACITY = frozenset({Resource.NODES, Resource.PODS, Resource.NAMESPACES}) | DEVICES | ADDITIONS | QUEUES
"""The resources that are watched in every cluster."""

CLUSTER_WIDE = CAPACITY | {Resource.NODE_POOLS}
"""The resources whose objects count whatever their namespace."""

CONTROLLERS = frozenset({Resource.DEPLOYMENTS, Resource.STATEFUL_SETS, Resource.REPLICA_SETS, Resource.JOBS})
"""The objects that own replicas."""

TRAINING_RUNTIMES = frozenset({Resource.RUNTIMES, Resource.CLUSTER_RUNTIMES})
"""The runtimes of TrainJobs; only those that a TrainJob names are kept."""

SIGNAL_KINDS = {Resource.AUTOSCALERS: HPA.name, Resource.QUEUED: KUEUE.name}
"""The kind of the signals of each resource, the first word of their labels."""

SIGNALS = frozenset(SIGNAL_KINDS)
"""The resources that report missing replicas of a workload."""

WITH_REPLICA_FAILURE = frozenset({Resource.DEPLOYMENTS, Resource.REPLICA_SETS})
"""Those of `CONTROLLERS` whose objects have a condition for pods that are refused."""

_UNTOLD_BY_EVENTS = {(each.kind, each.group) for each in (Resource.PODS, *WITH_REPLICA_FAILURE)}
"""Kinds about which no Event says more: no controller creates a Pod."""

_BY_KIND = {resource.kind: resource for resource in CONTROLLERS}


class Owner(NamedTuple):
    """An object that owns others; an owner reference never leaves its namespace."""

    kind: str
    namespace: str
    name: str
    # The API group of a kind that shares its name with Kubernetes' own, as Volcano's Job; empty for all others.
    group: str = ""

    def meant_by(self, ref: WorkloadRef) -> bool:
        """Return whether a reference may mean this object."""
        return ref.may_be(self.ref)

    @property
    def ref(self) -> WorkloadRef:
        """A reference to this object, with its group if that is known."""
        own = _BY_KIND[self.kind].group if self.kind in _BY_KIND else ""
        return WorkloadRef(namespace=self.namespace, name=self.name, kind=self.kind, group=self.group or own)


def foreign_group(kind: str, group: str) -> str:
    """Return the API group of a kind that shares the name of one of Kubernetes' own `CONTROLLERS`; else nothing."""
    return group if group and kind in _BY_KIND and group != _BY_KIND[kind].group else ""


def owner_of(kind: str, namespace: str, name: str, api_version: str) -> Owner:
    """Return the owner of a reference; one without a version means Kubernetes' own kind."""
    return Owner(kind, namespace, name, foreign_group(kind, api_version.rpartition("/")[0]))


def custom_resources(refs: Iterable[WorkloadRef], kinds: Kinds = NO_KINDS) -> frozenset[CustomResource]:
    """Return the kinds whose objects can be watched: those that are named, and known.

    `kinds` are those that the fleet repository declares. The newest served version is watched; without a known version,
    the API server's preferred one. A kind that shares the name of one of Kubernetes' own needs a reference with its
    group.
    """
    named = {
        (ref.kind, ref.group)
        for ref in refs
        if ref.kind and (ref.kind not in _BY_KIND or foreign_group(ref.kind, ref.group))
    }
    if not named:
        return frozenset()
    return frozenset(
        _resource_of(kind)
        for kind in {**BUILT_IN, **kinds}.values()
        if not named.isdisjoint({(kind.kind, ""), (kind.kind, kind.group)}) and "." in kind.group
    )


def placed_resources(refs: Iterable[WorkloadRef], kinds: Kinds = NO_KINDS) -> frozenset[CustomResource]:
    """Return the kinds, of those that are named, of which the objects of placements can be watched, and no others.

    Kubernetes' own are among them, beside those that a primary is watched for: only few of a cluster's are ours.
    """
    refs = tuple(refs)
    named = custom_resources(refs, kinds)
    own = {(ref.kind, ref.group) for ref in refs}
    named |= {
        CustomResource(each.group, each.versions, each.plural, each.kind)
        for each in CONTROLLERS
        if (each.kind, each.group) in own
    }
    return frozenset(replace(resource, selector=PLACEMENT_LABEL) for resource in named)


def custom_resources_of_pods(refs: Iterable[WorkloadRef], kinds: Kinds = NO_KINDS) -> frozenset[CustomResource]:
    """Return `custom_resources`, and the kinds of the objects that stand between those and their pods."""
    named = custom_resources(refs, kinds)
    known = {**BUILT_IN, **INTERMEDIATE, **kinds}
    return named.union(_resource_of(known[name]) for resource in named for name in known[resource.name].made)


def _resource_of(kind: WorkloadKind) -> CustomResource:
    return CustomResource(kind.group, tuple(reversed(kind.versions)), plural_of(kind.kind), kind.kind)


def plural_of(kind: str) -> str:
    """Return the plural of a kind in paths, by the rule of the generators of custom resources."""
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in set("aeiou") else f"{name}s"


def needed_resources(
    refs: Iterable[WorkloadRef],
    kinds: Kinds = NO_KINDS,
    *,
    node_pools: bool = False,
    sources: Iterable[WorkloadSource] = (),
    placed: Iterable[WorkloadRef] = (),
) -> frozenset[Watched]:
    """Return the resources to watch for the replicas of these workloads, and for reports of missing ones.

    `node_pools` says whether NodePools of Karpenter bound the nodes that the cluster may get. Of the `sources` the
    kinds of training runtimes count: others are watched as workloads are. `placed` are kinds of placements, as
    references without a name.

    Events tell of refused pods where the status of their object does not: only where such kinds are placed, or any
    workload is followed. Kueue's Workloads tell in every cluster why pods of placements do not start. A reference
    without a kind may mean any. The pods of a Deployment belong to its ReplicaSets; those of an unknown kind may belong
    to it through StatefulSets or Jobs. The status of objects of such a kind helps.
    """
    refs = tuple(refs)
    watched: set[Watched] = {*CAPACITY, Resource.QUEUED, *custom_resources_of_pods(refs, kinds)}
    if node_pools:
        watched.add(Resource.NODE_POOLS)
    named = {(source.kind, source.group) for source in sources}
    watched |= {resource for resource in TRAINING_RUNTIMES if (resource.kind, resource.group) in named}
    if any((ref.kind, ref.group) not in _UNTOLD_BY_EVENTS for ref in placed):
        watched.add(Resource.EVENTS)
    for ref in refs:
        watched |= SIGNALS | {Resource.TEMPLATES, Resource.EVENTS}
        if ref.kind not in _BY_KIND or foreign_group(ref.kind, ref.group):
            watched |= CONTROLLERS
        elif ref.kind == Resource.DEPLOYMENTS.kind:
            watched |= {Resource.DEPLOYMENTS, Resource.REPLICA_SETS}
        else:
            watched.add(_BY_KIND[ref.kind])
    return frozenset(watched)
