"""From signals to the replicas each workload is missing, now and over the windows of its policy.

EGS leaves the replica count undefined. Here the replicas that burst are those that the primary cannot hold now, never
those that are merely starting, and the primary's own count is not touched. `core.signals.merge` adds the replicas that
other signals ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.chart_gangs import chart_gang_of, group_unit
from reconciler.core.capacity.gangs import GangWorkload, gang_workloads
from reconciler.core.observe.counted_object import counted, counted_object, members_of, not_found
from reconciler.core.observe.primary_shape import with_primary_shape
from reconciler.core.observe.unread_kinds import describe_stale, describe_unread, unread_kind
from reconciler.core.signals.cluster import fresh_cluster_asks, stale_kinds
from reconciler.core.signals.freshness import fresh_asks
from reconciler.core.signals.merge import due, merge, with_foreseen, with_headroom
from reconciler.core.signals.past_demand import Levels, extended
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation, GroupUnit, Observed, UnreadKind, WorkloadObservation
from reconciler.model.demand import Demand, Sample
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.policy import BurstPolicy, Desired, Fleet
from reconciler.model.signal import Foresight, ReplicaRequest
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadRef, WorkloadTemplate

DemandHistory = Mapping[WorkloadId, tuple[Sample, ...]]
"""The missing replicas of each workload for as long as this process has watched, oldest first."""

PastDemand = Mapping[WorkloadId, Levels]
"""The past demand of each workload with a signal that looks back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenPrimary:
    """A workload with an unseen primary keeps what it has, no more (docs/background/concepts.md, "Promises")."""

    workload: WorkloadId
    message: str
    bug: Bug | None = None
    """The exception for which the demand is unknown, where nothing foresaw it."""


_NO_PAST: PastDemand = {}
_LONGEST = timedelta(days=366)
"""The past demand that is kept of a workload whose policy is not looked at."""

Demands = Mapping[WorkloadId, Demand | UnseenPrimary]


def unseen(fleet: Fleet, observed: Observed, cluster: ClusterName, now: datetime) -> str:
    """Return why a cluster counts as unseen, or an empty string if it was seen recently.

    An observation from further in the future than the maximum age is as useless as an old one: one of two clocks is
    wrong, and nothing says which.
    """
    since = unseen_since(fleet, observed, cluster, now)
    return f"{cluster} {since}" if since else ""


