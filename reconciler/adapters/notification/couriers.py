"""All receivers of the fleet in force: a courier each, which begins, changes and ends with its Notification."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import structlog

from reconciler.adapters.notification.courier import Backlog, Courier, CourierTiming, DeliveryCount
from reconciler.adapters.notification.outages import CourierReport
from reconciler.adapters.notification.sender import Sender
from reconciler.adapters.notification.workers import Workers
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.notification.conditions import FleetConditions, changes, conditions
from reconciler.core.notification.notices import live_notice
from reconciler.errors import OverspillError
from reconciler.model.events.event import Event, Notice, Push
from reconciler.model.events.notification import Notification
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity
from reconciler.ports import BranchLog, Deliveries

log = structlog.get_logger()


def _count_nothing(receiver: str, *, sent: int = 0, failed: int = 0) -> None:
    """Count nothing."""


def _report(report: CourierReport) -> None:
    """Log that a receiver cannot be told, or that it can be again."""
    if report.why:
        line = f"{report.receiver} cannot be told of events, and is told later: {report.why}"
        log.warning("cannot notify", line=line)
    else:
        line = f"{report.receiver} is told of events again"
        log.info("notifying again", line=line, failed_tries=report.tries)


class Couriers:
    """Tells every receiver of the commits of the output branch, and of events that no commit tells (an `EventSink`)."""

    def __init__(
        self,
        branch: BranchLog,
        deliveries: Deliveries,
        committer: Identity,
        sender: Callable[[Notification, Desired], Sender],
        *,
        report: Callable[[CourierReport], None] = _report,
        count: DeliveryCount = _count_nothing,
        timing: CourierTiming | None = None,
    ) -> None:
        self._branch = branch
        self._deliveries = deliveries
        self._committer = committer
        self._sender = sender
        self._report = report
        self._count = count
        self._timing = timing or CourierTiming()
        self._workers = Workers()
        self._couriers: dict[str, Courier] = {}
        self._desired: Desired | None = None
        self._unread: str = ""
        self._began = time.monotonic()
        self._standing: FleetConditions | None = None  # unknown: what stands by then is no news

    def follow(self, desired: Desired, tip: CommitId | None) -> None:
        """Take in the Notifications in force, and the output branch up to its tip; never waits for a receiver."""
        if desired is not self._desired:
            self._take(desired)
        for courier in self._couriers.values():
            try:
                courier.follow(tip, self._branch, self._committer)
            except OverspillError as error:  # the history could not be fetched; the next pass tries again
                if str(error) != self._unread:
                    log.warning("cannot notify", line=f"the commits to tell of cannot be read: {error}")
                self._unread = str(error)

    def publish(self, events: Sequence[Event], _pushes: Sequence[Push]) -> None:
        """Tell of events without a commit, and leave the others to `follow`.

        What stands at a start is no news, and takes a moment to be seen.
        """
        live = tuple(live_notice(event) for event in events if event.commit is None and event.workload is not None)
        self._tell_live(live)

    def compare(self, inputs: PassInput) -> None:
        """Tell of what has begun or ended to stand since the pass before; it is not worked out for no receiver."""
        before, self._standing = self._standing, conditions(inputs) if self._couriers else None
        if before is not None and self._standing is not None:
            self._tell_live(tuple(changes(before, self._standing, inputs.now)))

    def backlogs(self) -> tuple[Backlog, ...]:
        """Return what waits for each receiver, from any thread."""
        return tuple(courier.backlog() for courier in tuple(self._couriers.values()))

    def close(self, patience: timedelta) -> tuple[str, ...]:
        """End, and return the receivers that are still being told. What they have not heard is told after a restart."""
        until = time.monotonic() + patience.total_seconds()
        couriers = dict(self._couriers)
        for courier in couriers.values():
            courier.stop()
        self._workers.close()
        return tuple(name for name, courier in couriers.items() if not courier.join(until - time.monotonic()))

    def _tell_live(self, notices: tuple[Notice, ...]) -> None:
        if notices and time.monotonic() - self._began >= self._timing.settling:
            for courier in self._couriers.values():
                courier.tell_live(notices)

    def _take(self, desired: Desired) -> None:
        """Begin, change and end couriers."""
        self._desired = desired
        wanted: Mapping[str, Notification] = desired.notifications
        for name in self._couriers.keys() - wanted.keys():
            self._couriers.pop(name).stop()
        for name, notification in wanted.items():
            sender = self._sender(notification, desired)
            courier = self._couriers.get(name)
            if courier is not None and courier.owner != notification.owner:  # its threads are its owner's
                self._couriers.pop(name).stop()
            elif courier is not None:
                courier.update(notification, sender)
                continue
            self._couriers[name] = Courier(
                notification,
                sender,
                self._deliveries,
                report=self._report,
                count=self._count,
                timing=self._timing,
                workers=self._workers,
            )
