"""The health of placements: healthy or failing, by the reports of engines and pods.

A pass goes three steps: `stale` lists the clusters whose placements have to be judged anew, `doubts` lists the files
that git has to be asked for first, and `follow` judges. On a branch of many thousand placements every engine reports
all the time, so the result is kept by cluster, and clusters without a change are skipped.

A report counts for the version of a placement that it is about: its digest is that of the placement, and at its
revision the branch holds this very placement.yaml. The daemon asks git whether it does, once for each revision and
placement in doubt. Without evidence nothing changes: no placement fails because it is out of sight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from operator import is_

from reconciler.bulkhead import Seam, attempt
from reconciler.core.observe.demand import unseen
from reconciler.core.workloads import replica_count
from reconciler.core.workloads.ends import failed_object
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Fleet
from reconciler.model.rollout import EngineReport, EngineState

FileAtCommit = tuple[CommitId, str]
"""A file at a commit."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_YET = "its engine has not taken this version up"
_STAYS = "the version before it is well and stays"
_NOTHING = "its engine has nothing of it"
_SERVES = "all its pods are ready, and it stays"
_REMOVAL = timedelta(minutes=10)
"""How long an engine may take to remove what has ended: the interval at which Flux looks again of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFailure:
    """A version of a placement that is not healthy."""

    digest: str
    state: EngineState
    message: str
    since: datetime
    """As far back as the cluster and its engine have been watched."""
    behind: bool = False
    """Whether the placement serves, and its engine merely does not have this version: it has the one before, or no
    object that can be seen."""
    waits: bool = False
    """Whether it was healthy, and lacks nothing but nodes for some of its pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSigns:
    """All evidence of one moment."""

    ledger: Ledger
    observed: Observed
    seen: frozenset[ClusterName]
    """Clusters that were observed recently."""

    @classmethod
    def of(cls, ledger: Ledger, observed: Observed, fleet: Fleet, now: datetime) -> RolloutSigns:
        """Collect the evidence of one moment."""
        seen = frozenset(name for name in observed.clusters if not unseen(fleet, observed, name, now))
        return cls(ledger=ledger, observed=observed, seen=seen)

    def same_as(self, other: RolloutSigns | None) -> bool:
        """Return whether nothing has changed, without a look at any placement."""
        if other is None or self.seen != other.seen or self.observed.reporting != other.observed.reporting:
            return False
        mine, theirs = self.parts(), other.parts()
        return len(mine) == len(theirs) and all(map(is_, mine, theirs))

    def parts(self) -> list[object]:
        """Return the sources of evidence, each the same object for as long as it has not changed."""
        evidence = [part for name in sorted(self.observed.clusters) for part in self.pods(name)]
        return [self.ledger, self.observed.reports, *evidence]

    def pods(self, cluster: ClusterName) -> tuple[object, ...]:
        """Return which placements have ready pods in a cluster, are held by a queue, refused, or have failed.

        Each is None for none.
        """
        seen = self.observed.clusters.get(cluster)
        if seen is None:
            return None, None, None, None
        return seen.ready or None, seen.unadmitted or None, seen.refused or None, seen.failed or None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRollouts:
    """The placements of one cluster, by directory."""

    arrived: Mapping[str, str] = field(default_factory=dict)
    """Digest of the version at which each was healthy once."""
    ailing: Mapping[str, RolloutFailure] = field(default_factory=dict)
    """Placements that are not healthy now."""
    leaving: Mapping[str, EngineReport] = field(default_factory=dict)
    """Reports on placements that the ledger does not hold any more."""
    leaving_since: Mapping[str, datetime] = field(default_factory=dict)
    """When each of `leaving` was first seen without a placement, since the daemon started."""
    open: bool = False
    """Whether some report is about a commit that git does not know here."""
    bugs: tuple[Bug, ...] = ()
    """Exceptions that nothing foresaw, each in judging one placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollouts:
    """The placements of all clusters."""

    clusters: Mapping[ClusterName, ClusterRollouts] = field(default_factory=dict)
    ailing: Mapping[str, RolloutFailure] = field(default_factory=dict)
    """Placements of all clusters that are not healthy now, by directory."""
    leaving: tuple[EngineReport, ...] = ()
    """Reports on placements that the ledger does not hold any more, in the order of their directories."""
    signs: RolloutSigns | None = None
    """The evidence that all this was read from."""
    watched: Mapping[ClusterName, datetime] = field(default_factory=dict)
    """Since when each cluster that is seen now has been in sight without a break, and its engine with it."""

    @classmethod
    def of(
        cls,
        clusters: Mapping[ClusterName, ClusterRollouts],
        signs: RolloutSigns | None = None,
        watched: Mapping[ClusterName, datetime] | None = None,
    ) -> Rollouts:
        """Join the clusters."""
        ailing: dict[str, RolloutFailure] = {}
        leaving: dict[str, EngineReport] = {}
        for cluster in clusters.values():
            ailing.update(cluster.ailing)
            leaving.update(cluster.leaving)
        reports = tuple(leaving[path] for path in sorted(leaving))
        return cls(clusters=clusters, ailing=ailing, leaving=reports, signs=signs, watched=watched or {})

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """Exceptions that nothing foresaw, each in judging one placement."""
        return tuple(bug for cluster in self.clusters.values() for bug in cluster.bugs)

    def cluster(self, name: ClusterName) -> ClusterRollouts:
        """Return the placements of one cluster."""
        return self.clusters.get(name, _EMPTY)

    def leaving_since(self, report: EngineReport) -> datetime | None:
        """Return when one of `leaving` was first seen without a placement, since the daemon started."""
        return self.cluster(report.cluster).leaving_since.get(report.path)

    def is_overdue(self, report: EngineReport, now: datetime) -> bool:
        """Return whether one of `leaving` should have been removed long ago."""
        since = self.leaving_since(report)
        return since is not None and now - since >= _REMOVAL

    def has_arrived(self, placement: Placement) -> bool:
        """Return whether a placement has been healthy as it stands."""
        return (
            bool(placement.digest) and self.cluster(placement.cluster).arrived.get(placement.path) == placement.digest
        )

    def is_healthy(self, placement: Placement) -> bool | None:
        """Return whether a placement is healthy now; None where there is no evidence."""
        return False if placement.path in self.ailing else (self.has_arrived(placement) or None)

    def new_failures(self, before: Rollouts) -> Iterator[tuple[str, RolloutFailure]]:
        """Yield the placements that were healthy before or have failed for good since, by cluster.

        A placement that is new, or has a new version, is only on its way. An engine that is late with a new version
        counts as a failure here, and whoever announces it decides how long it may be late.
        """
        for name in sorted(self.clusters):
            cluster, earlier = self.clusters[name], before.cluster(name)
            for path, failure in sorted(cluster.ailing.items()) if cluster is not earlier else ():
                last = earlier.ailing.get(path)
                repeated = last is not None and (last.digest, last.state) == (failure.digest, failure.state)
                arrived = earlier.arrived.get(path)
                late = arrived is not None and failure.state is EngineState.PENDING
                serious = late or failure.state is EngineState.FAILED or arrived == failure.digest
                if serious and not repeated and failure.message:
                    yield path, failure

    def recovered(self, before: Rollouts) -> Iterator[str]:
        """Yield the directories of the placements that have become healthy since, by cluster."""
        for name in sorted(self.clusters):
            cluster, earlier = self.clusters[name], before.cluster(name)
            if cluster is not earlier:
                for path, digest in sorted(cluster.arrived.items()):
                    if path not in cluster.ailing and (path in earlier.ailing or earlier.arrived.get(path) != digest):
                        yield path


_EMPTY = ClusterRollouts()


def stale_clusters(before: Rollouts, signs: RolloutSigns) -> frozenset[ClusterName]:
    """Return the clusters whose placements have to be judged anew."""
    old = before.signs
    placements = signs.ledger.placements
    # 1. Nothing has been judged so far.
    if old is None:
        return frozenset({*placements.clusters(), *(report.cluster for report in signs.observed.reports.values())})
    # 2. Sight of the cluster, or of its engine, came or went.
    engines = signs.observed.reporting.items() ^ old.observed.reporting.items()
    clusters = set(signs.seen ^ old.seen) | {name for name, _ in engines}
    # 3. A report has changed, come or gone.
    reports, old_reports = signs.observed.reports, old.observed.reports
    if reports is not old_reports:
        clusters.update(report.cluster for path, report in reports.items() if old_reports.get(path) is not report)
        clusters.update(old_reports[path].cluster for path in old_reports.keys() - reports.keys())
    # 4. A placement has changed, or git may know a commit that it did not know.
    if signs.ledger is not old.ledger:
        old_placements = old.ledger.placements
        names = {*placements.clusters(), *old_placements.clusters()}
        clusters.update(name for name in names if placements.on(name) is not old_placements.on(name))
        clusters.update(name for name, cluster in before.clusters.items() if cluster.open)
    # 5. Pods have become ready, or are ready no longer; others are held back or refused; an object has failed.
    clusters.update(name for name in signs.observed.clusters if not all(map(is_, signs.pods(name), old.pods(name))))
    return frozenset(clusters)


def files_to_read(before: Rollouts, signs: RolloutSigns, clusters: AbstractSet[ClusterName]) -> frozenset[FileAtCommit]:
    """Return the files at commits that git has to be asked for, to tell what reports on these clusters are about."""
    places = set()
    reports, tip = signs.observed.reports, signs.ledger.commit
    for name in clusters:
        arrived = before.cluster(name).arrived
        for placement in signs.ledger.placements.on(name).placements:
            path = placement.path
            report = reports.get(path)
            if report is None or placement.digest != report.digest or report.revision == tip:
                continue
            settled = report.state is EngineState.HEALTHY and arrived.get(path) == report.digest
            if not settled and _COMMIT.fullmatch(report.revision):
                places.add((CommitId(report.revision), record_of(path)))
    return frozenset(places)


def record_of(path: str) -> str:
    """Return the path of a placement's record in its directory."""
    return f"{path}/placement.yaml"


