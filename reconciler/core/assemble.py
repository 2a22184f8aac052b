"""All files together: names that must be unique, names that must exist, and what governs what.

An error here either keeps its file out of force (two objects of one name, a template that its workspace does not allow)
or is told while the object stays in force (a cluster of a workspace that no file describes): deciding copes with a
cluster that is not there, and a typo in one line must not take a tenant down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.core import validate
from reconciler.core.counting import counted_before
from reconciler.core.draft import WORKLOAD, Draft
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.gathered import NAME, Gathered, Placed, unknown
from reconciler.core.governing import govern
from reconciler.core.ignoring import ignored
from reconciler.core.parsed import ParsedFile
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.errors import Severity
from reconciler.model.ids import BlobId, ClusterName, CommitId, WorkloadId, WorkspaceName
from reconciler.model.policy import BurstPolicy, Cluster, Desired, Fleet, Workspace
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadRef, WorkloadTemplate

_NO_BLOBS: Mapping[str, BlobId] = {}
_FEW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What files come to, and the paths of those that an error keeps out of force."""

    desired: Desired
    rejected: frozenset[str]


def assemble(commit: CommitId, files: Mapping[str, ParsedFile], *, blobs: Mapping[str, BlobId] = _NO_BLOBS) -> Desired:
    """Put the files of one commit, by path, into force; `blobs` are their versions, for templates to remember.

    Files with errors of their own take no part, and their problems are told with all others, by path and line.
    """
    return examine(commit, files, blobs=blobs).desired


def examine(
    commit: CommitId,
    files: Mapping[str, ParsedFile],
    *,
    blobs: Mapping[str, BlobId] = _NO_BLOBS,
    absent: Iterable[ParsedFile] = (),
) -> Assembly:
    """Do what `assemble` does, and tell which files it had to leave out.

    `absent` are broken files that take no part; what only follows from their absence is not told.
    """
    work = Gathered()
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
    templates = _templates(work, workspaces, blobs)
    policies = _policies(work, clusters, workspaces, templates)
    for workload in _counted_twice(work, policies, workspaces, templates):
        del policies[workload]
    desired = Desired(
        commit=commit,
        fleet=fleet,
        clusters=clusters,
        workspaces=workspaces,
        templates={workload: template for workload, (template, _) in templates.items()},
        policies=policies,
        problems=tuple(sorted(work.problems)),
        incomplete=bool(work.rejected),
    )
    return Assembly(desired=desired, rejected=frozenset(work.rejected))


def ignore_patterns(files: Mapping[str, ParsedFile]) -> tuple[str, ...]:
    """Return the patterns of the Fleet that is in force: the first by path."""
    for _, file in sorted(files.items()):
        for declared in () if file.broken else file.objects:
            if isinstance(declared.value, FleetFile):
                return tuple(declared.value.spec.ignore)
    return ()


def _fleet(work: Gathered) -> Fleet:
    """Find the one Fleet, or its defaults."""
    fleets = work.all(FleetFile)
    if not fleets:
        return Fleet()
    first, *others = fleets
    for placed in others:
        where = f"{first.path}:{first.declared.line}"
        work.reject(placed, Finding(loc=("kind",), message=f"a Fleet is already in {where}; there is one at most"))
    return first.value.value_of()


def _clusters(work: Gathered, fleet: Fleet) -> dict[ClusterName, Cluster]:
    """Read the clusters. One that is to be reached by Argo CD's login needs to know where Argo CD is."""
    clusters: dict[ClusterName, Cluster] = {}
    for name, placed in work.named(ClusterFile, "Cluster").items():
        cluster = clusters[ClusterName(name)] = placed.value.value_of(fleet)
        lost = cluster.connection is not None and cluster.connection.argocd and fleet.argocd.connection is None
        if lost and "Fleet" not in work.excused:
            loc: Loc = ("spec", "connection", "argocd")
            hint = "say in the Fleet: spec.argocd.connection: {context: ...} or {inCluster: true}"
            work.tell(placed, Finding(loc=loc, message="nothing says how Argo CD's own cluster is reached", hint=hint))
    return clusters


