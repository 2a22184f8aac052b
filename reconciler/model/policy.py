"""The fleet repository as values: clusters, tenants and burst policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from reconciler.errors import Problem
from reconciler.model.approval import ApprovalRule
from reconciler.model.budget import Budget
from reconciler.model.cluster import PriceWindow, Provides, ScalableNodes, SharedNetworking, SlurmPartition, SpotPrice
from reconciler.model.events.notification import Notification
from reconciler.model.gpr import GprBinding, GprTemplate, WorkspaceLimits
from reconciler.model.ids import ClusterName, CommitId, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, FieldValidation, ObjectSchemas
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.manifest_source import SourceKey
from reconciler.model.request import Request
from reconciler.model.score import ScorerWeight
from reconciler.model.signal import Signal
from reconciler.model.units import Resources
from reconciler.model.workload import WorkloadTemplate


class EngineName(StrEnum):
    """The GitOps engine that applies the output branch in a cluster."""

    ARGOCD = "argocd"
    FLUX = "flux"
    MANIFESTS = "manifests"


class PodSecurity(StrEnum):
    """A level of Kubernetes' Pod Security Standards, which the pods of a workspace may not go beyond."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Availability(StrEnum):
    """Whether a cluster takes bursts: Active takes them, Cordoned takes no new ones, Draining also gives up its own."""

    ACTIVE = "Active"
    CORDONED = "Cordoned"
    DRAINING = "Draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How the daemon reaches a cluster's API server; one field is set.

    Addresses and credentials belong to the daemon, since the fleet repository is shared.
    """

    context: str = ""
    """A context of the daemon's kubeconfig."""
    in_cluster: bool = False
    """Whether the daemon runs as a pod of the cluster."""
    argocd: str = ""
    """The name of a cluster in Argo CD, whose login is used."""

    def __str__(self) -> str:
        """Write it as a Cluster file does."""
        if self.argocd:
            return "argocd"
        return "inCluster" if self.in_cluster else f"context {self.context}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoCD:
    """The namespace and project of Argo CD's objects."""

    namespace: str = "argocd"
    project: str = "overspill"
    connection: Connection | None = None
    """The cluster of Argo CD; without it the objects are not watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flux:
    """The namespace of the Flux objects of placements."""

    namespace: str = "overspill"
    interval: timedelta = timedelta(minutes=1)
    """How often Flux polls the remote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Settings of all clusters. A fleet repository has at most one; without it the defaults hold."""

    name: str = "fleet"
    repo_url: str = ""
    engine: EngineName = EngineName.ARGOCD
    observation_max_age: timedelta = timedelta(minutes=2)
    worker_lost_timeout: timedelta = timedelta(minutes=15)
    """How long a gang stays on a lost cluster."""
    ignore: tuple[str, ...] = ()
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of the files that a kind is read from, by kind; a kind without an entry has its default."""
    argocd: ArgoCD = ArgoCD()
    flux: Flux = Flux()
    branch_per_cluster: bool = False
    """Whether each cluster's directory is also published on its own branch (`model.tree`)."""
    field_validation: FieldValidation = FieldValidation.STRICT
    source_repositories: tuple[str, ...] = ()
    """Other repositories that templates may be made from, by URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster."""

    name: ClusterName
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    engine: EngineName = EngineName.ARGOCD
    availability: Availability = Availability.ACTIVE
    price_per_gpu_hour: float | None = None
    """In dollars; None where unknown."""
    prices: tuple[PriceWindow, ...] = ()
    """Other prices by time; the first whose window is open holds."""
    spot: SpotPrice | None = None
    """None where spot nodes have the price of the others."""
    connection: Connection | None = None
    """None for the context of the cluster's name in the daemon's kubeconfig."""
    time_to_ready: timedelta | None = None
    """Time from a commit to a ready pod, where it is not measured; None where unknown."""
    autoscaling: tuple[ScalableNodes, ...] = ()
    """Nodes that the cluster's autoscaler may add, which cannot be observed."""
    provides: Provides = field(default_factory=dict)
    """Objects that placed objects may refer to, which cannot be observed either."""
    slurm: SlurmPartition | None = None
    """The partition of Slurm that it is; None for a Kubernetes cluster. The engine of a partition means nothing."""

    @property
    def has_node_pools(self) -> bool:
        """Whether Karpenter launches nodes of its autoscaler, so that NodePools bound them."""
        return any(nodes.node_pool for nodes in self.autoscaling)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandJobs:
    """Permission to run commands as Jobs."""

    image: str
    """Pinned by digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A tenant."""

    name: WorkspaceName
    primary: ClusterName
    """The cluster of its workloads; bursts never go there."""
    clusters: tuple[ClusterName, ...]
    """Clusters that it may burst to, in order."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that it may use; empty for any."""
    paths: tuple[str, ...] = ()
    """Patterns of the workspace's own files: they hold its objects alone, and all of them. Empty for none."""
    allow_unpinned_charts: bool = False
    allow_unknown_needs: bool = False
    """Whether requests are placed although the needs of their pods are unknown; unknown needs count as nothing."""
    allowed_kinds: tuple[str, ...] = ()
    """Kinds as ``group/Kind`` (``/Namespace`` for the core group) that its manifests may contain although they are
    refused by default."""
    pod_security: PodSecurity = PodSecurity.BASELINE
    command_jobs: CommandJobs | None = None
    """None refuses commands that make no plain object."""
    requests_on_primary: bool = True
    """Whether requests may go to the primary."""
    shared_networking: SharedNetworking | None = None
    """None where Services of placements are not exported."""
    weight: int = 1
    """Part of the room that the tenant gets beside others, where it is short."""
    quota: Resources = field(default_factory=Resources)
    """What the tenant has a right to; others may borrow what it does not use."""
    budget: Budget | None = None
    """None for no bound."""

    @property
    def everywhere(self) -> tuple[ClusterName, ...]:
        """All clusters of the tenant, the primary first; `clusters` may name it as well."""
        return self.primary, *self.clusters

    @property
    def destinations(self) -> tuple[ClusterName, ...]:
        """The clusters that a placement of the tenant may go to, in the order of the file."""
        if self.requests_on_primary:
            return self.clusters
        return tuple(name for name in self.clusters if name != self.primary)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPreference:
    """An entry of a policy's order: a cluster by name, or the clusters with these labels.

    The numbers are for each cluster.
    """

    name: ClusterName | None = None
    match_labels: Mapping[str, str] = field(default_factory=dict)
    max_replicas: int | None = None
    min_replicas: int = 0
    """Replicas that it gets before others get more."""
    weight: int = 1
    """Share of further replicas; 0 for none."""


