"""EGS's auto-GPR: a GPRTemplateBinding acts as a BurstPolicy, and a GPRTemplate gives the terms of GPUs on a cluster.

A workspace whose binding has ``enableAutoGPR`` bursts without a BurstPolicy, so that a fleet of EGS files alone does
what EGS does. A BurstPolicy that governs a template wins; the binding then gives only the terms of its GPRs. EGS lets a
GPRTemplate be named in several places; the binding wins (docs/reference/egs.md, R24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.core.fleet.template import TemplateDraft
from reconciler.errors import Severity
from reconciler.model.gpr import ClusterBinding, GprTemplate
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import BurstPolicy, ClusterPreference, Desired
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.findings import Finding


def gpr_template(
    named: Iterable[str], workspace: WorkspaceName, cluster: ClusterName, desired: Desired
) -> GprTemplate | None:
    """Return the GPRTemplate of a workload on a cluster of its workspace: the first named, else the default.

    In a workspace with a GPRTemplateBinding only the templates that the binding lists for the cluster count, and its
    default only with ``enableAutoGPR``. A reference to an unknown template, or to one of another cluster, is ignored.
    """
    binding = desired.bindings.get(workspace)
    bound = (
        next((cluster_binding for cluster_binding in binding.clusters if cluster_binding.cluster == cluster), None)
        if binding is not None
        else None
    )
    usable = [name for name in named if binding is None or (bound is not None and name in allowed_templates(bound))]
    if binding is not None and binding.auto and bound is not None:
        usable.append(bound.default)
    for name in usable:
        bound_template = desired.gpr_templates.get(name)
        if bound_template is not None and bound_template.cluster == cluster:
            return bound_template
    return None


def allowed_templates(bound: ClusterBinding) -> frozenset[str]:
    """Return the names of the GPRTemplates that a binding allows on a cluster."""
    return frozenset({bound.default, *bound.templates})


_DEFAULTS = BurstPolicy(name="defaults")


def implicit_policy(template: WorkloadTemplate, draft: TemplateDraft, desired: Desired) -> BurstPolicy | None:
    """Make the policy of a template without a BurstPolicy from its binding; None without such a binding.

    Its clusters are those of the template; else all of the workspace, if the template bursts anywhere; else those of
    the binding, in order. Priority and duration are those of the GPRTemplate of the first cluster.
    """
    binding = desired.bindings.get(template.workspace)
    if binding is None or not binding.auto or draft.auto is False:
        return None
    bound = {cluster.cluster: cluster for cluster in binding.clusters}
    clusters = draft.clusters or (() if draft.bursts_anywhere else tuple(bound))
    if not clusters and not draft.bursts_anywhere:
        return None  # a policy that names no cluster would burst to all of them
    primary = desired.workspaces[template.workspace].primary
    first = next((name for name in (*clusters, *bound) if name != primary and name in bound), None)
    gpr = None if first is None else gpr_template(template.gpr_templates, template.workspace, first, desired)
    lasting = (gpr.terms.exit_duration if gpr is not None else None) or _DEFAULTS.default_duration
    own = bool(draft.clusters or draft.bursts_anywhere or template.gpr_templates)
    return BurstPolicy(
        name=f"binding/{template.workspace}/{template.name}" if own else f"binding/{template.workspace}",
        priority=0 if gpr is None else gpr.terms.priority,
        candidates=tuple(ClusterPreference(name=name) for name in clusters),
        default_duration=lasting,
    )


def warn_unlisted_templates(template: WorkloadTemplate, desired: Desired) -> Iterator[Finding]:
    """Warn of GPRTemplates that a template names and the binding of its workspace does not list."""
    binding = desired.bindings.get(template.workspace)
    bound_names = frozenset[str]() if binding is None else frozenset().union(*map(allowed_templates, binding.clusters))
    for index, name in enumerate(() if binding is None else template.gpr_templates):
        if name in desired.gpr_templates and name not in bound_names:
            yield Finding(
                loc=("spec", "gprTemplates", index),
                message=f"has no effect: the GPRTemplateBinding of workspace {template.workspace} does not list {name}",
                hint="add it to spec.clusters[].templates there",
                severity=Severity.WARNING,
            )


def warn_overridden_fields(
    draft: TemplateDraft, policy: BurstPolicy | None, implicit: BurstPolicy | None
) -> Iterator[Finding]:
    """Warn of burst fields of a template that a policy overrides, or that have no effect."""
    if implicit is not None:
        return
    settings: tuple[tuple[str, bool | tuple[ClusterName, ...] | None], ...] = (
        ("autoPlacement", draft.auto),
        ("enableBurst", draft.bursts_anywhere),
        ("clusterNames", draft.clusters),
    )
    for name, value in settings:
        if not value:
            continue
        what = "where to" if name == "clusterNames" else "when it bursts"
        message, hint = f"has no effect: BurstPolicy {policy.name} says {what}" if policy else "", ""
        if policy is None:
            message = "has no effect: its workspace has no GPRTemplateBinding with enableAutoGPR"
            hint = "add one, or a BurstPolicy"
        yield Finding(loc=("spec", name), message=message, hint=hint, severity=Severity.WARNING)
