"""The lifecycle of a placement: its name, its end, its phases, and the restraint that it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from reconciler.core.spread.subset_pods import first_ordinal
from reconciler.model.capacity import ReplicaShape
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import MAX_PLACEMENT_NAME, ClusterName, PlacementName, WorkloadId
from reconciler.model.placement import TRANSITIONS, LifecycleEvent, Origin, Phase, Placement, Restraint, RestraintKind
from reconciler.model.plan import Why
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.workload import WorkloadTemplate

_DIGITS = 8
_ENDS: Mapping[Why, LifecycleEvent] = {
    Why.EXPIRED: LifecycleEvent.EXPIRED,
    Why.DEMAND_GONE: LifecycleEvent.DEMAND_GONE,
    Why.FAILED: LifecycleEvent.FAILED,
    Why.PREEMPTED: LifecycleEvent.WITHDRAWN,
    Why.IDLE: LifecycleEvent.WITHDRAWN,
    Why.CLUSTER_LOST: LifecycleEvent.WITHDRAWN,
    Why.POLICY: LifecycleEvent.WITHDRAWN,
    Why.REQUESTED: LifecycleEvent.WITHDRAWN,
}


def placement_name(workload: WorkloadId, cluster: ClusterName, now: datetime, subset: str = "") -> PlacementName:
    """Name a new placement: the name of its workload, cut if needed, and eight unique digits.

    The digits are a hash of workload, cluster, subset and time, so that the same pass on the same inputs gives the same
    name.
    """
    kind = "request\n" if workload.request else ""  # a template may have the same name
    pool = f"\n{subset}" if subset else ""
    digest = sha256(f"{kind}{workload}\n{cluster}\n{now.isoformat()}{pool}".encode()).hexdigest()[:_DIGITS]
    stem = workload.name[: MAX_PLACEMENT_NAME - _DIGITS - 1].rstrip("-")
    return PlacementName(f"{stem}-{digest}")


def placement_duration(template: WorkloadTemplate, policy: BurstPolicy, limits: WorkspaceLimits | None) -> timedelta:
    """Return the duration of a burst: that of the template, else the policy's default, capped.

    The caps are those of the policy and of the workspace.
    """
    asked = template.spec.burst_duration or policy.default_duration
    maxima = (policy.max_duration, limits.longest if limits is not None else None)
    return min([asked, *(most for most in maxima if most is not None)])


def new_placement(
    template: WorkloadTemplate,
    policy: BurstPolicy,
    desired: Desired,
    now: datetime,
    *,
    cluster: ClusterName,
    replicas: int,
    shape: ReplicaShape,
    subset: str = "",
) -> Placement:
    """Make a placement that starts now."""
    return Placement(
        name=placement_name(template.workload, cluster, now, subset),
        cluster=cluster,
        workload=template.workload,
        replicas=replicas,
        created_at=now,
        changed_at=now,
        expires_at=now + placement_duration(template, policy, desired.limits.get(template.workspace)),
        engine=desired.clusters[cluster].engine,
        policy=policy.name,
        deletion_policy=template.spec.deletion_policy,
        source_commit=desired.commit,
        template_version=file_version(template),
        namespace=template.namespace,
        target_namespace="",
        shape=shape.recorded,
        origin=Origin.REQUEST if template.request else Origin.BURST,
        subset=subset,
        first_ordinal=first_ordinal(policy.spread, subset),
    )


def resized_placement(placement: Placement, desired: Desired, now: datetime, replicas: int) -> Placement:
    """Change the replicas of a placement, deployed from the current version of its template."""
    template = desired.templates[placement.workload]
    return replace(
        placement,
        replicas=replicas,
        changed_at=now,
        deletion_policy=template.spec.deletion_policy,
        source_commit=desired.commit,
        template_version=file_version(template),
        digest="",
    )


def file_version(template: WorkloadTemplate) -> str:
    """Return the version of a template's file: the first digits of its blob in git, empty outside of git."""
    return template.blob[:12] if template.blob else ""


def in_flight(placement: Placement, bound: int, timeout: timedelta, now: datetime) -> int:
    """Count the replicas that were committed and have no node yet.

    After the timeout they no longer reserve capacity: their delay is then no race between two commits.
    """
    if now - placement.changed_at >= timeout:
        return 0
    return max(0, placement.replicas - bound)


def advance(phase: Phase, event: LifecycleEvent) -> Phase:
    """Follow the transition table; a missing pair is a bug and raises KeyError."""
    return TRANSITIONS[phase, event]


def phase(placement: Placement, bound: int, *, well: bool | None = None) -> Phase:
    """Return the phase of a live placement: by its health, or if that is unknown by the nodes of its replicas."""
    runs = bound >= placement.replicas if well is None else well
    return advance(Phase.PENDING, LifecycleEvent.HEALTHY) if runs else Phase.PENDING


def final_phase(placement: Placement, bound: int, why: Why) -> Phase:
    """Return the phase in which a placement ends."""
    return advance(phase(placement, bound), _ENDS[why])


def cool_down(placement: Placement, policy: BurstPolicy, why: Why, now: datetime) -> Restraint | None:
    """Return the cool-down of a workload whose burst has ended; None if the policy has none.

    An expiry would be void if the next pass placed the same replicas on the next cluster, so the cool-down holds on
    every cluster. After a failure or an eviction it holds on that cluster only, so that the next one can be tried. A
    failed placement is never retried at once, whatever the policy. Requests have no cool-down: they record their
    clusters themselves.
    """
    if placement.workload.request:
        return None
    rest = policy.cool_down or (policy.rollout_timeout if why is Why.FAILED else timedelta())
    if not rest:
        return None
    return Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=placement.cluster if why in (Why.FAILED, Why.PREEMPTED) else None,
        since=now,
        until=now + rest,
        reason=f"{placement.name} on {placement.cluster} ended: {why}",
        placement=placement.name,
    )


def hold(placement: Placement, policy: BurstPolicy, now: datetime) -> Restraint:
    """Respect a manual deletion: hold the workload off that cluster until its demand ends, or the hold expires."""
    return Restraint(
        kind=RestraintKind.HOLD,
        cluster=placement.cluster,
        since=now,
        until=now + policy.hold,
        reason=f"{placement.name} was deleted by hand",
        placement=placement.name,
    )
