"""From signals to the replicas each workload is missing, now and over the windows of its policy.

EGS leaves the replica count undefined. Here the replicas that burst are those that the primary cannot hold now, never
those that are merely starting, and the primary's own count is not touched. `core.signals.merge` adds the replicas that
other signals ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.core.capacity.chart_gangs import chart_gang_of, group_unit
from reconciler.core.capacity.gangs import GangWorkload, gang_workloads
from reconciler.core.observe.primary_shape import completed
from reconciler.core.signals.cluster import fresh_cluster_asks, stale_kinds
from reconciler.core.signals.freshness import fresh_asks
from reconciler.core.signals.merge import due, merge
from reconciler.model.capacity import ClusterObservation, GroupUnit, Observed, WorkloadObservation
from reconciler.model.demand import Demand, Sample
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.policy import BurstPolicy, Desired, Fleet
from reconciler.model.signal import ReplicaRequest
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadRef, WorkloadTemplate

DemandHistory = Mapping[WorkloadId, tuple[Sample, ...]]
"""The missing replicas of each workload for as long as this process has watched, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenPrimary:
    """A workload whose primary cannot be seen keeps what it has and gets nothing new (docs/concepts.md, "Promises")."""

    workload: WorkloadId
    message: str


Demands = Mapping[WorkloadId, Demand | UnseenPrimary]


def unseen(fleet: Fleet, observed: Observed, cluster: ClusterName, now: datetime) -> str:
    """Return why a cluster counts as unseen, or an empty string if it was seen recently.

    An observation from further in the future than the maximum age is as useless as an old one: one of two clocks is
    wrong, and nothing says which.
    """
    observation = observed.clusters.get(cluster)
    if observation is None:
        return f"{cluster} has not been observed"
    age = now - observation.observed_at
    limit = fleet.observation_max_age
    if age > limit:
        return f"{cluster} was last observed {format_duration(age)} ago, more than {format_duration(limit)}"
    if -age > limit:
        return f"{cluster} was observed {format_duration(-age)} in the future: compare the clocks"
    return ""


