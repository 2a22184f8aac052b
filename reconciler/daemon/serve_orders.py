"""A pass of the daemon as callers of the API need it: with their orders, and told before they are answered.

Few callers get all of a pass: what they ask for is received and placed by one push. Where many call at once a pass only
receives, and leaves everything else to the pass that follows: nobody waits for the placing of what others asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from reconciler.daemon.loop import ORDER
from reconciler.daemon.order_batches import OrderBatches, together
from reconciler.daemon.order_queue import Batch, OrderQueue
from reconciler.daemon.reconcile import Memory, Outcome, World, reconcile_once
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.steer import sweep_on_failure
from reconciler.errors import Conflict
from reconciler.model.tree import Tips

MANY = 10
"""Orders that wait at once for which a pass only receives."""

LONGEST_RUSH = 5.0
"""Seconds for which everything else may wait for receiving."""

_RETURN = 0.02
"""Seconds in which callers that were just answered have called again, if they do; on a busy machine that takes longer,
and so does the push that they would go along with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Where callers are served: orders are handed in at the desk, and what stands is read off the bulletin."""

    desk: OrderQueue
    bulletin: LatestSnapshot


class Serving:
    """The pass for the loop. What it comes to is posted before anybody gets a receipt."""

    def __init__(self, world: World, memory: Memory, counter: Counter) -> None:
        """Run passes in `world`, with what `memory` knows of those before."""
        self._world, self._memory = world, memory
        self._desk, self._bulletin = counter.desk, counter.bulletin
        self._since: float | None = None
        self._moved = False

    def __call__(self, *, fetch: bool) -> Outcome:
        """Run one pass with what has been ordered, or receive for as long as many come."""
        fetch, self._moved = fetch or self._moved, False
        waiting = self._desk.gather()
        since = self._since or time.monotonic()
        until = since + LONGEST_RUSH
        if waiting >= MANY and time.monotonic() < until:
            self._since = since
            done = sweep_on_failure(self._world, self._memory, partial(self._receive, until, fetch=fetch))
            if done is not None:
                self._desk.wake(ORDER)
                return done
        outcome = self._whole(self._desk.take(), fetch=fetch)
        self._since = None
        return outcome

    def _whole(self, batch: Batch, *, fetch: bool) -> Outcome:
        with batch.at_stake():
            attempt = partial(reconcile_once, self._world, self._memory, fetch=fetch, orders=batch.orders)
            outcome = sweep_on_failure(self._world, self._memory, attempt)
            self._bulletin.post(outcome)
        batch.answer(outcome)
        return outcome

    def _receive(self, until: float, *, fetch: bool) -> Outcome | None:
        """Receive batch after batch; None if all orders were taken back meanwhile.

        A Conflict is left to the next pass where something has been pushed before it.
        """
        rush = OrderBatches(self._world, self._memory, self._bulletin, self._tips(fetch=fetch))
        try:
            try:
                batch = self._desk.take(_half(self._desk.gather()))
                while batch.orders:
                    began = time.monotonic()
                    rush.take_in(batch)
                    patience = max(_RETURN, (time.monotonic() - began) / 2)
                    batch = self._next(rush, until, patience)
            finally:
                rush.settle()
        except Conflict:
            if not rush.done:
                raise
            self._moved = True
        return together(rush.done) if rush.done else None

    def _tips(self, *, fetch: bool) -> Tips:
        """Return where the branches stand; whoever waits hears of it where the remote cannot be asked."""
        if not fetch:
            return self._world.repository.tips()
        waiting = self._desk.take()
        with waiting.at_stake():
            tips = self._world.repository.fetch()
        self._desk.put_back(waiting.slips)
        return tips

    def _next(self, rush: OrderBatches, until: float, patience: float) -> Batch:
        """Take what waits while a push is under way, or what comes right after it; nothing when it is late.

        Whoever has just been answered is about to come back, and is waited for for `patience` seconds. Too few for a
        push of their own wait for the one under way: a push of one takes as long as one of fifty.
        """
        if time.monotonic() >= until:
            return self._desk.take(0)
        back = self._desk.gather(patience=0) + rush.answered
        half = _half(back + rush.under_way)
        waiting = self._desk.gather(enough=min(half, back), patience=patience)
        if waiting < half / 2 or not waiting:
            rush.settle()
            half = _half(self._desk.gather(enough=waiting + rush.answered, patience=patience))
        return self._desk.take(half)


def _half(crowd: int) -> int:
    """Say how many of all who are there one push is to carry, so that as many are decided meanwhile; few go together.

    Of a large batch and a small one in turn, each would wait for the other: nobody would ever work beside a push.
    """
    return crowd if crowd < MANY else (crowd + 1) // 2
