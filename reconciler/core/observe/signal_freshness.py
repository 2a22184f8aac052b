"""Which signals can be believed now: those from elsewhere, and those of the primary cluster.

A signal that cannot be heard must not be taken for one that is content. What it asked for last is forgotten, so that
nothing new comes of it; and as long as nobody knows what it would ask for, nothing is given back either
(docs/concepts.md, "Promises").
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.model.capacity import ClusterObservation, Observed, ReplicaRequest, SignalFreshness
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import BurstPolicy, Fleet
from reconciler.model.units import format_duration

_NEVER = {
    "hpa": frozenset({"Job"}),
    "kueue": frozenset({"Deployment", "StatefulSet", "ReplicaSet"}),
}
"""The kinds of workload objects that a kind of signal says nothing of: an autoscaler scales no Job, and of what never
ends Kueue holds back the pods, which wait as such."""


def heard(
    workload: WorkloadId, policy: BurstPolicy, fleet: Fleet, observed: Observed, now: datetime
) -> tuple[tuple[ReplicaRequest, ...], tuple[str, ...]]:
    """Give what is asked for a workload from elsewhere, and why each signal that cannot be heard is not."""
    asks = observed.asks.get(workload, ())
    if not policy.queries:
        return asks, ()
    hearings = {hearing.signal: hearing for hearing in observed.hearings.get(workload, ())}
    unheard = {query.signal: _unheard(hearings.get(query.signal), fleet, now) for query in policy.queries}
    believed = tuple(ask for ask in asks if not unheard.get(ask.signal))
    return believed, tuple(f"{signal} {why}" for signal, why in unheard.items() if why)


def silent(observation: ClusterObservation, fleet: Fleet, now: datetime) -> Mapping[str, str]:
    """Say of each kind of signal of a cluster that counts as unheard why it does."""
    told = {hearing.signal: _unheard(hearing, fleet, now) for hearing in observation.unheard}
    return {kind: f"{kind} of {observation.cluster} {why}" for kind, why in told.items() if why}


def believed(
    asks: tuple[ReplicaRequest, ...], object_kind: str, silence: Mapping[str, str]
) -> tuple[tuple[ReplicaRequest, ...], tuple[str, ...]]:
    """Give what a cluster still asks for a workload, and why each kind of signal that it could have is unheard.

    `object_kind` is what the workload object is, empty where nobody knows.
    """
    left = tuple(ask for ask in asks if ask.signal.partition(" ")[0] not in silence)
    return left, tuple(why for kind, why in silence.items() if object_kind not in _NEVER.get(kind, ()))


def _unheard(hearing: SignalFreshness | None, fleet: Fleet, now: datetime) -> str:
    """Say why a signal counts as unheard, or return an empty string; the rule is that of an observation's age."""
    if hearing is None:
        return "is not asked (is a Prometheus configured?)"
    told = f" ({hearing.trouble})" if hearing.trouble else ""
    if hearing.at is None:
        return f"has not answered{told}"
    age, limit = now - hearing.at, fleet.observation_max_age
    if age > limit:
        return f"last answered {format_duration(age)} ago{told}"
    if -age > limit:
        return f"answered {format_duration(-age)} in the future: compare the clocks"
    return ""
