"""The thread that follows proposals looks when one begins or ends, hands orders on, and outlives every trouble."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from queue import Queue
from typing import Any

from structlog.testing import capture_logs

from reconciler.core.decide.state.order import Order
from reconciler.daemon.orders.order_queue import OrderResult
from reconciler.daemon.proposals.follower import ProposalFollower
from reconciler.errors import Transient
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from reconciler.model.request import Answer, Verb
from tests.builders.passes import START
from tests.fakes.memory_repository import OURS

ORDER = Order(number=0, verb=Verb.REJECT, name="vllm", workspace=None, author=OURS, within=None)
PROPOSED = Event(kind=EventKind.PROPOSED, at=START, line="proposed")
HELD = Event(kind=EventKind.HELD_BACK, at=START, line="held back")


class Desk:
    """Says what the test has put down, one look after the other, and then nothing."""

    def __init__(self, *looks: Any) -> None:
        self.looks = list(looks)
        self.looked = 0
        self.closed = False

    def tend(self) -> tuple[Order, ...]:
        self.looked += 1
        look = self.looks.pop(0) if self.looks else ()
        if isinstance(look, Exception):
            raise look
        return look

    def close(self) -> None:
        self.closed = True


@contextmanager
def following(desk: Desk, *, used: Callable[[], bool] = lambda: False, every: timedelta = timedelta(hours=1)) -> Any:
    orders: Queue[Order] = Queue()

    def submit(order: Order) -> Future[OrderResult]:
        orders.put(order)
        receipt: Future[OrderResult] = Future()
        receipt.set_result(OrderResult(answer=Answer(), commit=None))
        return receipt

    follower = ProposalFollower(lambda: desk, submit, is_used=used, every=every)
    follower.start()
    try:
        yield follower, orders
    finally:
        follower.close()
    assert desk.closed is bool(desk.looked)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def test_proposal_that_begins_is_followed_and_the_answer_of_the_host_is_an_order() -> None:
    desk = Desk((ORDER,))
    with following(desk) as (follower, orders):
        follower.publish([PROPOSED], ())
        assert orders.get(timeout=60) == ORDER


def test_other_events_ask_no_host() -> None:
    desk = Desk()
    with following(desk) as (follower, _):
        follower.publish([HELD], ())
    assert desk.looked == 0


def test_host_is_asked_again_and_again_while_anything_is_proposed() -> None:
    desk = Desk()
    with following(desk, used=lambda: True, every=timedelta(milliseconds=10)):
        until(lambda: desk.looked > 3)


def test_host_that_is_away_is_logged_once_and_asked_again() -> None:
    desk = Desk(Transient("it does not answer"), Transient("it does not answer"), KeyError("a bug"), (ORDER,))
    with capture_logs() as logged, following(desk, used=lambda: True, every=timedelta(milliseconds=10)) as (_, orders):
        assert orders.get(timeout=60) == ORDER
    assert [entry["event"] for entry in logged] == [
        "cannot follow proposals",
        "bug; proposals are not followed",
        "following proposals again",
    ]


def test_rate_limit_is_waited_out_whatever_is_proposed_meanwhile() -> None:
    desk = Desk(Transient("a rate limit", pause=timedelta(milliseconds=700)), (ORDER,))
    with following(desk, used=lambda: True, every=timedelta(milliseconds=10)) as (follower, orders):
        until(lambda: desk.looked == 1)
        began = time.monotonic()
        while time.monotonic() < began + 0.5:
            follower.publish([PROPOSED], ())
            time.sleep(0.01)
        assert desk.looked == 1
        assert orders.get(timeout=60) == ORDER


def test_end_does_not_wait_for_a_rate_limit() -> None:
    desk = Desk(Transient("a rate limit", pause=timedelta(hours=1)))
    with following(desk, used=lambda: True, every=timedelta(milliseconds=10)):
        until(lambda: desk.looked == 1)
