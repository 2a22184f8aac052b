"""Scale up: replicas burst to other clusters after their primary has had no room for them for the scale-up window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.capacity.best_fit import tightest_first
from reconciler.core.capacity.devices import requests_with_devices
from reconciler.core.capacity.gangs import GangWorkload, additional_requirements
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.assign.replicas_by_cluster import assign
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder, why_not
from reconciler.core.decide.candidates.gang import gang_of
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.queue import Turn
from reconciler.core.decide.steps.reschedule import rescheduled
from reconciler.core.fleet.cluster_order import candidate_of
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import UnseenPrimary, matured, next_maturity
from reconciler.core.spread.placement_subset import cluster_subset
from reconciler.core.workloads.node_affinity import required_labels
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.placement import ClusterSubset, RestraintKind
from reconciler.model.plan import Change, Choice, Place, Reason, Refusal, Resize, Shortage, Suppressed
from reconciler.model.policy import StrategyName
from reconciler.model.units import format_duration
from reconciler.text.wording import as_clause, count, join_names, sanitize


def burst_turns(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> Iterator[Turn]:
    """Yield a turn for each workload with missing replicas, in which they go to the clusters that have room.

    A turn has the priority of the workload's GPR or policy, and waits since the first of its replicas does.
    """
    for demand in inputs.demands.values():
        if isinstance(demand, UnseenPrimary):
            working_plan.suppress(_primary_unseen(demand, working_plan.replicas(demand.workload)))
        elif demand.missing > working_plan.replicas(demand.workload):
            yield Turn(
                priority=priority(demand.workload, inputs),
                since=min(wait.since for wait in demand.waiting),
                workload=demand.workload,
                take=_ScaleUp(inputs=inputs, working_plan=working_plan, finder=finder, demand=demand).decide,
            )


def _primary_unseen(demand: UnseenPrimary, placed: int) -> Suppressed:
    kept = f"its {count(placed, 'replica')} elsewhere stay until they expire" if placed else "it gets nothing new"
    return Suppressed(
        workload=demand.workload,
        reason=Reason.PRIMARY_UNSEEN,
        message=f"{demand.message}; {kept}",
        replicas=placed,
    )


def _full(candidate: Candidate, choice: Choice) -> Refusal:
    """Say of a candidate that got all replicas it has room for why it did not get more."""
    limited = choice.limit is not None and choice.fits > candidate.replicas
    bound = f"may have {choice.limit} at most" if limited else "has no room for more"
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
        waited=now - min(step.since for step in demand.waiting),
        requests=requests_with_devices(shape),
        node_selector=required_labels(shape),
        causes=tuple(sorted({step.cause for step in pods if step.cause})),
        unschedulable=sum(step.replicas for step in pods),
        asks=tuple(dict.fromkeys(f"{step.signal} {step.cause}" for step in demand.waiting if step.signal)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScaleUp:
    """The turn of one workload with missing replicas."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    demand: Demand

    def decide(self) -> None:
        """Place the replicas that are due and have room, and suppress the others with the reason."""
        missing = self._due()
        # 1. No replica is due, or the workload is held back.
        if missing <= 0 or self._is_held_back():
            return
        # 2. Nobody knows what one replica requests.
        gang, shape = self._gang(), self.demand.shape
        unknown = self._unknown(gang)
        if shape is None or unknown:
            self._suppress(Reason.NO_SHAPE, unknown)
            return
        # 3. A gang goes whole to one cluster.
        if gang is not None:
            self._place_gang(gang, shape, missing)
            return
        # 4. Other replicas go to as many clusters as it takes.
        self._place(shape, missing)

    def _gang(self) -> GangWorkload | None:
        """Return the gang that the workload is, if it is one."""
        return gang_of(self.inputs, self.demand.workload)

    def _unknown(self, gang: GangWorkload | None) -> str:
        """Say why the requests of a replica are unknown; empty where they are known."""
        if gang is not None and gang.unknown:
            return f"{gang.unknown}, so nobody knows where all of it fits"
        if self.demand.shape is not None:
            return ""
        primary = self.demand.primary
        if self.demand.reported:
            return (
                f"the observation of {primary} does not say what one replica requests (add it as workloads[].replica)"
            )
        return f"{primary} reports no such object, so nobody knows what one replica requests"

    def _place(self, shape: ReplicaShape, missing: int) -> None:
        """Assign missing replicas to clusters, and suppress those that none has room for."""
        workload = self.demand.workload
        template, policy = self.inputs.desired.templates[workload], self.inputs.desired.policies[workload]
        assignment = assign(self.finder, template, policy, shape, missing)
        refusals, choices = assignment.refusals, self._choose(assignment.chosen)
        for candidate in assignment.chosen:
            choice = choices[candidate.key]
            self.working_plan.change(self._change(candidate, choice, candidate.shape, refusals, missing))
            if candidate.replicas == candidate.room:
                refusals = (*refusals, _full(candidate, choice))
        left = missing - assignment.home - sum(candidate.replicas for candidate in assignment.chosen)
        if assignment.home:
            self._suppress(Reason.SPREAD_LIMIT, self._stays(assignment.home), short=assignment.home)
        if left:
            why = why_not(assignment.refusals, f"{count(left, 'replica')} of {self.demand.missing} fit on no cluster")
            self._suppress(
                *((Reason.SPREAD_LIMIT, assignment.out_of_reach) if assignment.out_of_reach else why),
                self.finder.next_change(workload),
                short=left,
                refusals=assignment.refusals,
            )

    def _choose(self, chosen: Sequence[Candidate]) -> Mapping[ClusterSubset, Choice]:
        """Hand out the room of candidates, and record each as it is taken."""
        choices, workspace = dict[ClusterSubset, Choice](), self.demand.workload.workspace
        for cluster in dict.fromkeys(candidate.cluster for candidate in chosen):
            here = [candidate for candidate in chosen if candidate.cluster == cluster]
            room = self.finder.capacity.room(cluster, workspace)
            for place, candidate in enumerate(tightest_first(room, here, lambda candidate: candidate.shape)):
                # Another subset of this pass may have taken room there since the candidate was assessed.
                left = self.finder.capacity.room(cluster, workspace).count(candidate.shape, MOST) if place else None
                taken = candidate if left is None else replace(candidate, fits=left)
                choices[candidate.key] = self.finder.choice(taken, workspace)
                self.finder.capacity.take(cluster, candidate.shape, candidate.replicas)
        return choices

    def _place_gang(self, gang: GangWorkload, shape: ReplicaShape, missing: int) -> None:
        """Place a gang on the first cluster that has room for all of it, or let it grow where it is.

        A gang has one cluster: replicas without room beside the others wait, and never go to another cluster.
        """
        workload, order = self.demand.workload, self.finder.order(self.demand.workload)
        newest = max(
            self.working_plan.of(workload),
            key=lambda placement: (placement.created_at, placement.name),
            default=None,
        )
        candidates = order if newest is None else (candidate_of(order, newest.cluster),)
        total = missing + (0 if newest is None else newest.replicas)
        placed = None if newest is None else gang.of(newest.replicas)
        need = gang.of(total) if placed is None else additional_requirements(gang.of(total), placed)

        def ask(candidate: Candidate, *, least: bool) -> Candidate | Refusal:
            return gang_placement.assess(
                self.inputs, self.finder, workload, candidate, gang, replicas=total, placed=placed, least=least
            )

        candidate, refusals = gang_placement.first(need, candidates, ask)
        if candidate is not None:
            candidate = replace(candidate, replicas=missing)
            choice = gang_placement.choose(self.finder, candidate, need, shape, workload, replicas=missing)
            self.working_plan.change(self._change(candidate, choice, shape, refusals, missing))
            return
        where_rest = (
            f"{count(missing, 'replica')} more can go only where the rest is, on {newest.cluster}" if newest else ""
        )
        minimum = gang_placement.describe_minimum(need)
        nor = f", nor with {minimum}" if minimum else ""
        fits = where_rest or f"it fits on no cluster as a whole, with {count(total, 'replica')}{nor}"
        first = next((refusal for refusal in refusals if refusal.remedy), None)
        hint = f"; {first.cluster}: {as_clause(first.message)} ({first.remedy})" if first is not None else ""
        reason, message = why_not(refusals, f"{fits}{hint}")
        self._suppress(reason, message, self.finder.next_change(workload), short=missing, refusals=refusals)

    def _due(self) -> int:
        """Count the missing replicas that are due: missing for the scale-up window, and within the policy's limit.

        No replica of a gang is due before all of them are: its cluster has to hold all.
        """
        demand, now = self.demand, self.inputs.now
        policy = self.inputs.desired.policies[demand.workload]
        placed = self.working_plan.replicas(demand.workload)
        missing = matured(demand, policy.scale_up_window, now) - placed
        due_at = next_maturity(demand, policy.scale_up_window, now)
        if due_at is not None and self._gang() is not None:
            missing = 0
        if due_at is not None:
            self._suppress(
                Reason.SCALE_UP_WINDOW,
                f"not every replica has been {self._state()} for the scale-up window of"
                f" {format_duration(policy.scale_up_window)}",
                due_at,
                short=demand.missing - placed - max(0, missing),
            )
        if policy.max_replicas is None or missing <= policy.max_replicas - placed:
            return missing
        self._suppress(
            Reason.POLICY_LIMIT,
            f"policy {policy.name} allows {count(policy.max_replicas, 'replica')} of this workload",
            short=missing - max(0, policy.max_replicas - placed),
        )
        return policy.max_replicas - placed

    def _is_held_back(self) -> bool:
        """Tell whether the whole workload is held back, and suppress its replicas then."""
        # 1. It has just come home, or a person sent it home.
        cooling = self.working_plan.cooling(self.demand.workload)
        if cooling is not None:
            held = cooling.kind is RestraintKind.HOLD
            reason = Reason.HELD if held else Reason.COOLING_DOWN
            self._suppress(reason, f"held back: {cooling.reason}", cooling.until)
            return True
        # 2. Its restraints cannot be read.
        if self.demand.workload in self.inputs.ledger.blocked:
            message = "a file of its on the output branch cannot be read; see the problems"
            self._suppress(Reason.LEDGER_UNREADABLE, message)
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
        """Begin a placement on the chosen cluster, or resize the one that stands there."""
        demand, now, cluster = self.demand, self.inputs.now, candidate.cluster
        # In order, only a cluster that would have come first explains why this one was taken; else all of them do.
        ranks = {other.key: other.rank for other in self.finder.order(demand.workload)}
        desired, subset = self.inputs.desired, candidate.subset
        policy, clusters = desired.policies[demand.workload], desired.clusters
        in_order = policy.spread is not None or policy.distribution.strategy is StrategyName.ORDERED
        refused = tuple(
            refusal for refusal in refusals if not in_order or ranks[refusal.cluster, refusal.subset] < candidate.rank
        )
        shortage, detail = self._why(candidate.replicas, missing, shape)
        here = [placement for placement in self.working_plan.of(demand.workload) if placement.cluster == cluster]
        if policy.spread is not None:
            here = [placement for placement in here if cluster_subset(placement, policy, clusters) == candidate.key]
        if not here:
            template = desired.templates[demand.workload]
            placement = self.finder.placement(template, policy, shape, cluster, candidate.replicas, subset=subset)
            detail = "" if shortage is not None else detail
            return Place(placement=placement, shortage=shortage, choice=choice, refused=refused, detail=detail)
        before = max(here, key=lambda placement: (placement.created_at, placement.name))
        grown = lifecycle.resized_placement(before, self.inputs.desired, now, before.replicas + candidate.replicas)
        after = replace(grown, shape=shape.recorded, subset=subset)
        return Resize(before=before, after=after, detail=detail, shortage=shortage, choice=choice, refused=refused)

    def _why(self, replicas: int, missing: int, shape: ReplicaShape) -> tuple[Shortage | None, str]:
        """Say why so many missing replicas go: their primary lacks them, or they found no node where they were."""
        demand, now = self.demand, self.inputs.now
        left = rescheduled(self.working_plan, demand.workload, now)
        waited, home = join_names(sanitize(place) for place in left), max(0, missing - left.total())
        shortage = _shortage(demand, demand.shape or shape, now)
        if not left:
            return shortage, f"{replicas} of {count(missing, 'more replica')} that {demand.primary} is missing"
        if not home:
            return None, f"{replicas} of {count(missing, 'replica')} that found no node on {waited} and move on"
        moved = f"{left.total()} found no node on {waited} and move on"
        return shortage, f"{replicas} of {count(missing, 'replica')}: {moved}, {home} more {demand.primary} is missing"

    def _stays(self, replicas: int) -> str:
        """Say that the primary is in a subset, and has room for some of the missing replicas."""
        return f"{self.demand.primary} has room for {count(replicas, 'replica')} of them itself, as its subset has"

    def _state(self) -> str:
        return "missing" if any(step.signal for step in self.demand.waiting) else "unschedulable"

    def _suppress(
        self,
        reason: Reason,
        message: str,
        until: datetime | None = None,
        *,
        short: int | None = None,
        refusals: tuple[Refusal, ...] = (),
    ) -> None:
        missing = self.demand.missing - self.working_plan.replicas(self.demand.workload)
        self.working_plan.suppress(
            Suppressed(
                workload=self.demand.workload,
                reason=reason,
                message=message,
                replicas=missing if short is None else short,
                until=until,
                refusals=refusals,
            )
        )
