"""A scenario: demand, clusters with their owners, prices and outages, and the delays between a commit and a ready pod.

All times are whole seconds from the beginning of the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.model.ids import ClusterName

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday, midnight: owners by day and schedules see a plain week."""
PRIMARY = ClusterName("worker-1")


@dataclass(frozen=True, slots=True)
class Series:
    """A whole number over time, by the moments at which it changes."""

    points: tuple[tuple[int, int], ...]
    """Second and value, sorted, the first at second 0."""

    @classmethod
    def of(cls, points: Iterable[tuple[int, int]]) -> Series:
        """Make a series of points in order; those that change nothing are left out, and it is 0 before the first."""
        kept: list[tuple[int, int]] = [(0, 0)]
        for second, value in points:
            if second == kept[-1][0]:
                kept[-1] = (second, value)
            elif value != kept[-1][1]:
                kept.append((second, value))
        return cls(tuple(kept))

    def at(self, second: int) -> int:
        """Return the number at a moment."""
        return self.points[bisect_right(self.points, second, key=lambda point: point[0]) - 1][1]

    def next_change(self, second: int) -> int | None:
        """Return when the number next changes."""
        place = bisect_right(self.points, second, key=lambda point: point[0])
        return self.points[place][0] if place < len(self.points) else None

    @property
    def most(self) -> int:
        """The highest value."""
        return max(value for _, value in self.points)


NEVER = Series(((0, 0),))
"""A number that is always 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandScenario:
    """A workload: the replicas that are wanted over time, and those that its primary has room for."""

    name: str
    wanted: Series
    home: int
    """Replicas that run on the primary, at most."""
    gpus: int = 1
    """GPUs of one replica, all on one node."""
    model: str = ""
    """The GPU model that it needs; empty for any."""

    def missing(self, second: int) -> int:
        """Count the replicas that the primary has no room for."""
        return max(0, self.wanted.at(second) - self.home)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which the nodes of a cluster are gone, and with them its pods."""

    begin: int
    end: int
    seen: bool = True
    """Whether its API server answers meanwhile; nothing is observed of the cluster where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedNodes:
    """Nodes that the cluster's autoscaler adds for pods without a node, and takes away when they are empty."""

    most: int
    delay: int
    """Seconds until a node is there."""
    idle: int = 600
    """Seconds that a node stays empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterScenario:
    """A cluster to burst to."""

    name: ClusterName
    nodes: int
    gpus: int = 8
    """GPUs of a node."""
    model: str = "NVIDIA-H100-80GB-HBM3"
    price: float | None = None
    """Dollars for a GPU and hour."""
    start_up: int = 120
    """Seconds from a pod's node to its readiness: image, model, warm-up."""
    owners: Series = NEVER
    """GPUs that others use there; they take their room back from bursts."""
    outages: tuple[Outage, ...] = ()
    added: AddedNodes | None = None
    capacity_type: str = "on-demand"
    """The value of its label ``capacity``."""
    region: str = ""
    """The value of its label ``region``; empty for a cluster without it."""
    declared: int | None = None
    """Seconds to a ready pod by its Cluster file; None where it says nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole run."""

    name: str
    about: str
    """What it shows, in one line."""
    length: int
    demands: tuple[DemandScenario, ...]
    clusters: tuple[ClusterScenario, ...]
    engine_delay: int = 20
    """Seconds from a pushed commit to the pods that it asks for, and to their end."""
    tick: int = 1
    """Seconds between two looks at the clusters, at least."""