def unseen_since(fleet: Fleet, observed: Observed, cluster: ClusterName, now: datetime) -> str:
    """Return why a cluster counts as unseen without its name, as ``has not been observed``; empty as for `unseen`."""
    observation = observed.clusters.get(cluster)
    if observation is None:
        return "has not been observed"
    age = now - observation.observed_at
    limit = fleet.observation_max_age
    if age > limit:
        return f"was last observed {format_duration(age)} ago, more than {format_duration(limit)}"
    if -age > limit:
        return f"was observed {format_duration(-age)} in the future: compare the clocks"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The demands of one moment, and what they follow from."""

    demands: Demands
    desired: Desired
    observed: Observed
    now: datetime

    def at(self, primary: ClusterName) -> datetime:
        """Return when a primary was seen."""
        return seen_at(self.observed, primary, self.now)


def seen_at(observed: Observed, cluster: ClusterName, now: datetime) -> datetime:
    """Return when a cluster was seen last; now, where that is in the future, or where it has never been seen."""
    seen = observed.clusters.get(cluster)
    return now if seen is None else min(seen.observed_at, now)


def measure(
    desired: Desired,
    observed: Observed,
    history: DemandHistory,
    now: datetime,
    past: PastDemand = _NO_PAST,
    *,
    before: Measured | None = None,
) -> Demands:
    """Measure the demand of every workload that may burst and whose object on the primary is known.

    That of a workload whose template gets its object from a source that cannot be read now is unknown. A workload that
    its primary, freshly seen, does not report has no pods there that could wait. What was measured `before` is taken
    over for workloads of a primary that shows what it showed then.
    """
    measurement = _Measurement(
        desired=desired,
        observed=observed,
        history=history,
        past=past,
        now=now,
        gangs=gang_workloads(desired),
        limit_ranges=observed.limit_ranges,
        pod_bounds=observed.has_pod_bounds,
    )
    known = {} if before is None else _still_known(before, desired, observed, history, now)
    if before is not None and len(known) == len(before.demands):
        return before.demands
    demands: dict[WorkloadId, Demand | UnseenPrimary] = {}
    for workload, policy in desired.policies.items():
        if workload in known:
            demands[workload] = known[workload]
            continue
        ref, unread = desired.templates[workload].ref, desired.templates[workload].unread
        if ref is None and unread:
            demands[workload] = UnseenPrimary(workload=workload, message=unread)
        elif ref is not None:
            demand = attempt(Seam.DEMAND, workload, partial(measurement.demand, workload, policy, ref))
            # A workload whose demand is unknown keeps what it has, as one whose primary is unseen.
            demands[workload] = (
                UnseenPrimary(workload=workload, message=demand.summary, bug=demand)
                if isinstance(demand, Bug)
                else demand
            )
    return demands


def _still_known(
    before: Measured, desired: Desired, observed: Observed, history: DemandHistory, now: datetime
) -> dict[WorkloadId, Demand]:
    """Return the demands of `before` that hold still, as observed now.

    A primary that shows the same objects has the same demand, unless time has a part in it: by signals, spare replicas
    that last for a while, or a sample that no window looks at any more.
    """
    if before.desired is not desired or now < before.now or before.observed.limit_ranges != observed.limit_ranges:
        return {}
    if before.observed.has_pod_bounds != observed.has_pod_bounds:
        return {}
    times = {
        name: (before.at(name), seen_at(observed, name, now))
        for name in {workspace.primary for workspace in desired.workspaces.values()}
        if _shows_the_same(before, observed, name, now)
    }
    known: dict[WorkloadId, Demand] = {}
    for workload, demand in before.demands.items():
        if not isinstance(demand, Demand) or demand.stale or history.get(workload) is not demand.history:
            continue
        primary = times.get(demand.primary)
        if primary is None:
            continue
        policy = desired.policies[workload]
        if policy.signals or policy.headroom or observed.asks.get(workload) != before.observed.asks.get(workload):
            continue
        if _samples_hold(demand, *primary, policy.scale_down_window):
            known[workload] = demand
    return known


def _shows_the_same(before: Measured, observed: Observed, primary: ClusterName, now: datetime) -> bool:
    """Return whether a primary was seen lately both times, and shows the same objects and nothing stale."""
    seen, then = observed.clusters.get(primary), before.observed.clusters.get(primary)
    if seen is None or then is None or seen.stale or then.stale or seen.observed_at < then.observed_at:
        return False
    if seen.unread != then.unread or any(each.at is not None for each in seen.unread):  # which are stale in time
        return False
    fleet = before.desired.fleet
    return (
        seen.workloads is then.workloads
        and seen.others is then.others
        and seen.runtime_classes is then.runtime_classes
        and not unseen(fleet, observed, primary, now)
        and not unseen(fleet, before.observed, primary, before.now)
    )


def _samples_hold(demand: Demand, before: datetime, at: datetime, window: timedelta) -> bool:
    """Return whether `_extend` would return the history as it is, given that nothing has changed since `before`."""
    history = demand.history
    return history[-1].at < before <= at and (len(history) == 1 or history[1].at > at - window)


def counted_workload(
    desired: Desired, observation: ClusterObservation, workload: WorkloadId, now: datetime
) -> tuple[WorkloadObservation | None, GangWorkload | None]:
    """Return a workload that may burst as its primary reports it, None where it does not, and the gang that it is."""
    measurement = _Measurement(
        desired=desired,
        observed=Observed(clusters={observation.cluster: observation}),
        history={},
        past={},
        now=now,
        gangs=gang_workloads(desired),
        limit_ranges=bool(observation.limit_ranges),
        pod_bounds=observation.has_pod_bounds,
    )
    return measurement.counted(workload, observation)


def _as_one_run(seen: WorkloadObservation) -> WorkloadObservation:
    """Convert the pods of what runs once into the one copy that its template deploys: a replica of all of them.

    How many they are is known by the object on the primary, or by what asks for its pods before there are any.
    """
    pods = max([seen.wanted, *(ask.replicas for ask in seen.asks)])
    if pods <= 1 or seen.shape is None:
        return seen
    lacks = bool(seen.waiting) or seen.running < seen.wanted
    return replace(
        seen,
        wanted=min(1, seen.wanted),
        running=0 if lacks else min(1, seen.running),
        waiting=tuple(replace(step, replicas=1) for step in seen.waiting[:1]),
        asks=tuple(replace(ask, replicas=1) for ask in seen.asks),
        shape=replace(seen.shape, group_size=seen.shape.group_size * pods),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Primary:
    """Workloads and signals of one primary cluster, freshly seen."""

    observation: ClusterObservation
    at: datetime
    """When the cluster was observed; now, where that is in the future."""
    changed: datetime
    """When the newest of its changes was heard; `at`, where that is earlier."""
    stale: Mapping[str, str]
    """Sentence about each kind of signal that is stale in the cluster."""
    workloads: Mapping[tuple[str, str], list[WorkloadObservation]]
    """By namespace and name."""
    releases: Mapping[str, list[WorkloadObservation]]
    """By Helm release, as ``namespace/name``, without those that templates name outright."""
    kinds: Kinds

    @classmethod
    def of(
        cls,
        observation: ClusterObservation,
        max_age: timedelta,
        now: datetime,
        named: Collection[tuple[str, str]],
        *,
        kinds: Kinds,
    ) -> _Primary:
        """Index an observation; `named` are the objects that templates name outright."""
        workloads: dict[tuple[str, str], list[WorkloadObservation]] = {}
        members = tuple(counted(observation.workloads, kinds))
        for seen in members:
            workloads.setdefault((seen.ref.namespace, seen.ref.name), []).append(seen)
        at = min(observation.observed_at, now)
        return cls(
            observation=observation,
            at=at,
            changed=at if observation.changed_at is None else max(at, min(observation.changed_at, now)),
            stale=stale_kinds(observation, max_age, now),
            workloads=workloads,
            releases=members_of(members, named),
            kinds=kinds,
        )

    def workload(self, ref: WorkloadRef) -> tuple[WorkloadObservation | None, str]:
        """Find a workload object, and say what there is to say of it; None where the cluster has none such."""
        called = self.workloads.get((ref.namespace, ref.name), ())
        released = self.releases.get(f"{ref.namespace}/{ref.name}", ()) if ref.release else ()
        seen, note = counted_object(ref, called, released)
        if seen is None and not any(ref.may_be(other) for other in self.observation.others):
            note = not_found(ref, self.observation, self.kinds)
        return seen, note


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measurement:
    """A measurement of all demands. Facts about a cluster or a policy are worked out once, for all its workloads."""

    desired: Desired
    observed: Observed
    history: DemandHistory
    past: PastDemand
    now: datetime
    gangs: Mapping[WorkloadId, GangWorkload | None]
    limit_ranges: bool
    """Whether any cluster has LimitRanges."""
    pod_bounds: bool
    """Whether quotas or LimitRanges of any cluster may refuse pods."""
    primaries: dict[ClusterName, _Primary | str] = field(default_factory=dict)
    """Each primary, or why it is unseen."""
    timed_asks: dict[str, tuple[ReplicaRequest, ...]] = field(default_factory=dict)
    """The replicas that schedules ask for, by policy."""
    spans: dict[str, timedelta] = field(default_factory=dict)
    """How far the signals of each policy look back."""

    def demand(self, workload: WorkloadId, policy: BurstPolicy, ref: WorkloadRef) -> Demand | UnseenPrimary:
        """Measure the demand of one workload."""
        # 1. The primary is unseen.
        name = self.desired.workspaces[workload.workspace].primary
        primary = self._primary(name)
        if isinstance(primary, str):
            return UnseenPrimary(workload=workload, message=primary)
        # 2. The workload as the primary reports it, without what stale signals of the cluster ask for.
        seen, note = primary.workload(ref)
        stale: tuple[str, ...] = ()
        if primary.stale:
            kind = ref.kind or (seen.ref.kind if seen else "")
            asks, stale = fresh_cluster_asks(seen.asks if seen else (), kind, primary.stale)
            seen = replace(seen, asks=asks) if seen else None
        started, claimed = (seen.started, seen.claimed) if seen is not None else ("", "")
        template, words = self.desired.templates[workload], started or claimed
        unread = self._unread(primary.observation, ref, seen)
        if unread is not None and not started:
            words = words or describe_unread(unread, runs_once=template.runs_once)
            claimed = words if template.runs_once else claimed
            old = describe_stale(unread, primary.observation, self.desired.fleet.observation_max_age, self.now)
            stale += (old,) if old else ()
        note = "; ".join(part for part in (note, f"on {name} {words}" if words else "") if part)
        # 3. The signals of its policy.
        asks, stale_of_policy = self._policy_asks(workload, policy)
        stale = stale_of_policy + stale
        # 4. What one replica is: a gang, or a pod whose shape the template completes.
        gang, unit = self._gang(workload, policy, template, seen)
        at_home = 0 if seen is None else seen.running * (seen.shape.group_size if seen.shape is not None else 1)
        if seen is not None:
            note = note or (gang.note(seen) if gang else "")
            seen = gang.seen(seen) if gang else self._with_shape(seen, template, primary.observation)
            asks += seen.asks
        # 5. The pods of a gang are missing, and the number of their replicas is unknown.
        history = self.history.get(workload, ())
        wanted, running = (seen.wanted, seen.running) if seen else (0, 0)
        if unit is not None and unit.unknown and running < wanted:
            stale = (*stale, unit.unknown)
        # 6. All signals, by `merge`. Of a gang that does not divide, and of what runs once, one copy bursts at most.
        steps = merge(max(0, wanted - running), seen.waiting if seen else (), asks, policy.scale_up_window)
        copy = gang.copy if gang is not None and not gang.divisible else template.copy if template.runs_once else None
        if steps and copy is not None:
            steps = (replace(steps[0], replicas=min(copy, sum(step.replicas for step in steps))),)
        # 7. Spare replicas, as long as any is missing. A gang and what runs once have none.
        needed = steps
        if policy.headroom and gang is None and not template.runs_once:
            steps = with_headroom(steps, policy.headroom, policy.headroom_duration, self.now)
        # 8. Replicas that signals foresee from what was missing so far. A gang and what runs once have none.
        levels: Levels = ()
        forecasts: tuple[str, ...] = ()
        looks_back = self._looks_back(policy) if policy.signals else None
        if looks_back and gang is None and not template.runs_once:
            count = None if stale else sum(step.replicas for step in needed)
            levels = extended(self.past.get(workload, ()), count, self.now, looks_back)
            foresights = self._foresights(policy, levels, count)
            steps = with_foreseen(steps, [each.request for each in foresights if each.request is not None])
            forecasts = tuple(each.statement for each in foresights)
        missing = sum([step.replicas for step in steps])
        # 9. Since when. A cluster's word about its pods says nothing of what other signals have asked for meanwhile.
        asked = bool(asks) or bool(looks_back) or any(signal.source for signal in policy.signals)
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
                () if stale else history,
                missing,
                since,
                primary.at,
                policy.scale_down_window,
                asked=asked,
                changed=primary.changed,
            ),
            reported=seen is not None,
            note=note,
            stale=stale,
            pods_at_home=at_home,
            held=seen is not None and seen.held,
            started=started,
            claimed=claimed,
            unit=unit,
            past=levels,
            forecasts=forecasts,
            blocked=seen.blocked if seen is not None else (),
        )

    def counted(
        self, workload: WorkloadId, observation: ClusterObservation
    ) -> tuple[WorkloadObservation | None, GangWorkload | None]:
        """Return a workload as its primary reports it, however old the observation is, and the gang that it is."""
        template = self.desired.templates[workload]
        seen = None if template.ref is None else self._indexed(observation).workload(template.ref)[0]
        gang, _ = self._gang(workload, self.desired.policies[workload], template, seen)
        return seen, gang

    def _unread(
        self, primary: ClusterObservation, ref: WorkloadRef, seen: WorkloadObservation | None
    ) -> UnreadKind | None:
        """Return the kind of a workload's object where the primary does not let anybody read it."""
        known = seen.ref if seen is not None else ref
        return unread_kind(primary.unread, known.kind, known.group) if primary.unread else None

    def _looks_back(self, policy: BurstPolicy) -> timedelta:
        """Return how far the signals of a policy look back at most."""
        if policy.name not in self.spans:
            self.spans[policy.name] = max(signal.looks_back for signal in policy.signals)
        return self.spans[policy.name]

    def _foresights(self, policy: BurstPolicy, levels: Levels, missing: int | None) -> tuple[Foresight, ...]:
        """Return what each signal that looks back foresees; nothing while what is missing is unknown."""
        if missing is None:
            return ()
        return tuple(signal.foresees(levels, missing, self.now) for signal in policy.signals if signal.looks_back)

    def _primary(self, name: ClusterName) -> _Primary | str:
        """Return a primary cluster as it was seen, or why it counts as unseen."""
        if name not in self.primaries:
            blind = unseen(self.desired.fleet, self.observed, name, self.now)
            self.primaries[name] = blind or self._indexed(self.observed.clusters[name])
        return self.primaries[name]

    def _indexed(self, observation: ClusterObservation) -> _Primary:
        named = self._named_objects(observation.cluster)
        limit, kinds = self.desired.fleet.observation_max_age, self.desired.kinds
        return _Primary.of(observation, limit, self.now, named, kinds=kinds)

    def _named_objects(self, primary: ClusterName) -> frozenset[tuple[str, str]]:
        """Return the objects that templates of a primary name outright, by namespace and name."""
        return frozenset(
            (ref.namespace, ref.name)
            for workload in self.desired.policies
            if (ref := self.desired.templates[workload].ref) is not None
            and not ref.release
            and self.desired.workspaces[workload.workspace].primary == primary
        )

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
        """Complete the shape of a replica with what its template leaves to clusters; of a copy that is one run, all."""
        shaped = with_primary_shape(
            seen,
            template,
            self.desired.kinds,
            ranges=self.limit_ranges,
            classes=primary.runtime_classes,
            workspace=self.desired.workspaces[template.workspace],
            bounded=self.pod_bounds,
        )
        return _as_one_run(shaped) if template.runs_once and template.copy == 1 else shaped


