"""The real daemon as a process, which ends with the demo in any case."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import FrameType

_PATIENCE = 15
"""Seconds that a push under way may take after SIGTERM."""

_LEAVING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Daemon:
    """A running `overspill run`; its output goes to a file and to `lines`."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._reader = Thread(target=self._read, args=(log,), daemon=True)
        self._reader.start()

    def lines(self) -> Iterator[str]:
        """Yield the lines since the last call; never waits."""
        with contextlib.suppress(Empty):
            while True:
                yield self._lines.get_nowait()

    def ended(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if it does not end in time."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_PATIENCE)

    def _read(self, log: Path) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with log.open("wb") as file, stream:
            for line in stream:
                file.write(line)
                file.flush()
                self._lines.put(line.decode(errors="replace").rstrip("\n"))


@contextlib.contextmanager
def run_daemon(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str], log: Path
) -> Iterator[Daemon]:
    """Start the daemon, and end it with the block in any case. Call it in the main thread.

    It gets a session of its own, so that a Ctrl-C in the terminal reaches it once, through us. SIGTERM and SIGHUP leave
    the block as Ctrl-C does.
    """
    # A signal during the start would leave the process behind, so signals are blocked until then.
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _LEAVING}
    try:
        process = subprocess.Popen(
            command, cwd=directory, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip # a command line, word by word
        daemon = Daemon(process, log)
        try:
            for number in _LEAVING:
                signal.signal(number, _leave)
            if came:
                raise KeyboardInterrupt
            yield daemon
        finally:
            daemon.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
