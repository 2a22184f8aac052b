"""The world of the bench."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.capacity import Observed
from tests.bench import fleet


@dataclass(slots=True)
class Stage:
    """What the bench shows to the daemon: a time and an observation, both set by hand."""

    moment: datetime = fleet.START
    observed: Observed = field(default_factory=Observed)

    def now(self) -> datetime:
        return self.moment

    def follow(self, desired: object) -> None:
        """Show the same whatever is asked for."""

    def observe(self) -> Observed:
        return self.observed
