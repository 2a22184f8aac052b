"""Reports of engines about placements: the version, its state, and the engine's message."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.model.ids import ClusterName, PlacementName

MAX_MESSAGE = 300
"""
Characters of an engine's message that are kept: the message goes into commits, and stays in memory for each placement.
"""


class EngineState(StrEnum):
    """The state of one version of a placement in its engine.

    PENDING: the engine does not have that version yet or, for a version that it has, cannot tell its state: an
    unreachable git or chart server makes nothing unhealthy. PROGRESSING: it applies the version, or tries again.
    HEALTHY: all objects are applied and ready. FAILED: it has given up; nothing changes without a commit.
    """

    PENDING = "Pending"
    PROGRESSING = "Progressing"
    HEALTHY = "Healthy"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSource:
    """Where an engine fetches a placement from, by its own object."""

    branch: str
    """The short name of the branch."""
    repo_url: str = ""
    """The address of the repository; empty where the object is bound to the fleet's own by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """The report of an engine about one placement."""

    cluster: ClusterName
    placement: PlacementName
    digest: str
    """Digest of the placement.yaml that it is about; empty where the engine does not report it."""
    revision: str
    """Full id of the commit of the output branch that it is about; empty where unknown."""
    state: EngineState
    message: str = ""
    """The engine's own message, one line."""
    since: datetime | None = None
    """When the state began, where the engine reports it."""
    leaving: bool = False
    """Whether the engine's object is being deleted."""
    source: ReportedSource | None = None
    """What `revision` is a commit of; None where that is unknown."""

    @property
    def path(self) -> str:
        """The directory of the placement, its unique key."""
        return f"clusters/{self.cluster}/{self.placement}"
