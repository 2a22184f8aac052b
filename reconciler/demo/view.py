"""What an audience is told of the play, and the times that it keeps. `play` knows no more of a screen than this."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from reconciler.adapters.clock import SystemClock
from reconciler.demo.branch_log import LandedCommit
from reconciler.demo.keys import Key
from reconciler.text.gpu_cells import GpuUse


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementScene:
    """A placement on a cluster."""

    name: str
    replicas: int
    """Replicas with a node."""
    begins: float = 0.0
    """Seconds since the epoch."""
    ends: float = 0.0
    """Seconds since the epoch; not after `begins` where the end is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterScene:
    """A cluster of the simulated world."""

    name: str
    nodes: tuple[Mapping[GpuUse, int], ...]
    """GPUs by use of each node that takes pods."""
    waiting: int = 0
    """Replicas of the workload that find no node on their own cluster."""
    home: bool = False
    """Whether it is the primary of the workload."""
    placements: tuple[PlacementScene, ...] = ()


class View(Protocol):
    """An audience of the play: lines of text, or a picture."""

    @property
    def interactive(self) -> bool:
        """Whether a person may press keys: the world then goes on after the story."""
        ...

    def chapter(self, title: str, says: str = "") -> None:
        """Begin a chapter, by a sentence on the clusters; without one, that of the chapter before still holds."""
        ...

    def say(self, who: str, text: str) -> None:
        """Tell a sentence of a speaker: Ann, clusters, Overspill, check."""
        ...

    def quote(self, who: str, command: str, run: Callable[[], str]) -> None:
        """Tell the output of a command that somebody runs; a view without room for it does not run it."""
        ...

    def land(self, commit: LandedCommit) -> None:
        """Tell a new commit of the output branch."""
        ...

    def show(self, clusters: Sequence[ClusterScene]) -> None:
        """Show the clusters as they are now."""
        ...

    def wait(self, seconds: float) -> tuple[Key, ...]:
        """Let so much time pass, and return the keys that were pressed; the first of them ends the wait."""
        ...


class DemoTime(Protocol):
    """The time of a play."""

    def now(self) -> datetime:
        """Return the time of day in UTC, in whole seconds."""
        ...

    def lapse(self) -> float:
        """Return the seconds since the play began."""
        ...

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        ...


class WallTime:
    """The time of this machine."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._began = time.monotonic()

    def now(self) -> datetime:
        """Return the time of day in UTC, in whole seconds."""
        return self._clock.now()

    def lapse(self) -> float:
        """Return the seconds since the play began."""
        return time.monotonic() - self._began

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)
