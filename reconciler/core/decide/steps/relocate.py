"""Relocation: replicas that cannot run where they are go to other clusters, as many as have room there.

A placement whose replicas all go to one cluster moves in one commit. Other replicas are taken away and placed in the
same pass; all commits of a pass are pushed together. They keep their end, and what no other cluster has room for stays.

Clusters whose owners come and go must not chase replicas about: a workload has a budget of moves an hour, and does not
move back to a cluster that it left a short time ago. Both are read from the restraints that moves leave in the ledger.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.candidates.gang import gang_of, unit_of_workload
from reconciler.core.decide.state.gate import may_not_move
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import make_move, make_revert
from reconciler.core.decide.steps.move import find_move
from reconciler.core.ledger import lifecycle
from reconciler.core.ledger.restraints import MOVES_PERIOD
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Choice, EndReason, Place, Reason, Refusal, Resize, Suppressed
from reconciler.model.policy import BurstPolicy
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, count

_NO_ROOM = "no other cluster has room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Replicas of one placement that cannot run where they are."""

    placement: Placement
    replicas: int
    why: EndReason
    """The reason of what goes."""
    held: Reason
    """The reason of what stays."""
    detail: str
    left: str
    """What the restraint for the cluster says."""
    rest: timedelta
    """How long the cluster gets nothing of the workload afterwards, if the policy's cool-down is shorter."""


def may_relocate(inputs: PassInput, working_plan: WorkingPlan, placement: Placement) -> bool:
    """Tell whether the replicas of a placement can run on any cluster, each for itself, and are a burst in force.

    Requests stay where their clusters were chosen. Without a view of the primary nobody knows what is needed.
    """
    workload, desired = placement.workload, inputs.desired
    return (
        not workload.request
        and workload in desired.templates
        and workload in desired.policies
        and workload not in inputs.ledger.blocked
        and isinstance(inputs.demands.get(workload), Demand)
        and working_plan.cooling(workload) is None
        and gang_of(inputs, workload, placement) is None
    )


def relocate(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, departure: Departure) -> None:
    """Move the replicas that are needed and have room elsewhere, within the budget; suppress the others."""
    step = _Relocation(inputs=inputs, working_plan=working_plan, finder=finder, departure=departure)
    step.decide()


def over_budget(
    inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, detail: str, *, replicas: int
) -> Suppressed | None:
    """Suppress a move that would be one too many within the hour; None where there may be another."""
    policy = inputs.desired.policies[workload]
    moves, most = working_plan.moves(workload), policy.moves.most_per_hour
    if len(moves) < most:
        return None
    until = sorted(move.since for move in moves)[len(moves) - most] + MOVES_PERIOD if most else None
    again = f" until {format_time(until)}" if until is not None else ""
    return Suppressed(
        workload=workload,
        reason=Reason.MOVE_BUDGET,
        message=f"{detail}; what is there stays{again}, since policy {policy.name} allows {count(most, 'move')} an hour"
        " (moves.maxPerHour)",
        replicas=replicas,
        until=until,
    )


