"""GPRs: the GPUs of each placement, and those that each workload waits for.

EGS keeps a GPUProvisioningRequest for them; here they are computed from the ledger, the observations and the plan.
Decisions of the plan are shown as after its push: Pending for new placements, Draining for ending ones. A GPR that
meets an unforeseen exception is listed with the bug as its reason, and without what it would have told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import TypeAlias

from reconciler.bulkhead import NoteBug, Seam, attempt
from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.candidates.gpr_limits import gpr_needs
from reconciler.core.decide.candidates.gpr_terms import priority, priority_band, terms
from reconciler.core.decide.state.enrolment import request_end
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.provisioning import is_provisioned
from reconciler.core.explain.queue_simulation import Start
from reconciler.core.explain.wait_time import estimate_starts, waiting_for_room
from reconciler.core.ledger.lifecycle import end_of
from reconciler.core.workloads import replica_count
from reconciler.core.workloads.ends import failed_object
from reconciler.errors import Bug
from reconciler.model.action import Action
from reconciler.model.demand import Demand
from reconciler.model.end_reason import ENDS, EndReason
from reconciler.model.gpr import GprEvent, GprState, GprTerms, GpuAsk, step
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Change, Plan, ReasonTraits, Suppressed
from reconciler.model.policy import Desired
from reconciler.model.request import Ended, Provisioning, RequestRecord
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause

_DIGITS = 8
_MAX_TURNS = 2_000
"""Turns of the queue that are simulated for a list of GPRs; a longer queue has no times at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GprView:
    """A GPR, with EGS's fields under Overspill's names."""

    # Constant for the life of the GPR: from receipt to end of a request for one placement, else from the start of its
    # wait.
    id: str
    name: str
    workspace: WorkspaceName
    workload: WorkloadId
    # None while it waits.
    cluster: ClusterName | None
    placement: PlacementName | None
    shape: str
    instance_type: str
    # GPUs on each of `nodes` nodes. If only pods state their needs, each counts as a node.
    gpus: int
    nodes: int
    # In GB for one GPU, 0 for any.
    memory: int
    priority: int
    band: str
    state: GprState = GprState.PENDING
    reason: str = ""
    # Times of the ask, of its allocation, of its end, of its planned end, and the rest until that.
    asked_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    exit_at: datetime | None = None
    left: timedelta | None = None
    # When one that waits gets room, by what is known.
    starts_at: datetime | None = None
    evictable: bool = False
    requeue: bool = False
    evicted_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A GPR to be described."""

    workload: WorkloadId
    cluster: ClusterName | None = None
    placement: PlacementName | None = None
    describe: Callable[[], GprView]


_Drafts: TypeAlias = Iterator[_Draft]


def gpr_views(inputs: PassInput, plan: Plan, note_bug: NoteBug = lambda _: None) -> tuple[GprView, ...]:
    """List all GPRs: by priority, highest first, then the oldest, then by name.

    `note_bug` gets the bug of each that cannot be described.
    """
    drafts = (
        *_placed_gprs(inputs, plan),
        *_reserved_gprs(inputs),
        *_waiting_gprs(inputs, plan, note_bug),
        *_ended_gprs(inputs),
        *_ended_burst_gprs(inputs),
    )
    views: list[GprView] = []
    for draft in drafts:
        view = attempt(Seam.STATUS, draft.placement or draft.workload, draft.describe)
        if isinstance(view, Bug):
            note_bug(view)
            view = _undescribed_gpr(inputs, draft, view)
        views.append(view)
    now = inputs.now
    return tuple(
        sorted(views, key=lambda view: (-view.priority, view.asked_at or now, view.workspace, view.name, view.id))
    )


def _undescribed_gpr(inputs: PassInput, draft: _Draft, bug: Bug) -> GprView:
    """Make the GPR of which an unforeseen exception leaves no more than its name."""
    workload = draft.workload
    return GprView(
        id=_id(inputs.requests.get(workload), workload, draft.placement),
        name=workload.name,
        workspace=workload.workspace,
        workload=workload,
        cluster=draft.cluster,
        placement=draft.placement,
        shape="",
        instance_type="",
        gpus=0,
        nodes=0,
        memory=0,
        priority=0,
        band="",
        reason=bug.summary,
    )


def _placed_gprs(inputs: PassInput, plan: Plan) -> _Drafts:
    """Draft a GPR of each placement, as after the plan."""
    placements = dict(inputs.ledger.placements)
    ending: dict[str, Change] = {}
    begun: set[str] = set()
    for change in plan.changes:
        if change.action is Action.REVERT:
            ending[change.placement.path] = change
        elif change.ended is not None:
            del placements[change.ended.path]
        if change.after is not None:
            placements[change.after.path] = change.after
        if change.begins:
            begun.add(change.placement.path)
    for path, placement in sorted(placements.items()):
        yield _Draft(
            workload=placement.workload,
            cluster=placement.cluster,
            placement=placement.name,
            describe=partial(_placed_gpr, inputs, placement, ending.get(path), new=path in begun),
        )


def _placed_gpr(inputs: PassInput, placement: Placement, ending: Change | None, *, new: bool) -> GprView:
    """Describe the GPR of a placement."""
    state, reason = _state(inputs, placement, ending, new=new)
    record = inputs.requests.get(placement.workload)
    needs = gpr_needs(inputs, placement.workload, placement.cluster, placement.shape, placement.replicas)
    return replace(
        _gpr(inputs, placement.workload, placement.cluster, placement.name, needs),
        state=state,
        reason=reason,
        asked_at=record.received_at if record else placement.created_at,
        started_at=placement.created_at,
        exit_at=placement.expires_at,
        left=max(timedelta(), placement.expires_at - inputs.now),
    )


def _state(inputs: PassInput, placement: Placement, ending: Change | None, *, new: bool) -> tuple[GprState, str]:
    """Return the state of a placement's GPUs, and why it is no further."""
    # 1. The plan starts it: its GPUs are not granted before the push.
    if new:
        return GprState.PENDING, f"{placement.cluster} is about to have it"
    state = step(GprState.PENDING, GprEvent.GRANTED)
    seen = inputs.observed.clusters.get(placement.cluster)
    bound = replica_count.bound_replicas(placement, seen)
    if is_provisioned(placement, inputs):
        state = step(state, GprEvent.BOUND)
    # 2. The plan ends it.
    if ending is not None:
        event = ENDS[ending.why].gpr_event if isinstance(ending.why, EndReason) else GprEvent.RELEASED
        return step(state, event), f"{ending.why}: {ending.detail}"
    # 3. The GPR has all of its GPUs.
    if state is GprState.SUCCESSFUL:
        return state, ""
    # 4. Its cluster is unobserved.
    if seen is None:
        return state, f"{placement.cluster} has not been observed"
    # 5. The GPR waits for nodes.
    failed = failed_object(placement, seen)
    trouble = failed.message if failed is not None else seen.waiting_reasons.get(placement.name, "")
    running = gang_health.describe_partial_gang(inputs, placement) or f"{bound} of {placement.replicas} have a node"
    return state, "; ".join(part for part in (running, trouble) if part)


