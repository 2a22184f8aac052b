"""The real daemon as a process, which ends with the demo in any case."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import FrameType
from typing import TypeAlias

_PATIENCE = 15
"""Seconds that a push under way may take after SIGTERM."""

_LEAVING = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)  # Windows has no SIGHUP
)
_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None


class Daemon:
    """`overspill run` as a process; its output goes to a file and to `lines`."""

    def __init__(self, command: Sequence[str], *, directory: Path, environment: Mapping[str, str], log: Path) -> None:
        """Start it in a session of its own, so that a Ctrl-C in the terminal reaches it once, through us."""
        self._command, self._directory, self._environment, self._log = command, directory, environment, log
        self._lines: SimpleQueue[str] = SimpleQueue()
        log.write_bytes(b"")
        self._start()

    def lines(self) -> Iterator[str]:
        """Yield the lines since the last call; never waits."""
        with contextlib.suppress(Empty):
            while True:
                yield self._lines.get_nowait()

    def ended(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Send SIGKILL, which leaves it no time for anything."""
        self._process.kill()
        self._process.wait()
        self._reader.join(_PATIENCE)

    def restart(self) -> None:
        """Start it again, after it has ended."""
        with _held_signals():
            self._start()

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if it does not end in time."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_PATIENCE)

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, cwd=self._directory, env=dict(self._environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip # a command line, word by word
        self._reader = Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdout is None:
            return
        with self._log.open("ab") as file, process.stdout as stream:
            for line in stream:
                file.write(line)
                file.flush()
                self._lines.put(line.decode(errors="replace").rstrip("\n"))


@contextlib.contextmanager
def run_daemon(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str], log: Path
) -> Iterator[Daemon]:
    """Start the daemon, and end it with the block in any case; see `left_by_signals`."""
    with left_by_signals():
        daemon: Daemon | None = None
        try:
            with _held_signals():
                daemon = Daemon(command, directory=directory, environment=environment, log=log)
            yield daemon
        finally:
            if daemon is not None:
                daemon.stop()


@contextlib.contextmanager
def left_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP leave the block as Ctrl-C does. Call it in the main thread."""
    before = _handle_signals(_leave)
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def _held_signals() -> Iterator[None]:
    """Let no signal break in, and leave after the block if one came: a process half started would be left behind."""
    came: list[int] = []
    before = _handle_signals(lambda number, _: came.append(number))
    try:
        yield
    finally:
        _restore(before)
    if came:
        raise KeyboardInterrupt


def _handle_signals(handler: Callable[[int, FrameType | None], object]) -> dict[int, _Handler]:
    """Set one handler, and return those before it."""
    return {number: signal.signal(number, handler) for number in _LEAVING}


def _restore(before: Mapping[int, _Handler]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
