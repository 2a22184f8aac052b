"""Which placements have arrived, and which ail: what engines and pods say, as far as it is about what stands.

It is kept by cluster, and judged anew (`core.judging`) only where something has changed: on a branch of many thousand
placements each engine has something to say all the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import is_

from reconciler.core.demand import unseen
from reconciler.model.capacity import Observed
from reconciler.model.deployed import EngineReport, EngineState
from reconciler.model.ids import ClusterName
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.policy import Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFailure:
    """That a version of a placement is not healthy, since when as far as anybody has watched, and in whose words.

    It is `behind` while it runs well and its engine merely has not got this version: it has the one before, or nothing
    that can be seen.
    """

    digest: str
    state: EngineState
    message: str
    since: datetime
    behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSigns:
    """Everything that tells how placements are; `seen` are the clusters that somebody sees now."""

    ledger: Ledger
    observed: Observed
    seen: frozenset[ClusterName]

    @classmethod
    def of(cls, ledger: Ledger, observed: Observed, fleet: Fleet, now: datetime) -> RolloutSigns:
        """Put the signs of one moment together."""
        seen = frozenset(name for name in observed.clusters if not unseen(fleet, observed, name, now))
        return cls(ledger=ledger, observed=observed, seen=seen)

    def same_as(self, other: RolloutSigns | None) -> bool:
        """Tell whether nothing has changed; looks at no placement."""
        if other is None or self.seen != other.seen or self.observed.reporting != other.observed.reporting:
            return False
        mine, theirs = self.parts(), other.parts()
        return len(mine) == len(theirs) and all(map(is_, mine, theirs))

    def parts(self) -> list[object]:
        """Return what it is made from, each the same object for as long as it has not changed."""
        seen = self.observed.clusters
        return [self.ledger, self.observed.reports, *(seen[name].ready for name in sorted(seen) if seen[name].ready)]

    def ready(self, cluster: ClusterName) -> object:
        """Return how many pods of placements are ready in a cluster, None where nobody tells."""
        observation = self.observed.clusters.get(cluster)
        return observation.ready if observation and observation.ready else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRollouts:
    """The placements of one cluster, by directory.

    `arrived` holds the digest of the version at which each was healthy once, `ailing` those that are not healthy now,
    `leaving` the reports on what the ledger does not hold any more. It is `open` while some report is about a commit
    that nobody knows here.
    """

    arrived: Mapping[str, str] = field(default_factory=dict)
    ailing: Mapping[str, RolloutFailure] = field(default_factory=dict)
    leaving: Mapping[str, EngineReport] = field(default_factory=dict)
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollouts:
    """What is known of all placements; `signs` is what it was read from.

    `ailing` are those of all clusters, `leaving` in the order of their directories. `watched` is since when each
    cluster that is seen now has been in sight without a break, and its engine with it.
    """

    wards: Mapping[ClusterName, ClusterRollouts] = field(default_factory=dict)
    ailing: Mapping[str, RolloutFailure] = field(default_factory=dict)
    leaving: tuple[EngineReport, ...] = ()
    signs: RolloutSigns | None = None
    watched: Mapping[ClusterName, datetime] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        wards: Mapping[ClusterName, ClusterRollouts],
        signs: RolloutSigns | None = None,
        watched: Mapping[ClusterName, datetime] | None = None,
    ) -> Rollouts:
        """Put the clusters together."""
        ailing: dict[str, RolloutFailure] = {}
        leaving: dict[str, EngineReport] = {}
        for ward in wards.values():
            ailing.update(ward.ailing)
            leaving.update(ward.leaving)
        gone = tuple(leaving[path] for path in sorted(leaving))
        return cls(wards=wards, ailing=ailing, leaving=gone, signs=signs, watched=watched or {})

    def watching(self, signs: RolloutSigns, now: datetime) -> dict[ClusterName, datetime]:
        """Tell since when each cluster has been watched: now, where sight of it or of its engine is new."""
        then = self.signs.observed.reporting if self.signs else {}
        new = {name for name, engine in signs.observed.reporting.items() if then.get(name) is not engine}
        return {name: now if name in new else self.watched.get(name, now) for name in signs.seen}

    def ward(self, cluster: ClusterName) -> ClusterRollouts:
        """Return what is known of one cluster's placements."""
        return self.wards.get(cluster, _EMPTY)

    def has_arrived(self, placement: Placement) -> bool:
        """Tell whether a placement has been healthy as it stands."""
        return bool(placement.digest) and self.ward(placement.cluster).arrived.get(placement.path) == placement.digest

    def well(self, placement: Placement) -> bool | None:
        """Tell whether a placement is healthy now, as far as anybody says."""
        return False if placement.path in self.ailing else (self.has_arrived(placement) or None)

    def fallen_ill(self, before: Rollouts) -> Iterator[tuple[str, RolloutFailure]]:
        """Yield the placements that were healthy then or have been given up since; a new one is only on its way.

        So is a new version of one, but that its engine has not got it yet is told: who hears it says for how long.
        """
        for name in sorted(self.wards):
            now, then = self.wards[name], before.ward(name)
            for path, ailment in sorted(now.ailing.items()) if now is not then else ():
                known = then.ailing.get(path)
                same = known is not None and (known.digest, known.state) == (ailment.digest, ailment.state)
                arrived = then.arrived.get(path)
                late = arrived is not None and ailment.state is EngineState.PENDING
                serious = late or ailment.state is EngineState.FAILED or arrived == ailment.digest
                if serious and not same and ailment.message:
                    yield path, ailment

    def recovered(self, before: Rollouts) -> Iterator[str]:
        """Yield the directories of the placements that have become healthy since then, by cluster."""
        for name in sorted(self.wards):
            now, then = self.wards[name], before.ward(name)
            if now is not then:
                for path, digest in sorted(now.arrived.items()):
                    if path not in now.ailing and (path in then.ailing or then.arrived.get(path) != digest):
                        yield path


_EMPTY = ClusterRollouts()


def stale(before: Rollouts, signs: RolloutSigns) -> frozenset[ClusterName]:
    """Tell of which clusters' placements something else may be known now.

    That is where a placement, a report or a pod has changed, where sight came or went, and where a commit that was not
    known may be known now.
    """
    old = before.signs
    placements = signs.ledger.placements
    if old is None:
        return frozenset({*placements.clusters(), *(report.cluster for report in signs.observed.reports.values())})
    engines = signs.observed.reporting.items() ^ old.observed.reporting.items()
    found = set(signs.seen ^ old.seen) | {name for name, _ in engines}
    now, then = signs.observed.reports, old.observed.reports
    if now is not then:
        found.update(report.cluster for path, report in now.items() if then.get(path) is not report)
        found.update(then[path].cluster for path in then.keys() - now.keys())
    if signs.ledger is not old.ledger:
        earlier = old.ledger.placements
        names = {*placements.clusters(), *earlier.clusters()}
        found.update(name for name in names if placements.on(name) is not earlier.on(name))
        found.update(name for name, ward in before.wards.items() if ward.open)
    found.update(name for name in signs.observed.clusters if signs.ready(name) is not old.ready(name))
    return frozenset(found)
