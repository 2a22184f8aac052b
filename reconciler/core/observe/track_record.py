"""The track record of clusters: how long placements took there until a pod was ready, and what failed there.

It is kept in the memory of a process alone, and grows with what the process sees: a daemon that starts anew knows what
Cluster files declare until placements have become ready again. Clusters without a change are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import is_
from statistics import median

from reconciler.core.ledger.lifecycle import end_of
from reconciler.core.observe.rollouts import Rollouts, RolloutSigns
from reconciler.core.workloads import replica_count
from reconciler.model.capacity import ClusterObservation
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.ledger import Ledger, PlacementGroup
from reconciler.model.placement import Placement, RestraintKind

_STARTS = 20
"""Starts that are kept of each cluster, the latest."""
FAILURES_KEPT = timedelta(hours=1)
"""Time for which a failure counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementStart:
    """The time from a placement's commit to its first ready pod."""

    workload: WorkloadId
    took: timedelta
    """At least, for a placement that ended before any pod was ready."""
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    """The track record of one cluster."""

    starts: tuple[PlacementStart, ...] = ()
    """The latest last."""
    coming: Mapping[str, Placement] = field(default_factory=dict)
    """Placements that no ready pod has been seen of, by directory."""
    placements: PlacementGroup | None = None
    """All placements at the last look; None before the first."""
    evidence: tuple[object, object] = (None, None)
    """The ready pods, and the health of the placements, at the last look: the same objects while nothing changes."""
    changed_at: datetime | None = None
    """The last look at which anything had changed."""

    def time_to_ready(self, workload: WorkloadId) -> timedelta | None:
        """Return the median of the workload's own starts here, else of all; None where nothing has started.

        A placement that ended first counts where it took longer than those that became ready.
        """
        own = tuple(start for start in self.starts if start.workload == workload)
        starts = own or self.starts
        times = [start.took.total_seconds() for start in starts if start.ready]
        usual = median(times) if times else 0.0
        times += [took for start in starts if not start.ready and (took := start.took.total_seconds()) > usual]
        return timedelta(seconds=round(median(times))) if times else None


NO_RECORD = ClusterRecord()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """The track record of all clusters, as far as this process has watched them."""

    clusters: Mapping[ClusterName, ClusterRecord] = field(default_factory=dict)
    starts: Mapping[ClusterName, tuple[PlacementStart, ...]] = field(default_factory=dict)
    """The starts of each cluster that has any."""
    failures: Mapping[ClusterName, tuple[datetime, ...]] = field(default_factory=dict)
    """When placements failed, by cluster, each within `FAILURES_KEPT` of the last change."""
    started: frozenset[WorkloadId] = frozenset()
    """The workloads that a start is kept of, on any cluster."""
    ledger: Ledger | None = None
    """The ledger at the last look."""
    seen: frozenset[ClusterName] = frozenset()
    """The clusters that were seen at the last look."""

    @classmethod
    def remembered(
        cls,
        starts: Mapping[ClusterName, tuple[PlacementStart, ...]],
        failures: Mapping[ClusterName, tuple[datetime, ...]],
    ) -> TrackRecord:
        """Return the record with these starts and failures, which has not looked at anything yet."""
        return cls(
            clusters={name: ClusterRecord(starts=each) for name, each in starts.items()},
            starts=starts,
            failures=failures,
            started=frozenset(start.workload for each in starts.values() for start in each),
        )

    def of(self, cluster: ClusterName) -> ClusterRecord:
        """Return the track record of one cluster."""
        return self.clusters.get(cluster, NO_RECORD)

    def failures_since(self, cluster: ClusterName, moment: datetime) -> int:
        """Count the failures on a cluster since a moment."""
        return sum(at > moment for at in self.failures.get(cluster, ()))


