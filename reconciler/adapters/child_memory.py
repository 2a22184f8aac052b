"""The memory that child processes may take together, by the memory limit of the daemon's container.

Each helm and each Apprise has a bound of its own; here is how many of them run at once, so that the largest charts and
answers of all tenants leave the daemon its part. Where the container is small, fewer run at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from reconciler.adapters import operating_system
from reconciler.model.bounds import CHART_MEMORY, CHART_PROCESSES, MESSAGE_MEMORY, MESSAGE_PROCESSES, InputBound

_EIGHTH = 3
"""Bits of a shift by which a limit becomes an eighth of it."""
_HELMS, _MESSAGES = 3, 2
"""Eighths of the limit; what is left is for the daemon, its git, and what it keeps of clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildBounds:
    """Processes of one kind: how many at once, and the bytes of each."""

    processes: int
    memory: int


def helm_bounds(limit: int) -> ChildBounds:
    """Return the bounds of helms for a container of so many bytes."""
    return _bounds(limit, _HELMS, CHART_MEMORY, CHART_PROCESSES)


def message_bounds(limit: int) -> ChildBounds:
    """Return the bounds of Apprise's processes for a container of so many bytes."""
    return _bounds(limit, _MESSAGES, MESSAGE_MEMORY, MESSAGE_PROCESSES)


@cache
def own_limit() -> int:
    """Return the memory limit of this process's container, or of its machine, as of the first call."""
    return operating_system.memory_limit()


def _bounds(limit: int, eighths: int, each: InputBound, most: InputBound) -> ChildBounds:
    share = (limit >> _EIGHTH) * eighths
    memory = min(each.most, share)
    return ChildBounds(processes=max(1, min(most.most, share // memory)), memory=memory)
