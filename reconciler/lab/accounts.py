"""What a run served, what it cost, and what each replica-second that was not served was lost to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.lab.world import PodCounts, SimulatedWorld
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Suppressed

HOUR = 3600
STARTING, NO_NODE, ENGINE, UNDECIDED = "StartUp", "NoNode", "EngineDelay", "Undecided"
"""What replicas were lost to beside the reasons of a plan: pods that start, pods without a node on their cluster,
commits that no engine has applied yet, and missing replicas of which the last decision said nothing."""


@dataclass(slots=True)
class WorkloadAccount:
    """One workload, in replica-seconds."""

    missing: int = 0
    unserved: int = 0
    longest_unserved: int = 0
    """The longest time with missing replicas of which none was served, in seconds."""
    served_after: Counter[int] = field(default_factory=Counter)
    """Replicas by the seconds that they were missing before they were served."""
    _before: int = 0
    _nothing_since: int | None = None
    _waiting: list[tuple[int, int]] = field(default_factory=list)

    @property
    def served_share(self) -> float:
        """The part of its missing replica-seconds that was served; 1 where none were missing."""
        return 1.0 if not self.missing else 1 - self.unserved / self.missing

    def add(self, begin: int, end: int, missing: int, served: int) -> None:
        """Account for a time in which nothing changes."""
        self.missing += missing * (end - begin)
        self.unserved += (missing - served) * (end - begin)
        if missing and not served:
            self._nothing_since = begin if self._nothing_since is None else self._nothing_since
            self.longest_unserved = max(self.longest_unserved, end - self._nothing_since)
        else:
            self._nothing_since = None

    def follow(self, now: int, missing: int, served: int) -> None:
        """Note the replicas that wait from now, that were served now, and that are not missing any more.

        Who waits longest is served first; who came last goes first.
        """
        arrived, gone = max(0, missing - self._before), max(0, self._before - missing)
        self._before = missing
        change = missing - served - sum(count for _, count in self._waiting)
        if change > 0:
            self._waiting.append((now, change))
        at_once = arrived - max(0, change)
        if at_once > 0:
            self.served_after[0] += at_once
        left = max(0, -change)
        for last_first in (True, False):
            taken = min(left, gone) if last_first else left
            left -= taken
            while taken > 0:
                since, count = self._waiting.pop(-1 if last_first else 0)
                part = min(count, taken)
                taken -= part
                if not last_first:
                    self.served_after[now - since] += part
                if count > part:
                    self._waiting.insert(len(self._waiting) if last_first else 0, (since, count - part))


@dataclass(frozen=True, slots=True)
class ServiceSample:
    """A moment at which something changed, for plots."""

    second: int
    missing: int
    """Replicas that the primary has no room for."""
    served: int
    """Replicas of them that are served."""
    gpus: Mapping[ClusterName, int]
    """GPUs of bursts with a node, by cluster, ready or not."""


class Accounts:
    """The accounts of one run."""

    def __init__(self, world: SimulatedWorld) -> None:
        """Begin at second 0."""
        self.workloads = {name: WorkloadAccount() for name in world.primary.demands}
        self.gpu_seconds = Counter[ClusterName]()
        """By cluster."""
        self.lost = Counter[str]()
        """Replica-seconds by what they were lost to."""
        self.starts = 0
        self.samples: list[ServiceSample] = []
        self._world = world

    def add(self, begin: int, end: int, held_back: Mapping[str, Sequence[Suppressed]]) -> None:
        """Account for the time from `begin` to `end`, in which nothing changes."""
        counts = {name: cluster.count(begin) for name, cluster in self._world.clusters.items()}
        on_the_way = self._world.on_the_way()
        all_missing = all_served = 0
        for name, account in self.workloads.items():
            missing = self._world.primary.missing(name)
            ready = sum(count.ready[name] for count in counts.values())
            served = min(missing, ready)
            account.follow(begin, missing, served)
            account.add(begin, end, missing, served)
            if missing > served:
                lost = self._losses(name, missing - served, counts, on_the_way, held_back.get(name, ()))
                for cause, replicas in lost.items():
                    self.lost[cause] += replicas * (end - begin)
            all_missing += missing
            all_served += served
        used = {name: cluster.gpus_in_use for name, cluster in self._world.clusters.items()}
        for name, gpus in used.items():
            self.gpu_seconds[name] += gpus * (end - begin)
        self.samples.append(ServiceSample(second=begin, missing=all_missing, served=all_served, gpus=used))

    def end(self) -> None:
        """Take the last figures of the world."""
        self.starts = sum(cluster.starts for cluster in self._world.clusters.values())

    @staticmethod
    def _losses(
        name: str,
        unserved: int,
        counts: Mapping[ClusterName, PodCounts],
        on_the_way: Counter[str],
        held_back: Sequence[Suppressed],
    ) -> Counter[str]:
        """Say what the replicas that are missing and not served at one moment are lost to."""
        losses = Counter[str]()
        causes = [
            (STARTING, sum(count.starting[name] for count in counts.values())),
            (NO_NODE, sum(count.pending[name] for count in counts.values())),
            (ENGINE, on_the_way[name]),
            *((str(item.reason), item.replicas) for item in held_back),
        ]
        for cause, replicas in causes:
            part = min(unserved, replicas)
            if part:
                losses[cause] += part
                unserved -= part
        if unserved:
            losses[UNDECIDED] += unserved
        return losses


def jain(shares: Sequence[float]) -> float:
    """Return Jain's fairness index of some shares: 1 where all are equal, 1/n where one has all.

    R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness and Discrimination, DEC-TR-301, 1984.
    """
    squares = sum(share * share for share in shares)
    return 1.0 if not squares else sum(shares) ** 2 / (len(shares) * squares)


def percentile(counts: Counter[int], share: float) -> int | None:
    """Return the least value that this share of all counted ones does not exceed; None of nothing."""
    total = counts.total()
    passed = 0
    for value in sorted(counts):
        passed += counts[value]
        if passed >= share * total:
            return value
    return None
