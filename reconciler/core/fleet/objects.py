"""The objects of all files during assembly, the problems found so far, and the workspace of each object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from reconciler.bulkhead import Seam, attempt
from reconciler.core.fleet.file import AbsentLimits, AbsentSpread, Declared, ParsedFile, Value
from reconciler.core.fleet.kruise_whitelist import Whitelist
from reconciler.core.fleet.paths import ReadPaths, kind_of_value
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema.egs.gpr import GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile, WorkspacePolicyFile
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.fleet import ClusterFile
from reconciler.core.schema.notification import NotificationFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.errors import Bug, Problem, Severity
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.kubernetes.object_schema import CustomKind
from reconciler.model.policy import Workspace
from reconciler.model.workload import WorkloadRef
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest

Identity = tuple[str, ...]
V = TypeVar("V", bound=Value)
M = TypeVar(
    "M", ClusterFile, WorkspaceFile, BurstPolicyFile, GprTemplateFile, BindingFile, WorkloadKindFile, NotificationFile
)
NAME: Loc = ("metadata", "name")
MAX_LISTED_NAMES = 3
"""Names that are listed where there are many."""
_MAX_UNKNOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredValue(Generic[V]):
    """A value, the object that it was read from, and the path of its file."""

    value: V
    path: str
    declared: Declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two objects of which only one can be in force: of one name, or for one thing.

    `first` is in force, being the first in order; which of them was there before is for the history to say.
    """

    first: str
    """The path of each, and what identifies it in versions of its file (`identity`)."""
    first_identity: Identity
    second: str
    second_identity: Identity


