"""Which placements have arrived, and which ail: what engines and pods say, as far as it is about what stands.

A report counts for the version that it is about: its digest is that of the placement, and at its revision the branch
holds this very placement.yaml. Whether it does is asked of git by the daemon, once for each revision and placement that
is in doubt. What cannot be told leaves everything as it was: nothing ails because something is out of sight.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import is_

from reconciler.core.demand import unseen
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.deployed import EngineReport, EngineState
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Fleet

Place = tuple[CommitId, str]
"""A file at a commit."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_YET = "its engine has not taken this version up"
_NOTHING = "its engine has nothing of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """That a version of a placement is not healthy, since when as far as anybody has watched, and in whose words."""

    digest: str
    state: EngineState
    message: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Everything that tells how placements are; `seen` are the clusters that somebody sees now."""

    ledger: Ledger
    observed: Observed
    seen: frozenset[ClusterName]

    @classmethod
    def of(cls, ledger: Ledger, observed: Observed, fleet: Fleet, now: datetime) -> Signs:
        """Put the signs of one moment together."""
        seen = frozenset(name for name in observed.clusters if not unseen(fleet, observed, name, now))
        return cls(ledger=ledger, observed=observed, seen=seen)

    def same_as(self, other: Signs | None) -> bool:
        """Tell whether nothing has changed; looks at no placement."""
        if other is None or self.seen != other.seen or self.observed.reporting != other.observed.reporting:
            return False
        mine, theirs = self.parts(), other.parts()
        return len(mine) == len(theirs) and all(map(is_, mine, theirs))

    def parts(self) -> list[object]:
        """Return what it is made from, each the same object for as long as it has not changed."""
        seen = self.observed.clusters
        return [self.ledger, self.observed.reports, *(seen[name].ready for name in sorted(seen) if seen[name].ready)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollouts:
    """What is known of placements, by directory; `signs` is what it was read from.

    `arrived` holds the digest of the version at which each was healthy once, `ailing` those that are not healthy now.
    `leaving` are the reports on what the ledger does not hold any more.
    """

    arrived: Mapping[str, str] = field(default_factory=dict)
    ailing: Mapping[str, Ailment] = field(default_factory=dict)
    leaving: tuple[EngineReport, ...] = ()
    signs: Signs | None = None

    def has_arrived(self, placement: Placement) -> bool:
        """Tell whether a placement has been healthy as it stands."""
        return bool(placement.digest) and self.arrived.get(placement.path) == placement.digest

    def well(self, placement: Placement) -> bool | None:
        """Tell whether a placement is healthy now, as far as anybody says."""
        return False if placement.path in self.ailing else (self.has_arrived(placement) or None)


def doubts(before: Rollouts, signs: Signs) -> frozenset[Place]:
    """List the files at commits that git has to be asked for, to tell what reports are about."""
    placements, tip = signs.ledger.placements, signs.ledger.commit
    found = set()
    for path, report in signs.observed.reports.items():
        placement = placements.get(path)
        if placement is None or placement.digest != report.digest or report.revision == tip:
            continue
        settled = report.state is EngineState.HEALTHY and before.arrived.get(path) == report.digest
        if not settled and _COMMIT.fullmatch(report.revision):
            found.add((CommitId(report.revision), record_of(path)))
    return frozenset(found)


def record_of(path: str) -> str:
    """Return the path of the record of a placement's directory."""
    return f"{path}/placement.yaml"


def follow(before: Rollouts, signs: Signs, held: Mapping[Place, bool], now: datetime) -> Rollouts:
    """Bring what is known up to date.

    `held` answers `doubts`: whether the file is at that commit what it is now; what is not in there is not known.
    """
    return _Follower(before=before, signs=signs, held=held, now=now).follow()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Follower:
    before: Rollouts
    signs: Signs
    held: Mapping[Place, bool]
    now: datetime
    arrived: dict[str, str] = field(default_factory=dict)
    ailing: dict[str, Ailment] = field(default_factory=dict)

    def follow(self) -> Rollouts:
        placements = self.signs.ledger.placements
        leaving: list[EngineReport] = []
        reported: Counter[ClusterName] = Counter()
        for path, report in self.signs.observed.reports.items():
            placement = placements.get(path)
            if placement is None:
                leaving.append(report)
            else:
                reported[placement.cluster] += 1
                self._read(path, placement, report)
        for name in self.signs.observed.reporting:
            there = placements.on(name).placements
            if reported[name] < len(there) and name in self.signs.seen:
                self._miss(there)
        for path, observation in self._counted():
            self._count(path, placements[path], observation)
        for path, digest in self.before.arrived.items():
            if path not in self.arrived and path in placements and placements[path].digest == digest:
                self.arrived[path] = digest
        return Rollouts(
            arrived=self.arrived,
            ailing=self.ailing,
            leaving=tuple(sorted(leaving, key=lambda report: report.path)),
            signs=self.signs,
        )

    def _read(self, path: str, placement: Placement, report: EngineReport) -> None:
        """Judge one placement by its report."""
        if placement.cluster not in self.signs.seen:
            return
        # 1. It is about another version.
        if report.digest != placement.digest:
            self._ail(path, placement, EngineState.PENDING, report.message or _NOT_YET)
            return
        about = self._about(path, report)
        # 2. It says that all is well, or once did.
        if report.state is EngineState.HEALTHY and about:
            self.arrived[path] = placement.digest
        # 3. Its files are of another version.
        elif about is False:
            self._ail(path, placement, EngineState.PENDING, report.message or _NOT_YET)
        # 4. Nobody can say how it is: if it ailed, it still does.
        elif about is None or report.state in {EngineState.PENDING, EngineState.HEALTHY}:
            earlier = self.before.ailing.get(path)
            if earlier is not None and earlier.digest == placement.digest:
                self.ailing[path] = earlier
        # 5. It is not well.
        else:
            self._ail(path, placement, report.state, report.message, report.since)

    def _about(self, path: str, report: EngineReport) -> bool | None:
        """Tell whether a report of the right digest is about the files as they stand; None where nobody knows."""
        if not report.revision:  # what Argo CD refuses it has not even fetched; what it has not fetched it has not
            return (
                True if report.state is EngineState.FAILED else (None if report.state is EngineState.HEALTHY else False)
            )
        if report.revision == self.signs.ledger.commit:
            return True
        if report.state is EngineState.HEALTHY and self.before.arrived.get(path) == report.digest:
            return True
        return self.held.get((CommitId(report.revision), record_of(path)))

    def _miss(self, there: tuple[Placement, ...]) -> None:
        """Note which of these their engine has nothing of."""
        for placement in there:
            path = placement.path
            if placement.engine is not EngineName.MANIFESTS and path not in self.signs.observed.reports:
                self._ail(path, placement, EngineState.PENDING, _NOTHING)

    def _count(self, path: str, placement: Placement, seen: ClusterObservation) -> None:
        """Judge one placement by its pods: enough that are ready are healthy, and one that is not is not.

        Fewer pods than replicas prove nothing: they may be on their way, or a template may need no more.
        """
        name, ready = placement.name, seen.ready[placement.name]
        homeless = seen.homeless.get(name)
        there = seen.bound.get(name, 0) + (homeless.replicas if homeless else 0)
        if ready >= placement.replicas:
            self.arrived[path] = placement.digest
        elif ready < there or name in seen.troubles:
            self._ail(path, placement, EngineState.PROGRESSING, f"{ready} of {placement.replicas} ready")

    def _counted(self) -> Iterator[tuple[str, ClusterObservation]]:
        """Yield the directories of the placements that pods alone tell of, and where those were seen."""
        observed, placements = self.signs.observed, self.signs.ledger.placements
        for name, observation in observed.clusters.items():
            if name not in self.signs.seen or name in observed.reporting:
                continue
            for placement in observation.ready:
                path = f"clusters/{name}/{placement}"
                if path in placements and path not in observed.reports:
                    yield path, observation

    def _ail(
        self, path: str, placement: Placement, state: EngineState, message: str, since: datetime | None = None
    ) -> None:
        """Note that a placement is not healthy, since when it was first seen so, and not before it was changed."""
        earlier = self.before.ailing.get(path)
        if earlier is not None and earlier.digest == placement.digest:
            since = earlier.since
        since = min(self.now, max(placement.changed_at, since or self.now))
        seen = self.signs.observed.clusters.get(placement.cluster)
        trouble = seen.troubles.get(placement.name, "") if seen else ""
        message = "; ".join(part for part in (message, trouble) if part)
        self.ailing[path] = Ailment(digest=placement.digest, state=state, message=message, since=since)
