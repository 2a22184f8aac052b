"""The lifecycle of a placement: its name, its end, its phases, and the restraint that it leaves, if it is a burst."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256

from reconciler.core.spread.subset_pods import first_ordinal
from reconciler.model.capacity import ReplicaShape
from reconciler.model.end_reason import ENDS, EndReason
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import MAX_PLACEMENT_NAME, ClusterName, PlacementName, WorkloadId
from reconciler.model.placement import TRANSITIONS, LifecycleEvent, Origin, Phase, Placement, Restraint, RestraintKind
from reconciler.model.policy import BurstPolicy, Desired, Renewal
from reconciler.model.workload import WorkloadTemplate

_DIGITS = 8
_RUN_HOLD = timedelta(days=365)
"""How long a workload whose run is over is held where its demand does not go: the run would begin again."""
_ENDED = " ended: "
"""What stands before the reason of an end in the reasons of restraints, which `end_of` reads back."""


def placement_name(workload: WorkloadId, cluster: ClusterName, now: datetime, subset: str = "") -> PlacementName:
    """Name a new placement: the name of its workload, cut if needed, and eight unique digits.

    The digits are a hash of workload, cluster, subset and time, so that the same pass on the same inputs gives the same
    name.
    """
    kind = "request\n" if workload.request else ""  # a template may have the same name
    pool = f"\n{subset}" if subset else ""
    digest = sha256(f"{kind}{workload}\n{cluster}\n{_written(now)}{pool}".encode()).hexdigest()[:_DIGITS]
    stem = workload.name[: MAX_PLACEMENT_NAME - _DIGITS - 1].rstrip("-")
    return PlacementName(f"{stem}-{digest}")


@lru_cache(maxsize=16)
def _written(moment: datetime) -> str:
    """Write the moment of a pass, which is in UTC, once for all its placements."""
    return moment.isoformat()


def placement_duration(template: WorkloadTemplate, policy: BurstPolicy, limits: WorkspaceLimits | None) -> timedelta:
    """Return the duration of a burst: that of the template, else the policy's default, capped.

    The caps are those of the policy and of the workspace.
    """
    asked = template.spec.burst_duration or policy.default_duration
    longest = longest_duration(policy, limits)
    return asked if longest is None else min(asked, longest)


def renewal(template: WorkloadTemplate, policy: BurstPolicy) -> Renewal:
    """Return whether the bursts of a template are renewed: as its policy says, else only what runs once is.

    The end of a run is its completion or its failure, and a burst of what serves is placed again where it is needed.
    """
    return policy.renew or (Renewal.WHILE_NEEDED if template.runs_once else Renewal.NEVER)


def longest_duration(policy: BurstPolicy, limits: WorkspaceLimits | None) -> timedelta | None:
    """Return how long a burst may last in all, with its renewals; None where neither policy nor workspace bounds it."""
    most, longest = policy.max_duration, limits.longest if limits is not None else None
    if most is None or longest is None:
        return longest if most is None else most
    return min(most, longest)


def renewed_end(
    placement: Placement, template: WorkloadTemplate, policy: BurstPolicy, limits: WorkspaceLimits | None
) -> datetime:
    """Return the end that a renewal gives a burst: its own time again, within the longest duration.

    It is the end that it has where no renewal moves it: at the longest duration, and where a person set the end.
    """
    if placement.fixed_end:
        return placement.expires_at
    end = placement.expires_at + placement_duration(template, policy, limits)
    longest = longest_duration(policy, limits)
    return end if longest is None else max(placement.expires_at, min(end, placement.created_at + longest))


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
    began_at: datetime | None = None,
) -> Placement:
    """Make a placement that starts now, or started at `began_at` unless too little of its time would be left."""
    duration = placement_duration(template, policy, desired.limits.get(template.workspace))
    if began_at is not None and began_at + duration / 2 > now:
        now = began_at
    return Placement(
        name=placement_name(template.workload, cluster, now, subset),
        cluster=cluster,
        workload=template.workload,
        replicas=replicas,
        created_at=now,
        changed_at=now,
        expires_at=now + duration,
        engine=desired.clusters[cluster].engine,
        policy=policy.name,
        deletion_policy=template.spec.deletion_policy,
        source_commit=desired.commit,
        template_version=file_version(template),
        made_from=template.made_from,
        namespace=template.namespace,
        target_namespace="",
        shape=shape,
        origin=Origin.REQUEST if template.request else Origin.BURST,
        runs_once=template.runs_once,
        subset=subset,
        first_ordinal=first_ordinal(policy, subset),
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
        runs_once=template.runs_once,
        made_from=template.made_from,
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


def final_phase(placement: Placement, bound: int, why: EndReason) -> Phase:
    """Return the phase in which a placement ends."""
    return advance(phase(placement, bound), ENDS[why].event)


def cool_down(
    placement: Placement, policy: BurstPolicy, why: EndReason, now: datetime, limits: WorkspaceLimits | None = None
) -> Restraint | None:
    """Return the cool-down of a workload whose burst has ended; None where none follows, or the policy has none.

    An end says something against the cluster (a failure, an eviction, a policy that no longer allows it, the longest
    time of a renewed burst) or against the workload (its GPUs were idle). Time and demand that are over do neither:
    what is still missing may be placed anew at once. A failed placement is never retried at once, whatever the policy.
    """
    renewed = why is EndReason.EXPIRED and policy.renew is Renewal.WHILE_NEEDED
    on_cluster = True if renewed and at_longest(placement, policy, limits) else ENDS[why].cools_cluster
    rest = policy.cool_down or (policy.rollout_timeout if why is EndReason.FAILED else timedelta())
    if on_cluster is None or not rest:
        return None
    cluster = placement.cluster if on_cluster else None
    return _left_by(placement, RestraintKind.COOL_DOWN, _end_reason(placement, why), now, now + rest, cluster=cluster)


def turn(placement: Placement, why: EndReason, now: datetime, until: datetime) -> Restraint | None:
    """Note that a workload has had its turn: it waits for room as if it had come at a moment, and may have it before.

    Its pods have waited for as long as those of others, and it would be the next again.
    """
    return _left_by(placement, RestraintKind.TURN, _end_reason(placement, why), now, max(now, until), cluster=None)


def move_restraint(
    placement: Placement,
    now: datetime,
    *,
    reason: str = "",
    rest: timedelta = timedelta(),
    subset: str | None = None,
) -> Restraint | None:
    """Note that replicas have moved away, which the budget of moves counts.

    For a `rest` nothing new goes to the cluster that they left, or for one `subset` there. Without a `reason` the move
    says nothing against the cluster.
    """
    kind = RestraintKind.COOL_DOWN if subset is None else RestraintKind.UNSCHEDULABLE
    reason = reason or _end_reason(placement, EndReason.POLICY)
    left = _left_by(placement, kind, reason, now, now + rest, cluster=placement.cluster)
    return replace(left, subset=subset or "", move=True) if left is not None else None


def at_longest(placement: Placement, policy: BurstPolicy, limits: WorkspaceLimits | None) -> bool:
    """Return whether a burst ends since it has lasted the longest time allowed, and no renewal moves its end."""
    longest = longest_duration(policy, limits)
    return longest is not None and placement.expires_at >= placement.created_at + longest


def hold(placement: Placement, policy: BurstPolicy, now: datetime) -> Restraint | None:
    """Respect a manual deletion: hold the workload off that cluster until its demand ends, or the hold expires.

    That of a run does not expire: time alone begins no run again (docs/decisions/0038).
    """
    reason, until = f"{placement.name} was deleted by hand", now + (_RUN_HOLD if placement.runs_once else policy.hold)
    return _left_by(placement, RestraintKind.HOLD, reason, now, until, cluster=placement.cluster)


def run_hold(placement: Placement, why: EndReason, now: datetime) -> Restraint | None:
    """Hold a workload whose run is over off all clusters, until its demand has gone once.

    The copy at home may wait for long, and asks for the same run again meanwhile. `why` is an end by which a
    run is over.
    """
    reason = f"{placement.name} on {placement.cluster} {ENDS[why].over}"
    return _left_by(placement, RestraintKind.HOLD, reason, now, now + _RUN_HOLD, cluster=None)


def _left_by(
    placement: Placement,
    kind: RestraintKind,
    reason: str,
    since: datetime,
    until: datetime,
    *,
    cluster: ClusterName | None,
) -> Restraint | None:
    """Make a restraint that a placement leaves, for one cluster or (None) for all; each of them is made here.

    A request leaves none: its record says which clusters it avoids and whether it is over, and the ledger file of its
    name is that of a template.
    """
    if placement.workload.request:
        return None
    return Restraint(kind=kind, cluster=cluster, since=since, until=until, reason=reason, placement=placement.name)


def _end_reason(placement: Placement, why: EndReason) -> str:
    """Say that a placement has ended, in words that `end_of` reads back."""
    return f"{placement.name} on {placement.cluster}{_ENDED}{why}"


def end_of(restraint: Restraint) -> EndReason | None:
    """Return why the placement ended that left a restraint; None where it moved away, or may still be there."""
    if restraint.kind is RestraintKind.HOLD:
        ends = (why for why, end in ENDS.items() if end.over and restraint.reason.endswith(f" {end.over}"))
        return next(ends, EndReason.REQUESTED)
    _, ended, why = restraint.reason.partition(_ENDED)
    return EndReason(why) if ended and why in {*EndReason} else None
