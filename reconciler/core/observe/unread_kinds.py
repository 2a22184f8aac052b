"""Kinds of objects that a cluster does not let anybody read: what is unknown of a workload for that.

Pods are read all the same, and tell what is missing. What their object alone says is unknown: how many it wants, and
who manages it. So nothing is given back on account of it, and no copy is begun of what runs once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.core.observe.kubernetes.resources import foreign_group
from reconciler.core.signals.freshness import staleness
from reconciler.model.capacity import ClusterObservation, UnreadKind
from reconciler.model.signal import SignalFreshness


def unread_kind(kinds: Iterable[UnreadKind], kind: str, group: str = "") -> UnreadKind | None:
    """Return the unread kind that a reference means; without a group that of Kubernetes, if it has one of the name."""
    return next((each for each in kinds if each.kind == kind and _is_group(each, group)), None)


def describe_unread(unread: UnreadKind, *, runs_once: bool) -> str:
    """Say of a workload what follows for it where nobody knows what its object says, and why."""
    follows = "it may begin there unseen" if runs_once else "its pods alone tell what is missing"
    return f"its {unread.kind} cannot be read: {follows} ({unread.why})"


def describe_stale(unread: UnreadKind, observation: ClusterObservation, max_age: timedelta, now: datetime) -> str:
    """Return a sentence about a kind that could be read once and cannot be any more; else an empty string.

    A cluster that has never given the right must not keep bursts from scaling down.
    """
    if unread.at is None:
        return ""
    reason = staleness(SignalFreshness(signal=unread.title, at=unread.at, trouble=unread.why), max_age, now)
    return f"{unread.title} of {observation.cluster} {reason}" if reason else ""


def _is_group(unread: UnreadKind, group: str) -> bool:
    return group == unread.group if group else not foreign_group(unread.kind, unread.group)
