"""All signals of one workload, added up so that no replica counts twice.

Signals overlap: a replica that a planned burst asks for may already wait as a pod, and the queue that Prometheus
reports is long because the pod waits. So of signals that may mean the same replicas the highest counts at each moment,
and never their sum. Only replicas beyond the workload object's own, which can be no pod of it yet, come on top of its
pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.model.capacity import MissingReplicas
from reconciler.model.signal import ReplicaRequest


class _Event(NamedTuple):
    """Replicas that fall due. Events sort in the order in which they count: by `due`, then by `rank`."""

    due: datetime
    rank: int
    signal: str
    since: datetime
    cause: str
    replicas: int


_PODS, _BEYOND, _OTHER, _PLANNED = range(4)


def merge(
    pods: int, waiting: Sequence[MissingReplicas], asks: Sequence[ReplicaRequest], window: timedelta
) -> tuple[MissingReplicas, ...]:
    """Add up the missing replicas as steps, in the order in which they fall due.

    At every moment the steps that are due sum up to ``max(pods + beyond, others)`` of what is due of each signal by
    itself: of the pods that wait at most `pods` in all, of asks the highest. Pods and asks fall due after the `window`,
    planned asks at once. The order of the signals makes no difference.
    """
    # Most workloads, of which there may be very many: no replica is missing, or pods of one moment wait.
    if not asks and (not waiting or (len(waiting) == 1 and 0 < waiting[0].replicas <= pods)):
        return tuple(waiting)
    events = [_Event(wait.since + window, _PODS, "", wait.since, wait.cause, wait.replicas) for wait in waiting]
    events += (_event(ask, window) for ask in asks)
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
    """Return the moment from which on the replicas of a step may be placed."""
    return step.since if step.planned else step.since + window


def _event(ask: ReplicaRequest, window: timedelta) -> _Event:
    """Return when an ask falls due, and what it counts against."""
    if ask.planned:
        return _Event(ask.since, _PLANNED, ask.signal, ask.since, ask.cause, ask.replicas)
    rank = _BEYOND if ask.beyond else _OTHER
    return _Event(ask.since + window, rank, ask.signal, ask.since, ask.cause, ask.replicas)
