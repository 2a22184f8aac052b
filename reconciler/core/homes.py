"""The workspace that a template or a request belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.core.findings import Finding, Loc
from reconciler.core.gathered import unknown
from reconciler.model.ids import WorkspaceName
from reconciler.model.policy import Workspace


def home(
    name: WorkspaceName | None, used: Sequence[str], workspaces: Mapping[WorkspaceName, Workspace]
) -> Workspace | Finding:
    """Find the workspace: the one named, else the only one, else the only one that has all namespaces `used`."""
    loc: Loc = ("spec", "workspaceName")
    if name is not None:
        return workspaces.get(name) or unknown(loc, "Workspace", name, workspaces)
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