class FleetObjects:
    """The objects and problems of one assembly.

    `excused` are the names and kinds that broken files mention: missing references to them are not reported beside the
    errors of those files. `paths` say which objects a file may hold.
    """

    def __init__(
        self, paths: ReadPaths | None = None, seen: Mapping[ClusterName, ClusterObservation] | None = None
    ) -> None:
        """Start without objects and problems. `seen` are observed clusters, for warnings alone."""
        self.paths = paths or ReadPaths()
        self.seen = seen or {}
        self.problems: list[Problem] = []
        self.contests: list[Contest] = []
        self.rejected: set[str] = set()
        self.excused: set[str] = set()
        self.absent_spreads: list[AbsentSpread] = []
        """The WorkloadSpreads that are not in force: nothing new is placed for what they may target."""
        self.absent_limits: list[AbsentLimits] = []
        """The WorkspacePolicies that are not in force: no GPR begins in their workspaces."""
        self._objects: dict[type[Any], list[Any]] = {}

    def add(self, path: str, declared: Declared) -> None:
        """Add an object."""
        placed = DeclaredValue(value=declared.value, path=path, declared=declared)
        self._objects.setdefault(type(declared.value), []).append(placed)

    def leave_out(self, path: str, file: ParsedFile) -> None:
        """Keep a broken file out of force."""
        self.rejected.add(path)
        self.excused |= file.mentioned
        self.absent_spreads += (replace(spread, path=path) for spread in file.spreads)
        self.absent_limits += (replace(limits, path=path) for limits in file.limits)

    def is_stalled(self, ref: WorkloadRef, workspace: WorkspaceName) -> bool:
        """Return whether a spread that is not in force may govern a workload, and its file may hold one for it."""
        return any(
            absent.may_target(ref) and self._may_govern(absent.path, "WorkloadSpread", workspace)
            for absent in self.absent_spreads
        )

    def has_absent_limits(self, workspace: WorkspaceName) -> bool:
        """Return whether a WorkspacePolicy that is not in force may limit a workspace."""
        return any(
            absent.workspace == workspace and self._may_govern(absent.path, "WorkspacePolicy", workspace)
            for absent in self.absent_limits
        )

    def _may_govern(self, path: str, kind: str, workspace: WorkspaceName) -> bool:
        """Return whether a file may hold an object of a kind for a workspace."""
        if not path:
            return True
        return self.paths.refuse_kind(path, kind) is None and self.paths.refuse_workspace(path, workspace) is None

    def all(self, kind: type[V]) -> list[DeclaredValue[V]]:
        """Return the objects of one kind, by path and position."""
        return self._objects.get(kind, [])

    def named(self, kind: type[M], word: str) -> dict[str, DeclaredValue[M]]:
        """Return the objects of one kind by name; a second object of the same name is rejected."""
        by_name: dict[str, DeclaredValue[M]] = {}
        for placed in self.all(kind):
            name = placed.value.metadata.name
            if self.is_unique(placed, by_name.get(name), f"{word} {name}"):
                by_name[name] = placed
        return by_name

    def is_unique(self, placed: DeclaredValue[V], other: DeclaredValue[V] | None, what: str) -> bool:
        """Return whether no other object has the identity of `placed`; reject `placed` otherwise."""
        if other is None:
            return True
        where = f"{other.path}:{other.declared.line}"
        finding = Finding(loc=NAME, message=f"{what} is already in {where}", hint="try another name")
        self.reject_second(placed, other, finding)
        return False

    def reject_second(self, placed: DeclaredValue[V], other: DeclaredValue[V], finding: Finding) -> None:
        """Reject an object for another that is in force, and note the contest."""
        self.reject(placed, finding)
        contest = Contest(
            first=other.path,
            first_identity=identity(other.value),
            second=placed.path,
            second_identity=identity(placed.value),
        )
        self.contests.append(contest)

    def workspace_of(
        self,
        name: WorkspaceName | None,
        used: Sequence[str],
        path: str,
        workspaces: Mapping[WorkspaceName, Workspace],
    ) -> Workspace | Finding:
        """Return the workspace of an object in a file: the path's own where it has one, and never one it is closed to.

        The arguments are those of `find_workspace`.
        """
        owners = self.paths.owners(path)
        if name is None and owners:
            workspaces = {owner: workspace for owner, workspace in workspaces.items() if owner in owners}
        workspace = find_workspace(name, used, workspaces)
        if isinstance(workspace, Finding):
            return workspace
        return self.paths.refuse_workspace(path, workspace.name) or workspace

    def report(self, placed: DeclaredValue[V], finding: Finding) -> None:
        """Report a finding; the object stays in force."""
        self.problems.append(placed.declared.problem(finding, placed.path))

    def warn(
        self,
        placed: DeclaredValue[V],
        find: Callable[[], Iterable[Finding]],
        spelled: Callable[[Finding], Finding] = lambda finding: finding,
    ) -> None:
        """Report the warnings that `find` returns, with the names of fields that the object has (`spelled`).

        A bug in looking for them is reported in their place. The object stays in force: it is good without them.
        """
        findings = attempt(Seam.WARNING, placed.path, lambda: tuple(map(spelled, find())))
        if isinstance(findings, Bug):
            self.problems.append(findings.problem(placed.path, placed.declared.line, Severity.WARNING))
            return
        for finding in findings:
            self.report(placed, finding)

    def report_unknown(
        self,
        placed: DeclaredValue[V],
        kind: str,
        places: Iterable[tuple[Loc, str]],
        candidates: Iterable[str],
        severity: Severity = Severity.ERROR,
        *,
        usable: Iterable[str] | None = None,
    ) -> None:
        """Report the names that no file declares, each at its location, with a bounded number of hints.

        A hint offers a name that would work there: one of the `usable` ones (None: of all) that is not listed already.
        """
        names, places = frozenset(candidates), tuple(places)
        offered = (names if usable is None else frozenset(usable)) - {name for _, name in places}
        missing = [(loc, name) for loc, name in places if name not in names and name not in self.excused]
        for loc, name in missing[:_MAX_UNKNOWN]:
            self.report(placed, replace(unknown_name(loc, kind, name, offered), severity=severity))
        if len(missing) > _MAX_UNKNOWN:
            more = f"no file describes {len(missing) - _MAX_UNKNOWN} more that are named here"
            self.report(placed, Finding(loc=missing[_MAX_UNKNOWN][0], message=more, severity=severity))

    def report_outside(
        self,
        placed: DeclaredValue[V],
        workspace: Workspace,
        places: Iterable[tuple[Loc, str]],
        clusters: Collection[str],
    ) -> None:
        """Report the clusters that are not those of a workspace: described ones (`clusters`), and unknown ones."""
        places = tuple(places)
        outside = [(loc, name) for loc, name in places if name not in workspace.clusters]
        offered = frozenset(workspace.clusters) - {name for _, name in places}
        for loc, name in outside:
            if name in clusters:
                message = f"Cluster {name} is not in workspace {workspace.name}"
                other = nearest(name, offered)
                hint = f"add it to spec.clusters there{f', or {other}' if other else ''}"
                self.report(placed, Finding(loc=loc, message=message, hint=hint))
        unknown = [(loc, name) for loc, name in outside if name not in clusters]
        self.report_unknown(placed, "Cluster", unknown, workspace.clusters, usable=offered)

    def reject(self, placed: DeclaredValue[V], finding: Finding) -> None:
        """Report a finding that keeps the object's file out of force."""
        self.report(placed, finding)
        self.rejected.add(placed.path)


