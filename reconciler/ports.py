"""The ports to outside systems that the core and the daemon use.

Each Protocol has one adapter and, in tests, a hand-written fake. Errors are those of
`reconciler.errors`; adapters wrap the errors of their libraries once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from reconciler.core.fleet.path_history import PathHistories
from reconciler.core.observe.gpu_use import GpuAnswers, GpuQuestion
from reconciler.core.readiness.branch_rules import BranchRules
from reconciler.core.readiness.check import AskedServer
from reconciler.core.readiness.programs import DaemonAnswer
from reconciler.core.readiness.proposal_rights import ProposalRights
from reconciler.core.readiness.question import ApiQuestion
from reconciler.core.readiness.server import ServerAnswers
from reconciler.core.recording.pass_record import PassRecord
from reconciler.model.approval import PullRequest
from reconciler.model.branch_loss import ReportedCommit
from reconciler.model.capacity import Observed
from reconciler.model.events.event import Event, Push
from reconciler.model.events.notification import DeliveryMarks
from reconciler.model.ids import BlobId, ClusterName, CommitId, TreeId, WorkspaceName
from reconciler.model.outward_call import OutwardCall
from reconciler.model.policy import Desired
from reconciler.model.tree import (
    AddedFiles,
    Advance,
    Branch,
    BranchSection,
    Commit,
    FileChange,
    LoggedCommit,
    Projection,
    Tips,
    TreeEntry,
)
from reconciler.model.workload import HelmConfig, Json

MeasureCall: TypeAlias = Callable[[OutwardCall], AbstractContextManager[Callable[[str], None]]]
"""Measures a call to a system outside, which its block is; the block is given a function that takes the code of the
answer. Safe to use from several threads, and from coroutines."""


def unmeasured_call(_call: OutwardCall) -> AbstractContextManager[Callable[[str], None]]:
    """Measure nothing."""
    return nullcontext(_ignore)


def _ignore(_code: str) -> None:
    pass


class Repository(Protocol):
    """The fleet repository: a local bare mirror of the two branches, and the remote behind it.

    Only `fetch`, `branch_names`, `push`, `branches` and the methods that may have to deepen a shallow history
    (`last_written`, `log`, `section`, `earlier`, `states`, `past_versions`) use the network. All raise Transient if the
    remote is unreachable and InvalidInput if it refuses.
    """

    def fetch(self) -> Tips:
        """Fetch both branches and return their tips."""
        ...

    def tips(self) -> Tips:
        """Return the tips of the last fetch or push, without a call to the remote."""
        ...

    def branch_names(self) -> list[str]:
        """List the branches of the remote that are not ours, to suggest one for a missing name."""
        ...

    def entries(
        self, commit: CommitId, *, under: Sequence[str] = (), sizes: bool = False, others: bool = False
    ) -> list[TreeEntry]:
        """List the regular files of a commit, sorted by path, below some directories (none: all).

        With `others`, its links and submodules follow. With `sizes`, the size of each file is filled in.
        """
        ...

    def obstacles(self, commit: CommitId, directories: Iterable[str]) -> Mapping[str, str]:
        """Find those paths of a commit that hold a file, a link or a submodule in place of a directory.

        Returns the kind of each, as people call it.
        """
        ...

    def changes(self, old: CommitId, new: CommitId, *, under: Sequence[str] = ()) -> list[FileChange]:
        """List the files that differ between two commits, sorted by path; cost follows the difference."""
        ...

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read blobs of fetched commits."""
        ...

    def held(self, places: Collection[tuple[CommitId, str]]) -> Mapping[tuple[CommitId, str], BlobId | None]:
        """Find the blobs of files at commits in one call, None for a missing file; never calls the remote.

        Engines report on some commit each, and all reports are compared with the tip at once. Commits that the mirror
        does not hold are left out.
        """
        ...

    @property
    def has_memory(self) -> bool:
        """Whether tips of our branches have been known for a while; not so in the first hour on an empty disk."""
        ...

    def look_for(self, commit: CommitId, *, branch: str, reported_by: str) -> ReportedCommit:
        """Search a branch of ours for a commit, which the engine of a cluster is known to have applied.

        Without it in the mirror, the branch is fetched once more, and its history as far as that takes, within a bound.
        A branch that lacks it is among the losses of `tips` then.
        """
        ...

    def last_written(self, tip: CommitId) -> CommitId | None:
        """Find the newest commit at or before `tip`, along first parents, that Overspill made itself.

        That is a commit with a `Trailer.ACTION` whose committer is ours. None when there is none.
        """
        ...

    def log(
        self,
        tip: CommitId,
        *,
        since: datetime | None = None,
        limit: int | None = None,
        base: CommitId | None = None,
    ) -> list[LoggedCommit]:
        """Read commits back from `tip`, newest first, down to the given time or number.

        Commits of merged side branches are among them. Those that `base` leads back to are left out, and `base` itself.
        """
        ...

    def section(
        self,
        tip: CommitId,
        *,
        since: datetime,
        base: CommitId | None = None,
        under: Sequence[str] = (),
        limit: int | None = None,
    ) -> BranchSection:
        """Read a branch back along first parents, each commit with the files that it changed below some directories.

        The section goes from `tip` down to `base`, or to the newest commit before `since` that Overspill made itself:
        times of others may be wrong. Neither of the two is part of it. It has `limit` commits at most.
        """
        ...

    def earlier(self, commit: CommitId, path: str, *, limit: int = 20) -> list[BlobId]:
        """List earlier versions of one file before the one at `commit`, newest first."""
        ...

    def states(self, commit: CommitId, paths: Sequence[str], *, limit: int) -> list[Mapping[str, BlobId]]:
        """List what stood at some paths before each commit that changed any of them, newest first.

        A path without a file is left out of its mapping.
        """
        ...

    def past_versions(self, commit: CommitId, paths: Collection[str], *, base: CommitId | None = None) -> PathHistories:
        """List the versions that stood at some paths before those at `commit`, along first parents, newest first.

        Of a link or a submodule, also those of the files below it whose directory it has replaced. With a `base` on
        the way they go back to it; without one, or where that is elsewhere, to where each path was added or deleted,
        within the bound on history. What stood before the branch was rewritten comes last.
        """
        ...

    def write(self, base: CommitId | None, commits: Sequence[Commit]) -> list[CommitId]:
        """Write commits on top of `base` (None: a new root) into the mirror, and return their ids in order.

        Nothing is visible on the remote until the push.
        """
        ...

    def branches(self) -> Mapping[ClusterName, Branch]:
        """Return the branches of clusters.

        The first call fetches them. After that `fetch` includes them as long as this is called between two fetches;
        otherwise they are dropped, and cost nothing.
        """
        ...

    def forget_branches(self) -> None:
        """Expect nothing more of the branches of clusters: the fleet keeps none."""
        ...

    def due_branches(self, lacking: Collection[ClusterName]) -> frozenset[ClusterName]:
        """Return the clusters whose branch is to be pushed now, of those whose branch lacks commits.

        A branch that the remote has refused waits for a few minutes. Refusals of branches that lack nothing are
        forgotten.
        """
        ...

    def directories(self, commits: Sequence[CommitId]) -> list[Mapping[ClusterName, TreeId]]:
        """Return for each commit the tree ids of its cluster directories; cost follows their number."""
        ...

    def project(self, projections: Sequence[Projection]) -> list[Advance]:
        """Write commits for branches of clusters into the mirror, and return the new tip of each, in order.

        The directories have to be in the mirror. Nothing is visible on the remote until the push.
        """
        ...

    def refuse_unsigned(self) -> None:
        """Raise InvalidInput where commits are to be signed and their key cannot, Transient where the disk is full."""
        ...

    def begin_push(
        self, new: CommitId, *, old: CommitId | None, branches: Sequence[Advance] = ()
    ) -> Callable[[], Sequence[Advance]]:
        """Start a push of the output branch from `old` to `new` and of branches of clusters, none by force.

        All of them move or none, except that the others move without the branches of clusters that the remote refuses.
        These are among the `refused` of `tips` from then on. `new` may be `old`. The returned function has to be called
        before any other push or fetch: it waits for the end, and returns the branches of clusters that have moved. Both
        raise Conflict if a branch has another tip than expected.
        """
        ...


