"""The queue of all workloads that wait for room: those with missing replicas, requests and reservations."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.ids import WorkloadId


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The turn of one workload that waits for room."""

    # The highest comes first.
    priority: int
    # The moment since when it waits.
    since: datetime
    workload: WorkloadId
    # Places what has room, and suppresses the rest with the reason.
    take: Callable[[], None]


def serve(turns: Iterable[Turn], after: Callable[[Turn], Iterable[Turn]]) -> None:
    """Take all turns: the highest priority first, then the longest wait, then by name.

    `after` a turn others may have another one: those that were evicted for it, which go back into the queue.
    """
    queue = sorted(turns, key=_urgency)
    for position, turn in enumerate(queue, start=1):
        turn.take()
        for again in after(turn):
            insort(queue, again, lo=position, key=_urgency)


def _urgency(turn: Turn) -> tuple[int, datetime, WorkloadId]:
    return -turn.priority, turn.since, turn.workload
