"""*Money*: what placements have cost by workspace, workload, cluster and month, and what is left of each budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.cost.rate import hourly_rate
from reconciler.core.cost.report import CostGroup, CostRow, report
from reconciler.daemon.answers.desk import CostAnswer
from reconciler.model.budget import BudgetState
from reconciler.model.ids import WorkspaceName
from reconciler.web.viewer import Viewer

GROUPS = (CostGroup.WORKSPACE, CostGroup.WORKLOAD, CostGroup.CLUSTER, CostGroup.MONTH)
MONTHS = 3
"""Months that are added up: the present one and those before."""
_MOST_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyRow:
    """What one workspace, workload, cluster or month has cost."""

    name: str
    dollars: float
    gpu_hours: float
    unpriced_gpu_hours: float
    share: float
    """Its part of the dearest row, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyTable:
    """The amounts of one group."""

    group: str
    rows: tuple[MoneyRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """The view."""

    since: datetime
    until: datetime
    dollars: float
    gpu_hours: float
    unpriced_gpu_hours: float
    rate: float
    """Dollars an hour, as it is now."""
    unpriced_gpus: float
    """GPUs that run now without a price."""
    tables: tuple[MoneyTable, ...]
    budgets: tuple[BudgetState, ...]


def first_month(now: datetime) -> datetime:
    """Return the beginning of the first month that is added up."""
    begin = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(MONTHS - 1):
        begin = (begin - timedelta(days=1)).replace(day=1)
    return begin


def money_view(viewer: Viewer, answer: CostAnswer) -> Money:
    """Add up what a viewer may see."""
    inputs = viewer.snapshot.decision.inputs
    rows = [
        row
        for row in report(answer.meter, answer.until, GROUPS).rows
        if viewer.may_see(WorkspaceName(row.group[CostGroup.WORKSPACE]))
    ]
    placements = [
        placement for placement in inputs.ledger.placements.values() if viewer.may_see(placement.workload.workspace)
    ]
    rate = hourly_rate(placements, inputs.desired.clusters, inputs.now)
    return Money(
        since=answer.meter.since,
        until=answer.until,
        dollars=sum(row.dollars for row in rows),
        gpu_hours=sum(row.gpu_hours for row in rows),
        unpriced_gpu_hours=sum(row.unpriced_gpu_hours for row in rows),
        rate=rate.dollars,
        unpriced_gpus=rate.unpriced_gpus,
        tables=tuple(_table(group, rows) for group in GROUPS),
        budgets=tuple(
            state for state in inputs.budgets.states if viewer.sees_all or state.owner.workspace in viewer.workspaces
        ),
    )


def _table(group: CostGroup, rows: Iterable[CostRow]) -> MoneyTable:
    """Add the rows up by one of the groups: months in their order, all others the dearest first."""
    sums: dict[str, tuple[float, float, float]] = {}
    for row in rows:
        dollars, hours, unpriced = sums.get(row.group[group], (0.0, 0.0, 0.0))
        sums[row.group[group]] = (
            dollars + row.dollars,
            hours + row.gpu_hours,
            unpriced + row.unpriced_gpu_hours,
        )
    order: Sequence[str] = sorted(sums, reverse=group is CostGroup.MONTH)
    if group is not CostGroup.MONTH:
        order = sorted(sums, key=lambda name: (-sums[name][0], -sums[name][1], name))
    dearest = max((dollars for dollars, _, _ in sums.values()), default=0.0)
    return MoneyTable(
        group=group.value,
        rows=tuple(
            MoneyRow(
                name=name,
                dollars=sums[name][0],
                gpu_hours=sums[name][1],
                unpriced_gpu_hours=sums[name][2],
                share=sums[name][0] / dearest if dearest else 0.0,
            )
            for name in order[:_MOST_ROWS]
        ),
        left_out=max(0, len(order) - _MOST_ROWS),
    )