class BranchLog(Protocol):
    """The commits of the output branch, for those who are told of them."""

    def commits_after(self, base: CommitId | None, tip: CommitId) -> list[LoggedCommit] | None:
        """Read the commits after `base` (None: from the first on) up to `tip` along first parents, oldest first.

        None where `base` is not in the history of `tip` any more. Raises Transient where it has to be fetched and
        cannot be, and Conflict where the branch was rewritten meanwhile.
        """
        ...


class Deliveries(Protocol):
    """How far each receiver of notifications has been told, on the remote; safe to use from any thread.

    All methods call the remote, and raise Transient where it is away and InvalidInput where it refuses.
    """

    def read(self, receiver: str) -> DeliveryMarks:
        """Return how far a receiver has been told."""
        ...

    def move(self, receiver: str, old: DeliveryMarks, new: DeliveryMarks) -> None:
        """Move the marks of a receiver.

        Raises Conflict where they were not at `old`. Neither has moved then, unless one of them was at its goal
        already: the other has moved there too.
        """
        ...


class OutputFiles(Protocol):
    """The files of the output branch, to be read while a pass runs; safe to use from any thread."""

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read blobs without a call to the remote; missing ones are left out."""
        ...


class ClusterView(Protocol):
    """Observations of the clusters. `observe` never waits for a slow one: it returns the last observation."""

    def follow(self, desired: Desired) -> None:
        """Take the clusters and workloads to observe from now on. A view of files or pushes ignores them."""
        ...

    def observe(self) -> Observed:
        """Return the newest observation of each cluster."""
        ...


class GpuUseView(Protocol):
    """What is known of the use of GPUs. `observe` never waits: it returns the last answers."""

    @property
    def label(self) -> str:
        """The label by which series name their cluster."""
        ...

    def follow(self, questions: tuple[GpuQuestion, ...], max_age: timedelta) -> None:
        """Take the questions to ask from now on, and the age up to which an answer counts."""
        ...

    def observe(self) -> GpuAnswers:
        """Return the last answers."""
        ...


class ApiServers(Protocol):
    """The API servers of the fleet, for single questions; nothing is watched and nothing is changed."""

    def ask(
        self, desired: Desired, questions: Mapping[AskedServer, Collection[ApiQuestion]]
    ) -> Mapping[AskedServer, ServerAnswers]:
        """Ask all servers at the same time, within a bound, and return what each has answered."""
        ...


class BranchRuleSource(Protocol):
    """The host of the fleet repository, as far as it tells who may push to a branch."""

    def rules(self, branch: str) -> BranchRules:
        """Return what it tells of a branch."""
        ...

    def proposal_rights(self) -> ProposalRights:
        """Return what it tells of the repository and its pull requests."""
        ...

    @property
    def project(self) -> str:
        """The path of the repository, ``acme/fleet``."""
        ...


class ProposalBranches(Protocol):
    """The fleet repository, as far as bursts are proposed in it.

    It is a mirror of its own beside that of `Repository`, since proposals are followed in a thread of their own.
    """

    def fetch(self) -> Tips:
        """Fetch both branches and return their tips."""
        ...

    def write(self, base: CommitId | None, commits: Sequence[Commit]) -> list[CommitId]:
        """Write commits on top of `base` into the mirror, and return their ids in order."""
        ...

    def heads(self, prefix: str) -> Mapping[str, CommitId]:
        """List the branches of the remote whose names begin so, with their commits."""
        ...

    def added(self, commit: CommitId) -> AddedFiles:
        """Return what the commit of a branch changes on its parent; both are fetched where the mirror lacks them."""
        ...

    def log(self, tip: CommitId, *, since: datetime | None = None, limit: int | None = None) -> list[LoggedCommit]:
        """Read commits back from `tip`, newest first, down to the given time or number."""
        ...

    def move_head(self, branch: str, *, old: CommitId | None, new: CommitId | None) -> None:
        """Make a branch of the remote, give it another commit, or remove it.

        Raises Conflict where it has another commit than expected, and InvalidInput where the remote refuses.
        """
        ...

    def close(self) -> None:
        """Close the mirror."""
        ...


class PullRequests(Protocol):
    """The pull requests of the fleet repository on its host. All raise Transient, and InvalidInput for a refusal."""

    def available(self) -> bool:
        """Return whether the host has pull requests that can be made from here."""
        ...

    def find(self, branch: str, *, known: str = "") -> PullRequest | None:
        """Find the newest pull request of a branch; `known` is its URL, where that was noted."""
        ...

    def open(self, branch: str, base: str, *, title: str, body: str) -> PullRequest:
        """Make a pull request, or return the one that another daemon has made."""
        ...

    def comment(self, request: PullRequest, text: str) -> None:
        """Say something on a pull request, in Markdown."""
        ...

    def close(self, request: PullRequest, *, comment: str) -> None:
        """Say why, and close a pull request."""
        ...

    def shut(self) -> None:
        """Close all connections."""
        ...


class RunningDaemon(Protocol):
    """A daemon that runs somewhere, as far as it tells everybody how it is."""

    url: str

    def ask(self) -> DaemonAnswer:
        """Return its answer, or why there is none."""
        ...


class PushRehearsal(Protocol):
    """The fleet repository, as far as a signature and a push can be tried without moving anything."""

    def rehearse_signature(self) -> None:
        """Sign nothing in particular, where commits are signed.

        Raises InvalidInput where the key cannot sign, and Transient where the disk takes no files of a moment.
        """
        ...

    def rehearse_push(self) -> None:
        """Push to the output branch as a dry run.

        Raises InvalidInput where the remote refuses it, and Transient where it does not answer.
        """
        ...


class Charts(Protocol):
    """Renders Helm charts for engines that do not do so themselves."""

    def available(self) -> bool:
        """Return whether charts can be rendered here at all."""
        ...

    def template(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> tuple[Mapping[str, Json], ...]:
        """Render one chart of a workspace with its values to objects, in the order in which Helm prints them.

        Raises InvalidInput with Helm's own message when the chart or its values are wrong, Transient when its
        repository is away, and Pending while the chart is rendered in the background: the daemon is woken afterwards.
        """
        ...


class Clock(Protocol):
    """The time, read once a pass."""

    def now(self) -> datetime:
        """Return the time in UTC, to the second."""
        ...


class EventSink(Protocol):
    """Takes events to a receiver: the log, an engine's webhook, a chat, metrics."""

    def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
        """Publish the decisions of a pass and the pushed branches; must neither fail nor wait.

        `pushes` are the output branch first, then those of clusters; none if nothing was written, as for changes that
        are held back. All of them are on the remote.
        """
        ...


class Recording(Protocol):
    """Keeps what passes saw and decided, for `overspill lab replay`."""

    def append(self, record: PassRecord) -> None:
        """Keep a pass before its commits are pushed; must not fail for a full or missing disk."""
        ...


class LedgerCache(Protocol):
    """Keeps the records of the output branch from one run of the program to the next; losing them costs time alone."""

    def read(self) -> bytes | None:
        """Return what was written last; None where there is nothing, or nothing that this program has written."""
        ...

    def write(self, data: bytes) -> None:
        """Replace what was written last; must not fail for a full or missing disk."""
        ...


Wake = Callable[[str], None]
"""Asks the loop for another pass soon; the argument is its reason."""
