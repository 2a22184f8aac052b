"""One queue for all that waits for room: replicas that are missing at home, and what people asked for by name."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.ids import WorkloadId


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A workload that waits `since` a moment. To `take` its turn gives it what is there, and tells what is not."""

    priority: int
    since: datetime
    workload: WorkloadId
    take: Callable[[], None]


def serve(turns: Iterable[Turn], after: Callable[[Turn], Iterable[Turn]]) -> None:
    """Let all have their turns: the highest priority first, then who has waited longest, then by name.

    What comes `after` a turn may be turns of others, whom it has put back into the queue.
    """
    queue = sorted(turns, key=_urgency)
    for position, turn in enumerate(queue, start=1):
        turn.take()
        for again in after(turn):
            insort(queue, again, lo=position, key=_urgency)


def _urgency(turn: Turn) -> tuple[int, datetime, WorkloadId]:
    return -turn.priority, turn.since, turn.workload
