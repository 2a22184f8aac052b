"""From what signals say to the replicas each workload is missing, now and over the windows of its policy.

EGS leaves the replica count undefined; ours is: what bursts is what the primary cannot hold now, never what is merely
starting, and the primary's own count is not touched. What else asks for replicas is put together with it in `merging`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.core.capacity.chart_gangs import by_unit, unit_of
from reconciler.core.capacity.gangs import GangWorkload, wholes
from reconciler.core.observe.merge_signals import due, merged
from reconciler.core.observe.primary_shape import completed
from reconciler.core.observe.schedule import planned
from reconciler.core.observe.signal_freshness import believed, heard, silent
from reconciler.model.capacity import ClusterObservation, GroupUnit, Observed, ReplicaRequest, WorkloadObservation
from reconciler.model.demand import Demand, Sample
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.policy import BurstPolicy, Desired, Fleet
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadRef

History = Mapping[WorkloadId, tuple[Sample, ...]]
"""How each workload's deficit went, as far as this process has watched; oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenPrimary:
    """A workload whose primary cannot be seen keeps what it has (docs/concepts.md, "Promises")."""

    workload: WorkloadId
    message: str


Demands = Mapping[WorkloadId, Demand | UnseenPrimary]


_NONE: tuple[tuple[ReplicaRequest, ...], tuple[ReplicaRequest, ...], tuple[str, ...]] = ((), (), ())


