"""Prerequisites of a workload against what a Cluster file declares to provide.

A cluster that lists objects of a category has no others of it. Categories that it does not list are unknown: they
refuse no placement, and `overspill check` and `overspill explain` report them. DeviceClasses and RuntimeClasses are
observed, where there are any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from reconciler.core.expressions.dialect import has_expression
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import Cluster
from reconciler.text.wording import join_names, sanitize

_WORDS = {
    Category.KINDS: "kind",
    Category.SCHEDULERS: "scheduler",
    Category.QUEUES: "queue",
    Category.POD_GROUPS: "PodGroup",
    Category.TOPOLOGIES: "topology",
    Category.PRIORITY_CLASSES: "priority class",
    Category.RUNTIME_CLASSES: "RuntimeClass",
    Category.RUNTIMES: "runtime",
    Category.VOLUMES: "PersistentVolumeClaim",
    Category.STORAGE_CLASSES: "StorageClass",
    Category.CONFIG_MAPS: "ConfigMap",
    Category.SECRETS: "Secret",
    Category.SERVICE_ACCOUNTS: "ServiceAccount",
    Category.NETWORKS: "NetworkAttachmentDefinition",
    Category.CLAIM_TEMPLATES: "ResourceClaimTemplate",
    Category.CLAIMS: "ResourceClaim",
    Category.DEVICE_CLASSES: "DeviceClass",
    Category.IMAGES: "pulled image",
}
_WHOLE = frozenset({Category.KINDS, Category.IMAGES})
"""Categories in whose names a slash does not separate a namespace."""


def refuse_lacking(
    cluster: Cluster, prerequisites: Sequence[Prerequisite], seen: ClusterObservation | None
) -> Refusal | None:
    """Refuse a cluster that lacks prerequisites, and name all of them; None if none is known to be missing."""
    if not prerequisites:
        return None
    lacks = [prerequisite for prerequisite in prerequisites if _has(cluster, prerequisite, seen) is False]
    if not lacks:
        return None
    first, *others = lacks
    nor = f", nor {join_names(map(describe_prerequisite, others))}" if others else ""
    fields = join_names(dict.fromkeys(f"spec.provides.{lack.category}" for lack in lacks))
    them = "them" if others else "it"
    return Refusal(
        cluster=cluster.name,
        reason=Reason.NEEDS_FIRST,
        message=f"has no {describe_prerequisite(first)}, which {sanitize(first.by)} needs{nor}",
        remedy=f"create {them} there and list {them} in its {fields} (what a list does not name, the cluster lacks),"
        f" or ship {them} with the workload",
    )


def declared_lacking(cluster: Cluster, prerequisites: Iterable[Prerequisite]) -> tuple[Prerequisite, ...]:
    """List the prerequisites that a cluster lacks by its own file."""
    return tuple(prerequisite for prerequisite in prerequisites if _has(cluster, prerequisite, None) is False)


def undeclared(
    cluster: Cluster, prerequisites: Iterable[Prerequisite], seen: ClusterObservation | None = None
) -> tuple[Prerequisite, ...]:
    """List the prerequisites that a cluster neither declares nor reports."""
    return tuple(prerequisite for prerequisite in prerequisites if _has(cluster, prerequisite, seen) is None)


def describe_undeclared(
    clusters: Iterable[tuple[Cluster, ClusterObservation | None]], prerequisites: Sequence[Prerequisite]
) -> Iterator[str]:
    """Yield a sentence for each cluster about prerequisites that it does not declare."""
    for cluster, seen in clusters if prerequisites else ():
        doubtful = undeclared(cluster, prerequisites, seen)
        if doubtful:
            fields = join_names(dict.fromkeys(f"spec.provides.{prerequisite.category}" for prerequisite in doubtful))
            what = join_names(describe_prerequisite(prerequisite) for prerequisite in doubtful)
            yield f"{cluster.name} does not say whether it has {what}: list what it has in its {fields}."


def describe_prerequisite(prerequisite: Prerequisite) -> str:
    """Name a prerequisite with its kind."""
    return f"{_WORDS[prerequisite.category]} {sanitize(prerequisite.name)}"


def _has(cluster: Cluster, prerequisite: Prerequisite, seen: ClusterObservation | None) -> bool | None:
    """Return whether a cluster has a prerequisite; None where unknown."""
    classes = _observed_names(prerequisite.category, seen)
    if classes is not None and prerequisite.name in classes:
        return True
    patterns = cluster.provides.get(prerequisite.category)
    if has_expression(prerequisite.name):
        return None
    if patterns is None:
        return None if classes is None else False
    bare = prerequisite.name if prerequisite.category in _WHOLE else prerequisite.name.rpartition("/")[2]
    return any(fnmatchcase(prerequisite.name if "/" in text else bare, text) for text in patterns)


def _observed_names(category: Category, seen: ClusterObservation | None) -> Collection[str] | None:
    """Return the observed names of a category; None where it is not observed."""
    if seen is not None and category is Category.DEVICE_CLASSES:
        return seen.device_classes or None
    return seen.runtime_classes if seen is not None and category is Category.RUNTIME_CLASSES else None
