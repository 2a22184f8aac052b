"""Signals: what says that a workload is missing replicas, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRequest:
    """So many replicas that a signal says a workload is missing."""

    signal: str
    """Label of the signal: "hpa llm/vllm", "kueue queue-a", "prometheus queue-depth", "schedule office-hours"."""
    replicas: int
    since: datetime
    cause: str
    """Clause that follows the label in commits and tables."""
    beyond: bool
    """Whether the replicas come on top of those that the workload object itself asks for, as those of an autoscaler at
    its maximum. Other requests may mean replicas that also wait as pods."""
    planned: bool = False
    """Whether the replicas were planned beforehand, and so wait for no scale-up window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalFreshness:
    """When a signal last answered, whether or not it asked for anything."""

    signal: str
    """Label of the signal, or the first word of the labels of all signals of one kind in a cluster ("hpa", "kueue")."""
    at: datetime | None
    """None before the first answer."""
    trouble: str = ""
    """Obstacle to the newest answer, if there is one."""


class Signal(Protocol):
    """One entry of `spec.signals` of a BurstPolicy.

    Each kind of signal is a frozen dataclass in a module of its own in `core.signals`, and a field of
    `core.schema.signals.SignalFile`, which is the register of kinds.
    """

    @property
    def label(self) -> str:
        """Name of the signal in commits, tables and messages: its kind, then the name of the entry."""
        ...

    @property
    def source(self) -> str:
        """Service outside that knows what each workload is missing ("Prometheus"); empty where the time alone tells.

        An adapter asks the service. The answers are in `Observed.asks` and `Observed.freshness` by workload and label.
        """
        ...

    def asks(self, now: datetime) -> tuple[ReplicaRequest, ...]:
        """Return what the time alone asks for, the same for each workload of the policy; nothing with a `source`."""
        ...

    def next_change(self, now: datetime) -> datetime | None:
        """Return when `asks` changes next; None where it does not."""
        ...
