"""Signals that clusters report of their workloads, beside the pods that wait: autoscalers and Kueue's Workloads.

No policy names them. They are read with the cluster's other objects and are part of its observation; what a kind asks
for is read in `core.observe.kubernetes`, where `resources.SIGNAL_KINDS` names the resource of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.signals.freshness import staleness
from reconciler.core.workloads.builtin_kinds import WATCHED
from reconciler.model.capacity import ClusterObservation
from reconciler.model.signal import ReplicaRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSignal:
    """A kind of signal that clusters report."""

    name: str
    """First word of the labels of such signals."""
    never_of: frozenset[str]
    """Kinds of workload objects that such a signal is never about."""


HPA = ClusterSignal(name="hpa", never_of=frozenset(kind.kind for kind in WATCHED if kind.once))
"""An autoscaler at its maximum. Autoscalers scale nothing that runs to its end."""

KUEUE = ClusterSignal(name="kueue", never_of=frozenset(kind.kind for kind in WATCHED if not kind.once))
"""A Workload that waits for quota. Of objects that never end Kueue holds back the pods, which wait as such."""

CLUSTER_SIGNALS: Mapping[str, ClusterSignal] = {signal.name: signal for signal in (HPA, KUEUE)}


def stale_kinds(observation: ClusterObservation, max_age: timedelta, now: datetime) -> Mapping[str, str]:
    """Return a sentence about each kind of signal that is stale in a cluster, by the name of the kind."""
    reasons = {freshness.signal: staleness(freshness, max_age, now) for freshness in observation.stale}
    return {kind: f"{kind} of {observation.cluster} {reason}" for kind, reason in reasons.items() if reason}


def fresh_cluster_asks(
    asks: tuple[ReplicaRequest, ...], object_kind: str, stale: Mapping[str, str]
) -> tuple[tuple[ReplicaRequest, ...], tuple[str, ...]]:
    """Return what a cluster asks for a workload, and the sentences about stale signals that the workload may have.

    `object_kind` is the kind of the workload object, empty if unknown. `stale` is that of `stale_kinds`.
    """
    fresh = tuple(ask for ask in asks if ask.signal.partition(" ")[0] not in stale)
    return fresh, tuple(reason for kind, reason in stale.items() if not _never(kind, object_kind))


def _never(kind: str, object_kind: str) -> bool:
    signal = CLUSTER_SIGNALS.get(kind)
    return signal is not None and object_kind in signal.never_of
