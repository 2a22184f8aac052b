"""Which engine applies placements in each cluster, by where engines were seen.

Flux has to run in each cluster that it deploys to. Argo CD has a control plane: it runs in one cluster, and deploys to
all from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.engines import ENGINES, Engine
from reconciler.core.onboarding.discovered_cluster import DiscoveredCluster
from reconciler.model.ids import ClusterName
from reconciler.model.policy import EngineName, Fleet

CHOICES = tuple(name for name, engine in ENGINES.items() if engine.installation is not None)
"""The engines that a cluster may be given: those that can be seen in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEngine:
    """The engine of a cluster, and why it is that."""

    name: EngineName
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCluster:
    """The cluster that an engine deploys to all others from."""

    engine: EngineName
    cluster: DiscoveredCluster

    @property
    def namespace(self) -> str:
        """Return the namespace of the engine; empty where it was not seen."""
        return next(iter(self.cluster.engines[self.engine].namespaces), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """The engines of a fleet."""

    default: ClusterEngine | None
    """The engine of clusters that name none; None where nothing tells."""
    control: ControlCluster | None
    """Where the engine that deploys from one cluster runs; None without such an engine."""
    clusters: Mapping[ClusterName, ClusterEngine]
    """The engines of the clusters that answer, as far as they are known."""
    undecided: tuple[ClusterName, ...]
    """Clusters that answer and may take bursts, of which nothing tells the engine."""


def control_clusters(clusters: Sequence[DiscoveredCluster]) -> tuple[ControlCluster, ...]:
    """List the clusters that may be the one from which an engine deploys.

    If the engine's Deployments are seen in any, clusters without are none: left-over definitions deploy nothing.
    """
    seen = [
        ControlCluster(engine=name, cluster=cluster)
        for cluster in clusters
        for name in cluster.engines
        if _has_control_plane(ENGINES[name])
    ]
    running = [place for place in seen if place.namespace]
    return tuple(running or seen)


def choose_engines(
    clusters: Sequence[DiscoveredCluster],
    primary: ClusterName,
    control: ControlCluster | None,
    preferred: EngineName | None,
) -> EngineChoice:
    """Choose the engine of each cluster.

    `preferred` is for clusters in which no engine runs, or several do. The primary may do without: no burst goes there.
    """
    chosen: dict[ClusterName, ClusterEngine] = {}
    undecided = []
    for cluster in clusters:
        if cluster.trouble:
            continue
        engine = _engine(cluster, control, preferred)
        if engine is not None:
            chosen[cluster.name] = engine
        elif cluster.name != primary:
            undecided.append(cluster.name)
    return EngineChoice(
        default=_default(clusters, chosen, control, preferred),
        control=control,
        clusters=chosen,
        undecided=tuple(undecided),
    )


def runs_in(cluster: DiscoveredCluster, engine: EngineName) -> str:
    """Say that an engine was seen in a cluster, and by what."""
    namespaces = cluster.engines[engine].namespaces
    title = ENGINES[engine].title
    if namespaces:
        return f"{title} runs in {cluster.name}, in namespace {namespaces[0]}"
    return f"{title} is installed in {cluster.name}: its API is served there"


def _engine(
    cluster: DiscoveredCluster, control: ControlCluster | None, preferred: EngineName | None
) -> ClusterEngine | None:
    """Return the engine of a cluster; None where nothing tells it."""
    seen = [
        name
        for name in cluster.engines
        if not _has_control_plane(ENGINES[name]) or (control is not None and cluster == control.cluster)
    ]
    known_as = f"; it has to know this cluster by the name {cluster.name}"
    # 1. One engine runs there.
    if len(seen) == 1:
        about_name = known_as if _has_control_plane(ENGINES[seen[0]]) else ""
        return ClusterEngine(name=seen[0], because=runs_in(cluster, seen[0]) + about_name)
    # 2. None or several do, and somebody has chosen.
    if preferred is not None:
        return ClusterEngine(name=preferred, because="chosen by --engine")
    # 3. Several do.
    if seen:
        return None
    # 4. None does, and the one that deploys from elsewhere can reach it.
    if control is not None:
        return ClusterEngine(name=control.engine, because=runs_in(control.cluster, control.engine) + known_as)
    return None


def _default(
    clusters: Sequence[DiscoveredCluster],
    chosen: Mapping[ClusterName, ClusterEngine],
    control: ControlCluster | None,
    preferred: EngineName | None,
) -> ClusterEngine | None:
    """Return the engine of clusters that name none."""
    if control is not None:
        return ClusterEngine(name=control.engine, because=runs_in(control.cluster, control.engine))
    if preferred is not None:
        return ClusterEngine(name=preferred, because="chosen by --engine")
    named = [chosen[cluster.name].name for cluster in clusters if cluster.name in chosen]
    if not named:
        return None
    most = max(dict.fromkeys(named), key=named.count)
    return ClusterEngine(name=most, because=f"{ENGINES[most].title} runs in most clusters")


def _has_control_plane(engine: Engine) -> bool:
    """Return whether an engine deploys from one cluster to all others."""
    return engine.control_plane(Fleet(name="fleet")) is not None
