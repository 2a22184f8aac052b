"""Measures budgets in each pass, where the fleet has any: what is spent follows from the two branches alone."""

from __future__ import annotations

from datetime import datetime

from reconciler.core.cost.budgets import Limits, Spent, limits_of, metered_since
from reconciler.daemon.cost.costs import CostReader
from reconciler.model.budget import NO_BUDGETS, Budgets
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity, Tips
from reconciler.ports import Repository


class BudgetReader:
    """Follows what is spent this month from tip to tip; a fleet without budgets costs nothing."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._desired: Desired | None = None
        self._limits: Limits = {}
        self._costs: CostReader | None = None
        self._spent: Spent | None = None

    def budgets(self, repository: Repository, author: Identity, desired: Desired, tips: Tips, now: datetime) -> Budgets:
        """Return the budgets of a fleet at a moment; `author` is the committer of our own commits."""
        if desired is not self._desired:
            self._desired, self._limits = desired, limits_of(desired)
        if not self._limits:
            self._costs = self._spent = None
            return NO_BUDGETS
        if self._costs is None:
            self._costs = CostReader(repository, author, by_workload=False)
        meter = self._costs.meter(tips, metered_since(now), now)
        if self._spent is None or self._spent.meter is not meter:
            self._spent = Spent(meter)
        return self._spent.budgets(self._limits, now)
