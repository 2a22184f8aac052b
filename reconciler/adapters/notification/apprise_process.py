"""Apprise in processes of its own: one message has a deadline and a bound on memory, whichever service it goes to.

Its plugins speak HTTP, SMTP, MQTT and others, each with time-outs of single reads alone, and read answers of any size.
A process that is late is killed, and what its server sends costs its message alone. One that has delivered in time
delivers the next message as well, since it takes half a second of a processor to start. They also keep Apprise's
modules out of the daemon.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from threading import BoundedSemaphore, Lock, Timer
from typing import IO, cast

from reconciler.adapters import operating_system
from reconciler.adapters.child_memory import message_bounds, own_limit
from reconciler.adapters.notification.apprise_program import AppriseMessage, AppriseResult
from reconciler.adapters.notification.sender import NotTaken
from reconciler.model.bounds import MESSAGE_MEMORY, MESSAGE_TIME

_COMMAND = (sys.executable, "-m", "reconciler.adapters.notification.apprise_program")
_LONGEST_RESULT = 64 << 10
_KEPT = 2
"""Processes that are kept while they have nothing to do; each holds some 60 MB."""
_IDLE = 60.0
"""Seconds after which one that has nothing to do ends."""
_PATIENCE = 1.0
"""Seconds in which a process ends by itself once its standard input has."""


class _AppriseProcess:
    """A process that delivers one message at a time."""

    def __init__(self) -> None:
        # An address is a secret: it goes by standard input. The session keeps Ctrl-C from a message under way.
        self._process = subprocess.Popen(
            _COMMAND,
            env=operating_system.foreign_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._input = cast("IO[bytes]", self._process.stdin)
        self._results = cast("IO[bytes]", self._process.stdout)
        self.late = False
        """Whether it was killed at a deadline."""
        self.serves = False
        """Whether it takes another message."""

    def exchange(self, message: AppriseMessage, seconds: float) -> AppriseResult | None:
        """Deliver a message; None where the process was late, or ended."""
        self.serves = False
        deadline = Timer(seconds, self._kill)
        deadline.daemon = True
        deadline.start()
        try:
            self._input.write(json.dumps(asdict(message)).encode() + b"\n")
            self._input.flush()
            result = AppriseResult(**json.loads(self._results.readline(_LONGEST_RESULT)))
        except (OSError, TypeError, ValueError):
            return None
        finally:
            deadline.cancel()
            deadline.join()
        self.serves = not self.late and not result.last
        return result

    def runs(self) -> bool:
        """Return whether it has not ended; nothing may be under way."""
        return self._process.poll() is None

    def end(self) -> int:
        """End it, and return its status."""
        with suppress(OSError):  # what it has not taken
            self._input.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            operating_system.kill(self._process.pid)
        self._results.close()
        return self._process.wait()

    def _kill(self) -> None:
        self.late = True
        operating_system.kill(self._process.pid)


class _AppriseProcesses:
    """The processes that have nothing to do; a thread borrows one for a message."""

    def __init__(self, *, at_once: int) -> None:
        self._lock = Lock()
        self._turns = BoundedSemaphore(at_once)
        self._idle: dict[_AppriseProcess, Timer] = {}

    @contextmanager
    def borrow(self) -> Iterator[_AppriseProcess]:
        """Lend a process in its turn, and keep it where it serves afterwards. Raises OSError where none can start."""
        with self._turns:
            process = self._take() or _AppriseProcess()
            try:
                yield process
            finally:
                if not process.serves or not self._keep(process):
                    process.end()

    def close(self) -> None:
        """End those that have nothing to do; those of threads that still deliver end with this process."""
        while (process := self._take()) is not None:
            process.end()

    def _take(self) -> _AppriseProcess | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                process, timer = self._idle.popitem()
            timer.cancel()
            if process.runs():
                return process
            process.end()

    def _keep(self, process: _AppriseProcess) -> bool:
        timer = Timer(_IDLE, self._end_idle, (process,))
        timer.daemon = True
        with self._lock:
            if len(self._idle) >= _KEPT:
                return False
            self._idle[process] = timer
        timer.start()
        return True

    def _end_idle(self, process: _AppriseProcess) -> None:
        with self._lock:
            idle = self._idle.pop(process, None) is not None
        if idle:
            process.end()


_PROCESSES = _AppriseProcesses(at_once=message_bounds(own_limit()).processes)
atexit.register(_PROCESSES.close)


def deliver(message: AppriseMessage, *, seconds: float = MESSAGE_TIME.most) -> AppriseResult:
    """Send a message, or check its address. Raises NotTaken where Apprise is missing, late or out of memory."""
    if importlib.util.find_spec("apprise") is None:
        raise NotTaken("Apprise is not installed here (try: pip install 'overspill[notify]')")
    try:
        with _PROCESSES.borrow() as process:
            result = process.exchange(message, seconds)
    except OSError as error:
        raise NotTaken(f"Apprise cannot be started: {error.strerror}") from error
    if result is not None:
        return result
    if process.late:
        raise NotTaken("Apprise could not deliver it in time")
    why = f"ended with status {process.end()} (its receiver may answer with over {MESSAGE_MEMORY})"
    raise NotTaken(f"Apprise could not deliver it: it {why}")
