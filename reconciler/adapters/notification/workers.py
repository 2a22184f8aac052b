"""A bounded pool of threads for all receivers, divided fairly between the workspaces that they are of.

A receiver that hangs takes a thread until its time-out. Each owner has few threads at a time, so that the dead
receivers of one workspace hold up no other one's, and within an owner a receiver that works comes before one that
fails. One receiver never has two threads: events reach it in order.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread

import structlog

from reconciler.model.bounds import NOTIFICATION_WORKERS, NOTIFICATION_WORKERS_OF_OWNER

log = structlog.get_logger()

_IDLE = 60.0
"""Seconds after which a thread without work ends."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """The work of one receiver."""

    owner: str
    """The workspace that it is of; empty for the whole fleet."""
    work: Callable[[], float | None]
    """Does one step, and returns when the next one is due by the monotonic clock; None for never, until it is woken.

    It raises nothing.
    """
    fails: Callable[[], bool]
    """Whether its last step failed."""


class Workers:
    """Runs the jobs of receivers. Nothing but `join` waits."""

    def __init__(
        self, *, most: int = NOTIFICATION_WORKERS.most, of_owner: int = NOTIFICATION_WORKERS_OF_OWNER.most
    ) -> None:
        self._most, self._of_owner = most, of_owner
        self._changed = Condition()
        self._due: dict[Job, float] = {}
        self._running: set[Job] = set()
        self._woken: set[Job] = set()  # while they ran
        self._ended: set[Job] = set()  # while they ran
        self._threads = self._idle = 0
        self._last: dict[str, float] = {}  # when an owner last began
        self._closed = False

    def wake(self, job: Job) -> None:
        """Look at a job as soon as a thread is free, whether it is new or known."""
        with self._changed:
            if self._closed or job in self._ended:
                return
            if job in self._running:
                self._woken.add(job)
                return
            self._due[job] = 0.0
            self._begin_thread()
            self._changed.notify_all()

    def remove(self, job: Job) -> None:
        """Begin no further step of a job."""
        with self._changed:
            self._due.pop(job, None)
            if job in self._running:
                self._ended.add(job)

    def join(self, job: Job, patience: float) -> bool:
        """Wait for the step of a job that is under way, for some seconds; return whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: job not in self._running, max(0.0, patience))

    def close(self) -> None:
        """Begin nothing more; threads end with what they are doing."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify_all()

    @property
    def threads(self) -> int:
        """The number of threads."""
        with self._changed:
            return self._threads

    # What the threads do.

    def _begin_thread(self) -> None:
        """Begin a thread unless one is free, with the lock held: one always waits for what is due next."""
        if not self._idle and self._threads < self._most:
            self._threads += 1
            self._idle += 1
            # A daemon thread does not keep the process alive: a name look-up cannot be cancelled.
            Thread(target=self._run, name="notify", daemon=True).start()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                due = job.work()
            except Exception:
                log.exception("bug; a receiver is told of nothing more until the next pass")
                due = None
            self._finish(job, due)

    def _next(self) -> Job | None:
        """Wait for a job that may run; None once the thread is to end."""
        with self._changed:
            while not self._closed:
                job, due = self._first()
                if job is not None:
                    del self._due[job]
                    self._running.add(job)
                    self._last[job.owner] = time.monotonic()
                    self._idle -= 1
                    if self._due:
                        self._begin_thread()
                    return job
                pause = _IDLE if due is None else min(_IDLE, due - time.monotonic())
                if not self._changed.wait(pause) and pause >= _IDLE and (due is None or self._idle > 1):
                    break
            self._threads -= 1
            self._idle -= 1
            return None

    def _first(self) -> tuple[Job | None, float | None]:
        """Return the job to run, of the owner with the fewest threads; else None, and when the next one is due."""
        now = time.monotonic()
        running = Counter(job.owner for job in self._running)
        allowed = [job for job in self._due if running[job.owner] < self._of_owner]
        ready = [job for job in allowed if self._due[job] <= now]
        if not ready:
            return None, min((self._due[job] for job in allowed), default=None)
        turn = {job.owner: (running[job.owner], self._last.get(job.owner, 0.0)) for job in ready}
        owner = min(turn, key=lambda name: turn[name])
        return min((job for job in ready if job.owner == owner), key=lambda job: (job.fails(), self._due[job])), None

    def _finish(self, job: Job, due: float | None) -> None:
        with self._changed:
            self._running.discard(job)
            self._idle += 1
            if job in self._woken:
                due = 0.0
            self._woken.discard(job)
            if job in self._ended:
                self._ended.discard(job)
            elif due is not None and not self._closed:
                self._due[job] = due
            self._changed.notify_all()