def measure(desired: Desired, observed: Observed, history: DemandHistory, now: datetime) -> Demands:
    """Measure the demand of every workload that may burst and whose object on the primary is known.

    A workload that its primary, freshly seen, does not report has no pods there that could wait.
    """
    measurement = _Measurement(
        desired=desired,
        observed=observed,
        history=history,
        now=now,
        gangs=gang_workloads(desired),
        limit_ranges=any(observation.limit_ranges for observation in observed.clusters.values()),
    )
    return {
        workload: measurement.demand(workload, policy, ref)
        for workload, policy in desired.policies.items()
        if (ref := desired.templates[workload].ref) is not None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Primary:
    """Workloads and signals of one primary cluster, freshly seen."""

    observation: ClusterObservation
    at: datetime
    """When the cluster was observed; now, where that is in the future."""
    stale: Mapping[str, str]
    """Sentence about each kind of signal that is stale in the cluster."""
    workloads: Mapping[tuple[str, str], list[WorkloadObservation]]
    """By namespace and name."""

    @classmethod
    def of(cls, observation: ClusterObservation, max_age: timedelta, now: datetime) -> _Primary:
        """Index an observation."""
        workloads: dict[tuple[str, str], list[WorkloadObservation]] = {}
        for seen in observation.workloads:
            workloads.setdefault((seen.ref.namespace, seen.ref.name), []).append(seen)
        return cls(
            observation=observation,
            at=min(observation.observed_at, now),
            stale=stale_kinds(observation, max_age, now),
            workloads=workloads,
        )

    def workload(self, ref: WorkloadRef) -> WorkloadObservation | None:
        """Find a workload object; None where the cluster has none such."""
        for seen in self.workloads.get((ref.namespace, ref.name), ()):
            if ref.may_be(seen.ref):
                return seen
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measurement:
    """One measurement of all demands. Facts about a cluster or a policy are worked out once, for all its workloads."""

    desired: Desired
    observed: Observed
    history: DemandHistory
    now: datetime
    gangs: Mapping[WorkloadId, GangWorkload | None]
    limit_ranges: bool
    """Whether any cluster has LimitRanges."""
    primaries: dict[ClusterName, _Primary | str] = field(default_factory=dict)
    """Each primary, or why it is unseen."""
    timed_asks: dict[str, tuple[ReplicaRequest, ...]] = field(default_factory=dict)
    """What the time asks for, by policy."""

    def demand(self, workload: WorkloadId, policy: BurstPolicy, ref: WorkloadRef) -> Demand | UnseenPrimary:
        """Measure the demand of one workload."""
        # 1. The primary is unseen.
        name = self.desired.workspaces[workload.workspace].primary
        primary = self._primary(name)
        if isinstance(primary, str):
            return UnseenPrimary(workload=workload, message=primary)
        # 2. The workload as the primary reports it, without what stale signals of the cluster ask for.
        seen = primary.workload(ref)
        stale: tuple[str, ...] = ()
        if primary.stale:
            kind = ref.kind or (seen.ref.kind if seen else "")
            asks, stale = fresh_cluster_asks(seen.asks if seen else (), kind, primary.stale)
            seen = replace(seen, asks=asks) if seen else None
        # 3. The signals of its policy.
        asks, stale_of_policy = self._policy_asks(workload, policy)
        stale = stale_of_policy + stale
        # 4. What one replica is: a gang, or a pod whose shape the template completes.
        template = self.desired.templates[workload]
        gang, unit = self._gang(workload, policy, template, seen)
        if seen is not None:
            seen = gang.seen(seen) if gang else self._with_shape(seen, template, primary.observation)
            asks += seen.asks
        # 5. The pods of a gang are missing, and nobody knows how many replicas they make.
        history = self.history.get(workload, ())
        wanted, running = (seen.wanted, seen.running) if seen else (0, 0)
        if unit is not None and unit.unknown and running < wanted:
            stale = (*stale, unit.unknown)
        # 6. All signals, added up. A gang that does not divide bursts as one copy, however many are asked for.
        steps = merge(max(0, wanted - running), seen.waiting if seen else (), asks, policy.scale_up_window)
        if steps and gang is not None and not gang.divisible:
            steps = (replace(steps[0], replicas=1),)
        missing = sum([step.replicas for step in steps])
        # 7. Since when. A cluster's word about its pods says nothing of what other signals have asked for meanwhile.
        asked = bool(asks) or any(signal.source for signal in policy.signals)
        since = None if asked or seen is None else seen.deficit_since
        return Demand(
            workload=workload,
            primary=name,
            wanted=wanted,
            running=running,
            missing=missing,
            waiting=steps,
            shape=seen.shape if seen else None,
            history=_extend(
                () if stale else history, missing, since, primary.at, policy.scale_down_window, asked=asked
            ),
            observed_at=primary.at,
            reported=seen is not None,
            stale=stale,
            unit=unit,
        )

    def _primary(self, name: ClusterName) -> _Primary | str:
        """Return a primary cluster as it was seen, or why it counts as unseen."""
        if name not in self.primaries:
            fleet = self.desired.fleet
            self.primaries[name] = unseen(fleet, self.observed, name, self.now) or _Primary.of(
                self.observed.clusters[name], fleet.observation_max_age, self.now
            )
        return self.primaries[name]

    def _policy_asks(
        self, workload: WorkloadId, policy: BurstPolicy
    ) -> tuple[tuple[ReplicaRequest, ...], tuple[str, ...]]:
        """Return what the signals of a policy ask for a workload, and a sentence about each stale one."""
        asks = self.observed.asks.get(workload, ())
        stale: tuple[str, ...] = ()
        if policy.signals:
            asks, stale = fresh_asks(workload, policy, self.observed, self.desired.fleet.observation_max_age, self.now)
            if policy.name not in self.timed_asks:
                self.timed_asks[policy.name] = tuple(ask for signal in policy.signals for ask in signal.asks(self.now))
            asks += self.timed_asks[policy.name]
        return asks, stale

    def _gang(
        self, workload: WorkloadId, policy: BurstPolicy, template: WorkloadTemplate, seen: WorkloadObservation | None
    ) -> tuple[GangWorkload | None, GroupUnit | None]:
        """Return the gang that a workload is placed as, and its unit where only the primary tells of it."""
        gang = self.gangs.get(workload)
        if gang is not None or workload not in self.gangs or seen is None or policy.spread is not None:
            return gang, None
        unit = group_unit(template, self.desired.kinds, seen)
        return (chart_gang_of(template, unit) if unit is not None else None), unit

    def _with_shape(
        self, seen: WorkloadObservation, template: WorkloadTemplate, primary: ClusterObservation
    ) -> WorkloadObservation:
        """Complete the shape of a replica with what its template leaves to clusters."""
        return completed(seen, template, self.desired.kinds, ranges=self.limit_ranges, classes=primary.runtime_classes)


def _extend(
    history: tuple[Sample, ...], missing: int, since: datetime | None, at: datetime, window: timedelta, *, asked: bool
) -> tuple[Sample, ...]:
    """Add the present missing to the history, and drop samples that no window looks at any more.

    `since` is the cluster's own word that no more pods than this have been waiting from then on; it replaces samples of
    times when no other signal asked. A clock that jumped back makes the history worthless, so a new one begins.
    """
    # 1. Most workloads, of which there may be very many: nothing has changed, and nothing is to be dropped.
    if history and since is None and (len(history) == 1 or history[1].at > at - window):
        last = history[-1]
        if last.missing == missing and last.asked == asked and last.at <= at:
            return history
    # 2. The clock jumped back.
    if history and history[-1].at > at:
        history = ()
    # 3. The cluster's word does not reach behind a time when other signals asked.
    if since is not None and history:
        ends = (*(sample.at for sample in history[1:]), at)
        since = max((since, *(end for sample, end in zip(history, ends, strict=True) if sample.asked)))
    # 4. The present missing, since the cluster's word or since now.
    if since is not None and since < at:
        history = tuple(sample for sample in history if sample.at < since)
        history += (Sample(at=since, missing=missing, asked=asked),)
    elif not history or history[-1].missing != missing or history[-1].asked != asked:
        history += (Sample(at=at, missing=missing, asked=asked),)
    # 5. The last sample that is as old as the window is the first to keep.
    first = 0
    for index, sample in enumerate(history):
        if sample.at <= at - window:
            first = index
    return history[first:]


def remembered(demands: Demands) -> DemandHistory:
    """Return the histories that the next pass continues. With a stale signal a history ends: nobody watched."""
    return {
        workload: demand.history
        for workload, demand in demands.items()
        if isinstance(demand, Demand) and not demand.stale
    }


def matured(demand: Demand, window: timedelta, now: datetime) -> int:
    """Count the replicas that have been missing for the whole window, or were planned."""
    return sum(step.replicas for step in demand.waiting if due(step, window) <= now)


def next_maturity(demand: Demand, window: timedelta, now: datetime) -> datetime | None:
    """Return when the next replicas will have been missing for the whole window; None when all have."""
    return min((at for step in demand.waiting if (at := due(step, window)) > now), default=None)


def next_signal_change(policies: Iterable[BurstPolicy], now: datetime) -> datetime | None:
    """Return when time alone next changes what a signal of these policies asks for; None where it does not."""
    changes = (signal.next_change(now) for policy in policies for signal in policy.signals)
    return min((change for change in changes if change is not None), default=None)


def ceiling(demand: Demand, window: timedelta) -> int | None:
    """Return the most replicas that were missing within the window, which must not be taken away yet.

    The window ends with the last observation, since nobody has seen anything after it. None when nobody has watched for
    the whole window, as after a start; then nothing is taken away at all. The rule is the stabilisation window of
    Kubernetes' HorizontalPodAutoscaler.
    """
    start = demand.observed_at - window
    if demand.history[0].at > start:
        return None
    return max(sample.missing for sample, end in _spans(demand) if end > start or end == demand.observed_at)


def next_fall(demand: Demand, window: timedelta) -> datetime:
    """Return when the ceiling within the window will first fall, if the demand stays as it is.

    That is when the demand has been watched for the whole window, or else when its highest sample leaves the window.
    """
    highest = ceiling(demand, window)
    if highest is None:
        return demand.history[0].at + window
    return max(end for sample, end in _spans(demand) if sample.missing == highest) + window


def _spans(demand: Demand) -> Iterable[tuple[Sample, datetime]]:
    """Pair each sample with the moment at which it ended; the present one ends with the last observation."""
    ends = (*(sample.at for sample in demand.history[1:]), demand.observed_at)
    return zip(demand.history, ends, strict=True)
