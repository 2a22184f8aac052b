"""Budgets: the dollars that placements may cost in a day and in a month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from reconciler.model.ids import WorkloadId, WorkspaceName

WARNED_AT = 0.8
"""The part of a budget that is spent when it is warned of."""


class BudgetKind(StrEnum):
    """The kinds of files that set budgets, in the words of messages and labels."""

    WORKSPACE = "workspace"
    POLICY = "policy"


class BudgetOwner(NamedTuple):
    """The Workspace or BurstPolicy that has a budget."""

    kind: BudgetKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def workspace(self) -> WorkspaceName | None:
        """The workspace; None for a policy, which workloads of several may share."""
        return WorkspaceName(self.name) if self.kind is BudgetKind.WORKSPACE else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The bounds of a Workspace or of a BurstPolicy, in dollars; None for no bound."""

    per_day: float | None = None
    per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A budget in its present day or month, in UTC."""

    owner: BudgetOwner
    field: str
    """The field that sets it: ``budget.perDay``."""
    unit: str
    """The length of its period: ``day`` or ``month``."""
    period: str
    """``2026-11-23`` or ``2026-11``."""
    ends_at: datetime
    """When the next day or month begins."""
    limit: float
    """In dollars."""
    spent: float
    """In dollars, up to now."""
    unpriced_gpu_hours: float
    """GPU-hours that are not in `spent`, since they have no price."""

    @property
    def is_used_up(self) -> bool:
        """Whether nothing more may be placed."""
        return self.spent >= self.limit

    @property
    def is_nearly_used_up(self) -> bool:
        """Whether it is time to warn."""
        return not self.is_used_up and self.spent >= WARNED_AT * self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """All budgets at one moment."""

    by_owner: Mapping[BudgetOwner, tuple[BudgetState, ...]] = field(default_factory=dict)
    """Those of workspaces first, by name."""

    @property
    def states(self) -> tuple[BudgetState, ...]:
        """All of them."""
        return tuple(state for states in self.by_owner.values() for state in states)

    def used_up(self, workload: WorkloadId, policy: str) -> BudgetState | None:
        """Return the budget that keeps a workload from getting more; of several the one that lasts longest.

        It is asked before replicas begin and before a burst is renewed. Moves do not ask, nor do updates: what runs may
        exceed a budget until it ends. No budget has the policy of a request, which is in no file.
        """
        if not self.by_owner:
            return None
        owners = BudgetOwner(BudgetKind.WORKSPACE, workload.workspace), BudgetOwner(BudgetKind.POLICY, policy)
        states = (state for owner in owners for state in self.by_owner.get(owner, ()))
        return max((state for state in states if state.is_used_up), key=lambda state: state.ends_at, default=None)


NO_BUDGETS = Budgets()
