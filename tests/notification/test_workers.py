"""Receivers share a bounded pool of threads, in which no workspace holds up another one's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from reconciler.adapters.notification.workers import Job, Workers
from reconciler.model.bounds import NOTIFICATION_WORKERS, NOTIFICATION_WORKERS_OF_OWNER

LONG = 30.0
"""Seconds after which a test gives up."""


@contextmanager
def pool(**bounds: int) -> Iterator[Workers]:
    workers = Workers(**bounds)
    try:
        yield workers
    finally:
        workers.close()


class Hanging:
    """Receivers that take a thread each until they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.let_go = Event()

    def job(self, owner: str, name: str) -> Job:
        def work() -> None:
            self.begun.append(name)
            assert self.let_go.wait(LONG)

        return Job(owner=owner, work=work, fails=lambda: True)


def answering(owner: str, times: int = 1) -> tuple[Job, Event]:
    done, left = Event(), [times]

    def work() -> float | None:
        left[0] -= 1
        if left[0] == 0:
            done.set()
        return time.monotonic() if left[0] > 0 else None

    return Job(owner=owner, work=work, fails=lambda: False), done


def test_dead_receivers_of_one_workspace_hold_up_no_other_one() -> None:
    hanging = Hanging()
    with pool() as workers:
        jobs = [hanging.job("llm", str(number)) for number in range(300)]
        for job in jobs:
            workers.wake(job)
        other, done = answering("b", times=5)
        workers.wake(other)
        assert done.wait(LONG)
        assert len(hanging.begun) <= NOTIFICATION_WORKERS_OF_OWNER.most
        assert workers.threads <= NOTIFICATION_WORKERS_OF_OWNER.most + 2
        hanging.let_go.set()


def test_threads_are_bounded_however_many_workspaces_there_are() -> None:
    hanging = Hanging()
    with pool(most=6) as workers:
        for number in range(50):
            workers.wake(hanging.job(f"w{number}", str(number)))
        deadline = time.monotonic() + LONG
        while len(hanging.begun) < 6 and time.monotonic() < deadline:
            hanging.let_go.wait(0.001)
        assert (len(hanging.begun), workers.threads) == (6, 6)
        hanging.let_go.set()
        while len(hanging.begun) < 50 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(hanging.begun) == 50
    assert NOTIFICATION_WORKERS.most >= 8 * NOTIFICATION_WORKERS_OF_OWNER.most


def test_receiver_that_works_comes_before_those_that_fail() -> None:
    hanging = Hanging()
    with pool(most=3, of_owner=1) as workers:
        first = hanging.job("llm", "first")
        workers.wake(first)
        while not hanging.begun:
            hanging.let_go.wait(0.001)
        for number in range(20):
            workers.wake(hanging.job("llm", str(number)))
        order: list[str] = []
        good = Job(owner="llm", work=lambda: order.append(",".join(hanging.begun)), fails=lambda: False)
        workers.wake(good)
        hanging.let_go.set()
        deadline = time.monotonic() + LONG
        while not order and time.monotonic() < deadline:
            time.sleep(0.001)
        assert order == ["first"]


def test_receiver_that_is_woken_while_it_works_is_looked_at_again() -> None:
    looked, begun, go = [], Event(), Event()

    def work() -> None:
        looked.append(1)
        begun.set()
        assert go.wait(LONG)

    with pool() as workers:
        job = Job(owner="", work=work, fails=lambda: False)
        workers.wake(job)
        assert begun.wait(LONG)
        workers.wake(job)
        go.set()
        deadline = time.monotonic() + LONG
        while len(looked) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(looked) == 2


def test_removed_receiver_gets_no_further_step_and_can_be_waited_for() -> None:
    hanging = Hanging()
    with pool() as workers:
        job = hanging.job("llm", "a")
        workers.wake(job)
        while not hanging.begun:
            hanging.let_go.wait(0.001)
        workers.remove(job)
        workers.wake(job)
        assert not workers.join(job, 0)
        hanging.let_go.set()
        assert workers.join(job, LONG)
        assert hanging.begun == ["a"]


def test_job_that_raises_costs_itself_alone() -> None:
    def broken() -> None:
        raise RuntimeError("odd")

    with pool() as workers:
        workers.wake(Job(owner="llm", work=broken, fails=lambda: False))
        other, done = answering("llm")
        workers.wake(other)
        assert done.wait(LONG)
