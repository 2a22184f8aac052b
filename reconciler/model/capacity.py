"""A cluster as it was observed: its nodes, devices and free resources, and the workloads that run there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from reconciler.errors import Problem
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId
from reconciler.model.policy import EngineName
from reconciler.model.rollout import EngineReport
from reconciler.model.scheduling import (
    NodeTerm,
    PodIdentity,
    PodOnNode,
    PodRules,
    RuntimeClass,
    Taint,
    Toleration,
    UnstatedRequests,
)
from reconciler.model.signal import ReplicaRequest, SignalFreshness
from reconciler.model.units import Quantity, Resources
from reconciler.model.workload import WorkloadRef

AttributeValue: TypeAlias = str | int | bool
CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""What Kubernetes puts before a DeviceClass to name it as a resource (KEP-5004)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKind:
    """What devices have in common, by qualified name (``gpu.nvidia.com/productName``), sorted.

    What tells one device from the next, such as its UUID, is no part of it.
    """

    driver: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    capacity: tuple[tuple[str, Quantity], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStock:
    """Devices of one kind that a node can use: how many there are, and how many of them nobody has.

    `shared` names a stock that several nodes can use: it is there once, not once a node. Devices of one `family` are
    cut from the same hardware: once some of one kind are taken, nobody knows how many of the other kinds are left.
    """

    kind: DeviceKind
    free: int
    total: int
    shared: str = ""
    family: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOption:
    """One way to meet a request: so many devices of a class that meet every selector, which are CEL expressions.

    `every` asks for all such devices of the node, at least one, and all of them free.
    """

    device_class: str
    selectors: tuple[str, ...] = ()
    count: int = 1
    every: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """Devices that one pod claims: the first of the options that can be met."""

    options: tuple[DeviceOption, ...]


DeviceId: TypeAlias = tuple[str, str, str]
"""A device by driver, pool and name: the name is the pool's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaShape:
    """What one replica needs. `group_size` pods of these requests make one replica; each pod must fit on one node.

    A node has to have every label of the selector and to meet one of the terms, where there are any. `devices` are
    asked for by claims (DRA), a device no more than once. `apart` has the pods of a group on a node each. `rules` are
    about the pods beside it, None where it has none; `who` is what rules of other pods see in it, one
    for each template that makes such pods, and nothing where nobody knows. `obstacle` says why nobody can count what it
    needs: then it fits nowhere. `unstated` is what clusters may add to its pods where they are made; None where nobody
    knows, or where it has been added.
    """

    requests: Resources
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[NodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    devices: tuple[DeviceRequest, ...] = ()
    group_size: int = 1
    apart: bool = False
    rules: PodRules | None = None
    obstacle: str = ""
    who: tuple[PodIdentity, ...] = ()
    unstated: UnstatedRequests | None = None

    @property
    def recorded(self) -> ReplicaShape:
        """The same without `who` and `unstated`, which are seen anew for each decision, and nobody writes down."""
        return replace(self, who=(), unstated=None) if self.who or self.unstated else self

    @property
    def likeness(self) -> Hashable:
        """Equal for shapes that ask for the same word for word, and hashable, as amounts and labels are not."""
        return (
            tuple(self.requests.amounts.items()),
            tuple(self.node_selector.items()),
            self.node_terms,
            self.tolerations,
            self.devices,
            self.group_size,
            self.apart,
            self.rules,
            self.obstacle,
            self.unstated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: what is free on it (allocatable less used, never negative) and its own labels and taints.

    `allocatable` is what it has for pods altogether, as far as anybody says; `devices` are those that claims can have
    there. `pods` are those on it, each counted once for the like of it; None where nobody says.
    """

    name: str
    free: Resources
    allocatable: Resources = field(default_factory=Resources)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    devices: tuple[DeviceStock, ...] = ()
    pods: tuple[PodOnNode, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedNode:
    """A node that no pod can go to, with all its labels: one that is not `ready`, or is cordoned or about to go.

    `pods` are those on it; None where nobody says.
    """

    name: str
    allocatable: Resources
    ready: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    pods: tuple[PodOnNode, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one kind. Labels and taints hold for each node, beside the node's own.

    Nodes that are not ready or are cordoned are no part of it: nothing there is free.
    """

    name: str
    nodes: tuple[Node, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingReplicas:
    """Replicas that have been missing since a moment, and why, where the source knows it.

    Without a `signal` they are pods that the scheduler has found no node for, which is all that an observation tells
    of. In a demand they may be what another signal asks for; what was `planned` beforehand waits for no window. They
    may be of one `group` of their workload's, as pods say.
    """

    replicas: int
    since: datetime
    cause: str = ""
    signal: str = ""
    planned: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadObservation:
    """One workload as its primary cluster reports it. `asks` are the signals that the cluster gives of it.

    `deficit_since` is the moment since which no more than today's waiting replicas have been missing, where the source
    knows it; None leaves that to the daemon's own record. `group` is known of pods that say that they run in groups.
    """

    ref: WorkloadRef
    wanted: int
    running: int
    waiting: tuple[MissingReplicas, ...] = ()
    deficit_since: datetime | None = None
    shape: ReplicaShape | None = None
    asks: tuple[ReplicaRequest, ...] = ()
    group: ObservedGroup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPods:
    """Pods of a placement that are there and have no node yet; `helping` tells that none asks for a device.

    `shape` is what one of them needs, None where nobody says. `since` is when the first of them was found to fit on no
    node, None where that has happened to none of them.
    """

    replicas: int
    shape: ReplicaShape | None
    helping: bool = False
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NonGpuPods:
    """Pods of a placement that ask for no device, among those that have a node and those that serve.

    Where a replica asks for some they are none, as a chart's router is not. Who looks at pods does not know that.
    """

    bound: int = 0
    ready: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObservation:
    """One cluster at one moment, and what of our placements is there, by name.

    `closed` are the nodes that take no pods, which are in no pool. `bound` counts the replicas that have a node,
    `ready` those that serve; a placement that is not in `ready` has no pod there, or nobody looked. Of both, `helpers`
    counts what may be none. `homeless` are the replicas that wait for a node, and `troubles` says in a few words what
    pods wait for. `unused` tells since when no GPU of a placement has been used, where it is so. `reports` is what
    engines say of placements, keyed by directory, where the observation tells. `device_classes` are its DeviceClasses
    by name, each with the CEL expressions that a device has to meet. `runtime_classes` are its RuntimeClasses by name,
    and `limit_ranges` is what a container that requests nothing is given, by namespace; None where nobody says.
    `stale` are the kinds of signals that do not answer right now; `asks` of workloads hold their last answers.
    """

    cluster: ClusterName
    observed_at: datetime
    healthy: bool = True
    message: str = ""
    pools: tuple[Pool, ...] = ()
    closed: tuple[ClosedNode, ...] = ()
    workloads: tuple[WorkloadObservation, ...] = ()
    bound: Mapping[PlacementName, int] = field(default_factory=dict)
    ready: Mapping[PlacementName, int] = field(default_factory=dict)
    helpers: Mapping[PlacementName, NonGpuPods] = field(default_factory=dict)
    homeless: Mapping[PlacementName, PendingPods] = field(default_factory=dict)
    troubles: Mapping[PlacementName, str] = field(default_factory=dict)
    unused: Mapping[PlacementName, datetime] = field(default_factory=dict)
    reports: Mapping[str, EngineReport] = field(default_factory=dict)
    device_classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runtime_classes: Mapping[str, RuntimeClass] | None = None
    limit_ranges: Mapping[str, Resources] | None = field(default_factory=dict)
    stale: tuple[SignalFreshness, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that was seen at one moment, old or new; how old is too old is for `core` to say.

    `asks` are what sources outside the clusters say of workloads, and `freshness` when each signal last answered.
    `reports` is what engines say, keyed by the placement's directory (``clusters/worker-2/vllm-7f3a90c1``); the same
    object for as long as nothing in it has changed, so that who looks at it can tell. `reporting` are the clusters
    with the engine whose objects are all known right now, so that no report of a placement means that this engine does
    not have it: listed whole and watched since, or known to have no such API; not one that refuses us or cannot be
    reached. `nameless` are clusters that cannot be watched since nothing says how, with what to try instead.
    `reached_by` says of the clusters that are watched how, as a Cluster would. `helm` tells whether charts can be
    rendered here. `problems` are observations that could not be read.
    """

    clusters: Mapping[ClusterName, ClusterObservation] = field(default_factory=dict)
    asks: Mapping[WorkloadId, tuple[ReplicaRequest, ...]] = field(default_factory=dict)
    freshness: Mapping[WorkloadId, tuple[SignalFreshness, ...]] = field(default_factory=dict)
    reports: Mapping[str, EngineReport] = field(default_factory=dict)
    reporting: Mapping[ClusterName, EngineName] = field(default_factory=dict)
    nameless: Mapping[ClusterName, str] = field(default_factory=dict)
    reached_by: Mapping[ClusterName, str] = field(default_factory=dict)
    helm: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """One group of a workload: so many pods of each shape, the `size` it is to have, and the `number` of groups.

    It is the one of which there is most. Where nothing tells the groups apart, `number` is 0 and all pods of the
    workload are one. A `size` of 0 says that nobody tells, and so does a `least` of 0: how many of its pods have to be
    there before any of them runs.
    """

    pods: tuple[tuple[ReplicaShape, int], ...]
    size: int = 0
    number: int = 0
    least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUnit:
    """What one replica is that goes whole and of which only the primary tells: so many pods of each shape.

    They make so many `groups` of an object that is called `name`; 0 where nothing tells its groups apart. `enough` of
    them run without the others, 0 where nobody says so. Where nobody knows what a replica is, there are no pods, and
    `unknown` says what to do about it.
    """

    name: str
    pods: tuple[tuple[ReplicaShape, int], ...] = ()
    groups: int = 0
    enough: int = 0
    unknown: str = ""
