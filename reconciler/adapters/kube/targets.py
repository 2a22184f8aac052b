"""What is to be followed, as the fleet repository and the kubeconfig have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.core.observe.kubernetes.ownership import BUILT_IN_MARKS, Marks, marks_of
from reconciler.core.workloads.builtin_kinds import NONE, Kinds
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Cluster, Connection, Desired, EngineName
from reconciler.model.workload import WorkloadRef
from reconciler.text.findings import shortened
from reconciler.text.spelling import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoCDTarget:
    """How Argo CD's cluster is reached, where in it Argo CD is, and what is wanted of it.

    `applications` are looked at for the sake of the clusters that Argo CD deploys to, `logins` for those that are
    reached by them.
    """

    connection: Connection
    namespace: str
    project: str
    applications: bool
    logins: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTarget:
    """A cluster to follow: how it is reached, whose replicas are counted there by which marks, and where Flux's are.

    `kinds` are those that the fleet repository declares. `argocd` is where its login is, if it is reached by one of
    Argo CD's; `flux` is empty where Flux is not its engine.
    """

    name: ClusterName
    connection: Connection
    refs: frozenset[WorkloadRef]
    marks: Marks = field(default_factory=lambda: BUILT_IN_MARKS)
    kinds: Kinds = field(default_factory=lambda: NONE)
    flux: str = ""
    argocd: ArgoCDTarget | None = None

    def same_way(self, other: ClusterTarget) -> bool:
        """Tell whether both are reached in one and the same way."""
        return (self.connection, self.argocd) == (other.connection, other.argocd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """All that is to be followed; `deployed` are the clusters that Argo CD deploys to.

    `lost` says of clusters why their way leads nowhere. `nameless` have none, though others have, and what to try.
    """

    clusters: Mapping[ClusterName, ClusterTarget] = field(default_factory=dict)
    argocd: ArgoCDTarget | None = None
    deployed: frozenset[ClusterName] = frozenset()
    lost: Mapping[str, str] = field(default_factory=dict)
    nameless: Mapping[ClusterName, str] = field(default_factory=dict)


def wanted(desired: Desired, contexts: frozenset[str], *, asked: bool) -> Targets:
    """Say which clusters can be watched, and for whose sake; `asked` tells that there is a kubeconfig at all.

    Without any, this machine is not meant to see the clusters but the one that it runs in: files or pushes tell of
    them.
    """
    refs: dict[ClusterName, set[WorkloadRef]] = {}
    for workload in desired.policies:
        ref = desired.templates[workload].ref
        if ref is not None:
            refs.setdefault(desired.workspaces[workload.workspace].primary, set()).add(ref)
    argocd = _argocd(desired, asked=asked)
    marks = marks_of(desired.kinds)
    clusters: dict[ClusterName, ClusterTarget] = {}
    nameless: dict[ClusterName, str] = {}
    for name, cluster in desired.clusters.items():
        connection = cluster.connection or Connection(context=name if name in contexts else "")
        if not _reachable(connection, argocd, asked=asked):
            if asked and cluster.connection is None:
                nameless[name] = nearest(name, contexts)
            continue
        clusters[name] = ClusterTarget(
            name=name,
            connection=connection,
            refs=frozenset(refs.get(name, ())),
            marks=marks,
            kinds=desired.kinds,
            flux=desired.fleet.flux.namespace if cluster.engine is EngineName.FLUX else "",
            argocd=argocd if connection.argocd else None,
        )
    deployed = (name for name, cluster in desired.clusters.items() if _deploys(cluster))
    ways = {f"cluster {name}": target.connection.context for name, target in clusters.items()}
    if argocd is not None:
        ways["Argo CD"] = argocd.connection.context
    lost = {
        path: f"the kubeconfig has no context {shortened(context)} ({nearest(context, contexts) or 'it has none'})"
        for path, context in ways.items()
        if context and context not in contexts
    }
    return Targets(clusters=clusters, argocd=argocd, deployed=frozenset(deployed), lost=lost, nameless=nameless)


def _argocd(desired: Desired, *, asked: bool) -> ArgoCDTarget | None:
    settings = desired.fleet.argocd
    connection, clusters = settings.connection, desired.clusters.values()
    applications = any(_deploys(cluster) for cluster in clusters)
    logins = any(cluster.connection is not None and cluster.connection.argocd for cluster in clusters)
    if connection is None or not (connection.in_cluster or asked) or not (applications or logins):
        return None
    return ArgoCDTarget(
        connection=connection,
        namespace=settings.namespace,
        project=settings.project,
        applications=applications,
        logins=logins,
    )


def _deploys(cluster: Cluster) -> bool:
    return cluster.engine is EngineName.ARGOCD


def _reachable(connection: Connection, argocd: ArgoCDTarget | None, *, asked: bool) -> bool:
    if connection.argocd:
        return argocd is not None
    return connection.in_cluster or (asked and bool(connection.context))
