"""A thread that has the proposal desk tend to proposals: soon after each that begins or ends, and every so often.

A pass never waits for a host: what the host says comes back as orders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from random import random
from threading import Condition, Thread

import structlog

from reconciler.backoff import quiet
from reconciler.core.decide.state.order import Order
from reconciler.daemon.orders.order_queue import OrderResult
from reconciler.daemon.proposals.desk import ProposalDesk
from reconciler.errors import OverspillError, Transient
from reconciler.model.events.event import Event, Push
from reconciler.model.events.event_kind import EventKind

log = structlog.get_logger()

EVERY = timedelta(seconds=30)
"""Time between two looks at the host while anything is proposed."""
_FIRST = 1.0
"""Seconds between two looks whether anything has to be approved at all, before the first host is asked."""
_OF_PROPOSALS = frozenset({EventKind.PROPOSED, EventKind.APPROVED, EventKind.PROPOSAL_ENDED})
_PATIENCE = 60.0
"""Seconds that an order may take before the host is looked at again."""
_LAST = 2.0
"""Seconds for the thread to end; one that waits for a host ends with the process."""


class ProposalFollower:
    """Follows proposals (a `ports.EventSink`). `open_desk` opens the desk in the thread, `submit` takes its orders.

    `is_used` says whether any policy has bursts approved, or anything is proposed: else no host is asked.
    """

    def __init__(
        self,
        open_desk: Callable[[], ProposalDesk],
        submit: Callable[[Order], Future[OrderResult]],
        *,
        is_used: Callable[[], bool],
        every: timedelta = EVERY,
    ) -> None:
        self._open_desk, self._submit, self._is_used = open_desk, submit, is_used
        self._every = every.total_seconds()
        self._changed = Condition()
        self._due = False
        self._closing = False
        self._desk: ProposalDesk | None = None
        self._trouble = ""
        self._limited, self._quiet_until = 0, 0.0
        self._thread = Thread(target=self._run, name="proposals", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def publish(self, events: Sequence[Event], _pushes: Sequence[Push]) -> None:
        """Look soon where a proposal has begun or ended."""
        if any(event.kind in _OF_PROPOSALS for event in events):
            with self._changed:
                self._due = True
                self._changed.notify_all()

    def close(self) -> None:
        """Follow nothing more. A second call does nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_LAST)

    def _run(self) -> None:
        while self._wait():
            try:
                self._tend()
                self._limited = 0
            except OverspillError as error:
                self._log(str(error))
                if isinstance(error, Transient) and error.pause is not None:
                    self._leave_alone(error.pause)
            except Exception:  # a bug must not end the thread: later proposals would have no pull request
                log.exception("bug; proposals are not followed")
        if self._desk is not None:
            self._desk.close()

    def _wait(self) -> bool:
        """Wait until there is something to do; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing, max(0.0, self._quiet_until - time.monotonic()))
            while not self._closing:
                rest = self._every if self._desk is not None else min(_FIRST, self._every)
                if self._changed.wait_for(lambda: self._due or self._closing, rest) or self._is_used():
                    break
            self._due = False
            return not self._closing

    def _tend(self) -> None:
        if self._desk is None:
            self._desk = self._open_desk()
        orders = self._desk.tend()
        self._log("")
        receipts = [self._submit(order) for order in orders]
        deadline = time.monotonic() + _PATIENCE
        for receipt in receipts:
            with suppress(TimeoutError):
                answer = receipt.result(max(0.0, deadline - time.monotonic())).answer
                if answer.denial is not None:
                    log.info("proposal", line=answer.message)

    def _leave_alone(self, asked: timedelta) -> None:
        """Have the next look wait for the end of a rate limit, whatever is proposed meanwhile."""
        self._limited += 1
        luck = random()  # noqa: S311 - spreads load, keeps no secret
        self._quiet_until = time.monotonic() + quiet(self._limited, asked=asked.total_seconds(), luck=luck)

    def _log(self, trouble: str) -> None:
        """Log a trouble when it begins and when it ends."""
        if trouble and not self._trouble:
            log.warning("cannot follow proposals", line=trouble)
        if self._trouble and not trouble:
            log.info("following proposals again", line="the host of the fleet repository answers again")
        self._trouble = trouble
