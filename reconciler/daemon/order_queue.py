"""Orders on their way from callers to the loop, and what became of each on its way back.

A caller hands an order in and waits for its receipt. A pass takes those that wait in batches, one push each, and
however that ends, nobody is left waiting for an answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock

from reconciler.core.commits.events import with_commits
from reconciler.core.decide.state.order import Order
from reconciler.daemon.loop import ORDER
from reconciler.daemon.reconcile import Outcome
from reconciler.errors import Conflict, Transient
from reconciler.model.ids import CommitId
from reconciler.model.request import Answer
from reconciler.ports import Wake

MOST = 1000
"""Orders that may wait at once."""

_LOOK = 0.001
_QUIET = 0.002
_LONGEST = 0.1
"""Seconds: a pass that has orders looks for others after each of the first, waits until none has come for the second,
and no longer than the third.

Callers that were answered together come back together; a pass that began with the first of them would leave the others
to the next, and every push would carry half of what it could.
"""

_STOPPING = Transient("stopping: the order was not carried out")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderResult:
    """What became of an order, and the commit that carries it or, where everything was so already, the newest one.

    It is on the remote. None where the branch does not exist yet, and for an order that was denied on such a branch.
    """

    answer: Answer
    commit: CommitId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedOrder:
    """One order that waits, and whoever waits for its receipt."""

    order: Order
    receipt: Future[OrderResult]


class OrderQueue:
    """Takes orders from any thread, and hands them to the one that runs passes."""

    def __init__(self, wake: Wake, *, most: int = MOST) -> None:
        """Wake the loop by `wake` for each order; `most` may wait at once."""
        self.wake = wake
        self._most = most
        self._lock = Lock()
        self._numbers = count(1)
        self._waiting: dict[int, QueuedOrder] = {}
        self._closed = False

    def submit(self, order: Order) -> Future[OrderResult]:
        """Hand in an order, whose number is given here.

        The future ends with the receipt; with Transient where it was not carried out as far as anybody knows, and the
        same order may be handed in again; or with whatever the pass failed with. Cancelling it takes the order back if
        no pass has begun with it. Raises Transient when too many wait, and when the loop has ended.
        """
        slip = QueuedOrder(order=replace(order, number=next(self._numbers)), receipt=Future())
        with self._lock:
            if self._closed:
                raise Transient("stopping: no more orders are taken")
            if len(self._waiting) >= self._most:
                raise Transient(f"{self._most} orders are waiting already")
            self._waiting[slip.order.number] = slip
        self.wake(ORDER)
        return slip.receipt

    def gather(self, *, enough: int = MOST, patience: float = _QUIET) -> int:
        """Wait until `enough` orders wait, or until none has come for `patience` seconds; return how many wait."""
        now = time.monotonic()
        seen, until, latest = len(self._waiting), now + patience, now + _LONGEST
        while (waiting := len(self._waiting)) < enough and now < min(until, latest):
            if waiting > seen:
                seen, until = waiting, now + patience
            time.sleep(_LOOK)
            now = time.monotonic()
        return waiting

    def take(self, most: int | None = None) -> Batch:
        """Take what waits, oldest first, without what has been taken back; from here on nothing is.

        Whoever takes it sees to its end.
        """
        with self._lock:
            slips = {number: self._waiting.pop(number) for number in list(self._waiting)[:most]}
        for number, slip in list(slips.items()):
            if not slip.receipt.running() and not slip.receipt.set_running_or_notify_cancel():
                del slips[number]
        return Batch(desk=self, slips=slips)

    def put_back(self, slips: Mapping[int, QueuedOrder]) -> None:
        """Have orders wait on, each in its turn."""
        with self._lock:
            if not self._closed:
                self._waiting = dict(sorted({**slips, **self._waiting}.items()))
                return
        _fail(slips, _STOPPING)

    def close(self) -> None:
        """Take no more orders, and fail those that wait; whoever runs passes has ended."""
        with self._lock:
            self._closed = True
            slips, self._waiting = self._waiting, {}
        _fail(slips, _STOPPING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Orders that a pass has taken. However it ends, they are answered, fail with it, or wait on."""

    desk: OrderQueue
    slips: Mapping[int, QueuedOrder]

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders, oldest first."""
        return tuple(slip.order for slip in self.slips.values())

    def answer(self, outcome: Outcome) -> None:
        """Give everybody the receipt that the pass came to."""
        with self.at_stake():
            receipts = _receipts(outcome, self.slips)
        for number, slip in self.slips.items():
            slip.receipt.set_result(receipts[number])

    @contextmanager
    def at_stake(self) -> Iterator[None]:
        """Have the orders share in a failure; after a Conflict they wait on, since the pass is run again."""
        try:
            yield
        except Conflict:
            self.desk.put_back(self.slips)
            raise
        except Exception as error:
            _fail(self.slips, error)
            raise


def _fail(slips: Mapping[int, QueuedOrder], error: Exception) -> None:
    for slip in slips.values():
        if slip.receipt.running() or slip.receipt.set_running_or_notify_cancel():
            slip.receipt.set_exception(error)


def _receipts(outcome: Outcome, numbers: Iterable[int]) -> dict[int, OrderResult]:
    """Put each order's answer and the commit of the change that carries it together."""
    commits = {id(change): commit for change, commit in with_commits(outcome.rendered.changes, outcome.commits)}
    tip = outcome.commits[-1] if outcome.commits else outcome.view.tips.output
    receipts = {}
    for number in numbers:
        answer = outcome.plan.answers[number]
        known = outcome.earlier.get(number, tip)
        commit = known if answer.change is None else commits[id(outcome.plan.changes[answer.change])]
        receipts[number] = OrderResult(answer=answer, commit=commit)
    return receipts
