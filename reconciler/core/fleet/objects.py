"""The objects of all files during assembly, the problems found so far, and the workspace of each object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from reconciler.core.fleet.file import Declared, ParsedFile, Value
from reconciler.core.schema.egs.gpr import GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile
from reconciler.core.schema.fleet import ClusterFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.errors import Problem, Severity
from reconciler.model.ids import WorkspaceName
from reconciler.model.policy import Workspace
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest

V = TypeVar("V", bound=Value)
M = TypeVar("M", ClusterFile, WorkspaceFile, BurstPolicyFile, GprTemplateFile, BindingFile, WorkloadKindFile)
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


class FleetObjects:
    """The objects and problems of one assembly.

    `excused` are the names and kinds that broken files mention: missing references to them are not reported beside the
    errors of those files.
    """

    def __init__(self) -> None:
        """Start without objects and problems."""
        self.problems: list[Problem] = []
        self.rejected: set[str] = set()
        self.excused: set[str] = set()
        self._objects: dict[type[Any], list[Any]] = {}

    def add(self, path: str, declared: Declared) -> None:
        """Add an object."""
        placed = DeclaredValue(value=declared.value, path=path, declared=declared)
        self._objects.setdefault(type(declared.value), []).append(placed)

    def leave_out(self, path: str, file: ParsedFile) -> None:
        """Keep a broken file out of force."""
        self.rejected.add(path)
        self.excused |= file.mentioned

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
        self.reject(placed, Finding(loc=NAME, message=f"{what} is already in {where}", hint="try another name"))
        return False

    def report(self, placed: DeclaredValue[V], finding: Finding) -> None:
        """Report a finding; the object stays in force."""
        self.problems.append(placed.declared.problem(finding, placed.path))

    def withdraw(self, placed: DeclaredValue[V], finding: Finding) -> None:
        """Withdraw a finding about an object on its own that other files have resolved."""
        problem = placed.declared.problem(finding, placed.path)
        self.problems = [reported for reported in self.problems if reported != problem]

    def report_unknown(
        self,
        placed: DeclaredValue[V],
        kind: str,
        places: Iterable[tuple[Loc, str]],
        candidates: Iterable[str],
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Report the names that no file declares, each at its location, with a bounded number of hints."""
        names = frozenset(candidates)
        missing = [(loc, name) for loc, name in places if name not in names and name not in self.excused]
        for loc, name in missing[:_MAX_UNKNOWN]:
            self.report(placed, replace(unknown_name(loc, kind, name, names), severity=severity))
        if len(missing) > _MAX_UNKNOWN:
            more = f"no file describes {len(missing) - _MAX_UNKNOWN} more that are named here"
            self.report(placed, Finding(loc=missing[_MAX_UNKNOWN][0], message=more, severity=severity))

    def reject(self, placed: DeclaredValue[V], finding: Finding) -> None:
        """Report a finding that keeps the object's file out of force."""
        self.report(placed, finding)
        self.rejected.add(placed.path)


def unknown_name(loc: Loc, kind: str, name: str, names: Iterable[str]) -> Finding:
    """Report a name that no file declares."""
    return Finding(loc=loc, message=f"no file describes {kind} {shortened(name)}", hint=nearest(name, names))


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
