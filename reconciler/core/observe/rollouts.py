"""Which placements have arrived, and which ail: what engines and pods say, as far as it is about what stands.

It is kept by cluster, and judged anew (`core.judging`) only where something has changed: on a branch of many thousand
placements each engine has something to say all the time.

Judges placements by what engines and pods say of them.

A report counts for the version that it is about: its digest is that of the placement, and at its revision the branch
holds this very placement.yaml. Whether it does is asked of git by the daemon, once for each revision and placement that
is in doubt. What cannot be told leaves everything as it was: nothing ails because something is out of sight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from operator import is_

from reconciler.core.observe.demand import unseen
from reconciler.core.workloads import replica_count
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.policy import Fleet
from reconciler.model.rollout import EngineReport, EngineState


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


Place = tuple[CommitId, str]
"""A file at a commit."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_YET = "its engine has not taken this version up"
_STAYS = "the version before it is well and stays"
_NOTHING = "its engine has nothing of it"
_SERVES = "all its pods are ready, and it stays"


def doubts(before: Rollouts, signs: RolloutSigns, clusters: AbstractSet[ClusterName]) -> frozenset[Place]:
    """List the files at commits that git has to be asked for, to tell what reports on these clusters are about."""
    found = set()
    reports, tip = signs.observed.reports, signs.ledger.commit
    for name in clusters:
        arrived = before.ward(name).arrived
        for placement in signs.ledger.placements.on(name).placements:
            path = placement.path
            report = reports.get(path)
            if report is None or placement.digest != report.digest or report.revision == tip:
                continue
            settled = report.state is EngineState.HEALTHY and arrived.get(path) == report.digest
            if not settled and _COMMIT.fullmatch(report.revision):
                found.add((CommitId(report.revision), record_of(path)))
    return frozenset(found)


def record_of(path: str) -> str:
    """Return the path of the record of a placement's directory."""
    return f"{path}/placement.yaml"


def follow(
    before: Rollouts,
    signs: RolloutSigns,
    clusters: AbstractSet[ClusterName],
    held: Mapping[Place, bool],
    now: datetime,
) -> Rollouts:
    """Bring what is known of these clusters up to date; the others stay as they are.

    `held` answers `doubts`: whether the file is at that commit what it is now; what is not in there is not known.
    """
    wards = dict(before.wards)
    gone, watched = _gone(signs), before.watching(signs, now)
    for name in clusters:
        leaving = {path: report for path, report in gone.items() if report.cluster == name}
        judge = _Judge(
            signs=signs,
            before=before.ward(name),
            cluster=name,
            held=held,
            now=now,
            watched=watched.get(name, now),
        )
        wards[name] = judge.ward(leaving)
    return Rollouts.of({name: ward for name, ward in wards.items() if ward != ClusterRollouts()}, signs, watched)


