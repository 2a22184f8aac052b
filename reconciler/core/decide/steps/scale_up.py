"""Scale up: replicas burst to other clusters after their primary has had no room for them for the scale-up window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from operator import attrgetter

from reconciler.core.capacity.best_fit import tightest_first
from reconciler.core.capacity.devices import requests_with_devices
from reconciler.core.capacity.gpu_slices import recorded_shape
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.cost.budgets import describe_used_up
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.assign.assignment import Assignment, Released, SetPods, by_cluster
from reconciler.core.decide.assign.copies import WAY_OUT, too_large
from reconciler.core.decide.assign.replicas_by_cluster import assign
from reconciler.core.decide.candidates.filter import STALLED_REMEDY
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder, describe_first_remedy, why_not
from reconciler.core.decide.state.gate import describe_waiting
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.runs import describe_part, describe_repetition
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.turns.queue import Need
from reconciler.core.fleet.burst_replicas import describe_maximum
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import next_due, replicas_due
from reconciler.core.pods.node_affinity import required_labels
from reconciler.model.action import Action
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import ClusterSubset, Placement, RestraintKind, place_name
from reconciler.model.plan import Change, Choice, Reason, Refusal, Shortage, Suppressed
from reconciler.model.units import Resources, format_duration
from reconciler.text.wording import conjugate, count, join_names

_SHARED = "room is shared with others that wait"


def _full(candidate: Candidate, choice: Choice, held: str) -> Refusal:
    """Say of a candidate that got all replicas it has room for why it did not get more.

    `held` are the quotas, or else the NodePools, that keep more from it.
    """
    limited = choice.limit is not None and choice.fits > candidate.replicas
    bound = f"may have {choice.limit} at most" if limited else f"has no room for more{held}"
    return Refusal(
        cluster=candidate.cluster,
        reason=Reason.CLUSTER_LIMIT if limited else Reason.NO_CAPACITY,
        message=f"took {count(candidate.replicas, 'replica')} and {bound}",
        subset=candidate.subset,
    )


def _shortage(demand: Demand, shape: ReplicaShape, now: datetime) -> Shortage:
    """Describe the missing replicas: how many, since when, and by which signals."""
    pods = [step for step in demand.waiting if not step.signal]
    return Shortage(
        primary=demand.primary,
        replicas=demand.missing,
        waited=now - min((step.since for step in demand.waiting if not step.spare), default=now),
        requests=requests_with_devices(shape),
        node_selector=required_labels(shape),
        causes=tuple(sorted({step.cause for step in pods if step.cause})),
        unschedulable=sum(step.replicas for step in pods),
        asks=tuple(dict.fromkeys(f"{step.signal} {step.cause}" for step in demand.waiting if step.signal)),
        spare=sum(step.replicas for step in demand.waiting if step.spare),
    )


@dataclass(frozen=True, kw_only=True)
class ScaleUp:
    """The turn of one workload with missing replicas."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    demand: Demand
    unit: PlacementUnit
    """What of the workload is placed together."""

    def decide(self) -> None:
        """Place the replicas that are due and have room, and suppress the others with the reason."""
        wanted = self._wanted()
        if wanted is not None:
            self._place(*wanted)

    def need(self) -> Need | None:
        """Return the replicas that its turn would place, and the room for them; None where only the turn can tell.

        To be called in a trial of the working plan.
        """
        wanted = self._wanted()
        if wanted is None:
            return Need(replicas=0)
        shape, missing = wanted
        workload = self.demand.workload
        template, policy = self.inputs.desired.templates[workload], self.inputs.desired.policies[workload]
        if not self._is_divisible() or self.finder.may_grow(workload):
            return None
        kind = self.finder.burst_kind(template, shape)
        room = None if kind is None else self.finder.room_by_cluster(kind, template, policy, shape)
        return None if kind is None or room is None else Need(replicas=missing, shape=kind[2:], room=room)

    def _is_divisible(self) -> bool:
        """Tell whether each replica may be placed alone, on whatever cluster the workload has replicas already."""
        policy = self.inputs.desired.policies[self.demand.workload]
        return self.unit.is_replica and not policy.distribution.is_bounded

    def _wanted(self) -> tuple[ReplicaShape, int] | None:
        """Return the shape and number of the replicas to place; None for none, with the reason suppressed."""
        missing = self._due()
        # 1. No replica is due, or the workload is held back.
        if missing <= 0 or self._is_held_back():
            return None
        # 2. The clusters that its WorkloadSpread allows are unknown.
        policy = self.inputs.desired.policies[self.demand.workload]
        if policy.stalled:
            self._suppress(Reason.SPREAD_NOT_IN_FORCE, f"{policy.stalled} ({STALLED_REMEDY})")
            return None
        # 3. The objects of its template are unknown.
        unread = self.inputs.desired.templates[self.demand.workload].unread
        if unread:
            self._suppress(Reason.SOURCE_UNREAD, unread)
            return None
        # 4. It runs once, and has begun, may begin at home, or lacks room in part only.
        template, placements = self.inputs.desired.templates[self.demand.workload], self._standing
        repeated = describe_repetition(self.unit, self.demand, template, placements)
        repeated = repeated or describe_part(self.unit, self.demand)
        if repeated:
            self._suppress(Reason.RUNS_ONCE, repeated)
            return None
        # 5. The requests of one replica are unknown.
        shape, unknown = self.demand.shape, self._describe_unknown_requests()
        if shape is None or unknown:
            self._suppress(Reason.NO_SHAPE, unknown)
            return None
        # 6. Nobody has approved it yet.
        gate = self.working_plan.gates.get(self.demand.workload)
        if gate is not None and gate.state.is_closed:
            proposal = gate.proposal
            there = self._assign(shape, missing, replace(self.unit, shown=proposal.placements))
            refusals = () if there.chosen else there.refusals
            self._suppress(Reason.AWAITING_APPROVAL, describe_waiting(gate), proposal.until, refusals=refusals)
            return None
        # 7. Less may be placed than was approved.
        wanted = self.unit.approved or missing
        if missing < wanted:
            self._suppress(Reason.POLICY_LIMIT, f"{count(missing, 'replica')} of {wanted} may be placed now")
            return None
        return shape, missing

    def _describe_unknown_requests(self) -> str:
        """Say why the requests of a replica are unknown; empty where they are known."""
        if self.unit.unknown:
            return f"cannot compute fit: {self.unit.unknown}"
        if self.demand.shape is not None:
            return ""
        primary = self.demand.primary
        if self.demand.reported:
            return (
                f"the observation of {primary} does not say what one replica requests (add it as workloads[].replica)"
            )
        return f"{primary} reports no such object, so the requests of one replica are unknown"

    def _place(self, shape: ReplicaShape, missing: int) -> None:
        """Assign missing replicas to clusters, and suppress those that none has room for."""
        workload, template = self.demand.workload, self.inputs.desired.templates[self.demand.workload]
        beyond = missing - self.unit.approved if self.unit.approved else 0
        missing -= beyond
        unit, here = self.unit, self.working_plan.replicas(workload) if self.unit.is_set else 0
        if here + missing < unit.size:
            self._suppress(Reason.NOTHING_FITS, self._too_large(missing, here), short=missing)
            return
        # Another burst of its kind has found no room, and nothing has changed since. Bounds of clusters go by what each
        # has already.
        kind = self.finder.burst_kind(template, shape) if self._is_divisible() else None
        alike = self.finder.refusals.suppressed(kind, self.finder.moment()) if kind is not None else None
        if alike is not None:
            self._note((), alike.refusals)
            reason, message = self.finder.refusals.why_not(alike.refusals, self._fits_nowhere(missing))
            self._suppress(reason, message, alike.until, short=missing, refusals=alike.refusals)
            return
        assignment = self._assign(shape, missing, unit)
        self._note(assignment.chosen, assignment.refusals, assignment.out_of_reach)
        refusals, choices = assignment.refusals, self._choose(assignment.chosen, assignment.pods)
        changes, partly = list[Change](), list[str]()
        for candidate in assignment.chosen:
            choice, pods = choices[candidate.key], assignment.pods
            placed_shape = candidate.shape if pods is None else pods.shape
            changes.append(self._change(candidate, choice, placed_shape, refusals, missing))
            if candidate.replicas == candidate.room and unit.is_single:
                held = self._describe_held(candidate)
                refusals = (*refusals, _full(candidate, choice, held))
                partly += [f"{place_name(*candidate.key)} takes {candidate.replicas}: {held[2:]}"] if held else []
        self.working_plan.burst(workload, changes)
        if beyond and changes:
            soon = self.inputs.now + timedelta(seconds=1)
            more = f"{count(beyond, 'replica')} beyond what was approved wait for the next pass"
            self._suppress(Reason.AWAITING_APPROVAL, more, soon, short=beyond)
        left = missing - assignment.home - sum(candidate.replicas for candidate in assignment.chosen)
        if assignment.home:
            self._suppress(Reason.SPREAD_LIMIT, self._stays(assignment.home), short=assignment.home)
        if unit.is_set:
            self._tell_set(assignment, missing, here)
            return
        if 0 < left < unit.size:
            self._suppress(Reason.NOTHING_FITS, self._too_large(left), short=left)
        elif left:
            fit = "; ".join((self._fits_nowhere(left), *partly))
            if unit.is_copy:
                fit += f": each gets one copy of {count(unit.size, 'replica')} at most ({WAY_OUT})"
            why = why_not(assignment.refusals, fit)
            self._suppress(
                *((Reason.SPREAD_LIMIT, assignment.out_of_reach) if assignment.out_of_reach else why),
                self.finder.next_change(workload),
                short=left,
                refusals=assignment.refusals,
            )
            suppressed = self.working_plan.unplaceable(workload)
            if kind is not None and suppressed is not None and left == missing:
                self.finder.refusals.suppress(kind, suppressed, self.finder.moment())

    def _describe_held(self, candidate: Candidate) -> str:
        """Say which quotas, or else which NodePools, keep more from a candidate, each after a semicolon."""
        room = self.finder.capacity.room(candidate.cluster, self.demand.workload.workspace)
        refused = room.refused_pods(candidate.shape, 1)
        return f"; {refused.message}" if refused else self.finder.describe_held(candidate.cluster, candidate.shape)

    def _assign(self, shape: ReplicaShape, missing: int, unit: PlacementUnit) -> Assignment:
        template = self.inputs.desired.templates[self.demand.workload]
        policy, standing = self.inputs.desired.policies[self.demand.workload], self._standing
        if not (unit.elastic and standing):
            return assign(self.finder, template, policy, shape, missing, unit=unit)
        # A run grows where it is: elsewhere the part would begin again.
        slots, elsewhere = {self.inputs.slot(placement) for placement in standing}, "it runs once, and began elsewhere"
        closed = {
            each.key: Refusal(cluster=each.cluster, subset=each.subset, reason=Reason.RUNS_ONCE, message=elsewhere)
            for each in self.finder.order(template.workload)
            if each.key not in slots
        }
        grows, nothing = unit.together(missing), Released(places={}, ends=0, closed=closed)
        return assign(self.finder, template, policy, shape, missing, unit=grows, released=nothing)

    @property
    def _standing(self) -> Sequence[Placement]:
        return self.working_plan.of(self.demand.workload)

    def _fits_nowhere(self, replicas: int) -> str:
        return f"{count(replicas, 'replica')} of {self.demand.missing} {conjugate(replicas, 'fits')} on no cluster"

    def _choose(self, chosen: Sequence[Candidate], pods: SetPods | None = None) -> Mapping[ClusterSubset, Choice]:
        """Hand out the room of candidates, or of the `pods` of a set on its only one; record each as it is taken."""
        if pods is not None:
            return {
                candidate.key: gang_placement.choose(self.finder, candidate, pods, self.demand.workload.workspace)
                for candidate in chosen
            }
        choices, capacity = dict[ClusterSubset, Choice](), self.finder.capacity
        workspace = self.demand.workload.workspace
        shared = self.demand.workload in self.working_plan.quotas
        for cluster, here in by_cluster(chosen).items():
            room = capacity.room(cluster, workspace)
            for place, candidate in enumerate(tightest_first(room, here, attrgetter("shape"))):
                taken = candidate
                # Another subset of this pass may have taken room there since the candidate was assessed.
                if place:
                    room = capacity.room(cluster, workspace)
                    taken = candidate._replace(fits=room.count(candidate.shape, MOST))
                if shared:
                    because = f"{taken.because}; {_SHARED}" if taken.because else _SHARED
                    taken = taken.with_replicas(taken.replicas, because)
                choices[candidate.key] = self.finder.choice(taken, workspace, room)
                capacity.take_replicas(cluster, self.demand.workload, candidate.shape, candidate.replicas)
        return choices

    def _tell_set(self, assignment: Assignment, missing: int, here: int) -> None:
        """Suppress the replicas of a set that have no room; `here` are those that are placed, on one cluster."""
        # 1. Its cluster may have a part of it.
        for candidate in assignment.chosen:
            if candidate.replicas < missing:
                message = f"{candidate.cluster} may have {candidate.limit} at most, and a set has one cluster"
                self._suppress(Reason.CLUSTER_LIMIT, message, short=missing - candidate.replicas)
            return
        # 2. More of it joins the rest, and goes nowhere else; or all of it fits nowhere.
        workload, refusals = self.demand.workload, assignment.refusals
        minimum = gang_placement.describe_minimum(self.unit.more(here, missing))
        nor = f", nor with {minimum}" if minimum else ""
        fits = f"it fits on no cluster as a whole, with {count(here + missing, 'replica')}{nor}"
        if here:
            where = join_names(sorted(self.working_plan.group(workload).clusters))
            fits = f"{count(missing, 'replica')} more can go only where the rest is, on {where}"
        reason, message = why_not(refusals, f"{fits}{describe_first_remedy(refusals)}")
        self._suppress(reason, message, self.finder.next_change(workload), short=missing, refusals=refusals)

    def _due(self) -> int:
        """Count the missing replicas that are due: missing for the scale-up window, and within the policy's limit.

        Where all are placed together none is due before all of them are: one cluster has to hold all.
        """
        demand, now = self.demand, self.inputs.now
        policy = self.inputs.desired.policies[demand.workload]
        placed = self.working_plan.replicas(demand.workload)
        # What was proposed has been missing for the window before, and need not be again.
        window = timedelta() if self.unit.shown is not None else policy.scale_up_window
        due = replicas_due(demand, window, now)
        missing = due - placed
        quota = self.working_plan.quotas.get(demand.workload)
        if quota is not None:
            missing = min(missing, max(0, quota - placed))
        due_at = next_due(demand, window, now) if due < demand.missing else None
        if due_at is not None and not self.unit.step:
            missing = 0
        if due_at is not None:
            self._suppress(
                Reason.SCALE_UP_WINDOW,
                f"not every replica has been {self._state()} for the scale-up window of"
                f" {format_duration(policy.scale_up_window)}",
                due_at,
                short=demand.missing - placed - max(0, missing),
            )
        allowed = policy.capped(placed + missing) - placed
        if allowed == missing:
            return missing
        within = self.unit.within(allowed)
        self._suppress(
            Reason.POLICY_LIMIT,
            f"{describe_maximum(policy)} of this workload",
            short=missing - max(0, within),
        )
        return within

    def _is_held_back(self) -> bool:
        """Tell whether the whole workload is held back, and suppress its replicas then."""
        # 1. It has just come home, or a person sent it home.
        cooling = self.working_plan.cooling(self.demand.workload)
        if cooling is not None:
            held = cooling.kind is RestraintKind.HOLD
            reason = Reason.HELD if held else Reason.COOLING_DOWN
            way_out = f"`overspill release {self.demand.workload}` ends that"
            if held and lifecycle.end_of(cooling) is EndReason.EXPIRED:
                way_out += ", once burstDuration, or duration.renew and max of its policy, give it the time it takes"
            self._suppress(reason, f"{cooling.reason} ({way_out})", cooling.until)
            return True
        # 2. Its restraints cannot be read.
        if self.demand.workload in self.inputs.ledger.blocked:
            message = "a file of its on the output branch cannot be read; see the problems"
            self._suppress(Reason.LEDGER_UNREADABLE, message)
            return True
        # 3. What it may cost is spent.
        policy = self.inputs.desired.policies[self.demand.workload]
        budget = self.inputs.budgets.used_up(self.demand.workload, policy.name)
        if budget is not None:
            self._suppress(Reason.OVER_BUDGET, describe_used_up(budget), budget.ends_at)
            return True
        return False

    def _change(
        self,
        candidate: Candidate,
        choice: Choice,
        shape: ReplicaShape,
        refusals: tuple[Refusal, ...],
        missing: int,
    ) -> Change:
        """Begin a placement on the chosen cluster, or resize the one that stands there for some of the missing."""
        demand, now, cluster = self.demand, self.inputs.now, candidate.cluster
        desired, subset = self.inputs.desired, candidate.subset
        policy = desired.policies[demand.workload]
        if policy.is_in_order:
            refusals = self._before(candidate, refusals)
        here = self.working_plan.on_slot(demand.workload, candidate.key)
        if not here:
            template = desired.templates[demand.workload]
            placement = self.finder.placement(template, policy, shape, cluster, candidate.replicas, subset=subset)
            return Change(
                action=Action.PLACE, after=placement, shortage=self._shortage, choice=choice, refused=refusals
            )
        before = max(here, key=lambda placement: (placement.created_at, placement.name))
        grown = lifecycle.resized_placement(before, self.inputs.desired, now, before.replicas + candidate.replicas)
        recorded = recorded_shape(shape, self.inputs.observed.clusters.get(cluster))
        after = replace(grown, shape=recorded, subset=subset)
        return Change(
            action=Action.RESIZE,
            before=before,
            after=after,
            detail=self._describe_shortage(candidate.replicas, missing),
            shortage=self._shortage,
            choice=choice,
            refused=refusals,
        )

    def _before(self, candidate: Candidate, refusals: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
        """Keep the refusals of clusters that would have come first: in order, only these explain a choice."""
        if not refusals:
            return refusals
        ranks = {other.key: other.rank for other in self.finder.order(self.demand.workload)}
        return tuple(refusal for refusal in refusals if ranks[refusal.cluster, refusal.subset] < candidate.rank)

    def _describe_shortage(self, replicas: int, missing: int) -> str:
        """Say how many of the missing replicas are placed, and who lacks them."""
        lacks = f"for {self.demand.primary}" if self._shortage.spare else f"that {self.demand.primary} is missing"
        return f"{replicas} of {count(missing, 'more replica')} {lacks}"

    @cached_property
    def _shortage(self) -> Shortage:
        """The missing replicas. Nothing is placed of a workload whose shape is unknown."""
        return _shortage(self.demand, self.demand.shape or ReplicaShape(requests=Resources()), self.inputs.now)

    def _too_large(self, missing: int, here: int = 0) -> str:
        """Say that a copy, of which `here` are placed, is more than the policy allows, or more than what is missing."""
        policy, copy = self.inputs.desired.policies[self.demand.workload], self.unit.size
        others = self.working_plan.replicas(self.demand.workload) - here
        allowed = policy.capped(others + copy) - others
        if allowed < copy:
            return too_large(copy, allowed, f"policy {policy.name} allows")
        return too_large(copy, here + missing, "missing are")

    def _stays(self, replicas: int) -> str:
        """Say that the primary is in a subset, and has room for some of the missing replicas."""
        return f"{self.demand.primary} has room for {count(replicas, 'replica')} of them itself, as its subset has"

    def _state(self) -> str:
        return "missing" if any(step.signal for step in self.demand.waiting) else "unschedulable"

    def _note(self, chosen: Iterable[Candidate], refusals: Iterable[Refusal], out_of_reach: str = "") -> None:
        """Note what the turn assigns and refuses, for an assessment that the plan keeps."""
        self.working_plan.kept.note(self.demand.workload, chosen, refusals, out_of_reach)

    def _suppress(
        self,
        reason: Reason,
        message: str,
        until: datetime | None = None,
        *,
        short: int | None = None,
        refusals: tuple[Refusal, ...] = (),
    ) -> None:
        if short is None:
            short = self.demand.missing - self.working_plan.replicas(self.demand.workload)
        self.working_plan.suppress(
            Suppressed(
                workload=self.demand.workload,
                reason=reason,
                message=message,
                replicas=short,
                until=until,
                refusals=refusals,
            ),
            in_turn=True,
        )
