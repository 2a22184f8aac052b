"""What is spent of budgets, and how that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from operator import attrgetter
from typing import NamedTuple

from reconciler.core.cost.meter import NOTHING, Account, Amount, CostMeter
from reconciler.errors import Problem, Severity
from reconciler.model.budget import WARNED_AT, Budget, BudgetKind, BudgetOwner, Budgets, BudgetState
from reconciler.model.policy import Desired
from reconciler.text.timestamps import format_time

_FILE_KINDS: Mapping[BudgetKind, str] = {BudgetKind.WORKSPACE: "Workspace", BudgetKind.POLICY: "BurstPolicy"}

Limits = Mapping[BudgetOwner, Budget]
"""The budgets of a fleet, by who has them: those of workspaces first, by name."""


def limits_of(desired: Desired) -> Limits:
    """Collect the budgets in force."""
    workspaces = {name: workspace.budget for name, workspace in desired.workspaces.items()}
    policies = {policy.name: policy.budget for policy in desired.policies.values()}
    return {
        BudgetOwner(kind, name): budget
        for kind, budgets in ((BudgetKind.WORKSPACE, workspaces), (BudgetKind.POLICY, policies))
        for name, budget in sorted(budgets.items())
        if budget is not None
    }


class _Period(NamedTuple):
    """A time in which a budget counts, in whole days of UTC."""

    unit: str
    """Its length, as labels of metrics have it."""
    name: str
    begin: date
    end: date
    """The first day after it."""


def _day(today: date) -> _Period:
    return _Period("day", f"{today:%Y-%m-%d}", today, today + timedelta(days=1))


def _month(today: date) -> _Period:
    first = today.replace(day=1)
    return _Period("month", f"{today:%Y-%m}", first, (first + timedelta(days=31)).replace(day=1))


class _Bound(NamedTuple):
    """A field of a budget."""

    field: str
    limit: Callable[[Budget], float | None]
    period: Callable[[date], _Period]


_BOUNDS = (
    _Bound("budget.perDay", attrgetter("per_day"), _day),
    _Bound("budget.perMonth", attrgetter("per_month"), _month),
)


def metered_since(now: datetime) -> datetime:
    """Return the moment from which a meter has to count: the first begin of all periods, in UTC."""
    today = now.astimezone(UTC).date()
    return _midnight(min(bound.period(today).begin for bound in _BOUNDS))


class Spent:
    """What is spent on a meter that has counted since `metered_since`.

    What does not change with time is summed up by day once, so that a pass without changes counts what runs alone.
    """

    def __init__(self, meter: CostMeter) -> None:
        """Sum up what is settled; the meter may not change any more."""
        self.meter = meter
        self._settled = _by_owner(meter.settled())

    def budgets(self, limits: Limits, now: datetime) -> Budgets:
        """Return all budgets at a moment."""
        today = now.astimezone(UTC).date()
        running = _by_owner(self.meter.unsettled(now))
        return Budgets(
            by_owner={
                owner: tuple(_states(owner, budget, today, (self._settled, running)))
                for owner, budget in limits.items()
            }
        )


def describe_used_up(state: BudgetState) -> str:
    """Say that a budget is used up, with the way out and when it begins again."""
    return (
        f"the budget of {state.owner} for {state.period}, {state.limit:.2f} $, is used up"
        f" (raise spec.{state.field} of {_FILE_KINDS[state.owner.kind]} {state.owner.name};"
        f" it begins again at {format_time(state.ends_at)})"
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


_Sums = Mapping[BudgetOwner, Mapping[date, Amount]]


def _by_owner(amounts: Mapping[tuple[Account, date], Amount]) -> _Sums:
    """Sum up amounts by who may have a budget, and by day."""
    sums: dict[BudgetOwner, dict[date, Amount]] = {}
    for (account, day), amount in amounts.items():
        for kind, name in ((BudgetKind.WORKSPACE, account.workspace), (BudgetKind.POLICY, account.policy)):
            days = sums.setdefault(BudgetOwner(kind, name), {})
            days[day] = days.get(day, NOTHING) + amount
    return sums


def _states(owner: BudgetOwner, budget: Budget, today: date, parts: Iterable[_Sums]) -> Iterator[BudgetState]:
    days = [item for part in parts for item in part.get(owner, {}).items()]
    for bound in _BOUNDS:
        limit, period = bound.limit(budget), bound.period(today)
        if limit is not None:
            spent = sum((amount for day, amount in days if period.begin <= day < period.end), NOTHING)
            yield BudgetState(
                owner=owner,
                field=bound.field,
                unit=period.unit,
                period=period.name,
                ends_at=_midnight(period.end),
                limit=limit,
                spent=round(spent.dollars, 4),
                unpriced_gpu_hours=round(float(spent.unpriced_seconds / 3600), 4),
            )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
