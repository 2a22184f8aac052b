"""What is made of the newest snapshot once, since it is read far more often than it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reconciler.daemon.snapshot import Snapshot

T = TypeVar("T")


class SnapshotCache(Generic[T]):
    """Keeps what `make` makes of the newest snapshot. Safe to use from several threads, which may make it twice."""

    def __init__(self, make: Callable[[Snapshot], T]) -> None:
        """Begin with nothing."""
        self._make = make
        self._last: tuple[Snapshot, T] | None = None

    def of(self, snapshot: Snapshot) -> T:
        """Return what is made of a snapshot."""
        last = self._last
        if last is None or last[0] is not snapshot:
            last = self._last = snapshot, self._make(snapshot)
        return last[1]
