"""Warnings about a BurstPolicy whose clusters are Cordoned or cannot meet its labels or minimums, when it is read.

Deciding refuses each cluster by itself, or holds replicas back (`assign`); neither says that this is permanent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations

from reconciler.core.fleet.cluster_order import ordered_candidates
from reconciler.core.fleet.objects import first_names
from reconciler.errors import Severity
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Availability, BurstPolicy, Cluster, SpreadConstraint, Workspace
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest
from reconciler.text.wording import count, join_names

_DISTRIBUTION: Loc = ("spec", "distribution")


def warn_unreachable(
    policy: BurstPolicy, workspaces: Iterable[Workspace], clusters: Mapping[ClusterName, Cluster]
) -> Iterator[Finding]:
    """Warn of usable clusters that are all Cordoned, of labels that none has, and of minimums above their number.

    Of several workspaces the one with the fewest clusters is named. `clusters` are all that files describe.
    """
    usable = {
        workspace.name: [
            clusters[candidate.cluster]
            for candidate in ordered_candidates(policy, workspace, clusters)
            if candidate.cluster in clusters and candidate.cluster in workspace.clusters
        ]
        for workspace in workspaces
    }
    usable = {name: clusters for name, clusters in usable.items() if clusters}
    yield from _warn_cordoned(usable)
    yield from _warn_partitions(usable)
    yield from _warn_required_labels(policy, usable)
    for name, clusters_usable in usable.items():
        required = [cluster for cluster in clusters_usable if policy.require_labels.items() <= cluster.labels.items()]
        usable[name] = required or clusters_usable  # if none is left, later checks look at all of them
    for bound in policy.distribution.spread_constraints:
        yield from _warn_constraint(bound, usable)
    for bound, other in permutations(policy.distribution.spread_constraints, 2):
        yield from _warn_contradiction(bound, other, usable)
    names = {name: [str(cluster.name) for cluster in clusters] for name, clusters in usable.items()}
    yield from _warn_minimum((*_DISTRIBUTION, "minClusters"), policy.distribution.min_clusters, names)


def _constraint_loc(bound: SpreadConstraint) -> Loc:
    return (*_DISTRIBUTION, *(("spreadConstraint",) if bound.place is None else ("spreadConstraints", bound.place)))


def _warn_constraint(bound: SpreadConstraint, usable: Mapping[WorkspaceName, Sequence[Cluster]]) -> Iterator[Finding]:
    """Warn of a label that no cluster has, and of more values than there are."""
    label, loc = bound.label, _constraint_loc(bound)
    without = [name for name, clusters in usable.items() if all(label not in cluster.labels for cluster in clusters)]
    if without:
        yield _missing_label((*loc, "spreadByLabel"), label, without, usable[without[0]])
    groups = {
        name: sorted({cluster.labels[label] for cluster in clusters if label in cluster.labels})
        for name, clusters in usable.items()
    }
    yield from _warn_minimum((*loc, "minGroups"), bound.min_groups, groups, f" of {label}")


def _warn_contradiction(
    bound: SpreadConstraint, other: SpreadConstraint, usable: Mapping[WorkspaceName, Sequence[Cluster]]
) -> Iterator[Finding]:
    """Warn of more values of one label than there are within as many values of another as there may be."""
    if other.max_groups is None:
        return
    for name, clusters in usable.items():
        values: dict[str, set[str]] = {}
        for cluster in clusters:
            if bound.label in cluster.labels and other.label in cluster.labels:
                values.setdefault(cluster.labels[other.label], set()).add(cluster.labels[bound.label])
        most = sum(sorted(map(len, values.values()), reverse=True)[: other.max_groups])
        if 0 < most < min(bound.min_groups, len(set().union(*values.values()))):
            within = f"{count(other.max_groups, 'value')} of {other.label}"
            message = f"{bound.min_groups} are asked for, and {within} in workspace {name} have {most} at most"
            hint = f"try {other.field}.maxGroups: {other.max_groups + 1}, or minGroups: {most}"
            loc = (*_constraint_loc(bound), "minGroups")
            yield Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING)
            return


def _warn_cordoned(usable: Mapping[WorkspaceName, Sequence[Cluster]]) -> Iterator[Finding]:
    """Warn of a workspace in which all clusters that may be used are Cordoned."""
    for name, clusters in usable.items():
        if all(cluster.availability is Availability.CORDONED for cluster in clusters):
            which = first_names([cluster.name for cluster in clusters])
            message = f"all clusters that it may use in workspace {name} are Cordoned: {which}; nothing goes out"
            yield Finding(
                loc=("spec",),
                message=message,
                hint="set the spec.availability of one to Active",
                severity=Severity.WARNING,
            )
            return


def _warn_partitions(usable: Mapping[WorkspaceName, Sequence[Cluster]]) -> Iterator[Finding]:
    """Warn of a workspace in which all clusters that may be used are partitions of Slurm."""
    for name, clusters in usable.items():
        if all(cluster.slurm is not None for cluster in clusters):
            which = first_names([cluster.name for cluster in clusters])
            message = (
                f"all clusters that it may use in workspace {name} are partitions of Slurm: {which}; nothing goes out"
            )
            hint = "add a Kubernetes cluster to its spec.clusters"
            yield Finding(loc=("spec",), message=message, hint=hint, severity=Severity.WARNING)
            return


def _warn_required_labels(policy: BurstPolicy, usable: Mapping[WorkspaceName, Sequence[Cluster]]) -> Iterator[Finding]:
    """Warn of required labels that no cluster has: each label by itself, else all together."""
    loc: Loc = ("spec", "requireLabels")
    alone = False
    for key, value in sorted(policy.require_labels.items()):
        without = [
            name for name, clusters in usable.items() if all(cluster.labels.get(key) != value for cluster in clusters)
        ]
        if without:
            alone = True
            yield _missing_label((*loc, key), f"{key}={value}", without, usable[without[0]])
    wanted = policy.require_labels.items()
    none = [
        name for name, clusters in usable.items() if not any(wanted <= cluster.labels.items() for cluster in clusters)
    ]
    if none and not alone:
        message = f"no cluster that it may use in workspace {none[0]} has all of them together: nothing goes out"
        yield Finding(loc=loc, message=message, hint="label a Cluster with all", severity=Severity.WARNING)


def _missing_label(loc: Loc, wanted: str, workspaces: Sequence[str], clusters: Sequence[Cluster]) -> Finding:
    """Report that no cluster of these workspaces has a label or its value; the hint lists values of the first."""
    _, of, _ = wanted.partition("=")
    labels = sorted({f"{key}={value}" if of else key for cluster in clusters for key, value in cluster.labels.items()})
    which = first_names(workspaces)
    return Finding(
        loc=loc,
        message=f"no cluster that it may use in workspace {which} has label {shortened(wanted)}: nothing goes out",
        hint=nearest(wanted, labels) or f"label a Cluster {shortened(wanted)}{'' if of else '=<its value>'}",
        severity=Severity.WARNING,
    )


def _warn_minimum(
    loc: Loc, least: int, by_workspace: Mapping[WorkspaceName, Sequence[str]], of: str = ""
) -> Iterator[Finding]:
    """Warn of a minimum above the number of clusters; without any cluster another warning is given."""
    short = sorted((len(names), name) for name, names in by_workspace.items() if 0 < len(names) < least)
    for number, name in short[:1]:
        here = f"it may use {count(number, 'cluster')} in workspace {name}"
        if of:
            here = f"what it may use in workspace {name} has {count(number, 'value')}{of}"
        message = f"{least} are asked for, and {here}: {join_names(by_workspace[name])}"
        hint = f"try {loc[-1]}: {number}; until there are more, each gets one replica and the rest waits"
        yield Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING)