def identity(value: Value) -> Identity:
    """Return what identifies an object among the versions of its file: its kind and name."""
    kind = kind_of_value(value)
    match value:
        case TemplateDraft() | RequestDraft():
            return kind, value.name
        case WorkspacePolicyFile():
            return kind, value.workspace
        case WorkloadSpreadFile():
            return kind, value.namespace, value.metadata.name
        case Whitelist():
            return (kind,)
        case CustomKind():
            return "CustomResourceDefinition", value.name
        case _:
            return kind, value.metadata.name


def unknown_name(loc: Loc, kind: str, name: str, names: Iterable[str]) -> Finding:
    """Report a name that no file declares."""
    hint = nearest(name, names) or f"add a {kind} of this name"
    return Finding(loc=loc, message=f"no file describes {kind} {shortened(name)}", hint=hint)


def foreign_namespace(loc: Loc, namespace: str, workspace: Workspace) -> Finding:
    """Report a namespace that does not belong to the workspace."""
    message = f"{shortened(namespace)!r} is no namespace of workspace {workspace.name}"
    return Finding(loc=loc, message=message, hint=f"it has {first_names(workspace.namespaces)}")


def first_names(names: Sequence[str]) -> str:
    """List the first few of many names."""
    return ", ".join(names[:MAX_LISTED_NAMES]) + (", …" if len(names) > MAX_LISTED_NAMES else "")


def name_locations(root: Loc, names: Iterable[str]) -> list[tuple[Loc, str]]:
    """Pair the names of a list with their locations."""
    return [((*root, index), name) for index, name in enumerate(names)]


def find_workspace(
    name: WorkspaceName | None, used: Sequence[str], workspaces: Mapping[WorkspaceName, Workspace]
) -> Workspace | Finding:
    """Return the workspace: the named one, else the only one, else the only one with all namespaces in `used`."""
    loc: Loc = ("spec", "workspaceName")
    if name is not None:
        return workspaces.get(name) or unknown_name(loc, "Workspace", name, workspaces)
    if len(workspaces) == 1:
        return next(iter(workspaces.values()))
    if not workspaces:
        return Finding(loc=loc, message="there is no Workspace yet", hint="add one: kind: Workspace")
    owners = [workspace for workspace in workspaces.values() if used and {*used} <= {*workspace.namespaces}]
    if len(owners) == 1:
        return owners[0]
    names = sorted(workspace.name for workspace in owners or workspaces.values())
    what = f"{len(owners)} workspaces have its namespaces" if owners else "no workspace has all of its namespaces"
    return Finding(loc=loc, message=f"is required: {what}", hint=f"one of {', '.join(names)}")
