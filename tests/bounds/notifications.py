"""Notifications and their receivers at their bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Flag
from threading import Thread

from reconciler.adapters.child_memory import message_bounds
from reconciler.adapters.notification.apprise_process import _AppriseProcesses, deliver
from reconciler.adapters.notification.apprise_program import AppriseMessage
from reconciler.adapters.notification.workers import Job, Workers
from reconciler.core.notification.notices import live_notice
from reconciler.errors import Transient
from reconciler.model.bounds import (
    MESSAGE_MEMORY,
    MESSAGE_PROCESSES,
    MESSAGE_TIME,
    NOTIFICATION_BACKLOG,
    NOTIFICATION_LIVE,
    NOTIFICATION_WORKERS,
    NOTIFICATION_WORKERS_OF_OWNER,
    NOTIFICATIONS_OF_WORKSPACE,
)
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import DeliveryMarks
from tests.adapters.test_http_exchange import OK, peer, pouring
from tests.bounds.experiment import Experiment, experiment
from tests.builders.fleet_files import workspace
from tests.builders.notifications import OURS, Branch, Marks
from tests.builders.notifications import message as burst
from tests.fakes.faulty_servers import Reply, serving
from tests.notification.test_apprise_process import dripping, message
from tests.notification.test_notification_files import HEAD, fleet
from tests.notification.test_outages import BEGUN, Pager, courier

_READY = 30.0
FLEET = (
    "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
    "spec: {paths: {Notification: ['teams/**']}}\n"
)


@experiment(NOTIFICATIONS_OF_WORKSPACE)
def _(_place: Path) -> Iterator[Experiment]:
    def in_force(number: int) -> str:
        """Read a file of a tenant with so many Notifications."""
        spec = "{workspaces: [llm], webhook: {url: 'https://hooks.example.com/llm', secretFrom: pager}}"
        many = "\n---\n".join((HEAD + spec).replace("chat", f"chat{each}") for each in range(number))
        files = {"fleet.yaml": FLEET, "workspaces/llm.yaml": workspace("llm", "paths: [teams/llm/**]")}
        desired = fleet("{apprise: {urlFrom: all}}", **files, **{"teams/llm/many.yaml": many})
        return f"{sum(name != 'chat' for name in desired.notifications)} in force"

    def at() -> None:
        assert in_force(NOTIFICATIONS_OF_WORKSPACE.most) == f"{NOTIFICATIONS_OF_WORKSPACE.most} in force"

    yield Experiment(at=at, beyond=lambda: in_force(1000), says=f"^{NOTIFICATIONS_OF_WORKSPACE.most} in force")


def _working(owners: int, of_owner: int) -> str:
    """Wake receivers that hang, and count the threads that they take."""
    workers, let_go = Workers(), Flag()

    def hang() -> None:
        let_go.wait(_READY)

    jobs = [Job(owner=f"w{owner}", work=hang, fails=lambda: True) for owner in range(owners) for _ in range(of_owner)]
    for job in jobs:
        workers.wake(job)
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        time.sleep(0.01)
    with workers._changed:
        running = len(workers._running)
    let_go.set()
    workers.close()
    return f"{running} at work"


@experiment(NOTIFICATION_WORKERS)
def _(_place: Path) -> Iterator[Experiment]:
    most = NOTIFICATION_WORKERS.most

    def at() -> None:
        assert _working(most, 1) == f"{most} at work"

    yield Experiment(at=at, beyond=lambda: _working(20 * most, 5), says=f"^{most} at work")


@experiment(NOTIFICATION_WORKERS_OF_OWNER)
def _(_place: Path) -> Iterator[Experiment]:
    most = NOTIFICATION_WORKERS_OF_OWNER.most

    def at() -> None:
        assert _working(1, most) == f"{most} at work"

    yield Experiment(at=at, beyond=lambda: _working(1, 1000), says=f"^{most} at work")


@experiment(NOTIFICATION_BACKLOG)
def _(_place: Path) -> Iterator[Experiment]:
    most = NOTIFICATION_BACKLOG.most
    branches = {number: Branch(*(burst(1) for _ in range(number))) for number in (most, 5 * most)}

    def waiting(number: int) -> str:
        """Follow a branch of so many commits whose receiver is away, and count those that are held in memory."""
        branch = branches[number]
        telling = courier(Pager(refusals=0), _Unmovable(BEGUN), [])
        deadline = time.monotonic() + 5
        try:
            telling.follow(branch.tip, branch, OURS)
            while telling.backlog().waiting < most and time.monotonic() < deadline:
                time.sleep(0.01)
                telling.follow(branch.tip, branch, OURS)
            return f"{telling.backlog().waiting} wait"
        finally:
            telling.stop()

    def at() -> None:
        assert waiting(most) == f"{most} wait"

    yield Experiment(at=at, beyond=lambda: waiting(5 * most), says=f"^{most} wait")


class _Unmovable(Marks):
    """The marks on a remote that takes no push, without which nobody is told."""

    def move(self, _name: str, _old: DeliveryMarks, _new: DeliveryMarks) -> None:
        raise Transient("the remote is away")


@experiment(NOTIFICATION_LIVE)
def _(_place: Path) -> Iterator[Experiment]:
    def waiting(number: int) -> str:
        telling = courier(Pager(refusals=0), Marks(BEGUN), [])
        try:
            telling.tell_live(
                [
                    live_notice(Event(kind=EventKind.HELD_BACK, at=datetime.now(UTC), line=str(each)))
                    for each in range(number)
                ]
            )  # the tip is unknown, so that none is told
            return f"{telling.backlog().waiting} wait"
        finally:
            telling.stop()

    most = NOTIFICATION_LIVE.most

    def at() -> None:
        assert waiting(most) == f"{most} wait"

    yield Experiment(at=at, beyond=lambda: waiting(50 * most), says=f"^{most} wait")


@experiment(MESSAGE_TIME)
def _(_place: Path) -> Iterator[Experiment]:
    def late() -> object:
        with dripping() as receiver:
            return deliver(message(receiver.url), seconds=2)

    with serving(Reply()) as server:
        yield Experiment(
            at=lambda: deliver(message(server.url)),
            beyond=late,
            says="could not deliver it in time",
            scaled="2 s",
        )


@experiment(MESSAGE_MEMORY)
def _(_place: Path) -> Iterator[Experiment]:
    first = OK + b"Content-Type: application/json\r\nContent-Length: 100000000000\r\n\r\n"
    with serving(Reply(body=b"x" * (32 << 20))) as server, peer(pouring(first, b"x" * (1 << 20))) as address:

        def at() -> None:
            assert deliver(message(server.url)).taken

        yield Experiment(
            at=at,
            beyond=lambda: deliver(message(f"http://{address}")),
            says="taken=False.*last=True",
            scaled="32 MiB",
        )


@experiment(MESSAGE_PROCESSES)
def _(_place: Path) -> Iterator[Experiment]:
    def at_once(number: int) -> str:
        """Deliver so many messages to a receiver that holds each for half a second, in a container of 1 GiB."""
        bounds, most, held = message_bounds(1 << 30), 0, list[object]()
        processes = _AppriseProcesses(at_once=bounds.processes)

        def hold() -> None:
            nonlocal most
            with processes.borrow() as process:
                held.append(process)
                most = max(most, len(held))
                process.exchange(AppriseMessage(url="nonsense"), 10)
                time.sleep(0.1)
                held.remove(process)

        threads = [Thread(target=hold) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        processes.close()
        return f"{most} at once"

    yield Experiment(at=lambda: at_once(2), beyond=lambda: at_once(8), says="^2 at once", scaled="in 1 GiB")
