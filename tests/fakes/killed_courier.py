"""kill -9 at random moments of a process that tells receivers, while things happen on the output branch."""

from __future__ import annotations

import multiprocessing
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import apprise  # noqa: F401 - it is slow to import, and what is killed is forked off this module

from reconciler.adapters.git import GitRepository
from reconciler.adapters.notification.couriers import Couriers
from reconciler.errors import OverspillError
from reconciler.model.events.notification import Notification
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from tests.builders.notifications import OURS, QUICK, Fleet, chat, message, sender_of, webhook
from tests.fakes.event_receiver import SECRET, Receiver, receiving

RANGE = re.compile(r"git log --first-parent ([0-9a-f]{12})\.\.([0-9a-f]{12})")
LISTED = re.compile(r"\[([0-9a-f]{12})\]$")
MORE = re.compile(r"^… and (\d+) more, up to ([0-9a-f]{12}) on the output branch$")
"""A long message lists the first events, and says where the others are."""


def tell(remote: Path, cache: Path, secrets: Path, notifications: Sequence[Notification]) -> None:
    """Be a daemon whose passes change nothing, until it is killed."""
    desired = Desired(commit=CommitId(""), notifications={one.name: one for one in notifications})
    with GitRepository(str(remote), cache=cache) as repository:
        couriers = Couriers(
            repository, repository.deliveries, OURS, lambda one, _: sender_of(one, secrets), timing=QUICK
        )
        while True:
            try:
                couriers.follow(desired, repository.fetch().output)
            except OverspillError:
                continue  # a git of the one that was killed may still be at work
            time.sleep(0.005)


class Victim(Protocol):
    """A process that is about to be killed."""

    def is_alive(self) -> bool: ...

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        ...


@dataclass
class Courier:
    """A process with couriers alone."""

    process: BaseProcess

    def is_alive(self) -> bool:
        return self.process.is_alive()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def couriers_of(one: Fleet) -> Callable[[Sequence[Notification]], Victim]:
    """Start couriers in processes of their own, forked off one that has imported them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes.killed_courier"])

    def start(told: Sequence[Notification]) -> Victim:
        process = context.Process(target=tell, args=(one.remote.path, one.path / "told", one.path / "secrets", told))
        process.start()
        return Courier(process)

    return start


def kill_at_random(one: Fleet, kills: int, start: Callable[[Sequence[Notification]], Victim]) -> str:
    """Kill a process so often while it tells a webhook and a chat, and see what they have heard.

    The webhook hears of each event, in order, and knows by its id one that it hears of again. The chat hears of each
    event once at most, in order, and of those that it may not have heard of how to look them up.
    """
    chance = random.Random(20261124)  # the same moments in every run
    one.secret("pager", SECRET)
    with receiving() as program, receiving() as people:
        one.secret("chat", people.url.replace("http", "json", 1))
        told = (webhook(program.url), chat())
        stretch, happened = _undisturbed(one, told, start)
        killed = 0
        for number in range(kills):
            victim = start(told)
            if number % 7 == 3:
                program.answers += [500, 503]
                people.answers += [500]
            if number % 11 == 5:
                program.deaf += 1
            happened += one.happen(*(message(3 * number + part) for part in range(chance.randint(1, 3))))
            time.sleep(chance.uniform(0, stretch))
            killed += victim.is_alive()
            victim.kill()
        program.answers.clear()
        people.answers.clear()
        last = start(told)
        try:
            happened += one.happen(message(3 * kills))
            _settle(one, told, happened[-1])
        finally:
            last.kill()
        assert killed == kills
        assert program.ids == happened, "an event is forgotten, or out of order"
        bodies = {request.json["id"]: request.body for request in program.taken}
        assert all(request.body == bodies[request.json["id"]] for request in program.taken)
        heard, doubted = _heard(one, people, happened)
        repeats = len(program.taken) - len(program.ids)
        return (
            f"{kills} kills, {len(happened)} events: the webhook got each, {repeats} of them again under their id;"
            f" the chat got {heard} once and was told of {doubted} that they may not have arrived"
        )


def _undisturbed(
    one: Fleet, told: Sequence[Notification], start: Callable[[Sequence[Notification]], Victim]
) -> tuple[float, list[CommitId]]:
    """Let the receivers be known, and tell them of something.

    Returns how long an undisturbed process takes for that, and what it was.
    """
    victim = start(told)
    tip = one.repository.fetch().output
    assert tip is not None
    _settle(one, told, tip)
    victim.kill()
    began = time.monotonic()
    victim = start(told)
    happened = one.happen(message(1_000_000))
    _settle(one, told, happened[-1])
    took = time.monotonic() - began
    victim.kill()
    return took, happened


def _settle(one: Fleet, told: Sequence[Notification], tip: CommitId) -> None:
    """Wait until all receivers are told of everything up to a commit."""
    for _ in range(6000):
        if all(one.repository.deliveries.read(each.name).told == tip for each in told):
            return
        time.sleep(0.02)
    raise AssertionError([one.repository.deliveries.read(each.name) for each in told])


def _heard(one: Fleet, people: Receiver, happened: Sequence[CommitId]) -> tuple[int, int]:
    """Check what people have heard; return the events that they have, and those that they were told to look up."""
    everything = [name[:12] for name in one.remote.git("rev-list", "--first-parent", "--reverse", "placements").split()]

    def between(after: str, until: str) -> list[str]:
        return everything[everything.index(after) + 1 : everything.index(until) + 1]

    lines = [line for request in people.taken for line in request.json["message"].splitlines()]
    short = [commit[:12] for commit in happened]
    listed: list[str] = []
    doubted: set[str] = set()
    for line in lines:
        if found := LISTED.search(line):
            listed.append(found[1])
        elif found := MORE.match(line):
            rest = [name for name in between(listed[-1], found[2]) if name in short]
            assert len(rest) == int(found[1]), "another number than is left out"
            listed += rest
        for begin, end in RANGE.findall(line):
            doubted |= set(between(begin, end))
    assert [one for one, count in Counter(listed).items() if count > 1] == [], "told twice"
    positions = [short.index(name) for name in listed if name in short]
    assert positions == sorted(positions), "out of order"
    missed = set(short) - set(listed)
    assert missed <= doubted, "forgotten without a word"
    return len(set(listed) & set(short)), len(doubted & set(short))
