"""What is told of a template's prerequisites when its file is read: what its clusters lack, or may lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.core import sharedclaims, unexported, unprovided
from reconciler.core.findings import Finding
from reconciler.core.provided import called, unknown
from reconciler.core.reach import order
from reconciler.core.wording import listed
from reconciler.core.workloadkinds import Kinds
from reconciler.errors import Severity
from reconciler.model.ids import ClusterName
from reconciler.model.policy import BurstPolicy, Cluster, Desired, Workspace
from reconciler.model.prerequisites import Prerequisite
from reconciler.model.workload import DeploySpec


def first_needs(
    spec: DeploySpec,
    prerequisites: Sequence[Prerequisite],
    workspace: Workspace,
    clusters: Sequence[Cluster],
    kinds: Kinds,
    *,
    complete: bool,
) -> Iterator[Finding]:
    """Warn of what a spec may lack in these clusters: what it needs first, and what of it will not work as it is.

    `complete` tells that it may go to no others, such as to one whose file is broken.
    """
    if complete:
        yield from unprovided.warn_unprovided(spec, prerequisites, clusters)
    yield from _untold(prerequisites, clusters)
    yield from sharedclaims.warn_shared_claims(spec, kinds)
    yield from unexported.warn_unexported(spec, workspace, (cluster.engine for cluster in clusters), kinds)


def _untold(prerequisites: Sequence[Prerequisite], clusters: Sequence[Cluster]) -> Iterator[Finding]:
    """Warn, once for all, of what some of these clusters do not say whether they have it."""
    lacks = {cluster.name: found for cluster in clusters if (found := unknown(cluster, prerequisites))}
    if not lacks:
        return
    things = [one for one in prerequisites if any(one in found for found in lacks.values())]
    message = (
        f"nobody says whether {listed(lacks)} {'has' if len(lacks) == 1 else 'have'} {listed(map(called, things))}"
    )
    fields = listed(dict.fromkeys(f"spec.provides.{one.category}" for one in things))
    yield Finding(loc=("spec",), message=message, hint=f"list it in the Cluster's {fields}", severity=Severity.WARNING)


def burst_clusters(policy: BurstPolicy | None, workspace: Workspace, desired: Desired) -> tuple[Cluster, ...]:
    """List the clusters that a policy has a template burst to; none without one."""
    candidates = order(policy, workspace, desired.clusters) if policy is not None else ()
    return _described([candidate.cluster for candidate in candidates], desired)


def asked_clusters(named: Sequence[ClusterName], workspace: Workspace, desired: Desired) -> tuple[Cluster, ...]:
    """List the clusters that a request names, or all that it may go to where it names none."""
    return _described(named or workspace.destinations, desired)


def _described(names: Sequence[ClusterName], desired: Desired) -> tuple[Cluster, ...]:
    return tuple(desired.clusters[name] for name in names if name in desired.clusters)
