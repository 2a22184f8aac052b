"""The life of a placement: its name, its end, what state it is in, and what it leaves behind."""

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
    """Name a new placement: the workload's name, cut short where needed, and eight digits that no other has.

    The digits are a hash of workload, cluster, subset and time, so that the same pass on the same inputs gives the
    same name.
    """
    kind = "request\n" if workload.request else ""  # a template may have the same name
    pool = f"\n{subset}" if subset else ""
    digest = sha256(f"{kind}{workload}\n{cluster}\n{now.isoformat()}{pool}".encode()).hexdigest()[:_DIGITS]
    stem = workload.name[: MAX_PLACEMENT_NAME - _DIGITS - 1].rstrip("-")
    return PlacementName(f"{stem}-{digest}")


def placement_duration(template: WorkloadTemplate, policy: BurstPolicy, limits: WorkspaceLimits | None) -> timedelta:
    """Say how long a burst may last: the template's word, else the policy's default, at most what both of them allow.

    Those are the policy, and the limits of the workspace.
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
    """Make a placement that begins now."""
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
    """Give a placement another number of replicas, deployed from its template as it stands now."""
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
    """Name the version of a template's file: the first digits of its blob in git, empty where it came from no git."""
    return template.blob[:12] if template.blob else ""


def in_flight(placement: Placement, bound: int, timeout: timedelta, now: datetime) -> int:
    """Count the replicas that were committed and have no node yet.

    After the timeout they no longer block others: whatever holds them up, it is not a race between two commits.
    """
    if now - placement.changed_at >= timeout:
        return 0
    return max(0, placement.replicas - bound)


def advance(phase: Phase, event: LifecycleEvent) -> Phase:
    """Follow the transition table; a pair that is not in it is a bug, and says so as a KeyError."""
    return TRANSITIONS[phase, event]


def phase(placement: Placement, bound: int, *, well: bool | None = None) -> Phase:
    """Tell a live placement's phase: whether it is `well` or, where nobody says, whether its replicas have a node."""
    runs = bound >= placement.replicas if well is None else well
    return advance(Phase.PENDING, LifecycleEvent.HEALTHY) if runs else Phase.PENDING


def final_phase(placement: Placement, bound: int, why: Why) -> Phase:
    """Tell the phase in which a placement ends."""
    return advance(phase(placement, bound), _ENDS[why])


def cool_down(placement: Placement, policy: BurstPolicy, why: Why, now: datetime) -> Restraint | None:
    """Keep a workload whose burst has just ended at home for the policy's cool-down, on every cluster.

    An expiry would mean nothing if the next pass placed the same replicas one cluster further on. A failure or an
    eviction holds back that one cluster only, so that the next one can be tried. None when the policy asks for no
    cool-down; but what has failed is not tried again at once, whatever the policy says. A request remembers by itself
    where it has been.
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
    """Respect a person's deletion: nothing of this workload on that cluster until the demand goes, or this runs out."""
    return Restraint(
        kind=RestraintKind.HOLD,
        cluster=placement.cluster,
        since=now,
        until=now + policy.hold,
        reason=f"{placement.name} was deleted by hand",
        placement=placement.name,
    )
