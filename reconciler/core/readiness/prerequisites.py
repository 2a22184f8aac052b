"""Objects that templates refer to and do not make: Secrets, ConfigMaps, service accounts, classes, kinds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import (
    GROUPS,
    AnswerKind,
    Answers,
    ApiQuestion,
    object_question,
    served_versions,
)
from reconciler.core.workloads.cluster_provides import describe_prerequisite
from reconciler.model.cluster import Category, Prerequisite
from reconciler.text.wording import sanitize

_OBJECTS: Mapping[Category, tuple[tuple[str, str], ...]] = {
    Category.PRIORITY_CLASSES: (
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass"),  # a label of Kueue's may name one instead
        ("kueue.x-k8s.io/v1beta1", "WorkloadPriorityClass"),
    ),
    Category.RUNTIME_CLASSES: (("node.k8s.io/v1", "RuntimeClass"),),
    Category.VOLUMES: (("v1", "PersistentVolumeClaim"),),
    Category.STORAGE_CLASSES: (("storage.k8s.io/v1", "StorageClass"),),
    Category.CONFIG_MAPS: (("v1", "ConfigMap"),),
    Category.SECRETS: (("v1", "Secret"),),
    Category.SERVICE_ACCOUNTS: (("v1", "ServiceAccount"),),
}
"""The categories of objects that a server can be asked for: the versions and kinds that a name may be of."""

_OWN = (
    '.metadata["creationTimestamp", "finalizers", "generateName", "managedFields", "ownerReferences",'
    ' "resourceVersion", "uid"], .status'
)
"""Fields that a server or a controller sets, as paths of jq.

A copy may have no owners: the garbage collector deletes an object whose owner is absent from its cluster
(https://kubernetes.io/docs/concepts/architecture/garbage-collection/).
"""

_BOUND = (
    ".spec.volumeName, .metadata.annotations[.metadata.annotations // {} | keys[] | select(startswith("
    '"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/storage-provisioner"))]'
)
"""Fields that bind a claim to a volume and a node of its cluster. The old annotation of its storage class stays."""


def is_asked(prerequisite: Prerequisite) -> bool:
    """Return whether an API server can be asked for a prerequisite; a name with an expression is not known yet."""
    known = prerequisite.category in _OBJECTS or prerequisite.category is Category.KINDS
    return known and not has_expression(prerequisite.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededObject:
    """An object or a kind that a template needs in a cluster (a `Check`)."""

    server: AskedServer
    primary: AskedServer
    """Where the workload runs already, and so has what it needs."""
    prerequisite: Prerequisite

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """The metadata of the object, or the API groups for a kind."""
        if self.prerequisite.category is Category.KINDS:
            return (GROUPS,)
        namespace, _, name = self.prerequisite.name.rpartition("/")
        return tuple(
            object_question(version, kind, name, namespace, metadata_only=True)
            for version, kind in _OBJECTS[self.prerequisite.category]
        )

    def result(self, answers: Answers) -> CheckResult:
        """Say whether it is there."""
        subject, by = describe_prerequisite(self.prerequisite), f"for {sanitize(self.prerequisite.by)}"
        given = [answers[question] for question in self.questions]
        there = next((answer for answer in given if answer.kind is AnswerKind.GIVEN), None)
        if there is None and (closed := next((answer for answer in given if answer.open), None)) is not None:
            return unknown(subject, f"{closed.why}; needed {by}", self._get(self.server))
        if self.prerequisite.category is Category.KINDS:
            group = self.prerequisite.name.partition("/")[0]
            versions = served_versions(there or given[0], group)
            if versions:
                return ok(subject, f"its group is served in {', '.join(sorted(versions))}, {by}")
            seen = f"{group} is not served: what serves it on {self.primary.title} is to be installed; needed {by}"
            return missing(subject, seen, self._get(self.primary))
        if there is not None:
            return ok(subject, f"there, {by}")
        return missing(subject, f"not there; needed {by}", self._copy())

    def _get(self, server: AskedServer, *more: str) -> str:
        if self.prerequisite.category is Category.KINDS:
            return server.kubectl("api-resources", f"--api-group={self.prerequisite.name.partition('/')[0]}")
        _, kind = _OBJECTS[self.prerequisite.category][0]
        namespace, _, name = self.prerequisite.name.rpartition("/")
        space = [f"--namespace={namespace}"] if namespace else []
        return server.kubectl("get", *space, f"{kind.lower()}/{name}", *more)

    def _copy(self) -> str:
        """Write how to take it over from the primary."""
        namespace, _, name = self.prerequisite.name.rpartition("/")
        if self.prerequisite.category is Category.SERVICE_ACCOUNTS:
            return self.server.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
        bound = f", {_BOUND}" if self.prerequisite.category is Category.VOLUMES else ""
        clean = f"jq {shlex.quote(f'del({_OWN}{bound})')}"
        return f"{self._get(self.primary, '--output=json')} | {clean} | {self.server.kubectl('apply', '-f', '-')}"
