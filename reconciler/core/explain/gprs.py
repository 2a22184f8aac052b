"""GPRs: the GPUs of each placement, and those that each workload waits for.

EGS keeps a GPUProvisioningRequest for them; here they are computed from the ledger, the observations and the plan.
Decisions of the plan are shown as after its push: Pending for new placements, Draining for ending ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from reconciler.core.decide.candidates.gpr_needs import gpr_needs
from reconciler.core.decide.candidates.gpr_terms import band, priority, recorded, terms
from reconciler.core.decide.state.enrolment import end_of
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps import gang_health
from reconciler.core.workloads import replica_count
from reconciler.model.demand import Demand
from reconciler.model.gpr import GprEvent, GprState, GprTerms, GpuAsk, step
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import Extend, Move, Place, Plan, Reason, Resize, Revert, Suppressed, Why
from reconciler.model.policy import Desired
from reconciler.model.request import Ended, Provisioning, RequestRecord
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause

_DIGITS = 8
_ENDS = {
    Why.EXPIRED: GprEvent.OVER,
    Why.IDLE: GprEvent.OVER,
    Why.FAILED: GprEvent.FAILED,
    Why.PREEMPTED: GprEvent.EVICTED,
}
"""The end of a GPR by the end of its placement; any other end is an early release."""

_QUEUED = frozenset({Reason.NOTHING_FITS, Reason.GPR_LIMIT, Reason.SPREAD_LIMIT})
_KEPT = frozenset({Reason.SCALE_DOWN_WINDOW, Reason.SIGNAL_UNHEARD, Reason.PRIMARY_UNSEEN})
"""Reasons of suppressed changes without missing replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GprView:
    """One GPR, with EGS's fields under Overspill's names."""

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
    evictable: bool = False
    requeue: bool = False
    evicted_by: str = ""


def gpr_views(inputs: PassInput, plan: Plan) -> tuple[GprView, ...]:
    """List all GPRs: by priority, highest first, then the oldest, then by name."""
    views = [
        *_placed_gprs(inputs, plan),
        *_reserved_gprs(inputs),
        *_waiting_gprs(inputs, plan),
        *_ended_gprs(inputs),
    ]
    now = inputs.now
    return tuple(
        sorted(views, key=lambda view: (-view.priority, view.asked_at or now, view.workspace, view.name, view.id))
    )


def _placed_gprs(inputs: PassInput, plan: Plan) -> Iterator[GprView]:
    """Make a GPR of each placement, as after the plan."""
    working_plan = dict(inputs.ledger.placements)
    ending: dict[str, Revert] = {}
    begun: set[str] = set()
    for change in plan.changes:
        match change:
            case Place(placement=placement):
                working_plan[placement.path] = placement
                begun.add(placement.path)
            case Resize(after=after) | Extend(after=after):
                working_plan[after.path] = after
            case Move(before=before, after=after):
                del working_plan[before.path]
                working_plan[after.path] = after
                begun.add(after.path)
            case Revert(placement=placement):
                ending[placement.path] = change
            case _:
                pass
    for path, placement in sorted(working_plan.items()):
        state, reason = _state(inputs, placement, ending.get(path), new=path in begun)
        record = recorded(inputs).get(placement.workload)
        needs = gpr_needs(inputs, placement.workload, placement.cluster, placement.shape, placement.replicas)
        yield replace(
            _gpr(inputs, placement.workload, placement.cluster, placement.name, needs),
            state=state,
            reason=reason,
            asked_at=record.received_at if record else placement.created_at,
            started_at=placement.created_at,
            exit_at=placement.expires_at,
            left=max(timedelta(), placement.expires_at - inputs.now),
        )


def _state(inputs: PassInput, placement: Placement, ending: Revert | None, *, new: bool) -> tuple[GprState, str]:
    """Return the state of a placement's GPUs, and why it is no further."""
    # 1. The plan starts it: its GPUs are not granted before the push.
    if new:
        return GprState.PENDING, f"{placement.cluster} is about to have it"
    state = step(GprState.PENDING, GprEvent.GRANTED)
    seen = inputs.observed.clusters.get(placement.cluster)
    bound = replica_count.bound_replicas(placement, seen)
    if inputs.rollouts.has_arrived(placement) or bound >= placement.replicas:
        state = step(state, GprEvent.BOUND)
    # 2. The plan ends it.
    if ending is not None:
        return step(state, _ENDS.get(ending.why, GprEvent.RELEASED)), f"{ending.why}: {ending.detail}"
    # 3. It has all of its GPUs.
    if state is GprState.SUCCESSFUL:
        return state, ""
    # 4. Its cluster is unobserved.
    if seen is None:
        return state, f"{placement.cluster} has not been observed"
    # 5. It waits for nodes.
    trouble = seen.troubles.get(placement.name, "")
    running = gang_health.describe_partial_gang(inputs, placement) or f"{bound} of {placement.replicas} have a node"
    return state, "; ".join(part for part in (running, trouble) if part)


