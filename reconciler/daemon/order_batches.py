"""Receiving what many callers order: a batch after the other, each decided while the one before is being pushed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.commits.write import Rendered
from reconciler.core.decide.decide import receive
from reconciler.daemon.order_queue import Batch
from reconciler.daemon.reconcile import (
    Memory,
    Outcome,
    PendingPush,
    View,
    World,
    begin_push,
    draft,
    read_input,
    store_commits,
)
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.errors import Transient
from reconciler.model.capacity import Observed
from reconciler.model.plan import Suppressed
from reconciler.model.request import Verb
from reconciler.model.tree import Tips


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    batch: Batch
    push: PendingPush


class OrderBatches:
    """Takes in batches, of which one at a time is on its way to the remote.

    A batch is decided as if the push before it had ended well. Where it has not, both wait on or fail together. The
    clusters are looked at once: nothing is placed in a rush.
    """

    def __init__(self, world: World, memory: Memory, bulletin: LatestSnapshot, tips: Tips) -> None:
        """Begin where the branches stand at `tips`, with whatever the last whole pass held back."""
        self._world, self._memory, self._bulletin = world, memory, bulletin
        self._tips = tips
        self._held = _held(bulletin)
        self._seen: Observed | None = None
        self._under_way: _Sent | None = None
        self._landed: _Sent | None = None
        self.answered = 0
        """How many orders were answered last."""
        self.done: list[Outcome] = []
        """What has been pushed, a batch after the other."""

    @property
    def under_way(self) -> int:
        """How many orders are on their way to the remote."""
        return len(self._under_way.batch.slips) if self._under_way is not None else 0

    def take_in(self, batch: Batch) -> None:
        """Decide a batch and put it down, wait for the push before it, and begin its own.

        Whoever waits for the one before is answered only then: git works meanwhile.
        """
        try:
            with batch.at_stake():
                try:
                    if any(order.verb is not Verb.CREATE for order in batch.orders):
                        self._land()  # what ends is told from its past, for which the remote may have to be asked
                    view, rendered = self._drafted(batch)
                    ids = store_commits(self._world, view, rendered)
                finally:
                    self._land()
                push = begin_push(self._world, self._memory, view, rendered, ids)
            self._under_way = _Sent(batch=batch, push=push)
            self._tips = _after(self._tips, push.outcome)
            self._held = rendered.suppressed
        finally:
            self._tell()

    def settle(self) -> None:
        """Wait for the push under way, if there is one, and tell of it whoever reads and whoever ordered it."""
        self._land()
        self._tell()

    def _tell(self) -> None:
        self.answered = 0
        if self._landed is None:
            return
        batch, outcome = self._landed.batch, self._landed.push.outcome
        self._landed = None
        with batch.at_stake():
            self._bulletin.post(outcome)
        batch.answer(outcome)
        self.answered = len(batch.slips)
        self.done.append(outcome)

    def _land(self) -> None:
        if self._under_way is None:
            return
        sent, self._under_way = self._under_way, None
        with sent.batch.at_stake():
            sent.push.end()
        self._landed = sent

    def _drafted(self, batch: Batch) -> tuple[View, Rendered]:
        decided = partial(receive, held=self._held)
        inputs = read_input(self._world, self._memory, self._tips, batch.orders, self._seen)
        self._seen = inputs.observed
        return draft(self._world, View.of(inputs, self._tips, decided(inputs)), decided)


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Make one outcome of those of a rush, as the last one sees it."""
    last = outcomes[-1]
    rendered = replace(
        last.rendered,
        commits=tuple(commit for outcome in outcomes for commit in outcome.rendered.commits),
        changes=tuple(change for outcome in outcomes for change in outcome.rendered.changes),
    )
    return replace(
        last,
        rendered=rendered,
        commits=tuple(commit for outcome in outcomes for commit in outcome.commits),
        branches=tuple(branch for outcome in outcomes for branch in outcome.branches),
        events=tuple(event for outcome in outcomes for event in outcome.events),
        pushes=len(outcomes),
    )


def _held(bulletin: LatestSnapshot) -> tuple[Suppressed, ...]:
    with suppress(Transient):  # no pass has ended well yet
        return bulletin.read().view.plan.suppressed
    return ()


def _after(tips: Tips, outcome: Outcome) -> Tips:
    """Return where the branches stand once a push has ended well."""
    if not outcome.commits:
        return tips
    last = outcome.rendered.commits[-1].at
    return replace(tips, output=outcome.commits[-1], output_at=max(tips.output_at or last, last))
