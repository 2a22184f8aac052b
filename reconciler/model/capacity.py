"""A cluster as it was observed: its nodes, devices and free resources, and the workloads that run there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from reconciler.errors import Problem
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId
from reconciler.model.kubernetes.admission import LimitRangeItem, PodAdmission, ResourceQuota
from reconciler.model.kubernetes.queues import KueueQueues
from reconciler.model.kubernetes.requirements import Requirements
from reconciler.model.kubernetes.scheduling import (
    PodIdentity,
    PodOnNode,
    PodRules,
    RuntimeClass,
    Taint,
    Toleration,
    UnstatedRequests,
)
from reconciler.model.manifest_source import DeployedSources, RepositoryContents
from reconciler.model.policy import EngineName
from reconciler.model.rollout import EngineReport
from reconciler.model.signal import ReplicaRequest, SignalFreshness
from reconciler.model.units import Quantity, Resources
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import ContainerSummary, Json, WorkloadRef

AttributeValue: TypeAlias = str | int | bool
CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Prefix of a DeviceClass as a resource name in Kubernetes (KEP-5004)."""
WHOLE = Fraction(1)
"""The share of a whole GPU."""


class SliceKind(StrEnum):
    """In which way several pods have parts of one GPU, each part counted as a device."""

    TIME = "time slice"
    MPS = "MPS share"
    MIG = "MIG slice"
    PARTITION = "partition"
    OTHER = "slice"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKind:
    """Properties that devices have in common.

    Properties of single devices, such as the UUID, are left out.
    """

    driver: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    """By qualified name (``gpu.nvidia.com/productName``), sorted."""
    capacity: tuple[tuple[str, Quantity], ...] = ()
    """By qualified name, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStock:
    """Devices of one kind that a node can use."""

    kind: DeviceKind
    free: int
    """Devices without a holder."""
    total: int
    shared: str = ""
    """The name of a stock that several nodes can use, and which is counted once; empty for a node's own."""
    family: str = ""
    """Hardware that several kinds of devices are cut from; once devices of one kind are taken, the number left of the
    others is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOption:
    """A way to meet a request: devices of a class that meet every selector."""

    device_class: str
    selectors: tuple[str, ...] = ()
    """CEL expressions."""
    count: int = 1
    every: bool = False
    """Whether all such devices of the node are requested, at least one, and all of them free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """Devices that one pod claims."""

    options: tuple[DeviceOption, ...]
    """Alternatives; the first that can be met holds."""
    resource: str = ""
    """The extended resource by which the devices are requested: a node that has any of it gives those instead. Empty
    for a claim."""


