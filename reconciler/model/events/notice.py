"""An event as receivers are told of it."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.events.event import Event
from reconciler.model.events.notification import Importance
from reconciler.model.ids import CommitId, WorkspaceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An event with what receivers need beside it. All texts are free of credentials."""

    id: str
    """The same whenever and by whomever it is sent: the commit, or a digest of an event without one."""
    event: Event
    importance: Importance
    workspaces: tuple[WorkspaceName, ...] = ()
    """Whom it concerns, where it is of no workload."""
    source: CommitId | None = None
    """The commit of the source branch that was decided on."""
    placement: str = ""
    """The placement as `workspace/name`; empty for none."""
