"""Assembly of all files into a fleet: unique names, references between files, and the policy of each template.

An error here either keeps its file out of force (two objects of one name, a template that its workspace does not allow)
or is reported while the object stays in force (a cluster of a workspace that no file describes). The second kind is
safe, since deciding copes with missing clusters, and a typo in one line must not take a tenant down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.fleet import requests
from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.ignore import ignored
from reconciler.core.fleet.objects import DeclaredValue, FleetObjects, find_workspace, foreign_namespace, name_locations
from reconciler.core.fleet.policies import policies_in_force
from reconciler.core.fleet.prerequisite_checks import burst_clusters, check_prerequisites
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.fleet.spread.files import spread_policies
from reconciler.core.fleet.spread.shares import divide_templates
from reconciler.core.fleet.template import WORKLOAD, TemplateDraft
from reconciler.core.fleet.workload_kinds import warn_dead_paths, warn_unknown_kind, with_api_group, workload_kinds
from reconciler.core.safety import rules
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.errors import Severity
from reconciler.model.ids import BlobId, ClusterName, CommitId, WorkloadId, WorkspaceName
from reconciler.model.policy import Cluster, Desired, Fleet, Workspace
from reconciler.model.workload import WorkloadRef, WorkloadTemplate
from reconciler.text.findings import Finding, Loc

_NO_BLOBS: Mapping[str, BlobId] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The fleet in force, and the paths of files that an error keeps out of it."""

    desired: Desired
    rejected: frozenset[str]
    # Names and kinds that these files and the broken ones seem to declare.
    excused: frozenset[str]


def assemble(commit: CommitId, files: Mapping[str, ParsedFile], *, blobs: Mapping[str, BlobId] = _NO_BLOBS) -> Desired:
    """Put the files of one commit into force, by path. `blobs` are their versions, which templates remember.

    Files with errors of their own take no part; their problems are reported with all others, by path and line.
    """
    return assemble_with_rejections(commit, files, blobs=blobs).desired


def assemble_with_rejections(
    commit: CommitId,
    files: Mapping[str, ParsedFile],
    *,
    blobs: Mapping[str, BlobId] = _NO_BLOBS,
    absent: Iterable[ParsedFile] = (),
) -> Assembly:
    """Assemble like `assemble`, and return the rejected files as well.

    `absent` are broken files that take no part. References to objects that they may declare are not reported as
    missing.
    """
    work = FleetObjects()
    for file in absent:
        work.excused |= file.mentioned
    patterns = ignore_patterns(files)
    for path, file in sorted(files.items()):
        if ignored(path, patterns):
            continue
        work.problems += [replace(problem, path=path) for problem in file.problems]
        if file.broken:
            work.leave_out(path, file)
            continue
        for declared in file.objects:
            work.add(path, declared)
    fleet = _fleet(work)
    clusters = _clusters(work, fleet)
    workspaces = _workspaces(work, clusters)
    gprs = requests.gpr_templates(work, clusters)
    kinds = workload_kinds(work)
    templates = _templates(work, workspaces, gprs, kinds, blobs)
    desired = Desired(
        commit=commit,
        fleet=fleet,
        clusters=clusters,
        workspaces=workspaces,
        templates={workload: template for workload, (template, _) in templates.items()},
        gpr_templates=gprs,
        limits=requests.workspace_limits(work, workspaces),
        kinds=kinds,
    )
    desired = replace(desired, bindings=requests.gpr_bindings(work, desired))
    desired = replace(
        desired,
        policies=policies_in_force(work, desired, templates),
        requests=requests.admitted_requests(work, desired),
    )
    desired = replace(desired, policies=spread_policies(work, desired, templates))
    desired = replace(desired, templates=divide_templates(work, templates, desired.policies))
    _warn_prerequisites(work, desired, templates)
    warn_dead_paths(work, desired.templates.values())
    desired = replace(desired, problems=tuple(sorted(work.problems)), incomplete=bool(work.rejected))
    return Assembly(desired=desired, rejected=frozenset(work.rejected), excused=frozenset(work.excused))


def ignore_patterns(files: Mapping[str, ParsedFile]) -> tuple[str, ...]:
    """Return the ignore patterns of the Fleet in force: the first by path."""
    for _, file in sorted(files.items()):
        for declared in () if file.broken else file.objects:
            if isinstance(declared.value, FleetFile):
                return tuple(declared.value.spec.ignore)
    return ()


def _fleet(work: FleetObjects) -> Fleet:
    """Return the only Fleet, or its defaults."""
    fleets = work.all(FleetFile)
    if not fleets:
        return Fleet()
    first, *others = fleets
    for placed in others:
        where = f"{first.path}:{first.declared.line}"
        work.reject(placed, Finding(loc=("kind",), message=f"a Fleet is already in {where}; there is one at most"))
    return first.value.value_of()


