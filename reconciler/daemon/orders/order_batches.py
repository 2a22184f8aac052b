"""Receives the orders of many callers in batches; each is decided while the batch before is being pushed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.commits.commit_date import date_after
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.decide.decide import receive
from reconciler.core.recording.pass_record import PassKind
from reconciler.daemon.orders.order_queue import Batch
from reconciler.daemon.reconcile import (
    Memory,
    Outcome,
    PassDecision,
    PendingPush,
    World,
    begin_push,
    draft,
    read_input,
    record,
    store_commits,
)
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.errors import Conflict, Transient
from reconciler.model.capacity import Observed
from reconciler.model.plan import Suppressed
from reconciler.model.request import Verb
from reconciler.model.tree import Tips


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentBatch:
    batch: Batch
    push: PendingPush


@dataclass(frozen=True, slots=True, kw_only=True)
class _FinishedBatch:
    batch: Batch
    outcome: Outcome


class OrderBatches:
    """Takes in batches, and pushes one at a time.

    A batch is decided as if the push before it had succeeded. If that push fails, both batches wait on or fail
    together. The clusters are observed once: no batch places anything.
    """

    def __init__(self, world: World, memory: Memory, latest: LatestSnapshot, tips: Tips) -> None:
        """Begin where the branches stand at `tips`, with what the last whole pass held back."""
        self._world, self._memory, self._latest = world, memory, latest
        self._tips = tips
        self._held = _held_back(latest)
        self._seen: Observed | None = None
        self._under_way: _SentBatch | None = None
        self._finished: _FinishedBatch | None = None
        self.answered = 0
        """Number of orders in the last answered batch."""
        self.outcomes: list[Outcome] = []
        """The outcomes of pushed batches, in order."""

    @property
    def under_way(self) -> int:
        """Number of orders in the push under way."""
        return len(self._under_way.batch.entries) if self._under_way is not None else 0

    def take_in(self, batch: Batch) -> None:
        """Decide a batch and put it down, wait for the push before it, and begin its own.

        Callers of the batch before are answered once this push has begun: git works meanwhile.
        """
        try:
            with batch.at_stake():
                try:
                    if any(order.verb is not Verb.CREATE for order in batch.orders):
                        self._finish()  # an end names the commits it reverts, for which the remote may have to be asked
                    decision, rendered = self._draft(batch)
                    ids = store_commits(self._world, decision, rendered)
                    record(self._world, decision, ids, PassKind.RECEIVE)
                finally:
                    self._finish()
                push = begin_push(self._world, self._memory, decision, rendered, ids)
            self._under_way = _SentBatch(batch=batch, push=push)
            self._tips = _tips_after(self._tips, push.outcome)
            self._held = rendered.suppressed
        finally:
            self._answer()

    def settle(self) -> None:
        """Wait for the push under way, if any; post its outcome to readers, then answer its callers."""
        self._finish()
        self._answer()

    def _answer(self) -> None:
        self.answered = 0
        if self._finished is None:
            return
        batch, outcome = self._finished.batch, self._finished.outcome
        self._finished = None
        with batch.at_stake():
            self._latest.post(outcome)
        batch.answer(outcome)
        self.answered = len(batch.entries)
        self.outcomes.append(outcome)

    def _finish(self) -> None:
        if self._under_way is None:
            return
        sent, self._under_way = self._under_way, None
        with sent.batch.at_stake():
            outcome = sent.push.end()
        self._finished = _FinishedBatch(batch=sent.batch, outcome=outcome)

    def _draft(self, batch: Batch) -> tuple[PassDecision, RenderedPlan]:
        decided = partial(receive, held=self._held)
        inputs = read_input(self._world, self._memory, self._tips, batch.orders, self._seen)
        self._seen = inputs.observed
        fleet = inputs.desired.fleet
        if self._memory.applied.compare(self._world.repository, self._seen, fleet, self._world.output_branch):
            raise Conflict("receiving requests: the branch has moved since this was decided")
        return draft(self._world, PassDecision.of(inputs, self._tips, decided(inputs)), decided)


def join_outcomes(outcomes: Sequence[Outcome]) -> Outcome:
    """Join the outcomes of successive pushes into one, with the decision of the last."""
    last = outcomes[-1]
    rendered = replace(
        last.rendered,
        commits=tuple(commit for outcome in outcomes for commit in outcome.rendered.commits),
        changes=tuple(change for outcome in outcomes for change in outcome.rendered.changes),
        bugs=tuple(dict.fromkeys(bug for outcome in outcomes for bug in outcome.rendered.bugs)),
    )
    return replace(
        last,
        rendered=rendered,
        commits=tuple(commit for outcome in outcomes for commit in outcome.commits),
        branches=tuple(branch for outcome in outcomes for branch in outcome.branches),
        events=tuple(event for outcome in outcomes for event in outcome.events),
        pushes=len(outcomes),
    )


def _held_back(latest: LatestSnapshot) -> tuple[Suppressed, ...]:
    with suppress(Transient):  # no pass has ended well yet
        return latest.read().decision.plan.suppressed
    return ()


def _tips_after(tips: Tips, outcome: Outcome) -> Tips:
    """Return where the branches stand once a push has succeeded."""
    if not outcome.commits:
        return tips
    last = outcome.rendered.commits[-1].at
    return replace(tips, output=outcome.commits[-1], output_at=date_after(last, tips.output_at))
