"""Which resources are watched, and where the API server serves them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from reconciler.core.engines.reports import EngineResource
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds
from reconciler.core.workloads.watch import ServedResource
from reconciler.model.workload import WorkloadRef


class Resource(ServedResource, Enum):
    """A resource by its API group, the versions of that, newest first, its plural, and the kind of its objects.

    One that is optional may be missing: its group need not be served, and rights on it need not have been given.
    """

    NODES = ("", ("v1",), "nodes", "Node")
    PODS = ("", ("v1",), "pods", "Pod")
    DEPLOYMENTS = ("apps", ("v1",), "deployments", "Deployment")
    STATEFUL_SETS = ("apps", ("v1",), "statefulsets", "StatefulSet")
    REPLICA_SETS = ("apps", ("v1",), "replicasets", "ReplicaSet")
    JOBS = ("batch", ("v1",), "jobs", "Job")
    AUTOSCALERS = ("autoscaling", ("v2",), "horizontalpodautoscalers", "HorizontalPodAutoscaler", True)
    QUEUED = ("kueue.x-k8s.io", ("v1beta2", "v1beta1"), "workloads", "Workload", True)
    SLICES = ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceslices", "ResourceSlice", True)
    CLAIMS = ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceclaims", "ResourceClaim", True)
    CLASSES = ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "deviceclasses", "DeviceClass", True)
    RUNTIME_CLASSES = ("node.k8s.io", ("v1",), "runtimeclasses", "RuntimeClass", True)
    LIMIT_RANGES = ("", ("v1",), "limitranges", "LimitRange", True)
    TEMPLATES = (
        "resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceclaimtemplates", "ResourceClaimTemplate", True,
    )  # fmt: skip # a table, a row a line

    def __init__(
        self,
        group: str,
        versions: tuple[str, ...],
        plural: str,
        kind: str,
        optional: bool = False,  # noqa: FBT001, FBT002 - the values of an Enum have no names
    ) -> None:
        self.group = group
        self.versions = versions
        self.plural = plural
        self.kind = kind
        self.optional = optional


@dataclass(frozen=True, slots=True)
class CustomResource(ServedResource):
    """The objects of a kind that has a controller of its own; a cluster may do without them.

    Its `versions` are empty where only the API server knows them.
    """

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    optional: bool = True

    @property
    def name(self) -> str:
        """The ``group/Kind`` that the kind is known by."""
        return f"{self.group}/{self.kind}"

    @property
    def owning(self) -> tuple[str, str]:
        """The kind and group that its objects have as an `Owner`."""
        return self.kind, foreign_group(self.kind, self.group)


Watched: TypeAlias = Resource | CustomResource | EngineResource
"""What may be watched."""


DEVICES = frozenset({Resource.SLICES, Resource.CLAIMS, Resource.CLASSES})
"""What has to be known, all of it, before a device counts as free."""

ADDITIONS = frozenset({Resource.RUNTIME_CLASSES, Resource.LIMIT_RANGES})
"""What adds to the pods that are made."""

CAPACITY = frozenset({Resource.NODES, Resource.PODS}) | DEVICES | ADDITIONS
"""What every cluster is asked for."""

CONTROLLERS = frozenset({Resource.DEPLOYMENTS, Resource.STATEFUL_SETS, Resource.REPLICA_SETS, Resource.JOBS})
"""The objects that replicas belong to."""

SIGNAL_PREFIXES = {Resource.AUTOSCALERS: "hpa", Resource.QUEUED: "kueue"}
"""The first word of the signals of each resource."""

SIGNALS = frozenset(SIGNAL_PREFIXES)
"""The objects that say that a workload is missing replicas."""

_BY_KIND = {resource.kind: resource for resource in CONTROLLERS}


class Owner(NamedTuple):
    """An object that others may belong to; an owner reference never leaves its namespace.

    `group` is that of a `foreign` kind, as of Volcano's Job; of all others the kind tells enough, and it is empty.
    """

    kind: str
    namespace: str
    name: str
    group: str = ""

    def meant_by(self, ref: WorkloadRef) -> bool:
        """Tell whether this is an object that a reference may mean."""
        return ref.may_be(self.ref)

    @property
    def ref(self) -> WorkloadRef:
        """A reference to this, with its group as far as that is known."""
        own = _BY_KIND[self.kind].group if self.kind in _BY_KIND else ""
        return WorkloadRef(namespace=self.namespace, name=self.name, kind=self.kind, group=self.group or own)


def foreign_group(kind: str, group: str) -> str:
    """Return the API group of a kind that is only named like one of Kubernetes' own `CONTROLLERS`; else nothing."""
    return group if group and kind in _BY_KIND and group != _BY_KIND[kind].group else ""


def owner_of(kind: str, namespace: str, name: str, api_version: str) -> Owner:
    """Name an object as references to it do; one that gives no version means Kubernetes' own."""
    return Owner(kind, namespace, name, foreign_group(kind, api_version.rpartition("/")[0]))


def custom_resources(refs: Iterable[WorkloadRef], kinds: Kinds = NO_KINDS) -> frozenset[CustomResource]:
    """Tell of which kinds the objects themselves can be watched: those that are named, and known.

    `kinds` are those that the fleet repository declares. The newest version that is served is looked at; where none is
    known, the API server's own choice. A kind that is named like one of Kubernetes' own is only meant by a reference
    that says its group.
    """
    named = {
        (ref.kind, ref.group)
        for ref in refs
        if ref.kind and (ref.kind not in _BY_KIND or foreign_group(ref.kind, ref.group))
    }
    if not named:
        return frozenset()
    return frozenset(
        CustomResource(kind.group, tuple(reversed(kind.versions)), _plural(kind.kind), kind.kind)
        for kind in {**BUILT_IN, **kinds}.values()
        if not named.isdisjoint({(kind.kind, ""), (kind.kind, kind.group)}) and "." in kind.group
    )


def _plural(kind: str) -> str:
    """Return the name that a kind has in paths, by the rule that the generators of custom resources keep to."""
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in set("aeiou") else f"{name}s"


def needed_resources(refs: Iterable[WorkloadRef], kinds: Kinds = NO_KINDS) -> frozenset[Watched]:
    """Tell what has to be watched to count the replicas of these workloads, and those that they are said to miss.

    Without a kind it may be any. The pods of a Deployment belong to its ReplicaSets; those of a kind that is not known
    here may belong to it through StatefulSets or Jobs. What the objects of such a kind say themselves is a help.
    """
    refs = tuple(refs)
    watched: set[Watched] = {*CAPACITY, *custom_resources(refs, kinds)}
    for ref in refs:
        watched |= SIGNALS | {Resource.TEMPLATES}
        if ref.kind not in _BY_KIND or foreign_group(ref.kind, ref.group):
            watched |= CONTROLLERS
        elif ref.kind == Resource.DEPLOYMENTS.kind:
            watched |= {Resource.DEPLOYMENTS, Resource.REPLICA_SETS}
        else:
            watched.add(_BY_KIND[ref.kind])
    return frozenset(watched)