def _extend(
    history: tuple[Sample, ...],
    missing: int,
    since: datetime | None,
    at: datetime,
    window: timedelta,
    *,
    asked: bool,
    changed: datetime,
) -> tuple[Sample, ...]:
    """Add the present missing to the history, and drop samples that no window looks at any more.

    It begins when it was heard (`changed`), which may be after the moment up to which all of the cluster was seen
    (`at`): until then more may have been missing.

    `since` is the cluster's own word that no more pods than this have been waiting from then on; it replaces samples of
    times when no other signal asked. A clock that jumped back makes the history worthless, so a new one begins.
    """
    # 1. Most workloads, of which there may be very many: nothing has changed, and nothing is to be dropped.
    if history and since is None and (len(history) == 1 or history[1].at > at - window):
        last = history[-1]
        if last.missing == missing and last.asked == asked and last.at <= changed:
            return history
    # 2. The clock jumped back.
    if history and history[-1].at > changed:
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
        history += (Sample(at=changed, missing=missing, asked=asked),)
    # 5. The last sample that is as old as the window is the first to keep.
    first = 0
    for index, sample in enumerate(history):
        if sample.at <= at - window:
            first = index
    return history[first:]


def next_history(demands: Demands) -> DemandHistory:
    """Return the histories that the next pass continues. A stale signal ends the history."""
    return {
        workload: demand.history
        for workload, demand in demands.items()
        if isinstance(demand, Demand) and not demand.stale
    }


