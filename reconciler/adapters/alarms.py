"""APScheduler as an alarm clock.

A job only wakes the loop. The pass after it computes from git what is due, so a lost, late or repeated alarm changes
nothing, and no job is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from reconciler.ports import Wake

_ALARM = "alarm"


class Alarms:
    """Calls `wake` at set moments, and when a regular check reports a change."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        # The default grace of one second drops a job that came due while the machine slept: the burst would never end.
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def start(self) -> None:
        """Start the scheduler in a thread of its own."""
        self._scheduler.start()

    def stop(self) -> None:
        """Stop the scheduler after a running job. A second call does nothing."""
        if self._scheduler.running:
            # APScheduler's thread dies of a JobLookupError when it is shut down between running a job and removing it.
            # A paused scheduler starts no job, and removing the jobs waits for the running one.
            self._scheduler.pause()
            self._scheduler.remove_all_jobs()
            self._scheduler.shutdown(wait=True)

    def at(self, moment: datetime | None) -> None:
        """Wake with reason ``alarm`` at `moment`, which replaces an earlier alarm; None only removes that.

        A moment that has passed wakes at once.
        """
        if moment is not None:
            trigger = DateTrigger(moment, timezone=UTC)
            self._scheduler.add_job(self._wake, trigger, args=[_ALARM], id=_ALARM, replace_existing=True)
            return
        try:
            self._scheduler.remove_job(_ALARM)
        except JobLookupError:  # the alarm has fired, or none was set
            return

    def watch(self, changed: Callable[[], bool], *, every: timedelta, reason: str) -> None:
        """Call `changed` regularly, and wake with `reason` whenever it is true. `changed` must be quick."""

        def look() -> None:
            if changed():
                self._wake(reason)

        self._scheduler.add_job(look, "interval", seconds=every.total_seconds())
