"""The moments of each burst, as they were observed from outside, by the true clock (seconds since 1970)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

REST = 5.0
"""Seconds after a fall in which a commit on its way may still land."""

Placed = Mapping[tuple[str, str], int]
"""Replicas by cluster and workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A workload's object on a cluster."""

    replicas: int
    ready: int


@dataclass(slots=True)
class Burst:
    """One rise of one workload and what came of it. Of the moments by cluster the first counts, of ends the last."""

    workload: str
    replicas: int
    """Replicas beyond those that fit at home."""
    risen: float
    short: float | None = None
    """When pods of it were unschedulable at home."""
    falling: float | None = None
    """When its demand was first asked to go; home may have heard that long before it answered."""
    fallen: float | None = None
    """When its demand was gone for certain."""
    committed: dict[str, float] = field(default_factory=dict)
    """When the branch had it, by cluster."""
    applied: dict[str, float] = field(default_factory=dict)
    """When the cluster had its object."""
    running: dict[str, float] = field(default_factory=dict)
    """When all replicas of that object were ready."""
    reverted: dict[str, float] = field(default_factory=dict)
    """When the branch had it no more."""
    reverts: list[tuple[str, float]] = field(default_factory=list)
    """Each time that the branch had it no more: the cluster, and when."""
    gone: dict[str, float] = field(default_factory=dict)
    """When the cluster had its object no more."""


class Journal:
    """All bursts of a run. Watches tell what is there now; the moments follow."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = Lock()
        self._bursts: list[Burst] = []
        self._current: dict[str, Burst] = {}
        self._placed: Placed = {}
        self._deployed: dict[str, Mapping[str, Deployed]] = {}
        self._now = 0.0

    def bursts(self) -> tuple[Burst, ...]:
        """Return all bursts, in the order in which their demand rose."""
        with self._lock:
            return tuple(self._bursts)

    def is_open(self, workload: str) -> bool:
        """Tell whether the last burst of a workload is not over: it is wanted, placed, there, or may still land."""
        with self._lock:
            burst = self._current.get(workload)
            if burst is None:
                return False
            stands = any(name == workload for _, name in self._placed)
            is_there = any(workload in objects for objects in self._deployed.values())
            return burst.fallen is None or stands or is_there or self._now < burst.fallen + REST

    def rises(self, workload: str, replicas: int, at: float) -> None:
        """Note that the demand of a workload has risen."""
        with self._lock:
            self._current[workload] = burst = Burst(workload, replicas, at)
            self._bursts.append(burst)
            self._now = max(self._now, at)

    def falls(self, workload: str, asked: float, at: float) -> None:
        """Note that the demand of a workload is gone, which was first asked for at another moment."""
        with self._lock:
            self._current[workload].falling, self._current[workload].fallen = asked, at
            self._now = max(self._now, at)

    def sees_short(self, names: frozenset[str], at: float) -> None:
        """Note which workloads have unschedulable pods at home."""
        with self._lock:
            for name in names & self._current.keys():
                burst = self._current[name]
                if burst.short is None and burst.fallen is None:
                    burst.short = at

    def sees_branch(self, placed: Placed, at: float) -> None:
        """Note what the branch places."""
        with self._lock:
            self._now = max(self._now, at)
            for cluster, workload in placed.keys() - self._placed.keys():
                if (burst := self._current.get(workload)) is not None:
                    burst.committed.setdefault(cluster, at)
                    burst.reverted.pop(cluster, None)
            for cluster, workload in self._placed.keys() - placed.keys():
                if (burst := self._current.get(workload)) is not None:
                    burst.reverted[cluster] = at
                    burst.reverts.append((cluster, at))
            self._placed = dict(placed)

    def sees_cluster(self, cluster: str, objects: Mapping[str, Deployed], at: float) -> None:
        """Note which workloads' objects a cluster has."""
        with self._lock:
            self._now = max(self._now, at)
            before = self._deployed.get(cluster, {})
            for workload, deployed in objects.items():
                burst = self._current.get(workload)
                if burst is None:
                    continue
                if workload not in before:
                    burst.applied.setdefault(cluster, at)
                    burst.gone.pop(cluster, None)
                if deployed.ready >= deployed.replicas > 0:
                    burst.running.setdefault(cluster, at)
            for workload in before.keys() - objects.keys():
                if (burst := self._current.get(workload)) is not None:
                    burst.gone[cluster] = at
            self._deployed[cluster] = dict(objects)
