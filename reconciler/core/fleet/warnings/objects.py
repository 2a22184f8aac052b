"""Warnings about objects that cannot become what their template says: immutable ones, and those of two templates.

A resize leaves an object as it was placed where its share of replicas stands in an immutable field
(`engines.standing_objects`). Of two templates that make one object, only one can be on a cluster at a time
(`candidates.object_conflicts`).
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.expressions.dialect import read_expression
from reconciler.core.expressions.render import expression_strings
from reconciler.core.fleet.object_owners import ObjectId, ObjectOwners, describe_object
from reconciler.core.fleet.warnings.prerequisites import burst_clusters
from reconciler.core.validation.immutable_fields import is_immutable
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.errors import Severity
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from reconciler.model.kubernetes.workload_kind import EACH, Path
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json
from reconciler.text.findings import Finding, Loc, dotted

_EXPIRY = "expiresAt"
_MOST_WARNINGS = 5
"""Objects of one template that are told one by one."""


def warn_immutable_replicas(spec: DeploySpec, kinds: Kinds, schemas: ObjectSchemas) -> Iterator[Finding]:
    """Warn of expressions that a resize changes, in fields that nobody can change.

    What runs once is not resized, unless it comes beside a workload that lasts.
    """
    counted = [kind for resource in spec.manifests if (kind := kind_of(resource.manifest, kinds)) and kind.templates]
    lasting = any(not kind.once for kind in counted)
    for index, resource in enumerate(spec.manifests):
        manifest = resource.manifest
        kind = kind_of(manifest, kinds)
        if kind is not None and kind.once and not lasting:
            continue
        own = kind.replicas if kind is not None else ()
        for loc, text in expression_strings((), manifest):
            path = tuple(map(str, loc))
            if _changes(text) and not _counts(path, own) and is_immutable(manifest, path, schemas):
                yield _stays(manifest, ("spec", "manifestResources", index, "manifest"), loc, text)
                break


def _changes(text: str) -> bool:
    names = read_expression(text).names
    return "replicas" in names or ("placement" in names and _EXPIRY in text)


def _counts(path: Path, patterns: tuple[Path, ...]) -> bool:
    return any(
        len(path) == len(pattern) and all(part in (EACH, name) for part, name in zip(pattern, path, strict=True))
        for pattern in patterns
    )


def _stays(manifest: Json, root: Loc, loc: Loc, text: str) -> Finding:
    what = "replicas" if "replicas" in read_expression(text).names else "end of the placement"
    return Finding(
        loc=root,
        message=f"nobody can change {dotted(loc)} of a {manifest.get('kind')} once it is there: a placement that is"
        f" resized keeps the {what} of its beginning in it",
        hint="read the number in the workload itself, or leave it out",
        severity=Severity.WARNING,
    )


def warn_shared_objects(workload: WorkloadId, owners: ObjectOwners, desired: Desired) -> Iterator[Finding]:
    """Warn of objects that another template makes too, where both may go to one cluster. The later one is told."""
    told = 0
    for object_id in owners.known_objects_of(workload):
        first = _first(workload, object_id, owners, desired) if told < _MOST_WARNINGS else None
        if first is None:
            continue
        told += 1
        whose = f"template {first}" if first.workspace == workload.workspace else "a template of another workspace"
        yield Finding(
            loc=("spec",),
            message=f"{describe_object(object_id)} is also made by {whose}: the end of one would take it from the"
            " other, so that a cluster takes only one of them at a time",
            hint="give it another name in one of them, or have both in one template",
            severity=Severity.WARNING,
        )


def _first(workload: WorkloadId, object_id: ObjectId, owners: ObjectOwners, desired: Desired) -> WorkloadId | None:
    """Return the template before this one that makes an object and may go where this one may."""
    for other in owners.of(object_id):
        if other == workload:
            return None
        if not other.request and not _clusters(other, desired).isdisjoint(_clusters(workload, desired)):
            return other
    return None


def _clusters(workload: WorkloadId, desired: Desired) -> frozenset[ClusterName]:
    workspace = desired.workspaces[workload.workspace]
    clusters = burst_clusters(desired.policies.get(workload), workspace, desired)
    return frozenset(cluster.name for cluster in clusters)
