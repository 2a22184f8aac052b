"""What several signals say of one workload, put together so that nothing counts twice.

Signals overlap: a replica that a planned burst asks for may wait as a pod already, and the queue that Prometheus tells
of is long because it waits. So of signals that may mean the same replicas the highest counts, at each moment, and never
their sum. Only what is beyond the workload object's own replicas, and so can be no pod of it, comes on top of its pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.model.capacity import MissingReplicas, ReplicaRequest


class _Event(NamedTuple):
    """One signal's word, in the order in which words count: when due, then pods, what is beyond them, the others."""

    due: datetime
    rank: int
    signal: str
    since: datetime
    cause: str
    replicas: int


_PODS, _BEYOND, _OTHER, _PLANNED = range(4)


def merged(
    pods: int,
    waiting: Sequence[MissingReplicas],
    asks: Sequence[ReplicaRequest],
    planned: Sequence[ReplicaRequest],
    window: timedelta,
) -> tuple[MissingReplicas, ...]:
    """Add up what is missing, as steps in the order in which they fall due.

    At every moment the steps that are due sum up to ``max(pods + beyond, others)`` of what is due of each signal by
    itself: of the pods that wait at most `pods` in all, of asks the highest. What waits or is asked for falls due when
    it has lasted for the `window`, what is `planned` at once. The order of the signals makes no difference.
    """
    # What most workloads are like, of which there may be very many: they want nothing, or pods of one moment wait.
    if not (asks or planned) and (not waiting or (len(waiting) == 1 and 0 < waiting[0].replicas <= pods)):
        return tuple(waiting)
    events = [
        *(_Event(wait.since + window, _PODS, "", wait.since, wait.cause, wait.replicas) for wait in waiting),
        *(
            _Event(
                ask.since + window, _BEYOND if ask.beyond else _OTHER, ask.signal, ask.since, ask.cause, ask.replicas
            )
            for ask in asks
        ),
        *(_Event(ask.since, _PLANNED, ask.signal, ask.since, ask.cause, ask.replicas) for ask in planned),
    ]
    steps: list[MissingReplicas] = []
    waited = beyond = others = reached = 0
    for event in sorted(events):
        if event.rank == _PODS:
            waited = min(pods, waited + event.replicas)
        elif event.rank == _BEYOND:
            beyond = max(beyond, event.replicas)
        else:
            others = max(others, event.replicas)
        level = max(waited + beyond, others)
        if level > reached:
            steps.append(
                MissingReplicas(
                    replicas=level - reached,
                    since=event.since,
                    cause=event.cause,
                    signal=event.signal,
                    planned=event.rank == _PLANNED,
                )
            )
            reached = level
    return tuple(steps)


def due(step: MissingReplicas, window: timedelta) -> datetime:
    """Tell from when on replicas may be placed."""
    return step.since if step.planned else step.since + window
