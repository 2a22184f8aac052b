"""Objects that clusters are watched for beside nodes and pods: those of workloads that burst, and of placements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.core.engines import engine
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.fleet.object_owners import ObjectOwners
from reconciler.core.observe.kubernetes.resources import foreign_group
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds, kind_of, kinds_named
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.manifest_source import ArgoCDSource, WorkloadSource
from reconciler.model.policy import Desired, Workspace
from reconciler.model.workload import WorkloadRef, WorkloadTemplate


def watched_workloads(desired: Desired) -> Mapping[ClusterName, frozenset[WorkloadRef]]:
    """Return the objects of all workloads that may burst; a cluster that is no primary has no entry."""
    refs: dict[ClusterName, set[WorkloadRef]] = {}
    for workload in desired.policies:
        ref = desired.templates[workload].ref
        if ref is not None:
            refs.setdefault(desired.workspaces[workload.workspace].primary, set()).add(ref)
    return {cluster: frozenset(named) for cluster, named in refs.items()}


def placeable_workloads(desired: Desired) -> Mapping[ClusterName, frozenset[WorkloadRef]]:
    """Return the workloads that bursts would make on each cluster but their primary, as far as their names are known.

    Each has pods with the label of the placement, by which those that a cluster runs by itself differ.
    """
    owners = ObjectOwners(desired)
    refs: dict[ClusterName, set[WorkloadRef]] = {}
    for workload in desired.policies:
        workspace = desired.workspaces[workload.workspace]
        made = [
            WorkloadRef(namespace=namespace, name=name, kind=kind.kind, group=kind.group)
            for group_kind, namespace, name in owners.known_objects_of(workload)
            if (kind := desired.kinds.get(group_kind) or BUILT_IN.get(group_kind)) is not None
            and _has_labelled_pods(kind)
            and not has_expression(name + namespace)
        ]
        charted = _charted(desired.templates[workload], desired.kinds)
        for name in workspace.clusters:
            cluster = desired.clusters.get(name)
            # A workspace stays in force while it names a cluster that no file describes: nothing is watched there.
            if cluster is None or name == workspace.primary:
                continue
            refs.setdefault(name, set()).update(made)
            if charted and engine(cluster.engine).to_render(desired.templates[workload].spec):
                refs[name].update(charted)
    return {cluster: frozenset(named) for cluster, named in refs.items() if named}


def _charted(template: WorkloadTemplate, kinds: Kinds) -> list[WorkloadRef]:
    """Return the workload that a template counts, if a chart makes it: the chart of a burst makes it as well."""
    ref = template.ref
    if ref is None or ref.release or not template.spec.helm:
        return []
    return [
        replace(ref, group=kind.group)
        for kind in kinds_named(ref.kind, kinds)
        if ref.group in ("", kind.group) and _has_labelled_pods(kind)
    ]


def _has_labelled_pods(kind: WorkloadKind) -> bool:
    """Return whether the pods of placements of a kind have the label of the placement."""
    return bool(kind.templates) and not kind.leaves_pods_unlabelled


def placed_kinds(desired: Desired, cluster: ClusterName) -> frozenset[WorkloadRef]:
    """Return the kinds of placements that may be on a cluster and make pods, each as a reference without a name.

    Their objects say what pods do not: why some may not be created, how a run has ended, or of which placement they
    are.
    """
    return frozenset(
        WorkloadRef(namespace="", name="", kind=kind.kind, group=kind.group)
        for workload, template in desired.templates.items()
        if _may_go(desired.workspaces[workload.workspace], cluster)
        for kind in _kinds_deployed(template, desired.kinds)
        if kind.counted or kind.end is not None or kind.leaves_pods_unlabelled
    )


def _may_go(workspace: Workspace, cluster: ClusterName) -> bool:
    return cluster in workspace.clusters or (workspace.requests_on_primary and cluster == workspace.primary)


def _kinds_deployed(template: WorkloadTemplate, kinds: Kinds) -> Iterator[WorkloadKind]:
    """List the kinds of the objects of a template, also of one that is made from a live object or a chart."""
    found = (kind_of(resource.manifest, kinds) for resource in template.spec.manifests)
    made = [kind for kind in found if kind is not None]
    yield from made
    ref = template.ref
    if ref is None or any(kind.kind == ref.kind for kind in made):
        return
    for kind in kinds_named(ref.kind, kinds):
        # Without a group a name that Kubernetes has as well means its own kind.
        if kind.group == ref.group or (not ref.group and not foreign_group(kind.kind, kind.group)):
            yield kind


def live_sources(desired: Desired, cluster: ClusterName) -> frozenset[WorkloadSource]:
    """Return the objects of a cluster that templates are made from."""
    return frozenset(
        key.source for key in desired.sources if key.cluster == cluster and isinstance(key.source, WorkloadSource)
    )


def followed_applications(desired: Desired) -> frozenset[str]:
    """Return the names of Argo CD's Applications that templates are made from."""
    return frozenset(key.source.name for key in desired.sources if isinstance(key.source, ArgoCDSource))
