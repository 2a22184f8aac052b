"""All signals of one workload, added up so that no replica counts twice.

Signals overlap: a replica that a planned burst asks for may already wait as a pod, and the queue that Prometheus
reports is long because the pod waits. So of signals that may mean the same replicas the highest counts at each moment,
and never their sum. Only replicas beyond the workload object's own, which can be no pod of it yet, come on top of its
pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.model.bounds import ASKED_REPLICAS
from reconciler.model.capacity import MissingReplicas
from reconciler.model.signal import ReplicaRequest
from reconciler.text.wording import count


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
    itself: of the pods that wait at most `pods` in all, of asks the highest, and of each no more than its bound. Pods
    and asks fall due after the `window`, planned asks at once. The order of the signals makes no difference.
    """
    pods = min(pods, ASKED_REPLICAS.most)
    # Most workloads, of which there may be very many: no replica is missing, or pods of one moment wait.
    if not asks and (not waiting or (len(waiting) == 1 and 0 < waiting[0].replicas <= pods)):
        return tuple(waiting)
    events = [_Event(wait.since + window, _PODS, "", wait.since, wait.cause, wait.replicas) for wait in waiting]
    events += (_event(ask, window) for ask in asks)
    steps: list[MissingReplicas] = []
    waited = beyond = others = reached = 0
    for event in sorted(events):
        replicas = min(event.replicas, ASKED_REPLICAS.most)
        if event.rank == _PODS:
            waited = min(pods, waited + replicas)
        elif event.rank == _BEYOND:
            beyond = max(beyond, replicas)
        else:
            others = max(others, replicas)
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


HEADROOM = "headroom"
"""The signal of spare replicas."""


def with_headroom(
    steps: tuple[MissingReplicas, ...], spare: int, lasts: timedelta | None, now: datetime
) -> tuple[MissingReplicas, ...]:
    """Add spare replicas to those that are missing; they fall due with the first of them.

    None without any, and none of a demand that is steady: that has not grown for as long as headroom `lasts`.
    """
    if not steps or not spare:
        return steps
    if lasts is not None and headroom_end(steps, lasts) <= now:
        return steps
    first = min(steps, key=lambda step: (not step.planned, step.since))
    cause = f"keeps {count(spare, 'replica')} spare"
    return (*steps, replace(first, replicas=spare, cause=cause, signal=HEADROOM, spare=True, group=""))


def with_foreseen(
    steps: tuple[MissingReplicas, ...], requests: Sequence[ReplicaRequest]
) -> tuple[MissingReplicas, ...]:
    """Add the replicas of the highest forecast that go beyond all that are missing and spare.

    A spare replica is there for the next one that is missing, foreseen or not, so that they are not added up.
    """
    if not requests:
        return steps
    highest = max(requests, key=lambda request: (request.replicas, request.signal))
    more = highest.replicas - sum(step.replicas for step in steps)
    if more <= 0:
        return steps
    foreseen = MissingReplicas(
        replicas=more,
        since=highest.since,
        cause=highest.cause,
        signal=highest.signal,
        planned=highest.planned,
        spare=True,
    )
    return (*steps, foreseen)


def headroom_end(steps: tuple[MissingReplicas, ...], lasts: timedelta) -> datetime:
    """Return the moment from which on missing replicas, of which there is one at least, are a steady demand."""
    return max(step.since for step in steps if not step.spare) + lasts


def due(step: MissingReplicas, window: timedelta) -> datetime:
    """Return the moment from which on the replicas of a step may be placed."""
    return step.since if step.planned else step.since + window


def _event(ask: ReplicaRequest, window: timedelta) -> _Event:
    """Return the due time of an ask, and the sum that it counts towards."""
    if ask.planned:
        return _Event(ask.since, _PLANNED, ask.signal, ask.since, ask.cause, ask.replicas)
    rank = _BEYOND if ask.beyond else _OTHER
    return _Event(ask.since + window, rank, ask.signal, ask.since, ask.cause, ask.replicas)