SERVING_LOST_TIMEOUT = timedelta(minutes=5)
"""The time after which replicas that run each for themselves leave a lost cluster, as pods leave a lost node."""


class Renewal(StrEnum):
    """Whether a burst whose time is nearly over is extended."""

    NEVER = "Never"
    WHILE_NEEDED = "WhileNeeded"


class StrategyName(StrEnum):
    """Strategies that distribute replicas over the clusters of a policy."""

    ORDERED = "Ordered"
    WEIGHTED = "Weighted"
    BALANCED = "Balanced"
    AGGREGATED = "Aggregated"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyTraits:
    """What a strategy divides by."""

    fills_in_order: bool
    """Whether it fills each cluster before the next one gets any, so that tiers mean nothing to it."""
    uses_weight: bool
    """Whether it divides by the weights of clusters, beyond leaving out those of 0."""
    shrinks_by_room: bool
    """Whether replicas are given back by the room that their clusters have left."""


STRATEGIES: Mapping[StrategyName, StrategyTraits] = {
    StrategyName.ORDERED: StrategyTraits(fills_in_order=True, uses_weight=False, shrinks_by_room=False),
    StrategyName.WEIGHTED: StrategyTraits(fills_in_order=False, uses_weight=True, shrinks_by_room=False),
    StrategyName.BALANCED: StrategyTraits(fills_in_order=False, uses_weight=False, shrinks_by_room=True),
    StrategyName.AGGREGATED: StrategyTraits(fills_in_order=False, uses_weight=False, shrinks_by_room=False),
}
"""The division itself is in `core/decide/distribution`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadConstraint:
    """Bounds on the values of a cluster label with replicas of one workload."""

    label: str
    min_groups: int = 0
    max_groups: int | None = None
    place: int | None = None
    """Its index in `spreadConstraints` of its file; None for the short form, `spreadConstraint`."""

    @property
    def field(self) -> str:
        """Its field in the file, below `spec.distribution`."""
        return "spreadConstraint" if self.place is None else f"spreadConstraints[{self.place}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """The distribution of a workload's replicas over clusters and over values of cluster labels."""

    strategy: StrategyName = StrategyName.ORDERED
    min_clusters: int = 0
    """Clusters with any replicas."""
    max_clusters: int | None = None
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    """All of them hold at the same time; each has a label of its own."""
    tiers: bool = False
    """Whether each entry of the policy's clusters is filled before the next one gets any."""

    @property
    def traits(self) -> StrategyTraits:
        """What its strategy divides by."""
        return STRATEGIES[self.strategy]

    @property
    def is_strategy_alone(self) -> bool:
        """Whether it bounds nothing and has no tiers, so that it may divide within the subsets of a WorkloadSpread."""
        return self == Distribution(strategy=self.strategy)

    @property
    def is_bounded(self) -> bool:
        """Whether the number of clusters, or of values of a label, has any bound."""
        return self.max_clusters is not None or self.min_clusters > 0 or bool(self.spread_constraints)

    @property
    def is_capped(self) -> bool:
        """Whether the number of clusters, or of values of a label, has an upper bound."""
        return self.max_clusters is not None or any(bound.max_groups is not None for bound in self.spread_constraints)

    @property
    def spreads(self) -> bool:
        """Whether more than one cluster, or value of a label, has to have replicas."""
        return self.min_clusters > 1 or any(bound.min_groups > 1 for bound in self.spread_constraints)


