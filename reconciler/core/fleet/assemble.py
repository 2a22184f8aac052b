"""Assembly of all files into a fleet: unique names, references between files, and the policy of each template.

An error here either keeps its file out of force (two objects of one name, a template that its workspace does not allow)
or is reported while the object stays in force (a cluster of a workspace that no file describes). The second kind is
safe, since deciding copes with missing clusters, and a typo in one line must not take a tenant down.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.gangs import shares_domain
from reconciler.core.fleet import requests
from reconciler.core.fleet.burst_replicas import copy_above_maximum, with_replicas
from reconciler.core.fleet.culprits import culprit
from reconciler.core.fleet.file import Declared, ParsedFile, Value
from reconciler.core.fleet.notifications import notifications_in_force
from reconciler.core.fleet.object_owners import ObjectOwners
from reconciler.core.fleet.objects import (
    Contest,
    DeclaredValue,
    FleetObjects,
    Identity,
    foreign_namespace,
    identity,
    name_locations,
)
from reconciler.core.fleet.paths import FLEET_FILE, covered, kind_of_value, read_paths
from reconciler.core.fleet.policies import policies_in_force
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.fleet.sources.expansion import (
    FROM,
    Expansion,
    expand,
    is_of_source,
    source_key,
    unreachable,
    why_not_deployed,
)
from reconciler.core.fleet.sources.patches import PatchedTemplates, check_patched
from reconciler.core.fleet.sources.permission import forbidden
from reconciler.core.fleet.sources.referred_objects import referred_sources, with_referred
from reconciler.core.fleet.spread.files import spread_policies
from reconciler.core.fleet.spread.shares import divide_templates
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.fleet.warnings.autoscaled import warn_autoscaled
from reconciler.core.fleet.warnings.budgets import warn_unpriced
from reconciler.core.fleet.warnings.deployed import warn_moving_images, warn_refused_shares, warn_uncounted_pods
from reconciler.core.fleet.warnings.multikueue import warn_managed_by_multikueue
from reconciler.core.fleet.warnings.objects import warn_immutable_replicas, warn_shared_objects
from reconciler.core.fleet.warnings.prerequisites import burst_clusters, check_prerequisites, warn_unserved
from reconciler.core.fleet.warnings.runs import warn_short_time
from reconciler.core.fleet.workload_kinds import (
    refuse_uncounted_kind,
    warn_dead_paths,
    warn_unknown_kind,
    with_api_group,
    workload_kinds,
)
from reconciler.core.observe.counted_object import WORKLOAD
from reconciler.core.safety import rules
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.containers import deployed_containers
from reconciler.core.workloads.single_run import runs_once
from reconciler.errors import Bug, Problem, Severity
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import BlobId, ClusterName, CommitId, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.object_schema import CustomKind, ObjectSchemas
from reconciler.model.manifest_source import (
    ManifestSource,
    RepositorySource,
    SourceContents,
    SourceKey,
    WorkloadSource,
)
from reconciler.model.policy import Cluster, Desired, Fleet, Workspace
from reconciler.model.workload import WorkloadRef, WorkloadTemplate
from reconciler.text.findings import MOST_TOLD, Finding, Loc, told
from reconciler.text.spelling import bounded_suggestions

_NO_BLOBS: Mapping[str, BlobId] = {}
_NO_CONTENTS: SourceContents = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The fleet in force, and the paths of files that an error keeps out of it."""

    desired: Desired
    rejected: frozenset[str]
    # Names and kinds that these files and the broken ones seem to declare.
    excused: frozenset[str]
    # Objects of which the first by path is in force, unless the history says otherwise.
    contests: tuple[Contest, ...]


def assemble(
    commit: CommitId,
    files: Mapping[str, ParsedFile],
    *,
    blobs: Mapping[str, BlobId] = _NO_BLOBS,
    contents: SourceContents = _NO_CONTENTS,
    seen: Mapping[ClusterName, ClusterObservation] | None = None,
) -> Desired:
    """Put the files of one commit into force, by path. `blobs` are their versions, which templates remember.

    Files with errors of their own take no part; their problems are reported with all others, by path and line.
    `contents` are the objects of the sources of templates, as far as they have been read. `seen` are observed clusters:
    the problems alone follow from these.
    """
    return assemble_with_rejections(commit, files, blobs=blobs, contents=contents, seen=seen).desired


