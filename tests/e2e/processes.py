"""Processes by name, each with a log of its own, that can be killed at any moment and started again as they were."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LAST_LINES = 15
ALLOWED = 15
"""Seconds that a process may take to end before it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    command: tuple[str, ...]
    environment: Mapping[str, str]


class Processes:
    """What runs in one directory, which is its HOME and holds ``<name>.log``."""

    def __init__(self, home: Path) -> None:
        """Begin with none."""
        self.home = home
        self._known: dict[str, _Started] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start a process by a name, with variables beside our own."""
        self._known[name] = _Started(command=tuple(command), environment=dict(environment or {}))
        self.start(name)

    def start(self, name: str) -> None:
        """Start a process again that was killed, by the command it had; one that runs is left alone."""
        if name in self._running:
            return
        known = self._known[name]
        variables = {**os.environ, "HOME": str(self.home), **known.environment}
        with (self.home / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                known.command, cwd=self.home, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=variables
            )

    def kill(self, name: str) -> None:
        """Kill a process in the middle of whatever it does (SIGKILL)."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    @contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Hold a process where it is (SIGSTOP), and let it go on."""
        process = self._running[name]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End every process, those first that would complain about the others."""
        while self._running:
            _, process = self._running.popitem()
            process.terminate()
            try:
                process.wait(ALLOWED)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def process(self, name: str) -> int | None:
        """Return the number of a process, whether or not it has ended by itself; None for one that was killed."""
        running = self._running.get(name)
        return None if running is None else running.pid

    def is_running(self, name: str) -> bool:
        """Tell whether a process runs."""
        running = self._running.get(name)
        return running is not None and running.poll() is None

    def names(self) -> tuple[str, ...]:
        """Name those that run, in the order in which they were started."""
        return tuple(self._running)

    def alive(self) -> None:
        """See that none has ended by itself."""
        for name, process in self._running.items():
            assert process.poll() is None, f"{name} ended: {self.said(name)}"

    def said(self, name: str) -> str:
        """Return the last words of a process."""
        return "\n".join((self.home / f"{name}.log").read_text(errors="replace").splitlines()[-LAST_LINES:])

    def last_words(self) -> str:
        """Return the last words of each."""
        return "\n".join(f"{name}:\n{self.said(name)}" for name in self._known)
