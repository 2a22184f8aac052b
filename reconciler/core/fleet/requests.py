"""EGS's GPRTemplates, WorkspacePolicies and GPRTemplateBindings, and the requests in files, put into force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from reconciler.core.fleet import admission
from reconciler.core.fleet.objects import DeclaredValue, FleetObjects, name_locations
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.fleet.warnings.engine_ignores import warn_engine_ignores
from reconciler.core.fleet.warnings.prerequisites import asked_clusters, check_prerequisites, warn_unserved
from reconciler.core.schema.egs.gpr import GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile, WorkspacePolicyFile
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.errors import Severity
from reconciler.model.gpr import GprBinding, GprTemplate, WorkspaceLimits
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.policy import Cluster, Desired, Workspace
from reconciler.model.request import Request
from reconciler.text.findings import Finding, Loc


def gpr_templates(work: FleetObjects, clusters: Mapping[ClusterName, Cluster]) -> dict[str, GprTemplate]:
    """Read the GPRTemplates; each names a cluster that some file describes."""
    templates: dict[str, GprTemplate] = {}
    for name, placed in work.named(GprTemplateFile, "GPRTemplate").items():
        work.report_unknown(placed, "Cluster", [(("spec", "clusterName"), placed.value.spec.cluster_name)], clusters)
        templates[name] = placed.value.value_of()
    return templates


def workspace_limits(
    work: FleetObjects, workspaces: Mapping[WorkspaceName, Workspace], clusters: Mapping[ClusterName, Cluster]
) -> dict[WorkspaceName, WorkspaceLimits]:
    """Read the WorkspacePolicies: at most one a workspace, whatever their names."""
    policies: dict[WorkspaceName, DeclaredValue[WorkspacePolicyFile]] = {}
    for placed in work.all(WorkspacePolicyFile):
        name = placed.value.workspace
        if not work.is_unique(placed, policies.get(name), f"the WorkspacePolicy of {name}"):
            continue
        policies[name] = placed
        named = placed.value.spec.slice_ref is not None
        loc: Loc = ("spec", "sliceRef", "name") if named else ("metadata", "name")
        work.report_unknown(placed, "Workspace", [(loc, name)], workspaces)
        bounds = placed.value.spec.cluster_gpu_constraints
        if name in workspaces:
            wrong: list[tuple[Loc, str]] = [
                (("spec", "clusterGPUConstraints", index, "clusterName"), constraint.cluster_name)
                for index, constraint in enumerate(bounds)
            ]
            work.report_outside(placed, workspaces[name], wrong, clusters)
    return {name: placed.value.value_of() for name, placed in policies.items()}


def gpr_bindings(work: FleetObjects, desired: Desired) -> dict[WorkspaceName, GprBinding]:
    """Read the GPRTemplateBindings; those that break a WorkspacePolicy have no effect (docs/reference/egs.md, R27)."""
    by_workspace: dict[WorkspaceName, GprBinding] = {}
    for name, placed in work.named(BindingFile, "GPRTemplateBinding").items():
        work.report_unknown(placed, "Workspace", [(("metadata", "name"), name)], desired.workspaces)
        wrong = list(_check_binding(work, placed, desired))
        for finding in wrong:
            work.reject(placed, finding)
        if not wrong:
            by_workspace[WorkspaceName(name)] = placed.value.value_of()
    return by_workspace


def _check_binding(work: FleetObjects, placed: DeclaredValue[BindingFile], desired: Desired) -> Iterator[Finding]:
    """Report unknown names in a binding, and templates of other clusters or beyond the policy."""
    workspace = WorkspaceName(placed.value.metadata.name)
    policy = desired.limits.get(workspace)
    for index, binding in enumerate(placed.value.spec.clusters):
        root: Loc = ("spec", "clusters", index)
        if workspace in desired.workspaces:
            bound: list[tuple[Loc, str]] = [((*root, "clusterName"), binding.cluster_name)]
            work.report_outside(placed, desired.workspaces[workspace], bound, desired.clusters)
        named = name_locations((*root, "templates"), binding.templates)
        if binding.default_template_name is not None:
            named.insert(0, ((*root, "defaultTemplateName"), binding.default_template_name))
        work.report_unknown(placed, "GPRTemplate", named, desired.gpr_templates)
        for loc, name in named:
            template = desired.gpr_templates.get(name)
            if template is None:
                continue
            if template.cluster != binding.cluster_name:
                message = f"GPRTemplate {name} is for {template.cluster}, not for {binding.cluster_name}"
                yield Finding(loc=loc, message=message, hint="each template is for one cluster")
            for finding in () if policy is None else admission.check_terms(template.terms, policy):
                message = f"GPRTemplate {name}: {finding.loc[-1]}: {finding.message}"
                yield Finding(loc=loc, message=message, hint=finding.hint)
        if binding.default_template_name is None and len(binding.templates) > 1:
            message = "names several templates, and no default"
            yield Finding(loc=root, message=message, hint="try defaultTemplateName: ...")


def admitted_requests(work: FleetObjects, desired: Desired) -> dict[WorkloadId, Request]:
    """Admit the placements and reservations that files ask for."""
    requests_by_workload: dict[WorkloadId, tuple[Request, DeclaredValue[RequestDraft]]] = {}
    for placed in work.all(RequestDraft):
        draft = placed.value
        workspace = work.workspace_of(draft.workspace, draft.used, placed.path, desired.workspaces)
        if isinstance(workspace, Finding):
            if (draft.workspace or "Workspace") not in work.excused:
                work.report(placed, draft.spelling.of(workspace))
            work.rejected.add(placed.path)
            continue
        workload = WorkloadId(workspace.name, draft.name, request=True)
        other = requests_by_workload.get(workload)
        word = "GPUProvisioningRequest" if draft.reserves else "WorkloadPlacement"
        if not work.is_unique(placed, None if other is None else other[1], f"{word} {workload}"):
            continue
        examined = admission.review(draft, workspace, desired)
        for finding in examined.findings:
            (work.reject if finding.severity is Severity.ERROR else work.report)(placed, finding)
        request = examined.request
        if request is not None:
            needed = prerequisites(request.spec, workspace, desired.kinds)
            clusters = asked_clusters(request.clusters, workspace, desired)
            complete = "Cluster" not in work.excused
            check = partial(check_prerequisites, request.spec, needed, workspace, clusters, desired.kinds)
            work.warn(placed, partial(check, seen=work.seen, complete=complete), draft.spelling.of)
            places = [(cluster, needed, work.seen.get(cluster.name)) for cluster in clusters]
            work.warn(placed, partial(warn_unserved, request.spec, places, desired.kinds), draft.spelling.of)
            if not draft.reserves:
                asked = request.clusters or workspace.destinations
                ignored = partial(warn_engine_ignores, request.spec, workspace, asked, desired)
                work.warn(placed, ignored, draft.spelling.of)
            requests_by_workload[workload] = (replace(request, path=placed.path, line=placed.declared.line), placed)
    return {workload: request for workload, (request, _) in requests_by_workload.items()}