def assemble_with_rejections(
    commit: CommitId,
    files: Mapping[str, ParsedFile],
    *,
    blobs: Mapping[str, BlobId] = _NO_BLOBS,
    contents: SourceContents = _NO_CONTENTS,
    absent: Iterable[ParsedFile] = (),
    newcomers: Collection[tuple[str, Identity]] = frozenset(),
    trusted: Collection[str] = (),
    seen: Mapping[ClusterName, ClusterObservation] | None = None,
) -> Assembly:
    """Assemble like `assemble`, and return the rejected files as well.

    `absent` are broken files that take no part. References to objects that they may declare are not reported as
    missing. `newcomers` are objects, by path, that give way where another has the same name. A file with which the
    assembly fails in a way that nothing foresaw is rejected; those that are not `trusted` are suspected first.
    """
    absent, bugs = tuple(absent), dict[str, Bug]()

    def put_together(some: Mapping[str, ParsedFile]) -> Assembly | Bug:
        gone = (*absent, *(files[path] for path in bugs))
        task = partial(_assemble, commit, some, (blobs, contents), gone, newcomers, seen=seen)
        return attempt(Seam.ASSEMBLY, "the fleet repository", task)

    assembly = put_together(files)
    left = files
    while isinstance(assembly, Bug):
        path = culprit(left, lambda some: isinstance(put_together(some), Bug), trusted)
        bugs[path] = replace(assembly, item=path)
        left = {path: file for path, file in left.items() if path not in bugs}
        if not left:
            raise RuntimeError(str(assembly))  # nothing is left that could be to blame
        assembly = put_together(left)
    if not bugs:
        return assembly
    problems = (*assembly.desired.problems, *(bug.problem(path) for path, bug in bugs.items()))
    return replace(
        assembly,
        desired=replace(assembly.desired, problems=tuple(sorted(problems)), incomplete=True),
        rejected=assembly.rejected | bugs.keys(),
    )


@bounded_suggestions()
def _assemble(
    commit: CommitId,
    files: Mapping[str, ParsedFile],
    versions: tuple[Mapping[str, BlobId], SourceContents],
    absent: Iterable[ParsedFile],
    newcomers: Collection[tuple[str, Identity]],
    *,
    seen: Mapping[ClusterName, ClusterObservation] | None,
) -> Assembly:
    files = {path: file for path, file in sorted(files.items()) if not is_ignored(path, files)}
    fleet = _fleet(files)
    work = FleetObjects(
        read_paths(
            {} if fleet is None else fleet.spec.paths.value_of(),
            ((path, value) for path, value in _values(files) if isinstance(value, WorkspaceFile)),
        ),
        seen,
    )
    for file in absent:
        work.excused |= file.mentioned
        work.absent_spreads += file.spreads
        work.absent_limits += file.limits
    late: list[tuple[str, Declared]] = []
    for path, file in files.items():
        work.problems += [problem.at(path) for problem in file.problems]
        if file.broken:
            work.leave_out(path, file)
            continue
        for declared in file.objects:
            if newcomers and (path, identity(declared.value)) in newcomers:
                late.append((path, declared))
            else:
                _add(work, path, declared)
    for path, declared in late:
        _add(work, path, declared)
    return _assembly(work, commit, _settings(work), *versions)