def _gone(signs: RolloutSigns) -> dict[str, EngineReport]:
    """Find the reports on what the ledger does not hold."""
    reports = signs.observed.reports
    return {path: reports[path] for path in reports.keys() - set(signs.ledger.placements)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """Judges the placements of one cluster."""

    signs: RolloutSigns
    before: ClusterRollouts
    cluster: ClusterName
    held: Mapping[Place, bool]
    now: datetime
    watched: datetime
    arrived: dict[str, str] = field(default_factory=dict)
    ailing: dict[str, RolloutFailure] = field(default_factory=dict)

    def ward(self, leaving: Mapping[str, EngineReport]) -> ClusterRollouts:
        """Judge all of them."""
        observed = self.signs.observed
        sight = self.cluster in self.signs.seen
        reporting = observed.reporting.get(self.cluster)
        unknown = False
        known = self.before.arrived or self.before.ailing
        if not (observed.reports or reporting or self.signs.ready(self.cluster) or known):
            return ClusterRollouts(leaving=leaving)  # nobody says anything: no placement has to be looked at
        for placement in self.signs.ledger.placements.on(self.cluster).placements:
            path = placement.path
            if placement.digest and self.before.arrived.get(path) == placement.digest:
                self.arrived[path] = placement.digest
            report = observed.reports.get(path)
            if not sight:
                self._keep(path)
            elif report is not None:
                unknown |= self._read(path, placement, report) is None
            elif placement.engine is reporting:
                self._miss(path, placement, observed.clusters[self.cluster])
            else:  # its engine is not heard, or is not the one of this cluster any more
                self._count(path, placement, observed.clusters[self.cluster])
        return ClusterRollouts(arrived=self.arrived, ailing=self.ailing, leaving=leaving, open=unknown)

    def _read(self, path: str, placement: Placement, report: EngineReport) -> bool | None:
        """Judge one placement by its report, and tell whether that is about its files; None where nobody knows."""
        # 1. It is about another version.
        if report.digest != placement.digest:
            self._wait(path, placement, report)
            return False
        about = self._about(path, report)
        # 2. It says that all is well.
        if report.state is EngineState.HEALTHY and about:
            self.arrived[path] = placement.digest
        # 3. Its files are of another version.
        elif about is False:
            self._wait(path, placement, report)
        # 4. Nobody can say how it is: if it ailed, it still does.
        elif about is None or report.state is EngineState.PENDING:
            earlier = self.before.ailing.get(path)
            if earlier is not None and earlier.digest == placement.digest:
                self.ailing[path] = earlier
        # 5. It is not well.
        else:
            self._ail(path, placement, report.state, report.message, report.since)
        return about

    def _about(self, path: str, report: EngineReport) -> bool | None:
        """Tell whether a report of the right digest is about the files as they stand; None where nobody knows."""
        if report.revision == self.signs.ledger.commit:
            return True
        healthy = report.state is EngineState.HEALTHY
        if healthy and self.before.arrived.get(path) == report.digest:
            return True
        if not report.revision:
            # What Argo CD refuses it does not even fetch; anything else that it has not fetched it does not have.
            return None if healthy else report.state is EngineState.FAILED
        return self.held.get((CommitId(report.revision), record_of(path)))

    def _wait(self, path: str, placement: Placement, report: EngineReport) -> None:
        """Note that an engine does not have this version yet, and whether the one before is well as far as is known.

        While the engine cannot say how that is, it is as it was; where nobody knows that, as after a restart, its pods
        tell: an engine that has not got this version has made none of them from it.
        """
        earlier, seen = self.before.ailing.get(path), self.signs.observed.clusters[self.cluster]
        if earlier is not None:
            was_well = earlier.behind
        else:
            serves = bool(report.digest) and replica_count.serves(placement, seen) is True
            was_well = path in self.before.arrived or serves
        is_well = report.state is EngineState.HEALTHY and bool(report.digest)
        behind = is_well or (report.state is EngineState.PENDING and was_well)
        message = "; ".join(part for part in (report.message or _NOT_YET, _STAYS if behind else "") if part)
        self._ail(path, placement, EngineState.PENDING, message, behind=behind)

    def _miss(self, path: str, placement: Placement, seen: ClusterObservation) -> None:
        """Judge one placement that its engine does not have where it is looked at.

        What is ready all the same is not taken back: the engine may have it where nobody looks any more.
        """
        serves = replica_count.serves(placement, seen) is True
        message = f"{_NOTHING}; {_SERVES}" if serves else _NOTHING
        self._ail(path, placement, EngineState.PENDING, message, behind=serves)

    def _count(self, path: str, placement: Placement, seen: ClusterObservation) -> None:
        """Judge one placement by its pods: enough that are ready are healthy, and one that is not is not.

        Fewer pods than replicas prove nothing: they may be on their way, or a template may need no more.
        """
        ready = replica_count.ready(placement, seen)
        if ready is not None and ready >= placement.replicas:
            self.arrived[path] = placement.digest
        elif replica_count.serves(placement, seen) is False:
            self._ail(path, placement, EngineState.PROGRESSING, f"{ready} of {placement.replicas} ready")
        else:
            self._keep(path)

    def _keep(self, path: str) -> None:
        """Remember that a placement runs well and its engine is late, while nobody can look; no time runs for it."""
        earlier = self.before.ailing.get(path)
        if earlier is not None and earlier.behind:
            self.ailing[path] = earlier

    def _ail(
        self,
        path: str,
        placement: Placement,
        state: EngineState,
        message: str,
        since: datetime | None = None,
        *,
        behind: bool = False,
    ) -> None:
        """Note that a placement is not healthy, since when it was first seen so, and not before it was changed.

        An engine says since when it is in a state, and is believed as far back as its cluster has been watched. What
        was well when it was looked at last is unwell since now.
        """
        earlier = self.before.ailing.get(path)
        if earlier is not None and earlier.digest == placement.digest:
            since = self.now if earlier.behind and not behind else earlier.since  # the engine has got it only now
        elif since is None or self.before.arrived.get(path) == placement.digest:
            since = self.now
        else:
            since = max(since, self.watched)
        since = min(self.now, max(placement.changed_at, since))
        seen = self.signs.observed.clusters.get(placement.cluster)
        trouble = seen.troubles.get(placement.name, "") if seen else ""
        message = "; ".join(part for part in (message, trouble) if part)
        self.ailing[path] = RolloutFailure(
            digest=placement.digest, state=state, message=message, since=since, behind=behind
        )