class SetDivision(StrEnum):
    """Whether one cluster has all groups of a set, or they are divided over several, each whole."""

    WHOLE = "Whole"
    BY_GROUP = "ByGroup"


class TopologyMode(StrEnum):
    """Whether a cluster has to hold a group in one topology domain, or comes first where it does."""

    REQUIRED = "Required"
    PREFERRED = "Preferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTopology:
    """The topology domain that the pods of each group share."""

    key: str
    """The label of nodes; all nodes with the same value are a domain."""
    mode: TopologyMode = TopologyMode.REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBudget:
    """How often the replicas of a workload may move between clusters because they cannot run where they are."""

    most_per_hour: int = 6
    back_after: timedelta = timedelta(minutes=10)
    """The time after a move in which the workload does not move back to the cluster that it left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstPolicy:
    """When a workload may burst, where to, how far, and for how long."""

    name: str
    workspaces: tuple[WorkspaceName, ...] = ()
    """Empty for all."""
    templates: tuple[str, ...] = ()
    """Empty for all."""
    priority: int = 0
    weight: int = 1
    """Part of the room that each workload gets beside others of its priority and workspace."""
    candidates: tuple[ClusterPreference, ...] = ()
    """In order of preference; empty for every cluster of the workspace by name."""
    require_labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    max_replicas: int | None = None
    """Bound of all placements of one workload together."""
    scale_up_window: timedelta = timedelta(seconds=30)
    scale_down_window: timedelta = timedelta(minutes=5)
    cool_down: timedelta = timedelta(minutes=5)
    hold: timedelta = timedelta(hours=1)
    in_flight_timeout: timedelta = timedelta(minutes=10)
    rollout_timeout: timedelta = timedelta(minutes=15)
    worker_lost_timeout: timedelta | None = None
    """Time after which its bursts leave a lost cluster. None for the Fleet's for gangs, and for
    `SERVING_LOST_TIMEOUT` for all others."""
    moves: MoveBudget = MoveBudget()
    default_duration: timedelta = timedelta(hours=1)
    max_duration: timedelta | None = None
    """Bound of a placement's whole life, with its renewals."""
    renew: Renewal | None = None
    """None where nobody wrote it: what runs once is renewed, and nothing else (`ledger.lifecycle.renewal`)."""
    headroom: int = 0
    """Spare replicas that are wanted elsewhere as long as any is missing."""
    headroom_duration: timedelta | None = None
    """How long they are wanted after a replica last began to be missing; None for as long as any is."""
    scoring: tuple[ScorerWeight, ...] = ()
    """The scorers that order `candidates`; empty for the order in which they are written."""
    topology: GroupTopology | None = None
    """The topology domain of each group of pods; None for none."""
    budget: Budget | None = None
    """Bound of the bursts of all workloads of the policy together; None for none."""
    approval: ApprovalRule | None = None
    """Bursts that wait for a person's yes; None for none."""
    signals: tuple[Signal, ...] = ()
    """Signals beside those that clusters report."""
    to_primary: bool = False
    """Whether the primary is a candidate like the others, as it is for requests."""
    distribution: Distribution = Distribution()
    sets: SetDivision = SetDivision.WHOLE
    """Of workloads in groups; those whose groups depend on one another go whole in any case."""
    spread: WorkloadSpread | None = None
    """Subsets that go before `candidates`, which are only used when named; the strategy divides within each, and is all
    of the distribution."""
    bounds: WorkloadSpread | None = None
    """The spread of a workload whose replicas its subsets cannot divide: a gang, or one whose distribution is more
    than a strategy. Its clusters are those of `candidates` that some subset allows."""
    stalled: str = ""
    """Reason that nothing new is placed: a spread of the workload is not in force, so that its subsets are unknown."""

    def capped(self, replicas: int) -> int:
        """Return as many of these replicas outside the primary as one workload may have there in all."""
        return replicas if self.max_replicas is None else min(replicas, self.max_replicas)

    @property
    def required_domain(self) -> str:
        """The label of nodes of which each group has to share one value; empty for none."""
        topology = self.topology
        return topology.key if topology is not None and topology.mode is TopologyMode.REQUIRED else ""

    @property
    def subsets(self) -> tuple[Subset, ...]:
        """The subsets that replicas are divided over, in order; none without a WorkloadSpread."""
        return self.spread.subsets if self.spread is not None else ()

    def subset(self, name: str) -> Subset | None:
        """Find a subset by name; None for replicas in none."""
        return next((subset for subset in self.subsets if subset.name == name), None)

    @property
    def slot_file(self) -> str:
        """The file that says where replicas may go, for messages: ``WorkloadSpread llm/pools`` or ``policy gpu``."""
        return f"WorkloadSpread {self.spread.id}" if self.spread is not None else f"policy {self.name}"

    @property
    def is_in_order(self) -> bool:
        """Whether subsets, or clusters, come one after the other: refusals of earlier ones alone explain a choice."""
        return bool(self.subsets) or self.distribution.traits.fills_in_order

    @property
    def fills_in_order(self) -> bool:
        """Whether each cluster is filled up before the next one is considered."""
        plain = self.spread is None and self.distribution == Distribution()
        return plain and not any(candidate.min_replicas for candidate in self.candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The fleet repository in force at one source commit."""

    commit: CommitId
    fleet: Fleet = Fleet()
    clusters: Mapping[ClusterName, Cluster] = field(default_factory=dict)
    workspaces: Mapping[WorkspaceName, Workspace] = field(default_factory=dict)
    templates: Mapping[WorkloadId, WorkloadTemplate] = field(default_factory=dict)
    policies: Mapping[WorkloadId, BurstPolicy] = field(default_factory=dict)
    """The policy of each template that may burst."""
    requests: Mapping[WorkloadId, Request] = field(default_factory=dict)
    """Placements and reservations that files request."""
    gpr_templates: Mapping[str, GprTemplate] = field(default_factory=dict)
    """By name."""
    bindings: Mapping[WorkspaceName, GprBinding] = field(default_factory=dict)
    """A workspace without an entry has no binding."""
    limits: Mapping[WorkspaceName, WorkspaceLimits] = field(default_factory=dict)
    """A workspace without an entry has no limits."""
    stalled_workspaces: frozenset[WorkspaceName] = frozenset()
    """Workspaces whose limits are unknown, since their WorkspacePolicy is not in force: no GPR begins in them."""
    kinds: Mapping[str, WorkloadKind] = field(default_factory=dict)
    """Kinds of workloads that files declare, by ``group/Kind``."""
    schemas: ObjectSchemas = NO_SCHEMAS
    """The checks that objects must pass."""
    notifications: Mapping[str, Notification] = field(default_factory=dict)
    """Who is told of what, by name."""
    sources: frozenset[SourceKey] = frozenset()
    """What templates are made from beside their files."""
    problems: tuple[Problem, ...] = ()
    """Errors and warnings of the files."""
    incomplete: bool = False
    """Whether a broken file has no earlier good version, so that a missing object proves nothing."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a fleet is in force, as in the repository of something else."""
        return not (self.clusters or self.workspaces or self.templates)