def _reserved_gprs(inputs: PassInput) -> Iterator[GprView]:
    """Make a GPR of each reservation that holds its GPUs."""
    for workload, record in sorted(recorded(inputs).items()):
        end = end_of(record, inputs.desired)
        if record.cluster is None or record.ended is not None or end is None:
            continue
        yield replace(
            _gpr(inputs, workload, record.cluster, None, gpr_needs(inputs, workload, record.cluster, None, 0)),
            state=step(step(GprState.PENDING, GprEvent.GRANTED), GprEvent.BOUND),
            reason="reserved; nothing is deployed",
            asked_at=record.received_at,
            started_at=record.began_at,
            exit_at=end,
            left=max(timedelta(), end - inputs.now),
        )


def _waiting_gprs(inputs: PassInput, plan: Plan) -> Iterator[GprView]:
    """Make a GPR of the missing replicas of each workload, and of each request without placements."""
    held: dict[WorkloadId, list[Suppressed]] = {}
    for suppression in plan.suppressed:
        if suppression.reason not in _KEPT and suppression.replicas:
            held.setdefault(suppression.workload, []).append(suppression)
    placing = {change.placement.workload for change in plan.changes if isinstance(change, Place)}
    for workload, record in recorded(inputs).items():
        idle = not inputs.ledger.placements.of(workload).placements and workload not in placing
        if record.ended is None and record.cluster is None and idle:
            held.setdefault(workload, [])
    for workload, suppressed in sorted(held.items()):
        demand, request_record = inputs.demands.get(workload), recorded(inputs).get(workload)
        measured = demand if isinstance(demand, Demand) else None
        replicas = max((suppression.replicas for suppression in suppressed), default=1)
        needs = gpr_needs(inputs, workload, None, measured.shape if measured else None, replicas)
        queued = any(suppression.reason in _QUEUED for suppression in suppressed)
        since = min((step.since for step in measured.waiting), default=None) if measured else None
        yield replace(
            _gpr(inputs, workload, None, None, needs),
            state=step(GprState.PENDING, GprEvent.REFUSED) if queued else GprState.PENDING,
            reason="; ".join(dict.fromkeys(_describe_suppressed(suppression) for suppression in suppressed)),
            asked_at=request_record.received_at if request_record else since,
        )


def _describe_suppressed(held: Suppressed) -> str:
    """Describe a suppressed change, with the refusal of each cluster that its message does not name."""
    beside = (
        refusal for refusal in held.refusals if f"{refusal.cluster}: {as_clause(refusal.message)}" not in held.message
    )
    refused = "; ".join(f"{refusal.cluster}: {refusal.message}" for refusal in beside)
    return f"{held.message} ({refused})" if refused else held.message


def _ended_gprs(inputs: PassInput) -> Iterator[GprView]:
    """Make a GPR of each recorded request that has ended."""
    for workload, record in sorted(recorded(inputs).items()):
        if record.ended is None or inputs.ledger.placements.of(workload).placements:
            continue
        named = record.request.clusters
        cluster = named[0] if len(named) == 1 else None
        yield replace(
            _gpr(inputs, workload, cluster, None, gpr_needs(inputs, workload, cluster, None, 0)),
            state=_end(record, record.ended, inputs.desired),
            reason=record.ended.message,
            asked_at=record.received_at,
            started_at=record.began_at,
            completed_at=record.ended.at,
        )


def _end(record: RequestRecord, ended: Ended, desired: Desired) -> GprState:
    """Return whether a GPR ended in time or was released before its end."""
    if ended.status is Provisioning.FAILED:
        return step(GprState.PROVISIONING, GprEvent.FAILED)
    end = end_of(record, desired)
    early = end is not None and ended.at < end
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
    record = recorded(inputs).get(workload)
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
        band=band(own.priority),
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
