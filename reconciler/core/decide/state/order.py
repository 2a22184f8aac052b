"""An order of an API caller for one placement, as a value that a pass carries out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.schema.egs.request import RequestDraft
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.request import Verb
from reconciler.model.tree import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """What `overspill revert`, `overspill extend` and `overspill release` are told."""

    paths: tuple[str, ...] = ()
    """The directories of placements; none for a release."""
    workload: WorkloadId | None = None
    """Of a release: the workload that is held back."""
    cluster: ClusterName | None = None
    """Of a release: the only cluster on which it ends; None for wherever it is held."""
    reason: str = ""
    everywhere: bool = False
    """Of a revert: whether the workload is held back on every cluster."""
    by: timedelta | None = None
    """Of an extension: how much later the end is."""
    until: datetime | None = None
    """Of an extension: the new end, in the place of `by`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What is said of a proposal: yes, no, or which pull request it has."""

    workload: WorkloadId
    proposal: str = ""
    """The id of the proposal; empty for whatever is proposed of the workload."""
    reason: str = ""
    pull_request: str = ""
    """The URL of its pull request, of an order to note it."""
    foreign: str = ""
    """What was taken off its branch, of an order to note it; empty for nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order of an API caller: to create, update, delete, release, revert or extend a placement.

    Orders to approve or reject a proposal may come from the host of the fleet repository as well.
    """

    number: int
    verb: Verb
    name: str
    """The name of the placement."""
    workspace: WorkspaceName | None
    """None where the caller does not name it: it is then one of those in `within`."""
    author: Identity
    within: frozenset[WorkspaceName] | None
    """Workspaces that the author may write to; None for all."""
    draft: RequestDraft | None = None
    """The body of the call."""
    given: frozenset[str] = frozenset()
    """The fields that the body names."""
    key: str = ""
    """The digest of the idempotency key of a creation."""
    steering: Steering | None = None
    """Of a revert, an extension, or the release of a workload that is held back."""
    ruling: Ruling | None = None
    """Of an answer to a proposal."""
    request_id: str = ""
    """The id of the call, which its commit tells."""
    strict: bool = False
    """Refuses to delete a placement that has GPUs or is over, as EGS does (docs/reference/egs.md, R19)."""

    def may(self, workspace: WorkspaceName) -> bool:
        """Tell whether it may be about something in a workspace."""
        return self.workspace in (None, workspace) and (self.within is None or workspace in self.within)
