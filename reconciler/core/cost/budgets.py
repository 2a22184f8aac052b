"""What is spent of budgets, and how that is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from reconciler.core.cost.meter import NOTHING, Account, Amount, CostMeter
from reconciler.errors import Problem, Severity
from reconciler.model.budget import WARNED_AT, Budget, Budgets, BudgetState
from reconciler.model.ids import WorkspaceName
from reconciler.model.policy import Desired
from reconciler.text.timestamps import format_time

_KINDS = {"workspace": "Workspace", "policy": "BurstPolicy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The budgets of a fleet, by who has them."""

    workspaces: Mapping[WorkspaceName, Budget] = field(default_factory=dict)
    policies: Mapping[str, Budget] = field(default_factory=dict)

    @classmethod
    def of(cls, desired: Desired) -> Limits:
        """Collect the budgets in force."""
        return cls(
            workspaces={name: it.budget for name, it in desired.workspaces.items() if it.budget is not None},
            policies={policy.name: policy.budget for policy in desired.policies.values() if policy.budget is not None},
        )

    @property
    def any(self) -> bool:
        """Whether there is a budget at all."""
        return bool(self.workspaces or self.policies)


def month_of(now: datetime) -> datetime:
    """Return the beginning of the month, in UTC."""
    return datetime.combine(now.astimezone(UTC).date().replace(day=1), time(), UTC)


class Spent:
    """What is spent on a meter that has counted since the beginning of a month.

    What does not change with time is summed up once, so that a pass without changes adds what runs alone.
    """

    def __init__(self, meter: CostMeter) -> None:
        """Sum up what is settled; the meter may not change any more."""
        self.meter = meter
        self._settled = _sums(meter.settled())

    def budgets(self, limits: Limits, now: datetime) -> Budgets:
        """Return all budgets at a moment."""
        today = now.astimezone(UTC).date()
        running = _sums(self.meter.unsettled(now))

        def states(owner: str, budget: Budget) -> tuple[BudgetState, ...]:
            in_day, in_month = (
                self._settled.get((owner, day), NOTHING) + running.get((owner, day), NOTHING) for day in (today, None)
            )
            return tuple(_states(owner, budget, today, in_day, in_month))

        return Budgets(
            workspaces={name: states(f"workspace {name}", budget) for name, budget in limits.workspaces.items()},
            policies={name: states(f"policy {name}", budget) for name, budget in limits.policies.items()},
        )


def describe_used_up(state: BudgetState) -> str:
    """Say that a budget is used up, with the way out and when it begins anew."""
    kind, _, name = state.owner.partition(" ")
    return (
        f"the budget of {state.owner} for {state.period}, {state.limit:.2f} $, is used up"
        f" (raise spec.{state.field} of {_KINDS[kind]} {name}; it begins anew at {format_time(state.ends_at)})"
    )


def budget_problems(budgets: Budgets) -> Iterator[Problem]:
    """Warn of budgets that are nearly or wholly used up; the words stay the same, so that each is told once."""
    for state in budgets.states:
        about = f"the budget of {state.owner} for {state.period}, {state.limit:.2f} $,"
        if state.is_used_up:
            begins = format_time(state.ends_at)
            message = f"{about} is used up: nothing new is placed and no burst renewed before {begins}"
            yield _warning(message, f"raise spec.{state.field}, or see `overspill cost`")
        elif state.is_nearly_used_up:
            yield _warning(f"{WARNED_AT:.0%} of {about} are spent", "`overspill status` shows how much is left")
        if state.unpriced_gpu_hours:
            message = f"{about} leaves out GPU-hours on clusters without a price"
            yield _warning(message, "`overspill cost --by cluster` names them")


def _warning(message: str, hint: str) -> Problem:
    return Problem(path="", message=message, hint=hint, severity=Severity.WARNING)


def _sums(amounts: Mapping[tuple[Account, date], Amount]) -> Mapping[tuple[str, date | None], Amount]:
    """Sum up amounts by who has a budget, and by day; None stands for the whole month."""
    sums: dict[tuple[str, date | None], Amount] = {}
    for (account, day), amount in amounts.items():
        for owner in (f"workspace {account.workspace}", f"policy {account.policy}"):
            for period in (None, day):
                sums[owner, period] = sums.get((owner, period), NOTHING) + amount
    return sums


def _states(owner: str, budget: Budget, today: date, in_day: Amount, in_month: Amount) -> Iterator[BudgetState]:
    tomorrow, next_month = today + timedelta(days=1), (today.replace(day=1) + timedelta(days=31)).replace(day=1)
    for name, period, ends, limit, amount in (
        ("budget.perDay", f"{today:%Y-%m-%d}", tomorrow, budget.per_day, in_day),
        ("budget.perMonth", f"{today:%Y-%m}", next_month, budget.per_month, in_month),
    ):
        if limit is not None:
            yield BudgetState(
                owner=owner,
                field=name,
                period=period,
                ends_at=datetime.combine(ends, time(), UTC),
                limit=limit,
                spent=round(amount.dollars, 4),
                unpriced_gpu_hours=round(amount.unpriced_seconds / 3600, 4),
            )