DeviceId: TypeAlias = tuple[str, str, str]
"""A device by driver, pool and name within the pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaShape:
    """Requirements of one replica, which is `group_size` equal pods."""

    requests: Resources
    """Requests of one pod, all of which have to fit on one node."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that a node must have."""
    node_terms: tuple[Requirements, ...] = ()
    """Node affinity terms, at least one of which a node must meet; empty for no such condition."""
    tolerations: tuple[Toleration, ...] = ()
    devices: tuple[DeviceRequest, ...] = ()
    """Devices that a pod claims (DRA), each device at most once."""
    group_size: int = 1
    """Pods of one replica."""
    apart: bool = False
    """Whether the pods of a replica need a node each."""
    rules: PodRules | None = None
    """Pod affinity, anti-affinity, topology spread and host ports; None without any."""
    obstacle: str = ""
    """Reason that the requirements cannot be counted, so that the replica fits nowhere; empty if they can."""
    who: tuple[PodIdentity, ...] = ()
    """
    The properties that rules of other pods match, one entry for each template that makes such pods; empty if unknown.
    """
    unstated: UnstatedRequests | None = None
    """Requests that the cluster's admission may add; None if unknown, or already added."""
    admission: tuple[PodAdmission, ...] = ()
    """What quotas and LimitRanges look at, one entry for each template that makes such pods; empty if unknown."""
    gpu_share: Fraction = WHOLE
    """The part of a GPU that each GPU of its requests is, on the cluster that it was placed on: `WHOLE` unless that
    gives out slices of known size. No requirement, but what is paid for."""
    likeness: Hashable = field(init=False, repr=False, compare=False)
    """A hashable value that is equal for shapes with the same requirements."""

    def __post_init__(self) -> None:
        """Make the likeness, which decisions ask for again and again."""
        likeness = (
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
        object.__setattr__(self, "likeness", likeness)

    @property
    def recorded(self) -> ReplicaShape:
        """The shape without `who`, `unstated`, `admission` and the labels that may be added to its pods.

        Those are read for each decision and never recorded.
        """
        rules = self.rules
        if rules is not None and rules.added:
            return replace(self, rules=replace(rules, added=()), who=(), unstated=None, admission=())
        known = self.who or self.unstated or self.admission
        return replace(self, who=(), unstated=None, admission=()) if known else self


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSlices:
    """The GPUs that a replica may get on a cluster: slices, and where it is `mixed` whole ones too."""

    kind: SliceKind
    share: Fraction
    """The largest part of a GPU that a slice is."""
    mixed: bool = False

    @property
    def paid_share(self) -> Fraction:
        """The part of a GPU that a replica pays for, for each that it asks for: at most a whole one."""
        return WHOLE if self.mixed else self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node that takes pods."""

    name: str
    free: Resources
    """Allocatable less used, never negative."""
    allocatable: Resources = field(default_factory=Resources)
    """The node's allocatable resources, as far as known."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The node's own labels, without those of its pool."""
    taints: tuple[Taint, ...] = ()
    """The node's own taints, without those of its pool."""
    devices: tuple[DeviceStock, ...] = ()
    """Devices that claims can get there."""
    pods: tuple[PodOnNode, ...] | None = None
    """Pods on the node, equal ones once; None where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedNode:
    """A node that takes no pods: not ready, cordoned or about to be deleted."""

    name: str
    allocatable: Resources
    ready: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    """All labels, those of its pool included."""
    pods: tuple[PodOnNode, ...] | None = None
    """Pods on the node; None where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one kind, without closed ones."""

    name: str
    nodes: tuple[Node, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of each node, beside its own."""
    taints: tuple[Taint, ...] = ()
    """Taints of each node, beside its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A NodePool of Karpenter: how many nodes may be launched for it."""

    limits: Resources = field(default_factory=Resources)
    """Most of a resource on all of its nodes; one that is not named has no limit. Nodes are the resource ``nodes``."""
    used: Resources = field(default_factory=Resources)
    """The capacity of the nodes that have been launched for it, with their number as ``nodes``."""
    obstacle: str = ""
    """Why no node is launched for it; empty if nodes may be."""
    taints: tuple[Taint, ...] = ()
    """Taints of its nodes, without those that are taken off when a node has started."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that its template gives its nodes."""
    requirements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The values, sorted, of labels of which its nodes have one of several; other labels may have any."""

    @property
    def node_labels(self) -> Mapping[str, str]:
        """Labels that each of its nodes has."""
        single = {key: values[0] for key, values in self.requirements.items() if len(values) == 1}
        return {**single, **self.labels}


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingReplicas:
    """Replicas that have been missing since one moment."""

    replicas: int
    since: datetime
    cause: str = ""
    """The reason, where the source knows it."""
    signal: str = ""
    """The label of another signal that requests them; empty for unschedulable pods, the only ones in an observation."""
    planned: bool = False
    """Whether the replicas were planned beforehand, and so wait for no scale-up window."""
    spare: bool = False
    """Whether they are wanted before they are missing: they come after all that are, and evict nobody."""
    group: str = ""
    """The group of the workload that the pods belong to, by their labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedReplicas:
    """Pods of a workload that wait for something else than room since one moment; they are no demand."""

    replicas: int
    since: datetime
    reason: WaitReason
    cause: str
    """What they wait for, with the component's words."""
    way_out: str = ""
    """What ends the wait; empty where it ends by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadObservation:
    """A workload as its primary cluster reports it."""

    ref: WorkloadRef
    wanted: int
    running: int
    waiting: tuple[MissingReplicas, ...] = ()
    blocked: tuple[BlockedReplicas, ...] = ()
    """Those that no room would help, in the order in which they began to wait."""
    deficit_since: datetime | None = None
    """Since when at most the replicas in `waiting` have been missing, where the source knows it; None leaves that to
    the daemon's own record."""
    shape: ReplicaShape | None = None
    asks: tuple[ReplicaRequest, ...] = ()
    """Signals of the cluster about the workload."""
    group: ObservedGroup | None = None
    """Known for pods with group labels."""
    containers: tuple[ContainerSummary, ...] = ()
    """Containers of its pod template, sorted by name; empty where unknown."""
    release: str = ""
    """The object's Helm release, ``namespace/name``; empty if none, or if unknown."""
    held: bool = False
    """Whether it is suspended, queued or gated, so that none of its pods gets a node before that ends."""
    started: str = ""
    """Why it runs, or begins, though no pod of it may ever be on this cluster, as of a Workload that MultiKueue has
    dispatched; empty where nothing says so."""
    claimed: str = ""
    """Why it may soon begin, here or elsewhere, by what holds it: no copy of it is begun then, and one that is there
    goes on. Empty where nothing says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPods:
    """Pods of a placement without a node."""

    replicas: int
    shape: ReplicaShape | None
    """Requirements of one replica; None if unknown."""
    helping: bool = False
    """Whether none of these pods requests a device."""
    since: datetime | None = None
    """When the first of them was found unschedulable, or refused; None while none has been."""
    uncreated: int = 0
    """Those of `replicas` that do not exist: the cluster refuses them, or they are made once a queue admits them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonGpuPods:
    """Pods of a placement that request no device, such as a chart's router.

    Where replicas request devices, these pods are no replicas. An observation counts them without knowing the replicas'
    shape.
    """

    bound: int = 0
    """Pods with a node."""
    ready: int = 0
    """Ready pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SucceededPods:
    """The pods of a placement that have succeeded, or its objects that are complete."""

    pods: int | None
    """Their number; None where the observation says that the run of the placement is complete."""
    at: datetime
    """When the last of them finished, or the last of the objects was complete."""
    objects: int = 0
    """Objects whose status says that their run is complete, which other pods do not matter for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedObject:
    """An object of a placement whose status says that its run has failed."""

    message: str
    """The object and what its status says, in one line."""
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedObject:
    """An object that a template is made from, without what belongs to its own cluster."""

    manifest: Mapping[str, Json]
    """Where it is refused, only apiVersion, kind, and its name and namespace."""
    refused: str = ""
    """Why it may go nowhere; empty where it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadKind:
    """A kind whose objects in a cluster cannot be read now, as without the right to; those seen last stay."""

    kind: str
    group: str
    title: str
    """The name of its resource, as kubectl has it: ``trainjobs.trainer.kubeflow.org``."""
    why: str
    """Why, and the way out where there is one."""
    at: datetime | None
    """When its objects were last up to date; None where they never were, so that none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPod:
    """A pod of a placement that has a node and GPUs."""

    namespace: str
    name: str
    gpus: int
    """GPUs, or slices of GPUs, that it requests; 0 where it claims devices or shares a GPU, so that it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObservation:
    """A cluster at one moment, with the pods of placements by placement name."""

    cluster: ClusterName
    observed_at: datetime
    """The moment up to which everything was seen."""
    healthy: bool = True
    message: str = ""
    pools: tuple[Pool, ...] = ()
    closed: tuple[ClosedNode, ...] = ()
    """Nodes that accept no pods; no pool counts them."""
    workloads: tuple[WorkloadObservation, ...] = ()
    objects: tuple[ObservedObject, ...] = ()
    """Objects that templates are made from; the same value while nothing in them changes."""
    others: tuple[WorkloadRef, ...] = ()
    """Objects in the namespaces of followed workloads that were not found."""
    unplaced: tuple[WorkloadRef, ...] = ()
    """Workloads in the cluster that no placement has made, as far as they are known, sorted."""
    bound: Mapping[PlacementName, int] = field(default_factory=dict)
    """Pods with a node."""
    ready: Mapping[PlacementName, int] = field(default_factory=dict)
    """Ready pods; without an entry there is no pod, or none was observed."""
    non_gpu_pods: Mapping[PlacementName, NonGpuPods] = field(default_factory=dict)
    """Pods in `bound` and `ready` that may be no replicas."""
    pending_pods: Mapping[PlacementName, PendingPods] = field(default_factory=dict)
    """Pods without a node."""
    waiting_reasons: Mapping[PlacementName, str] = field(default_factory=dict)
    """Reason that pods wait, in a few words."""
    unadmitted: Mapping[PlacementName, str] = field(default_factory=dict)
    """Placements whose pods a queue does not let start, or has ended, with its words, which `waiting_reasons` has too;
    the same mapping while nothing in it changes."""
    evicted: Mapping[PlacementName, str] = field(default_factory=dict)
    """Those of `unadmitted` whose pods a queue has ended, and has not let start again since; with its words."""
    refused: Mapping[PlacementName, str] = field(default_factory=dict)
    """Placements some of whose pods the cluster does not let anybody create, and why, which `waiting_reasons` has too;
    the same mapping while nothing in it changes."""
    gpu_pods: Mapping[PlacementName, tuple[GpuPod, ...]] = field(default_factory=dict)
    """Pods with a node and GPUs, from which others see whether those are used."""
    unused: Mapping[PlacementName, datetime] = field(default_factory=dict)
    """Since when no GPU of a placement has been used, while that is so."""
    succeeded: Mapping[PlacementName, SucceededPods] = field(default_factory=dict)
    """Placements of which no pod is left that has not finished, and some have succeeded, or that have complete objects.
    """
    failed: Mapping[PlacementName, FailedObject] = field(default_factory=dict)
    """Placements with an object whose status says that its run has failed, where the object itself is watched."""
    unfinished: AbstractSet[PlacementName] = frozenset()
    """Placements with an object that is watched, and whose status does not say that its run is over."""
    reports: Mapping[str, EngineReport] = field(default_factory=dict)
    """Reports of engines by directory, where the observation has any."""
    api_versions: AbstractSet[str] | None = None
    """The API versions that its API server serves, as ``batch/v1``; None where unknown."""
    device_classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """DeviceClasses by name, with the CEL expressions that their devices meet."""
    extended_resources: Mapping[str, str] = field(default_factory=dict)
    """The DeviceClass behind each extended resource that pods request in place of a claim, where a node has no device
    plugin for it."""
    runtime_classes: Mapping[str, RuntimeClass] | None = None
    """RuntimeClasses by name; None where unknown."""
    limit_ranges: Mapping[str, Resources] | None = field(default_factory=dict)
    """Default requests of a container by namespace; None where unknown."""
    limit_range_items: Mapping[str, tuple[LimitRangeItem, ...]] = field(default_factory=dict)
    """Default limits of a container, and bounds of containers and pods, by namespace; none where `limit_ranges` is
    None."""
    quotas: Mapping[str, tuple[ResourceQuota, ...]] | None = field(default_factory=dict)
    """ResourceQuotas by namespace, the same value while nothing in them changes; None where unknown."""
    priority_class: str | None = ""
    """The PriorityClass of pods that name none; empty for none, None where unknown."""
    node_pools: Mapping[str, NodePool] | None = None
    """Karpenter's NodePools by name, the same value while nothing in them changes; None where unknown."""
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    """The labels of all namespaces by name, the same value while nothing in them changes; None where unknown."""
    queues: KueueQueues | None = None
    """Kueue's queues, the same value while nothing in them changes; None where unknown, or without Kueue."""
    reserved: Mapping[PlacementName, int] = field(default_factory=dict)
    """Pods of placements that Kueue has given quota, and which `queues` count."""
    stale: tuple[SignalFreshness, ...] = ()
    """Signals of the cluster that do not answer now; `asks` of workloads hold their last answers."""
    unread: tuple[UnreadKind, ...] = ()
    """Kinds of workloads, and of what their pods follow from, whose objects are unknown now."""
    changed_at: datetime | None = None
    """When the newest of its changes was heard, where that is after `observed_at`: one watch may be behind others."""

    @property
    def has_pod_bounds(self) -> bool:
        """Whether quotas or LimitRanges may refuse pods or keep them waiting, or may be there unseen."""
        return bool(self.quotas or self.limit_range_items) or self.quotas is None or self.queues is not None


class ObservationPlace(NamedTuple):
    """Where the observation of a cluster was read."""

    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All observations at one moment; the age at which they are stale is for `core` to decide."""

    clusters: Mapping[ClusterName, ClusterObservation] = field(default_factory=dict)
    asks: Mapping[WorkloadId, tuple[ReplicaRequest, ...]] = field(default_factory=dict)
    """Requests of sources outside the clusters, by workload."""
    freshness: Mapping[WorkloadId, tuple[SignalFreshness, ...]] = field(default_factory=dict)
    """When each signal of a workload last answered."""
    reports: Mapping[str, EngineReport] = field(default_factory=dict)
    """Reports of engines by the placement's directory (``clusters/worker-2/vllm-7f3a90c1``); the same object while
    nothing in it changes, so that readers notice changes by identity."""
    reporting: Mapping[ClusterName, EngineName] = field(default_factory=dict)
    """Clusters with the engine whose objects are all known, so that a placement without a report is unknown to the
    engine: its API was listed and is watched, or does not exist; never one that refuses access or is out of reach."""
    sources: RepositoryContents = field(default_factory=dict)
    """What was read from other repositories that templates are made from."""
    applications: DeployedSources = field(default_factory=dict)
    """What Argo CD's Applications that templates are made from have deployed; without an entry it is unknown."""
    nameless: Mapping[ClusterName, str] = field(default_factory=dict)
    """Clusters that cannot be watched for lack of a connection, with a hint."""
    reached_by: Mapping[ClusterName, str] = field(default_factory=dict)
    """Connections of watched clusters, written as in a Cluster."""
    helm: bool = False
    """Whether charts can be rendered here."""
    places: Mapping[ClusterName, ObservationPlace] = field(default_factory=dict, compare=False)
    """The files that `clusters` were read from, where they were."""
    problems: tuple[Problem, ...] = ()
    """Observations that could not be read."""

    @property
    def limit_ranges(self) -> bool:
        """Whether any cluster has LimitRanges."""
        return any(observation.limit_ranges for observation in self.clusters.values())

    @property
    def has_pod_bounds(self) -> bool:
        """Whether quotas or LimitRanges of any cluster may refuse pods."""
        return any(observation.has_pod_bounds for observation in self.clusters.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """The most frequent group of a workload's pods."""

    pods: tuple[tuple[ReplicaShape, int], ...]
    """Its pods by shape; all pods of the workload where no label identifies groups."""
    size: int = 0
    """Pods that the group is to have; 0 where unknown."""
    number: int = 0
    """Groups of the workload; 0 where no label identifies them."""
    least: int = 0
    """Pods that have to exist before any of them runs; 0 where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUnit:
    """A replica of a gang that only the primary shows, as of a chart."""

    name: str
    """The object of the groups."""
    pods: tuple[tuple[ReplicaShape, int], ...] = ()
    """Its pods by shape; empty where the replica is unknown."""
    groups: int = 0
    """Groups of the object that the pods make up; 0 where no label identifies them."""
    enough: int = 0
    """Pods that run without the others; 0 where unknown."""
    unknown: str = ""
    """Why the replica is unknown, and the remedy; empty where it is known."""
