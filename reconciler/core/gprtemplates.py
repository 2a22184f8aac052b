"""Which GPRTemplate gives the terms of GPUs on a cluster: of all that EGS lets say it, the binding wins (R24)."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.gpr import ClusterBinding, GprTemplate
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Desired


def gpr_template(
    named: Iterable[str], workspace: WorkspaceName, cluster: ClusterName, desired: Desired
) -> GprTemplate | None:
    """Find the GPRTemplate for what names some, on a cluster of its workspace: the first of them, else the default.

    Where the workspace has a GPRTemplateBinding only those count that it lists for the cluster, and its default only if
    it gives workloads GPRs by themselves. What names a template that nobody describes, or one of another cluster, names
    none.
    """
    binding = desired.bindings.get(workspace)
    bound = next((one for one in binding.clusters if one.cluster == cluster), None) if binding is not None else None
    usable = [name for name in named if binding is None or (bound is not None and name in listed(bound))]
    if binding is not None and binding.auto and bound is not None:
        usable.append(bound.default)
    for name in usable:
        found = desired.gpr_templates.get(name)
        if found is not None and found.cluster == cluster:
            return found
    return None


def listed(bound: ClusterBinding) -> frozenset[str]:
    """Name the GPRTemplates that may be used on a cluster."""
    return frozenset({bound.default, *bound.templates})
