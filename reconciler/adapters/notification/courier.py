"""One receiver: what waits for it, how far it has been told, and what is done when it does not answer.

A receiver that knows repeated events (by an id, a name) is told first, and the mark is moved after that: a daemon that
is killed in between tells the same events again, under the same ids. A chat knows no ids. There the mark `sending` is
moved first, and nothing that it covers is ever sent by another one: a daemon that is killed in between leaves the two
marks apart, and the next message says how many events may not have arrived.

A receiver may have several targets, as Kubernetes has clusters. Events reach each target in order, and one that does
not answer holds up no other: it alone is tried again later, and the mark stays before the first event that it lacks.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from threading import Lock
from typing import Protocol

import structlog

from reconciler.adapters.notification.outages import CourierReport, Outages
from reconciler.adapters.notification.sender import ONLY, NotTaken, Sender
from reconciler.adapters.notification.workers import Job, Workers
from reconciler.backoff import Backoff
from reconciler.core.notification.message import Uncertain
from reconciler.core.notification.notices import notices_of, wanted
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.model.bounds import NOTIFICATION_BACKLOG, NOTIFICATION_LIVE
from reconciler.model.events.event import Notice
from reconciler.model.events.notification import DeliveryMarks, Notification
from reconciler.model.ids import CommitId, WorkspaceName
from reconciler.model.tree import Identity
from reconciler.ports import BranchLog, Deliveries

log = structlog.get_logger()

_STRIDE = 200
"""Commits that nobody is told of, after which the mark is moved on all the same: a restart reads from there."""
_BATCH = 50
"""Events after which the mark is moved, for a receiver that is told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CourierTiming(Backoff):
    """The timing of deliveries, in seconds."""

    answer: float = 10
    first_backoff: float = 1
    longest_backoff: float = 300
    between_messages: float = 1
    """Least time between two messages to people: chats refuse those who are quicker."""
    between_marks: float = 1
    """Time after which the mark is moved while a receiver is told of many events one by one."""
    settling: float = 60
    """Time after the start in which events without a commit are not told: they show what stood before it."""
    doubt: float = 15
    """How long events may be on their way by another daemon, before the next message says that they may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits for a receiver."""

    receiver: str
    waiting: int
    """Number of events."""
    oldest: datetime | None
    """When the first of them happened."""


class DeliveryCount(Protocol):
    """Counts deliveries."""

    def __call__(self, receiver: str, *, sent: int = 0, failed: int = 0) -> None:
        """Count events that were told, and tries that failed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A commit after the mark `told`."""

    commit: CommitId
    notice: Notice | None
    queued: float
    """When, by the monotonic clock."""


