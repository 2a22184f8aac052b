"""What people say in the fleet repository about clusters, tenants and bursting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from reconciler.errors import Problem
from reconciler.model.cluster import Provides, ScalableNodes, SharedNetworking
from reconciler.model.gpr import GprBinding, GprTemplate, WorkspaceLimits
from reconciler.model.ids import ClusterName, CommitId, WorkloadId, WorkspaceName
from reconciler.model.request import Request
from reconciler.model.scheduling import Taint, Toleration
from reconciler.model.signal import Signal
from reconciler.model.workload import WorkloadTemplate
from reconciler.model.workload_kind import WorkloadKind
from reconciler.model.workload_spread import WorkloadSpread


class EngineName(StrEnum):
    """What applies the output branch in a cluster."""

    ARGOCD = "argocd"
    FLUX = "flux"
    MANIFESTS = "manifests"


class Availability(StrEnum):
    """Whether a cluster takes bursts: Active does, Cordoned takes no new ones, Draining also gives back what it has."""

    ACTIVE = "Active"
    CORDONED = "Cordoned"
    DRAINING = "Draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How the daemon reaches a cluster's API server: one of the three is set.

    By a `context` of its own kubeconfig, as a pod of that cluster, or with the login that Argo CD has for a cluster of
    the name `argocd`. No address and no credential: those are the daemon's, and the fleet repository is shared.
    """

    context: str = ""
    in_cluster: bool = False
    argocd: str = ""

    def __str__(self) -> str:
        """Write it as a Cluster file does."""
        if self.argocd:
            return "argocd"
        return "inCluster" if self.in_cluster else f"context {self.context}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoCD:
    """Where Argo CD lives and what its objects are called; without a `connection` they are not looked at."""

    namespace: str = "argocd"
    project: str = "overspill"
    connection: Connection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flux:
    """The namespace of the Flux objects of placements, and how often Flux asks the remote for changes."""

    namespace: str = "overspill"
    interval: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Settings that hold for all clusters. There is at most one; without it these defaults hold.

    `branch_per_cluster` has each cluster's directory on a branch of its own, too (`model.branches`). What goes whole
    leaves a cluster that has been lost for longer than `worker_lost_timeout`.
    """

    name: str = "fleet"
    repo_url: str = ""
    engine: EngineName = EngineName.ARGOCD
    observation_max_age: timedelta = timedelta(minutes=2)
    worker_lost_timeout: timedelta = timedelta(minutes=15)
    ignore: tuple[str, ...] = ()
    argocd: ArgoCD = ArgoCD()
    flux: Flux = Flux()
    branch_per_cluster: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster. `price_per_gpu_hour` is in dollars, None when unknown.

    Without a `connection` it is watched where the daemon's kubeconfig has a context of the cluster's name.
    `autoscaling` is what its autoscaler may add, and `provides` what it has for placed objects to refer to: nothing
    that can be seen tells either.
    """

    name: ClusterName
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    engine: EngineName = EngineName.ARGOCD
    availability: Availability = Availability.ACTIVE
    price_per_gpu_hour: float | None = None
    connection: Connection | None = None
    autoscaling: tuple[ScalableNodes, ...] = ()
    provides: Provides = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandJobs:
    """That commands may run as Jobs, and with which image (pinned by digest)."""

    image: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A tenant: where it lives, where it may burst to, and which namespaces it may touch.

    `allowed_kinds` are ``group/Kind`` (``/Namespace`` for the core group) that its manifests may hold although they are
    refused by default. `command_jobs` None means that commands which are no plain object are refused. Bursts never go
    to the primary; `requests_on_primary` tells whether what a person asks for by name may. With `shared_networking`
    placements export their Services.
    """

    name: WorkspaceName
    primary: ClusterName
    clusters: tuple[ClusterName, ...]
    namespaces: tuple[str, ...] = ()
    allow_unpinned_charts: bool = False
    allowed_kinds: tuple[str, ...] = ()
    command_jobs: CommandJobs | None = None
    requests_on_primary: bool = True
    shared_networking: SharedNetworking | None = None

    @property
    def everywhere(self) -> tuple[ClusterName, ...]:
        """All clusters that are the tenant's, the primary first; `clusters` may name it as well."""
        return self.primary, *self.clusters

    @property
    def destinations(self) -> tuple[ClusterName, ...]:
        """The clusters that any placement of its may go to, in the order in which they are written."""
        if self.requests_on_primary:
            return self.clusters
        return tuple(name for name in self.clusters if name != self.primary)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPreference:
    """One rung of a policy's order: a cluster by name, or those with the labels. The numbers are for each cluster.

    `min_replicas` come before others get more; one of `weight` 0 gets no more than these.
    """

    name: ClusterName | None = None
    match_labels: Mapping[str, str] = field(default_factory=dict)
    max_replicas: int | None = None
    min_replicas: int = 0
    weight: int = 1


