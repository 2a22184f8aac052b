"""Clusters and control planes to watch, as the fleet repository and the contexts of the kubeconfig describe them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.adapters.kube.kubeconfig import (
    BrokenKubeconfig,
    HiddenContext,
    Kubeconfig,
    kubeconfig_stamp,
    read_kubeconfig,
)
from reconciler.core.engines import ENGINES
from reconciler.core.engines.logins import LoginSource
from reconciler.core.engines.reports import ReportSource
from reconciler.core.fleet.objects import first_names
from reconciler.core.fleet.watched_workloads import (
    followed_applications,
    live_sources,
    placeable_workloads,
    placed_kinds,
    watched_workloads,
)
from reconciler.core.observe.kubernetes.ownership import BUILT_IN_MARKS, Marks, marks_by_label
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds
from reconciler.errors import Problem, Severity
from reconciler.model.ids import ClusterName
from reconciler.model.manifest_source import WorkloadSource
from reconciler.model.policy import Connection, Desired, EngineName
from reconciler.model.workload import WorkloadRef
from reconciler.text.findings import shortened

APPLICATIONS = "Applications of Argo CD"
"""The path of problems with the Applications that templates are made from."""


class Contexts:
    """The contexts of a kubeconfig, read again whenever it changes; a broken file keeps its last contexts."""

    def __init__(self, kubeconfig: Path | None) -> None:
        self._kubeconfig = kubeconfig
        self._stamp: object = None
        self._known: frozenset[str] = frozenset()
        self._hidden: tuple[HiddenContext, ...] = ()
        self.unreadable: tuple[Problem, ...] = ()
        """Why the file could not be read the last time; empty if it could."""

    def read(self) -> frozenset[str]:
        """Return their names, and set `unreadable`."""
        if self._kubeconfig is None:
            return self._known
        try:
            stamp = kubeconfig_stamp(self._kubeconfig)
            if stamp != self._stamp:
                config = self._config(self._kubeconfig)
                self._known, self._hidden, self._stamp = frozenset(config.contexts), config.hidden, stamp
                self.unreadable = ()
        except (OSError, BrokenKubeconfig) as error:
            cause = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)
            self.unreadable = (Problem(path=str(self._kubeconfig), message=cause),)
        return self._known

    def hidden(self, used: Collection[str]) -> tuple[Problem, ...]:
        """Warn of the contexts, among those that are used, that lead elsewhere than their files say."""
        return tuple(
            Problem(path=str(each.path), message=each.message, hint=each.hint, severity=Severity.WARNING)
            for each in self._hidden
            if each.context in used
        )

    def _config(self, kubeconfig: Path) -> Kubeconfig:
        """Read the kubeconfig. Raises BrokenKubeconfig for a file that was cut off while it is written."""
        config = read_kubeconfig(kubeconfig)
        # Of several files one may be empty from the beginning; one that is emptied is about to be written.
        if any(self._stamp is not None or path.stat().st_size for path in config.cut_off):
            raise BrokenKubeconfig("is not a kubeconfig, or is cut off: it lacks its clusters, contexts or users")
        return config


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTarget:
    """The control plane of an engine to watch; at least one of `reports` and `logins` is set."""

    engine: EngineName
    title: str
    """The engine's name in messages."""
    connection: Connection
    reports: ReportSource | None
    """The objects that report on placements; None where the engine deploys to no cluster."""
    logins: LoginSource | None
    """The Secrets with logins to clusters; None where no cluster uses one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationTarget:
    """Applications of Argo CD to watch."""

    connection: Connection
    namespace: str
    """The namespace of Argo CD."""
    names: frozenset[str]
    """Never empty."""

    def same_place(self, other: ApplicationTarget | None) -> bool:
        """Return whether both are in one namespace of one cluster."""
        return other is not None and (self.connection, self.namespace) == (other.connection, other.namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTarget:
    """A cluster to watch."""

    name: ClusterName
    connection: Connection
    refs: frozenset[WorkloadRef]
    """The workloads whose replicas are counted."""
    sources: frozenset[WorkloadSource] = frozenset()
    """The objects that templates are made from."""
    marks: Marks = field(default_factory=lambda: BUILT_IN_MARKS)
    """The labels that assign pods to workloads."""
    kinds: Kinds = field(default_factory=lambda: NO_KINDS)
    """The workload kinds that the fleet repository declares."""
    placed: frozenset[WorkloadRef] = frozenset()
    """The kinds, as references without a name, whose objects of placements are watched."""
    placeable: frozenset[WorkloadRef] = frozenset()
    """The workloads that bursts would make there."""
    node_pools: bool = False
    """Whether NodePools of Karpenter bound the nodes that its Cluster declares."""
    engine: EngineName
    reports: ReportSource | None = None
    """The engine's objects that report on placements; None where it keeps none in the cluster."""
    control: ControlTarget | None = None
    """The control plane with the login to the cluster; None where the daemon has its own."""

    def same_connection(self, other: ClusterTarget) -> bool:
        """Return whether both have the same connection and control plane."""
        return (self.connection, self.control) == (other.connection, other.control)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """All clusters and control planes to watch."""

    clusters: Mapping[ClusterName, ClusterTarget] = field(default_factory=dict)
    control: Mapping[EngineName, ControlTarget] = field(default_factory=dict)
    applications: ApplicationTarget | None = None
    """The Applications that templates are made from; None without any, or without a connection to Argo CD."""
    deployed: Mapping[EngineName, frozenset[ClusterName]] = field(default_factory=dict)
    """The clusters of each engine."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Why a cluster or a control plane is out of reach, by its path in messages."""
    nameless: Mapping[ClusterName, str] = field(default_factory=dict)
    """The clusters without a connection although there is a kubeconfig, and the contexts that are free."""

    def contexts(self) -> Mapping[str, str]:
        """Return the context of each cluster and control plane, by its path in messages; empty for a login without."""
        used = {f"cluster {name}": target.connection.context for name, target in self.clusters.items()}
        used |= {target.title: target.connection.context for target in self.control.values()}
        if self.applications is not None:
            used[APPLICATIONS] = self.applications.connection.context
        return used