def _assembly(
    work: FleetObjects, commit: CommitId, fleet: Fleet, blobs: Mapping[str, BlobId], contents: SourceContents
) -> Assembly:
    """Put the objects into force, kind by kind: each finds those that it refers to."""
    clusters = _clusters(work, fleet)
    workspaces = _workspaces(work, clusters)
    gprs = requests.gpr_templates(work, clusters)
    kinds = workload_kinds(work)
    schemas = _schemas(work, fleet, clusters)
    permit = partial(forbidden, workspaces=tuple(workspaces.values()), fleet=fleet)
    read = partial(_expand, commit=commit, fleet=fleet, contents=contents, kinds=kinds, permit=permit)
    templates = {
        workload: (with_referred(template, workspaces[template.workspace], contents, kinds), placed)
        for workload, (template, placed) in _templates(
            work, workspaces, gprs, kinds, blobs, clusters=clusters, schemas=schemas, read=read
        ).items()
    }
    desired = Desired(
        commit=commit,
        fleet=fleet,
        clusters=clusters,
        workspaces=workspaces,
        templates={workload: template for workload, (template, _) in templates.items()},
        sources=_with_places(
            (
                *(
                    source_key(placed.value.source, workspaces[template.workspace])
                    for template, placed in templates.values()
                    if placed.value.source is not None
                    and permit(placed.value.source, placed.value.ref, workspaces[template.workspace]) is None
                ),
                *(
                    key
                    for template, _ in templates.values()
                    for key in referred_sources(template, workspaces[template.workspace], kinds)
                ),
            ),
            contents,
        ),
        gpr_templates=gprs,
        limits=requests.workspace_limits(work, workspaces, clusters),
        kinds=kinds,
        schemas=schemas,
        notifications=notifications_in_force(work, workspaces),
    )
    unlimited = workspaces.keys() - desired.limits.keys()
    desired = replace(desired, stalled_workspaces=frozenset(filter(work.has_absent_limits, unlimited)))
    desired = replace(desired, bindings=requests.gpr_bindings(work, desired))
    desired = replace(
        desired,
        policies=policies_in_force(work, desired, templates),
        requests=requests.admitted_requests(work, desired),
    )
    desired = replace(desired, policies=spread_policies(work, desired, templates))
    desired = replace(desired, templates=_counted_templates(work, desired, templates))
    _warn_prerequisites(work, desired, templates)
    _warn_objects(work, desired, templates)
    warn_dead_paths(work, desired.templates.values())
    desired = replace(desired, problems=_told(work.problems), incomplete=bool(work.rejected))
    return Assembly(
        desired=desired,
        rejected=frozenset(work.rejected),
        excused=frozenset(work.excused),
        contests=tuple(work.contests),
    )


def without_definitions_elsewhere(files: Mapping[str, ParsedFile]) -> dict[str, ParsedFile]:
    """Take from files the CustomResourceDefinitions that are passed over, since their paths are not those of kinds."""
    fleet = _fleet(files)
    paths = read_paths({} if fleet is None else fleet.spec.paths.value_of(), ())
    return {
        path: file
        if paths.refuse_kind(path, "WorkloadKind") is None
        else replace(file, objects=tuple(made for made in file.objects if not isinstance(made.value, CustomKind)))
        for path, file in files.items()
    }


def is_ignored(path: str, files: Mapping[str, ParsedFile]) -> bool:
    """Return whether the Fleet among these files has a path passed over; never its own file."""
    fleet = _fleet(files)
    return fleet is not None and path != FLEET_FILE and covered(path, fleet.spec.ignore)


def _values(files: Mapping[str, ParsedFile]) -> Iterator[tuple[str, Value]]:
    """Yield the objects of good files with their paths, in order."""
    for path, file in files.items():
        for declared in () if file.broken else file.objects:
            yield path, declared.value


def _fleet(files: Mapping[str, ParsedFile]) -> FleetFile | None:
    """Return the Fleet in force: the first in its file."""
    file = files.get(FLEET_FILE)
    if file is None or file.broken:
        return None
    return next((declared.value for declared in file.objects if isinstance(declared.value, FleetFile)), None)


def _add(work: FleetObjects, path: str, declared: Declared) -> None:
    """Add an object, or reject it where its file may not hold it.

    A CustomResourceDefinition elsewhere is there for others, who install it, and is passed over.
    """
    kind = kind_of_value(declared.value)
    if isinstance(declared.value, CustomKind) and work.paths.refuse_kind(path, kind) is not None:
        return
    refusal = work.paths.refuse_kind(path, kind) or work.paths.refuse_object(path, declared.value)
    if refusal is None:
        work.add(path, declared)
        return
    work.reject(DeclaredValue(value=declared.value, path=path, declared=declared), refusal)
    work.excused |= {kind, *identity(declared.value)[-1:]}