def _clusters(work: FleetObjects, fleet: Fleet) -> dict[ClusterName, Cluster]:
    """Read the clusters. A cluster that is reached by a login of Argo CD needs the address of Argo CD."""
    clusters: dict[ClusterName, Cluster] = {}
    for name, placed in work.named(ClusterFile, "Cluster").items():
        cluster = clusters[ClusterName(name)] = placed.value.value_of(fleet)
        lost = cluster.connection is not None and cluster.connection.argocd and fleet.argocd.connection is None
        if lost and "Fleet" not in work.excused:
            loc: Loc = ("spec", "connection", "argocd")
            hint = "say in the Fleet: spec.argocd.connection: {context: ...} or {inCluster: true}"
            work.report(
                placed, Finding(loc=loc, message="nothing says how Argo CD's own cluster is reached", hint=hint)
            )
    return clusters


def _workspaces(work: FleetObjects, clusters: Mapping[ClusterName, Cluster]) -> dict[WorkspaceName, Workspace]:
    """Read the workspaces. An unknown cluster is reported at its line, and the workspace stays in force."""
    workspaces: dict[WorkspaceName, Workspace] = {}
    for name, placed in work.named(WorkspaceFile, "Workspace").items():
        spec = placed.value.spec
        named: list[tuple[Loc, str]] = [(("spec", "primaryCluster"), spec.primary_cluster)]
        named += name_locations(("spec", "clusters"), spec.clusters)
        work.report_unknown(placed, "Cluster", named, clusters)
        workspaces[WorkspaceName(name)] = placed.value.value_of()
    return workspaces


def _templates(
    work: FleetObjects,
    workspaces: Mapping[WorkspaceName, Workspace],
    gprs: Iterable[str],
    kinds: Kinds,
    blobs: Mapping[str, BlobId],
) -> dict[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]]:
    """Put templates into their workspaces, and check them against the safety rules there."""
    templates: dict[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]] = {}
    for placed in work.all(TemplateDraft):
        draft = placed.value
        workspace = find_workspace(draft.workspace, draft.used, workspaces)
        if isinstance(workspace, Finding):
            if (draft.workspace or "Workspace") not in work.excused:
                work.report(placed, workspace)
            work.rejected.add(placed.path)
            _excuse(work, draft)
            continue
        workload = WorkloadId(workspace.name, draft.name)
        other = templates.get(workload)
        if not work.is_unique(placed, None if other is None else other[1], f"WorkloadTemplate {workload}"):
            continue
        findings = (*_check_namespaces(draft, workspace), *rules.check_safety(draft.spec, workspace, kinds=kinds))
        for finding in findings:
            (work.reject if finding.severity is Severity.ERROR else work.report)(placed, draft.spelling.of(finding))
        if any(finding.severity is Severity.ERROR for finding in findings):
            _excuse(work, draft)
            continue
        if draft.annotated and draft.ref is not None:
            stray = _check_workload_namespace(draft.ref, workspace)
            if stray is not None:
                work.report(placed, stray)
            if "WorkloadKind" not in work.excused and (strange := warn_unknown_kind(draft.ref, draft.spec, kinds)):
                work.report(placed, strange)
        if draft.gpr_templates:
            work.report_unknown(
                placed, "GPRTemplate", name_locations(("spec", "gprTemplates"), draft.gpr_templates), gprs
            )
        template = WorkloadTemplate(
            name=draft.name,
            workspace=workspace.name,
            namespace=draft.namespace,
            spec=draft.spec,
            ref=with_api_group(draft.ref, draft.spec, kinds),
            namespaces=draft.namespaces,
            labels=draft.labels,
            gpr_templates=draft.gpr_templates,
            uses_replicas=draft.uses_replicas,
            group_size=draft.group_size,
            path=placed.path,
            line=placed.declared.line,
            blob=blobs.get(placed.path, BlobId("")),
            prerequisites=prerequisites(draft.spec, workspace, kinds),
        )
        templates[workload] = (template, placed)
    return templates


def _excuse(work: FleetObjects, draft: TemplateDraft) -> None:
    """Excuse references to a template that an error keeps out of force."""
    work.excused |= {"WorkloadTemplate", str(draft.name)}


def _warn_prerequisites(
    work: FleetObjects,
    desired: Desired,
    templates: Mapping[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]],
) -> None:
    """Warn of the prerequisites of each template that its clusters may lack."""
    complete = "Cluster" not in work.excused
    for workload, (template, placed) in templates.items():
        workspace = desired.workspaces[template.workspace]
        asked = template.prerequisites or workspace.shared_networking
        clusters = burst_clusters(desired.policies.get(workload), workspace, desired) if asked else ()
        needs = template.prerequisites
        for finding in check_prerequisites(template.spec, needs, workspace, clusters, desired.kinds, complete=complete):
            work.report(placed, placed.value.spelling.of(finding))


def _check_namespaces(draft: TemplateDraft, workspace: Workspace) -> Iterator[Finding]:
    """Check that the declared namespaces of a template belong to its workspace (docs/egs.md, R15)."""
    for index, namespace in enumerate(draft.namespaces):
        if workspace.namespaces and namespace not in workspace.namespaces:
            yield foreign_namespace(("spec", "namespaces", index), namespace, workspace)


def _check_workload_namespace(ref: WorkloadRef, workspace: Workspace) -> Finding | None:
    """Warn of a workload annotation whose namespace does not belong to the workspace."""
    if not workspace.namespaces or ref.namespace in workspace.namespaces:
        return None
    return replace(
        foreign_namespace(("metadata", "annotations", WORKLOAD), ref.namespace, workspace), severity=Severity.WARNING
    )