def watch_targets(desired: Desired, contexts: frozenset[str], *, has_kubeconfig: bool) -> Targets:
    """List the clusters and control planes that can be watched.

    Without a kubeconfig only the daemon's own cluster is watched; files or pushes report on the others.
    """
    refs, placeable = watched_workloads(desired), placeable_workloads(desired)
    control = _control_planes(desired, has_kubeconfig=has_kubeconfig)
    applications = _applications(desired, has_kubeconfig=has_kubeconfig)
    with_logins = next((target for target in control.values() if target.logins is not None), None)
    marks = marks_by_label(desired.kinds)
    free = _free_contexts(desired, contexts)
    clusters: dict[ClusterName, ClusterTarget] = {}
    nameless: dict[ClusterName, str] = {}
    for name, cluster in desired.clusters.items():
        if cluster.slurm is not None:
            continue
        connection = cluster.connection or Connection(context=name if name in contexts else "")
        if not _reachable(connection, with_logins, has_kubeconfig=has_kubeconfig):
            if has_kubeconfig and cluster.connection is None:
                nameless[name] = free
            continue
        clusters[name] = ClusterTarget(
            name=name,
            connection=connection,
            refs=refs.get(name, frozenset()),
            sources=live_sources(desired, name),
            marks=marks,
            kinds=desired.kinds,
            placed=placed_kinds(desired, name),
            placeable=placeable.get(name, frozenset()),
            node_pools=cluster.has_node_pools,
            engine=cluster.engine,
            reports=ENGINES[cluster.engine].cluster_reports(desired.fleet, name),
            control=with_logins if connection.argocd else None,
        )
    deployed: dict[EngineName, set[ClusterName]] = {}
    for name, cluster in desired.clusters.items():
        deployed.setdefault(cluster.engine, set()).add(name)
    targets = Targets(
        clusters=clusters,
        control=control,
        applications=applications,
        deployed={engine: frozenset(names) for engine, names in deployed.items()},
        nameless=nameless,
    )
    lost = {
        path: f"the kubeconfig has no context {shortened(context)} ({free})"
        for path, context in targets.contexts().items()
        if context and context not in contexts
    }
    return replace(targets, lost=lost)


def _free_contexts(desired: Desired, contexts: frozenset[str]) -> str:
    """List the contexts that no Cluster uses: a shared context would make two clusters of one API server."""
    used = {
        name if cluster.connection is None else cluster.connection.context
        for name, cluster in desired.clusters.items()
        if cluster.slurm is None
    }
    free = sorted(contexts - used)
    if not contexts:
        return "the kubeconfig has none"
    if not free:
        return f"other Clusters use all that it has: {first_names(sorted(contexts))}"
    return f"no Cluster uses yet: {first_names(free)}"


def _control_planes(desired: Desired, *, has_kubeconfig: bool) -> dict[EngineName, ControlTarget]:
    """List the reachable control planes that have reports or logins of clusters."""
    used = {cluster.engine for cluster in desired.clusters.values()}
    by_login = any(
        cluster.connection is not None and cluster.connection.argocd for cluster in desired.clusters.values()
    )
    targets: dict[EngineName, ControlTarget] = {}
    for name, engine in ENGINES.items():
        plane = engine.control_plane(desired.fleet)
        if plane is None or plane.connection is None or not (plane.connection.in_cluster or has_kubeconfig):
            continue
        reports, logins = plane.reports if name in used else None, plane.logins if by_login else None
        if reports is not None or logins is not None:
            targets[name] = ControlTarget(
                engine=name, title=engine.title, connection=plane.connection, reports=reports, logins=logins
            )
    return targets


def _applications(desired: Desired, *, has_kubeconfig: bool) -> ApplicationTarget | None:
    """List the Applications that templates are made from, where Argo CD can be reached."""
    names, settings = followed_applications(desired), desired.fleet.argocd
    connection = settings.connection
    if not names or connection is None or not (connection.in_cluster or has_kubeconfig):
        return None
    return ApplicationTarget(connection=connection, namespace=settings.namespace, names=names)


def _reachable(connection: Connection, with_logins: ControlTarget | None, *, has_kubeconfig: bool) -> bool:
    if connection.argocd:
        return with_logins is not None
    return connection.in_cluster or (has_kubeconfig and bool(connection.context))
