"""Signals: sources that report how many replicas a workload is missing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRequest:
    """Replicas of a workload that a signal reports as missing."""

    signal: str
    """Label of the signal: "hpa llm/vllm", "kueue queue-a", "prometheus queue-depth", "schedule office-hours"."""
    replicas: int
    since: datetime
    cause: str
    """Clause that follows the label in commits and tables."""
    beyond: bool
    """
    Whether the replicas come on top of the workload object's own number, as those of an autoscaler at its maximum.
    Other requests may mean replicas that also wait as pods.
    """
    planned: bool = False
    """Whether the replicas were planned beforehand, and so wait for no scale-up window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandLevel:
    """The most replicas that were missing in each five minutes from one moment on, until the next level."""

    at: datetime
    missing: int | None
    """Without spare and foreseen ones; None where nobody watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """What a signal foresees of one workload."""

    request: ReplicaRequest | None
    """None where it foresees no more than are missing now."""
    statement: str
    """A sentence about it without a full stop, for people who ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalFreshness:
    """When a signal last answered, whether or not it asked for anything."""

    signal: str
    """Label of the signal, or the first word of the labels of all signals of one kind in a cluster ("hpa", "kueue")."""
    at: datetime | None
    """None before the first answer."""
    trouble: str = ""
    """Obstacle to the newest answer, if any."""


class Signal(Protocol):
    """An entry of `spec.signals` of a BurstPolicy.

    Each kind of signal is a frozen dataclass in a module of its own in `core.signals`, and a field of
    `core.schema.signals.SignalFile`, which is the register of kinds.
    """

    @property
    def label(self) -> str:
        """Name of the signal in commits, tables and messages: its kind, then the name of the entry."""
        ...

    @property
    def source(self) -> str:
        """External service that is asked for missing replicas ("Prometheus"); empty if the time alone decides.

        An adapter asks the service. The answers are in `Observed.asks` and `Observed.freshness` by workload and label.
        """
        ...

    def asks(self, now: datetime) -> tuple[ReplicaRequest, ...]:
        """Return what the time alone asks for, the same for each workload of the policy; nothing with a `source`."""
        ...

    @property
    def looks_back(self) -> timedelta:
        """How much of a workload's past demand `foresees` needs; zero for a signal that foresees nothing."""
        ...

    def foresees(self, levels: tuple[DemandLevel, ...], missing: int, now: datetime) -> Foresight:
        """Return what is foreseen of a workload with this past demand, of which so many replicas are missing now."""
        ...

    def next_change(self, now: datetime) -> datetime | None:
        """Return when `asks` changes next; None where it does not."""
        ...