def follow(
    before: Rollouts,
    signs: RolloutSigns,
    clusters: AbstractSet[ClusterName],
    held: Mapping[FileAtCommit, bool],
    now: datetime,
) -> Rollouts:
    """Judge the placements of these clusters anew; the others stay as they are.

    `held` answers `doubts`: whether the file at that commit is what it is now. A place without an answer is unknown.
    """
    rollouts = dict(before.clusters)
    watched = _watch_starts(before, signs, now)
    reports = signs.observed.reports
    gone = {path: reports[path] for path in reports.keys() - set(signs.ledger.placements)}
    for name in clusters:
        leaving = {path: report for path, report in gone.items() if report.cluster == name}
        judge = _Judge(
            signs=signs,
            before=before.cluster(name),
            cluster=name,
            held=held,
            now=now,
            watched=watched.get(name, now),
        )
        rollouts[name] = judge.rollouts(leaving)
    return Rollouts.of({name: cluster for name, cluster in rollouts.items() if cluster != _EMPTY}, signs, watched)


def _watch_starts(before: Rollouts, signs: RolloutSigns, now: datetime) -> dict[ClusterName, datetime]:
    """Return since when each cluster has been watched: now, where sight of it or of its engine is new."""
    reporting = before.signs.observed.reporting if before.signs else {}
    new = {name for name, engine in signs.observed.reporting.items() if reporting.get(name) is not engine}
    return {name: now if name in new else before.watched.get(name, now) for name in signs.seen}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """Judges the placements of one cluster."""

    signs: RolloutSigns
    before: ClusterRollouts
    cluster: ClusterName
    held: Mapping[FileAtCommit, bool]
    now: datetime
    watched: datetime
    """Since when the cluster has been in sight."""
    arrived: dict[str, str] = field(default_factory=dict)
    ailing: dict[str, RolloutFailure] = field(default_factory=dict)

    def rollouts(self, leaving: Mapping[str, EngineReport]) -> ClusterRollouts:
        """Judge all placements of the cluster."""
        observed, before = self.signs.observed, self.before.leaving_since
        since = {path: before.get(path, self.now) for path in leaving}
        sight = self.cluster in self.signs.seen
        reporting = observed.reporting.get(self.cluster)
        judged = self.before.arrived or self.before.ailing
        if not (observed.reports or reporting or any(self.signs.pods(self.cluster)) or judged):
            # There is no evidence, so that no placement has to be looked at.
            return ClusterRollouts(leaving=leaving, leaving_since=since)
        unknown, bugs = False, list[Bug]()
        for placement in self.signs.ledger.placements.on(self.cluster).placements:
            outcome = attempt(
                Seam.ROLLOUT, placement.path, partial(self._judge, placement, sight=sight, reporting=reporting)
            )
            if isinstance(outcome, Bug):
                bugs.append(outcome)  # no time runs for one whose health is unknown
                self.ailing.pop(placement.path, None)
            else:
                unknown |= outcome
        return ClusterRollouts(
            arrived=self.arrived,
            ailing=self.ailing,
            leaving=leaving,
            leaving_since=since,
            open=unknown,
            bugs=tuple(bugs),
        )

    def _judge(self, placement: Placement, *, sight: bool, reporting: EngineName | None) -> bool:
        """Judge one placement; return whether a report is about a commit that git does not know here."""
        observed, path = self.signs.observed, placement.path
        if placement.digest and self.before.arrived.get(path) == placement.digest:
            self.arrived[path] = placement.digest
        report = observed.reports.get(path)
        # 1. The cluster is out of sight.
        if not sight:
            self._keep(path)
        # 2. Its engine reports of the placement.
        elif report is not None:
            return self._read(path, placement, report) is None
        # 3. Its engine is in sight, and does not have the placement.
        elif placement.engine is reporting:
            self._miss(path, placement, observed.clusters[self.cluster])
        # 4. Its engine is out of sight, or is no longer the one of this cluster.
        else:
            self._count(path, placement, observed.clusters[self.cluster])
        return False

    def _read(self, path: str, placement: Placement, report: EngineReport) -> bool | None:
        """Judge a placement by its report, and say whether that is about its files; None where that is unknown."""
        # 1. The report is about another version.
        if report.digest != placement.digest:
            self._wait(path, placement, report)
            return False
        about = self._about(path, report)
        failed = failed_object(placement, self.signs.observed.clusters[self.cluster])
        held = self._is_held_back(placement)
        healthy = report.state is EngineState.HEALTHY or self._is_running(placement, report)
        # 2. An object has failed, whose status the engine does not read.
        if healthy and about and failed is not None:
            self._ail(path, placement, EngineState.FAILED, failed.message, failed.since)
        # 3. Its cluster does not let it run, at which engines look less often, or not at all.
        elif healthy and about and held:
            self._ail(path, placement, EngineState.PROGRESSING, "")
        # 4. The placement is healthy.
        elif healthy and about:
            self.arrived[path] = placement.digest
        # 5. The report is about other files.
        elif about is False:
            self._wait(path, placement, report)
        # 6. Its health is unknown: if it failed before, it still does.
        elif (about is None or report.state is EngineState.PENDING) and not held:
            earlier = self.before.ailing.get(path)
            if earlier is not None and earlier.digest == placement.digest:
                self.ailing[path] = earlier
        # 7. The placement is not healthy.
        else:
            self._ail(path, placement, report.state, report.message, report.since)
        return about

    def _about(self, path: str, report: EngineReport) -> bool | None:
        """Return whether a report of the right digest is about the files as they stand; None where that is unknown."""
        if report.revision == self.signs.ledger.commit:
            return True
        healthy = report.state is EngineState.HEALTHY
        if healthy and self.before.arrived.get(path) == report.digest:
            return True
        if not report.revision:
            # Argo CD refuses some placements without a fetch, so a failure counts; in other states it has no files yet.
            return None if healthy else report.state is EngineState.FAILED
        return self.held.get((CommitId(report.revision), record_of(path)))

    def _wait(self, path: str, placement: Placement, report: EngineReport) -> None:
        """Note that an engine does not have this version yet, and whether the version before is healthy.

        While the engine is pending, the version before counts as it did; where that is unknown, as after a restart, its
        pods tell: an engine that does not have this version has made no pod from it.
        """
        earlier, seen = self.before.ailing.get(path), self.signs.observed.clusters[self.cluster]
        if earlier is not None:
            was_healthy = earlier.behind
        else:
            serves = bool(report.digest) and replica_count.all_pods_ready(placement, seen) is True
            was_healthy = path in self.before.arrived or serves
        is_healthy = report.state is EngineState.HEALTHY and bool(report.digest)
        behind = is_healthy or (report.state is EngineState.PENDING and was_healthy)
        message = "; ".join(part for part in (report.message or _NOT_YET, _STAYS if behind else "") if part)
        self._ail(path, placement, EngineState.PENDING, message, behind=behind)

    def _miss(self, path: str, placement: Placement, seen: ClusterObservation) -> None:
        """Judge a placement that its engine does not have where the engine is watched.

        A placement whose pods are ready all the same stays: its engine may be no longer watched.
        """
        serves = replica_count.all_pods_ready(placement, seen) is True
        message = f"{_NOTHING}; {_SERVES}" if serves else _NOTHING
        self._ail(path, placement, EngineState.PENDING, message, behind=serves)

    def _count(self, path: str, placement: Placement, seen: ClusterObservation) -> None:
        """Judge a placement by its pods: healthy with enough ready pods, failing with a pod that is not ready.

        Fewer pods than replicas prove nothing: they may be on their way, or the template may need no more. An object
        that says itself that it has failed does.
        """
        ready, failed = replica_count.ready_replicas(placement, seen), failed_object(placement, seen)
        if failed is not None:
            self._ail(path, placement, EngineState.FAILED, failed.message, failed.since)
        elif ready is not None and ready >= placement.replicas:
            self.arrived[path] = placement.digest
        elif replica_count.all_pods_ready(placement, seen) is False or self._is_held_back(placement):
            self._ail(path, placement, EngineState.PROGRESSING, f"{ready or 0} of {placement.replicas} ready")
        else:
            self._keep(path)

    def _is_running(self, placement: Placement, report: EngineReport) -> bool:
        """Return whether what runs once is at work, all pods ready: Argo CD calls a Job healthy only at its end."""
        seen = self.signs.observed.clusters[self.cluster]
        if report.state is not EngineState.PROGRESSING or not placement.runs_once:
            return False
        return replica_count.all_pods_ready(placement, seen) is True

    def _is_held_back(self, placement: Placement) -> bool:
        """Return whether a queue of the cluster holds pods of a placement, or the cluster refuses some of them."""
        seen = self.signs.observed.clusters.get(placement.cluster)
        if seen is None or placement.name in seen.unadmitted:
            return seen is not None
        return placement.name in seen.refused and (
            (replica_count.ready_replicas(placement, seen) or 0) < placement.replicas
        )

    def _keep(self, path: str) -> None:
        """Keep a placement whose engine was late as it was, while it is out of sight; no time runs for it."""
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
        """Note that a placement is not healthy, since it was first seen so, and not before it was changed.

        The engine's own word since when counts as far back as the cluster has been watched. A placement that was
        healthy at the last look fails since now.
        """
        earlier, waits = self.before.ailing.get(path), self._waits(path, placement)
        if earlier is not None and earlier.digest == placement.digest:
            # The engine has got it only now, or its pods have got nodes only now.
            begins = (earlier.behind and not behind) or (earlier.waits and not waits)
            since = self.now if begins else earlier.since
        elif since is None or self.before.arrived.get(path) == placement.digest:
            since = self.now
        else:
            since = max(since, self.watched)
        since = min(self.now, max(placement.changed_at, since))
        seen = self.signs.observed.clusters.get(placement.cluster)
        trouble = seen.waiting_reasons.get(placement.name, "") if seen else ""
        message = "; ".join(part for part in (message, trouble) if part)
        self.ailing[path] = RolloutFailure(
            digest=placement.digest, state=state, message=message, since=since, behind=behind, waits=waits
        )

    def _waits(self, path: str, placement: Placement) -> bool:
        """Return whether a placement was healthy as it stands, and some of its pods have only lost their nodes.

        One that is resized while it waits for nodes goes on waiting for them.
        """
        seen = self.signs.observed.clusters.get(placement.cluster)
        pods = seen.pending_pods.get(placement.name) if seen is not None else None
        if seen is None or pods is None or pods.since is None or pods.helping:
            return False
        earlier = self.before.ailing.get(path)
        if self.arrived.get(path) != placement.digest and not (earlier is not None and earlier.waits):
            return False
        return seen.ready.get(placement.name, 0) >= seen.bound.get(placement.name, 0)
