"""The turns of bursts: workloads whose primary lacks replicas, with what earlier passes have found out about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from itertools import accumulate

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.gang import unit_of_workload
from reconciler.core.decide.candidates.gpr_terms import has_gpr_templates, priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.standing_burst import StandingBurst
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.scale_up import ScaleUp
from reconciler.core.decide.turns.fair_share import FairShares, Share
from reconciler.core.decide.turns.grow import grow_if_short
from reconciler.core.decide.turns.queue import Need, Turn
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import Reason, Suppressed
from reconciler.text.wording import count


def burst_turns(
    inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, shares: FairShares
) -> Iterator[Turn]:
    """Yield a turn for each workload with missing replicas, in which they go to the clusters that have room.

    A turn has the priority of the workload's GPR or policy, and waits since the first replica that is not placed does.
    """
    bursts = _Bursts(inputs=inputs, working_plan=working_plan, finder=finder, shares=shares)
    for demand in inputs.demands.values():
        if isinstance(demand, UnseenPrimary):
            working_plan.suppress(_unmeasured(inputs, demand, working_plan.replicas(demand.workload)))
            continue
        placed = working_plan.replicas(demand.workload)
        if not demand.reported and demand.note:
            working_plan.suppress(_not_found(demand, placed))
        if demand.missing > placed:
            burst = bursts.standing(demand, placed)
            if burst is not None:
                yield bursts.turn(burst)


@dataclass(frozen=True, kw_only=True)
class _Bursts:
    """The turns of all bursts of one pass, with what earlier passes have found out about those that wait."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    shares: FairShares

    def standing(self, demand: Demand, placed: int) -> StandingBurst | None:
        """Return a burst as it stands before its turn; None where nothing can be decided on it."""
        workload = demand.workload
        if workload in self.working_plan.frozen:
            return None
        known = self._known.get(workload)
        if known is not None and known.holds(demand, placed) and not self._is_restrained(workload):
            return known
        burst = self.working_plan.decide(workload, partial(self._look, demand, placed))
        if burst is not None and not has_gpr_templates(workload, self.inputs) and not self._is_restrained(workload):
            self._known[workload] = burst
        return burst

    def turn(self, burst: StandingBurst) -> Turn:
        """Return the turn of a burst."""
        demand = burst.demand
        workload, take = demand.workload, partial(self._take, burst)
        gate = self.working_plan.gates.get(workload)
        return Turn(
            burst.priority,
            burst.since,
            workload,
            grow_if_short(self.working_plan, self.finder, workload, take) if self._may_grow else take,
            Share(0.0, burst.share),
            0 if gate is not None and gate.is_open else burst.unit,
            need=self._need,
        )

    @cached_property
    def _known(self) -> dict[WorkloadId, StandingBurst]:
        """The bursts that are kept from pass to pass, unless the fleet of this pass is one that is only supposed."""
        enrolment = self.inputs.enrolment
        return enrolment.standing if enrolment is not None and enrolment.desired is self.inputs.desired else {}

    @cached_property
    def _may_grow(self) -> bool:
        return bool(self.finder.capacity.growing_clusters)

    @cached_property
    def _is_budgeted(self) -> bool:
        return bool(self.inputs.budgets.workspaces or self.inputs.budgets.policies)

    def _is_restrained(self, workload: WorkloadId) -> bool:
        """Tell whether restraints may have a part in the turn of a burst, which time ends."""
        return workload in self.working_plan.restrained

    def _has_changed(self, workload: WorkloadId) -> bool:
        """Tell whether this pass has changed placements of a burst before its turn."""
        return workload in self.working_plan.changed_workloads()

    def _look(self, demand: Demand, placed: int) -> StandingBurst:
        workload = demand.workload
        return StandingBurst(
            demand=demand,
            placed=placed,
            priority=priority(workload, self.inputs),
            share=self.shares.of_workload(workload),
            since=_waits_since(self.inputs, self.working_plan, demand),
            unit=unit_of_workload(self.inputs, workload).step,
        )

    def _scale_up(self, demand: Demand) -> ScaleUp:
        unit = unit_of_workload(self.inputs, demand.workload)
        return ScaleUp(inputs=self.inputs, working_plan=self.working_plan, finder=self.finder, demand=demand, unit=unit)

    def _need(self, workload: WorkloadId) -> Need | None:
        demand = self.inputs.demands.get(workload)
        if not isinstance(demand, Demand):
            return None
        return self.working_plan.decide(workload, lambda: self._scale_up(demand).need())

    def _take(self, burst: StandingBurst) -> None:
        """Take the turn of a burst: wait as before where that is all that can come of it, else decide."""
        if not self._waits_again(burst):
            self._scale_up(burst.demand).decide(burst)

    def _waits_again(self, burst: StandingBurst) -> bool:
        """Suppress a burst that waited before and finds no room now, as another one of its kind has found none."""
        demand, missing, working_plan = burst.demand, burst.missing, self.working_plan
        workload = demand.workload
        # 1. Only its turn can tell what it asks for.
        if missing is None or demand.shape is None or burst.due_at is None or self.inputs.now < burst.due_at:
            return False
        if workload in working_plan.quotas or workload in working_plan.gates or self._has_changed(workload):
            return False
        # 2. It may be held back.
        if self._is_budgeted or workload in self.inputs.ledger.blocked or self._is_restrained(workload):
            return False
        # 3. Nothing of its kind has been asked for since the plan changed last.
        kind, refusals = self.finder.usual_kind(workload, demand.shape), self.finder.refusals
        if kind is None:
            kind = self.finder.burst_kind(self.inputs.desired.templates[workload], demand.shape)
        alike = refusals.suppressed(kind, self.finder.moment()) if kind is not None else None
        if alike is None:
            return False
        reason, message = refusals.why_not(alike.refusals, burst.message)
        working_plan.suppress(
            Suppressed(
                workload=workload,
                reason=reason,
                message=message,
                replicas=missing,
                until=alike.until,
                refusals=alike.refusals,
            )
        )
        return True


def _waits_since(inputs: PassInput, working_plan: WorkingPlan, demand: Demand) -> datetime:
    """Return since when the first replica waits that is not placed, but no earlier than the workload's last turn."""
    since = demand.waiting[0].since
    if len(demand.waiting) > 1:
        placed = working_plan.replicas(demand.workload)
        steps = sorted(demand.waiting, key=lambda step: step.since)
        total = accumulate(step.replicas for step in steps)
        since = next(step.since for step, replicas in zip(steps, total, strict=True) if replicas > placed)
    restraints = (*inputs.ledger.restraints.get(demand.workload, ()), *working_plan.restraints(demand.workload))
    if not restraints:
        return since
    turns = (restraint.until for restraint in restraints if restraint.kind is RestraintKind.TURN)
    return max([since, *turns])


def _unmeasured(inputs: PassInput, demand: UnseenPrimary, placed: int) -> Suppressed:
    """Say that nothing tells what is missing on the primary."""
    sourceless = inputs.desired.templates[demand.workload].ref is None
    kept = f"its {count(placed, 'replica')} elsewhere stay until they expire" if placed else "it gets nothing new"
    return Suppressed(
        workload=demand.workload,
        reason=Reason.SOURCE_UNREAD if sourceless else Reason.PRIMARY_UNSEEN,
        message=f"{demand.message}; {kept}",
        replicas=placed,
    )


def _not_found(demand: Demand, placed: int) -> Suppressed:
    """Say that the object whose replicas would burst is not on its primary, and what is there instead."""
    return Suppressed(workload=demand.workload, reason=Reason.NOT_FOUND, message=demand.note, replicas=placed)
