"""Answers for callers of the API from a mirror of their own, so that no pass waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from threading import BoundedSemaphore, Lock

from reconciler.core.commits.history import own
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.cost.meter import CostMeter
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.supposition import Supposition
from reconciler.daemon.answers.history import HistorySelection, SelectedHistory, read_history
from reconciler.daemon.answers.patch import files_before, patch
from reconciler.daemon.answers.preview import PastView, later_input
from reconciler.daemon.answers.proposal import ProposalRepository, ReviewedCharts, read_proposal, unobserved
from reconciler.daemon.cost.budgets import BudgetReader
from reconciler.daemon.cost.costs import CostReader
from reconciler.daemon.deletion_confirmations import DeletionConfirmations
from reconciler.daemon.reconcile import PassDecision, World, draft, render_plan, with_mass_deletion
from reconciler.daemon.snapshot import LatestSnapshot, Snapshot
from reconciler.daemon.source import SourceReader
from reconciler.daemon.steer import sign
from reconciler.errors import InvalidInput, Transient
from reconciler.model.plan import Plan
from reconciler.model.tree import Identity, LoggedCommit, Tips
from reconciler.ports import Charts, Clock

PATIENCE = 20.0
"""Seconds that a caller waits for the answers to those before."""
MOST_WAITING = 8
_LAST_WORDS = 5.0
"""Seconds that a stopping daemon waits for the answer under way."""
_LOOKS = 10
_LOOK_EVERY = 0.2
_DEEP = 500
"""Commits of the output branch that are fetched where the newest pass is behind its tip."""


class Occupied(Transient):
    """Others are answered first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuestion:
    """What is asked of a plan."""

    suppositions: tuple[Supposition, ...] = ()
    branch: str = ""
    """The branch whose files are to be decided on; empty for the source branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """A plan that nobody carries out."""

    snapshot: Snapshot
    """The pass whose observation it is made of."""
    decision: PassDecision
    rendered: RenderedPlan
    questions: tuple[str, ...]
    """The suppositions in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentCommits:
    """Our commits on the output branch, up to the tip that the newest pass left."""

    snapshot: Snapshot
    commits: tuple[LoggedCommit, ...]
    """Newest first."""
    cut: bool
    """Whether earlier ones were left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostAnswer:
    """What placements have cost until a moment."""

    snapshot: Snapshot
    meter: CostMeter
    until: datetime


class AnswerDesk:
    """Answers one caller at a time, from any thread.

    The repository is opened with the first question: its mirror is one more copy of the branches. A plan costs what a
    pass does, so that after each as much time is left to passes as it took.
    """

    def __init__(
        self,
        latest: LatestSnapshot,
        open_repository: Callable[[], ProposalRepository],
        *,
        charts: Charts,
        clock: Clock,
        author: Identity,
        output_branch: str,
    ) -> None:
        """Answer from the newest pass, and from a repository of its own whose output branch `author` commits to."""
        self._latest = latest
        self._open = open_repository
        self._charts = charts
        self._clock = clock
        self._author = author
        self._output_branch = output_branch
        self._lock, self._plans = Lock(), Lock()
        self._places = BoundedSemaphore(MOST_WAITING)
        self._repository: ProposalRepository | None = None
        self._source: SourceReader | None = None
        self._costs: CostReader | None = None
        self._rest_until = 0.0
        self._closed = False

    def history(self, selection: Callable[[Snapshot], HistorySelection]) -> SelectedHistory:
        """Read past placements. Raises InvalidInput as `read_history` does, and Transient when too many ask."""
        with self._turn() as repository:
            snapshot = self._fetched(repository)
            return read_history(repository, self._author, snapshot.decision.inputs.ledger, selection(snapshot))

    def log(self, *, since: datetime, limit: int) -> RecentCommits:
        """Read our commits on the output branch, newest first. Raises Transient when too many ask."""
        with self._turn() as repository:
            snapshot = self._fetched(repository)
            tip = snapshot.decision.inputs.ledger.commit
            commits = own(repository.log(tip, since=since, limit=limit), self._author) if tip is not None else ()
            return RecentCommits(snapshot=snapshot, commits=commits, cut=len(commits) >= limit)

    def costs(self, since: datetime) -> CostAnswer:
        """Add up what placements have cost since a moment.

        Raises Transient when too many ask, and Conflict where the repository does not hold the commits since then.
        """
        with self._turn() as repository:
            snapshot = self._fetched(repository)
            if self._costs is None:
                self._costs = CostReader(repository, self._author)
            now = self._clock.now()
            tips = replace(snapshot.decision.tips, output=snapshot.decision.inputs.ledger.commit)
            return CostAnswer(snapshot=snapshot, meter=self._costs.meter(tips, since, now), until=now)

    def plan(self, question: PlanQuestion) -> PlanAnswer:
        """Decide now on the observation of the newest pass.

        Raises InvalidInput for a branch that cannot be read and for suppositions about what does not exist, and
        Transient when too many ask.
        """
        with self._paced_turn() as repository:
            snapshot = self._fetched(repository)
            before, now = snapshot.decision.inputs, self._clock.now()
            tips = replace(snapshot.decision.tips, output=before.ledger.commit)
            charts = self._charts
            if question.branch:
                source = self._source = self._source or SourceReader(repository)
                proposed = read_proposal(
                    repository, source, question.branch, author=self._author, now=now, seen=before.observed
                )
                reviewed = before.desired
                inputs, questions = later_input(before, now, question.suppositions, proposed.desired)
                inputs = replace(
                    with_mass_deletion(replace(inputs, deletion=None), DeletionConfirmations(repository)),
                    desired=replace(
                        inputs.desired,
                        problems=(*inputs.desired.problems, *unobserved(proposed.desired, reviewed, before.observed)),
                    ),
                    budgets=BudgetReader().budgets(
                        repository, self._author, proposed.desired, replace(tips, source=proposed.merged), now
                    ),
                )
                charts = ReviewedCharts.of(charts, reviewed)
                tips = replace(tips, source=proposed.desired.commit)
            else:
                inputs, questions = later_input(before, now, question.suppositions)
            world = self._world(repository, snapshot, charts)
            decision = PassDecision.of(inputs, tips, decide(inputs))
            decision, rendered = draft(world, decision, failures=snapshot.failures)
            return PlanAnswer(snapshot=snapshot, decision=decision, rendered=rendered, questions=questions)

    def draft(self, decider: Callable[[PassInput], Plan], person: Identity) -> PlanAnswer:
        """Draft what a person orders, with the person's name on it. Raises InvalidInput as `decider` does."""
        with self._turn() as repository:
            snapshot = self._fetched(repository)
            inputs, _ = later_input(snapshot.decision.inputs, self._clock.now())
            tips = replace(snapshot.decision.tips, output=inputs.ledger.commit)
            decision = PassDecision.of(inputs, tips, decider(inputs))
            rendered = sign(render_plan(self._world(repository, snapshot, self._charts), decision), person)
            return PlanAnswer(snapshot=snapshot, decision=decision, rendered=rendered, questions=())

    def patch(self, tips: Tips, rendered: RenderedPlan) -> bytes:
        """Write the commits of a plan as a patch."""
        with self._turn() as repository:
            return patch(rendered.commits, files_before(repository, tips.output, rendered.commits))

    def close(self) -> None:
        """Answer nobody any more, and remove the mirror; one that is still read is left to the next start."""
        self._closed = True
        if self._lock.acquire(timeout=_LAST_WORDS):
            if self._repository is not None:
                self._repository.close()
                self._repository = None
            self._lock.release()

    def _world(self, repository: ProposalRepository, snapshot: Snapshot, charts: Charts) -> World:
        return World(
            repository=repository,
            clusters=PastView(observed=snapshot.decision.inputs.observed),
            charts=charts,
            clock=self._clock,
            author=self._author,
            output_branch=self._output_branch,
        )

    @contextmanager
    def _paced_turn(self) -> Iterator[ProposalRepository]:
        """Wait for a turn once passes have had as much time as the last plan took. Raises Transient as `_turn`."""
        with self._queued(self._plans):
            wait = self._rest_until - time.monotonic()
            if wait > PATIENCE:
                raise Occupied("a plan has just been made, and the next waits for its turn")
            time.sleep(max(0.0, wait))
            with self._turn() as repository:
                began = time.monotonic()
                try:
                    yield repository
                finally:
                    now = time.monotonic()
                    self._rest_until = now + (now - began)

    @contextmanager
    def _turn(self) -> Iterator[ProposalRepository]:
        """Wait until nobody else is answered. Raises Transient when that takes too long."""
        with self._queued(self._lock):
            if self._closed:
                raise Transient("stopping: no more questions are answered")
            self._latest.read()  # before the first pass there is nothing to answer, and nothing to fetch
            if self._repository is None:
                self._repository = self._open()
            yield self._repository

    @contextmanager
    def _queued(self, lock: Lock) -> Iterator[None]:
        """Hold a lock. Raises Transient where many wait already: each takes a thread that answers other calls."""
        if not self._places.acquire(blocking=False):
            raise Occupied(f"{MOST_WAITING} wait for an answer already")
        try:
            if not lock.acquire(timeout=PATIENCE):
                raise Occupied("others are being answered")
        finally:
            self._places.release()
        try:
            yield
        finally:
            lock.release()

    def _fetched(self, repository: ProposalRepository) -> Snapshot:
        """Fetch, and return the newest pass, whose commits the mirror then holds."""
        for _ in range(_LOOKS):
            try:
                tips = repository.fetch()
            except InvalidInput as error:  # not of whoever asks
                raise Transient(str(error)) from error
            snapshot = self._latest.read()
            commit = snapshot.decision.inputs.ledger.commit
            if commit is None or repository.held({(commit, "README.md")}):
                return snapshot
            if tips.output is not None:
                repository.log(tips.output, limit=_DEEP)  # a new mirror begins with the tip alone
            time.sleep(_LOOK_EVERY)
        raise Transient("the output branch has been rewritten, and no pass has seen it yet")
