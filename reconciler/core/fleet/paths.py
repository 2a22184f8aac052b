"""Which objects a file of the fleet repository may hold, by its path.

A pull request reaches as far as the paths that its author may change (docs/how-to/review.md). Objects that give rights
or bind several tenants are read from the folders of their kinds alone; objects of one tenant are read from any path
that is not another tenant's. The Fleet, in one fixed file, and the Workspaces say otherwise. A refused object is as a
broken one: the last good version of its file stays in force. Patterns are in the manner of .gitignore files, from the
root of the repository.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from reconciler.core.fleet.file import Value
from reconciler.core.fleet.kruise_whitelist import Whitelist
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema.egs.gpr import GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile, WorkspacePolicyFile
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.notification import NotificationFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.model.ids import WorkspaceName
from reconciler.model.kubernetes.object_schema import CustomKind
from reconciler.text.findings import Finding, shortened

FLEET_FILE = "fleet.yaml"
"""The one file with the Fleet. It may hold all other kinds as well: who may change it has the fleet anyway."""


class Scope(StrEnum):
    """How far an object of a kind reaches."""

    ROOT = "root"
    """The Fleet, which says where all others are read."""
    FLEET = "fleet"
    """Objects that give rights, or hold for several workspaces."""
    WORKSPACE = "workspace"
    """Objects of one workspace, which bounds them."""
    NOWHERE = "nowhere"
    """Objects that are not read from the fleet repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The scope of a kind, and where it is read unless the Fleet says otherwise."""

    scope: Scope
    patterns: tuple[str, ...] = ()


def _folder(*names: str) -> Reach:
    """Make the reach of a fleet-wide kind: directories, and files of their names at the root."""
    return Reach(
        scope=Scope.FLEET, patterns=tuple(pattern for name in names for pattern in (f"{name}/**", f"{name}.*"))
    )


_ANYWHERE = Reach(scope=Scope.WORKSPACE, patterns=("**",))

REACH: Mapping[str, Reach] = {
    "Fleet": Reach(scope=Scope.ROOT, patterns=(FLEET_FILE,)),
    # Its connection and engine decide where credentials are used, its labels which policies select it.
    "Cluster": _folder("clusters"),
    # Namespaces, kinds and pod security of a tenant: what engines are given rights for.
    "Workspace": _folder("workspaces"),
    # Its priority goes over other tenants, and its maxima bind the tenant itself.
    "BurstPolicy": _folder("policies"),
    # The bounds of a tenant's GPRs.
    "WorkspacePolicy": _folder("policies", "workspaces"),
    # Terms of GPUs that all workspaces may be bound to.
    "GPRTemplate": _folder("gpr-templates", "policies"),
    # A binding lets a tenant's templates burst without a policy.
    "GPRTemplateBinding": _folder("gpr-templates", "policies", "workspaces"),
    # WorkloadKinds and OpenKruise's list of kinds say how pods of all tenants are counted; CustomResourceDefinitions
    # bind objects of all tenants.
    "WorkloadKind": _folder("kinds"),
    # Events of several workspaces, and the secrets of the daemon that its receivers use.
    "Notification": _folder("notifications"),
    "WorkloadTemplate": _ANYWHERE,
    "WorkloadPlacement": _ANYWHERE,
    "GPUProvisioningRequest": _ANYWHERE,
    # A spread holds in the workspaces that may use its namespace, and only in those whose objects its path may hold.
    "WorkloadSpread": _ANYWHERE,
    # Observations come from files beside the repository, or from calls.
    "Observation": Reach(scope=Scope.NOWHERE),
}
"""The reach of each kind of the registry."""

_KINDS_OF_FLEETS = ("Cluster", "Workspace")

_KIND_OF: Mapping[type[Value], str] = {
    FleetFile: "Fleet",
    ClusterFile: "Cluster",
    WorkspaceFile: "Workspace",
    BurstPolicyFile: "BurstPolicy",
    WorkspacePolicyFile: "WorkspacePolicy",
    GprTemplateFile: "GPRTemplate",
    BindingFile: "GPRTemplateBinding",
    WorkloadKindFile: "WorkloadKind",
    NotificationFile: "Notification",
    Whitelist: "WorkloadKind",
    CustomKind: "WorkloadKind",
    TemplateDraft: "WorkloadTemplate",
    WorkloadSpreadFile: "WorkloadSpread",
}


def kind_of_value(value: Value) -> str:
    """Return the kind of an object as files write it."""
    if isinstance(value, RequestDraft):
        return "GPUProvisioningRequest" if value.reserves else "WorkloadPlacement"
    return _KIND_OF[type(value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPaths:
    """The paths of one fleet: what its Fleet and its Workspaces say."""

    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns by kind, for kinds that the Fleet names."""
    workspaces: Mapping[WorkspaceName, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of each workspace with paths of its own."""

    def owners(self, path: str) -> frozenset[WorkspaceName]:
        """Return the workspaces whose own a path is; none for the Fleet's file."""
        if path == FLEET_FILE:
            return frozenset()
        return frozenset(name for name, patterns in self.workspaces.items() if covered(path, patterns))

    def refuse_kind(self, path: str, kind: str) -> Finding | None:
        """Refuse a kind where it is not read, whichever workspace it is for."""
        if path == FLEET_FILE:
            return None
        if kind == "Fleet":
            message = f"a Fleet is read from {FLEET_FILE} at the root of the repository alone"
            return Finding(loc=("kind",), message=message, hint=f"try moving it into {FLEET_FILE}")
        patterns = self.kinds.get(kind, REACH[kind].patterns)
        if covered(path, patterns):
            return None
        message = f"a {kind} is read from {_list_names((*patterns, FLEET_FILE))} alone"
        hint = f"try moving it there, or set spec.paths.{kind} in {FLEET_FILE}"
        return Finding(loc=("kind",), message=message, hint=hint)

    def refuse_object(self, path: str, value: Value) -> Finding | None:
        """Refuse an object of the whole fleet on a workspace's own path.

        Where the Fleet itself names the kind and the object is that workspace's alone, it may lie there: an admin who
        names a pattern within the paths of tenants means it, and a default does not.
        """
        kind = kind_of_value(value)
        owners = self.owners(path)
        if not owners or REACH[kind].scope is not Scope.FLEET:
            return None
        names = _list_names(sorted(owners))
        bound = _bound_workspaces(value)
        if not bound or not bound <= owners:
            message = f"this path is workspace {names}'s own, and a {kind} reaches beyond it"
            return Finding(loc=("kind",), message=message, hint="try a path that is no workspace's own")
        if kind not in self.kinds:
            message = f"this path is workspace {names}'s own, and a {kind} bounds the workspace"
            hint = f"try another path, or set spec.paths.{kind} in {FLEET_FILE}"
            return Finding(loc=("kind",), message=message, hint=hint)
        return None

    def refuse_workspace(self, path: str, workspace: WorkspaceName) -> Finding | None:
        """Refuse an object of a workspace on another's own path, or outside of the paths of its own."""
        if path == FLEET_FILE:
            return None
        owners = self.owners(path)
        if workspace in owners:
            return None
        loc = ("spec", "workspaceName")
        if owners:
            message = f"this path is workspace {_list_names(sorted(owners))}'s own, and holds nothing of {workspace}"
            return Finding(loc=loc, message=message, hint="try another path, or another workspace")
        patterns = self.workspaces.get(workspace)
        if patterns is None:
            return None
        message = f"objects of workspace {workspace} are read from {_list_names(patterns)} alone"
        return Finding(loc=loc, message=message, hint="try moving it there, or adding its path to the Workspace")


def read_paths(kinds: Mapping[str, tuple[str, ...]], workspaces: Iterable[tuple[str, WorkspaceFile]]) -> ReadPaths:
    """Collect the paths of a fleet; `workspaces` are the Workspaces of its files with their paths, in order.

    Of two Workspaces of one name the first counts, and none where its kind is not read.
    """
    by_kind = ReadPaths(kinds=kinds)
    own: dict[WorkspaceName, tuple[str, ...]] = {}
    for path, workspace in workspaces:
        if by_kind.refuse_kind(path, "Workspace") is None:
            own.setdefault(WorkspaceName(workspace.metadata.name), tuple(workspace.spec.paths))
    return ReadPaths(kinds=kinds, workspaces={name: patterns for name, patterns in own.items() if patterns})


def _bound_workspaces(value: Value) -> frozenset[str]:
    """Return the workspaces that an object holds for; empty for all."""
    match value:
        case WorkspaceFile() | BindingFile():
            return frozenset({value.metadata.name})
        case BurstPolicyFile() | NotificationFile():
            return frozenset(value.spec.workspaces)
        case WorkspacePolicyFile():
            return frozenset({value.workspace})
        case _:
            return frozenset()


def fleets_below(declared: Collection[str]) -> list[str]:
    """Return the directories at the root that are laid out as a fleet repository, sorted, where the root itself is not.

    `declared` are the paths of files with objects, or with errors. A fleet is read from the root of its repository
    alone, so that nothing of such a directory is where its Fleet, its Clusters and its Workspaces are read.
    """
    if FLEET_FILE in declared or any(map(_kinds_of_fleets, declared)):
        return []
    inside: dict[str, list[str]] = {}
    for path in declared:
        top, _, rest = path.partition("/")
        if rest:
            inside.setdefault(top, []).append(rest)
    return sorted(
        top
        for top, paths in inside.items()
        if FLEET_FILE in paths or set().union(*map(_kinds_of_fleets, paths)) == {*_KINDS_OF_FLEETS}
    )


def _kinds_of_fleets(path: str) -> set[str]:
    """Return which of the kinds that each fleet has are read from a path, unless its Fleet says otherwise."""
    return {kind for kind in _KINDS_OF_FLEETS if covered(path, REACH[kind].patterns)}


def _list_names(names: Iterable[str]) -> str:
    return shortened(", ".join(names), 200)


def covered(path: str, patterns: Iterable[str]) -> bool:
    """Return whether any pattern covers a path, or a directory above it.

    ``*`` and ``?`` stop at a slash; ``**`` between slashes stands for any number of directories. The time is bounded by
    the length of the pattern times that of the path.
    """
    parts = path.split("/")
    return any(_covers(_segments(pattern), parts) for pattern in patterns)


def _covers(pattern: Sequence[re.Pattern[str] | None], parts: Sequence[str]) -> bool:
    """Match a path against a pattern, keeping the set of reachable positions; None stands for ``**``."""
    reached = _onward({0}, pattern)
    if len(pattern) in reached:
        return True
    for part in parts:
        step = {at for at in reached if pattern[at] is None}
        step |= {at + 1 for at in reached if (segment := pattern[at]) is not None and segment.fullmatch(part)}
        reached = _onward(step, pattern)
        if len(pattern) in reached:
            return True
    return False


def _onward(reached: set[int], pattern: Sequence[re.Pattern[str] | None]) -> set[int]:
    """Add the positions after a ``**``, which also matches no directory."""
    for at, segment in enumerate(pattern):
        if at in reached and segment is None:
            reached.add(at + 1)
    return reached


@lru_cache(maxsize=256)
def _segments(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Compile a pattern segment by segment; atomic groups keep stars from backtracking over all combinations."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return tuple(None if part == "**" else re.compile(_segment(part), re.DOTALL) for part in parts)


def _segment(part: str) -> str:
    """Translate one segment: the pieces between stars match leftmost first, the last one at the end."""
    first, *pieces = [re.escape(piece).replace(r"\?", ".") for piece in part.split("*")]
    if not pieces:
        return first
    *middle, last = pieces
    return first + "".join(f"(?>.*?{piece})" for piece in middle) + f".*{last}"
