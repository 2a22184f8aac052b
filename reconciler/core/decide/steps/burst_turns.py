"""The turns of bursts: workloads whose primary lacks replicas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import accumulate

from reconciler.core.decide.assign.assessments import kept_turn
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
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
            turn = bursts.turn(demand)
            if turn is not None:
                yield turn


@dataclass(frozen=True, kw_only=True)
class _Bursts:
    """The turns of all bursts of one pass."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    shares: FairShares

    def turn(self, demand: Demand) -> Turn | None:
        """Return the turn of a burst; None where nothing can be decided on it."""
        if demand.workload in self.working_plan.frozen:
            return None
        return self.working_plan.decide(demand.workload, partial(self._turn, demand))

    def _turn(self, demand: Demand) -> Turn:
        workload, scale_up = demand.workload, self._scale_up(demand)
        take = grow_if_short(self.working_plan, self.finder, workload, scale_up.decide)
        return Turn(
            priority(workload, self.inputs),
            _waits_since(self.inputs, self.working_plan, demand),
            workload,
            kept_turn(self.working_plan, self.finder, workload, take),
            Share(0.0, self.shares.of_workload(workload)),
            scale_up.unit.step,
            need=self._need,
        )

    def _scale_up(self, demand: Demand) -> ScaleUp:
        gate, unit = self.working_plan.gates.get(demand.workload), unit_of_workload(self.inputs, demand.workload)
        unit = unit if gate is None else gate.unit(unit)
        return ScaleUp(inputs=self.inputs, working_plan=self.working_plan, finder=self.finder, demand=demand, unit=unit)

    def _need(self, workload: WorkloadId) -> Need | None:
        demand = self.inputs.demands.get(workload)
        if not isinstance(demand, Demand):
            return None
        return self.working_plan.decide(workload, lambda: self._scale_up(demand).need())


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
