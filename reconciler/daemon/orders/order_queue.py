"""Orders on their way from callers to the loop, and their results on the way back.

A caller submits an order and waits for its receipt. A pass takes the waiting orders in batches, one push each. However
a pass ends, every order of it is answered, fails or waits on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, islice
from threading import Lock

from reconciler.core.commits.events import of_push, with_commits
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.decide.state.order import Order
from reconciler.daemon.answers.plan_report import placements_of
from reconciler.daemon.loop import ORDER
from reconciler.daemon.reconcile import Outcome, PassDecision
from reconciler.errors import Conflict, Problem, Transient
from reconciler.model.action import Action
from reconciler.model.events.event import Event
from reconciler.model.ids import CommitId
from reconciler.model.plan import Change
from reconciler.model.request import Answer, Denial
from reconciler.model.tree import Advance
from reconciler.ports import Wake
from reconciler.text.wording import conjugate
from reconciler.text.wording import count as count_of

MOST = 1000
"""Orders that may wait at once."""

_LOOK = 0.001
_QUIET = 0.002
_LONGEST = 0.1
"""
Seconds: a pass with orders looks for more after each interval of the first, until none has come for the second, and no
longer than the third.

Callers that were answered together come back together; a pass that began with the first order would leave the others to
the next, and every push would carry half of the possible orders.
"""

_STOPPING = Transient("stopping: the order was not carried out")


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOrder:
    """The part of a push that an order has asked for."""

    decision: PassDecision
    rendered: RenderedPlan
    commits: tuple[CommitId, ...]
    branches: tuple[Advance, ...]
    """Branches of clusters that moved with it."""
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderResult:
    """The answer to an order, and the commit that carries it or, if the order changed nothing, the newest one.

    The commit is on the remote. None where the branch does not exist yet, and the order did not begin it.
    """

    answer: Answer
    commit: CommitId | None
    carried: CarriedOrder | None = None
    """The commits of an order with several changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedOrder:
    """An order that waits, and the receipt its caller waits for."""

    order: Order
    receipt: Future[OrderResult]


