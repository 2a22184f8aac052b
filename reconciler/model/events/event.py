"""The events of a pass and the pushes that carry them, for event sinks: the log, receivers, the webhooks of engines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance
from reconciler.model.ids import ClusterName, CommitId, WorkloadId, WorkspaceName
from reconciler.model.plan import Reason
from reconciler.model.policy import EngineName


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A decision of a pass."""

    kind: EventKind
    at: datetime  # of the pass
    line: str  # the whole event in one line, as a terminal shows it
    workload: WorkloadId | None = None  # a template, or the request itself; None for branches
    clusters: tuple[ClusterName, ...] = ()  # of a move: from, to
    before: int = 0  # replicas there before
    replicas: int = 0  # from here on; of what is held back, the replicas that are not placed
    reasons: tuple[str, ...] = ()  # a paragraph each, as in the commit's body
    held_by: Reason | None = None  # why it is, or was, held back
    commit: CommitId | None = None  # on the output branch; None where nothing was written
    waited: timedelta | None = None  # of what brings replicas: how long the first had been missing and unserved


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


MOST_PATHS = 10_000
"""Most paths of a push that are listed; with more, every path counts as changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A move of a branch by pushes of ours."""

    branch: str
    old: CommitId | None
    """None where the push created the branch."""
    new: CommitId
    commits: int
    """Number of commits."""
    repo_url: str
    """
    The URL by which engines fetch the branch, from the Fleet; empty if unset. The remote of the push may have another
    URL.
    """
    paths: frozenset[str] | None
    """Files and directories that were written or removed; None if unknown: any may have changed."""
    took: timedelta = timedelta()
    """Time from the decision to the confirmation of the remote."""

    def then(self, later: Push) -> Push:
        """Put a later move after this one.

        With commits of others between the two, the changed paths are unknown.
        """
        paths = None
        if self.paths is not None and later.paths is not None and later.old == self.new:
            paths = self.paths | later.paths
        return replace(
            later,
            old=self.old,
            commits=self.commits + later.commits,
            repo_url=later.repo_url or self.repo_url,
            paths=None if paths is None or len(paths) > MOST_PATHS else paths,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of an engine's webhook, and the secret that events to it are signed with."""

    engine: EngineName
    url: str = field(repr=False)  # its path may be half a secret
    secret: str = field(repr=False)
    secret_path: bool = True
    """Whether the last part of the path is to be left out where the endpoint is named."""

    def __str__(self) -> str:
        """Return the endpoint for messages: without a query, and without a secret part of the path."""
        parts = urlsplit(self.url)
        path = parts.path
        if self.secret_path:
            path = path[: path.rstrip("/").rfind("/") + 1] + "***"
        return f"{self.engine} at {parts.scheme}://{parts.netloc}{path}"
