"""Relocation: replicas that cannot or may not stay on their cluster go to others, as many as have room there.

Rules say what leaves and why (a `Departure`); this step alone says where it goes, for every kind of workload. It is
assigned as missing replicas are, with the replicas that stay, so that the shares and bounds of the policy outlive a
loss. A placement whose replicas all go to one cluster moves in one commit. Other replicas are taken away and placed in
the same pass; all commits of a pass are pushed together. What moves keeps its end.

Clusters whose owners come and go must not chase replicas about: a workload has a budget of moves an hour, and does not
move back to a cluster that it left a short time ago. Both are read from the restraints that moves leave in the ledger.
What files or people no longer allow leaves whatever the budget says.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.assign.assignment import Assignment, Released
from reconciler.core.decide.assign.replicas_by_cluster import assign
from reconciler.core.decide.assign.surplus import take_surplus
from reconciler.core.decide.candidates.finder import CandidateFinder, describe_first_remedy
from reconciler.core.decide.state.gate import may_not_move
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import revert
from reconciler.core.decide.steps.transfer import Cause, Departure, transfer
from reconciler.core.ledger.restraints import MOVES_PERIOD
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import ClusterSubset, Placement, RestraintKind
from reconciler.model.plan import Reason, Refusal, Suppressed
from reconciler.model.policy import BurstPolicy
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, count, sanitize


def may_leave(inputs: PassInput, working_plan: WorkingPlan, placement: Placement, cause: Cause) -> bool:
    """Return whether a placement may leave its cluster for a cause. All rules that move replicas are asked here."""
    workload, desired = placement.workload, inputs.desired
    # 1. Nothing says where it could go.
    if workload not in desired.templates or workload not in desired.policies:
        return False
    if cause.must_go:
        return True
    # 2. It may arrive nowhere.
    if _why_nowhere(inputs, working_plan, workload):
        return False
    # 3. Nobody knows how many of its replicas are needed. A set is needed whole.
    unit = unit_of_workload(inputs, workload, placement)
    return cause.takes(unit) and (unit.is_set or isinstance(inputs.demands.get(workload), Demand))


def _why_nowhere(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId) -> str:
    """Say why no cluster gets replicas of a workload, as a clause; empty where some may."""
    cooling = working_plan.cooling(workload)
    if cooling is not None:
        return f"it is held back everywhere: {as_clause(cooling.reason)}"
    # Nobody knows all that it has and left.
    blocked = workload in inputs.ledger.blocked
    return "a file of its on the output branch cannot be read, so that it goes nowhere else" if blocked else ""


def relocate(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder, departure: Departure) -> None:
    """Move what may leave and has room elsewhere; what has none stays with the reason, or is reverted."""
    placement = departure.placement
    if not may_leave(inputs, working_plan, placement, departure.cause):
        return
    unit = unit_of_workload(inputs, placement.workload, placement)
    step = _Relocation(inputs=inputs, working_plan=working_plan, finder=finder, departure=departure, unit=unit)
    step.decide()


@dataclass(frozen=True, kw_only=True)
class _Relocation:
    """The relocation of one placement."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    departure: Departure
    unit: PlacementUnit

    def decide(self) -> None:
        """Find room, then move."""
        if self.departure.cause.must_go:
            self._leave()
        else:
            self._move_needed()

    def _leave(self) -> None:
        """Move all of it, and revert what has no room elsewhere, or may arrive nowhere."""
        departure, nowhere = self.departure, _why_nowhere(self.inputs, self.working_plan, self.workload)
        if nowhere:
            detail = f"{departure.detail}; {nowhere}"
            revert(self.inputs, self.working_plan, self.placement, departure.cause.why, detail)
            return
        assignment, moved = self._assign(departure.replicas, self._closed({}))
        if moved:
            self._transfer(assignment, departure.replicas, moved)
        else:
            revert(self.inputs, self.working_plan, self.placement, departure.cause.why, departure.detail)

    def _move_needed(self) -> None:
        """Move what is needed of it, as far as it has room elsewhere; the rest of that stays."""
        going = self._needed()
        # 1. Nobody needs it, or it has moved too often.
        if going <= 0 or self._is_over_budget(going):
            return
        # 2. It would do its work twice, or be divided.
        kept = self.unit.why_kept(going, self.placement.replicas) if self.departure.cause.may_run else ""
        if kept:
            self._stay(going, kept, ())
            return
        # 3. Another burst of its kind has found no room, and nothing has changed since.
        kind = self._kind()
        cached = self.finder.refusals.suppressed(kind, self.finder.moment()) if kind is not None else None
        if cached is not None:
            self._stay(going, self._no_room, cached.refusals, cached.until)
            return
        # 4. All of it has room elsewhere, or some of it. What stays counts for the bounds of the policy, so that less
        # may go.
        closed, leaves = self._closed(self._recently_left()), going
        assignment, moved = self._assign(leaves, closed)
        while 0 < moved < leaves:
            leaves = moved
            assignment, moved = self._assign(leaves, closed)
        if moved:
            self._transfer(assignment, moved, moved)
        # 5. The rest of it stays.
        if moved < going:
            suppressed = self._stay(going - moved, self._no_room, self._others(assignment))
            everywhere = len(assignment.refusals) == len(self.finder.order(self.workload))
            if kind is not None and everywhere:
                whole = replace(suppressed, refusals=assignment.refusals)
                self.finder.refusals.suppress(kind, whole, self.finder.moment())

    @property
    def placement(self) -> Placement:
        return self.departure.placement

    @property
    def workload(self) -> WorkloadId:
        return self.departure.placement.workload

    def _is_over_budget(self, going: int) -> bool:
        """Return whether the budget of moves keeps these replicas from moving now; suppress them then."""
        moves, policy = self.working_plan.moves(self.workload), self._policy
        most = policy.moves.most_per_hour
        if len(moves) < most:
            return False
        until = sorted(move.since for move in moves)[len(moves) - most] + MOVES_PERIOD if most else None
        again = f" until {format_time(until)}" if until is not None else ""
        allowed = f"policy {policy.name} allows {count(most, 'move')} an hour (moves.maxPerHour)"
        self.working_plan.suppress(
            Suppressed(
                workload=self.workload,
                reason=Reason.MOVE_BUDGET,
                message=f"{self.departure.detail}; what is there stays{again}, since {allowed}",
                replicas=going,
                until=until,
            )
        )
        return True

    def _stay(self, stays: int, why: str, refusals: tuple[Refusal, ...], until: datetime | None = None) -> Suppressed:
        """Suppress the replicas that stay; `until` is when others of their kind are considered again."""
        part = "it stays" if self.unit.is_set else f"{stays} {'stay' if stays > 1 else 'stays'}"
        suppressed = Suppressed(
            workload=self.workload,
            reason=self.departure.cause.told,
            message=f"{self.departure.detail}, and {why}: {part} there{describe_first_remedy(refusals)}",
            replicas=stays,
            until=until or self.finder.next_change(self.workload),
            refusals=refusals,
        )
        self.working_plan.suppress(suppressed)
        return suppressed

    def _assign(self, going: int, closed: Mapping[ClusterSubset, Refusal]) -> tuple[Assignment, int]:
        """Assign what goes, and count what has room. None has where no cluster that helps gets any.

        A placement that goes whole makes room for the GPR that begins; one that keeps replicas does not.
        """
        ends, leaving = int(going == self.placement.replicas), self._leaving()
        released = Released(places={self._place: going}, ends=ends, closed=closed, leaving=leaving)
        assignment = assign(
            self.finder, self._template, self._policy, self._shape, going, unit=self.unit, released=released
        )
        moved, towards = sum(candidate.replicas for candidate in assignment.chosen), self.departure.towards
        if towards and towards.isdisjoint(candidate.key for candidate in assignment.chosen):
            moved = 0
        return assignment, moved

    def _leaving(self) -> frozenset[ClusterName]:
        """Name the other clusters that the workload has to leave as well: files forbid them, or all of them are lost.

        Beside a lost cluster another that was lost later counts too: its replicas keep no others from leaving. Beside
        one that is seen it does not, since it may soon be seen again.
        """
        lost = self.inputs.lost if self.placement.cluster in self.inputs.lost else {}
        return frozenset(
            other.cluster
            for other in self.working_plan.of(self.workload)
            if other.cluster != self.placement.cluster
            and (other.cluster in lost or self.inputs.exclusion(other) is not None)
        )

    def _recently_left(self) -> Mapping[ClusterName, Refusal]:
        """Refuse the clusters that the workload left too short a time ago to move back.

        What left a healthy cluster for the bounds of its policy may come back at any time.
        """
        own, least, refusals = self._policy.moves.back_after, self.departure.cause.pause, dict[ClusterName, Refusal]()
        pause, whose = (own, "moves.backAfter") if own >= least else (least, "for a bound")
        for move in self.working_plan.moves(self.workload):
            rests = move.kind is RestraintKind.COOL_DOWN and move.until > move.since
            if move.cluster is not None and rests and self.inputs.now < move.since + pause:
                message = (
                    f"it moved away from there at {format_time(move.since)}, and moves back after"
                    f" {format_duration(pause)} at the earliest ({whose})"
                )
                refusals[move.cluster] = Refusal(cluster=move.cluster, reason=Reason.COOLING_DOWN, message=message)
        return refusals

    def _closed(self, avoided: Mapping[ClusterName, Refusal]) -> Mapping[ClusterSubset, Refusal]:
        """Refuse the clusters that the placement may not go to, whatever room they have."""
        closed, made_for = dict[ClusterSubset, Refusal](), self._made_for()
        for candidate in self.finder.order(self.workload):
            cluster = candidate.cluster
            refusal = self.departure.closed.get(candidate.key) or avoided.get(cluster)
            refusal = refusal or may_not_move(self.inputs, self.placement, cluster)
            if refusal is None and made_for and candidate.subset != made_for:
                message = f"its replicas without the patch of subset {sanitize(made_for)} are unknown"
                refusal = Refusal(cluster=cluster, reason=Reason.NO_SHAPE, message=message)
            if refusal is not None:
                closed[candidate.key] = replace(refusal, subset=candidate.subset)
        return closed

    def _made_for(self) -> str:
        """Name the subset whose patch is in the only shape of a replica that is known; empty for none."""
        subset = self._policy.subset(self._place[1]) if self._seen_shape is None else None
        return subset.name if subset is not None and subset.patch else ""

    @property
    def _template(self) -> WorkloadTemplate:
        return self.inputs.desired.templates[self.workload]

    @property
    def _policy(self) -> BurstPolicy:
        return self.inputs.desired.policies[self.workload]

    @cached_property
    def _place(self) -> ClusterSubset:
        return self.inputs.slot(self.placement)

    @property
    def _no_room(self) -> str:
        other = "no other subset has room" if self._policy.subsets else "no other cluster has room"
        minimum = gang_placement.describe_minimum(self.unit.needs(self.placement.replicas))
        nor = f", nor for {minimum}" if minimum else ""
        return f"{other} for all of it{nor}" if self.unit.whole or self.unit.is_set else other

    def _others(self, assignment: Assignment) -> tuple[Refusal, ...]:
        """Return the refusals of other clusters and subsets than the one that it leaves."""
        cluster, subsets = self.placement.cluster, ("", self._place[1])
        return tuple(
            refusal for refusal in assignment.refusals if refusal.cluster != cluster or refusal.subset not in subsets
        )

    def _needed(self) -> int:
        """Count the replicas that are still missing on the primary: others come home in their own time.

        Those that come home are the ones that serve least, of all placements of the workload. A unit goes whole where
        any of it is needed, and a run until it is over.
        """
        going, demand = self.departure.replicas, self.inputs.demands.get(self.workload)
        if self.unit.once or not isinstance(demand, Demand):
            return going
        surplus = self.working_plan.replicas(self.workload) - demand.missing
        if surplus <= 0:
            return going
        placements = self.working_plan.of(self.workload)
        for placement, rest, _ in take_surplus(self.inputs, self.working_plan, surplus, placements, partly=False):
            if placement.path == self.placement.path:
                left = going - (placement.replicas - rest)
                return going if left > 0 and self.unit.units(going) == 1 else left
        return going

    @property
    def _seen_shape(self) -> ReplicaShape | None:
        demand = self.inputs.demands.get(self.workload)
        return demand.shape if isinstance(demand, Demand) else None

    @property
    def _shape(self) -> ReplicaShape:
        """A replica as the primary shows it now, else as it was placed."""
        return self._seen_shape or self.placement.shape

    def _kind(self) -> tuple[Hashable, ...] | None:
        """Return the kind of replicas that go wherever there is room, one by one; None for others."""
        if not self.unit.is_single or not self._policy.fills_in_order:
            return None
        return self.finder.burst_kind(self._template, self._shape)

    def _transfer(self, assignment: Assignment, leave: int, arrive: int) -> None:
        """Let a number of replicas leave, and place those that have room elsewhere."""
        departure, chosen = self.departure, assignment.chosen
        in_one = len(chosen) == 1 and arrive == self.placement.replicas
        if in_one and self._policy.subsets:
            # A move says where it goes, not how its subset fills.
            assignment = replace(assignment, chosen=(chosen[0]._replace(because=""),))
        refusals, unmet = self._others(assignment), f"; {assignment.out_of_reach}" if assignment.out_of_reach else ""

        def tell(candidate: Candidate, _: Placement | None) -> tuple[str, tuple[Refusal, ...]]:
            part = "" if in_one else f"; {candidate.replicas} of them move here"
            return f"{departure.detail}{part}{unmet}", refusals

        departures = [replace(departure, replicas=leave)]
        transfer(self.inputs, self.working_plan, self.finder, departures, assignment, tell=tell, in_one_commit=in_one)