def _reserved_gprs(inputs: PassInput) -> _Drafts:
    """Draft a GPR of each reservation that holds its GPUs."""
    for workload, record in sorted(inputs.requests.items()):
        end = request_end(record, inputs.desired)
        if record.cluster is None or record.ended is not None or end is None:
            continue
        describe = partial(_reserved_gpr, inputs, record, record.cluster, end)
        yield _Draft(workload=workload, cluster=record.cluster, describe=describe)


def _reserved_gpr(inputs: PassInput, record: RequestRecord, cluster: ClusterName, end: datetime) -> GprView:
    """Describe the GPR of a reservation."""
    workload = record.workload
    return replace(
        _gpr(inputs, workload, cluster, None, gpr_needs(inputs, workload, cluster, None, 0)),
        state=step(step(GprState.PENDING, GprEvent.GRANTED), GprEvent.BOUND),
        reason="reserved; nothing is deployed",
        asked_at=record.received_at,
        started_at=record.began_at,
        exit_at=end,
        left=max(timedelta(), end - inputs.now),
    )


def _waiting_gprs(inputs: PassInput, plan: Plan, note_bug: NoteBug) -> _Drafts:
    """Draft a GPR of the missing replicas of each workload, and of each request without placements."""
    held: dict[WorkloadId, list[Suppressed]] = {}
    for suppression in plan.suppressed:
        if suppression.replicas and _lacks(inputs, plan, suppression.workload):
            held.setdefault(suppression.workload, []).append(suppression)
    estimate = partial(estimate_starts, waiting_for_room(plan), inputs, plan, most=_MAX_TURNS)
    starts = attempt(Seam.STATUS, "the queue", estimate)
    if isinstance(starts, Bug):
        note_bug(starts)
        starts = {}
    placing = {change.placement.workload for change in plan.changes if change.action is Action.PLACE}
    for workload, record in inputs.requests.items():
        idle = not inputs.ledger.placements.of(workload).placements and workload not in placing
        if record.ended is None and record.cluster is None and idle:
            held.setdefault(workload, [])
    for workload, suppressed in sorted(held.items()):
        yield _Draft(
            workload=workload, describe=partial(_waiting_gpr, inputs, workload, suppressed, starts.get(workload))
        )