class OrderQueue:
    """Takes orders from any thread, and hands them to the thread that runs passes."""

    def __init__(self, wake: Wake, *, most: int = MOST) -> None:
        """Wake the loop by `wake` for each order; `most` may wait at once."""
        self.wake = wake
        self._most = most
        self._lock = Lock()
        self._numbers = count(1)
        self._waiting: dict[int, QueuedOrder] = {}
        self._closed = False

    def submit(self, order: Order) -> Future[OrderResult]:
        """Submit an order; the queue numbers it.

        The future ends with the receipt; with Transient if the order was probably not carried out and may be submitted
        again; or with the error of the pass. Cancelling the future takes the order back unless a pass has begun with
        it. Raises Transient when too many orders wait, and when the loop has ended.
        """
        entry = QueuedOrder(order=replace(order, number=next(self._numbers)), receipt=Future())
        with self._lock:
            if self._closed:
                raise Transient("stopping: no more orders are taken")
            if len(self._waiting) >= self._most:
                raise Transient(f"{self._most} orders are waiting already")
            self._waiting[entry.order.number] = entry
        self.wake(ORDER)
        return entry.receipt

    def __len__(self) -> int:
        """Count the orders that wait."""
        return len(self._waiting)

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
        """Take the orders that wait, oldest first, without cancelled ones; the orders taken cannot be cancelled.

        The caller sees to it that the batch is answered, fails or is put back.
        """
        with self._lock:
            entries = {number: self._waiting.pop(number) for number in list(self._waiting)[:most]}
        for number, entry in list(entries.items()):
            if not entry.receipt.running() and not entry.receipt.set_running_or_notify_cancel():
                del entries[number]
        return Batch(queue=self, entries=entries)

    def put_back(self, entries: Mapping[int, QueuedOrder]) -> None:
        """Have orders wait on, each in its turn."""
        with self._lock:
            if not self._closed:
                self._waiting = dict(sorted({**entries, **self._waiting}.items()))
                return
        _fail(entries, _STOPPING)

    def close(self) -> None:
        """Take no more orders, and fail those that wait; no more passes run."""
        with self._lock:
            self._closed = True
            entries, self._waiting = self._waiting, {}
        _fail(entries, _STOPPING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Orders that a pass has taken. However it ends, they are answered, fail with it, or wait on."""

    queue: OrderQueue
    entries: Mapping[int, QueuedOrder]

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders, oldest first."""
        return tuple(entry.order for entry in self.entries.values())

    def answer(self, outcome: Outcome) -> None:
        """Give each caller the receipt."""
        with self.at_stake():
            receipts = _receipts(outcome, self.entries)
        for number, entry in self.entries.items():
            if number in receipts:
                entry.receipt.set_result(receipts[number])
            else:
                entry.receipt.set_exception(RuntimeError("the order was carried out by no commit"))

    @contextmanager
    def at_stake(self) -> Iterator[None]:
        """Fail the orders with an error of the block; after a Conflict they wait on, since the pass is run again."""
        try:
            yield
        except Conflict:
            self.queue.put_back(self.entries)
            raise
        except Exception as error:
            _fail(self.entries, error)
            raise


def _fail(entries: Mapping[int, QueuedOrder], error: Exception) -> None:
    for entry in entries.values():
        if entry.receipt.running() or entry.receipt.set_running_or_notify_cancel():
            entry.receipt.set_exception(error)


def _receipts(outcome: Outcome, numbers: Iterable[int]) -> dict[int, OrderResult]:
    """Put each order's answer and the commit of the change that carries it together, where one does."""
    commits = {_mark(change): commit for change, commit in with_commits(outcome.rendered.changes, outcome.commits)}
    tip = outcome.commits[-1] if outcome.commits else outcome.decision.tips.output
    receipts = {}
    for number in numbers:
        answer = outcome.plan.answers[number]
        unchanged = outcome.earlier.get(number, tip)
        change = None if answer.change is None else outcome.plan.changes[answer.change]
        carried = None
        if answer.first is not None and answer.change is not None:
            changes = outcome.plan.changes[answer.first : answer.change + 1]
            lost = [each for each in changes if _mark(each) not in commits]
            if lost:
                answer = _partly_done(answer, lost, done=len(changes) - len(lost))
                receipts[number] = OrderResult(answer=answer, commit=unchanged)
                continue
            carried = _carried(outcome, changes)
        if change is not None and _mark(change) not in commits:
            continue  # it could not be written, which costs its own caller alone
        commit = unchanged if change is None else commits[_mark(change)]
        receipts[number] = OrderResult(answer=answer, commit=commit, carried=carried)
    return receipts


def _mark(change: Change) -> object:
    """Return what a change is known by once it is written, perhaps in fewer words or with what rendering has found."""
    if change.action is Action.REVERT:
        return change.action, change.placement.path
    if change.action is Action.EXTEND:
        return change.action, change.placement.path, change.placement.expires_at
    return id(change)


def _partly_done(answer: Answer, lost: Sequence[Change], *, done: int) -> Answer:
    """Name the placements of an order whose changes could not be written; its other changes have their commits."""
    rest = f"; {count_of(done, 'other change')} of this call {conjugate(done, 'is')} done" if done else ""
    problems = (
        Problem(path=placement.id, message=f"is as it was: its change could not be written{rest}")
        for change in lost
        for placement in islice(placements_of([change]), 1)
    )
    return replace(answer, denial=Denial.BUG, change=None, first=None, problems=tuple(problems))


def _carried(outcome: Outcome, changes: Sequence[Change]) -> CarriedOrder:
    """Find the commits of some changes that were all written."""
    rendered, wanted = outcome.rendered, {_mark(change) for change in changes}
    first = len(rendered.commits) - len(rendered.changes)
    places = [place for place, change in enumerate(rendered.changes) if _mark(change) in wanted]
    part = replace(
        rendered,
        commits=tuple(rendered.commits[first + place] for place in places),
        changes=tuple(rendered.changes[place] for place in places),
        suppressed=(),
    )
    commits = tuple(outcome.commits[first + place] for place in places)
    clusters = {placement.cluster for placement in placements_of(part.changes)}
    return CarriedOrder(
        decision=outcome.decision,
        rendered=part,
        commits=commits,
        branches=tuple(advance for advance in outcome.branches if advance.cluster in clusters),
        events=of_push(part.changes, commits, (), outcome.decision.inputs.now, titles=part.titles),
    )