class StrategyName(StrEnum):
    """How a policy shares replicas out over its clusters."""

    ORDERED = "Ordered"
    WEIGHTED = "Weighted"
    BALANCED = "Balanced"
    AGGREGATED = "Aggregated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """By which strategy replicas are shared out, over how many clusters, and over how many values of a cluster label.

    The numbers are those of clusters, and of values of the label `spread_by`, that have any of one workload; without a
    label there are no groups to count.
    """

    strategy: StrategyName = StrategyName.ORDERED
    min_clusters: int = 0
    max_clusters: int | None = None
    spread_by: str = ""
    min_groups: int = 0
    max_groups: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstPolicy:
    """When a workload may burst, where to, how far, and how long.

    An empty `workspaces` or `templates` means all. `signals` are those beside what clusters report. `candidates` are in
    order of preference; empty means every cluster of the workspace by name. `max_replicas` bounds all placements of one
    workload together. `to_primary` tells that the workspace's primary is a cluster like the others, as it is for what a
    person asks for. The subsets of a `spread` go before the candidates, of which there are none then unless they are
    named; the distribution plays no part.
    """

    name: str
    workspaces: tuple[WorkspaceName, ...] = ()
    templates: tuple[str, ...] = ()
    priority: int = 0
    candidates: tuple[ClusterPreference, ...] = ()
    require_labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    max_replicas: int | None = None
    scale_up_window: timedelta = timedelta(seconds=30)
    scale_down_window: timedelta = timedelta(minutes=5)
    cool_down: timedelta = timedelta(minutes=5)
    hold: timedelta = timedelta(hours=1)
    in_flight_timeout: timedelta = timedelta(minutes=10)
    rollout_timeout: timedelta = timedelta(minutes=15)
    default_duration: timedelta = timedelta(hours=1)
    max_duration: timedelta | None = None
    signals: tuple[Signal, ...] = ()
    to_primary: bool = False
    distribution: Distribution = Distribution()
    spread: WorkloadSpread | None = None

    @property
    def fills_in_order(self) -> bool:
        """Whether each cluster is filled as far as it goes before the next is looked at."""
        plain = self.spread is None and self.distribution == Distribution()
        return plain and not any(candidate.min_replicas for candidate in self.candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The fleet repository as it is in force at one source commit.

    `policies` holds, for each template that may burst, the one policy that governs it. `problems` are all that is wrong
    with the files, errors and warnings; `incomplete` tells that some file is broken and has no earlier good version, so
    that a thing's absence proves nothing. `requests` are the placements and reservations that people ask for by a file.
    `gpr_templates` are by name; `bindings` and `limits` by workspace, and a workspace without is bound by nothing.
    `kinds` are the kinds of workloads that files declare, by ``group/Kind``.
    """

    commit: CommitId
    fleet: Fleet = Fleet()
    clusters: Mapping[ClusterName, Cluster] = field(default_factory=dict)
    workspaces: Mapping[WorkspaceName, Workspace] = field(default_factory=dict)
    templates: Mapping[WorkloadId, WorkloadTemplate] = field(default_factory=dict)
    policies: Mapping[WorkloadId, BurstPolicy] = field(default_factory=dict)
    requests: Mapping[WorkloadId, Request] = field(default_factory=dict)
    gpr_templates: Mapping[str, GprTemplate] = field(default_factory=dict)
    bindings: Mapping[WorkspaceName, GprBinding] = field(default_factory=dict)
    limits: Mapping[WorkspaceName, WorkspaceLimits] = field(default_factory=dict)
    kinds: Mapping[str, WorkloadKind] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    incomplete: bool = False
