"""What passes have found out about bursts that wait, kept from pass to pass.

Thousands of bursts that wait in a full fleet are what they were a pass ago. Everything here follows from files, from
the demand of one workload and from how many replicas it has elsewhere, so that it holds while these are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.demand import Demand


@dataclass(slots=True, kw_only=True)
class StandingBurst:
    """A burst without restraints, as its last turn found it. What is unknown so far is None."""

    demand: Demand
    placed: int
    """Its replicas elsewhere before the turn."""
    priority: int
    share: float
    """The part of its need that is placed."""
    since: datetime
    """Since when its first replica waits."""
    unit: int
    """Replicas that may be placed alone; 0 where all are placed together or none."""
    missing: int | None = None
    """Replicas that are due and within its policy; None where only a turn can tell."""
    due_at: datetime | None = None
    """From when on all of these are due."""
    message: str = ""
    """What is said where no cluster has room."""

    def holds(self, demand: Demand, placed: int) -> bool:
        """Tell whether all of it is true of a demand and of so many replicas elsewhere."""
        return self.demand is demand and self.placed == placed
