"""An outage is reported once at its begin and once at its end, whatever the receiver takes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Event as Flag

from reconciler.adapters.notification.courier import Courier
from reconciler.adapters.notification.outages import CourierReport
from reconciler.adapters.notification.sender import NotTaken, SingleTarget
from reconciler.adapters.notification.workers import Workers
from reconciler.core.notification.message import Uncertain
from reconciler.core.notification.notices import live_notice
from reconciler.errors import Transient
from reconciler.model.bounds import NOTIFICATION_LIVE
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import DeliveryMarks, Notification, WebhookReceiver
from reconciler.model.ids import CommitId
from tests.builders.notifications import OURS, QUICK, Branch, Marks, message, until

BEGUN = DeliveryMarks(told=CommitId("0" * 40), sending=CommitId("0" * 40))


class Pager(SingleTarget):
    """Takes each event once, and the second only after a few refusals."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.taken: list[str] = []

    def ready(self) -> None:
        pass

    def send(self, _target: str, notices: Sequence[Notice], _uncertain: Uncertain | None = None) -> None:
        if self.taken and self.refusals:
            self.refusals -= 1
            raise NotTaken("it answers 503")
        self.taken += [notice.id for notice in notices]


class Remote(Marks):
    """A remote that takes no push until it is asked to."""

    def __init__(self) -> None:
        super().__init__(BEGUN)
        self.writable = Flag()
        self.refused = 0

    def move(self, name: str, old: DeliveryMarks, new: DeliveryMarks) -> None:
        if not self.writable.is_set():
            self.refused += 1
            raise Transient("the remote is away")
        super().move(name, old, new)


def courier(pager: Pager, marks: Marks, reports: list[CourierReport]) -> Courier:
    notification = Notification(name="pager", receiver=WebhookReceiver(url="https://x.example.com", secret_from="x"))
    return Courier(
        notification, pager, marks, report=reports.append, count=lambda *_, **__: None, timing=QUICK, workers=Workers()
    )


def test_receiver_that_takes_one_event_and_refuses_the_next_has_one_outage() -> None:
    pager, marks, reports = Pager(refusals=3), Marks(BEGUN), list[CourierReport]()
    telling, branch = courier(pager, marks, reports), Branch(message(1), message(2))
    try:
        until(lambda: telling.follow(branch.tip, branch, OURS) or marks.marks.told == branch.tip)
    finally:
        telling.stop()
    assert pager.taken == branch.ids
    assert reports == [
        CourierReport(receiver="pager", why="it answers 503"),
        CourierReport(receiver="pager", why="", tries=3),
    ]


def test_outage_of_the_remote_ends_once_the_mark_is_moved_and_repeats_no_event() -> None:
    pager, marks, reports = Pager(refusals=0), Remote(), list[CourierReport]()
    telling, branch = courier(pager, marks, reports), Branch(message(1), message(2))
    try:
        until(lambda: telling.follow(branch.tip, branch, OURS) or marks.refused >= 3)
        assert [report.why for report in reports] == ["how far it is told cannot be noted: the remote is away"]
        marks.writable.set()
        until(lambda: marks.marks.told == branch.tip)
        until(lambda: len(reports) == 2)
    finally:
        telling.stop()
    assert pager.taken == branch.ids
    assert reports[1].why == ""


def test_events_without_a_commit_are_bounded_and_the_oldest_go() -> None:
    telling = courier(Pager(refusals=0), Marks(BEGUN), [])
    notices = [
        live_notice(Event(kind=EventKind.HELD_BACK, at=datetime.now(UTC), line=str(number)))
        for number in range(NOTIFICATION_LIVE.most + 50)
    ]
    try:
        telling.tell_live(notices)  # the tip is unknown, so that none is told
        backlog = telling.backlog()
    finally:
        telling.stop()
    assert backlog.waiting == NOTIFICATION_LIVE.most
    assert backlog.oldest == notices[50].event.at
