"""Runs the passes of the daemon with the orders of callers of the API.

Few orders get a whole pass: their requests are received and placed by one push. Of many orders at once a pass only
receives the requests, batch by batch, and leaves placing to the pass that follows: no caller waits for the placements
of others.
"""

from __future__ import annotations

import time
from dataclasses import replace

from reconciler.core.commits.write import RenderedPlan
from reconciler.daemon.loop import ORDER
from reconciler.daemon.orders.order_batches import OrderBatches, join_outcomes
from reconciler.daemon.orders.order_queue import Batch, OrderQueue
from reconciler.daemon.reconcile import Memory, Outcome, World, observe_and_decide, reconcile_once
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.errors import Conflict, LostBranch
from reconciler.model.tree import Tips

MANY = 10
"""Orders that wait at once from which on a pass only receives."""

LONGEST_RECEIVING = 5.0
"""Seconds for which everything else may wait for receiving."""

_RETURN = 0.02
"""Seconds in which callers that were just answered have called again, if they do; on a busy machine that takes longer,
and so does the push that they would go along with."""


class PassRunner:
    """The pass for the loop. Its outcome is posted to readers before any caller gets a receipt."""

    def __init__(self, world: World, memory: Memory, queue: OrderQueue, latest: LatestSnapshot) -> None:
        """Run passes in `world`, with the `memory` of those before."""
        self._world, self._memory = world, memory
        self._queue, self._latest = queue, latest
        self._since: float | None = None
        self._moved = False

    def __call__(self, *, fetch: bool) -> Outcome:
        """Run one pass with the orders that wait, or receive for as long as many come."""
        fetch, self._moved = fetch or self._moved, False
        waiting = self._queue.gather()
        since = self._since or time.monotonic()
        until = since + LONGEST_RECEIVING
        if waiting >= MANY and time.monotonic() < until:
            self._since = since
            received = self._receive(until, fetch=fetch)
            if received is not None:
                self._queue.wake(ORDER)
                return received
        outcome = self._whole(self._queue.take(), fetch=fetch)
        self._since = None
        return outcome

    def _whole(self, batch: Batch, *, fetch: bool) -> Outcome:
        with batch.at_stake():
            try:
                outcome = reconcile_once(self._world, self._memory, fetch=fetch, orders=batch.orders)
            except LostBranch:
                self._post_unwritten()
                raise
            self._latest.post(outcome)
        batch.answer(outcome)
        return outcome

    def _post_unwritten(self) -> None:
        """Let readers see what is known, and why nothing is written."""
        decision = observe_and_decide(self._world, self._memory, fetch=False)
        decision = replace(decision, plan=replace(decision.plan, changes=()))
        rendered = RenderedPlan(commits=(), changes=(), suppressed=decision.plan.suppressed)
        self._latest.post(Outcome(decision=decision, rendered=rendered, commits=()))

    def _receive(self, until: float, *, fetch: bool) -> Outcome | None:
        """Receive batch after batch; None if all orders were taken back meanwhile.

        A Conflict is left to the next pass where something has been pushed before it.
        """
        batches = OrderBatches(self._world, self._memory, self._latest, self._tips(fetch=fetch))
        try:
            try:
                batch = self._queue.take(_half(self._queue.gather()))
                while batch.orders:
                    began = time.monotonic()
                    batches.take_in(batch)
                    patience = max(_RETURN, (time.monotonic() - began) / 2)
                    batch = self._next(batches, until, patience)
            finally:
                batches.settle()
        except Conflict:
            if not batches.outcomes:
                raise
            self._moved = True
        return join_outcomes(batches.outcomes) if batches.outcomes else None

    def _tips(self, *, fetch: bool) -> Tips:
        """Return where the branches stand; orders that wait fail with the remote where it cannot be asked."""
        if not fetch:
            return self._world.repository.tips()
        waiting = self._queue.take()
        with waiting.at_stake():
            tips = self._world.repository.fetch()
        self._queue.put_back(waiting.entries)
        return tips

    def _next(self, batches: OrderBatches, until: float, patience: float) -> Batch:
        """Take the orders that wait while a push is under way, or that arrive right after it; none after `until`.

        Callers who have just been answered are likely to call again, within `patience` seconds. Too few orders for a
        push of their own wait for the push under way: a push of one order takes as long as one of fifty.
        """
        if time.monotonic() >= until:
            return self._queue.take(0)
        expected = self._queue.gather(patience=0) + batches.answered
        half = _half(expected + batches.under_way)
        waiting = self._queue.gather(enough=min(half, expected), patience=patience)
        if waiting < half / 2 or not waiting:
            batches.settle()
            half = _half(self._queue.gather(enough=waiting + batches.answered, patience=patience))
        return self._queue.take(half)


def _half(orders: int) -> int:
    """Return the number of orders for one push, so that as many are decided meanwhile; few orders share one push.

    Alternating large and small batches would wait for each other, and no batch would be decided during a push.
    """
    return orders if orders < MANY else (orders + 1) // 2