def unseen(fleet: Fleet, observed: Observed, cluster: ClusterName, now: datetime) -> str:
    """Say why a cluster counts as unseen, or return an empty string if it was seen recently.

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


def measure(desired: Desired, observed: Observed, history: History, now: datetime) -> Demands:
    """Work out the demand of every workload that may burst.

    A workload that its primary, freshly seen, does not report has no pods there that could wait.
    """
    plans: dict[str, tuple[ReplicaRequest, ...]] = {}
    reported: dict[ClusterName, dict[tuple[str, str], list[WorkloadObservation]]] = {}
    blind: dict[ClusterName, str] = {}
    silence: dict[ClusterName, Mapping[str, str]] = {}
    moments: dict[ClusterName, datetime] = {}
    demands: dict[WorkloadId, Demand | UnseenPrimary] = {}
    grouped, ranges = wholes(desired), any(one.limit_ranges for one in observed.clusters.values())
    for workload, policy in desired.policies.items():
        template = desired.templates[workload]
        if template.ref is None:
            continue
        primary = desired.workspaces[workload.workspace].primary
        if primary not in blind:
            blind[primary] = unseen(desired.fleet, observed, primary, now)
            if not blind[primary]:
                reported[primary] = _by_name(observed.clusters[primary])
                moments[primary] = min(observed.clusters[primary].observed_at, now)
                silence[primary] = silent(observed.clusters[primary], desired.fleet, now)
        if blind[primary]:
            demands[workload] = UnseenPrimary(workload=workload, message=blind[primary])
            continue
        seen = _find(reported[primary], template.ref)
        plan, asks, unheard = _NONE
        if policy.schedules:
            if policy.name not in plans:
                plans[policy.name] = planned(policy, now)
            plan = plans[policy.name]
        if policy.queries or observed.asks:
            asks, unheard = heard(workload, policy, desired.fleet, observed, now)
        if silence[primary]:
            kind = template.ref.kind or (seen.ref.kind if seen else "")
            left, why = believed(seen.asks if seen else (), kind, silence[primary])
            seen, unheard = replace(seen, asks=left) if seen else None, unheard + why
        goes_whole: GangWorkload | None = grouped.get(workload)
        unit = None
        if goes_whole is None and workload in grouped and seen is not None and policy.spread is None:
            unit = unit_of(template, desired.kinds, seen)
            goes_whole = by_unit(template, unit) if unit is not None else None
        if seen is not None:
            classes = observed.clusters[primary].runtime_classes
            seen = (
                goes_whole.seen(seen)
                if goes_whole
                else completed(seen, template, desired.kinds, ranges=ranges, classes=classes)
            )
        demands[workload] = _demand(
            workload,
            primary,
            seen,
            policy=policy,
            asks=asks,
            plan=plan,
            unheard=unheard,
            history=() if unheard else history.get(workload, ()),
            at=moments[primary],
            once=goes_whole is not None and not goes_whole.divisible,
            unit=unit,
        )
    return demands


def remembered(demands: Demands) -> History:
    """Keep what the next pass has to know of this one. A blind or deaf moment forgets: nobody watched."""
    return {
        workload: demand.history
        for workload, demand in demands.items()
        if isinstance(demand, Demand) and not demand.unheard
    }


def matured(demand: Demand, window: timedelta, now: datetime) -> int:
    """Count the replicas that have been missing for the whole window, or were planned."""
    return sum(step.replicas for step in demand.waiting if due(step, window) <= now)


def next_maturity(demand: Demand, window: timedelta, now: datetime) -> datetime | None:
    """Tell when the next replicas will have been missing for the whole window; None when all have."""
    return min((at for step in demand.waiting if (at := due(step, window)) > now), default=None)


def ceiling(demand: Demand, window: timedelta) -> int | None:
    """Return the largest deficit that was seen within the window: what must not be taken away yet.

    The window ends with the last observation, since nobody has seen anything after it. None when nobody has watched for
    the whole of it, as after a start; then nothing is taken away at all. The rule is the stabilisation window of
    Kubernetes' HorizontalPodAutoscaler.
    """
    start = demand.observed_at - window
    if demand.history[0].at > start:
        return None
    return max(sample.deficit for sample, end in _spans(demand) if end > start or end == demand.observed_at)


def next_fall(demand: Demand, window: timedelta) -> datetime:
    """Tell when the window will first hold less than it does now, if the demand stays as it is.

    That is when it has been watched for the whole window, or else when the highest deficit within it leaves it.
    """
    highest = ceiling(demand, window)
    if highest is None:
        return demand.history[0].at + window
    return max(end for sample, end in _spans(demand) if sample.deficit == highest) + window


def _spans(demand: Demand) -> Iterable[tuple[Sample, datetime]]:
    """Give each sample with the moment at which it ended; the present one ends with the last observation."""
    ends = (*(sample.at for sample in demand.history[1:]), demand.observed_at)
    return zip(demand.history, ends, strict=True)


def _by_name(cluster: ClusterObservation) -> dict[tuple[str, str], list[WorkloadObservation]]:
    found: dict[tuple[str, str], list[WorkloadObservation]] = {}
    for seen in cluster.workloads:
        found.setdefault((seen.ref.namespace, seen.ref.name), []).append(seen)
    return found


def _find(
    reported: Mapping[tuple[str, str], list[WorkloadObservation]], ref: WorkloadRef
) -> WorkloadObservation | None:
    for seen in reported.get((ref.namespace, ref.name), ()):
        if ref.may_be(seen.ref):
            return seen
    return None


def _demand(
    workload: WorkloadId,
    primary: ClusterName,
    seen: WorkloadObservation | None,
    *,
    policy: BurstPolicy,
    asks: tuple[ReplicaRequest, ...],
    plan: tuple[ReplicaRequest, ...],
    unheard: tuple[str, ...],
    history: tuple[Sample, ...],
    at: datetime,
    once: bool,
    unit: GroupUnit | None,
) -> Demand:
    """Put together what is missing; of what there is only `once` elsewhere it is one copy, whoever asks for more."""
    wanted, running, waiting = (seen.wanted, seen.running, seen.waiting) if seen else (0, 0, ())
    asks += seen.asks if seen else ()
    if unit is not None and unit.unknown and running < wanted:  # pods are missing, and nobody knows how many replicas
        history, unheard = (), (*unheard, unit.unknown)
    steps = merged(max(0, wanted - running), waiting, asks, plan, policy.scale_up_window)
    if once and steps:
        steps = (replace(steps[0], replicas=1),)
    deficit = sum([step.replicas for step in steps])
    # Whoever says since when pods have been waiting knows nothing of what else may have been asked for meanwhile.
    asked = bool(asks or plan or policy.queries)
    since = None if asked or seen is None else seen.deficit_since
    return Demand(
        workload=workload,
        primary=primary,
        wanted=wanted,
        running=running,
        deficit=deficit,
        waiting=steps,
        shape=seen.shape if seen else None,
        history=_watched(history, deficit, since, at, policy.scale_down_window, asked=asked),
        observed_at=at,
        reported=seen is not None,
        unheard=unheard,
        unit=unit,
    )


def _watched(
    history: tuple[Sample, ...], deficit: int, since: datetime | None, at: datetime, window: timedelta, *, asked: bool
) -> tuple[Sample, ...]:
    """Add the present deficit to the record, and drop what no window looks at any more.

    `since` is the source's own word that no more pods than this have been waiting from then on; it replaces what we saw
    of times when nothing else asked. A clock that jumped back makes the record worthless, so it begins anew.
    """
    # What most workloads are like, of which there may be very many: all is as it was, and nothing is to be dropped.
    if history and since is None and (len(history) == 1 or history[1].at > at - window):
        last = history[-1]
        if last.deficit == deficit and last.asked == asked and last.at <= at:
            return history
    if history and history[-1].at > at:
        history = ()
    if since is not None and history:
        ends = (*(sample.at for sample in history[1:]), at)
        since = max((since, *(end for sample, end in zip(history, ends, strict=True) if sample.asked)))
    if since is not None and since < at:
        history = tuple(sample for sample in history if sample.at < since)
        history += (Sample(at=since, deficit=deficit, asked=asked),)
    elif not history or history[-1].deficit != deficit or history[-1].asked != asked:
        history += (Sample(at=at, deficit=deficit, asked=asked),)
    first = 0
    for index, sample in enumerate(history):
        if sample.at <= at - window:
            first = index
    return history[first:]
