"""A claim that nobody confirmed stays in doubt until what it covers has been read, whatever else is told meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from reconciler.adapters.notification.courier import Courier, CourierTiming
from reconciler.adapters.notification.sender import SingleTarget
from reconciler.adapters.notification.workers import Workers
from reconciler.core.notification.message import Uncertain
from reconciler.core.notification.notices import live_notice
from reconciler.errors import Transient
from reconciler.model.bounds import NOTIFICATION_BACKLOG
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import AppriseReceiver, DeliveryMarks, Notification
from reconciler.model.ids import CommitId
from tests.builders.notifications import QUICK, Branch, Marks, fleet, message, until
from tests.fakes.memory_repository import OURS


class _Chat(SingleTarget):
    def __init__(self) -> None:
        self.fresh: list[CommitId | None] = []
        self.uncertain: list[Uncertain] = []

    def ready(self) -> None:
        pass

    def send(self, _target: str, notices: Sequence[Notice], uncertain: Uncertain | None = None) -> None:
        self.fresh += [notice.event.commit for notice in notices]
        self.uncertain += [uncertain] if uncertain is not None else []


class _Away:
    def commits_after(self, *_: object) -> object:
        raise Transient("the history cannot be fetched")


def test_live_event_leaves_an_unread_claim_in_doubt(tmp_path: Path) -> None:
    with fleet(tmp_path) as one:
        told, doubted = one.happen(message(1), message(2))
        repository = next(value for value in vars(one).values() if hasattr(value, "commits_after"))
        remote, chat = Marks(DeliveryMarks(told=told, sending=doubted)), _Chat()
        chat_notification = Notification(name="chat", receiver=AppriseReceiver(url_from="x"))
        timing = CourierTiming(doubt=0.1, between_messages=0)
        courier = Courier(
            chat_notification,
            chat,
            remote,
            report=lambda _: None,
            count=lambda *_, **__: None,
            timing=timing,
            workers=Workers(),
        )
        try:
            until(lambda: _follow(courier, doubted, _Away()) or not chat.fresh)
            lost = Event(kind=EventKind.CLUSTER_LOST, at=datetime.now(UTC), line="worker-2 is lost")
            courier.tell_live((live_notice(lost),))
            until(lambda: _follow(courier, doubted, _Away()) or chat.fresh == [None])
            until(lambda: _follow(courier, doubted, repository) or chat.uncertain)
        finally:
            courier.stop()
    assert chat.fresh == [None]
    assert [(each.events, each.after, each.until) for each in chat.uncertain] == [(1, told, doubted)]


def test_doubt_that_reaches_beyond_what_is_held_in_memory_is_told_of_to_its_end_and_repeats_nothing() -> None:
    most = NOTIFICATION_BACKLOG.most
    branch = Branch(*(message(1) for _ in range(most + 4)))
    before, last_doubted = CommitId("0" * 40), branch.ids[most + 1]
    remote, chat = Marks(DeliveryMarks(told=before, sending=last_doubted)), _Chat()
    courier = Courier(
        Notification(name="chat", receiver=AppriseReceiver(url_from="x")), chat, remote,
        report=lambda _: None, count=lambda *_, **__: None, timing=QUICK, workers=Workers(),
    )  # fmt: skip # one call
    try:
        until(lambda: courier.follow(branch.tip, branch, OURS) or remote.marks.told == branch.tip)
    finally:
        courier.stop()
    assert [(each.events, each.after, each.until) for each in chat.uncertain] == [
        (most, before, branch.ids[most - 1]), (2, branch.ids[most - 1], last_doubted)
    ]  # fmt: skip # a table
    assert chat.fresh == branch.ids[most + 2 :]


def _follow(courier: Courier, tip: CommitId, branch: object) -> None:
    with suppress(Transient):
        courier.follow(tip, branch, OURS)