def _lacks(inputs: PassInput, plan: Plan, workload: WorkloadId) -> bool:
    """Return whether a plan leaves a workload with missing replicas; a request is short of all that it waits for."""
    if workload.request:
        return True
    demand = inputs.demands.get(workload)
    begins = sum(change.growth for change in plan.changes if change.workload == workload)
    placed = inputs.ledger.placements.of(workload).replicas + begins
    return isinstance(demand, Demand) and demand.missing > placed


def _waiting_gpr(
    inputs: PassInput, workload: WorkloadId, suppressed: Sequence[Suppressed], start: Start | None
) -> GprView:
    """Describe the GPR that a workload waits for."""
    demand, record = inputs.demands.get(workload), inputs.requests.get(workload)
    measured = demand if isinstance(demand, Demand) else None
    replicas = max((suppression.replicas for suppression in suppressed), default=1)
    needs = gpr_needs(inputs, workload, None, measured.shape if measured else None, replicas)
    queued = any(suppression.reason.has(ReasonTraits.QUEUES) for suppression in suppressed)
    since = min((missing.since for missing in measured.waiting), default=None) if measured else None
    return replace(
        _gpr(inputs, workload, None, None, needs),
        state=step(GprState.PENDING, GprEvent.REFUSED) if queued else GprState.PENDING,
        reason="; ".join(dict.fromkeys(_describe_suppressed(suppression) for suppression in suppressed)),
        asked_at=record.received_at if record else since,
        starts_at=None if start is None else start.at,
    )


def _describe_suppressed(held: Suppressed) -> str:
    """Describe a suppressed change, with the refusal of each cluster that its message does not name."""
    beside = (
        refusal for refusal in held.refusals if f"{refusal.cluster}: {as_clause(refusal.message)}" not in held.message
    )
    refused = "; ".join(f"{refusal.cluster}: {refusal.message}" for refusal in beside)
    return f"{held.message} ({refused})" if refused else held.message


def _ended_gprs(inputs: PassInput) -> _Drafts:
    """Draft a GPR of each recorded request that has ended."""
    for workload, record in sorted(inputs.requests.items()):
        if record.ended is None or inputs.ledger.placements.of(workload).placements:
            continue
        named = record.request.clusters
        cluster = named[0] if len(named) == 1 else None
        describe = partial(_ended_gpr, inputs, record, record.ended, cluster)
        yield _Draft(workload=workload, cluster=cluster, describe=describe)


