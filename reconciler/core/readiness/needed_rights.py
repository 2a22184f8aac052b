"""The rights that the daemon needs at an API server, by the file of bootstrap/ that grants them too."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reconciler.core.engines import ENGINES
from reconciler.core.fleet.watched_workloads import (
    followed_applications,
    live_sources,
    placed_kinds,
    watched_workloads,
)
from reconciler.core.observe.kubernetes.companions import companions_of
from reconciler.core.observe.kubernetes.resources import (
    COMPANION_RESOURCES,
    CONTROLLERS,
    SIGNALS,
    Resource,
    Watched,
    needed_resources,
    placed_resources,
    rights,
)
from reconciler.core.readiness.check import AskedServer
from reconciler.core.readiness.question import ServiceAccountName
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired, EngineName
from reconciler.model.workload import WorkloadRef

VERBS = ("list", "watch")
DAEMON = ServiceAccountName(namespace="overspill-system", name="overspill")
"""The service account of the files of bootstrap/."""
_EVERY_KIND = frozenset(
    WorkloadRef(namespace="", name="", kind=kind.kind, group=kind.group) for kind in BUILT_IN.values() if kind.group
)
_OF_PRIMARIES: frozenset[Watched] = CONTROLLERS | SIGNALS | {Resource.TEMPLATES}
"""What a primary is watched for, whichever of Kubernetes' own kinds its next template bursts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededRights:
    """The right to list and watch resources: in one namespace, or in all."""

    file: str
    """The file of bootstrap/; empty for kinds that the fleet declares itself, and for companions."""
    resources: tuple[Watched, ...]
    namespace: str = ""
    """Empty for all."""
    names: tuple[str, ...] = ()
    """The names of the only objects; empty for all."""


def watch_rights(desired: Desired, server: AskedServer) -> Iterator[NeededRights]:
    """List what the daemon watches at a cluster or a control plane of the fleet as it stands."""
    if server.cluster is not None:
        refs = watched_workloads(desired).get(server.cluster, ())
        placed = placed_kinds(desired, server.cluster)
        node_pools = desired.clusters[server.cluster].has_node_pools
        sources = live_sources(desired, server.cluster)
        needed = needed_resources(refs, desired.kinds, node_pools=node_pools, sources=sources, placed=placed)
        yield from _by_file(needed | placed_resources(placed, desired.kinds))
        yield from _companion_rights(desired, server.cluster)
        reports = ENGINES[desired.clusters[server.cluster].engine].cluster_reports(desired.fleet, server.cluster)
        if reports is not None:
            yield from _by_file(reports.objects().parts.keys(), reports.namespace)
    plane = ENGINES[server.engine].control_plane(desired.fleet) if server.engine is not None else None
    if plane is not None:
        yield from _by_file(plane.reports.objects().parts.keys(), plane.reports.namespace)
        by_login = any(cluster.connection and cluster.connection.argocd for cluster in desired.clusters.values())
        if plane.logins is not None and by_login:
            yield from _by_file([plane.logins.resource], plane.logins.namespace)


def _companion_rights(desired: Desired, cluster: ClusterName) -> Iterator[NeededRights]:
    """List the companions of live workloads, of which single objects are read by their names."""
    names: dict[tuple[str, str], list[str]] = {}
    for companion in sorted(companions_of(live_sources(desired, cluster))):
        names.setdefault((companion.namespace, companion.kind), []).append(companion.name)
    for (namespace, kind), listed in names.items():
        resources = (COMPANION_RESOURCES[kind],)
        yield NeededRights(file="", resources=resources, namespace=namespace, names=tuple(listed))


def granted_rights(desired: Desired, server: AskedServer) -> Iterator[NeededRights]:
    """List what is granted to the daemon: what it watches, and at a primary each of Kubernetes' own kinds."""
    primary = any(workspace.primary == server.cluster for workspace in desired.workspaces.values())
    if server.cluster is not None and primary:
        refs = watched_workloads(desired).get(server.cluster, frozenset())
        # A chart does not say of which kind its workload is: the pods tell that later, and then it is watched.
        every = _EVERY_KIND if any(not ref.kind for ref in refs) else frozenset()
        placed = placed_kinds(desired, server.cluster)
        node_pools = desired.clusters[server.cluster].has_node_pools
        sources = live_sources(desired, server.cluster)
        needed = needed_resources(refs | every, desired.kinds, node_pools=node_pools, sources=sources, placed=placed)
        yield from _by_file(needed | placed_resources(placed, desired.kinds) | _OF_PRIMARIES)
    yield from (
        each
        for each in watch_rights(desired, server)
        if not primary or each.namespace  # the others are among those of the primary
    )


def fleet_servers(desired: Desired) -> tuple[AskedServer, ...]:
    """List the API servers of a fleet: its clusters, and then the control planes that anything is asked of.

    Partitions of Slurm have none.
    """
    servers = [
        AskedServer(title=str(name), cluster=name, connection=cluster.connection)
        for name, cluster in sorted(desired.clusters.items())
        if cluster.slurm is None
    ]
    for name in EngineName:
        plane = ENGINES[name].control_plane(desired.fleet)
        if plane is None:
            continue
        deploys = any(cluster.engine is name for cluster in desired.clusters.values())
        if deploys or (plane.names_sources and followed_applications(desired)):
            servers.append(AskedServer(title=ENGINES[name].title, engine=name, connection=plane.connection))
    return tuple(servers)


def _by_file(resources: Collection[Watched], namespace: str = "") -> Iterator[NeededRights]:
    files: dict[str, list[Watched]] = {}
    # A kind may be watched twice: all objects, and those of placements.
    by_name = {(resource.group, resource.plural): resource for resource in resources}
    for _, resource in sorted(by_name.items()):
        files.setdefault(rights(resource), []).append(resource)
    for file, named in sorted(files.items(), reverse=True):
        yield NeededRights(file=file, resources=tuple(named), namespace=namespace)
