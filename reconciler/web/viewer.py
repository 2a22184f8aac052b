"""Whoever looks at a page: what they may see, and what they may change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reconciler.access.rights import EVERYWHERE, AccessRole, Caller, has_role
from reconciler.api.lookup import readable_workspaces
from reconciler.api.redact import redact
from reconciler.core.commits.branch_loss import loss_problem
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.ids import ClusterName, WorkspaceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A caller, and the snapshot that the page is made of."""

    caller: Caller
    snapshot: Snapshot

    @property
    def sees_all(self) -> bool:
        """Whether the caller has a role for all workspaces."""
        return EVERYWHERE in self.caller.roles

    @property
    def workspaces(self) -> tuple[WorkspaceName, ...]:
        """The workspaces in force that the caller may see, by name."""
        return tuple(filter(self.may_see, sorted(self.snapshot.decision.inputs.desired.workspaces)))

    @property
    def editable(self) -> tuple[WorkspaceName, ...]:
        """The workspaces in force that the caller may change, by name."""
        return tuple(filter(self.may_edit, self.workspaces))

    @property
    def clusters(self) -> Collection[ClusterName]:
        """The clusters that the caller may see, by name: those of a workspace of theirs."""
        desired = self.snapshot.decision.inputs.desired
        if self.sees_all:
            return sorted(desired.clusters)
        own = {name for workspace in self.workspaces for name in desired.workspaces[workspace].everywhere}
        return sorted(own & {*desired.clusters})

    def may_see(self, workspace: WorkspaceName) -> bool:
        """Return whether the caller may see a workspace."""
        within = readable_workspaces(self.caller)
        return within is None or workspace in within

    def may_edit(self, workspace: WorkspaceName) -> bool:
        """Return whether the caller may change placements of a workspace."""
        return has_role(self.caller, AccessRole.EDITOR, workspace)

    def may_approve(self, workspace: WorkspaceName) -> bool:
        """Return whether the caller may answer proposals of a workspace."""
        return has_role(self.caller, AccessRole.OWNER, workspace)

    @property
    def losses(self) -> tuple[str, ...]:
        """Why nothing is written, if branches are lost: the branches, or without a role for all workspaces no name."""
        decision = self.snapshot.decision
        problems = map(loss_problem, decision.tips.losses) if self.sees_all else decision.shared_problems
        return tuple(map(str, problems))

    def offers_edit(self, workspace: WorkspaceName) -> bool:
        """Return whether a page offers changes of a workspace: the caller may make them, and they could be written."""
        return not self.losses and self.may_edit(workspace)

    def offers_approval(self, workspace: WorkspaceName) -> bool:
        """Return whether a page offers an answer to proposals of a workspace."""
        return not self.losses and self.may_approve(workspace)

    def say(self, text: str) -> str:
        """Return a text without the names of what the caller may not see."""
        return str(redact(text, self.snapshot, self.caller))