def follow(before: TrackRecord, signs: RolloutSigns, rollouts: Rollouts, now: datetime) -> TrackRecord:
    """Look at the placements of each cluster that is seen; those of others neither start nor fail meanwhile."""
    clusters: dict[ClusterName, ClusterRecord] = {}
    ledger = signs.ledger
    for name in signs.seen:
        seen, earlier = signs.observed.clusters[name], before.of(name)
        watched_since = earlier.changed_at if name in before.seen else None
        current = _follow_cluster(earlier, ledger.placements.on(name), seen, rollouts, now, watched_since=watched_since)
        if current is not earlier:
            clusters[name] = current
    failures = before.failures
    if before.ledger is None or before.ledger.restraints is not ledger.restraints:
        failures = _failures(before.failures, ledger, now)
    if not clusters and failures is before.failures and before.ledger is ledger and before.seen == signs.seen:
        return before
    records = {**before.clusters, **clusters}
    starts, started = before.starts, before.started
    if any(record.starts is not before.of(name).starts for name, record in clusters.items()):
        starts = {name: record.starts for name, record in records.items() if record.starts}
        started = frozenset(start.workload for each in starts.values() for start in each)
    return TrackRecord(
        clusters=records, starts=starts, failures=failures, started=started, ledger=ledger, seen=signs.seen
    )


def _follow_cluster(
    before: ClusterRecord,
    placements: PlacementGroup,
    seen: ClusterObservation,
    rollouts: Rollouts,
    now: datetime,
    *,
    watched_since: datetime | None,
) -> ClusterRecord:
    """Return the track record of one cluster; the same object where nothing has changed.

    `watched_since` is its last change, if the cluster has been seen ever since.
    """
    evidence = seen.ready, rollouts.cluster(seen.cluster)
    if placements is before.placements and (not before.coming or all(map(is_, evidence, before.evidence))):
        return before
    here = {placement.path: placement for placement in placements.placements}
    coming, starts = dict[str, Placement](), list[PlacementStart]()
    # 1. Placements that were not ready at the last look: they are now, have ended, or are still coming.
    for path, placement in before.coming.items():
        ready = path in here and _is_ready(here[path], seen, rollouts)
        if (ready or path not in here) and placement.created_at > now:
            continue  # the clock was ahead when it was made: nobody knows how long it took
        if ready or path not in here:
            starts.append(PlacementStart(workload=placement.workload, took=now - placement.created_at, ready=ready))
        else:
            coming[path] = placement
    # 2. Placements that are new: still coming, or ready within one pass. Others that are ready at the first look, after
    # a restart or a time out of sight, or since a person brought them back, have been for nobody knows how long.
    old = {placement.path for placement in before.placements.placements} if before.placements is not None else set()
    for path, placement in here.items():
        if path in old:
            continue
        if not _is_ready(placement, seen, rollouts):
            coming[path] = placement
        elif watched_since is not None and watched_since <= placement.created_at <= now:
            starts.append(PlacementStart(workload=placement.workload, took=now - placement.created_at, ready=True))
    return ClusterRecord(
        starts=(*before.starts, *starts)[-_STARTS:] if starts else before.starts,
        coming=coming,
        placements=placements,
        evidence=evidence,
        changed_at=now,
    )


def _is_ready(placement: Placement, seen: ClusterObservation, rollouts: Rollouts) -> bool:
    """Return whether a pod of a placement is ready; where pods are not observed, whether its engine says so."""
    ready = replica_count.ready_replicas(placement, seen)
    return rollouts.has_arrived(placement) if ready is None else ready > 0


def _failures(
    before: Mapping[ClusterName, tuple[datetime, ...]], ledger: Ledger, now: datetime
) -> Mapping[ClusterName, tuple[datetime, ...]]:
    """Add the failures that restraints tell of, and forget those that are long past."""
    moments = {name: set(times) for name, times in before.items()}
    for cluster, since in _failures_of(ledger):
        moments.setdefault(cluster, set()).add(since)
    return {
        name: kept
        for name, times in sorted(moments.items())
        if (kept := tuple(sorted(at for at in times if now - at < FAILURES_KEPT)))
    }


def _failures_of(ledger: Ledger) -> Iterator[tuple[ClusterName, datetime]]:
    """Yield where and when a placement failed, found no node, or was on a cluster that is lost."""
    for restraint in (restraint for restraints in ledger.restraints.values() for restraint in restraints):
        failed = restraint.kind is RestraintKind.UNSCHEDULABLE or (
            restraint.kind is RestraintKind.COOL_DOWN and end_of(restraint) in (None, EndReason.FAILED)
        )
        if failed and restraint.cluster is not None:
            yield restraint.cluster, restraint.since
