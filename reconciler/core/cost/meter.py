"""The meter: GPU-hours and dollars of placements, from the moments at which they or their prices changed.

A placement counts from its first commit to the one that ends it, with the replicas of its record: it is what clusters
were asked for, whether or not pods had nodes. A slice counts as its part of a GPU. The same changes give the same
amounts, to the last bit, in however many steps they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import NamedTuple

from reconciler.core.capacity.gpu_models import gpus_paid
from reconciler.core.cost.prices import NodeLabels, node_labels, price_pieces
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster

_HOUR = 3600


class Account(NamedTuple):
    """What placements are for, and where."""

    workspace: str
    workload: str
    """``llm/vllm``; empty where workloads are not told apart."""
    policy: str
    """Empty for requests."""
    cluster: ClusterName


@dataclass(frozen=True, slots=True)
class Amount:
    """The GPUs and the money of a time."""

    gpu_seconds: int | Fraction = 0
    unpriced_seconds: int | Fraction = 0
    """The part of `gpu_seconds` without a price."""
    dollars: float = 0.0
    """For the other part."""

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.gpu_seconds + other.gpu_seconds,
            self.unpriced_seconds + other.unpriced_seconds,
            self.dollars + other.dollars,
        )


NOTHING = Amount()


@dataclass(frozen=True, slots=True)
class _Running:
    """GPUs that run, since what was before has been counted."""

    gpus: int | Fraction
    since: datetime


class CostMeter:
    """Counts from a moment on; `place` and `price` are called in the order of time."""

    def __init__(self, since: datetime, *, by_workload: bool = True) -> None:
        """Begin with nothing that runs, and no prices."""
        self.since = since
        self._by_workload = by_workload
        self._clusters: Mapping[ClusterName, Cluster] = {}
        self._placements: dict[str, tuple[Account, NodeLabels, int | Fraction]] = {}
        self._running: dict[tuple[Account, NodeLabels], _Running] = {}
        self._counted: dict[tuple[Account, date], Amount] = {}
        self._uncounted: frozenset[str] = frozenset()

    def copy(self) -> CostMeter:
        """Return a meter that goes on from here by itself."""
        copy = CostMeter(self.since, by_workload=self._by_workload)
        copy._clusters = self._clusters
        copy._placements = self._placements.copy()
        copy._running = self._running.copy()
        copy._counted = self._counted.copy()
        copy._uncounted = self._uncounted
        return copy

    def place(self, path: str, placement: Placement | None, at: datetime) -> None:
        """Take note of a placement's record at its path as it is from a moment on; None once it has ended."""
        before = self._placements.pop(path, None)
        if before is not None:
            account, labels, gpus = before
            self._change(account, labels, -gpus, at)
        if placement is None:
            return
        account, labels = self._account(placement), node_labels(placement.shape)
        gpus = gpus_paid(placement.shape) * placement.shape.group_size * placement.replicas
        if placement.shape.obstacle:
            self._uncounted |= {placement.id}
        self._placements[path] = account, labels, gpus
        self._change(account, labels, gpus, at)

    def price(self, clusters: Mapping[ClusterName, Cluster], at: datetime) -> None:
        """Count by the prices of these Cluster files from a moment on."""
        if clusters is self._clusters:
            return
        for key, running in self._running.items():
            if self._clusters.get(key[0].cluster) != clusters.get(key[0].cluster):
                self._count(key, running, at, self._counted)
                self._running[key] = _Running(running.gpus, max(running.since, at))
        self._clusters = clusters

    def amounts(self, until: datetime) -> Mapping[tuple[Account, date], Amount]:
        """Return what has been counted of each account and day in UTC, what runs up to a moment."""
        counted = self._counted.copy()
        self._count_running(until, counted)
        return counted

    def settled(self) -> Mapping[tuple[Account, date], Amount]:
        """Return the part of all amounts that no later moment adds to; it stays the same while nothing changes."""
        return self._counted

    def unsettled(self, until: datetime) -> Mapping[tuple[Account, date], Amount]:
        """Return the other part, which runs up to a moment."""
        counted: dict[tuple[Account, date], Amount] = {}
        self._count_running(until, counted)
        return counted

    def gpus(self) -> Mapping[Account, int | Fraction]:
        """Return the GPUs that run by account."""
        gpus: dict[Account, int | Fraction] = {}
        for (account, _), running in self._running.items():
            gpus[account] = gpus.get(account, 0) + running.gpus
        return gpus

    @property
    def uncounted(self) -> frozenset[str]:
        """The ids of placements whose GPUs are unknown, and count as none."""
        return self._uncounted

    def _count_running(self, until: datetime, counted: dict[tuple[Account, date], Amount]) -> None:
        for key, running in self._running.items():
            self._count(key, running, until, counted)

    def _account(self, placement: Placement) -> Account:
        workload = placement.workload
        name = str(workload) if self._by_workload else ""
        return Account(workload.workspace, name, "" if workload.request else placement.policy, placement.cluster)

    def _change(self, account: Account, labels: NodeLabels, gpus: int | Fraction, at: datetime) -> None:
        """Count what has run until a moment, and go on with more or fewer GPUs."""
        key, since = (account, labels), max(at, self.since)
        running = self._running.get(key)
        if running is None:
            self._running[key] = _Running(gpus, since)
            return
        self._count(key, running, since, self._counted)
        left = running.gpus + gpus
        if left:
            self._running[key] = _Running(left, max(running.since, since))
        else:
            del self._running[key]

    def _count(
        self,
        key: tuple[Account, NodeLabels],
        running: _Running,
        until: datetime,
        counted: dict[tuple[Account, date], Amount],
    ) -> None:
        """Add what has run from its `since` until a moment, day by day."""
        (account, labels), begin = key, running.since
        cluster = self._clusters.get(account.cluster)
        while begin < until:
            day = begin.astimezone(UTC).date()
            end = min(until, datetime.combine(day + timedelta(days=1), time(), UTC))
            total = counted.get((account, day), NOTHING)
            for piece in price_pieces(cluster, labels, begin, end):
                seconds = int((piece.end - piece.begin).total_seconds()) * running.gpus
                if piece.price is None:
                    total += Amount(seconds, seconds)
                else:
                    total += Amount(seconds, 0, float(seconds / _HOUR) * piece.price)
            counted[account, day] = total
            begin = end
