"""Reservations: requests that deploy nothing and hold GPUs in one cluster until their time is over.

The record of a reservation has its cluster and when it began, so that it holds from the ledger alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.capacity import remedies
from reconciler.core.capacity.gpu_requests import describe_gpus, gpu_shapes, missing_gpus
from reconciler.core.capacity.shortfall import ADD_NODES
from reconciler.core.decide.candidates.cluster_obstacles import obstacle
from reconciler.core.decide.candidates.finder import CandidateFinder, describe_first_remedy, why_not
from reconciler.core.decide.candidates.gpr_limits import beyond_limits
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.enrolment import request_duration, request_end, reservation_clusters
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.close_requests import close
from reconciler.core.decide.turns.queue import Turn
from reconciler.model.action import Action
from reconciler.model.gpr import GpuAsk
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Change, Reason, Refusal, Suppressed
from reconciler.model.request import Provisioning, RequestRecord
from reconciler.model.units import format_duration
from reconciler.text.wording import conjugate


def end_reservations(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Complete the reservations whose time is over, and wake when that of the others is."""
    for record in _open_reservations(inputs, working_plan):
        working_plan.decide(record.workload, partial(_end, inputs, working_plan, record))


def _end(inputs: PassInput, working_plan: WorkingPlan, record: RequestRecord) -> None:
    end = request_end(record, inputs.desired)
    if end is None or record.began_at is None:
        return
    if end > inputs.now:
        working_plan.wake(end)
        return
    lasted = format_duration(end - record.began_at)
    close(inputs, working_plan, record, Provisioning.COMPLETED, f"its {lasted} are over")


def reservation_turns(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> Iterator[Turn]:
    """Yield a turn for each reservation without a cluster; it waits since it was received."""
    for record in _open_reservations(inputs, working_plan):
        turn = working_plan.decide(record.workload, partial(_turn, inputs, working_plan, finder, record))
        if turn is not None:
            yield turn


def _turn(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, record: RequestRecord) -> Turn | None:
    ask = record.request.ask
    if record.cluster is not None or ask is None or not ask.gpus:
        return None
    step = _Reserve(inputs=inputs, working_plan=working_plan, finder=finder, record=record, ask=ask)
    urgency = priority(record.workload, inputs)
    return Turn(priority=urgency, since=record.received_at, workload=record.workload, take=step.decide)


def _open_reservations(inputs: PassInput, working_plan: WorkingPlan) -> Iterator[RequestRecord]:
    for workload in inputs.enrolment.reservations:
        record = working_plan.requests.get(workload)
        if record is not None and record.ended is None:
            yield record


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reserve:
    """The turn of one waiting reservation."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    record: RequestRecord
    ask: GpuAsk

    def decide(self) -> None:
        """Reserve on the first cluster with room beside all other reservations, or suppress it with the reasons."""
        refusals: list[Refusal] = []
        for name in reservation_clusters(self.record.request, self.inputs.desired):
            refusal = self._refusal(name)
            if refusal is None:
                self._reserve(name)
                return
            refusals.append(refusal)
        reason, message = why_not(
            refusals,
            f"{describe_gpus(self.ask)} {conjugate(self.ask.nodes, 'is')} free on no cluster"
            f"{describe_first_remedy(refusals)}",
        )
        self.working_plan.suppress(
            Suppressed(
                workload=self.record.workload,
                reason=reason,
                message=message,
                replicas=self.ask.nodes,
                refusals=tuple(refusals),
            ),
            in_turn=True,
        )

    def _refusal(self, name: ClusterName) -> Refusal | None:
        workspace = self.record.request.workspace
        refusal = (
            obstacle(self.inputs, workspace, name)
            or self.finder.gprs.refusal(workspace, name)
            or beyond_limits(self.inputs, self.record.workload, name, None, 0)
        )
        if refusal is not None:
            return refusal
        seen = self.inputs.observed.clusters[name]
        options = gpu_shapes(self.ask, seen, dedicated=self.record.request.terms.dedicated)
        room = self.finder.capacity.room(name, None)
        if any(room.count(option, 1) for option in options):
            return None
        message = room.shortfall(options[0]) if options else missing_gpus(self.ask, seen)
        remedy = remedies.remedy(room, seen, options[0], 1, deployed=False) if options else ADD_NODES
        return Refusal(cluster=name, reason=Reason.NO_CAPACITY, message=message, remedy=remedy)

    def _reserve(self, name: ClusterName) -> None:
        now, desired = self.inputs.now, self.inputs.desired
        after = replace(self.record, cluster=name, began_at=now, changed_at=now)
        lasts = request_duration(self.record.request, desired.limits.get(self.record.request.workspace))
        detail = f"{describe_gpus(self.ask)} reserved on {name} for {format_duration(lasts)}"
        self.working_plan.change(Change(action=Action.AMEND, record_before=self.record, record=after, detail=detail))