def _ended_gpr(inputs: PassInput, record: RequestRecord, ended: Ended, cluster: ClusterName | None) -> GprView:
    """Describe the GPR of a request that has ended."""
    workload = record.workload
    return replace(
        _gpr(inputs, workload, cluster, None, gpr_needs(inputs, workload, cluster, None, 0)),
        state=_end(record, ended, inputs.desired),
        reason=ended.message,
        asked_at=record.received_at,
        started_at=record.began_at,
        completed_at=ended.at,
    )


def _ended_burst_gprs(inputs: PassInput) -> _Drafts:
    """Draft a GPR of each burst that has ended and still holds its workload back: the ledger has no more of it."""
    for workload, restraints in sorted(inputs.ledger.restraints.items()):
        standing = {placement.name for placement in inputs.ledger.placements.of(workload).placements}
        ended: dict[PlacementName, tuple[Restraint, EndReason]] = {}
        for restraint in restraints:
            why = end_of(restraint)
            if why is not None and restraint.placement not in standing:
                ended.setdefault(restraint.placement, (restraint, why))
        for name, (restraint, why) in sorted(ended.items()):
            yield _Draft(
                workload=workload,
                cluster=restraint.cluster,
                placement=name,
                describe=partial(_ended_burst_gpr, inputs, workload, restraint, why),
            )


def _ended_burst_gpr(inputs: PassInput, workload: WorkloadId, restraint: Restraint, why: EndReason) -> GprView:
    """Describe the GPR of a burst that has ended: it has no GPUs any more."""
    event = ENDS[why].gpr_event
    over = GprEvent.GONE if event is GprEvent.OVER else GprEvent.GIVEN_BACK
    state = GprState.PROVISIONING if event is GprEvent.FAILED else GprState.DRAINING
    needs = GpuAsk(gpus=0, nodes=0)
    return replace(
        _gpr(inputs, workload, restraint.cluster, restraint.placement, needs),
        state=step(state, event if event is GprEvent.FAILED else over),
        reason=restraint.reason,
        completed_at=restraint.since,
    )


def _end(record: RequestRecord, ended: Ended, desired: Desired) -> GprState:
    """Return whether a GPR ended in time or was released before its end."""
    if ended.status is Provisioning.FAILED:
        return step(GprState.PROVISIONING, GprEvent.FAILED)
    end = request_end(record, desired)
    early = end is not None and ended.at < end and not ended.succeeded
    return step(GprState.DRAINING, GprEvent.GIVEN_BACK if early else GprEvent.GONE)


def _gpr(
    inputs: PassInput,
    workload: WorkloadId,
    cluster: ClusterName | None,
    placement: PlacementName | None,
    needs: GpuAsk,
) -> GprView:
    """Make a GPR without the fields that depend on its state."""
    own = terms(workload, cluster, inputs) if cluster else GprTerms(priority=priority(workload, inputs))
    record = inputs.requests.get(workload)
    return GprView(
        id=_id(record, workload, placement),
        name=workload.name,
        workspace=workload.workspace,
        workload=workload,
        cluster=cluster,
        placement=placement,
        shape=needs.shape,
        instance_type=needs.instance_type,
        gpus=needs.gpus,
        nodes=needs.nodes,
        memory=needs.memory,
        priority=own.priority,
        band=priority_band(own.priority),
        evictable=own.evictable,
        requeue=own.requeue,
        evicted_by=record.evicted_by if record else "",
    )


def _id(record: RequestRecord | None, workload: WorkloadId, placement: PlacementName | None) -> str:
    """Return the id of a GPR: a request for one placement keeps it when it moves."""
    if record is not None and (record.request.placements == 1 or len(record.request.clusters) == 1):
        identity = f"{workload}\n{format_time(record.received_at)}"
    else:
        identity = f"{workload}\n{workload.request}\n{placement or ''}"
    return f"gpr-{sha256(identity.encode()).hexdigest()[:_DIGITS]}"
