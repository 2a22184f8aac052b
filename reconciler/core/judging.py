"""Judges placements by what engines and pods say of them.

A report counts for the version that it is about: its digest is that of the placement, and at its revision the branch
holds this very placement.yaml. Whether it does is asked of git by the daemon, once for each revision and placement that
is in doubt. What cannot be told leaves everything as it was: nothing ails because something is out of sight.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.core import headcount
from reconciler.core.rollouts import ClusterRollouts, RolloutFailure, Rollouts, RolloutSigns
from reconciler.model.capacity import ClusterObservation
from reconciler.model.deployed import EngineReport, EngineState
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.placement import Placement

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
            serves = bool(report.digest) and headcount.serves(placement, seen) is True
            was_well = path in self.before.arrived or serves
        is_well = report.state is EngineState.HEALTHY and bool(report.digest)
        behind = is_well or (report.state is EngineState.PENDING and was_well)
        message = "; ".join(part for part in (report.message or _NOT_YET, _STAYS if behind else "") if part)
        self._ail(path, placement, EngineState.PENDING, message, behind=behind)

    def _miss(self, path: str, placement: Placement, seen: ClusterObservation) -> None:
        """Judge one placement that its engine does not have where it is looked at.

        What is ready all the same is not taken back: the engine may have it where nobody looks any more.
        """
        serves = headcount.serves(placement, seen) is True
        message = f"{_NOTHING}; {_SERVES}" if serves else _NOTHING
        self._ail(path, placement, EngineState.PENDING, message, behind=serves)

    def _count(self, path: str, placement: Placement, seen: ClusterObservation) -> None:
        """Judge one placement by its pods: enough that are ready are healthy, and one that is not is not.

        Fewer pods than replicas prove nothing: they may be on their way, or a template may need no more.
        """
        ready = headcount.ready(placement, seen)
        if ready is not None and ready >= placement.replicas:
            self.arrived[path] = placement.digest
        elif headcount.serves(placement, seen) is False:
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
