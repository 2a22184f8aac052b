"""Budgets: the dollars that placements may cost in a day and in a month."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.ids import WorkloadId, WorkspaceName

WARNED_AT = 0.8
"""The part of a budget that is spent when it is warned of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The bounds of a Workspace or of a BurstPolicy, in dollars; None for no bound."""

    per_day: float | None = None
    per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A budget in its present day or month, in UTC."""

    owner: str
    """``workspace llm`` or ``policy serving``."""
    field: str
    """The field that sets it: ``budget.perDay``."""
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

    workspaces: Mapping[WorkspaceName, tuple[BudgetState, ...]] = field(default_factory=dict)
    policies: Mapping[str, tuple[BudgetState, ...]] = field(default_factory=dict)

    @property
    def states(self) -> tuple[BudgetState, ...]:
        """All of them, those of workspaces first, by name."""
        return tuple(
            state for part in (self.workspaces, self.policies) for _, states in sorted(part.items()) for state in states
        )

    def used_up(self, workload: WorkloadId, policy: str) -> BudgetState | None:
        """Return the budget that keeps a workload from getting more; of several the one that lasts longest.

        Budgets of policies do not count for requests.
        """
        if not self.workspaces and not self.policies:
            return None
        states: Iterable[BudgetState] = self.workspaces.get(workload.workspace, ())
        if not workload.request:
            states = (*states, *self.policies.get(policy, ()))
        return max((state for state in states if state.is_used_up), key=lambda state: state.ends_at, default=None)


NO_BUDGETS = Budgets()