class Courier:
    """Tells one receiver, by steps that `workers` runs. The loop calls `follow` and `tell_live`, which never wait."""

    def __init__(
        self,
        notification: Notification,
        sender: Sender,
        deliveries: Deliveries,
        *,
        report: Callable[[CourierReport], None],
        count: DeliveryCount,
        timing: CourierTiming,
        workers: Workers,
    ) -> None:
        self._notification = notification
        self._sender = sender
        self._deliveries = deliveries
        self._outages = Outages(notification.name, backoff=timing.backoff, report=report)
        self._count = count
        self._timing = timing
        self._lock = Lock()
        self._marks: DeliveryMarks | None = None  # None: unknown
        self._marks_since = 0.0
        self._last_marks = DeliveryMarks()  # as they were last known here, whatever the remote has now
        self._tip: CommitId | None = None
        self._seen_tip = False
        self._read_to: CommitId | None = None
        self._lost = False  # the mark is not in the history of the branch any more
        self._entries: deque[_Entry] = deque()
        self._live: deque[tuple[float, Notice]] = deque(maxlen=NOTIFICATION_LIVE.most)
        self._doubt: CommitId | None = None  # another sender has left the mark `sending` there, ahead of `told`
        self._doubt_stands = False  # and has not noted since that it is told
        self._delivered: CommitId | None = None  # told, and not noted as such yet
        self._taken: set[tuple[str, str]] = set()  # ids of events that wait, and the targets that have taken them
        self._not_before = 0.0  # chats refuse those who are quicker
        self._stopping = False
        self._failing = False
        self._workers = workers
        self._job = Job(owner=notification.owner or "", work=self._work, fails=lambda: self._failing)
        workers.wake(self._job)

    @property
    def owner(self) -> WorkspaceName | None:
        """The workspace that its receiver is of."""
        return self._notification.owner

    # What the loop calls.

    def update(self, notification: Notification, sender: Sender) -> None:
        """Take another version of the Notification."""
        with self._lock:
            self._notification, self._sender = notification, sender
        self._workers.wake(self._job)

    def follow(self, tip: CommitId | None, branch: BranchLog, committer: Identity) -> None:
        """Take in the commits up to the tip of the output branch. Raises Transient and Conflict of reading them."""
        with self._lock:
            self._tip, self._seen_tip = tip, True
            base, full = self._read_to, len(self._entries) >= NOTIFICATION_BACKLOG.most
            known = self._marks is not None and not self._lost
        if not known or tip is None or tip == base or full:
            self._workers.wake(self._job)
            return
        commits = branch.commits_after(base, tip)
        now = time.monotonic()
        with self._lock:
            if self._marks is None or self._read_to != base:
                return  # another one has moved the mark meanwhile
            if commits is None:
                self._lost = True
            else:
                for commit in commits[: NOTIFICATION_BACKLOG.most]:
                    notices = notices_of((commit,), committer)
                    self._entries.append(_Entry(commit=commit.id, notice=notices[0] if notices else None, queued=now))
                    self._read_to = commit.id
        self._workers.wake(self._job)

    def tell_live(self, notices: Sequence[Notice]) -> None:
        """Take events that no commit tells; they are lost with this process."""
        with self._lock:
            self._live.extend((time.monotonic(), notice) for notice in notices)
        self._workers.wake(self._job)

    def backlog(self) -> Backlog:
        """Return what waits."""
        with self._lock:
            waiting = self._pending(self._entries)
        return Backlog(
            receiver=self._notification.name,
            waiting=len(waiting),
            oldest=min((notice.event.at for notice in waiting), default=None),
        )

    def stop(self) -> None:
        """Begin nothing more."""
        with self._lock:
            self._stopping = True
        self._workers.remove(self._job)

    def join(self, patience: float) -> bool:
        """Wait for what is under way, for some seconds; return whether it has ended."""
        return self._workers.join(self._job, patience)

    # What a thread of the workers does.

    def _work(self) -> float | None:
        """Do the next step if it is due, and return when the one after it is; whatever fails is tried again later."""
        try:
            due = self._next_due()
            if due is None or due > time.monotonic():
                return due
            self._failing = True
            self._step()
            self._failing = False
        except Conflict:
            self._forget()  # another daemon has told it, or a person has moved the mark
        except NotTaken as error:
            self._fail(str(error), ONLY)
        except (Transient, InvalidInput) as error:
            self._fail(f"how far it is told cannot be noted: {error}")
        except Exception as error:  # a bug must not end the telling: later events would go untold
            why = f"a bug in Overspill ({type(error).__name__})"
            if self._outages.why(None) != why:
                log.exception("bug; not told of an event", receiver=self._notification.name)
            self._fail(why)
            return self._outages.not_before(None)
        return self._next_due()

    def _next_due(self) -> float | None:
        """Return when the next step may be done, by the monotonic clock; None for never, and at the end."""
        with self._lock:
            due = None if self._stopping else self._due_at()
            return None if due is None else max(due, self._not_before, self._outages.not_before(None))

    def _due_at(self) -> float | None:
        """Return when the next step is due, by the monotonic clock; None for never."""
        if not self._seen_tip:
            return None
        if self._marks is None or self._lost or self._delivered is not None:
            return 0.0
        queued = [(moment, notice) for moment, notice in self._queued() if self._is_wanted(notice)]
        if not queued:
            return 0.0 if len(self._entries) >= _STRIDE else None
        if self._doubt is not None and not self._doubt_stands:
            return self._marks_since + self._timing.doubt
        group = self._notification.group.total_seconds()
        tries = (
            max(moment + group, self._outages.not_before(target))
            for moment, notice in queued
            for target in self._untaken(notice)
        )
        return min(tries, default=0.0)

    def _step(self) -> None:
        """Do the next thing."""
        if self._marks is None:
            self._learn()
        elif self._lost:
            self._begin_anew()
        elif self._delivered is not None:
            self._confirm()
        elif self._notification.repeatable:
            self._tell_one_by_one()
        elif self._doubt is not None and not self._doubt_stands:
            self._look_again()
        else:
            self._tell_together()

    def _look_again(self) -> None:
        """See whether the one who was telling of events has noted that they are told."""
        marks = self._deliveries.read(self._notification.name)
        if marks == self._marks:
            self._doubt_stands = True
        else:
            self._take(marks)

    def _learn(self) -> None:
        """Ask the remote how far the receiver is told; a new one is told of what happens from now on.

        Marks that were known here and are gone went with the repository, and are put back: what waits is still told.
        """
        marks = self._deliveries.read(self._notification.name)
        with self._lock:
            tip = self._tip
        if marks == DeliveryMarks() and tip is not None:
            known = self._last_marks != DeliveryMarks()
            self._move(marks, marks := self._last_marks if known else DeliveryMarks(told=tip, sending=tip))
        self._take(marks)
        log.debug("notifying", receiver=self._notification.name, told=marks.told, sending=marks.sending)

    def _begin_anew(self) -> None:
        """Go on from the tip of a branch that was rewritten: what happened on it before is not known any more."""
        with self._lock:
            marks, tip, self._lost = self._marks, self._tip, False
        if marks is None or tip is None:
            return
        log.warning(
            "notifying again",
            line=f"{self._notification.name}: the output branch was rewritten, and is told of from {tip[:12]} on",
        )
        self._move(marks, marks := DeliveryMarks(told=tip, sending=tip))
        self._take(marks)

    def _tell_one_by_one(self) -> None:
        """Tell each target of events in order, and move the mark over those that all their targets have taken."""
        with self._lock:
            waiting = self._pending(self._entries)
            covered = self._entries[-1].commit if self._entries else None
        ids = {notice.id for notice in waiting}
        self._taken = {(event, target) for event, target in self._taken if event in ids}
        lacking: dict[str, list[Notice]] = {}
        for notice in waiting:
            for target in self._untaken(notice):
                lacking.setdefault(target, []).append(notice)
        # Those in an outage come last: their time-outs are not for the others to wait for.
        for target in sorted(lacking, key=self._outages.not_before):
            if self._outages.not_before(target) <= time.monotonic():
                self._tell_target(target, lacking[target])
        done = list(takewhile(lambda notice: not self._untaken(notice), waiting))
        told = next((notice.event.commit for notice in reversed(done) if notice.event.commit), None)
        self._delivered = covered if len(done) == len(waiting) else told
        self._note_sent(done)
        self._confirm()

    def _tell_target(self, target: str, notices: Sequence[Notice]) -> None:
        """Tell one target of events in order, until it fails or the mark is due to be moved."""
        enough = time.monotonic() + self._timing.between_marks
        for notice in notices[:_BATCH]:
            try:
                self._sender.send(target, (notice,))
            except NotTaken as error:
                self._fail(str(error), target)
                return
            self._taken.add((notice.id, target))
            self._outages.note_success(target)
            if time.monotonic() >= enough:
                return

    def _tell_together(self) -> None:
        """Claim all that waits, tell of it in one message, and note that it is told."""
        with self._lock:
            marks = self._marks
            entries = list(self._entries)
            doubted, behind = _split(entries, self._doubt)
            fresh = self._pending(behind)
        if marks is None:
            return
        until = entries[-1].commit if entries else None
        uncertain = self._uncertain(marks, doubted)
        if not fresh and uncertain is None:
            self._delivered = until
            self._confirm()
            return
        self._sender.ready()  # a claim is held for as short as can be
        if until is not None and any(notice.event.commit for notice in fresh):
            self._move(marks, marks.claimed(until))
        try:
            self._sender.send(ONLY, fresh, uncertain)
        except NotTaken:
            # It has surely not arrived: whoever is next may tell it.
            if self._marks is not None and self._marks != marks:
                self._move(self._marks, marks)
            raise
        self._outages.note_success(ONLY)
        self._delivered = until  # what was not read is not told of, and stays in doubt
        self._note_sent(fresh)
        self._not_before = time.monotonic() + self._timing.between_messages
        self._confirm()

    def _uncertain(self, marks: DeliveryMarks, doubted: Sequence[_Entry]) -> Uncertain | None:
        """Return the events that may not have arrived; None where the receiver does not hear of any of them."""
        number = sum(1 for entry in doubted if self._is_wanted(entry.notice))
        if not number:
            return None
        return Uncertain(events=number, after=marks.told, until=doubted[-1].commit)

    def _confirm(self) -> None:
        """Move the mark over what has been told; where that fails it is tried again, and nothing is told before.

        A doubt that reaches beyond what is held in memory stays: the rest of it is read, and told of, after this.
        """
        marks, told = self._marks, self._delivered
        if marks is not None and told is not None:
            with self._lock:
                full = len(self._entries) >= NOTIFICATION_BACKLOG.most
                doubt = self._doubt if full and all(entry.commit != self._doubt for entry in self._entries) else None
            if told != marks.told:
                self._move(marks, DeliveryMarks(told=told, sending=doubt or told))
            with self._lock:
                if any(entry.commit == told for entry in self._entries):
                    while self._entries.popleft().commit != told:
                        pass
                self._doubt = doubt
        self._delivered = None

    def _move(self, old: DeliveryMarks, new: DeliveryMarks) -> None:
        """Move the marks on the remote.

        A push that fails may have been done all the same. What has been told is then noted again, which is a Conflict
        where it is noted already; anything else is asked for.
        """
        try:
            self._deliveries.move(self._notification.name, old, new)
        except (Transient, InvalidInput):
            if self._delivered is None:
                self._forget()
            raise
        with self._lock:
            self._marks, self._marks_since = new, time.monotonic()
            self._last_marks = new
        self._outages.note_success(None)

    def _take(self, marks: DeliveryMarks) -> None:
        """Begin to read at a mark."""
        with self._lock:
            self._marks, self._marks_since = marks, time.monotonic()
            self._last_marks = marks
            self._read_to = marks.told
            self._entries.clear()
            self._doubt = marks.sending if marks.uncertain and not self._notification.repeatable else None
            self._doubt_stands = False
            self._delivered = None

    def _forget(self) -> None:
        """Ask the remote again before the next step."""
        with self._lock:
            self._marks = self._delivered = self._read_to = None
            self._entries.clear()

    def _fail(self, why: str, target: str | None = None) -> None:
        """Count a failed try, and wait before the next one."""
        self._count(self._notification.name, failed=1)
        self._outages.note_failure(target, why)

    def _note_sent(self, done: Sequence[Notice]) -> None:
        """Count what was told, and drop it where no mark says so."""
        self._count(self._notification.name, sent=len(done))
        told = {id(notice) for notice in done}
        with self._lock:
            self._live = deque((item for item in self._live if id(item[1]) not in told), maxlen=NOTIFICATION_LIVE.most)

    # What waits, with the lock held.

    def _pending(self, entries: Iterable[_Entry]) -> list[Notice]:
        """Return the wanted notices of entries, and the live ones among them, in the order in which things happened."""
        ordered: list[Notice] = []
        live = deque(notice for _, notice in self._live)
        for notice in (entry.notice for entry in entries if entry.notice is not None):
            while live and live[0].event.at < notice.event.at:
                ordered.append(live.popleft())
            ordered.append(notice)
        return list(wanted(self._notification, (*ordered, *live)))

    def _untaken(self, notice: Notice) -> list[str]:
        """Return the targets that have yet to take an event."""
        return [target for target in self._sender.targets(notice) if (notice.id, target) not in self._taken]

    def _queued(self) -> list[tuple[float, Notice]]:
        """Return what waits, wanted or not, with the moment since when."""
        return [*((entry.queued, entry.notice) for entry in self._entries if entry.notice is not None), *self._live]

    def _is_wanted(self, notice: Notice | None) -> bool:
        return notice is not None and any(True for _ in wanted(self._notification, (notice,)))


def _split(entries: Sequence[_Entry], doubt: CommitId | None) -> tuple[Sequence[_Entry], Sequence[_Entry]]:
    """Divide entries at the last one that another sender may have told: all are such where that one is not read yet."""
    if doubt is None:
        return (), entries
    position = next((index + 1 for index, entry in enumerate(entries) if entry.commit == doubt), len(entries))
    return entries[:position], entries[position:]
