"""From what primaries report to the replicas each workload is missing, now and over the windows of its policy.

EGS leaves the replica count undefined; ours is: what bursts is what the primary cannot hold now, never what is merely
starting, and the primary's own count is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.capacity import ClusterObservation, Observed, WorkloadObservation
from reconciler.model.demand import Demand, Sample
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.policy import Desired, Fleet
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadRef

History = Mapping[WorkloadId, tuple[Sample, ...]]
"""How each workload's deficit went, as far as this process has watched; oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """A workload whose primary cannot be seen: it keeps what it has and gets nothing new (promise 7)."""

    workload: WorkloadId
    message: str


Demands = Mapping[WorkloadId, Demand | Blind]


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

    A workload that its primary, freshly seen, does not report does not exist there and is missing nothing.
    """
    reported: dict[ClusterName, dict[tuple[str, str], list[WorkloadObservation]]] = {}
    blind: dict[ClusterName, str] = {}
    demands: dict[WorkloadId, Demand | Blind] = {}
    for workload, policy in desired.policies.items():
        template = desired.templates[workload]
        if template.ref is None:
            continue
        primary = desired.workspaces[workload.workspace].primary
        if primary not in reported:
            blind[primary] = unseen(desired.fleet, observed, primary, now)
            reported[primary] = {} if blind[primary] else _by_name(observed.clusters[primary])
        if blind[primary]:
            demands[workload] = Blind(workload=workload, message=blind[primary])
            continue
        seen = _find(reported[primary], template.ref)
        at = min(observed.clusters[primary].observed_at, now)
        demands[workload] = _demand(
            workload, primary, seen, window=policy.scale_down_window, history=history.get(workload, ()), at=at
        )
    return demands


def remembered(demands: Demands) -> History:
    """Keep what the next pass has to know of this one. A blind moment forgets: nobody watched."""
    return {workload: demand.history for workload, demand in demands.items() if isinstance(demand, Demand)}


def matured(demand: Demand, window: timedelta, now: datetime) -> int:
    """Count the missing replicas that have been unschedulable for the whole window."""
    return min(demand.deficit, sum(wait.replicas for wait in demand.waiting if wait.since <= now - window))


def next_maturity(demand: Demand, window: timedelta, now: datetime) -> datetime | None:
    """Tell when the next replicas will have waited for the whole window; None when all have."""
    return min((wait.since + window for wait in demand.waiting if wait.since > now - window), default=None)


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
        if not ref.kind or not seen.ref.kind or ref.kind == seen.ref.kind:
            return seen
    return None


def _demand(
    workload: WorkloadId,
    primary: ClusterName,
    seen: WorkloadObservation | None,
    *,
    window: timedelta,
    history: tuple[Sample, ...],
    at: datetime,
) -> Demand:
    wanted, running, waiting = (seen.wanted, seen.running, seen.waiting) if seen else (0, 0, ())
    deficit = max(0, min(wanted - running, sum(wait.replicas for wait in waiting)))
    since = seen.deficit_since if seen else None
    return Demand(
        workload=workload,
        primary=primary,
        wanted=wanted,
        running=running,
        deficit=deficit,
        waiting=waiting,
        shape=seen.shape if seen else None,
        history=_watched(history, deficit, since, at, window),
        observed_at=at,
        reported=seen is not None,
    )


def _watched(
    history: tuple[Sample, ...], deficit: int, since: datetime | None, at: datetime, window: timedelta
) -> tuple[Sample, ...]:
    """Add the present deficit to the record, and drop what no window looks at any more.

    `since` is the source's own word that no more than this has been missing from then on; it replaces what we saw.
    A clock that jumped back makes the record worthless, so it begins anew.
    """
    if history and history[-1].at > at:
        history = ()
    if since is not None and since < at:
        history = tuple(sample for sample in history if sample.at < since)
        history += (Sample(at=since, deficit=deficit),)
    elif not history or history[-1].deficit != deficit:
        history += (Sample(at=at, deficit=deficit),)
    first = 0
    for index, sample in enumerate(history):
        if sample.at <= at - window:
            first = index
    return history[first:]
