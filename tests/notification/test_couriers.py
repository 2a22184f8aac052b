"""Each event is told once, in order, whatever the receiver, git and the process do."""

from __future__ import annotations

from pathlib import Path

from reconciler.adapters.notification.couriers import Couriers
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance, Notification
from tests.builders.notifications import Fleet, chat, fleet, message, webhook
from tests.fakes.event_receiver import SECRET, Receiver, receiving


def settled(one: Fleet, couriers: Couriers, receiver: Receiver, *notifications: Notification) -> None:
    """Follow until nothing waits and the mark is where the branch is."""

    def done() -> bool:
        one.follow(couriers, *notifications)
        tip = one.repository.tips().output
        marks = [one.repository.deliveries.read(notification.name) for notification in notifications]
        waiting = sum(backlog.waiting for backlog in couriers.backlogs())
        return waiting == 0 and all(mark.told == tip for mark in marks)

    for _ in range(2000):
        if done():
            return
        with receiver.changed:
            receiver.changed.wait(0.01)
    raise AssertionError((couriers.backlogs(), receiver.requests))


def test_new_receiver_is_told_of_what_happens_from_then_on_in_order(tmp_path: Path) -> None:
    with fleet(tmp_path) as one, receiving() as receiver:
        one.secret("pager", SECRET)
        one.happen(message(1))
        told = webhook(receiver.url)
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
            expected = one.happen(*(message(number) for number in range(2, 7)))
            settled(one, couriers, receiver, told)
        assert receiver.ids == expected
        assert len(receiver.requests) == 5
        event = receiver.taken[0].json
        assert event["type"] == "dev.overspill.placed"
        assert event["source"] == "/overspill/demo"
        assert event["subject"] == "llm/vllm"
        assert event["data"]["line"] == "burst(llm/vllm): 2 replicas on worker-2 for 10m"
        assert event["data"]["reasons"] == ["2 pods unschedulable on worker-1 for 45s."]
        assert one.counts.sent == 5


def test_receiver_that_was_away_is_told_in_order_once_it_is_back(tmp_path: Path) -> None:
    with fleet(tmp_path) as one:
        one.secret("pager", SECRET)
        with receiving() as receiver:
            told = webhook(receiver.url)
        port = int(receiver.url.split(":")[2].split("/")[0])
        with one.telling(told) as couriers:
            one.happen(message(0))
            expected = []
            for number in range(1, 20):
                one.follow(couriers, told)
                expected += one.happen(message(number))
            with receiving(receiver, port):
                settled(one, couriers, receiver, told)
        assert receiver.ids[-19:] == expected
        assert [report.why for report in one.reports] == ["connection refused", ""]
        assert one.counts.failed


def test_receiver_that_answers_500_is_told_again_and_in_order(tmp_path: Path) -> None:
    with fleet(tmp_path) as one, receiving() as receiver:
        one.secret("pager", SECRET)
        told = webhook(receiver.url)
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
            receiver.answers += [500, 503, 429, 500]
            expected = one.happen(message(1), message(2), message(3))
            settled(one, couriers, receiver, told)
        assert [request.json["id"] for request in receiver.taken] == expected


def test_receiver_that_takes_an_event_and_denies_it_gets_the_same_bytes_again(tmp_path: Path) -> None:
    with fleet(tmp_path) as one, receiving() as receiver:
        one.secret("pager", SECRET)
        told = webhook(receiver.url)
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
            receiver.deaf = 2
            expected = one.happen(message(1), message(2))
            settled(one, couriers, receiver, told)
        assert receiver.ids == expected
        assert [request.json["id"] for request in receiver.taken] == [expected[0]] * 3 + [expected[1]]
        assert len({request.body for request in receiver.taken}) == 2


def test_restart_neither_repeats_nor_forgets(tmp_path: Path) -> None:
    with receiving() as receiver:
        told = webhook(receiver.url)
        expected = []
        for number in range(4):
            with fleet(tmp_path / "fleet") as one:
                one.secret("pager", SECRET)
                with one.telling(told) as couriers:
                    settled(one, couriers, receiver, told)
                    expected += one.happen(message(2 * number))
                    settled(one, couriers, receiver, told)
                expected += one.happen(message(2 * number + 1))
        with fleet(tmp_path / "fleet") as one, one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
        assert [request.json["id"] for request in receiver.taken] == expected


def test_message_to_people_holds_what_happened_in_the_meantime(tmp_path: Path) -> None:
    with fleet(tmp_path) as one, receiving() as receiver:
        one.secret("chat", receiver.url.replace("http", "json", 1))
        told = chat()
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
            receiver.answers += [500, 500]
            one.happen(*(message(number) for number in range(1, 31)))
            settled(one, couriers, receiver, told)
        (taken,) = receiver.taken
        assert taken.json["title"] == "Overspill demo: 30 events of llm/vllm"
        lines = taken.json["message"].splitlines()
        assert "burst(llm/vllm): 1 replicas" in lines[0]
        assert len(lines) == 21
        assert "and 10 more" in lines[20]
        assert one.counts.sent == 30


def test_message_that_was_on_its_way_at_a_kill_is_not_repeated_and_not_concealed(tmp_path: Path) -> None:
    with fleet(tmp_path) as one, receiving() as receiver:
        one.secret("chat", receiver.url.replace("http", "json", 1))
        told = chat()
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
        begun = one.repository.deliveries.read("chat")
        first, second = one.happen(message(1), message(2))
        one.repository.deliveries.move("chat", begun, begun.claimed(second))  # and here it was killed
        third = one.happen(message(3))[0]
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
        (taken,) = receiver.taken
        text = taken.json["message"]
        assert "3 replicas" in text
        assert "1 replicas" not in text
        assert "2 earlier events may not have arrived" in text
        assert f"git log --first-parent {begun.told[:12]}..{second[:12]}" in text
        assert one.repository.deliveries.read("chat").told == third
        assert first


def test_events_of_others_workspaces_kinds_and_lesser_severity_are_not_told(tmp_path: Path) -> None:
    with fleet(tmp_path) as one, receiving() as receiver:
        one.secret("pager", SECRET)
        told = webhook(
            receiver.url,
            workspaces=("llm",),
            events=frozenset({EventKind.FAILED, EventKind.DELETED, EventKind.PLACED}),
            least=Importance.WARNING,
        )
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
            commits = one.happen(
                message(1),
                message(2, action="Revert", Phase="Failed", Why="failed"),
                message(3, action="Revert", Phase="Failed", Why="failed", workload="vision/sam"),
                message(4, action="Hold"),
                message(5, action="Restore"),
                message(6, action="Start"),
            )
            with receiver.changed:
                one.follow(couriers, told)
            receiver.until(lambda: len(receiver.taken) == 2)
        assert receiver.ids == [commits[1], commits[3]]
        assert [request.json["type"] for request in receiver.taken] == ["dev.overspill.failed", "dev.overspill.deleted"]
