"""Rounds of questions to a service that may be slow, on a thread of their own, so that no pass waits for an answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Condition, Thread
from time import monotonic


class Rounds:
    """Asks a service at most once an interval, from `start` to `close`.

    The caller keeps what is asked and what was answered, and guards both by `changed`.
    """

    def __init__(
        self,
        name: str,
        ask: Callable[[], None],
        *,
        every: timedelta,
        end: Callable[[], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take what asks the questions of one round; it must raise nothing, and notify `changed` of its answers.

        `name` is that of the thread, on which `end` is called last. `clock` counts seconds.
        """
        self.changed = Condition()
        self._ask = ask
        self._every = every.total_seconds()
        self._end = end
        self._clock = clock
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._started = False
        self._hurried = False
        self._closing = False

    @property
    def closing(self) -> bool:
        """Whether nothing more is to be asked; a round that is under way may end early."""
        return self._closing

    @property
    def running(self) -> bool:
        """Whether the thread has begun and not ended."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin the first round, unless rounds have begun."""
        with self.changed:
            if not self._started and not self._closing:
                self._started = True
                self._thread.start()

    def hurry(self) -> None:
        """Begin the next round as soon as the one under way has ended, if any is."""
        with self.changed:
            self._hurried = True
            self.changed.notify_all()

    def set_interval(self, every: timedelta) -> None:
        """Change the time from the beginning of a round to the beginning of the next one."""
        if every.total_seconds() == self._every:
            return
        with self.changed:
            self._every = every.total_seconds()
            self.changed.notify_all()

    def wait(self, settled: Callable[[], bool], patience: timedelta) -> None:
        """Wait for so long, or until it is settled."""
        with self.changed:
            self.changed.wait_for(lambda: settled() or self._closing, patience.total_seconds())

    def close(self) -> None:
        """Ask nothing more. A second call does nothing."""
        with self.changed:
            self._closing = True
            self.changed.notify_all()

    def join(self, patience: timedelta) -> None:
        """Wait for so long, or until the thread has ended."""
        if self._started:
            self._thread.join(patience.total_seconds())

    def _run(self) -> None:
        while not self._closing:
            with self.changed:
                self._hurried = False
            began = self._clock()
            self._ask()
            with self.changed:
                while not (self._closing or self._hurried):
                    rest = began + self._every - self._clock()
                    if rest <= 0:
                        break
                    self.changed.wait(rest)
        self._end()
