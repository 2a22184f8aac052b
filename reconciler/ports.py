"""The outside world as the core and the daemon see it.

Each Protocol has one adapter that does it for real and, in tests, a hand-written one. Errors are those of
`reconciler.errors`; adapters wrap whatever their library raises, once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from reconciler.model.capacity import Observed
from reconciler.model.event import Event, Push
from reconciler.model.ids import BlobId, ClusterName, CommitId, TreeId
from reconciler.model.policy import Desired
from reconciler.model.tree import Advance, Branch, Commit, FileChange, LoggedCommit, Projection, Tips, TreeEntry
from reconciler.model.workload import HelmConfig, Json


class Repository(Protocol):
    """The fleet repository: a local bare mirror of the two branches, and the remote behind it.

    Only `fetch`, `branch_names`, `push`, `branches` and the methods that may have to deepen a shallow history
    (`last_written`, `log`, `earlier`) touch the network. All raise Transient when the remote is away and InvalidInput
    when it refuses.
    """

    def fetch(self) -> Tips:
        """Bring both branches up to date and return where they stand."""
        ...

    def tips(self) -> Tips:
        """Return where the branches stood when last fetched or pushed, without asking the remote."""
        ...

    def branch_names(self) -> list[str]:
        """Ask the remote which branches people have there, to say what may have been meant by one that is missing."""
        ...

    def entries(self, commit: CommitId, *, under: Sequence[str] = (), sizes: bool = False) -> list[TreeEntry]:
        """List the regular files of a commit, sorted by path, below the given directories (none given: all).

        Links and submodules are left out. With `sizes`, each entry's size is filled in.
        """
        ...

    def changes(self, old: CommitId, new: CommitId, *, under: Sequence[str] = ()) -> list[FileChange]:
        """List the files that differ between two commits, sorted by path; cost follows the difference."""
        ...

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read the contents of blobs that some fetched commit holds."""
        ...

    def held(self, places: Collection[tuple[CommitId, str]]) -> Mapping[tuple[CommitId, str], BlobId | None]:
        """Find files at commits in one go, None where a commit has no such file; never asks the remote.

        What engines say is about some commit, and all of them at once have to be compared with the tip. Commits that
        the mirror does not hold are left out.
        """
        ...

    def last_written(self, tip: CommitId) -> CommitId | None:
        """Find the newest commit at or before `tip`, along first parents, that Overspill made itself.

        That is a commit with a `Trailer.ACTION` whose committer is ours. None when there is none.
        """
        ...

    def log(self, tip: CommitId, *, since: datetime | None = None, limit: int | None = None) -> list[LoggedCommit]:
        """Read commits back from `tip`, newest first, down to the given time or number."""
        ...

    def earlier(self, commit: CommitId, path: str, *, limit: int = 20) -> list[BlobId]:
        """List earlier versions of one file before the one at `commit`, newest first."""
        ...

    def write(self, base: CommitId | None, commits: Sequence[Commit]) -> list[CommitId]:
        """Write commits on top of `base` (None: a new root) into the mirror, and return their ids in order.

        Nothing is visible to anybody until `push`.
        """
        ...

    def branches(self) -> Mapping[ClusterName, Branch]:
        """Return where the branches of clusters stand.

        Asks the remote the first time. Whoever goes on asking between one `fetch` and the next has them kept up to date
        by `fetch`; else they are forgotten, and cost nothing.
        """
        ...

    def directories(self, commits: Sequence[CommitId]) -> list[Mapping[ClusterName, TreeId]]:
        """Tell for each commit which clusters have a directory in it, and its id; cost follows their number."""
        ...

    def project(self, projections: Sequence[Projection]) -> list[Advance]:
        """Write commits for branches of clusters into the mirror, and return where each branch is to go, in order.

        The directories have to be in the mirror. Nothing is visible to anybody until `push`.
        """
        ...

    def begin_push(
        self, new: CommitId, *, old: CommitId | None, branches: Sequence[Advance] = ()
    ) -> Callable[[], None]:
        """Begin to move the output branch from `old` to `new`, and branches of clusters with it, none by force.

        All of them move or none does. `new` may be `old`. What is returned has to be called, before anything else is
        pushed or fetched: it waits until all have moved. Either raises Conflict when one is not where it should be.
        """
        ...


class OutputFiles(Protocol):
    """The files of the output branch, for those who read while a pass is under way; safe to use from any thread."""

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read the contents of blobs, without asking the remote; those that are not here any more are left out."""
        ...


class ClusterView(Protocol):
    """What is known of the clusters. `observe` never waits for a slow one: it returns what was last seen."""

    def follow(self, desired: Desired) -> None:
        """Learn which clusters and workloads matter from now on. A view that is told what it sees ignores it."""
        ...

    def observe(self) -> Observed:
        """Return the newest observation of each cluster."""
        ...


class Charts(Protocol):
    """Renders Helm charts for engines that do not do so themselves."""

    def available(self) -> bool:
        """Tell whether charts can be rendered here at all."""
        ...

    def template(self, chart: HelmConfig, *, hooks: bool) -> tuple[Mapping[str, Json], ...]:
        """Render one chart with its values to Kubernetes objects, in the order in which Helm prints them.

        Raises InvalidInput with Helm's own message when the chart or its values are wrong.
        """
        ...


class Clock(Protocol):
    """The time, read once a pass."""

    def now(self) -> datetime:
        """Return the present moment, in UTC, to the second."""
        ...


class EventSink(Protocol):
    """Takes events to whoever wants to know: the log, an engine's webhook, a chat, metrics."""

    def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
        """Take note of what a pass decided, and of the branches that carry it; must not fail and must not wait.

        `pushes` are the output branch first, then those of clusters; none where nothing had to be written, as of
        changes that are held back. Everything in it is on the remote.
        """
        ...


Wake = Callable[[str], None]
"""Asks the loop for another pass soon, naming what happened."""
