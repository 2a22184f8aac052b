"""Admission of requests: their workspace, their clusters, the safety rules, and the limits of their GPR.

Requests in files are admitted when the fleet is assembled, requests of the API when their order is carried out. A field
beyond the policy of the workspace is an error and never reduced silently (docs/reference/egs.md, R27).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.core.capacity.gpu_models import matches_model
from reconciler.core.capacity.pod_requirements import UNKNOWN_REMEDY, request_requirements
from reconciler.core.expressions.render import reads_variable
from reconciler.core.fleet.objects import find_workspace
from reconciler.core.safety import rules
from reconciler.core.schema.egs.request import RequestDraft, copies_template
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.errors import Severity
from reconciler.model.gpr import GprTerms, GpuAsk, GpuLimits, WorkspaceLimits
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import Desired, Workspace
from reconciler.model.request import Request
from reconciler.model.units import format_duration
from reconciler.model.workload import DeploySpec, ManifestResource, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened, told
from reconciler.text.spelling import nearest

DEFAULT_DURATION = timedelta(days=7)
"""Duration of a request without one, in a workspace whose policy has no default either."""


def admit(
    draft: RequestDraft, desired: Desired, *, within: AbstractSet[WorkspaceName] | None = None
) -> Request | tuple[Finding, ...]:
    """Admit a placement or reservation that a call asks for; return its errors otherwise.

    The caller sees the workspaces in `within` alone (None: all of them): no hint names another.
    """
    seen = desired.workspaces
    if within is not None:
        seen = {name: workspace for name, workspace in seen.items() if name in within}
    workspace = find_workspace(draft.workspace, draft.used, seen)
    if isinstance(workspace, Finding):
        return (draft.spelling.of(workspace),)
    examined = review(draft, workspace, desired)
    return examined.request or told(examined.errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionResult:
    """The request that a draft became in its workspace, and the findings about it."""

    # None if an error is among the findings.
    request: Request | None
    findings: tuple[Finding, ...]
    # The part of its needs that cannot be counted.
    unknown: str

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings without the warnings."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


def review(draft: RequestDraft, workspace: Workspace, desired: Desired) -> AdmissionResult:
    """Make a request of a draft in its workspace, with its errors and warnings."""
    findings: list[Finding] = []
    template = _template(draft, workspace, desired, findings)
    if template is not None:
        draft = _with_template(draft, template)
    limits = desired.limits.get(workspace.name)
    findings += _check_clusters(draft, workspace)
    if not draft.reserves:
        findings += rules.check_safety(draft.spec, workspace, kinds=desired.kinds, schemas=desired.schemas)
        for index, resource in enumerate(draft.spec.manifests):
            loc: Loc = ("spec", "manifestResources", index, "manifest")
            findings += _check_replicas_expressions(resource, loc, desired.kinds)
    if limits is not None:
        findings += _check_policy(draft, limits)
    if (draft.spec.burst_duration or _terms(draft).exit_duration) is None:
        lasting = DEFAULT_DURATION if limits is None else limits.longest
        message = f"says nothing about how long: it ends after {format_duration(lasting)}"
        hint = "try exitDuration: 1h" if draft.reserves else "try burstDuration: 1h"
        findings.append(Finding(loc=("spec",), message=message, hint=hint, severity=Severity.WARNING))
    request = draft.request(workspace.name, limits)
    unknown = request_requirements(request, kinds=desired.kinds).unknown
    if unknown:
        message = f"{unknown}, so {'they count as nothing' if workspace.allow_unknown_needs else 'nothing is placed'}"
        findings.append(Finding(loc=("spec",), message=message, hint=UNKNOWN_REMEDY, severity=Severity.WARNING))
    spelled = tuple(draft.spelling.of(finding) for finding in findings)
    wrong = any(finding.severity is Severity.ERROR for finding in spelled)
    return AdmissionResult(request=None if wrong else request, findings=spelled, unknown=unknown)


def _check_replicas_expressions(resource: ManifestResource, loc: Loc, kinds: Kinds) -> Iterator[Finding]:
    """Refuse expressions that use `replicas`, the pods of a placement, as the number of gangs."""
    kind = kind_of(resource.manifest, kinds)
    if kind is not None and kind.together is not None and reads_variable(DeploySpec(manifests=(resource,)), "replicas"):
        message = f"in a request replicas counts pods, and a {kind.kind} makes several for each of its own"
        yield Finding(loc=loc, message=message, hint="write the number out")


def check_gpu_ask(ask: GpuAsk, limits: GpuLimits, where: str) -> Iterator[Finding]:
    """Check the GPUs of a request against limits; `where` names these limits. Locations are fields of a GPR."""
    total = ask.gpus * ask.nodes
    if limits.gpus is not None and total > limits.gpus:
        per_node = f" ({ask.gpus} on each of {ask.nodes} nodes)" if ask.nodes > 1 else ""
        yield Finding(
            loc=("numberOfGPUs",),
            message=f"{total} GPUs{per_node} are more than the {limits.gpus} that one GPR may have {where}",
            hint=f"try {max(1, limits.gpus // ask.nodes)}",
        )
    if limits.memory is not None and ask.memory > limits.memory:
        message = f"{ask.memory} GB are more than the {limits.memory} GB that a GPU may have {where}"
        yield Finding(loc=("memoryPerGpu",), message=message, hint=f"try {limits.memory}")
    if limits.shapes and ask.shape and not any(matches_model(shape, ask.shape) for shape in limits.shapes):
        message = f"{shortened(ask.shape)} is not among the GPUs that a GPR may have {where}"
        yield Finding(loc=("gpuShape",), message=message, hint=nearest(ask.shape, limits.shapes))


def check_terms(terms: GprTerms, limits: WorkspaceLimits) -> Iterator[Finding]:
    """Check the terms of a GPR against the policy of its workspace. Locations are fields of a GPR."""
    if not limits.lowest <= terms.priority <= limits.highest:
        allowed = f"{limits.lowest} to {limits.highest}"
        yield Finding(
            loc=("priority",),
            message=f"{terms.priority} is not within {allowed}, the priorities of workspace {limits.workspace}",
            hint=f"try {limits.highest}, or a WorkspacePolicy with a higher priorityRange",
        )
    if terms.exit_duration is not None and terms.exit_duration > limits.longest:
        yield _too_long(("exitDuration",), terms.exit_duration, limits)


def _too_long(loc: Loc, duration: timedelta, limits: WorkspaceLimits) -> Finding:
    most = format_duration(limits.longest)
    message = f"{format_duration(duration)} is longer than {most}, the most that workspace {limits.workspace} allows"
    return Finding(loc=loc, message=message, hint=f"try {most}")


def _terms(draft: RequestDraft) -> GprTerms:
    return draft.terms or GprTerms()


def _check_policy(draft: RequestDraft, limits: WorkspaceLimits) -> Iterator[Finding]:
    """Check a draft against the policy of its workspace. Without GPR fields only its duration is bound."""
    root: Loc = ("spec",) if draft.reserves else ("spec", "gprDetails")
    findings: list[Finding] = []
    if draft.terms is not None:
        findings += check_terms(draft.terms, limits)
    if draft.ask is not None:
        findings += check_gpu_ask(draft.ask, limits.limits, f"in workspace {limits.workspace}")
        for name in draft.clusters:
            if name in limits.by_cluster:
                findings += check_gpu_ask(
                    draft.ask, limits.by_cluster[name], f"on {name} in workspace {limits.workspace}"
                )
    yield from (replace(finding, loc=(*root, *finding.loc)) for finding in findings)
    lasting = draft.spec.burst_duration
    if lasting is not None and lasting > limits.longest:
        yield _too_long(("spec", "burstDuration"), lasting, limits)


def _check_clusters(draft: RequestDraft, workspace: Workspace) -> Iterator[Finding]:
    """Check that the clusters belong to the workspace, and that each placement has a cluster."""
    usable = {*(workspace.clusters if draft.reserves else workspace.destinations)}.difference(draft.clusters)
    for index, name in enumerate(draft.clusters):
        if name not in workspace.clusters:
            yield Finding(
                loc=("spec", "clusters", index),
                message=f"{name} is no cluster of workspace {workspace.name}",
                hint=nearest(name, usable),
            )
        elif name not in workspace.destinations and not draft.reserves:
            yield Finding(
                loc=("spec", "clusters", index),
                message=f"{name} is the primary of workspace {workspace.name}, which takes no requests",
                hint="try another cluster, or spec.requestsOnPrimary: true in the Workspace",
            )
    cluster_count = len(draft.clusters or workspace.destinations)
    if draft.placements is not None and draft.placements > cluster_count:
        what = "are named" if draft.clusters else f"workspace {workspace.name} has"
        message = f"{draft.placements} placements need a cluster each, and {cluster_count} {what}"
        yield Finding(loc=("spec", "numPlacements"), message=message, hint=f"try {cluster_count}")


def _template(
    draft: RequestDraft, workspace: Workspace, desired: Desired, findings: list[Finding]
) -> WorkloadTemplate | None:
    """Return the template whose content a draft copies. A missing template that is only named is a warning."""
    if not draft.template:
        return None
    template = desired.templates.get(WorkloadId(workspace.name, TemplateName(draft.template)))
    needed = copies_template(draft)
    if template is None:
        names = [str(workload.name) for workload in desired.templates if workload.workspace == workspace.name]
        findings.append(
            Finding(
                loc=("spec", "workloadTemplateName"),
                message=f"no file describes WorkloadTemplate {shortened(draft.template)} of workspace {workspace.name}",
                hint=nearest(draft.template, names),
                severity=Severity.ERROR if needed else Severity.WARNING,
            )
        )
    elif needed and (template.made_from is not None or template.unread):
        findings.append(
            Finding(
                loc=("spec", "workloadTemplateName"),
                message=f"WorkloadTemplate {template.name} is made from a source, and requests deploy what is written",
                hint="write manifestResources in the request, or name a template that holds its objects",
            )
        )
        return None
    return template if needed else None


def _with_template(draft: RequestDraft, template: WorkloadTemplate) -> RequestDraft:
    """Deploy the content of a template. Fields that the draft states itself take precedence."""
    own, spec = draft.spec, template.own_spec or template.spec
    return replace(
        draft,
        spec=replace(
            spec,
            burst_duration=own.burst_duration or spec.burst_duration,
            deletion_policy=own.deletion_policy if "deletionPolicy" in draft.fields_set else spec.deletion_policy,
            service_account=own.service_account or spec.service_account,
        ),
    )
