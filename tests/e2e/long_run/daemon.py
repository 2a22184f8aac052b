"""The daemon that is tried: started, killed, its memory read from outside, and what it logged."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.long_run.clock import ShiftedClock
from tests.e2e.processes import Processes

CHECKOUT = Path(__file__).parents[3]
_NAME = "overspill"
_EACH = 1.0
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReading:
    """The resident memory of the daemon at one moment."""

    at: float
    """By the true clock, in seconds since 1970."""
    megabytes: float
    process: int
    """Its number: another one after a kill."""


class Daemon:
    """`overspill run` against a git server, watching clusters by a kubeconfig."""

    def __init__(
        self, home: Path, *, url: str, arguments: Sequence[str], settings: Mapping[str, str], clock: ShiftedClock | None
    ) -> None:
        """Start it. `settings` are variables without their prefix; its clock is the machine's where none is given."""
        home.mkdir(parents=True)
        self._processes = Processes(home)
        self._log = home / f"{_NAME}.log"
        self.readings: list[MemoryReading] = []
        environment = {"PYTHONPATH": str(CHECKOUT), "OVERSPILL_CACHE_DIR": str(home / "cache")}
        environment |= {f"OVERSPILL_{name}": value for name, value in settings.items()}
        environment |= dict(clock.environment) if clock is not None else {}
        command = [sys.executable, "-m", "reconciler", "run", "--repo", url, *arguments]
        self._processes.run(_NAME, command, environment)

    def kill(self) -> None:
        """Kill it in the middle of whatever it does."""
        self._processes.kill(_NAME)

    def start(self) -> None:
        """Start it again."""
        self._processes.start(_NAME)

    def stop(self) -> None:
        """Ask it to end."""
        self._processes.stop()

    def read_memory(self, stopped: threading.Event) -> None:
        """Read its memory each second until stopped; while it is away there is none."""
        while not stopped.wait(_EACH):
            process = self._processes.process(_NAME)
            resident = None if process is None else resident_memory(process)
            if process is not None and resident is not None:
                reading = MemoryReading(at=time.time(), megabytes=resident / _MEGABYTE, process=process)
                self.readings.append(reading)

    def asks_for_nothing(self) -> bool:
        """Tell whether it has ended by itself."""
        return self._processes.process(_NAME) is not None and not self._processes.is_running(_NAME)

    def tracebacks(self) -> int:
        """Count the tracebacks in its log: exceptions that nothing foresaw."""
        return self.logged().count("Traceback (most recent call last)")

    def logged(self) -> str:
        """Return all that it has logged."""
        return self._log.read_text(errors="replace")


def resident_memory(process: int) -> int | None:
    """Return the resident memory of a process in bytes; None where there is no such process."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
