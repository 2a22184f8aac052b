"""Amounts by workspace, workload, cluster, day and month."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from fractions import Fraction

from reconciler.core.capacity.gpu_models import plain_number
from reconciler.core.cost.meter import NOTHING, Account, Amount, CostMeter
from reconciler.model.ids import ClusterName


class CostGroup(StrEnum):
    """What amounts are told apart by."""

    WORKSPACE = "workspace"
    WORKLOAD = "workload"
    CLUSTER = "cluster"
    DAY = "day"
    MONTH = "month"


_KEYS: Mapping[CostGroup, Callable[[Account, date], str]] = {
    CostGroup.WORKSPACE: lambda account, _: account.workspace,
    CostGroup.WORKLOAD: lambda account, _: account.workload,
    CostGroup.CLUSTER: lambda account, _: account.cluster,
    CostGroup.DAY: lambda _, day: f"{day:%Y-%m-%d}",
    CostGroup.MONTH: lambda _, day: f"{day:%Y-%m}",
}
_TIMES = frozenset({CostGroup.DAY, CostGroup.MONTH})


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """The amounts of one group."""

    group: Mapping[str, str]
    """By the name of what is told apart."""
    gpu_hours: float
    unpriced_gpu_hours: float
    """The part of `gpu_hours` without a price, which `dollars` leaves out."""
    dollars: float
    gpus_now: float | None
    """GPUs that run at the end of the report; None where days or months are told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """What placements cost from one moment to another."""

    since: datetime
    until: datetime
    rows: tuple[CostRow, ...] = ()
    total: CostRow
    unpriced: Mapping[ClusterName, float] = field(default_factory=dict)
    """GPU-hours without a price by cluster."""
    uncounted: tuple[str, ...] = ()
    """Placements whose GPUs are unknown, and count as none."""


def report(meter: CostMeter, until: datetime, by: Sequence[CostGroup]) -> CostReport:
    """Group the amounts of a meter: the dearest first, or in the order of time where days or months are told apart."""
    timed = not _TIMES.isdisjoint(by)
    amounts = meter.amounts(until)
    groups: dict[tuple[str, ...], Amount] = {}
    running: dict[tuple[str, ...], int | Fraction] = {}
    unpriced: dict[ClusterName, int | Fraction] = {}
    for (account, day), amount in sorted(amounts.items()):
        key = tuple(_KEYS[group](account, day) for group in by)
        groups[key] = groups.get(key, NOTHING) + amount
        if amount.unpriced_seconds:
            unpriced[account.cluster] = unpriced.get(account.cluster, 0) + amount.unpriced_seconds
    for account, gpus in meter.gpus().items() if not timed else ():
        key = tuple(_KEYS[group](account, until.date()) for group in by)
        groups.setdefault(key, NOTHING)
        running[key] = running.get(key, 0) + gpus
    rows = [_row(by, key, amount, None if timed else running.get(key, 0)) for key, amount in sorted(groups.items())]
    if not timed:
        rows.sort(key=lambda row: (-row.dollars, -row.gpu_hours))
    return CostReport(
        since=meter.since,
        until=until,
        rows=tuple(rows),
        total=_row((), (), sum(groups.values(), NOTHING), sum(meter.gpus().values())),
        unpriced={cluster: _hours(seconds) for cluster, seconds in sorted(unpriced.items())},
        uncounted=tuple(sorted(meter.uncounted)),
    )


def _row(by: Sequence[CostGroup], key: tuple[str, ...], amount: Amount, gpus_now: int | Fraction | None) -> CostRow:
    return CostRow(
        group={group.value: value for group, value in zip(by, key, strict=True)},
        gpu_hours=_hours(amount.gpu_seconds),
        unpriced_gpu_hours=_hours(amount.unpriced_seconds),
        dollars=round(amount.dollars, 4),
        gpus_now=None if gpus_now is None else plain_number(gpus_now),
    )


def _hours(seconds: int | Fraction) -> float:
    return round(float(seconds / 3600), 4)