def next_past(past: PastDemand, demands: Demands, now: datetime) -> PastDemand:
    """Return the past demand that the next pass continues; where it is not measured the present is unknown."""
    following: dict[WorkloadId, Levels] = {}
    for workload, demand in demands.items():
        if isinstance(demand, Demand) and demand.past:
            following[workload] = demand.past
        elif workload in past:
            following[workload] = extended(past[workload], None, now, _LONGEST)
    return following


def replicas_due(demand: Demand, window: timedelta, now: datetime) -> int:
    """Count the replicas that have been missing for the whole window, or were planned."""
    return sum([step.replicas for step in demand.waiting if due(step, window) <= now])


def next_due(demand: Demand, window: timedelta, now: datetime) -> datetime | None:
    """Return when the next replicas will have been missing for the whole window; None when all have."""
    return min([at for step in demand.waiting if (at := due(step, window)) > now], default=None)


def next_signal_change(policies: Iterable[BurstPolicy], now: datetime) -> datetime | None:
    """Return when time alone next changes what a signal of these policies asks for; None where it does not."""
    changes = (signal.next_change(now) for policy in policies for signal in policy.signals)
    return min((change for change in changes if change is not None), default=None)


def peak_missing(demand: Demand, window: timedelta, at: datetime) -> int | None:
    """Return the most replicas that were missing within the window, which must not be taken away yet.

    The window ends when the primary was seen last (`at`), since nobody has seen anything after it. None when nobody has
    watched for the whole window, as after a start; then nothing is taken away at all. The rule is the stabilisation
    window of Kubernetes' HorizontalPodAutoscaler.
    """
    start = at - window
    if demand.history[0].at > start:
        return None
    return max(sample.missing for sample, end in _spans(demand, at) if end > start or end == at)


def next_peak_change(demand: Demand, window: timedelta, at: datetime) -> datetime:
    """Return when the ceiling within the window will first fall, if the demand stays as it was seen `at` last.

    That is when the demand has been watched for the whole window, or else when its highest sample leaves the window.
    """
    highest = peak_missing(demand, window, at)
    if highest is None:
        return demand.history[0].at + window
    return max(end for sample, end in _spans(demand, at) if sample.missing == highest) + window


def _spans(demand: Demand, at: datetime) -> Iterable[tuple[Sample, datetime]]:
    """Pair each sample with the moment at which it ended; the present one ends with the last observation."""
    ends = (*(sample.at for sample in demand.history[1:]), at)
    return zip(demand.history, ends, strict=True)
