"""Two daemons, and pushes whose answers are lost: nobody is told twice, and nothing is forgotten."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.notification.couriers import Couriers
from reconciler.errors import Conflict, Transient
from reconciler.model.events.notification import DeliveryMarks
from reconciler.ports import Deliveries
from tests.builders.notifications import OURS, QUICK, Fleet, chat, fleet, message, sender_of, webhook
from tests.fakes.event_receiver import SECRET, Receiver, receiving


@dataclass
class Lossy:
    """Marks on a remote that is away at times: before it has moved them, or after that."""

    real: Deliveries
    chance: random.Random = field(default_factory=lambda: random.Random(16))
    lost: int = 0

    def read(self, receiver: str) -> DeliveryMarks:
        if self.chance.random() < 0.1:
            raise Transient("away")
        return self.real.read(receiver)

    def move(self, receiver: str, old: DeliveryMarks, new: DeliveryMarks) -> None:
        luck = self.chance.random()
        if luck < 0.15:
            raise Transient("away")
        self.real.move(receiver, old, new)
        if luck < 0.3:
            self.lost += 1
            raise Transient("the answer is lost")


def couriers(one: Fleet, repository: GitRepository, deliveries: Deliveries) -> Couriers:
    return Couriers(repository, deliveries, OURS, lambda told, _: sender_of(told, one.path / "secrets"), timing=QUICK)


def listed(receiver: Receiver) -> list[str]:
    """Return the commits that messages to people list, in their order."""
    lines = [line for request in receiver.taken for line in request.json["message"].splitlines()]
    return [found[1] for line in lines if (found := re.search(r"\[([0-9a-f]{12})\]$", line))]


def test_mark_that_another_one_has_moved_is_a_conflict(tmp_path: Path) -> None:
    with fleet(tmp_path) as one:
        first, second, third = one.happen(message(1), message(2), message(3))
        one.repository.deliveries.move("chat", DeliveryMarks(), DeliveryMarks(told=first, sending=first))
        begun = one.repository.deliveries.read("chat")
        claimed = begun.claimed(second)
        one.repository.deliveries.move("chat", begun, claimed)
        for new in (claimed, DeliveryMarks(told=third, sending=third)):  # git calls the first one up to date
            with pytest.raises(Conflict, match=r"noting at .* how far chat is told"):
                one.repository.deliveries.move("chat", begun, new)
        assert one.repository.deliveries.read("chat") == claimed


def test_marks_go_where_no_branch_is_and_make_no_object(tmp_path: Path) -> None:
    with fleet(tmp_path) as one:
        tip = one.happen(message(1))[0]
        before = one.remote.git("count-objects", "-v").splitlines()
        one.repository.deliveries.move("chat", DeliveryMarks(), DeliveryMarks(told=tip, sending=tip))
        assert one.remote.git("count-objects", "-v").splitlines() == before
        refs = one.remote.git("for-each-ref", "--format=%(refname)").splitlines()
        assert refs[2:] == ["refs/overspill/notified/chat/sending", "refs/overspill/notified/chat/told"]


def test_people_are_told_once_though_answers_of_the_remote_are_lost(tmp_path: Path) -> None:
    with fleet(tmp_path) as one, receiving() as program, receiving() as people:
        one.secret("pager", SECRET)
        one.secret("chat", people.url.replace("http", "json", 1))
        told = (chat(), webhook(program.url))
        lossy = Lossy(one.repository.deliveries)
        running = couriers(one, one.repository, lossy)
        happened = []
        for number in range(12):
            happened += one.happen(message(number))
            for _ in range(5):
                running.follow(one.desired(*told), one.repository.fetch().output)
                with people.changed:
                    people.changed.wait(0.01)
        for _ in range(2000):
            running.follow(one.desired(*told), one.repository.fetch().output)
            if all(one.repository.deliveries.read(each.name).told == happened[-1] for each in told):
                break
            with people.changed:
                people.changed.wait(0.01)
        running.close(timedelta(seconds=20))
        assert lossy.lost
        names = listed(people)
        assert len(names) == len(set(names))
        short = [commit[:12] for commit in happened]
        assert [short.index(name) for name in names] == sorted(short.index(name) for name in names)
        assert program.ids == happened[-len(program.ids) :]


def test_two_daemons_tell_each_event_once(tmp_path: Path) -> None:
    with (
        fleet(tmp_path) as one,
        GitRepository(one.remote.url, cache=tmp_path / "other") as other,
        receiving() as people,
    ):
        one.secret("chat", people.url.replace("http", "json", 1))
        both = [(one.repository, couriers(one, one.repository, one.repository.deliveries))]
        both.append((other, couriers(one, other, other.deliveries)))
        happened = []
        for number in range(20):
            happened += one.happen(message(number)) if number else []
            for repository, running in both:
                running.follow(one.desired(chat()), repository.fetch().output)
            with people.changed:
                people.changed.wait(0.03)
        for _ in range(2000):
            for repository, running in both:
                running.follow(one.desired(chat()), repository.fetch().output)
            if one.repository.deliveries.read("chat").told == happened[-1]:
                break
            with people.changed:
                people.changed.wait(0.01)
        for _, running in both:
            running.close(timedelta(seconds=20))
        names = listed(people)
        assert len(names) == len(set(names))
        assert set(names) <= {commit[:12] for commit in happened}
        assert one.repository.deliveries.read("chat").told == happened[-1]
