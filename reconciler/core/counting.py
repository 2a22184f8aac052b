"""Which template counts which object on a primary: one each, or its missing replicas would be placed twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.policy import Workspace
from reconciler.model.workload import WorkloadRef, WorkloadTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedObject:
    """The object that a template would count, and the template that counts it already."""

    ref: WorkloadRef
    by: WorkloadTemplate

    def __str__(self) -> str:
        """Write the object as the annotation does: ``Deployment/llm-demo/vllm``, without a kind that is not known."""
        return "/".join(part for part in (self.ref.kind, self.ref.namespace, self.ref.name) if part)


def counted_before(
    templates: Iterable[WorkloadTemplate], workspaces: Mapping[WorkspaceName, Workspace]
) -> dict[WorkloadId, CountedObject]:
    """Find the templates whose object an earlier one counts already, by path and line, each with what it is.

    A reference without a kind is to an object of any kind. A template that is found here counts nothing itself.
    """
    counting: dict[tuple[ClusterName, str, str], list[tuple[WorkloadRef, WorkloadTemplate]]] = {}
    found: dict[WorkloadId, CountedObject] = {}
    for template in sorted(templates, key=lambda template: (template.path, template.line)):
        ref = template.ref
        if ref is None:
            continue
        key = (workspaces[template.workspace].primary, ref.namespace, ref.name)
        rivals = counting.setdefault(key, [])
        first = next((other for known, other in rivals if known.may_be(ref)), None)
        if first is None:
            rivals.append((ref, template))
        else:
            found[template.workload] = CountedObject(ref=ref, by=first)
    return found
