"""What the engines say has become of placements: of which version, how far it is, and in whose words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.model.ids import ClusterName, PlacementName

MAX_MESSAGE = 300
"""As much as is kept of an engine's message: it goes into a commit message, and stays in memory for each placement."""


class EngineState(StrEnum):
    """How far an engine is with one version of a placement.

    PENDING: it does not have that version yet or, where the revision holds it, cannot say how it is: a git or chart
    server that is away makes nothing unhealthy. PROGRESSING: it is at it, or tries again. HEALTHY: all of it is applied
    and ready. FAILED: it has given up, and nothing more will happen without a commit.
    """

    PENDING = "Pending"
    PROGRESSING = "Progressing"
    HEALTHY = "Healthy"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """What an engine says of one placement.

    It is about the version with this `digest` (that of its placement.yaml, empty where the engine does not say) at the
    commit `revision` of the output branch (the full id, empty where unknown). `message` is the engine's own, one line.
    `since` is the moment since which it has been in this state, where the engine says so. One that is `leaving` is
    being deleted.
    """

    cluster: ClusterName
    placement: PlacementName
    digest: str
    revision: str
    state: EngineState
    message: str = ""
    since: datetime | None = None
    leaving: bool = False

    @property
    def path(self) -> str:
        """The directory of the placement, by which everything knows it."""
        return f"clusters/{self.cluster}/{self.placement}"