def _settings(work: FleetObjects) -> Fleet:
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
        primary: list[tuple[Loc, str]] = [(("spec", "primaryCluster"), spec.primary_cluster)]
        work.report_unknown(placed, "Cluster", primary, clusters)
        work.report_unknown(placed, "Cluster", name_locations(("spec", "clusters"), spec.clusters), clusters)
        workspace = workspaces[WorkspaceName(name)] = placed.value.value_of()
        home = clusters.get(workspace.primary)
        if home is not None and home.slurm is not None:
            message = f"{home.name} is a partition of Slurm, where no pod waits"
            hint = "name a Kubernetes cluster, and take the partition's pending jobs as a signal"
            work.report(placed, Finding(loc=("spec", "primaryCluster"), message=message, hint=hint))
        elsewhere = (clusters[own] for own in workspace.clusters if own in clusters and own != workspace.primary)
        work.warn(placed, partial(warn_unpriced, workspace.budget, elsewhere))
    return workspaces


def _schemas(work: FleetObjects, fleet: Fleet, clusters: Mapping[ClusterName, Cluster]) -> ObjectSchemas:
    """Return what objects are held to: the resources that clusters declare are names of resources as well."""
    custom: dict[str, DeclaredValue[CustomKind]] = {}
    for placed in work.all(CustomKind):
        name = placed.value.name
        if work.is_unique(placed, custom.get(name), f"CustomResourceDefinition of {name}"):
            custom[name] = placed
    nodes = (nodes for cluster in clusters.values() for nodes in cluster.autoscaling)
    resources = frozenset(name for node in nodes for name in node.allocatable.amounts)
    kinds = {name: placed.value for name, placed in custom.items()}
    return ObjectSchemas(custom=kinds, field_validation=fleet.field_validation, resources=resources)


def _templates(
    work: FleetObjects,
    workspaces: Mapping[WorkspaceName, Workspace],
    gprs: Iterable[str],
    kinds: Kinds,
    blobs: Mapping[str, BlobId],
    *,
    clusters: Mapping[ClusterName, Cluster],
    schemas: ObjectSchemas,
    read: Callable[[TemplateDraft, Workspace], Expansion],
) -> dict[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]]:
    """Put templates into their workspaces, and check them against the safety rules there.

    An error in what was read from a source keeps the template from being deployed, and its file in force: an earlier
    version of the file would mean something else.
    """
    templates: dict[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]] = {}
    for written in work.all(TemplateDraft):
        placed, draft = written, written.value
        workspace = work.workspace_of(draft.workspace, draft.used, placed.path, workspaces)
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
        expansion = read(draft, workspace)
        safety = rules.check_safety(expansion.draft.spec, workspace, kinds=kinds, schemas=schemas)
        unsafe = map(expansion.draft.spelling.of, (*_check_namespaces(expansion.draft, workspace), *safety))
        check = partial(rules.check_safety, workspace=workspace, kinds=kinds, schemas=schemas)
        whole = expansion.draft
        patched = check_patched(
            whole.spec, whole.ref, draft.patches, clusters=clusters.values(), kinds=kinds, check=check
        )
        findings = tuple(dict.fromkeys((*unsafe, *expansion.findings, *patched, *_uncounted(draft, kinds))))
        if not _judge(work, placed, findings):
            continue
        unread = expansion.unread or why_not_deployed(findings)
        if expansion.draft is not draft and not unread:
            draft = expansion.draft
            placed = replace(placed, value=draft)
        if draft.annotated and draft.ref is not None:
            stray = _check_workload_namespace(draft.ref, workspace)
            if stray is not None:
                work.report(placed, stray)
            if "WorkloadKind" not in work.excused and (strange := warn_unknown_kind(draft.ref, draft.spec, kinds)):
                work.report(placed, strange)
        for index, patch in enumerate(draft.patches):
            places = name_locations(("spec", "patches", index, "clusters"), patch.clusters)
            work.report_unknown(placed, "Cluster", places, clusters)
        if draft.gpr_templates:
            work.report_unknown(
                placed, "GPRTemplate", name_locations(("spec", "gprTemplates"), draft.gpr_templates), gprs
            )
        # An object that may not be deployed is none to count: it may be another one, of which nothing is missing.
        ref = with_api_group(draft.ref or (None if unread else expansion.draft.ref), draft.spec, kinds)
        template = WorkloadTemplate(
            name=draft.name,
            workspace=workspace.name,
            namespace=draft.namespace,
            spec=draft.spec,
            ref=ref,
            namespaces=draft.namespaces,
            labels=draft.labels,
            gpr_templates=draft.gpr_templates,
            uses_replicas=draft.uses_replicas,
            group_size=draft.group_size,
            runs_once=runs_once(draft.spec, draft.ref, kinds) if draft.runs_once is None else draft.runs_once,
            path=placed.path,
            line=placed.declared.line,
            blob=blobs.get(placed.path, BlobId("")),
            prerequisites=prerequisites(draft.spec, workspace, kinds),
            containers=deployed_containers(draft.spec, ref, kinds),
            made_from=None if unread else expansion.made_from,
            unread=unread,
            patches=draft.patches,
        )
        templates[workload] = (template, placed)
    return templates


