"""Warnings about objects that cannot become what their template says: immutable ones, and those of two templates.

A resize leaves an object as it was placed where its share of replicas stands in an immutable field
(`engines.standing_objects`). Of two templates that make one object, only one can be on a cluster at a time, and none on
the primary of the other (`candidates.object_conflicts`).
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.expressions.dialect import read_expression
from reconciler.core.expressions.render import expression_strings
from reconciler.core.fleet.object_owners import ObjectId, ObjectOwners, describe_object
from reconciler.core.fleet.warnings.prerequisites import burst_clusters
from reconciler.core.validation.immutable_fields import is_immutable
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import items, within
from reconciler.errors import Severity
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json
from reconciler.text.findings import Finding, Loc, dotted
from reconciler.text.wording import join_names

_EXPIRY = "expiresAt"
_MOST_WARNINGS = 5
"""Objects of one template that are told one by one."""


def warn_immutable_replicas(spec: DeploySpec, kinds: Kinds, schemas: ObjectSchemas) -> Iterator[Finding]:
    """Warn of expressions and replicas that a resize changes, in fields that nobody can change.

    What runs once is not resized, unless it comes beside a workload that lasts.
    """
    counted = [kind for resource in spec.manifests if (kind := kind_of(resource.manifest, kinds)) and kind.templates]
    lasting = any(not kind.once for kind in counted)
    for index, resource in enumerate(spec.manifests):
        manifest = resource.manifest
        kind = kind_of(manifest, kinds)
        if kind is not None and kind.once and not lasting:
            continue
        for loc, text in expression_strings((), manifest):
            path = tuple(map(str, loc))
            if _changes(text) and is_immutable(manifest, path, schemas):
                yield _stays(manifest, ("spec", "manifestResources", index, "manifest"), loc, text)
                break
        else:
            if kind is not None and not kind.once:
                yield from _fixed_replicas(manifest, ("spec", "manifestResources", index, "manifest"), kind, schemas)


def _fixed_replicas(manifest: Json, root: Loc, kind: WorkloadKind, schemas: ObjectSchemas) -> Iterator[Finding]:
    """Warn of a workload whose own number of replicas nobody can change."""
    for pattern in kind.replicas:
        for item in items(manifest, pattern):
            path = within(pattern, item, pattern)
            if is_immutable(manifest, path, schemas):
                yield Finding(
                    loc=root,
                    message=f"nobody can change {'.'.join(path)} of the {manifest.get('kind')} once it is there: its"
                    " placements are not resized",
                    hint="nothing, if more replicas may go to other clusters",
                    severity=Severity.WARNING,
                )
                return


def _changes(text: str) -> bool:
    names = read_expression(text).names
    return "replicas" in names or ("placement" in names and _EXPIRY in text)


def _stays(manifest: Json, root: Loc, loc: Loc, text: str) -> Finding:
    what = "replicas" if "replicas" in read_expression(text).names else "end of the placement"
    return Finding(
        loc=root,
        message=f"nobody can change {dotted(loc)} of the {manifest.get('kind')} once it is there: a placement that"
        f" is resized keeps the {what} of its beginning in it",
        hint="read the number in the workload itself, or leave it out",
        severity=Severity.WARNING,
    )


def warn_shared_objects(workload: WorkloadId, owners: ObjectOwners, desired: Desired) -> Iterator[Finding]:
    """Warn of objects that another template makes or counts too, on a cluster that this one may burst to.

    Of two bursts, the later template is told; of a burst to the primary of the other one, the one that bursts.
    """
    told = 0
    for object_id in owners.known_objects_of(workload):
        if told == _MOST_WARNINGS:
            return
        message, remedy = _standing(workload, object_id, owners, desired), "leave these clusters to others"
        if not message:
            message, remedy = _shared(workload, object_id, owners, desired), "have both in one template"
        if message:
            told += 1
            yield Finding(
                loc=("spec",),
                message=f"{describe_object(object_id)} {message}",
                hint=f"give it another name in one of them, or {remedy}",
                severity=Severity.WARNING,
            )


def _standing(workload: WorkloadId, object_id: ObjectId, owners: ObjectOwners, desired: Desired) -> str:
    """Say that an object stands on clusters that this template may burst to, for templates whose primaries they are."""
    clusters = _clusters(workload, desired) if owners.is_standing(object_id, but=workload) else frozenset()
    standing = {
        cluster: other
        for cluster, others in owners.standing(object_id).items()
        if cluster in clusters and (other := next((name for name in others if name != workload), None)) is not None
    }
    if not standing:
        return ""
    whose = _whose(next(iter(standing.values())), workload)
    names = join_names(list(standing)[:_MOST_WARNINGS])
    return (
        f"also runs on {names} for {whose}, which has its primary there: a burst would overwrite it, and its end would"
        " take it away, so that bursts do not go there"
    )


def _shared(workload: WorkloadId, object_id: ObjectId, owners: ObjectOwners, desired: Desired) -> str:
    """Say that a template before this one makes an object and may go where this one may."""
    for other in owners.of(object_id):
        if other == workload:
            break
        if not other.request and not _clusters(other, desired).isdisjoint(_clusters(workload, desired)):
            return (
                f"is also made by {_whose(other, workload)}: the end of one would take it from the other, so that a"
                " cluster takes only one of them at a time"
            )
    return ""


def _whose(other: WorkloadId, workload: WorkloadId) -> str:
    return f"template {other}" if other.workspace == workload.workspace else "a template of another workspace"


def _clusters(workload: WorkloadId, desired: Desired) -> frozenset[ClusterName]:
    workspace = desired.workspaces[workload.workspace]
    clusters = burst_clusters(desired.policies.get(workload), workspace, desired)
    return frozenset(cluster.name for cluster in clusters)
