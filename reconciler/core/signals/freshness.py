"""Which signals with a source outside count now, and why the others are stale.

A stale signal must not be taken for one that asks for nothing. Its last answer is dropped, so that nothing new comes of
it; and as long as its demand is unknown, nothing is given back either (docs/background/concepts.md, "Promises").
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.model.capacity import Observed
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import BurstPolicy
from reconciler.model.signal import ReplicaRequest, SignalFreshness
from reconciler.model.units import format_duration


def fresh_asks(
    workload: WorkloadId, policy: BurstPolicy, observed: Observed, max_age: timedelta, now: datetime
) -> tuple[tuple[ReplicaRequest, ...], tuple[str, ...]]:
    """Return the requests of external sources for a workload, and a sentence about each stale signal of its policy."""
    asks = observed.asks.get(workload, ())
    sources = {signal.label: signal.source for signal in policy.signals if signal.source}
    if not sources:
        return asks, ()
    answers = {freshness.signal: freshness for freshness in observed.freshness.get(workload, ())}
    stale = {
        label: staleness(answers[label], max_age, now) if label in answers else _describe_unasked(source)
        for label, source in sources.items()
    }
    fresh = tuple(ask for ask in asks if not stale.get(ask.signal))
    return fresh, tuple(f"{label} {reason}" for label, reason in stale.items() if reason)


def staleness(freshness: SignalFreshness, max_age: timedelta, now: datetime) -> str:
    """Return why a signal is stale, or an empty string; `max_age` is that of an observation."""
    trouble = f" ({freshness.trouble})" if freshness.trouble else ""
    # 1. The signal has never answered.
    if freshness.at is None:
        return f"has not answered{trouble}"
    # 2. Its last answer is too old.
    age = now - freshness.at
    if age > max_age:
        return f"last answered {format_duration(age)} ago{trouble}"
    # 3. Its last answer is from the future: one of two clocks is wrong, and nothing says which.
    if -age > max_age:
        return f"answered {format_duration(-age)} in the future: compare the clocks"
    return ""


def _describe_unasked(source: str) -> str:
    return f"is not asked (is a {source} configured?)"