def _workspaces(work: Gathered, clusters: Mapping[ClusterName, Cluster]) -> dict[WorkspaceName, Workspace]:
    """Read the tenants. A cluster that no file describes is told at its line; the tenant stays in force."""
    workspaces: dict[WorkspaceName, Workspace] = {}
    for name, placed in work.named(WorkspaceFile, "Workspace").items():
        spec = placed.value.spec
        places: list[tuple[Loc, str]] = [(("spec", "primaryCluster"), spec.primary_cluster)]
        places += _places(("spec", "clusters"), spec.clusters)
        work.tell_unknown(placed, "Cluster", places, clusters)
        workspaces[WorkspaceName(name)] = placed.value.value_of()
    return workspaces


def _templates(
    work: Gathered, workspaces: Mapping[WorkspaceName, Workspace], blobs: Mapping[str, BlobId]
) -> dict[WorkloadId, tuple[WorkloadTemplate, Placed[Draft]]]:
    """Put templates into their workspaces, and hold them to the safety rules there."""
    templates: dict[WorkloadId, tuple[WorkloadTemplate, Placed[Draft]]] = {}
    for placed in work.all(Draft):
        draft = placed.value
        workspace = _home(draft, workspaces)
        if isinstance(workspace, Finding):
            if (draft.workspace or "Workspace") not in work.excused:
                work.tell(placed, workspace)
            work.rejected.add(placed.path)
            continue
        workload = WorkloadId(workspace.name, draft.name)
        other = templates.get(workload)
        if not work.is_new(placed, None if other is None else other[1], f"WorkloadTemplate {workload}"):
            continue
        findings = validate.findings(draft.spec, workspace)
        for finding in findings:
            (work.reject if finding.severity is Severity.ERROR else work.tell)(placed, draft.spelt(finding))
        if any(finding.severity is Severity.ERROR for finding in findings):
            continue
        if draft.annotated and draft.ref is not None:
            stray = _stray(draft.ref, workspace)
            if stray is not None:
                work.tell(placed, stray)
        template = WorkloadTemplate(
            name=draft.name,
            workspace=workspace.name,
            namespace=draft.namespace,
            spec=draft.spec,
            ref=draft.ref,
            namespaces=draft.namespaces,
            labels=draft.labels,
            uses_replicas=draft.uses_replicas,
            path=placed.path,
            line=placed.declared.line,
            blob=blobs.get(placed.path, BlobId("")),
        )
        templates[workload] = (template, placed)
    return templates


def _stray(ref: WorkloadRef, workspace: Workspace) -> Finding | None:
    """Warn of an annotation that names an object in a namespace that is not the workspace's."""
    if not workspace.namespaces or ref.namespace in workspace.namespaces:
        return None
    return Finding(
        loc=("metadata", "annotations", WORKLOAD),
        message=f"{shortened(ref.namespace)!r} is no namespace of workspace {workspace.name}",
        hint=f"it has {', '.join(workspace.namespaces[:_FEW])}" + (", …" if len(workspace.namespaces) > _FEW else ""),
        severity=Severity.WARNING,
    )


def _home(draft: Draft, workspaces: Mapping[WorkspaceName, Workspace]) -> Workspace | Finding:
    """Find the workspace of a template: the one it names, else the only one, else the only one with its namespaces."""
    loc: Loc = ("spec", "workspaceName")
    if draft.workspace is not None:
        return workspaces.get(draft.workspace) or unknown(loc, "Workspace", draft.workspace, workspaces)
    if len(workspaces) == 1:
        return next(iter(workspaces.values()))
    if not workspaces:
        return Finding(loc=loc, message="there is no Workspace yet", hint="add one: kind: Workspace")
    owners = [workspace for workspace in workspaces.values() if draft.used and {*draft.used} <= {*workspace.namespaces}]
    if len(owners) == 1:
        return owners[0]
    names = sorted(workspace.name for workspace in owners or workspaces.values())
    what = f"{len(owners)} workspaces have its namespaces" if owners else "no workspace has all of its namespaces"
    return Finding(loc=loc, message=f"is required: {what}", hint=f"one of {', '.join(names)}")