def recently_left(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> Mapping[ClusterName, Refusal]:
    """Refuse the clusters that a workload left too short a time ago to move back."""
    pause = inputs.desired.policies[workload].moves.back_after
    refusals = {}
    for move in working_plan.moves(workload):
        if move.cluster is not None and inputs.now < move.since + pause:
            message = (
                f"it moved away from there at {format_time(move.since)}, and moves back after"
                f" {format_duration(pause)} at the earliest (moves.backAfter)"
            )
            refusals[move.cluster] = Refusal(cluster=move.cluster, reason=Reason.COOLING_DOWN, message=message)
    return refusals


def move_restraint(inputs: PassInput, placement: Placement, reason: str, rest: timedelta) -> Restraint:
    """Make the restraint that a move leaves: for the cluster that was left, and for the budget of moves."""
    cool_down = inputs.desired.policies[placement.workload].cool_down
    return Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=placement.cluster,
        since=inputs.now,
        until=inputs.now + max(rest, cool_down),
        reason=reason,
        placement=placement.name,
        move=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relocation:
    """The step for one placement."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    departure: Departure

    def decide(self) -> None:
        """Find room, then move."""
        going, workload = self._needed(), self.departure.placement.workload
        if going <= 0:
            return
        # 1. It has moved too often.
        detail = self.departure.detail
        suppressed = over_budget(self.inputs, self.working_plan, workload, detail, replicas=going)
        if suppressed is not None:
            self.working_plan.suppress(suppressed)
            return
        # 2. A second copy of what runs once would do the work again.
        if self.inputs.desired.templates[workload].runs_once:
            self._stay(going, "it runs once, and may still run there", ())
            return
        # 3. A copy, a subset or a bound on the number of clusters: all of it moves to one other cluster, or nothing.
        avoided = recently_left(self.inputs, self.working_plan, workload)
        if not self._divides:
            self._move_whole(going, avoided)
            return
        # 4. Another burst of its kind has found no room, and nothing has changed since.
        kind = self.finder.burst_kind(self._template, self._shape)
        cached = self.finder.refusals.suppressed(kind, self.finder.moment()) if kind is not None else None
        if cached is not None:
            self._stay(going, _NO_ROOM, cached.refusals, cached.until)
            return
        # 5. All of it has room on one other cluster, or some of it on several.
        answers = self._answers(kind, going, avoided)
        able = [answer for answer in answers if not isinstance(answer, Refusal) and not self._is_here(answer)]
        refusals = tuple(answer for answer in answers if isinstance(answer, Refusal))
        others = tuple(refusal for refusal in refusals if refusal.cluster != self._placement.cluster)
        whole = next((answer for answer in able if answer.room >= self._placement.replicas == going), None)
        if whole is not None:
            self._move(whole, others)
            return
        chosen = tuple(self._shares(going, able))
        moved = sum(candidate.replicas for candidate in chosen)
        if moved:
            self._divide(chosen, moved, others)
        # 6. The rest of it stays.
        if moved < going:
            suppressed = self._stay(going - moved, _NO_ROOM, others)
            if kind is not None and len(refusals) == len(answers):
                self.finder.refusals.suppress(kind, replace(suppressed, refusals=refusals), self.finder.moment())

    def _move_whole(self, going: int, avoided: Mapping[ClusterName, Refusal]) -> None:
        """Move the whole placement to the first other cluster with room for it."""
        candidate, refusals = None, tuple[Refusal, ...]()
        if going == self._placement.replicas:
            candidate, refusals = find_move(self.finder, self._template, self._policy, self._placement, avoided=avoided)
            refusals = tuple(refusal for refusal in refusals if refusal.cluster != self._placement.cluster)
        if candidate is None:
            self._stay(going, "no other cluster has room for all of it", refusals)
        else:
            self._move(candidate, refusals)

    @property
    def _placement(self) -> Placement:
        return self.departure.placement

    @property
    def _template(self) -> WorkloadTemplate:
        return self.inputs.desired.templates[self._placement.workload]

    @property
    def _policy(self) -> BurstPolicy:
        return self.inputs.desired.policies[self._placement.workload]

    @property
    def _divides(self) -> bool:
        """Whether a part of the placement may go: no whole unit, no subset, and no bound on the number of clusters."""
        policy = self._policy
        bounded = policy.distribution.max_clusters is not None or policy.distribution.max_groups is not None
        is_single = unit_of_workload(self.inputs, self._placement.workload, self._placement).is_single
        return is_single and policy.spread is None and not bounded

    def _needed(self) -> int:
        """Count the replicas that are still missing on the primary: others come home in their own time."""
        demand = self.inputs.demands[self._placement.workload]
        missing = demand.missing if isinstance(demand, Demand) else 0
        return self.departure.replicas - max(0, self.working_plan.replicas(self._placement.workload) - missing)

    @property
    def _shape(self) -> ReplicaShape:
        """A replica as the primary shows it now, else as it was placed."""
        demand = self.inputs.demands[self._placement.workload]
        return (demand.shape if isinstance(demand, Demand) else None) or self._placement.shape

    def _is_here(self, candidate: Candidate) -> bool:
        return candidate.cluster == self._placement.cluster

    def _answers(
        self, kind: tuple[Hashable, ...] | None, going: int, avoided: Mapping[ClusterName, Refusal]
    ) -> list[Candidate | Refusal]:
        """Assess each cluster by itself, in order, up to the first other one with room for the whole placement."""
        answers = list[Candidate | Refusal]()
        ended = going == self._placement.replicas  # a placement that goes whole makes room for the GPR that begins
        for candidate in self.finder.order(self._placement.workload):
            unapproved = may_not_move(self.inputs, self._placement, candidate.cluster)
            answer = (
                avoided.get(candidate.cluster)
                or unapproved
                or self.finder.assess_alike(
                    kind,
                    self._template,
                    self._policy,
                    self._shape,
                    candidate=candidate,
                    replicas=going,
                    more_gprs=-ended,
                )
            )
            answers.append(answer)
            if not isinstance(answer, Refusal) and answer.room >= going and not self._is_here(answer):
                break
        return answers

    def _shares(self, going: int, able: Sequence[Candidate]) -> Iterator[Candidate]:
        """Yield the clusters with room, each with its part, as far as the workspace may begin GPRs on them."""
        placement, gprs = self._placement, self.finder.gprs
        begun = -(going == placement.replicas <= sum(candidate.room for candidate in able))
        for candidate in able:
            if not going:
                return
            if not self.finder.held_here(placement.workload, self._policy, candidate):
                workspace = placement.workload.workspace
                if gprs.refusal(workspace, candidate.cluster, candidate.shape, more_gprs=begun) is not None:
                    continue
                begun += 1
            replicas = min(going, candidate.room)
            yield candidate._replace(replicas=replicas)
            going -= replicas

    def _move(self, candidate: Candidate, refusals: tuple[Refusal, ...]) -> None:
        move = make_move(
            self.inputs,
            self.working_plan,
            self.finder,
            self._placement,
            candidate=candidate,
            why=self.departure.why,
            detail=self.departure.detail,
            refused=refusals,
            restraint=self._restraint(),
        )
        self.working_plan.change(move)

    def _divide(self, chosen: Sequence[Candidate], moved: int, refusals: tuple[Refusal, ...]) -> None:
        """Take replicas away, then place them; the first change leaves the restraint."""
        placement, desired, now = self._placement, self.inputs.desired, self.inputs.now
        detail, choices = self.departure.detail, list[Choice]()
        for candidate in chosen:
            choices.append(self.finder.choice(candidate, placement.workload.workspace))
            self.finder.capacity.take(candidate.cluster, candidate.shape, candidate.replicas)
        if moved < placement.replicas:
            after = lifecycle.resized_placement(placement, desired, now, placement.replicas - moved)
            self.working_plan.change(Resize(before=placement, after=after, detail=detail, restraint=self._restraint()))
        else:
            self.working_plan.change(
                make_revert(self.inputs, placement, self.departure.why, detail, restraint=self._restraint())
            )
        for candidate, choice in zip(chosen, choices, strict=True):
            others = self.working_plan.of(placement.workload)
            here = [other for other in others if other.cluster == candidate.cluster]
            goes = f"{candidate.replicas} of them move here"
            if here:
                before = max(here, key=lambda other: (other.created_at, other.name))
                grown = lifecycle.resized_placement(before, desired, now, before.replicas + candidate.replicas)
                after = replace(grown, shape=candidate.shape.recorded)
                change = Resize(before=before, after=after, detail=f"{detail}; {goes}", choice=choice, refused=refusals)
                self.working_plan.change(change)
                continue
            made = self.finder.placement(
                self._template, self._policy, candidate.shape, candidate.cluster, candidate.replicas
            )
            made = replace(
                made,
                created_at=placement.created_at,
                expires_at=placement.expires_at,
                fixed_end=placement.fixed_end,
            )
            self.working_plan.change(
                Place(placement=made, shortage=None, choice=choice, refused=refusals, detail=f"{detail}; {goes}")
            )

    def _restraint(self) -> Restraint:
        return move_restraint(self.inputs, self._placement, self.departure.left, self.departure.rest)

    def _stay(self, stays: int, why: str, refusals: tuple[Refusal, ...], until: datetime | None = None) -> Suppressed:
        """Suppress the replicas that stay; `until` is when others of their kind are considered again."""
        placement = self._placement
        first = next((refusal for refusal in refusals if refusal.remedy), None)
        hint = f"; {first.where}: {as_clause(first.message)} ({first.remedy})" if first is not None else ""
        part = "stay" if stays > 1 else "stays"
        suppressed = Suppressed(
            workload=placement.workload,
            reason=self.departure.held,
            message=f"{self.departure.detail}, and {why}: {stays} {part} there{hint}",
            replicas=stays,
            until=until or self.finder.next_change(placement.workload),
            refusals=refusals,
        )
        self.working_plan.suppress(suppressed)
        return suppressed