def _counted_templates(
    work: FleetObjects,
    desired: Desired,
    templates: Mapping[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]],
) -> dict[WorkloadId, WorkloadTemplate]:
    """Say of each template where the replicas of its placements are written, or how many one copy has."""
    counted = divide_templates(work, templates, desired.policies)
    for workload, (template, placed) in templates.items():
        if template.unread:
            counted[workload] = template
        elif workload not in counted:
            draft = placed.value
            counted[workload], findings = with_replicas(template, draft.fixed, desired.kinds)
            above = copy_above_maximum(counted[workload], desired.policies.get(workload))
            for finding in (*findings, *above):
                work.report(placed, draft.spelling.of(finding))
    return {workload: _with_shared_domain(counted[workload], desired.kinds) for workload in templates}


def _with_shared_domain(template: WorkloadTemplate, kinds: Kinds) -> WorkloadTemplate:
    """Note of a template that its replicas share a topology domain; pods that cannot be read share none."""
    shares = attempt(Seam.GANG, template.workload, partial(shares_domain, template, kinds))
    return replace(template, shares_domain=True) if shares is True else template


def _told(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that are reported, by path: of each file not many more than its reader reports."""
    by_path: dict[str, list[Problem]] = {}
    for problem in sorted(problems):
        by_path.setdefault(problem.path, []).append(problem)
    most = MOST_TOLD + 1  # what its reader reports, and how much more that is
    return tuple(sorted(problem for found in by_path.values() for problem in told(found, most)))


def _judge(work: FleetObjects, placed: DeclaredValue[TemplateDraft], findings: Iterable[Finding]) -> bool:
    """Report findings, and return whether a template stays in force: errors of its source leave its file alone."""
    good = True
    for finding in findings:
        wrong = finding.severity is Severity.ERROR and not is_of_source(finding)
        (work.reject if wrong else work.report)(placed, finding)
        good = good and not wrong
    if not good:
        _excuse(work, placed.value)
    return good


def _expand(
    draft: TemplateDraft,
    workspace: Workspace,
    *,
    commit: CommitId,
    fleet: Fleet,
    contents: SourceContents,
    kinds: Kinds,
    permit: Callable[[ManifestSource, WorkloadRef | None, Workspace], Finding | None],
) -> Expansion:
    """Put the objects of its source into a template, if it has one that its workspace may use."""
    if draft.source is None:
        return Expansion(draft=draft)
    if finding := permit(draft.source, draft.ref, workspace):
        return _unpermitted(draft, finding)
    content = unreachable(draft.source, fleet) or contents.get(source_key(draft.source, workspace))
    if not isinstance(content, RepositorySource):
        return expand(draft, content, commit, kinds)
    if finding := permit(content, draft.ref, workspace):
        return _unpermitted(draft, replace(finding, loc=(*FROM, "application")))
    read = contents.get(SourceKey(content))
    return expand(draft, None if isinstance(read, RepositorySource) else read, commit, kinds, content)


def _unpermitted(draft: TemplateDraft, finding: Finding) -> Expansion:
    return Expansion(draft=draft, findings=(finding,), unread=f"{finding.message} ({finding.hint})")


def _with_places(keys: Iterable[SourceKey], contents: SourceContents) -> frozenset[SourceKey]:
    """Add to sources those in other repositories that Applications among them name."""
    own = frozenset(keys)
    places = (contents.get(key) for key in own)
    return own | {SourceKey(place) for place in places if isinstance(place, RepositorySource)}


def _excuse(work: FleetObjects, draft: TemplateDraft) -> None:
    """Excuse references to a template that an error keeps out of force."""
    work.excused |= {"WorkloadTemplate", str(draft.name)}


def _warn_prerequisites(
    work: FleetObjects,
    desired: Desired,
    templates: Mapping[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]],
) -> None:
    """Warn of the prerequisites of each template that its clusters may lack."""
    complete, patched = "Cluster" not in work.excused, PatchedTemplates(desired)
    for workload, (template, placed) in templates.items():
        workspace = desired.workspaces[template.workspace]
        asked = template.prerequisites or workspace.shared_networking
        clusters = burst_clusters(desired.policies.get(workload), workspace, desired) if asked else ()
        needs = template.prerequisites
        check = partial(check_prerequisites, template.spec, needs, workspace, clusters, desired.kinds)
        work.warn(placed, partial(check, seen=work.seen, complete=complete), placed.value.spelling.of)
        places = [
            (cluster, patched.prerequisites(template, cluster), work.seen.get(cluster.name)) for cluster in clusters
        ]
        work.warn(placed, partial(warn_unserved, template.spec, places, desired.kinds), placed.value.spelling.of)


def _warn_objects(
    work: FleetObjects,
    desired: Desired,
    templates: Mapping[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]],
) -> None:
    """Warn of objects that have no effect, that stay as they were placed, and that two templates make."""
    owners = ObjectOwners(desired)
    for workload, (template, placed) in templates.items():
        policy, limits = desired.policies.get(workload), desired.limits.get(workload.workspace)
        for find in (
            partial(warn_managed_by_multikueue, template.spec),
            partial(warn_autoscaled, template, desired.kinds),
            partial(warn_immutable_replicas, template.spec, desired.kinds, desired.schemas),
            partial(warn_refused_shares, desired.templates.get(workload, template), desired.kinds),
            partial(warn_moving_images, template.spec, desired.kinds),
            partial(warn_uncounted_pods, template.spec, desired.kinds),
            partial(warn_shared_objects, workload, owners, desired),
            partial(warn_short_time, template, policy, limits, desired.kinds),
        ):
            work.warn(placed, find, placed.value.spelling.of)


def _check_namespaces(draft: TemplateDraft, workspace: Workspace) -> Iterator[Finding]:
    """Check that the declared namespaces of a template belong to its workspace (docs/reference/egs.md, R15)."""
    for index, namespace in enumerate(draft.namespaces):
        if workspace.namespaces and namespace not in workspace.namespaces:
            yield foreign_namespace(("spec", "namespaces", index), namespace, workspace)


def _uncounted(draft: TemplateDraft, kinds: Kinds) -> Iterator[Finding]:
    """Refuse a template that a person has count an object without replicas, by an annotation or as its source."""
    loc: Loc = ("metadata", "annotations", WORKLOAD) if draft.annotated else ("spec", "from", "workload")
    if draft.ref is not None and (draft.annotated or isinstance(draft.source, WorkloadSource)):
        refused = refuse_uncounted_kind(draft.ref, loc, kinds)
        if refused is not None:
            yield refused


def _check_workload_namespace(ref: WorkloadRef, workspace: Workspace) -> Finding | None:
    """Warn of a workload annotation whose namespace does not belong to the workspace."""
    if not workspace.namespaces or ref.namespace in workspace.namespaces:
        return None
    return replace(
        foreign_namespace(("metadata", "annotations", WORKLOAD), ref.namespace, workspace), severity=Severity.WARNING
    )
