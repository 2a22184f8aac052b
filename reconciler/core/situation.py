"""Everything that one decision is made from, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.core.demand import Demands
from reconciler.core.reach import Reach
from reconciler.model.capacity import Observed
from reconciler.model.ledger import Ledger
from reconciler.model.policy import Desired


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is wanted, what is there, what was seen, what is missing, and when. The same situation, the same plan.

    `reach` follows from `desired` alone and is kept beside it because it is costly to work out.
    """

    desired: Desired
    ledger: Ledger
    observed: Observed
    demands: Demands
    now: datetime
    reach: Reach
