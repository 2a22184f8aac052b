"""A request on its own, from a file or from a body: all checks that need no other file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from reconciler.core.schema.egs import deploy_spec
from reconciler.core.schema.egs.deploy_spec import Spelling
from reconciler.core.schema.egs.gpr import GprFile
from reconciler.core.schema.egs.ignored_fields import warn_ignored_fields, warn_ignored_placement_fields
from reconciler.core.schema.egs.placement import CreateBody, PlacementFile, PlacementSpec, UpdateBody
from reconciler.errors import Severity
from reconciler.model.gpr import DEFAULT_PRIORITY, GprTerms, GpuAsk, WorkspaceLimits
from reconciler.model.ids import ClusterName, TemplateName, WorkspaceName
from reconciler.model.request import Request
from reconciler.model.units import format_duration
from reconciler.model.workload import DeploySpec
from reconciler.text.findings import Finding, Loc

TEMPLATE = "overspill.dev/template"
"""The annotation that names the WorkloadTemplate of a request (docs/reference/egs.md, R16)."""

_ALIASES = {
    "cluster_name": "clusters",
    "cluster_names": "clusters",
    "helm_config": "helmConfigs",
    "duration": "burstDuration",
    "service_account": "serviceAccountName",
}
"""Fields that findings name differently."""
_PASSED_OVER = frozenset({"namespace", "status", "created_at", "updated_at"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDraft:
    """A request before its workspace is known."""

    name: TemplateName
    workspace: WorkspaceName | None
    namespace: str = ""
    spec: DeploySpec = field(default_factory=DeploySpec)
    # As in `model.request.Request`.
    clusters: tuple[ClusterName, ...] = ()
    placements: int | None = None
    template: str = ""
    ask: GpuAsk | None = None
    # None without GPR fields.
    terms: GprTerms | None = None
    # Whether it waits again after an eviction; None if unstated.
    requeues: bool | None = None
    redistributes: bool = True
    # Whether it is a reservation: it deploys nothing and only keeps GPUs.
    reserves: bool = False
    # The fields that it states, by their names in EGS's REST interface.
    fields_set: frozenset[str] = frozenset()
    # The namespaces that its parts name outright.
    used: tuple[str, ...] = ()
    spelling: Spelling = field(default_factory=Spelling)

    def request(self, workspace: WorkspaceName, limits: WorkspaceLimits | None = None) -> Request:
        """Make a request of the draft in a workspace, whether or not it is admitted there.

        A draft without GPR fields has EGS's default priority, or the nearest that the `limits` allow.
        """
        requeues = self.requeues if self.requeues is not None else limits is not None and limits.requeue
        assumed = ("requeueOnFailure",) if self.requeues is None else ()
        terms = self.terms
        if terms is None:
            assumed = ("priority", *assumed)
            lowest, highest = (1, DEFAULT_PRIORITY) if limits is None else (limits.lowest, limits.highest)
            terms = GprTerms(priority=min(max(DEFAULT_PRIORITY, lowest), highest))
        return Request(
            name=self.name,
            workspace=workspace,
            namespace=self.namespace,
            spec=self.spec,
            clusters=self.clusters,
            placements=self.placements,
            template=self.template,
            ask=self.ask,
            terms=replace(terms, requeue=requeues),
            redistributes=self.redistributes,
            assumed=assumed,
        )


def placement_draft(file: PlacementFile) -> tuple[RequestDraft, tuple[Finding, ...]]:
    """Make a draft of a WorkloadPlacement, and check its parts against each other."""
    findings: list[Finding] = []
    group = file.api_version.partition("/")[0]
    value = replace(
        _draft(file.spec, findings, group=group),
        name=TemplateName(file.metadata.name),
        namespace=file.metadata.namespace,
        template=file.spec.workload_template_name or file.metadata.annotations.get(TEMPLATE, ""),
    )
    findings += _check_parts(value)
    return value, tuple(value.spelling.of(finding) for finding in findings)


def create_draft(body: CreateBody, flat: frozenset[int]) -> tuple[RequestDraft, tuple[Finding, ...]]:
    """Make a draft of the body of a POST; `flat` are the positions of its flattened manifests."""
    findings: list[Finding] = []
    value = replace(_draft(body, findings, flat=flat), name=TemplateName(body.name))
    findings += _check_parts(value)
    return value, tuple(value.spelling.of(finding) for finding in findings)


def update_draft(body: UpdateBody, flat: frozenset[int]) -> tuple[RequestDraft, tuple[Finding, ...]]:
    """Make a draft of the body of a PUT. Its parts are checked after `merge_update`."""
    findings: list[Finding] = []
    value = replace(_draft(body, findings, flat=flat, partial=True), name=TemplateName(body.name or ""))
    return value, tuple(value.spelling.of(finding) for finding in findings)


def reservation_draft(file: GprFile) -> tuple[RequestDraft, tuple[Finding, ...]]:
    """Make a draft of a GPUProvisioningRequest, which is kept on one of its named clusters."""
    spec = file.spec
    value = RequestDraft(
        name=TemplateName(file.metadata.name),
        workspace=WorkspaceName(spec.slice_name),
        namespace=file.metadata.namespace,
        clusters=spec.clusters,
        placements=1,
        ask=spec.ask(),
        terms=spec.terms(dedicated=spec.dedicated_nodes),
        requeues=spec.requeue_on_failure,
        reserves=True,
        spelling=Spelling(names={"clusters": "preferredClusters" if spec.preferred_clusters else "clusterName"}),
    )
    return value, tuple(warn_ignored_fields(spec, ("spec",)))


def merge_update(request: Request, draft: RequestDraft) -> tuple[RequestDraft, tuple[Finding, ...]]:
    """Apply the fields that an update states (`draft.fields_set`) to a request; all others stay."""
    fields = draft.fields_set
    spec, change = request.spec, draft.spec
    value = RequestDraft(
        name=request.name,
        workspace=request.workspace,
        namespace=request.namespace,
        spec=DeploySpec(
            helm=change.helm if "helmConfigs" in fields else spec.helm,
            manifests=change.manifests if "manifestResources" in fields else spec.manifests,
            commands=change.commands if "cmdExec" in fields else spec.commands,
            steps=change.steps if "steps" in fields else spec.steps,
            burst_duration=change.burst_duration if "burstDuration" in fields else spec.burst_duration,
            deletion_policy=change.deletion_policy if "deletionPolicy" in fields else spec.deletion_policy,
            service_account=change.service_account if "serviceAccountName" in fields else spec.service_account,
        ),
        clusters=draft.clusters if fields & _DESTINATION_FIELDS else request.clusters,
        placements=draft.placements if fields & {*_DESTINATION_FIELDS, "numPlacements"} else request.placements,
        template=draft.template if "workloadTemplateName" in fields else request.template,
        ask=draft.ask if "gprDetails" in fields else request.ask,
        terms=draft.terms if "gprDetails" in fields else request.terms,
        requeues=draft.requeues if "gprDetails" in fields else request.terms.requeue,
        redistributes=draft.redistributes if "enableRedistribute" in fields else request.redistributes,
        reserves=request.reserves,
        fields_set=fields,
        spelling=draft.spelling,
    )
    return value, tuple(value.spelling.of(finding) for finding in _check_parts(value))


_OPEN = frozenset({"autoSelectCluster", "enableBurst"})
_DESTINATION_FIELDS = frozenset({"clusters", *_OPEN})
"""The fields of the destination of a request: stating any of them replaces them all."""


def _draft(
    spec: PlacementSpec,
    findings: list[Finding],
    *,
    group: str = "",
    flat: frozenset[int] = frozenset(),
    partial: bool = False,
) -> RequestDraft:
    """Turn the fields of a file, or of a body if `group` is empty, into a draft without a name."""
    details = spec.gpr_details
    body = not group
    fields = frozenset(
        _ALIASES.get(name, str(field.alias))
        for name, field in type(spec).model_fields.items()
        if name in spec.model_fields_set and name not in _PASSED_OVER
    )
    if partial and not (spec.auto_select_cluster or spec.enable_burst):
        fields -= _OPEN  # a change without open fields leaves the destination
    clusters: tuple[ClusterName, ...] = ()
    placements = spec.num_placements
    if not partial or fields & _DESTINATION_FIELDS:
        clusters, placements = _destinations(spec, group, findings)
    deployed = deploy_spec.deploy_spec(spec, findings)
    findings += warn_ignored_placement_fields(spec)
    charts = "helmConfigs" if body and not spec.helm_config else deploy_spec.charts_field(spec)
    return RequestDraft(
        name=TemplateName(""),
        workspace=None if spec.workspace_name is None else WorkspaceName(spec.workspace_name),
        spec=replace(deployed, burst_duration=spec.burst_duration or spec.duration),
        clusters=clusters,
        placements=placements,
        template=spec.workload_template_name or "",
        ask=details.ask() if details is not None and details.asks else None,
        terms=None if details is None else details.terms(dedicated=details.dedicated_nodes),
        requeues=None if details is None else details.requeue_on_failure,
        redistributes=spec.enable_redistribute,
        fields_set=fields,
        used=deploy_spec.used_namespaces((), deployed),
        spelling=Spelling(
            names={
                "helmConfig": charts,
                "clusters": _clusters_field(spec, body=body),
                "burstDuration": "duration" if spec.burst_duration is None and spec.duration else "burstDuration",
            },
            bare=body,
            flat=flat,
        ),
    )


def _check_parts(draft: RequestDraft) -> Iterator[Finding]:
    """Check the parts of a draft against each other. Without parts it deploys the template that it names."""
    if not draft.reserves and not copies_template(draft):
        yield from deploy_spec.check_spec(draft.spec)
    exits = None if draft.terms is None else draft.terms.exit_duration
    lasts = draft.spec.burst_duration
    if exits is not None and lasts is not None and exits != lasts:
        yield Finding(
            loc=("spec", "gprDetails", "exitDuration"),
            message=f"has no effect: burstDuration says that it lasts {format_duration(lasts)}",
            hint="try one duration for both",
            severity=Severity.WARNING,
        )


def copies_template(draft: RequestDraft) -> bool:
    """Return whether a draft deploys the content of its template."""
    spec = draft.spec
    return bool(draft.template) and not (spec.helm or spec.manifests or spec.commands or spec.steps)


def _destinations(
    spec: PlacementSpec, group: str, findings: list[Finding]
) -> tuple[tuple[ClusterName, ...], int | None]:
    """Return the clusters of a request, and how many of them it uses (docs/reference/egs.md, R2)."""
    written_as = _clusters_field(spec, body=not group)
    loc: Loc = ("spec", "clusters")
    written = spec.cluster_names or spec.clusters or [name for name in (spec.cluster_name,) if name is not None]
    named = tuple(ClusterName(name) for name in dict.fromkeys(written))
    if len(named) < len(written):
        twice = next(name for name in named if written.count(name) > 1)
        findings.append(Finding(loc=loc, message=f"names {twice} more than once", severity=Severity.WARNING))
    # 1. A kind for one cluster.
    if group in _SINGLE and len(named) > 1:
        message = f"names {len(named)} clusters, and a placement of {group} is for one"
        findings.append(Finding(loc=loc, message=message, hint="try apiVersion: gpr.kubeslice.io/v1alpha1"))
    # 2. Any cluster with free capacity.
    if spec.enable_burst:
        if named:
            message = f"enableBurst opens every cluster of the workspace, so {written_as} does not bind it"
            hint = f"try enableBurst: false to stay on the clusters of {written_as}"
            findings.append(Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING))
        return (), spec.num_placements or max(1, len(named))
    if spec.auto_select_cluster:
        return named, spec.num_placements or 1
    # 3. No cluster: the group without a cluster field leaves the choice to Overspill.
    if not named and group == "aiops.kubeslice.io":
        message = "names no cluster: it goes to the first one of its workspace that has room"
        hint = "try spec.clusterName"
        findings.append(Finding(loc=("spec",), message=message, hint=hint, severity=Severity.WARNING))
        return (), 1
    if not named:
        hint = f"try {written_as}: [...]" if written_as != "clusterName" else "try clusterName: ..."
        findings.append(Finding(loc=loc, message="is required", hint=f"{hint}, or autoSelectCluster: true"))
    return named, spec.num_placements


_SINGLE = frozenset({"worker.kubeslice.io", "aiops.kubeslice.io"})


def _clusters_field(spec: PlacementSpec, *, body: bool) -> str:
    """Return the field of the clusters, present or missing."""
    if spec.cluster_names:
        return "clusterNames"
    if spec.clusters:
        return "clusters"
    if spec.cluster_name is not None:
        return "clusterName"
    return "clusters" if body else "clusterNames"