def _policies(
    work: Gathered,
    clusters: Mapping[ClusterName, Cluster],
    workspaces: Mapping[WorkspaceName, Workspace],
    templates: Mapping[WorkloadId, tuple[WorkloadTemplate, Placed[Draft]]],
) -> dict[WorkloadId, BurstPolicy]:
    """Find the policy that governs each template, and what policies name that is not there."""
    placed_policies = list(work.named(BurstPolicyFile, "BurstPolicy").values())
    names = {workload.name for workload in templates} | {placed.value.name for placed in work.all(Draft)}
    for placed in placed_policies:
        spec = placed.value.spec
        work.tell_unknown(placed, "Workspace", _places(("spec", "workspaces"), spec.workspaces), workspaces)
        work.tell_unknown(
            placed, "WorkloadTemplate", _places(("spec", "templates"), spec.templates), names, Severity.WARNING
        )
        rungs: list[tuple[Loc, str]] = [
            (("spec", "clusters", index, "name"), rung.name)
            for index, rung in enumerate(spec.clusters)
            if rung.name is not None
        ]
        work.tell_unknown(placed, "Cluster", rungs, clusters)
        for index, rung in enumerate(() if "Cluster" in work.excused else spec.clusters):
            labels = rung.match_labels.items()
            if rung.name is None and not any(labels <= cluster.labels.items() for cluster in clusters.values()):
                loc: Loc = ("spec", "clusters", index, "matchLabels")
                work.tell(placed, Finding(loc=loc, message="no Cluster has these labels", severity=Severity.WARNING))
    governed = govern([placed.value.value_of() for placed in placed_policies], templates)
    for position, rivals in governed.rivals.items():
        named = ", ".join(str(workload) for workload, _ in rivals[:_FEW]) + (", …" if len(rivals) > _FEW else "")
        winner = rivals[0][1].name
        work.tell(
            placed_policies[position],
            Finding(
                loc=NAME,
                message=f"{named} is governed by BurstPolicy {winner} just as well, and stays so",
                hint="name the template or its workspace in one of them",
            ),
        )
    for workload, (template, placed_template) in templates.items():
        finding = _governed(template, governed.policies.get(workload))
        # A broken policy may well be the one that governs it.
        if finding is not None and (workload in governed.policies or "BurstPolicy" not in work.excused):
            work.tell(placed_template, finding)
    return dict(governed.policies)


def _governed(template: WorkloadTemplate, policy: BurstPolicy | None) -> Finding | None:
    """Warn of a template that no policy governs, or whose duration its policy cuts."""
    if policy is None:
        return Finding(
            loc=NAME,
            message="no BurstPolicy governs it, so it does not burst",
            hint="add one, or name it in spec.templates of one",
            severity=Severity.WARNING,
        )
    wanted, most = template.spec.burst_duration, policy.max_duration
    if wanted is None or most is None or wanted <= most:
        return None
    return Finding(
        loc=("spec", "burstDuration"),
        message=f"{format_duration(wanted)} is cut to {format_duration(most)} by policy {policy.name}",
        hint=f"try {format_duration(most)}, or a longer duration.max",
        severity=Severity.WARNING,
    )


def _counted_twice(
    work: Gathered,
    policies: Iterable[WorkloadId],
    workspaces: Mapping[WorkspaceName, Workspace],
    templates: Mapping[WorkloadId, tuple[WorkloadTemplate, Placed[Draft]]],
) -> frozenset[WorkloadId]:
    """Report the templates that would burst for an object for which another one does so already.

    They stay loaded, since a person may still ask for their placement; only demand must not place them.
    """
    found = counted_before((templates[workload][0] for workload in policies), workspaces)
    for workload, counted in found.items():
        template, placed = templates[workload]
        what = f"{shortened(str(counted))} on {workspaces[template.workspace].primary}"
        where = f"template {counted.by.workload} in {counted.by.path}:{counted.by.line}"
        hint = f"try the annotation {WORKLOAD}, or another release name"
        work.tell(placed, Finding(loc=NAME, message=f"{what} is already counted by {where}", hint=hint))
    return frozenset(found)


def _places(root: Loc, names: Iterable[str]) -> list[tuple[Loc, str]]:
    """Pair the names of a list with their places."""
    return [((*root, index), name) for index, name in enumerate(names)]
