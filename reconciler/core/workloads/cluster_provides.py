"""Prerequisites of a workload against what a Cluster file declares to provide.

A cluster that lists objects of a category has no others of it. Categories that it does not list are unknown: they
refuse no placement, and `overspill check` and `overspill explain` report them. DeviceClasses and RuntimeClasses are
observed, where there are any. LocalQueues are observed where Kueue is, and API versions on every watched cluster: such
an observation is complete, and holds against any list. Where API versions are unknown, nothing is said of them, since
every object has one. A group of which an API server serves no version refuses no placement either: the engine may be
about to install it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import Cluster
from reconciler.text.wording import join_names, sanitize

_WORDS = {
    Category.KINDS: "kind",
    Category.API_VERSIONS: "API version",
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
_VERSION = re.compile(r"v([0-9]{1,9})(?:(alpha|beta)([0-9]{1,9}))?")
_STAGES = ("alpha", "beta", "")
_WHOLE = frozenset({Category.KINDS, Category.API_VERSIONS, Category.IMAGES})
"""Categories in whose names a slash does not separate a namespace."""
_COMPLETE = frozenset({Category.API_VERSIONS, Category.QUEUES})
"""Categories of which an observation names all that a cluster has."""


def refuse_lacking(
    cluster: Cluster, prerequisites: Sequence[Prerequisite], seen: ClusterObservation | None
) -> Refusal | None:
    """Refuse a cluster that lacks prerequisites, and name all of them; None if none is known to be missing."""
    if not prerequisites:
        return None
    lacks = [
        prerequisite
        for prerequisite in prerequisites
        if prerequisite.category is not Category.API_VERSIONS and _has(cluster, prerequisite, seen) is False
    ]
    kinds = {lack.name.partition("/")[0] for lack in lacks if lack.category is Category.KINDS}
    unserved = [
        version
        for version in unserved_versions(cluster, prerequisites, seen)
        if version.refuses and version.group not in kinds
    ]  # a kind that the cluster lacks has no version there
    if not (lacks or unserved):
        return None
    messages, remedies = [version.message for version in unserved], [version.remedy for version in unserved]
    if lacks:
        first, *others = lacks
        nor = f", nor {join_names(map(describe_prerequisite, others))}" if others else ""
        fields = declaring_fields(lacks, (seen,))
        them = "them" if others else "it"
        listing = f" and list {them} in its {fields} (what a list does not name, the cluster lacks)" if fields else ""
        messages.insert(0, f"has no {describe_prerequisite(first)}, which {sanitize(first.by)} needs{nor}")
        remedies.insert(0, f"create {them} there{listing}, or ship {them} with the workload")
    return Refusal(
        cluster=cluster.name, reason=Reason.NEEDS_FIRST, message="; ".join(messages), remedy="; ".join(remedies)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedVersion:
    """An API version that an object is written in and that an API server does not serve, so that it refuses it.

    https://kubernetes.io/docs/reference/using-api/#api-groups
    """

    needed: Prerequisite
    served: tuple[str, ...]
    """The versions of its group that are served, the preferable ones last; empty for none."""
    listed: bool = False
    """Whether a list in the file of the cluster says so, and not its API server."""

    @property
    def refuses(self) -> bool:
        """Whether no such object is placed: the cluster serves other versions of its group, or lists all it has."""
        return self.listed or bool(self.served)

    @property
    def group(self) -> str:
        """The API group."""
        return self.needed.name.rpartition("/")[0]

    @property
    def message(self) -> str:
        """Say what the API server serves instead."""
        name, by = sanitize(self.needed.name), sanitize(self.needed.by)
        if self.served:
            return f"serves {', '.join(self.served)}, but the {by} is written in {name}"
        return f"serves no version of {sanitize(self.group)}, the API group of the {by}"

    @property
    def remedy(self) -> str:
        """Say what a person can do."""
        name = sanitize(self.needed.name)
        if self.group in KUBERNETES_GROUPS:
            rather = f"write it in {self.served[-1]}, or " if self.served else ""
            return f"{rather}upgrade the cluster to a Kubernetes that serves {name}"
        if self.served:
            return f"write it in {self.served[-1]}, or install a release there that serves {name}"
        return "install there what serves it, or ship its CustomResourceDefinition with the workload"


def unserved_versions(
    cluster: Cluster, prerequisites: Iterable[Prerequisite], seen: ClusterObservation | None
) -> Iterator[UnservedVersion]:
    """Yield the API versions that a cluster does not serve, as far as its API server or its file says so."""
    for prerequisite in prerequisites:
        if prerequisite.category is Category.API_VERSIONS and _has(cluster, prerequisite, seen) is False:
            versions = None if seen is None else seen.api_versions
            if versions is None:
                yield unserved_version(prerequisite, cluster.provides[Category.API_VERSIONS], listed=True)
            else:
                yield unserved_version(prerequisite, versions)


def unserved_version(prerequisite: Prerequisite, versions: Iterable[str], *, listed: bool = False) -> UnservedVersion:
    """Describe an API version that is not among those of an API server, or of a list in a Cluster file."""
    group = prerequisite.name.rpartition("/")[0]
    served = sorted((version for version in versions if version.rpartition("/")[0] == group), key=_priority)
    return UnservedVersion(needed=prerequisite, served=tuple(map(sanitize, served)), listed=listed)


def _priority(version: str) -> tuple[int, int, int, str]:
    """Return a higher value for a preferable API version of a group: a stable one before beta, and that before alpha.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/
    """
    found = _VERSION.fullmatch(version.rpartition("/")[2])
    if found is None:
        return -1, 0, 0, version
    return _STAGES.index(found[2] or ""), int(found[1]), int(found[3] or 0), version


def known_lacking(
    cluster: Cluster, prerequisites: Iterable[Prerequisite], seen: ClusterObservation | None = None
) -> tuple[Prerequisite, ...]:
    """List the prerequisites that a cluster lacks by its own file, and as it is observed."""
    return tuple(prerequisite for prerequisite in prerequisites if _has(cluster, prerequisite, seen) is False)


def undeclared(
    cluster: Cluster, prerequisites: Iterable[Prerequisite], seen: ClusterObservation | None = None
) -> tuple[Prerequisite, ...]:
    """List the prerequisites that a cluster neither declares nor reports, but for API versions."""
    return tuple(
        prerequisite
        for prerequisite in prerequisites
        if prerequisite.category is not Category.API_VERSIONS and _has(cluster, prerequisite, seen) is None
    )


def describe_undeclared(
    clusters: Iterable[tuple[Cluster, ClusterObservation | None]], prerequisites: Sequence[Prerequisite]
) -> Iterator[str]:
    """Yield the sentences for each cluster about prerequisites that it does not declare, or does not serve yet."""
    for cluster, seen in clusters if prerequisites else ():
        for version in unserved_versions(cluster, prerequisites, seen):
            if not version.refuses:
                yield f"{cluster.name} {version.message}: {version.remedy}."
        doubtful = undeclared(cluster, prerequisites, seen)
        if doubtful:
            fields = declaring_fields(doubtful, ())
            what = join_names(describe_prerequisite(prerequisite) for prerequisite in doubtful)
            yield f"{cluster.name} does not say whether it has {what}: list what it has in its {fields}."


def observed_answers(
    cluster: Cluster, prerequisites: Iterable[Prerequisite], seen: ClusterObservation
) -> Iterator[tuple[Prerequisite, bool, tuple[str, ...]]]:
    """Yield the prerequisites of which an observation says something else than the file of a cluster.

    Each comes with whether the cluster has it, and with the served versions of its group where it is an API version
    that is not served. An API version that is served is nothing to tell where the file is silent.
    """
    for prerequisite in prerequisites:
        has, declared = _has(cluster, prerequisite, seen), _has(cluster, prerequisite, None)
        if prerequisite.category is not Category.API_VERSIONS or seen.api_versions is None:
            if has is not None and has is not declared:
                yield prerequisite, has, ()
        elif not has:
            yield prerequisite, False, unserved_version(prerequisite, seen.api_versions).served
        elif declared is False:
            yield prerequisite, True, ()


def declaring_fields(prerequisites: Iterable[Prerequisite], seen: Collection[ClusterObservation | None]) -> str:
    """Name the fields in which Clusters list prerequisites, but for those that observations settle; empty for none."""
    return join_names(
        dict.fromkeys(
            f"spec.provides.{each.category}"
            for each in prerequisites
            if not (seen and all(_is_settled(each, observation) for observation in seen))
        )
    )


def describe_prerequisite(prerequisite: Prerequisite) -> str:
    """Name a prerequisite with its kind."""
    return f"{_WORDS[prerequisite.category]} {sanitize(prerequisite.name)}"


def _has(cluster: Cluster, prerequisite: Prerequisite, seen: ClusterObservation | None) -> bool | None:
    """Return whether a cluster has a prerequisite; None where unknown."""
    observed = _observed_names(prerequisite, seen)
    if observed is not None and prerequisite.name in observed:
        return True
    patterns = cluster.provides.get(prerequisite.category)
    if has_expression(prerequisite.name):
        return None
    if _is_settled(prerequisite, seen):
        return False
    if patterns is None:
        return None if observed is None else False
    bare = prerequisite.name if prerequisite.category in _WHOLE else prerequisite.name.rpartition("/")[2]
    return any(fnmatchcase(prerequisite.name if "/" in text else bare, text) for text in patterns)


def _is_settled(prerequisite: Prerequisite, seen: ClusterObservation | None) -> bool:
    """Return whether an observation names all of the prerequisite's kind that a cluster has, whatever its file says."""
    return prerequisite.category in _COMPLETE and _observed_names(prerequisite, seen) is not None


def _observed_names(prerequisite: Prerequisite, seen: ClusterObservation | None) -> Collection[str] | None:
    """Return the observed names of a prerequisite's category; None where it is not observed."""
    if seen is None:
        return None
    match prerequisite.category:
        case Category.API_VERSIONS:
            return seen.api_versions
        case Category.DEVICE_CLASSES:
            return seen.device_classes or None
        case Category.RUNTIME_CLASSES:
            return seen.runtime_classes
        case Category.QUEUES if "/" in prerequisite.name and seen.queues is not None:
            # Only LocalQueues have a namespace; those of KAI and Volcano are not observed.
            return {f"{namespace}/{name}" for namespace, name in seen.queues.local}
    return None
